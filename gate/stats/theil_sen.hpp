// A straight line through points that some outliers do not bend: Theil and Sen's.
//
// Slope: the median of the slopes of all pairs of points that differ in x (Theil 1950, Sen 1968).
// Intercept: the median of y - slope * x. Up to 29 % of the points may lie anywhere. Multiplying
// all y by a factor multiplies both. Pure.
#pragma once

#include <optional>
#include <span>

namespace weir::stats {

struct Point {
  double x = 0, y = 0;  // finite
};

struct SlopeAndIntercept {
  double slope = 0, intercept = 0;
};
// Absent with fewer than two different x. Takes n^2 / 2 numbers of memory for n points.
[[nodiscard]] std::optional<SlopeAndIntercept> theil_sen(std::span<const Point> points);

// An interval that contains the slope with probability 1 - level (0 < level < 1), if the errors of
// all points are alike and independent: the slopes of pairs that Kendall's tau does not reject, by
// its normal approximation corrected for ties in x and y (Sen, Journal of the American Statistical
// Association 63, 1968). Few points give the whole range of slopes, and less than 1 - level. Absent
// as above.
struct SlopeInterval {
  double low = 0, high = 0;
};
[[nodiscard]] std::optional<SlopeInterval> slope_interval(std::span<const Point> points,
                                                          double level);

}  // namespace weir::stats
