#include "gate/stats/spread.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gate/stats/quantile.hpp"

namespace weir::stats {
namespace {

constexpr std::size_t k_fewest = 8;

// Between two order statistics of which one is infinite there is no number: the lower rank's
// neighbour decides, so that infinity less infinity never comes up.
double quantile_with_infinity(std::span<const double> sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const auto above = static_cast<std::size_t>(std::ceil(place));
  const double share = place - std::floor(place);
  if (share == 0 || sorted[below] == sorted[above]) return sorted[below];
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

double minus(double a, double b) { return a == b ? 0 : a - b; }

std::vector<double> side(std::span<const Pair> pairs, double Pair::*member) {
  std::vector<double> values;
  values.reserve(pairs.size());
  for (const Pair& pair : pairs) values.push_back(pair.*member);
  return values;
}

std::vector<double> distances(std::vector<double> values, double middle) {
  for (double& value : values) value = std::abs(minus(value, middle));
  return values;
}

// Signed-rank test of the differences a[i] - b[i].
double signed_rank_p(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> ranked;  // size, candidate's is the larger
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = minus(a[i], b[i]);
    if (difference != 0) ranked.emplace_back(std::abs(difference), difference > 0);
  }
  const auto n = static_cast<double>(ranked.size());
  if (ranked.size() < k_fewest) return 1;
  std::sort(ranked.begin(), ranked.end());
  double positive = 0, ties = 0;
  for (std::size_t i = 0; i < ranked.size();) {
    std::size_t end = i;
    while (end < ranked.size() && ranked[end].first == ranked[i].first) ++end;
    const double rank = static_cast<double>(i + end + 1) / 2, same = static_cast<double>(end - i);
    ties += same * same * same - same;
    for (; i < end; ++i) positive += ranked[i].second ? rank : 0;
  }
  const double expected = n * (n + 1) / 4;
  const double variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48;
  if (variance <= 0) return 1;
  const double off = std::max(0.0, std::abs(positive - expected) - 0.5);
  return std::erfc(off / std::sqrt(2 * variance));
}

}  // namespace

std::optional<Spread> spread_of(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  Spread spread;
  spread.p10 = quantile_with_infinity(sorted, 0.1);
  spread.median = quantile_with_infinity(sorted, 0.5);
  spread.p90 = quantile_with_infinity(sorted, 0.9);
  for (const double value : sorted) spread.mean += value / static_cast<double>(sorted.size());
  return spread;
}

std::optional<SpreadDifference> compare_spreads(std::span<const Pair> pairs) {
  const std::vector<double> base = side(pairs, &Pair::base);
  const std::vector<double> candidate = side(pairs, &Pair::candidate);
  const auto from = spread_of(base), to = spread_of(candidate);
  if (!from || !to) return std::nullopt;
  SpreadDifference difference;
  difference.by = {minus(to->p10, from->p10), minus(to->median, from->median),
                   minus(to->mean, from->mean), minus(to->p90, from->p90)};
  const std::vector<double> near = distances(base, from->median);
  const std::vector<double> far = distances(candidate, to->median);
  difference.p = signed_rank_p(far, near);
  const double base_size = spread_of(near)->median, candidate_size = spread_of(far)->median;
  difference.ratio = base_size == candidate_size ? 1
                     : base_size == 0            ? std::numeric_limits<double>::infinity()
                                                 : candidate_size / base_size;
  return difference;
}

}  // namespace weir::stats
