// Apache Otava's method, from its published description (Fleming et al., "Hunter", ICPE 2023;
// Matteson and James, 2014; otava's docs/MATH.md): E-divisive in windows of 50 points that overlap
// by half, a split stands by Student's t at ten times the level, and is kept in the end at the
// level itself, between its neighbours. Variances of samples are used (n - 1). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weir::changes {

// First changed points, ascending.
[[nodiscard]] std::vector<std::size_t> otava(std::span<const double> values, double level = 0.001,
                                             std::size_t window = 50);

}  // namespace weir::changes
