// Tests the check that base and candidate spread alike.
#include "gate/stats/spread.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "gate/stats/paired.hpp"

namespace weir::stats {
namespace spread_test {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

// Reference: Python's statistics.NormalDist().inv_cdf and math.erfc over ranks counted by hand.
// Distances are 0.5 … 4.5 twice each, and their doubles: z = 2.429999.
TEST(Spread, TestOfScoresMeetsItsReference) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 10; ++i) pairs.push_back({i - 4.5, 2 * (i - 4.5)});
  const auto difference = compare_spreads(pairs);
  ASSERT_TRUE(difference);
  EXPECT_NEAR(difference->p.value(), 0.015098877, 1e-8);
  EXPECT_DOUBLE_EQ(difference->ratio, 2);
}

TEST(Spread, SaysNothingAboutAFewPairs) {
  std::vector<Pair> pairs(7, Pair{1, 2});
  EXPECT_EQ(compare_spreads(pairs)->p, 1);
  pairs[3].candidate = 3;
  EXPECT_FALSE(compare_spreads(pairs)->p);
  EXPECT_FALSE(compare_spreads({}));
}

TEST(Spread, ASideThatIsMovedSpreadsAlike) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> noise(0, 0.5);
  int suspected = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 20; ++i) pairs.push_back({noise(random), 0.3 + noise(random)});
    suspected += compare_spreads(pairs)->p.value() < 0.02 ? 1 : 0;
  }
  EXPECT_LE(suspected, 17);  // 8 are expected; Binomial(400, 0.02) is above 17 in 1 of 1000 tests
}

// The machine has two states, half of the time each. The medians of the sides may be in different
// states.
TEST(Spread, ASideWithTwoModesThatIsMovedSpreadsAlike) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(0, 0.02);
  const auto run = [&] { return ((random() & 1U) != 0 ? 0.59 : 0.0) + noise(random); };
  int suspected = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 50; ++i) pairs.push_back({run(), 0.05 + run()});
    suspected += compare_spreads(pairs)->p.value() < 0.005 ? 1 : 0;
  }
  EXPECT_LE(suspected, 8);  // Binomial(400, 0.005) is above 8 in 1 of 4000 tests
}

TEST(Spread, TimedOutRunsAreSlowRuns) {
  std::vector<Pair> pairs(12, Pair{1, 1});
  pairs[3].candidate = pairs[4].candidate = k_infinity;
  pairs[5] = {k_infinity, k_infinity};
  const auto difference = compare_spreads(pairs);
  EXPECT_EQ(difference->by.median, 0);
  EXPECT_EQ(difference->by.mean, 0);  // infinite on both sides: a tie
  EXPECT_EQ(difference->by.p90, k_infinity);
  EXPECT_FALSE(difference->p);
}

PairedRule usual_rule() {
  PairedRule rule;
  rule.tolerate = effect_of_drop(0.05);
  rule.limit = effect_of_drop(0.10);
  rule.false_alarm = 0.001 / 200;
  return rule;
}

Decision decide(std::uint64_t seed, double base_sd, double candidate_sd, double effect) {
  PairedTest test(usual_rule());
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  while (test.decision() == Decision::undecided && test.pairs() < 600) {
    test.add({base_sd * normal(random), effect + candidate_sd * normal(random)});
  }
  return test.decision();
}

TEST(Spread, ANoisierCandidateAtTheLimitIsNotPassed) {
  int passed = 0, unlike = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Decision decision = decide(seed, 0.05, 0.10, effect_of_drop(0.10));
    passed += decision == Decision::pass ? 1 : 0;
    unlike += decision == Decision::unlike ? 1 : 0;
  }
  EXPECT_LE(passed, 8);  // without the check, 9 of 100 pass
  EXPECT_GT(unlike, 40);
}

TEST(Spread, ANoisierCandidateThatIsFarSlowerFailsAllTheSame) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(decide(seed, 0.05, 0.10, 0.7), Decision::fail);
    EXPECT_EQ(decide(seed, 0.05, 0.10, -0.7), Decision::pass);
  }
}

// The base always takes the same time. The candidate is a little faster, or five times slower, by a
// fair coin: its typical runs say nothing about the others.
TEST(Spread, ACandidateThatIsSlowInHalfOfItsRunsIsNotPassed) {
  int passed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    PairedTest test(usual_rule());
    while (test.decision() == Decision::undecided && test.pairs() < 600) {
      test.add({0, (random() & 1U) != 0 ? std::log(5) : -std::log(1.06)});
    }
    passed += test.decision() == Decision::pass ? 1 : 0;
  }
  EXPECT_LE(passed, 8);  // without the delay, 86 pass
}

}  // namespace spread_test
}  // namespace weir::stats
