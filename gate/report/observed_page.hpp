// What an engine or a profiler wrote, as the document of a page: facts, doubts, tables of ops,
// steps, command buffers and results, and tracks where it is known when things took place.
//
// Unless private parts are to be shown, what hiding.hpp takes out is not in it: paths are cut to
// their last part, texts that the document calls places (hosts among them) do not appear at all
// otherwise, and facts that are about prompts, users or hosts are left out. Pure.
#pragma once

#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/hiding.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

struct ObservedPageOptions {
  Private privacy = Private::hidden;
  observed::Grouping by = observed::GroupBy::kernel;
};

// `around` is what the caller knows besides: a title, weir's version. `moments` is absent where the
// format has none.
[[nodiscard]] TimelineDocument observed_page(const observed::Observed& observed,
                                             const observed::ObservedMoments* moments,
                                             PageFacts around,
                                             const ObservedPageOptions& options = {});

}  // namespace weir::report
