// A timeline on tracks: as the document of a page, and as a Chrome trace. Pure.
#pragma once

#include <string>

#include "gate/observed/timeline.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

// Tracks for CPU threads, queues, their copies, and backends; arrows from what was submitted to
// where it ran, and for what the engine moved between backends.
//
// `facts` is what the caller knows besides: machine, command line, version. The timeline's own
// warnings, devices and work without times are added. Device work is named by kernel or by op.
[[nodiscard]] TimelineDocument timeline_document(const observed::Timeline& timeline,
                                                 PageFacts facts,
                                                 observed::By by = observed::By::kernel);

// A timeline as a Chrome trace (JSON, "Trace Event Format"): what Perfetto and chrome://tracing
// open.
//
// One process for each of the timeline's; in it a track for each thread (graphs, submissions,
// waits, transfers), for each device queue, and for the copies on it. Names are the program's:
// hostile text, escaped by JSON. Times are microseconds from the timeline's start.
[[nodiscard]] std::string chrome_trace(const observed::Timeline& timeline);

}  // namespace weir::report
