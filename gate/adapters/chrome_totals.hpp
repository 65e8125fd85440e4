// What a Chrome trace adds up to: rows by category, name and shape, tracks, counters. Bounded; what
// goes beyond is counted. Times are in microseconds until they are handed out. Used by the reader
// of Chrome traces alone. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "gate/adapters/chrome_event.hpp"
#include "gate/adapters/chrome_spans.hpp"
#include "gate/observed/observed.hpp"

namespace weir::adapters {

// From the JSON text of some values to an index: what makes the second event of a name quick.
// Bounded; what it does not hold is looked up by what the values say. One flat table, as a trace's
// thousands of names come in no order and each step to another place in memory is a wait.
class SeenTexts {
 public:
  explicit SeenTexts(std::size_t most) : most_(most) {}

  // `look_up` answers with the index, and whether it may be kept, where the texts were not seen.
  template <class LookUp>
  std::uint32_t find(std::initializer_list<std::string_view> texts, const LookUp& look_up) {
    const bool fits = join(texts);
    if (const Slot* known = fits ? find_joined() : nullptr) return known->index;
    const auto [index, keep] = look_up();
    if (keep && fits) add(index);
    return index;
  }

 private:
  static constexpr std::size_t k_longest = 512;  // bytes of texts together that are kept
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t text = 0;  // where it begins in texts_
    std::uint16_t size = 0;  // 0: free
    std::uint32_t index = 0;
  };
  bool join(std::initializer_list<std::string_view> texts);  // into key_; false: too long
  [[nodiscard]] const Slot* find_joined() const;
  void add(std::uint32_t index);
  void place(const Slot& slot);

  std::size_t most_, used_ = 0;
  std::array<char, k_longest> key_{};
  std::size_t key_size_ = 0;
  std::uint64_t key_hash_ = 0;
  std::vector<Slot> slots_;  // a power of two of them, at most half used
  std::string texts_;
};

class ChromeTracks;

class ChromeRows {
 public:
  explicit ChromeRows(std::size_t most) : most_(most), seen_(2 * most) {}

  // The row of an event; `otherwise` is the category where it has none, or `always` that of all.
  // `backends`: where the trace's processes are backends, those.
  std::uint32_t of(const ChromeEvent& event, std::string_view otherwise = "",
                   std::string_view always = "", const ChromeTracks* backends = nullptr);
  void add_call(std::uint32_t row) { ++sums_[row].calls; }
  void add_time(std::uint32_t row, double micros) {
    Sums& sums = sums_[row];
    sums.seconds += micros;
    sums.least = std::min(sums.least, micros);
    sums.most = std::max(sums.most, micros);
  }
  void add_own(std::uint32_t row, double micros) {
    sums_[row].own += micros;
    sums_[row].has_own = true;
  }
  // Of what copies or sets memory. Of anything else "bytes" may be any size of it: ggml's is that
  // of the result alone, which is no traffic.
  void add_bytes(std::uint32_t row, const ChromeEvent& event) {
    if (sums_[row].moves) add_moved(row, event);
  }
  void covers_others(std::uint32_t row) { ops_[row].covers_others = true; }
  [[nodiscard]] const std::vector<observed::ObservedOp>& ops() const { return ops_; }  // until then
  // Events whose names are among "(other names)".
  [[nodiscard]] std::size_t lost() const { return lost_; }
  // Most time first; once.
  [[nodiscard]] std::vector<observed::ObservedOp> take();

 private:
  // What every event adds to, apart from what is said once: one line of the cache a row.
  struct alignas(64) Sums {
    std::int64_t calls = 0, with_bytes = 0;
    double bytes = 0, seconds = 0, own = 0;
    double least = std::numeric_limits<double>::infinity(), most = -least;  // so while none
    bool has_own = false, moves = false;
  };
  // Whether it is the event's own row, not that of other names.
  std::pair<std::uint32_t, bool> look_up(const ChromeEvent& event, std::string_view category,
                                         std::string backend);
  void add_moved(std::uint32_t row, const ChromeEvent& event);

  std::size_t most_;
  SeenTexts seen_;
  std::vector<observed::ObservedOp> ops_;
  std::vector<Sums> sums_;  // of each of them
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::uint32_t> index_;
  std::size_t lost_ = 0;
};

class ChromeTracks {
 public:
  explicit ChromeTracks(std::size_t most) : most_(most), seen_(2 * most) {}

  std::uint16_t of(const ChromeEvent& event);
  // An event of phase M.
  void take_metadata(const ChromeEvent& event);
  [[nodiscard]] std::string process(const std::string& pid) const;
  // ggml's profiler has a process a backend, named before its events: "GPU: Vulkan0", "CPU: CPU".
  [[nodiscard]] bool has_backends() const { return has_backends_; }
  [[nodiscard]] std::string backend(const std::string& pid) const;  // "" where it is none
  // All of them, by their numbers.
  [[nodiscard]] std::vector<observed::ObservedMoments::Track> names() const;
  // With what the spans of each added up to.
  [[nodiscard]] std::vector<observed::ObservedTrack> take(const NestedSpans& spans) const;

 private:
  struct Track {
    std::string pid, tid, name;
  };
  std::uint32_t look_up(const ChromeEvent& event);

  std::size_t most_;
  SeenTexts seen_;
  std::vector<Track> tracks_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> index_;
  std::map<std::string, std::string> process_names_;
  bool has_backends_ = false;
};

class ChromeCounters {
 public:
  explicit ChromeCounters(std::size_t most_points) : most_points_(most_points) {}

  // An event of phase C.
  void add(const ChromeEvent& event, double at);
  [[nodiscard]] std::vector<observed::ObservedCounter> take(const ChromeTracks& tracks);  // once

 private:
  struct Series {
    observed::ObservedCounter counter;
    std::string pid;
    std::size_t every = 1, seen = 0;
  };
  // Of a number of an event; nothing where there are too many series.
  Series* series_of(const ChromeEvent& event, const ChromeEvent::Number& number);
  std::uint32_t look_up(const ChromeEvent& event, const ChromeEvent::Number& number);

  std::size_t most_points_;
  std::vector<Series> series_;
  std::map<std::string, std::uint32_t> index_;
  SeenTexts seen_{10'000};
};

// Spans that begin and end anywhere.
class ChromeAsync {
 public:
  void begin(const ChromeEvent& event, double at, ChromeRows& rows);
  // The row of what ended, and when it began.
  std::optional<std::pair<double, std::uint32_t>> end(const ChromeEvent& event, double at,
                                                      ChromeRows& rows);
  // Begins and ends that found no other.
  [[nodiscard]] std::size_t alone() const { return lost_ + open_.size(); }

 private:
  std::map<std::string, std::vector<std::pair<double, std::uint32_t>>> open_;
  std::size_t lost_ = 0;
};

}  // namespace weir::adapters
