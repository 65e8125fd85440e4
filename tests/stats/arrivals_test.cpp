// Tests the random arrival times of requests.
#include "gate/stats/arrivals.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace weir::stats {
namespace arrivals_test {

// std::mt19937_64 with seed 5489 begins with 14514284786278117030, 4620546740167642908,
// 13109570281517897720 (the standard's default seed; it states the 10000th: 9981545732273789042).
// −ln((u >> 11 + ½)·2⁻⁵³) of these: 0.2397546, 1.3843748, 0.3415454 (made in
// Python, by the generator's definition), and their sums.
TEST(PoissonArrivals, AreTheSameForASeedEverywhere) {
  const auto arrivals = poisson_arrivals(1, 3, 5489);
  ASSERT_EQ(arrivals.size(), 3U);
  EXPECT_NEAR(arrivals[0], 0.2397545598, 1e-9);
  EXPECT_NEAR(arrivals[1], 1.6241294016, 1e-9);
  EXPECT_NEAR(arrivals[2], 1.9656747642, 1e-9);
}

TEST(PoissonArrivals, ScaleWithTheRate) {
  const auto slow = poisson_arrivals(1, 100, 3), fast = poisson_arrivals(50, 100, 3);
  for (std::size_t i = 0; i < slow.size(); ++i) EXPECT_NEAR(fast[i], slow[i] / 50, 1e-12);
}

TEST(PoissonArrivals, DifferFromSeedToSeedAndRise) {
  const auto first = poisson_arrivals(10, 1000, 1), second = poisson_arrivals(10, 1000, 2);
  EXPECT_NE(first, second);
  EXPECT_GT(first.front(), 0);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
}

// Gaps of a Poisson process have mean and standard deviation 1/rate, and P(gap > t) = e^(−rate·t).
// The seed is fixed; limits are 4 standard errors of 100 000 gaps.
TEST(PoissonArrivals, HaveExponentialGaps) {
  const std::size_t n = 100'000;
  const auto arrivals = poisson_arrivals(2, n, 42);
  double sum = 0, squares = 0, before = 0;
  std::size_t above = 0;
  for (const double at : arrivals) {
    const double gap = at - before;
    before = at;
    sum += gap;
    squares += gap * gap;
    above += gap > 1 ? 1 : 0;
  }
  const double count = static_cast<double>(n);
  const double mean = sum / count;
  EXPECT_NEAR(mean, 0.5, 4 * 0.5 / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 0.5, 4 * 0.5 * std::sqrt(2 / count));
  const double share = std::exp(-2);
  EXPECT_NEAR(static_cast<double>(above) / count, share,
              4 * std::sqrt(share * (1 - share) / count));
}

TEST(PoissonArrivals, OfNoneAreNone) { EXPECT_TRUE(poisson_arrivals(1, 0, 1).empty()); }

}  // namespace arrivals_test
}  // namespace weir::stats
