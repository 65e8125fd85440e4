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

// Returns Klotz's scores of all distances of both sides, ranked together (middle ranks for ties):
// the square of the normal quantile that a distance of this rank would have. Efficient for a normal
// distribution, and fair for any.
std::vector<double> klotz_scores(const std::vector<double>& all) {
  std::vector<std::size_t> places(all.size());  // sorted by their distances
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::sort(places, {}, [&](std::size_t place) { return all[place]; });
  std::vector<double> scores(all.size());
  const double ranks = static_cast<double>(all.size() + 1);
  for (std::size_t begin = 0; begin < places.size();) {
    std::size_t end = begin;
    while (end < places.size() && all[places[end]] == all[places[begin]]) ++end;
    const double rank = static_cast<double>(begin + end + 1) / 2;
    const double z = normal_quantile((1 + rank / ranks) / 2);
    for (; begin < end; ++begin) scores[places[begin]] = z * z;
  }
  return scores;
}

// Tests if two sides spread alike, by Klotz's scores of their distances from the middle. Returns
// the two-sided chance of so large a difference if a fair coin swaps each pair (normal
// approximation). Absent if too few pairs differ.
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

// Compares quantiles, means and typical distances from the middle of the two sides.
std::optional<SpreadDifference> compare_spreads(std::span<const Pair> pairs) {
  const auto base = collect<double>(pairs, &Pair::base);
  const auto candidate = collect<double>(pairs, &Pair::candidate);
  const auto from = spread_of(base), to = spread_of(candidate);
  if (!from || !to) return std::nullopt;
  SpreadDifference difference;
  difference.by = {
      difference_or_zero(to->p10, from->p10), difference_or_zero(to->median, from->median),
      difference_or_zero(to->mean, from->mean), difference_or_zero(to->p90, from->p90)};
  // The median of each side would be unfair as the middle of runs with two modes: the two medians
  // may lie in different ones. So the candidate is moved onto the base, and both share one middle.
  const double moved = median_difference(pairs);
  std::vector<double> aligned(candidate), all(base);
  for (double& value : aligned) value -= moved;
  all.insert(all.end(), aligned.begin(), aligned.end());
  std::ranges::sort(all);
  const double middle = quantile_of_sorted(all, 0.5);
  const std::vector<double> near = distances(base, middle);
  const std::vector<double> far = distances(std::move(aligned), middle);
  difference.p = chance_of_swaps(far, near);
  const double base_size = spread_of(near)->median, candidate_size = spread_of(far)->median;
  if (base_size == candidate_size) {
    difference.ratio = 1;
  } else if (base_size == 0) {
    difference.ratio = std::numeric_limits<double>::infinity();
  } else {
    difference.ratio = candidate_size / base_size;
  }
  return difference;
}

}  // namespace weir::stats
