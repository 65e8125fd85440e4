// Inside of the reader of Chrome traces: spans in order, nested. Bounded. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace weir::adapters {

constexpr double k_never = std::numeric_limits<double>::infinity();
constexpr std::size_t k_deepest_stack = 2000;
constexpr std::size_t k_batch = 65'536;  // put in order together

// Sorts the spans of a trace's tracks within a window, and nests them. Computes the own time of
// each span, and how much of each track's time is covered.
//
// Times are in any unit.
class NestedSpans {
 public:
  struct Event {
    enum class Kind : std::uint8_t { complete, begin, end };
    double at = 0, length = 0;  // length: for `whole` only
    std::uint32_t row = 0;      // the row that it counts for; ignored for `end`
    std::uint16_t track = 0;
    Kind kind = Kind::complete;
  };
  static_assert(sizeof(double) != 8 || sizeof(Event) == 24);  // there may be 1.5 million of them
  struct Track {
    std::int64_t events = 0;
    double length = 0;  // total of its outermost spans
    double last = -1e300;
    struct Open {
      double at, end;  // end: infinite until an `end` comes
      double inner;    // taken by spans within it
      std::uint32_t row;
    };
    std::vector<Open> open;
    std::size_t begun = 0;  // spans in `open` that wait for an `end`
    std::uint16_t number = 0;
  };
  struct Ended {
    std::uint32_t row;
    std::uint16_t track;
    bool from_begin;  // a begin and an end, whose time was unknown before
    double at, length, own;
  };

  // At least `window` events are held back to be put in order, and at most 3/8 as many again (33 MB
  // of 1 000 000).
  NestedSpans(std::size_t window, std::function<void(const Ended&)> ended)
      : window_(window),
        batch_(std::clamp<std::size_t>(window / 4, 1, k_batch)),
        ended_(std::move(ended)) {}
  void add(const Event& event) {
    events_.push_back(event);
    if (events_.size() - ordered_ < batch_) return;
    // Reserve everything at once: growing step by step needs the old and the new memory together.
    // Memory that is never written to takes no space.
    events_.reserve(window_ + window_ / 4 + 2 * batch_);
    order();
    const std::size_t waiting = events_.size() - first_;
    if (waiting > window_) take(waiting - window_);
    if (first_ <= window_ / 4) return;
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(first_));
    ordered_ -= first_;
    first_ = 0;
  }
  void finish() {
    order();
    take(events_.size() - first_);
    events_.clear();
    first_ = 0;
    ordered_ = 0;
    for (Track& track : tracks_) {
      close_before(track, k_never);
      unbalanced_ += track.open.size();  // spans without an end have no known time
      track.open.clear();
    }
  }

  [[nodiscard]] const std::vector<Track>& tracks() const { return tracks_; }
  [[nodiscard]] std::size_t disordered() const { return disordered_; }
  [[nodiscard]] std::size_t unbalanced() const { return unbalanced_; }

 private:
  // An object rather than a function, so that sorting inlines it.
  static constexpr auto before = [](const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.track < b.track;
  };

  // Sorts the events that came last into the others: by time, then in the order of arrival.
  void order() {
    const auto late = events_.begin() + static_cast<std::ptrdiff_t>(ordered_);
    if (!std::is_sorted(late, events_.end(), before)) std::stable_sort(late, events_.end(), before);
    if (late != events_.end()) {
      const auto from = std::upper_bound(events_.begin() + static_cast<std::ptrdiff_t>(first_),
                                         late, *late, before);
      std::inplace_merge(from, late, events_.end(), before);
    }
    ordered_ = events_.size();
  }
  // Processes the first `count` sorted events, and those at the same time as the last one.
  void take(std::size_t count) {
    const std::size_t until = first_ + count;
    while (first_ < until) {
      std::size_t end = first_ + 1;
      // If whole spans begin together, the longer one contains the other.
      const auto is_whole = [&](std::size_t i) { return events_[i].kind == Event::Kind::complete; };
      while (end < ordered_ && is_whole(first_) && is_whole(end) &&
             !before(events_[first_], events_[end])) {
        ++end;
      }
      if (end - first_ > 1) {
        const auto at = [&](std::size_t i) {
          return events_.begin() + static_cast<std::ptrdiff_t>(i);
        };
        std::stable_sort(at(first_), at(end),
                         [](const Event& a, const Event& b) { return a.length > b.length; });
      }
      for (; first_ < end; ++first_) process(events_[first_]);
    }
  }
  void process(const Event& event) {
    if (event.track >= tracks_.size()) tracks_.resize(event.track + 1);
    Track& track = tracks_[event.track];
    track.number = event.track;
    if (event.at < track.last) ++disordered_;
    track.last = std::max(track.last, event.at);
    if (event.kind == Event::Kind::end) return end(track, event.at);
    ++track.events;
    close_before(track, event.at);
    if (track.open.size() >= k_deepest_stack) {
      ++unbalanced_;
      return;
    }
    const bool is_whole = event.kind == Event::Kind::complete;
    track.open.push_back({event.at, is_whole ? event.at + event.length : k_never, 0, event.row});
    if (!(track.open.back().end < k_never)) ++track.begun;
  }
  // Closes spans whose known end is not after `at`.
  void close_before(Track& track, double at) {
    while (!track.open.empty() && track.open.back().end <= at && track.open.back().end < k_never) {
      close_last(track, track.open.back().end, /*from_begin=*/false);
    }
  }
  // Closes the innermost span, reports it, and adds its length to the span around it or the track.
  void close_last(Track& track, double end, bool from_begin) {
    const Track::Open span = track.open.back();
    track.open.pop_back();
    if (!(span.end < k_never)) --track.begun;
    const double length = std::max(0.0, end - span.at);
    ended_(
        {span.row, track.number, from_begin, span.at, length, std::max(0.0, length - span.inner)});
    if (track.open.empty()) {
      track.length += length;
    } else {
      // If a span outlasts the one around it, only the shared part counts.
      Track::Open& around = track.open.back();
      around.inner += std::max(0.0, std::min(end, around.end) - span.at);
    }
  }
  // Ends the innermost span that waits for an `end`.
  void end(Track& track, double at) {
    close_before(track, at);
    if (track.begun == 0) {  // no search, as a trace may have millions of these
      ++unbalanced_;
      return;
    }
    // Close whole spans within it that have not ended yet: they overlap it.
    std::size_t begun = track.open.size();
    while (begun > 0 && track.open[begun - 1].end < k_never) --begun;
    while (track.open.size() > begun) {
      close_last(track, track.open.back().end, /*from_begin=*/false);
    }
    close_last(track, at, /*from_begin=*/true);
  }

  std::size_t window_, batch_;
  std::function<void(const Ended&)> ended_;
  // [first_, ordered_) are sorted; later events came since, earlier ones are processed.
  std::vector<Event> events_;
  std::size_t first_ = 0, ordered_ = 0;
  std::vector<Track> tracks_;
  std::size_t disordered_ = 0, unbalanced_ = 0;
};

}  // namespace weir::adapters
