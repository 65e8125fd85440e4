// A Chrome trace ("Trace Event Format") of any length, read as it comes: totals by name, tracks and
// counters. PyTorch, rocprof, Tracy's importers, ggml's profilers and weir itself write it.
//
//   ChromeTraceReader reader;
//   while (auto chunk = next()) reader.feed(*chunk);
//   auto observed = reader.finish();
//
// Memory does not grow with the trace but with its names, tracks and open spans: 33 MB for the
// window, and all distinct names and tracks, which are limited. Events may be out of order by
// `window` events. Beyond that there is a warning, and own times and spans of B and E events follow
// the order in which they came. Times of X events are right in any order. Pure; one thread.
#pragma once

#include <memory>

#include "gate/base/result.hpp"
#include "gate/observed/observed.hpp"

namespace weir::adapters {

struct ChromeTraceLimits {
  std::size_t window = 1'000'000;  // events
  std::size_t names = 10'000;      // rows; more are added up as "(other names)"
  std::size_t tracks = 10'000;     // more are one; at most 65 535
  std::size_t points = 2048;       // per counter; of more points every second, fourth, … is kept
};

// Returns true if a text that begins with `head` (some 64 KiB) is a Chrome trace.
[[nodiscard]] bool begins_chrome_trace(std::string_view head);

class ChromeTraceReader {
 public:
  // `moments` may be null and must outlive the reader. Each span with an end is added to it, and at
  // the end the names of rows and tracks.
  explicit ChromeTraceReader(const ChromeTraceLimits& limits = {},
                             observed::ObservedMoments* moments = nullptr);
  ~ChromeTraceReader();

  void feed(std::string_view chunk);
  // Once, at the end. Rows come most time first. Fails with Code::data when there is no event.
  [[nodiscard]] Result<observed::Observed> finish();

 private:
  class TraceBuilder;
  std::unique_ptr<TraceBuilder> builder_;
};

}  // namespace weir::adapters
