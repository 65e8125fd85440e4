// The result of `weir calibrate`, for people. Pure.
#pragma once

#include <string>

#include "gate/report/text_style.hpp"
#include "gate/verdict/calibration.hpp"

namespace weir::report {

// The answer first, then a block a cell, then how sure that is. Names are made inert here.
[[nodiscard]] std::string calibration_text(const verdict::Calibration& calibration,
                                           const TextStyle& style);

}  // namespace weir::report
