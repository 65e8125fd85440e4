#include "benchmarks/decision_quality/classic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace weir::quality {
namespace {

// How many of the orders of n and m values have each U, over how many there are: one value more at
// a time. counts[i][u] is for i values of b and the j of a that have been put in so far.
std::vector<double> chances_of_u(std::size_t n, std::size_t m) {
  const std::size_t most = n * m;
  std::vector<std::vector<double>> counts(m + 1, std::vector<double>(most + 1, 0));
  for (auto& of_i : counts) of_i[0] = 1;  // no value of a: one order
  for (std::size_t j = 1; j <= n; ++j) {
    // The largest value is one of b (above j of a: j more pairs) or one of a (no more).
    for (std::size_t i = 1; i <= m; ++i) {
      for (std::size_t u = most + 1; u-- > 0;) {
        counts[i][u] = counts[i][u] + (u >= j ? counts[i - 1][u - j] : 0);
      }
    }
  }
  double all = 0;
  for (const double count : counts[m]) all += count;
  for (double& count : counts[m]) count /= all;
  return counts[m];
}

OneSided exact(double u, std::size_t n, std::size_t m) {
  const std::vector<double> chances = chances_of_u(n, m);
  const auto at = static_cast<std::size_t>(u);
  OneSided p{0, 0};
  for (std::size_t i = 0; i < chances.size(); ++i) {
    if (i >= at) p.greater += chances[i];
    if (i <= at) p.less += chances[i];
  }
  return p;
}

double above(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

struct Moments {
  double mean = 0, error = 0;  // variance of the mean
};
Moments moments(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Moments of;
  for (const double value : values) of.mean += value;
  of.mean /= count;
  double squares = 0;
  for (const double value : values) squares += (value - of.mean) * (value - of.mean);
  of.error = squares / (count - 1) / count;
  return of;
}

}  // namespace

double OneSided::two_sided() const { return std::min(1.0, 2 * std::min(greater, less)); }

MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b, double shift) {
  MannWhitney test;
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  double tied = 0;  // sum of t^3 - t over groups of t equal values
  std::size_t in_a = 0, in_b = 0;
  while (in_a < a.size() || in_b < b.size()) {  // one group of equal values after another
    const double value = in_b == b.size() || (in_a < a.size() && a[in_a] + shift <= b[in_b])
                             ? a[in_a] + shift
                             : b[in_b];
    const std::size_t from_a = in_a, from_b = in_b;
    while (in_a < a.size() && a[in_a] + shift == value) ++in_a;
    while (in_b < b.size() && b[in_b] == value) ++in_b;
    const auto of_a = static_cast<double>(in_a - from_a);
    const auto of_b = static_cast<double>(in_b - from_b);
    test.u += of_b * (static_cast<double>(from_a) + of_a / 2);
    const double group = of_a + of_b;
    tied += group * group * group - group;
  }
  test.ties = tied > 0;
  if (!test.ties && std::max(a.size(), b.size()) <= k_exact_runs) {
    test.p = exact(test.u, a.size(), b.size());
    return test;
  }
  const double all = n + m;
  const double variance = n * m / 12 * (all + 1 - tied / (all * (all - 1)));
  if (!(variance > 0)) return test;  // all values equal
  const double off = test.u - n * m / 2;
  test.p.greater = above((off - 0.5) / std::sqrt(variance));
  test.p.less = above((-off - 0.5) / std::sqrt(variance));
  return test;
}

Welch welch(std::span<const double> a, std::span<const double> b, double shift) {
  const Moments of_a = moments(a), of_b = moments(b);
  const double error = of_a.error + of_b.error;
  const double difference = of_b.mean - of_a.mean - shift;
  if (!(error > 0)) {
    if (difference == 0) return {};
    return {std::copysign(std::numeric_limits<double>::infinity(), difference), 1};
  }
  const double parts = of_a.error * of_a.error / static_cast<double>(a.size() - 1) +
                       of_b.error * of_b.error / static_cast<double>(b.size() - 1);
  return {difference / std::sqrt(error), error * error / parts};
}

double per_gate(double share, int metrics) {
  return share >= 1 ? 1 : -std::expm1(metrics * std::log1p(-share));
}

}  // namespace weir::quality
