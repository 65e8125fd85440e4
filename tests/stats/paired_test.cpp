// Tests the promises of the paired rule with fixed seeds. benchmarks/decision_quality has longer
// replays, real traces and other rules.
#include "gate/stats/paired.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace weir::stats {
namespace paired_test {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

PairedRule make_rule(double tolerate, double drop, int metrics = 1) {
  PairedRule rule;
  rule.tolerate = effect_of_drop(tolerate);
  rule.limit = effect_of_drop(drop);
  rule.false_alarm = 0.001 / metrics;
  return rule;
}

using Random = std::mt19937_64;
using Noise = std::function<double(Random&)>;

struct Machine {
  Noise noise = [](Random& random) { return std::normal_distribution<double>(0, 0.05)(random); };
  double second_slot = 0;  // slowdown of whichever runs second
  bool coin = true;
};

Pair next_pair(Random& random, const Machine& machine, double effect) {
  const bool base_first = !machine.coin || (random() & 1U) != 0;
  const double base = machine.noise(random) + (base_first ? 0 : machine.second_slot);
  const double candidate = machine.noise(random) + effect + (base_first ? machine.second_slot : 0);
  return {base, candidate};
}

Decision decide(std::uint64_t seed, const Machine& machine, double effect, const PairedRule& rule,
                int max_pairs) {
  Random random(seed);
  PairedTest test(rule);
  for (int i = 0; i < max_pairs && test.decision() == Decision::undecided; ++i) {
    test.add(next_pair(random, machine, effect));
  }
  return test.decision();
}

int count(Decision wanted, int trials, const Machine& machine, double effect,
          const PairedRule& rule, int max_pairs) {
  int matches = 0;
  for (int i = 0; i < trials; ++i) {
    matches += decide(static_cast<std::uint64_t>(i) + 1, machine, effect, rule, max_pairs) == wanted
                   ? 1
                   : 0;
  }
  return matches;
}

TEST(PairedTest, PassesAProgramThatDidNotChange) {
  EXPECT_EQ(count(Decision::pass, 100, {}, 0, make_rule(0.05, 0.10, 200), 300), 100);
}

TEST(PairedTest, FailsAProgramThatIsAsSlowAsTheLimit) {
  const PairedRule rule = make_rule(0.05, 0.10, 200);
  // 1 % may pass. With that chance, more than 7 of 200 would pass in one test of 300.
  EXPECT_GE(count(Decision::fail, 200, {}, rule.limit, rule, 600), 193);
}

TEST(PairedTest, CanNotFailBeforeTheCoinAllowsIt) {
  // Every p-value of n coins is at least 2^-n: 5e-6 needs 18 pairs. This rule needs 19, a pass 8.
  const PairedRule rule = make_rule(0.05, 0.10, 200);
  PairedTest slower(rule), same(rule);
  Random random(1);
  std::normal_distribution<double> quiet(0, 1e-4);
  while (slower.decision() == Decision::undecided) slower.add({quiet(random), 0.3 + quiet(random)});
  EXPECT_EQ(slower.decision(), Decision::fail);
  EXPECT_GE(slower.decided_after(), 18U);
  EXPECT_LE(slower.decided_after(), 20U);
  while (same.decision() == Decision::undecided) same.add({quiet(random), quiet(random)});
  EXPECT_EQ(same.decision(), Decision::pass);
  EXPECT_GE(same.decided_after(), 7U);
  EXPECT_LE(same.decided_after(), 8U);
}

TEST(PairedTest, TheFirstDecisionStands) {
  PairedTest test(make_rule(0.05, 0.10));
  while (test.decision() == Decision::undecided) test.add({0, 0.0001});
  ASSERT_EQ(test.decision(), Decision::pass);
  const std::size_t after = test.decided_after();
  for (int i = 0; i < 100; ++i) test.add({0, 0.5});
  EXPECT_EQ(test.decision(), Decision::pass);
  EXPECT_EQ(test.decided_after(), after);
  EXPECT_EQ(test.more_pairs(), 0);
}

// The second slot is 8 % slower: with the base always first, the candidate is blamed for it.
TEST(PairedTest, WithoutTheCoinASlowSecondSlotIsBlamedOnTheCandidate) {
  Machine machine;
  machine.noise = [](Random& random) { return std::normal_distribution<double>(0, 0.02)(random); };
  machine.second_slot = 0.08;
  const PairedRule rule = make_rule(0.025, 0.05, 4);
  machine.coin = false;
  EXPECT_GT(count(Decision::fail, 200, machine, 0, rule, 200), 100);
  machine.coin = true;
  EXPECT_EQ(count(Decision::fail, 200, machine, 0, rule, 200), 0);
}

TEST(PairedTest, StrictBlamesAToleratedDropNoMoreOftenThanNoChange) {
  PairedRule rule = make_rule(0.05, 0.10);
  rule.false_alarm = 0.05;  // 400 trials would show a broken promise
  rule.strict = true;
  // Binomial(400, 0.05) is above 31 in one of 400 tests.
  EXPECT_LE(count(Decision::fail, 400, {}, rule.tolerate, rule, 100), 31);
}

TEST(PairedTest, TellsHowManyMorePairsItWouldTake) {
  const PairedRule rule = make_rule(0.05, 0.10, 200);
  PairedTest test(rule);
  EXPECT_EQ(test.more_pairs(), std::nullopt);
  Random random(3);
  for (int i = 0; i < 12; ++i) test.add(next_pair(random, {}, 0.2));
  ASSERT_EQ(test.decision(), Decision::undecided);
  const auto more = test.more_pairs();
  ASSERT_TRUE(more);
  EXPECT_GT(*more, 2);
  EXPECT_LT(*more, 60);
}

TEST(Improved, IsTheMirrorOfFail) {
  const PairedRule rule = make_rule(0.05, 0.10, 200);
  std::vector<Pair> faster, same;
  Random random(5);
  for (int i = 0; i < 60; ++i) {
    faster.push_back(next_pair(random, {}, -0.2));
    same.push_back(next_pair(random, {}, 0));
  }
  EXPECT_TRUE(improved(faster, rule));
  EXPECT_FALSE(improved(same, rule));
}

TEST(EffectInterval, CoversTheTrueEffectAtAnyStop) {
  // 95 % are promised, at the stop of the rule itself. Fewer than 107 of 120 occur in one test of
  // 1000.
  const PairedRule rule = make_rule(0.05, 0.10);
  for (const double effect : {0.0, 0.1}) {
    int covered = 0;
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed * 77);
      PairedTest test(rule);
      std::vector<Pair> pairs;
      while (test.decision() == Decision::undecided && pairs.size() < 200) {
        pairs.push_back(next_pair(random, {}, effect));
        test.add(pairs.back());
      }
      const auto interval = effect_interval(pairs, rule);
      ASSERT_TRUE(interval);
      covered += interval->low <= effect && effect <= interval->high ? 1 : 0;
    }
    EXPECT_GE(covered, 107) << effect;
  }
}

TEST(EffectInterval, NarrowsAroundTheEffect) {
  const PairedRule rule = make_rule(0.05, 0.10);
  Random random(9);
  std::vector<Pair> pairs;
  for (int i = 0; i < 100; ++i) pairs.push_back(next_pair(random, {}, 0.08));
  const auto interval = effect_interval(pairs, rule);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->estimate, 0.08, 0.02);
  EXPECT_LT(interval->high - interval->low, 0.08);
  EXPECT_LT(interval->low, interval->estimate);
  EXPECT_GT(interval->high, interval->estimate);
}

TEST(EffectInterval, IsOpenWhereAFewPairsCanNotTell) {
  const PairedRule rule = make_rule(0.05, 0.10);
  const Pair few[] = {{2, 2.01}, {2.01, 2}};
  const auto interval = effect_interval(few, rule);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, -k_infinity);
  EXPECT_EQ(interval->high, k_infinity);
  const Pair never[] = {{k_infinity, 2}, {2, k_infinity}};
  EXPECT_FALSE(effect_interval(never, rule));
  EXPECT_FALSE(effect_interval({}, rule));
}

}  // namespace paired_test
}  // namespace weir::stats
