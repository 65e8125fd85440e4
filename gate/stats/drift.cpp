// Measures how far a series drifts while it is taken.
#include "gate/stats/drift.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gate/stats/quantile.hpp"

namespace weir::stats {
namespace {

// Returns the correlation of neighbouring residuals of a line. Since the line was fitted to the
// same n points, the raw value is about (1 + 4 r) / n too low. (Kendall, Biometrika 41, 1954, has 1
// + 3 r for a fitted mean; a slope takes one more.)
double residual_memory(const std::vector<double>& residuals) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    squares += residuals[i] * residuals[i];
    if (i > 0) products += residuals[i] * residuals[i - 1];
  }
  if (squares <= 0) return 0;
  const double n = static_cast<double>(residuals.size()), raw = products / squares;
  return std::clamp(raw + (1 + 4 * raw) / n, -0.95, 0.95);
}

// Clamps values to three standard deviations around the median, so that a stall of seconds weighs
// no more than a slow request. The deviation is estimated from the middle half.
std::vector<Point> pull_in_outliers(std::span<const Point> points) {
  constexpr double k_max_deviations = 3,
                   k_deviation_of_quartiles = 0.7413;  // a quartile distance to a deviation
  std::vector<double> values;
  for (const Point& point : points) values.push_back(point.y);
  std::ranges::sort(values);
  const double deviation = k_deviation_of_quartiles *
                           (quantile_of_sorted(values, 0.75) - quantile_of_sorted(values, 0.25));
  const double middle = quantile_of_sorted(values, 0.5);
  std::vector<Point> clamped(points.begin(), points.end());
  if (deviation <= 0) return clamped;  // most are equal, so the others are all the information
  for (Point& point : clamped) {
    point.y = std::clamp(point.y, middle - k_max_deviations * deviation,
                         middle + k_max_deviations * deviation);
  }
  return clamped;
}

}  // namespace

// Returns the mean points of k_drift_blocks parts of the series, which are equally long, in order.
static std::vector<Point> block_means(std::span<const Point> points) {
  std::vector<Point> blocks;
  for (std::size_t block = 0; block < k_drift_blocks; ++block) {
    const std::size_t begin = points.size() * block / k_drift_blocks;
    const std::size_t end = points.size() * (block + 1) / k_drift_blocks;
    const double count = static_cast<double>(end - begin);
    Point mean;
    for (std::size_t i = begin; i < end; ++i) {
      mean.x += points[i].x / count;
      mean.y += points[i].y / count;
    }
    blocks.push_back(mean);
  }
  return blocks;
}

// Fits a line through the means of blocks. Its standard error is that of least squares, enlarged
// for the autocorrelation r of the residuals and for the efficiency e of Sen's slope:
//
//   sqrt(residual squares / freedom / x squares * (1 + r) / (1 - r) / e)
std::optional<Drift> measure_drift(std::span<const Point> points, double level) {
  if (points.size() < k_min_drift_points) return std::nullopt;
  const std::vector<Point> blocks = block_means(pull_in_outliers(points));
  const auto fitted_line = theil_sen(blocks);
  if (!fitted_line) return std::nullopt;
  std::vector<double> residuals;
  for (const Point& block : blocks) {
    residuals.push_back(block.y - fitted_line->intercept - fitted_line->slope * block.x);
  }
  Drift drift;
  drift.memory = residual_memory(residuals);
  double mean_x = 0, x_squares = 0, residual_squares = 0;
  for (const Point& block : blocks) mean_x += block.x / k_drift_blocks;
  for (const Point& block : blocks) x_squares += (block.x - mean_x) * (block.x - mean_x);
  for (const double residual : residuals) residual_squares += residual * residual;
  constexpr double k_degrees_of_freedom = k_drift_blocks - 2;
  constexpr double k_efficiency = 0.955;  // 3 / pi, by Sen 1968
  const double correlation = std::max(0.0, drift.memory);
  const double standard_error = std::sqrt(residual_squares / k_degrees_of_freedom / x_squares *
                                          (1 + correlation) / (1 - correlation) / k_efficiency);
  const double half_width = student_quantile(1 - level / 2, k_degrees_of_freedom) * standard_error;
  const double span = points.back().x - points.front().x;
  drift.change = fitted_line->slope * span;
  drift.low = (fitted_line->slope - half_width) * span;
  drift.high = (fitted_line->slope + half_width) * span;
  return drift;
}

}  // namespace weir::stats
