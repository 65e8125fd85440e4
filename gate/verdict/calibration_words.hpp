// A calibration in plain sentences. Used by this module alone.
#pragma once

#include <string>
#include <vector>

#include "gate/verdict/calibration.hpp"

namespace weir::verdict {

// Whether this machine can hold these limits within gate.budget, and if not, what would help.
[[nodiscard]] std::string answer_words(const Calibration& calibration);

// What stands out in the gate that was run itself.
[[nodiscard]] std::vector<std::string> surprises(const Calibration& calibration);

}  // namespace weir::verdict
