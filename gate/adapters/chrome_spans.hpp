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
  NestedSpans(std::size_t window, std::function<void(const Ended&)> ended)
      : window_(window),
        batch_(std::clamp<std::size_t>(window / 4, 1, k_batch)),
        ended_(std::move(ended)) {}
  void add(const Event& event) {
    events_.push_back(event);
    if (events_.size() - ordered_ < batch_) return;
    // All at once: growing by and by would need the old and the new together. What is not written
    // to takes no memory.
    events_.reserve(window_ + window_ / 4 + 2 * batch_);
    order();
    const std::size_t held = events_.size() - first_;
    if (held > window_) take(held - window_);
    if (first_ <= window_ / 4) return;
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(first_));
    ordered_ -= first_;
    first_ = 0;
  }
  void finish() {
    order();
    take(events_.size() - first_);
    events_.clear();
    first_ = ordered_ = 0;
    for (Track& track : tracks_) {
      close_before(track, k_never);
      unbalanced_ += track.open.size();  // begun and never ended: their time is not known
      track.open.clear();
    }
  }

  [[nodiscard]] const std::vector<Track>& tracks() const { return tracks_; }
  [[nodiscard]] std::size_t disordered() const { return disordered_; }
  [[nodiscard]] std::size_t unbalanced() const { return unbalanced_; }

 private:
  // An object, not a function: sorting then holds it in line.
  static constexpr auto before = [](const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.track < b.track;
  };

  // Puts what came last among the others: by time, and what is at one place in the order of
  // arrival.
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
  // The first `count` of those in order, and those at the last one's place.
  void take(std::size_t count) {
    const std::size_t until = first_ + count;
    while (first_ < until) {
      std::size_t end = first_ + 1;
      // Of whole spans that begin together the longer one holds the other.
      const auto whole = [&](std::size_t i) { return events_[i].kind == Event::Kind::whole; };
      while (end < ordered_ && whole(first_) && whole(end) &&
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
    const bool whole = event.kind == Event::Kind::whole;
    track.open.push_back({event.at, whole ? event.at + event.length : k_never, 0, event.row});
    if (!(track.open.back().end < k_never)) ++track.begun;
  }
  // What has an end that is not after `at` is over.
  void close_before(Track& track, double at) {
    while (!track.open.empty() && track.open.back().end <= at && track.open.back().end < k_never) {
      close_last(track, track.open.back().end, false);
    }
  }
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
      // A span that outlasts the one around it takes of it what they share.
      Track::Open& around = track.open.back();
      around.inner += std::max(0.0, std::min(end, around.end) - span.at);
    }
  }
  void end(Track& track, double at) {
    close_before(track, at);
    if (track.begun == 0) {  // not looked for among the others: a trace may have millions of these
      ++unbalanced_;
      return;
    }
    // Whole spans that outlast the one that is ended overlap it.
    std::size_t begun = track.open.size();
    while (begun > 0 && track.open[begun - 1].end < k_never) --begun;
    while (track.open.size() > begun) close_last(track, track.open.back().end, false);
    close_last(track, at, true);
  }

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
