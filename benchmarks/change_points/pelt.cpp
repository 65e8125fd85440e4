// The PELT algorithm, for changes of the mean.
#include "benchmarks/change_points/pelt.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gate/stats/quantile.hpp"

namespace weir::changes {
namespace {

constexpr std::size_t k_min_segment_points = 5;  // points of a segment

// Estimates the standard deviation of normal noise, whatever the steps of the mean. The median
// distance of two numbers is 0.6745 * sqrt(2) standard deviations.
double estimate_spread(std::span<const double> values) {
  std::vector<double> distances;
  for (std::size_t i = 1; i < values.size(); ++i) {
    distances.push_back(std::abs(values[i] - values[i - 1]));
  }
  return stats::median(distances).value_or(0) / (0.6744898 * std::sqrt(2.0));
}

}  // namespace

// Returns the first points of the segments with the least cost, ascending, without point 0. The
// cost of a segment is its sum of squares about its mean, in units of the noise, plus a penalty.
std::vector<std::size_t> pelt(std::span<const double> values) {
  const std::size_t count = values.size();
  const double spread = estimate_spread(values);
  if (count < 2 * k_min_segment_points || spread <= 0) return {};
  std::vector<double> sums(count + 1, 0.0), squares(count + 1, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = (values[i] - values[0]) / spread;
    sums[i + 1] = sums[i] + value;
    squares[i + 1] = squares[i] + value * value;
  }
  const auto squares_about_mean = [&](std::size_t begin, std::size_t end) {
    const double sum = sums[end] - sums[begin];
    return squares[end] - squares[begin] - sum * sum / static_cast<double>(end - begin);
  };
  const double penalty = 3 * std::log(static_cast<double>(count));
  // least_cost[i] is that of the first i points, whose last segment starts at
  // last_segment_start[i].
  std::vector<double> least_cost(count + 1, std::numeric_limits<double>::infinity());
  std::vector<std::size_t> last_segment_start(count + 1, 0), starts{0};
  least_cost[0] = -penalty;
  for (std::size_t end = k_min_segment_points; end <= count; ++end) {
    for (const std::size_t start : starts) {
      const double total = least_cost[start] + squares_about_mean(start, end) + penalty;
      if (total >= least_cost[end]) continue;
      least_cost[end] = total;
      last_segment_start[end] = start;
    }
    // A start that already costs more than a segment ending here cannot win for a longer series.
    std::erase_if(starts, [&](std::size_t s) {
      return least_cost[s] + squares_about_mean(s, end) > least_cost[end];
    });
    const std::size_t next = end + 1 - k_min_segment_points;
    if (next >= k_min_segment_points) starts.push_back(next);
  }
  std::vector<std::size_t> places;
  for (std::size_t at = last_segment_start[count]; at > 0; at = last_segment_start[at])
    places.push_back(at);
  std::reverse(places.begin(), places.end());
  return places;
}

}  // namespace weir::changes
