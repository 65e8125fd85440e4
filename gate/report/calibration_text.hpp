// What `weir calibrate` found, for people. Pure.
#pragma once

#include <string>

#include "gate/verdict/calibration.hpp"

namespace weir::report {

struct CalibrationStyle {
  int width = 80;
  bool color = false;
};
// The answer first, then a block a cell, then how sure that is. Names are made inert here.
[[nodiscard]] std::string calibration_text(const verdict::Calibration& calibration,
                                           const CalibrationStyle& style);

}  // namespace weir::report
