// What was measured, held against itself: sums against the whole, times against the clock, counts
// of two sources. Disagreements are doubts, told beside every explanation. Pure.
#pragma once

#include <string>
#include <vector>

#include "gate/profile/observed.hpp"
#include "gate/profile/profile.hpp"

namespace weir::explain {

// One line each; `side` stands in front ("before", "after"; "" for none).
[[nodiscard]] std::vector<std::string> cross_checks(const profile::Observed& observed,
                                                    const std::string& side);
[[nodiscard]] std::vector<std::string> cross_checks(const profile::Profile& profile,
                                                    const std::string& side);

}  // namespace weir::explain
