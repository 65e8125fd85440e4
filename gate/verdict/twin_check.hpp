// Device twins against the device itself, where a run counted both. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// Fills twin_check of each cell of `cells` (one for each of `profiles`, in their order) that ran on
// a twin, where another cell with the same engine, variant, model and prompt ran on the device that
// the twin describes: same vendor, device and driver; or, where these ids are others, the same
// device name. A difference is a warning on the twin's cell, never a verdict: a description may be
// older than the driver.
//
// Answers what is to be told once for each twin: that all was equal, or why nothing was compared
// although the device is there.
[[nodiscard]] std::vector<std::string> check_twins(std::span<const profile::Profile> profiles,
                                                   std::span<CellVerdict> cells);

}  // namespace weir::verdict
