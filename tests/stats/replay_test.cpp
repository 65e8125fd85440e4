// Tests the replay of measured pairs, which predicts a gate's verdicts.
#include "gate/stats/replay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace weir::stats {
namespace replay_test {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

PairedRule make_rule(double tolerate, double drop, double false_alarm = 0.001) {
  PairedRule rule;
  rule.tolerate = effect_of_drop(tolerate);
  rule.limit = effect_of_drop(drop);
  rule.false_alarm = false_alarm;
  return rule;
}

std::vector<Pair> measured(std::size_t pairs, double noise, double effect = 0,
                           std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<Pair> all;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double base = normal(random);
    all.push_back({base, effect + normal(random)});
  }
  return all;
}

struct Replays {
  std::size_t failed = 0, decided = 0;
  double pairs_mean = 0;
};
Replays replays(const CellPairs& series, std::span<const PairedRule> rules, ReplayAs as,
                std::size_t number, std::size_t most = 400) {
  Replays all;
  for (std::size_t k = 0; k < number; ++k) {
    const CellReplay replay = replay_cell(series, rules, as, k + 1, most);
    all.failed += replay.failed ? 1 : 0;
    all.decided += replay.decided ? 1 : 0;
    all.pairs_mean += static_cast<double>(replay.pairs) / static_cast<double>(number);
  }
  return all;
}

TEST(ReplayCell, OfAProgramAgainstItselfPassesAndAtItsLimitFails) {
  const PairedRule rule = make_rule(0.05, 0.10);
  const CellPairs series{measured(40, 0.03)};
  const Replays same = replays(series, {&rule, 1}, ReplayAs::unchanged, 200);
  EXPECT_EQ(same.failed, 0U);
  EXPECT_EQ(same.decided, 200U);
  const Replays slow = replays(series, {&rule, 1}, ReplayAs::at_limit, 200);
  // 1 % may pass. With that chance, more than 7 of 200 would pass in one test of 300.
  EXPECT_GE(slow.failed, 193U);
  EXPECT_GE(same.pairs_mean, 8);  // nothing passes earlier
}

TEST(ReplayCell, IsTheSameForTheSameSeed) {
  const PairedRule rule = make_rule(0.05, 0.10);
  const CellPairs series{measured(30, 0.10)};
  const auto replayed_pairs = [&](std::uint64_t seed) {
    return replay_cell(series, {&rule, 1}, ReplayAs::unchanged, seed, 400).pairs;
  };
  std::vector<std::size_t> once, again;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    once.push_back(replayed_pairs(seed));
    again.push_back(replayed_pairs(seed));
  }
  EXPECT_EQ(once, again);
  EXPECT_GT(*std::max_element(once.begin(), once.end()),
            *std::min_element(once.begin(), once.end()));
}

TEST(ReplayCell, TakesMorePairsOnALouderMachine) {
  const PairedRule rule = make_rule(0.025, 0.05);
  double before = 0;
  for (const double noise : {0.002, 0.03, 0.08}) {
    const CellPairs series{measured(40, noise)};
    const double pairs = replays(series, {&rule, 1}, ReplayAs::unchanged, 50, 1000).pairs_mean;
    EXPECT_GT(pairs, before) << noise;
    before = pairs;
  }
}

TEST(ReplayCell, TakesOutWhatTwoBuildsDifferBy) {
  const PairedRule rule = make_rule(0.05, 0.10);
  const CellPairs series{measured(40, 0.02, 0.15)};
  EXPECT_EQ(replays(series, {&rule, 1}, ReplayAs::unchanged, 100).failed, 0U);
  EXPECT_EQ(replays(series, {&rule, 1}, ReplayAs::measured, 100).failed, 100U);
}

