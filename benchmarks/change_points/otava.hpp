// Apache Otava's method, from its published description (Fleming et al., "Hunter", ICPE 2023;
// Matteson and James, 2014; otava's docs/MATH.md). E-divisive splits windows of 50 points, which
// overlap by half. A split must pass Student's t test at ten times the level. In the end each split
// is tested again between its neighbours, at the level itself. Variances of samples are used
// (n - 1). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weir::changes {

// Returns the first points of changes, ascending.
[[nodiscard]] std::vector<std::size_t> otava(std::span<const double> values, double level = 0.001,
                                             std::size_t window = 50);

}  // namespace weir::changes
