// Tests the Theil-Sen line and the interval of its slope.
#include "gate/stats/theil_sen.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace weir::stats {
namespace theil_sen_test {

// Example by Sen (Journal of the American Statistical Association 63, 1968, section 6): slope 4,
// 93 % interval 3.71 to 4.38. The intercept by hand: the median of 5, 7, 7, 4, 5, 7, 6 is 6.
const std::vector<Point> k_sen{{1, 9}, {2, 15}, {3, 19}, {4, 20}, {10, 45}, {12, 55}, {18, 78}};

TEST(TheilSen, GivesThePublishedSlopeAndInterval) {
  const auto line = theil_sen(k_sen);
  ASSERT_TRUE(line);
  EXPECT_DOUBLE_EQ(line->slope, 4);
  EXPECT_DOUBLE_EQ(line->intercept, 6);
  const auto interval = slope_interval(k_sen, 0.07);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 3.71, 0.005);
  EXPECT_NEAR(interval->high, 4.38, 0.005);
}

TEST(TheilSen, IsTheLineThroughPointsOnOneWhateverOneOfFourDoes) {
  const std::vector<Point> bent{{0, 2}, {256, 2.5}, {512, 3}, {768, 1e6}, {1024, 4}};
  const auto line = theil_sen(bent);
  ASSERT_TRUE(line);
  EXPECT_DOUBLE_EQ(line->slope, 0.5 / 256);
  EXPECT_DOUBLE_EQ(line->intercept, 2);
}

TEST(TheilSen, GrowsWithItsPoints) {
  std::vector<Point> twice = k_sen;
  for (Point& point : twice) point.y *= 2;
  EXPECT_DOUBLE_EQ(theil_sen(twice)->slope, 8);
  EXPECT_DOUBLE_EQ(theil_sen(twice)->intercept, 12);
}

TEST(TheilSen, IsAbsentWithoutTwoDifferentX) {
  for (const std::vector<Point>& points :
       {std::vector<Point>{}, {{1, 2}}, {{1, 2}, {1, 3}, {1, 5}}}) {
    EXPECT_FALSE(theil_sen(points));
    EXPECT_FALSE(slope_interval(points, 0.05));
  }
}

// Simulated with a fixed seed: three depths with ten processes each, as in a gate.
TEST(SlopeInterval, HoldsTheTrueSlopeAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::student_t_distribution<double> noise(3);
  int covered = 0;
  constexpr int k_trials = 2000;
  for (int trial = 0; trial < k_trials; ++trial) {
    std::vector<Point> points;
    for (int i = 0; i < 10; ++i) {
      for (const double depth : {0.0, 256.0, 1024.0}) {
        points.push_back({depth, 5 + depth * 0.01 + noise(random)});
      }
    }
    const auto interval = slope_interval(points, 0.1);
    covered += interval->low <= 0.01 && 0.01 <= interval->high ? 1 : 0;
  }
  // 90 % are requested; two standard errors of 2000 trials are 1.3 %.
  EXPECT_NEAR(static_cast<double>(covered) / k_trials, 0.9, 0.015);
}

}  // namespace theil_sen_test
}  // namespace weir::stats
