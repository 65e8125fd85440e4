// A timeline's device work as rows: what comparisons and explanations look at. Pure.
#pragma once

#include "gate/observed/observed.hpp"
#include "gate/observed/timeline.hpp"

namespace weir::observed {

// A row for each kernel (work between two barriers together, as work_times() has it). Whole
// processes: phases and tokens are not told. Times are there where all of a row was timed.
[[nodiscard]] Observed observed_of(const Timeline& timeline);

}  // namespace weir::observed
