// Stored baselines as the text of `weir baseline list` and `show`. Pure.
#pragma once

#include <span>
#include <string>

#include "gate/baseline/baseline.hpp"

namespace weir::report {

// Lists cells and device classes, with the number of counts, kernels, stored runs and machine
// classes.
[[nodiscard]] std::string baseline_list(std::span<const baseline::Baseline> baselines,
                                        int width = 80);
// Shows one in full: counts, kernels, stored runs by machine class.
[[nodiscard]] std::string baseline_show(const baseline::Baseline& baseline, int width = 80);

}  // namespace weir::report
