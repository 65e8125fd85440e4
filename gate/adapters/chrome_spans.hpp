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
    std::uint32_t track = 0;
    std::uint32_t number = 0;  // in the order of arrival
    Kind kind = Kind::whole;
  };
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
  };
  struct Ended {
    std::uint32_t row;
    double length, own;
    bool from_begin;  // of a begin and an end: its time was not known before
  };

  NestedSpans(std::size_t window, std::function<void(const Ended&)> ended)
      : window_(window), ended_(std::move(ended)) {}
  void add(Event event);
  void finish();

  [[nodiscard]] const std::vector<Track>& tracks() const { return tracks_; }
  [[nodiscard]] std::size_t disordered() const { return disordered_; }
  [[nodiscard]] std::size_t unbalanced() const { return unbalanced_; }

 private:
  void take_earliest();
  void process(const Event& event);
  void close_before(Track& track, double at);
  void close_last(Track& track, double end, bool from_begin);
  void end(Track& track, double at);

  std::size_t window_;
  std::function<void(const Ended&)> ended_;
  std::vector<Event> heap_;
  std::vector<Track> tracks_;
  std::uint32_t number_ = 0;
  std::size_t disordered_ = 0, unbalanced_ = 0;
};

}  // namespace weir::adapters
