// Fits Theil and Sen's line, and an interval for its slope.
#include "gate/stats/theil_sen.hpp"

#include <cmath>
#include <map>

#include "gate/base/find.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::stats {
namespace {

// Returns the slopes of all pairs of points that differ in x.
std::vector<double> pair_slopes(std::span<const Point> points) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t k = i + 1; k < points.size(); ++k) {
      const double run = points[k].x - points[i].x;
      if (run != 0) slopes.push_back((points[k].y - points[i].y) / run);
    }
  }
  return slopes;
}

// The term of n values, or of n equal ones, in the variance of Kendall's score.
double variance_term(double n) { return n * (n - 1) * (2 * n + 5); }

// Returns the sum of the terms of all equal values.
double tie_terms(std::span<const Point> points, double Point::*part) {
  std::map<double, int> number_of_value;
  for (const Point& point : points) ++number_of_value[point.*part];
  double sum = 0;
  for (const auto& [value, times] : number_of_value) sum += variance_term(times);
  return sum;
}

}  // namespace

std::optional<SlopeAndIntercept> theil_sen(std::span<const Point> points) {
  const auto slope = median(pair_slopes(points));
  if (!slope) return std::nullopt;
  const auto intercept = [&](const Point& point) { return point.y - *slope * point.x; };
  return SlopeAndIntercept{*slope, *median(collect<double>(points, intercept))};
}

// Returns the confidence interval of the slope: those slopes between pairs of points that
// Kendall's test does not reject at `level`. Nothing if no two points differ in x.
std::optional<SlopeInterval> slope_interval(std::span<const Point> points, double level) {
  std::vector<double> slopes = pair_slopes(points);
  if (slopes.empty()) return std::nullopt;
  std::ranges::sort(slopes);
  const double variance = (variance_term(static_cast<double>(points.size())) -
                           tie_terms(points, &Point::x) - tie_terms(points, &Point::y)) /
                          18;
  const double rank_margin = normal_quantile(1 - level / 2) * std::sqrt(std::max(0.0, variance));
  const double count = static_cast<double>(slopes.size()), last = count - 1;
  const double low = std::clamp(std::nearbyint((count - rank_margin) / 2) - 1, 0.0, last);
  const double high = std::clamp(std::nearbyint((count + rank_margin) / 2), 0.0, last);
  return SlopeInterval{slopes[static_cast<std::size_t>(low)],
                       slopes[static_cast<std::size_t>(high)]};
}

}  // namespace weir::stats
