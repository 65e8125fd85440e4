// Spans of a trace's tracks, put in order within a window and nested: what each took of itself, and
// how much of its track was taken. Used by the reader of Chrome traces alone. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace weir::adapters {

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

}  // namespace weir::adapters
