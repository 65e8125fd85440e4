// How far a series of measurements drifts while it is taken: a server that slows down hour by hour.
// Neighbours are alike (a slow moment meets several requests), so they do not count as independent:
// the series is cut into blocks of equal numbers, which remember little of each other, and what
// they do remember widens the interval. Pure.
#pragma once

#include <optional>
#include <span>

#include "gate/stats/theil_sen.hpp"

namespace weir::stats {

inline constexpr std::size_t k_drift_blocks = 100;
// Fewer points make no blocks that mean anything.
inline constexpr std::size_t k_min_drift_points = 2 * k_drift_blocks;

// The change from the first x to the last, in units of y.
struct Drift {
  double change = 0;         // by Theil and Sen's line through the means of blocks
  double low = 0, high = 0;  // contains the change with probability 1 - level
  double memory = 0;         // correlation of a block's distance from the line with the one before
  [[nodiscard]] bool stands_out() const { return low > 0 || high < 0; }
};
// `points` in the order of x. The interval is Student's, from the blocks' distances from the line:
// their variance is multiplied by (1 + r) / (1 - r), with r the memory above 0, as for an AR(1)
// series, and divided by the efficiency of Sen's slope. Absent with too few points, or all at one
// x.
[[nodiscard]] std::optional<Drift> measure_drift(std::span<const Point> points, double level);

}  // namespace weir::stats
