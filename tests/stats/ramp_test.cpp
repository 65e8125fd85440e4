// Tests fitting ramps to a series.
#include "gate/stats/ramp.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::stats {
namespace ramp_test {

const std::vector<double> k_ramp{5, 5, 5, 4, 3, 2, 2, 2, 2};

TEST(Ramps, FindTheirPlaceAndTheirLevels) {
  const Ramp ramp = Ramps(k_ramp).best();
  EXPECT_EQ(ramp.begin, 3U);
  EXPECT_EQ(ramp.end, 6U);
  EXPECT_DOUBLE_EQ(ramp.before, 5);
  EXPECT_DOUBLE_EQ(ramp.after, 2);
  EXPECT_NEAR(ramp.squares, 0, 1e-12);
  for (std::size_t i = 0; i < k_ramp.size(); ++i) EXPECT_DOUBLE_EQ(ramp.at(i), k_ramp[i]) << i;
}

TEST(Ramps, OfOnePointAreSteps) {
  const Ramp step = Ramps(std::vector<double>{1, 1, 1, 7, 7}).best();
  EXPECT_TRUE(step.is_step());
  EXPECT_EQ(step.begin, 3U);
  EXPECT_DOUBLE_EQ(step.height(), 6);
}

// The step at 2 of {0, 2, 5, 7}: levels 1 and 6, residuals of 1; the height is a difference of two
// means of two.
TEST(Ramps, HaveTheirSquaresAndTheVarianceOfTheirHeight) {
  const Ramp step = Ramps(std::vector<double>{0, 2, 5, 7}).fit(2, 3);
  EXPECT_DOUBLE_EQ(step.before, 1);
  EXPECT_DOUBLE_EQ(step.after, 6);
  EXPECT_DOUBLE_EQ(step.squares, 4);
  EXPECT_DOUBLE_EQ(step.variance, 1);
}

// The only ramp of {0, 4} is its step, which has a variance of 2: a slack of 2 allows 4 ± 2.
TEST(Ramps, AllowHeightsBySlack) {
  const Ramps ramps(std::vector<double>{0, 4});
  EXPECT_EQ(ramps.heights(ramps.best(), 0), std::pair(4.0, 4.0));
  EXPECT_EQ(ramps.heights(ramps.best(), 2), std::pair(2.0, 6.0));
}

// A ramp that may have begun or ended elsewhere may have another height.
TEST(Ramps, AllowMoreHeightsWhereTheirPlaceIsOpen) {
  const std::vector<double> values{0, 0, 0, 1, 2, 3};
  const Ramps ramps(values);
  const double alone = 2 * std::sqrt(ramps.best().variance);
  const auto [low, high] = ramps.heights(ramps.best(), 1);
  EXPECT_GT(high - low, alone);
}

TEST(Ramps, OfALongSeriesAreTriedAtEveryFewPlaces) {
  std::vector<double> values(3000, 1.0);
  for (std::size_t i = 1000; i < 3000; ++i) {
    values[i] = i < 2000 ? 1 + 0.001 * static_cast<double>(i - 999) : 2;
  }
  const Ramp ramp = Ramps(values).best();
  EXPECT_NEAR(static_cast<double>(ramp.begin), 1000, 6);
  EXPECT_NEAR(static_cast<double>(ramp.end), 2000, 6);
  EXPECT_NEAR(ramp.height(), 1, 0.01);
}

}  // namespace ramp_test
}  // namespace weir::stats
