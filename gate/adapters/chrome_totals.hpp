// What a Chrome trace adds up to: rows by category, name and shape, tracks, counters. Bounded; what
// goes beyond is counted. Times are in microseconds until they are handed out. Used by the reader
// of Chrome traces alone. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gate/adapters/chrome_event.hpp"
#include "gate/adapters/chrome_spans.hpp"
#include "gate/profile/observed.hpp"

namespace weir::adapters {

// From the JSON text of some values to an index: what makes the second event of a name quick.
// Bounded; what it does not hold is looked up by what the values say.
class SeenTexts {
 public:
  explicit SeenTexts(std::size_t most) : most_(most) {}

  // `look_up` answers with the index, and whether it may be kept, where the texts were not seen.
  template <class LookUp>
  std::uint32_t find(std::initializer_list<std::string_view> texts, const LookUp& look_up) {
    const bool fits = join(texts);
    if (const auto known = fits ? seen_.find(std::string_view(key_)) : seen_.end();
        known != seen_.end()) {
      return known->second;
    }
    const auto [index, keep] = look_up();
    if (keep && fits) add(index);
    return index;
  }

 private:
  bool join(std::initializer_list<std::string_view> texts);  // into key_; false: too long
  void add(std::uint32_t index);
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::size_t most_;
  std::string key_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> seen_;
};

class ChromeRows {
 public:
  explicit ChromeRows(std::size_t most) : most_(most), seen_(2 * most) {}

  // The row of an event; `otherwise` is the category where it has none, or `always` that of all.
  std::uint32_t of(const ChromeEvent& event, std::string_view otherwise = "",
                   std::string_view always = "");
  void add_call(std::uint32_t row);
  void add_time(std::uint32_t row, double micros);
  void add_own(std::uint32_t row, double micros);
  void add_bytes(std::uint32_t row, const ChromeEvent& event);
  void covers_others(std::uint32_t row) { rows_[row].op.covers_others = true; }
  // Events whose names are among "(other names)".
  [[nodiscard]] std::size_t lost() const { return lost_; }
  // Most time first; once.
  [[nodiscard]] std::vector<profile::ObservedOp> take();

 private:
  struct Row {
    profile::ObservedOp op;
    std::int64_t with_bytes = 0;
    double bytes = 0;
  };
  // Whether it is the event's own row, not that of other names.
  std::pair<std::uint32_t, bool> look_up(const ChromeEvent& event, std::string_view category);

  std::size_t most_;
  SeenTexts seen_;
  std::vector<Row> rows_;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint32_t> index_;
  std::size_t lost_ = 0;
};

class ChromeTracks {
 public:
  explicit ChromeTracks(std::size_t most) : most_(most), seen_(2 * most) {}

  std::uint16_t of(const ChromeEvent& event);
  // An event of phase M.
  void take_metadata(const ChromeEvent& event);
  [[nodiscard]] std::string process(const std::string& pid) const;
  // With what the spans of each added up to.
  [[nodiscard]] std::vector<profile::ObservedTrack> take(const NestedSpans& spans) const;

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
};

class ChromeCounters {
 public:
  explicit ChromeCounters(std::size_t most_points) : most_points_(most_points) {}

  // An event of phase C.
  void add(const ChromeEvent& event, double at);
  [[nodiscard]] std::vector<profile::ObservedCounter> take(const ChromeTracks& tracks);  // once

 private:
  struct Series {
    profile::ObservedCounter counter;
    std::string pid;
    std::size_t every = 1, seen = 0;
  };
  std::size_t most_points_;
  std::map<std::string, Series> series_;
};

// Spans that begin and end anywhere.
class ChromeAsync {
 public:
  void begin(const ChromeEvent& event, double at, ChromeRows& rows);
  void end(const ChromeEvent& event, double at, ChromeRows& rows);
  // Begins and ends that found no other.
  [[nodiscard]] std::size_t alone() const { return lost_ + open_.size(); }

 private:
  std::map<std::string, std::vector<std::pair<double, std::uint32_t>>> open_;
  std::size_t lost_ = 0;
};

}  // namespace weir::adapters
