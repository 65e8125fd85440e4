// Mann and Whitney's U test and Welch's t test.
#include "benchmarks/decision_quality/classic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace weir::quality {
namespace {

// Returns the exact distribution of the Mann-Whitney statistic U for samples of n values (a) and m
// values (b) without ties. counts[i][u] is the number of orders of i values of b and the first j
// values of a with that u.
std::vector<double> distribution_of_u(std::size_t n, std::size_t m) {
  const std::size_t max_u = n * m;
  std::vector<std::vector<double>> counts(m + 1, std::vector<double>(max_u + 1, 0));
  for (auto& row : counts) row[0] = 1;  // without values of a there is one order
  for (std::size_t j = 1; j <= n; ++j) {
    // The largest value is of b and above all j of a, which adds j to u, or of a, which adds none.
    for (std::size_t i = 1; i <= m; ++i) {
      for (std::size_t u = max_u + 1; u-- > 0;) {
        counts[i][u] = counts[i][u] + (u >= j ? counts[i - 1][u - j] : 0);
      }
    }
  }
  double all = 0;
  for (const double count : counts[m]) all += count;
  for (double& count : counts[m]) count /= all;
  return counts[m];
}

OneSided exact_p_values(double u, std::size_t n, std::size_t m) {
  const std::vector<double> chances = distribution_of_u(n, m);
  const auto at = static_cast<std::size_t>(u);
  OneSided p{0, 0};
  for (std::size_t i = 0; i < chances.size(); ++i) {
    if (i >= at) p.greater += chances[i];
    if (i <= at) p.less += chances[i];
  }
  return p;
}

// Probability that a standard normal value is above z.
double normal_upper_tail(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

struct Moments {
  double mean = 0, mean_variance = 0;
};
Moments moments(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Moments result;
  for (const double value : values) result.mean += value;
  result.mean /= count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.mean_variance = squares / (count - 1) / count;
  return result;
}

}  // namespace

double OneSided::two_sided() const { return std::min(1.0, 2 * std::min(greater, less)); }

// Returns U and the p-values of the Mann-Whitney test for sorted samples; `shift` is added to `a`.
// Walks through both, one group of equal values after another, and corrects for ties.
MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b, double shift) {
  MannWhitney test;
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  double tie_sum = 0;  // the sum of t^3 - t over groups of t equal values
  std::size_t in_a = 0, in_b = 0;
  while (in_a < a.size() || in_b < b.size()) {  // one group of equal values after another
    const bool a_is_next = in_b == b.size() || (in_a < a.size() && a[in_a] + shift <= b[in_b]);
    const double value = a_is_next ? a[in_a] + shift : b[in_b];
    const std::size_t from_a = in_a, from_b = in_b;
    while (in_a < a.size() && a[in_a] + shift == value) ++in_a;
    while (in_b < b.size() && b[in_b] == value) ++in_b;
    const auto count_a = static_cast<double>(in_a - from_a);
    const auto count_b = static_cast<double>(in_b - from_b);
    test.u += count_b * (static_cast<double>(from_a) + count_a / 2);
    const double group = count_a + count_b;
    tie_sum += group * group * group - group;
  }
  test.ties = tie_sum > 0;
  if (!test.ties && std::max(a.size(), b.size()) <= k_exact_runs) {
    test.p = exact_p_values(test.u, a.size(), b.size());
    return test;
  }
  const double total_count = n + m;
  const double variance =
      n * m / 12 * (total_count + 1 - tie_sum / (total_count * (total_count - 1)));
  if (!(variance > 0)) return test;  // all values equal
  const double deviation = test.u - n * m / 2;
  test.p.greater = normal_upper_tail((deviation - 0.5) / std::sqrt(variance));
  test.p.less = normal_upper_tail((-deviation - 0.5) / std::sqrt(variance));
  return test;
}

// Returns t and its degrees of freedom by Welch and Satterthwaite for samples of unequal variance.
// `shift` is added to `a`.
Welch welch(std::span<const double> a, std::span<const double> b, double shift) {
  const Moments a_moments = moments(a), b_moments = moments(b);
  const double variance_a = a_moments.mean_variance, variance_b = b_moments.mean_variance;
  const double variance = variance_a + variance_b;  // variance of the difference
  const double difference = b_moments.mean - a_moments.mean - shift;
  if (!(variance > 0)) {
    if (difference == 0) return {};
    return {std::copysign(std::numeric_limits<double>::infinity(), difference), 1};
  }
  const double weighted_squares = variance_a * variance_a / static_cast<double>(a.size() - 1) +
                                  variance_b * variance_b / static_cast<double>(b.size() - 1);
  return {difference / std::sqrt(variance), variance * variance / weighted_squares};
}

double share_per_gate(double share, int metrics) {
  return share >= 1 ? 1 : -std::expm1(metrics * std::log1p(-share));
}

}  // namespace weir::quality
