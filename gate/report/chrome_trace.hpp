// A timeline as a Chrome trace (JSON, "Trace Event Format"): what Perfetto and chrome://tracing
// open. Pure.
//
// One process for each of the timeline's; in it a track for each thread (graphs, submissions,
// waits, transfers), for each device queue, and for the copies on it. Names are the program's:
// hostile text, escaped by JSON. Times are microseconds from the timeline's start.
#pragma once

#include <string>

#include "gate/observed/timeline.hpp"

namespace weir::report {

[[nodiscard]] std::string chrome_trace(const observed::Timeline& timeline);

}  // namespace weir::report
