// What was measured, held against itself: sums against the whole, times against the clock, counts
// of two sources. Disagreements are doubts, told beside whatever shows the numbers. Pure.
#pragma once

#include <string>
#include <vector>

#include "gate/observed/observed.hpp"

namespace weir::observed {

// One line each; `side` stands in front ("before", "after"; "" for none).
// Of what an engine or a profiler said: times of dispatches against their command buffers', and of
// ops against the rate. What other documents of the same run say is not looked at.
[[nodiscard]] std::vector<std::string> cross_checks(const Observed& observed,
                                                    const std::string& side = "");

}  // namespace weir::observed
