// A timeline as the document of a page: tracks for CPU threads, queues, their copies, and backends;
// arrows from what was submitted to where it ran, and for what the engine moved between backends.
// Pure.
#pragma once

#include "gate/observed/timeline.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

// `facts` is what the caller knows besides: machine, command line, version. The timeline's own
// warnings, devices and work without times are added. Device work is named by kernel or by op.
[[nodiscard]] TimelineDocument timeline_document(const observed::Timeline& timeline,
                                                 PageFacts facts,
                                                 observed::By by = observed::By::kernel);

}  // namespace weir::report
