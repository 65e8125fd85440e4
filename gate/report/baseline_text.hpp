// Stored baselines as text: what `weir baseline list` and `show` print. Pure.
#pragma once

#include <span>
#include <string>

#include "gate/baseline/baseline.hpp"

namespace weir::report {

// A table: cell, device class, how many counts, how many timed stored runs on how many machines.
[[nodiscard]] std::string baseline_list(std::span<const baseline::Baseline> baselines,
                                        int width = 80);
// All of one: counts, kernels, stored runs by machine class.
[[nodiscard]] std::string baseline_show(const baseline::Baseline& baseline, int width = 80);

}  // namespace weir::report
