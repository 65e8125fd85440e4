// Compares the spreads of the two sides of pairs.
#include "gate/stats/spread.hpp"

#include <cmath>
#include <limits>

#include "gate/base/find.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::stats {
namespace {

constexpr std::size_t k_min_unequal_values = 8;

// a - b; 0 for two infinities.
double difference_or_zero(double a, double b) { return a == b ? 0 : a - b; }

std::vector<double> distances(std::vector<double> values, double middle) {
  for (double& value : values) value = std::abs(difference_or_zero(value, middle));
  return values;
}

// Returns Klotz's score of each distance: the square of the normal quantile for its rank, middle
// ranks for ties. `all` holds the distances of both sides.
std::vector<double> klotz_scores(const std::vector<double>& all) {
  std::vector<std::size_t> order(all.size());  // indices by rising distance
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t index) { return all[index]; });
  std::vector<double> scores(all.size());
  const double ranks = static_cast<double>(all.size() + 1);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && all[order[end]] == all[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + end + 1) / 2;
    const double z = normal_quantile((1 + rank / ranks) / 2);
    for (; begin < end; ++begin) scores[order[begin]] = z * z;
  }
  return scores;
}

// Returns the probability that spreads differ so much by chance (two-sided), if a fair coin swaps
// each pair. Absent if too few pairs differ. Uses Klotz's scores of distances from the middle.
std::optional<double> chance_of_swaps(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all(a);
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<double> scores = klotz_scores(all);
  double sum = 0, squares = 0;
  std::size_t unequal_pairs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = scores[i] - scores[a.size() + i];
    sum += difference;
    squares += difference * difference;
    if (difference != 0) ++unequal_pairs;
  }
  if (unequal_pairs == 0) return 1;
  if (unequal_pairs < k_min_unequal_values) return std::nullopt;
  return std::erfc(std::abs(sum) / std::sqrt(2 * squares));
}

}  // namespace

std::optional<Spread> spread_of(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  Spread spread;
  spread.p10 = quantile_of_sorted(sorted, 0.1);
  spread.median = quantile_of_sorted(sorted, 0.5);
  spread.p90 = quantile_of_sorted(sorted, 0.9);
  for (const double value : sorted) spread.mean += value / static_cast<double>(sorted.size());
  return spread;
}

std::vector<double> finite_differences(std::span<const Pair> pairs) {
  std::vector<double> differences;
  for (const Pair& pair : pairs) {
    const double difference = pair.candidate - pair.base;
    if (std::isfinite(difference)) differences.push_back(difference);
  }
  return differences;
}

double median_difference(std::span<const Pair> pairs) {
  return median(finite_differences(pairs)).value_or(0);
}

// Compares how wide the runs of the two sides spread: their quantiles, means, and typical
// distances from a common middle. Nothing without pairs; the ratio is infinite if the base has no
// spread.
std::optional<SpreadDifference> compare_spreads(std::span<const Pair> pairs) {
  const auto base = collect<double>(pairs, &Pair::base);
  const auto candidate = collect<double>(pairs, &Pair::candidate);
  const auto base_spread = spread_of(base), candidate_spread = spread_of(candidate);
  if (!base_spread || !candidate_spread) return std::nullopt;
  SpreadDifference difference;
  difference.by = {difference_or_zero(candidate_spread->p10, base_spread->p10),
                   difference_or_zero(candidate_spread->median, base_spread->median),
                   difference_or_zero(candidate_spread->mean, base_spread->mean),
                   difference_or_zero(candidate_spread->p90, base_spread->p90)};
  // The median of each side would be unfair as the middle of runs with two modes: the two medians
  // may lie in different ones. So the candidate is moved onto the base, and both share one middle.
  const double typical_change = median_difference(pairs);
  std::vector<double> aligned(candidate), all(base);
  for (double& value : aligned) value -= typical_change;
  all.insert(all.end(), aligned.begin(), aligned.end());
  std::ranges::sort(all);
  const double middle = quantile_of_sorted(all, 0.5);
  const std::vector<double> base_distances = distances(base, middle);
  const std::vector<double> candidate_distances = distances(std::move(aligned), middle);
  difference.p = chance_of_swaps(candidate_distances, base_distances);
  const double base_distance = spread_of(base_distances)->median,
               candidate_distance = spread_of(candidate_distances)->median;
  if (base_distance == candidate_distance) {
    difference.ratio = 1;
  } else if (base_distance == 0) {
    difference.ratio = std::numeric_limits<double>::infinity();
  } else {
    difference.ratio = candidate_distance / base_distance;
  }
  return difference;
}

}  // namespace weir::stats
