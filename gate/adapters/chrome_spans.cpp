#include "gate/adapters/chrome_spans.hpp"

#include <algorithm>
#include <limits>

namespace weir::adapters {
namespace {

constexpr double k_never = std::numeric_limits<double>::infinity();
constexpr std::size_t k_deepest = 10'000;

// Of two that begin together the longer one holds the other; ends come in the order of arrival.
bool later(const NestedSpans::Event& a, const NestedSpans::Event& b) {
  if (a.at != b.at) return a.at > b.at;
  const bool whole = a.kind == NestedSpans::Event::Kind::whole && b.kind == a.kind;
  if (whole && a.length != b.length) return a.length < b.length;
  return a.number > b.number;
}

}  // namespace

void NestedSpans::add(Event event) {
  event.number = number_++;
  heap_.push_back(event);
  std::push_heap(heap_.begin(), heap_.end(), later);
  if (heap_.size() > window_) take_earliest();
}

void NestedSpans::take_earliest() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const Event event = heap_.back();
  heap_.pop_back();
  process(event);
}

void NestedSpans::finish() {
  // All at once is faster than one by one.
  std::sort(heap_.begin(), heap_.end(), [](const Event& a, const Event& b) { return later(b, a); });
  for (const Event& event : heap_) process(event);
  heap_.clear();
  for (Track& track : tracks_) {
    close_before(track, k_never);
    unbalanced_ += track.open.size();  // begun and never ended: their time is not known
    track.open.clear();
  }
}

void NestedSpans::process(const Event& event) {
  if (event.track >= tracks_.size()) tracks_.resize(event.track + 1);
  Track& track = tracks_[event.track];
  if (event.at < track.last) ++disordered_;
  track.last = std::max(track.last, event.at);
  if (event.kind == Event::Kind::end) return end(track, event.at);
  ++track.events;
  close_before(track, event.at);
  if (track.open.size() >= k_deepest) {
    ++unbalanced_;
    return;
  }
  const bool whole = event.kind == Event::Kind::whole;
  track.open.push_back({event.at, whole ? event.at + event.length : k_never, 0, event.row});
}

// What has an end that is not after `at` is over.
void NestedSpans::close_before(Track& track, double at) {
  while (!track.open.empty() && track.open.back().end <= at && track.open.back().end < k_never) {
    close_last(track, track.open.back().end, false);
  }
}

void NestedSpans::close_last(Track& track, double end, bool from_begin) {
  const Track::Open span = track.open.back();
  track.open.pop_back();
  const double length = std::max(0.0, end - span.at);
  ended_({span.row, length, std::max(0.0, length - span.inner), from_begin});
  if (track.open.empty()) {
    track.length += length;
  } else {
    // A span that outlasts the one around it takes of it what they share.
    Track::Open& around = track.open.back();
    around.inner += std::max(0.0, std::min(end, around.end) - span.at);
  }
}

void NestedSpans::end(Track& track, double at) {
  close_before(track, at);
  // Whole spans that outlast the one that is ended overlap it.
  std::size_t begun = track.open.size();
  while (begun > 0 && track.open[begun - 1].end < k_never) --begun;
  if (begun == 0) {
    ++unbalanced_;
    return;
  }
  while (track.open.size() > begun) close_last(track, track.open.back().end, false);
  close_last(track, at, true);
}

}  // namespace weir::adapters
