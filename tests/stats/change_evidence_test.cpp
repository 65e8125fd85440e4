#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gate/stats/change_search.hpp"

namespace weir::stats {
namespace {

std::vector<double> any_values(std::size_t count) {
  std::mt19937_64 engine(5);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(engine() % 1000));
  return values;
}

TEST(ChangeEvidence, OrdersValuesWhateverTheirUnitAndEqualOnesAlike) {
  EXPECT_EQ(orders_of(std::vector<double>{3, 1, 1, -2, 7}), (std::vector<Order>{2, 1, 1, 0, 3}));
  EXPECT_EQ(orders_of(std::vector<double>{-0.0, 0.0}), (std::vector<Order>{0, 0}));
  EXPECT_TRUE(orders_of({}).empty());
}

// The normal quantiles of 1/6, 1/2 and 5/6: R's qnorm. The table behind them has 8192 steps.
TEST(ChangeEvidence, ScoresAreNormalQuantilesOfRanks) {
  const std::vector<float> scores = scores_of(std::vector<Order>{9, 4, 2});
  EXPECT_NEAR(scores[0], 0.9674216, 1e-3);
  EXPECT_NEAR(scores[1], 0, 1e-3);
  EXPECT_NEAR(scores[2], -0.9674216, 1e-3);
  const std::vector<float> equal = scores_of(std::vector<Order>{1, 1, 1, 1});
  for (const float score : equal) EXPECT_NEAR(score, 0, 1e-3);
}

TEST(ChangeEvidence, SquaresOfScoresAreThoseOfPointsOfWhichNoneAreEqual) {
  const std::vector<float> scores = scores_of(std::vector<Order>{0, 1, 2, 3, 4, 5, 6});
  double sum = 0;
  for (const float score : scores) sum += static_cast<double>(score) * score;
  EXPECT_DOUBLE_EQ(squares_of_scores(7), sum);
}

// The sum of squares between two sides, from its definition.
double between(std::span<const float> scores, std::size_t after) {
  const auto mean = [](std::span<const float> part) {
    double sum = 0;
    for (const float score : part) sum += score;
    return sum / static_cast<double>(part.size());
  };
  const std::size_t before = scores.size() - after;
  const double off = mean(scores.first(before)) - mean(scores.last(after));
  return off * off * static_cast<double>(before * after) / static_cast<double>(scores.size());
}

TEST(ChangeEvidence, TheBestSplitIsTheOneWithMostBetweenItsSides) {
  const std::vector<float> scores = scores_of(orders_of(any_values(40)));
  std::size_t best = 5;
  for (std::size_t after = 5; after <= 32; ++after) {
    if (between(scores, after) > between(scores, best)) best = after;
  }
  const Split split = best_split(scores, 8, 5);
  EXPECT_EQ(split.after, best);
  EXPECT_NEAR(split.between, between(scores, best), 1e-6);
  EXPECT_NEAR(split_at(scores, 11).between, between(scores, 11), 1e-6);
  EXPECT_EQ(best_split(std::span(scores).first(12), 8, 5).after, 0U);
}

TEST(ChangeEvidence, RemembersProductsOfNeighboursAndOfAllUpToTenApart) {
  const std::vector<float> scores = scores_of(orders_of(any_values(30)));
  double level[2] = {0, 0};
  for (std::size_t i = 0; i < 30; ++i) level[i < 18 ? 0 : 1] += scores[i] / (i < 18 ? 18.0 : 12.0);
  const auto rest = [&](std::size_t i) { return scores[i] - level[i < 18 ? 0 : 1]; };
  double squares = 0, next = 0, slow = 0;
  for (std::size_t i = 0; i < 30; ++i) {
    squares += rest(i) * rest(i);
    for (std::size_t lag = 1; lag <= 10 && lag <= i; ++lag) {
      slow += rest(i) * rest(i - lag);
      if (lag == 1) next += rest(i) * rest(i - lag);
    }
  }
  const Memory memory = memory_of_split(scores, 12);
  EXPECT_NEAR(memory.squares, squares, 1e-6);
  EXPECT_NEAR(memory.next, next, 1e-6);
  EXPECT_NEAR(memory.slow, slow, 1e-6);
  EXPECT_EQ(memory.points, 30);
}

// An autoregressive series of first order with correlation r: the mean of n varies by
// (1 + r) / (1 - r) / n for long ones, that of two by (1 + r) / 2.
TEST(ChangeEvidence, CorrelationWidensWhatMeansVaryBy) {
  EXPECT_EQ(inflation_next(0, 50, 8), 1);
  EXPECT_NEAR(inflation_next(0.5, 1e7, 1e6), 3, 1e-4);
  EXPECT_NEAR(inflation_next(0.5, 1e9, 2), 1.5, 1e-6);
  EXPECT_EQ(inflation_next(0.5, 1, 1), 1);  // neighbours differ less: never counted in favour
  EXPECT_EQ(inflation_many(0, 50, 8), 1);
  EXPECT_NEAR(inflation_many(0.1, 1e9, 3), 1.2, 1e-6);  // 1 + (4 + 2) / 3 * 0.1
}

TEST(ChangeEvidence, ReckonsWithMemoryThatIsClearOrWhereFewPointsCannotRefuteIt) {
  const auto memory = [](double correlation, double points) {
    return Memory{points, correlation * points, 0, points};
  };
  EXPECT_EQ(memory(0, 400).of_next(), 0);
  EXPECT_EQ(memory(-0.5, 400).of_next(), 0);
  EXPECT_GT(memory(0.3, 400).of_next(), 0.3);
  EXPECT_LT(memory(0.3, 400).of_next(), 0.4);
  EXPECT_GT(memory(0, 20).of_next(), 0.4);
  EXPECT_LE(memory(0.99, 20).of_next(), 0.95);
  EXPECT_EQ(Memory{}.of_next(), 0);
  EXPECT_EQ(Memory{}.of_many(), 0);
}

TEST(ChangeEvidence, AThresholdIsWhatItsChanceIsExceededWith) {
  for (const double p : {0.1, 0.01, 1e-6}) {
    EXPECT_NEAR(chance_once(threshold_once(p, 200), 200), p, p * 1e-3);
    EXPECT_NEAR(chance_nightly(NightlyThreshold(p / 365).at(50), 50), p / 365, p * 1e-5);
    EXPECT_LT(thresholds_once(p, 200).news, thresholds_once(p, 200).any);
  }
  EXPECT_EQ(chance_once(0, 200), 1);
  EXPECT_TRUE(std::isfinite(threshold_once(1e-200, 200)));
}

}  // namespace
}  // namespace weir::stats
