// PELT (Killick, Fearnhead and Eckley, Journal of the American Statistical Association 107, 2012)
// for changes of the mean of normal noise. It finds the segments with the least sum of squares plus
// a penalty for each, exactly, by dynamic programming with pruning. The spread of the noise is
// estimated from the median distance of neighbours. The penalty is 3 ln n, R's "MBIC"; segments
// have at least 5 points. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weir::changes {

// Returns the first points of changes, ascending.
[[nodiscard]] std::vector<std::size_t> pelt(std::span<const double> values);

}  // namespace weir::changes
