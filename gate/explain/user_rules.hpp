// Rules of the config held against what differs. Used by this module alone.
#pragma once

#include <vector>

#include "gate/explain/differences.hpp"
#include "gate/explain/explain.hpp"

namespace weir::explain {

// One finding a rule that holds, in the order of the rules.
[[nodiscard]] std::vector<Finding> user_findings(const Evidence& evidence, const Differences& found,
                                                 const std::vector<Rule>& rules);

}  // namespace weir::explain
