// The report of an engine or a profiler as the document of a page: facts, warnings, tables of ops,
// steps, command buffers and results, and tracks if times are known.
//
// Private parts are hidden as hiding.hpp does it, unless they are to be shown. Paths are cut to
// their last part, and texts that the document calls places (such as hosts) are hidden. Facts about
// prompts, users or hosts are left out. Pure.
#pragma once

#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/hiding.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

struct ObservedPageOptions {
  PrivateWords privacy = PrivateWords::hidden;
  observed::Grouping by = observed::GroupBy::kernel;
};

// `facts` is what the caller knows besides: a title, weir's version. `moments` is null if the
// format has none.
[[nodiscard]] TimelineDocument observed_page(const observed::Observed& observed,
                                             const observed::ObservedMoments* moments,
                                             PageFacts facts,
                                             const ObservedPageOptions& options = {});

}  // namespace weir::report
