// Inside of the reader of Chrome traces: an event's text, spans, totals. Not for others. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
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

#include "gate/adapters/format.hpp"
#include "gate/observed/observed.hpp"

namespace weir::adapters {

// One event of a Chrome trace out of its text, without a tree of it: what makes traces of gigabytes
// quick.
//
// Strict on purpose: what is taken is JSON beyond doubt. Whatever is not (or not whole, nested
// deeply, has numbers of unusual size) is left to a parser, whose tree written out again is then
// scanned: both ways give the same event. A library is not taken, as what is looked for is the end
// of each event in a text that comes in chunks, and Debian has none that finds it and can be linked
// into a program.
//
// Views into the event's text: values as JSON, a text with its quotes. Empty: absent, or not of the
// type that it should be. Of members that occur twice the last one.
struct ChromeEvent {
  struct Number {
    std::string_view key, value;  // the key with its quotes
  };
  std::string_view phase, name, category;  // texts
  std::string_view at, length;             // numbers or texts
  std::string_view pid, tid, id, id2;      // anything
  // Of "args", where that is an object:
  bool has_args = false;
  std::size_t args = 0;               // how many
  std::vector<Number> numbers;        // those that are numbers, the first 1000
  std::string_view args_name, shape;  // texts
  std::string_view bytes;             // a number or a text
  bool empty = true;                  // no member at all

  void clear();
};

// The event that `text` begins with: the length of its text, or 0 where a parser should look.
// `written`: it is what that parser's tree was written out as.
[[nodiscard]] std::size_t scan_chrome_event(std::string_view text, ChromeEvent& event,
                                            bool written = false);

// What a value says, of those above. Texts are shown_text; nothing where it is absent.
[[nodiscard]] std::optional<std::string> event_text(std::string_view value);
// Finite; also one that is written as a text (rocprof).
[[nodiscard]] std::optional<double> event_number(std::string_view value);
// Ids of processes, threads and spans are numbers or texts; "" where there is none.
[[nodiscard]] std::string event_id(std::string_view value);

// Spans of a trace's tracks, put in order within a window and nested: what each took of itself, and
// how much of its track was taken.
//
// Times are in any unit.
class NestedSpans {
 public:
  struct Event {
    enum class Kind : std::uint8_t { whole, begin, end };
    double at = 0, length = 0;  // length: of `whole`
    std::uint32_t row = 0;      // what it counts for; of `end` ignored
    std::uint16_t track = 0;
    Kind kind = Kind::whole;
  };
  static_assert(sizeof(double) != 8 || sizeof(Event) == 24);  // there may be 1.5 million of them
  struct Track {
    std::int64_t events = 0;
    double length = 0;  // of its outermost spans
    double last = -1e300;
    struct Open {
      double at, end;  // end: infinite until an `end` comes
      double inner;    // taken by spans within it
      std::uint32_t row;
    };
    std::vector<Open> open;
    std::size_t begun = 0;  // of `open`, those that wait for an `end`
    std::uint16_t number = 0;
  };
  struct Ended {
    std::uint32_t row;
    std::uint16_t track;
    bool from_begin;  // of a begin and an end: its time was not known before
    double at, length, own;
  };

  // At least `window` events are held back to be put in order, and at most 3/8 as many again (33 MB
  // of 1 000 000).
  NestedSpans(std::size_t window, std::function<void(const Ended&)> ended);
  void add(const Event& event);
  void finish();

  [[nodiscard]] const std::vector<Track>& tracks() const { return tracks_; }
  [[nodiscard]] std::size_t disordered() const { return disordered_; }
  [[nodiscard]] std::size_t unbalanced() const { return unbalanced_; }

 private:
  void order();
  void take(std::size_t count);
  void process(const Event& event);
  void close_before(Track& track, double at);
  void close_last(Track& track, double end, bool from_begin);
  void end(Track& track, double at);

  std::size_t window_, batch_;
  std::function<void(const Ended&)> ended_;
  // [first_, ordered_) are in order; what stands behind them came since, what stands before is
  // done.
  std::vector<Event> events_;
  std::size_t first_ = 0, ordered_ = 0;
  std::vector<Track> tracks_;
  std::size_t disordered_ = 0, unbalanced_ = 0;
};

// What a Chrome trace adds up to: rows by category, name and shape, tracks, counters. Bounded; what
// goes beyond is counted. Times are in microseconds until they are handed out.
//
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
  [[nodiscard]] const std::vector<ObservedOp>& ops() const { return ops_; }  // until then
  // Events whose names are among "(other names)".
  [[nodiscard]] std::size_t lost() const { return lost_; }
  // Most time first; once.
  [[nodiscard]] std::vector<ObservedOp> take();

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
  std::vector<ObservedOp> ops_;
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
  [[nodiscard]] std::vector<ObservedTrack> take(const NestedSpans& spans) const;

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
  [[nodiscard]] std::vector<ObservedCounter> take(const ChromeTracks& tracks);  // once

 private:
  struct Series {
    ObservedCounter counter;
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