TEST(ReplayCell, EndsWhereTheLastOfItsMetricsIsDecided) {
  const PairedRule rules[] = {make_rule(0.05, 0.10), make_rule(0.025, 0.05)};
  const auto pairs = measured(40, 0.04);
  for (std::uint64_t seed = 1; seed < 10; ++seed) {
    const auto both = replay_cell({pairs, pairs}, rules, ReplayAs::unchanged, seed, 1000);
    std::size_t longest = 0;
    for (const PairedRule& rule : rules) {
      longest = std::max(longest,
                         replay_cell({pairs}, {&rule, 1}, ReplayAs::unchanged, seed, 1000).pairs);
    }
    EXPECT_EQ(both.pairs, longest) << seed;
    EXPECT_FALSE(both.all_failed);
  }
}

TEST(ReplayCell, SaysWhenItWasNotDecided) {
  const PairedRule rule = make_rule(0.025, 0.05);
  const auto loud = replay_cell({measured(40, 0.8)}, {&rule, 1}, ReplayAs::unchanged, 1, 50);
  EXPECT_FALSE(loud.decided);
  EXPECT_EQ(loud.pairs, 50U);
}

TEST(ReplayCell, ThatEndsWithSidesThatSpreadUnlikeIsNotDecided) {
  const PairedRule rule = make_rule(0.05, 0.10);
  // The candidate is ten times as noisy as its base; the sides are kept.
  auto pairs = measured(60, 0.02);
  for (Pair& pair : pairs) pair.candidate *= 10;
  std::size_t decided = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto replay = replay_cell({pairs}, {&rule, 1}, ReplayAs::measured, seed, 400);
    EXPECT_LT(replay.pairs, 400U) << seed;
    decided += replay.decided ? 1 : 0;
  }
  EXPECT_LT(decided, 10U);
}

TEST(ReplayCell, TakesRunsThatNeverEnded) {
  const PairedRule rule = make_rule(0.05, 0.10);
  auto pairs = measured(20, 0.02);
  pairs[3].base = pairs[7].candidate = pairs[9].base = pairs[9].candidate = k_infinity;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    for (const ReplayAs as : {ReplayAs::unchanged, ReplayAs::at_limit, ReplayAs::measured}) {
      EXPECT_GE(replay_cell({pairs}, {&rule, 1}, as, seed, 400).pairs, 8U);
    }
  }
}

TEST(ReplayBlock, GrowsWithTheSeriesUpToEight) {
  EXPECT_EQ(replay_block(2), 1);
  EXPECT_EQ(replay_block(20), 4);
  EXPECT_EQ(replay_block(1000), 8);
}

TEST(PairNoise, IsTheStandardDeviationOfNormalDifferencesAndForgetsOutliers) {
  // Expected: the difference of two runs with 3 % each, 0.03 sqrt(2).
  auto pairs = measured(4000, 0.03);
  EXPECT_NEAR(pair_noise(pairs), 0.03 * std::sqrt(2.0), 0.002);
  for (std::size_t i = 0; i < 40; ++i) pairs[i].candidate = k_infinity;
  EXPECT_NEAR(pair_noise(pairs), 0.03 * std::sqrt(2.0), 0.002);
}

TEST(PairNoise, IsInfiniteWhereAQuarterDidNotEnd) {
  auto pairs = measured(40, 0.03);
  for (std::size_t i = 0; i < 15; ++i) pairs[i].candidate = k_infinity;
  EXPECT_EQ(pair_noise(pairs), k_infinity);
  EXPECT_EQ(pair_noise({}), 0);
}

TEST(ShareAtMost, IsClopperAndPearsons) {
  struct Case {
    std::size_t hits, trials;
    double wanted;
  };
  // Exact binomial sums in 60-digit decimals, solved by bisection; the first is 1 - 0.05^(1/1000).
  for (const Case& c : {Case{0, 1000, 0.0029912495450953}, Case{1, 1000, 0.0047349935754998},
                        Case{3, 100, 0.0757107937498301}, Case{50, 100, 0.5863782853690882}}) {
    EXPECT_NEAR(max_share(c.hits, c.trials), c.wanted, 1e-9) << c.hits;
  }
  EXPECT_EQ(max_share(5, 5), 1);
}

}  // namespace replay_test
}  // namespace weir::stats
