// Tests which cell gets the next pair of measurements, and when pairing ends.
#include "gate/run/pairing.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace weir::run {
namespace pairing_test {

stats::PairedRule rule() {
  stats::PairedRule rule;
  rule.tolerate = stats::effect_of_drop(0.025);
  rule.limit = stats::effect_of_drop(0.05);
  return rule;
}

PairingCell cell(double seconds) { return {"cell", seconds, {rule()}}; }

stats::Pair pair(std::mt19937_64& random, double effect, double noise) {
  std::normal_distribution<double> normal(0, noise);
  return {normal(random), effect + normal(random)};
}

TEST(Pairing, GivesEveryCellItsFirstPairsInTurn) {
  Pairing pairing({cell(1), cell(1), cell(1)}, 1000, 1);
  std::mt19937_64 random(1);
  std::vector<std::size_t> order;
  for (int i = 0; i < 24; ++i) {
    order.push_back(*pairing.next());
    const stats::Pair sample = pair(random, 0, 0.05);
    pairing.note(order.back(), {&sample, 1}, 1);
  }
  EXPECT_EQ((std::vector<std::size_t>(order.begin(), order.begin() + 4)),
            (std::vector<std::size_t>{1, 2, 0, 1}));  // rotated by one
  for (const std::size_t wanted : {0U, 1U, 2U}) {
    EXPECT_EQ(std::count(order.begin(), order.end(), wanted), 8);
  }
}

TEST(Pairing, LeavesWhatTheBudgetCanNotDecideToALaterCommit) {
  for (const std::uint64_t commit : {0U, 1U, 2U}) {
    Pairing pairing({cell(2), cell(2), cell(2)}, 20, commit);  // one cell needs 16 s
    const auto plan = pairing.plan();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(plan[i].now, i == commit) << i;
    EXPECT_EQ(pairing.seconds_for_one(), 16);
    EXPECT_EQ(pairing.seconds_for_all(), 48);
    EXPECT_EQ(pairing.next(), commit);
  }
}

// A pull request adds two cells that use up the budget.
TEST(Pairing, GivesCellsOfTheBaseTheirPairsBeforeAddedOnes) {
  PairingCell added = cell(1);
  added.is_added = true;
  for (const std::uint64_t commit : {0U, 1U, 2U}) {
    Pairing pairing({added, cell(1), added}, 20, commit);
    EXPECT_TRUE(pairing.plan()[1].now);
    std::mt19937_64 random(1);
    std::vector<std::size_t> order;
    for (auto next = pairing.next(); next; next = pairing.next()) {
      order.push_back(*next);
      const stats::Pair sample = pair(random, *next == 1 ? 0.03 : 0, 0.05);
      pairing.note(*next, {&sample, 1}, 1);
    }
    const auto of_base = std::ranges::count(order, 1U);
    EXPECT_GT(of_base, 8) << "also after its first pairs";
    EXPECT_TRUE(std::all_of(order.begin(), order.begin() + of_base,
                            [](std::size_t place) { return place == 1; }));
  }
}

TEST(Pairing, EndsWhenAllIsDecided) {
  Pairing pairing({cell(1)}, 1000, 0);
  std::mt19937_64 random(1);
  int pairs = 0;
  while (pairing.next() && pairs < 1000) {
    const stats::Pair sample = pair(random, 0, 0.001);
    pairing.note(0, {&sample, 1}, 1);
    ++pairs;
  }
  EXPECT_TRUE(pairing.decided(0));
  EXPECT_EQ(pairs, 8);
}

TEST(Pairing, GoesOnForAnImprovementThatIsNear) {
  Pairing pairing({cell(1)}, 1000, 0);
  std::mt19937_64 random(1);
  std::vector<stats::Pair> all;
  while (pairing.next() && all.size() < 1000) {
    all.push_back(pair(random, -0.2, 0.005));
    pairing.note(0, {&all.back(), 1}, 1);
  }
  EXPECT_TRUE(stats::improved(all, rule()));
  EXPECT_LT(all.size(), 30U);
}

TEST(Pairing, GivesEveryCellTheLeastPairsThoughAllIsDecided) {
  Pairing pairing({cell(1), cell(1)}, 1000, 0, 40);
  std::mt19937_64 random(1);
  std::vector<int> pairs(2);
  while (const auto next = pairing.next()) {
    const stats::Pair sample = pair(random, 0, 0.001);
    pairing.note(*next, {&sample, 1}, 1);
    ++pairs[*next];
  }
  EXPECT_EQ(pairs, (std::vector<int>{40, 40}));

  Pairing poor({cell(1), cell(1)}, 60, 0, 40);  // all pairs of one cell, not half for each
  std::vector<int> some(2);
  while (const auto next = poor.next()) {
    const stats::Pair sample = pair(random, 0, 0.001);
    poor.note(*next, {&sample, 1}, 1);
    ++some[*next];
  }
  EXPECT_EQ(some, (std::vector<int>{40, 0}));
}

TEST(Pairing, PutsTheBudgetWhereAVerdictIsNearest) {
  Pairing pairing({cell(1), cell(1)}, 60, 0);
  std::mt19937_64 random(3);
  std::vector<int> pairs(2);
  while (const auto next = pairing.next()) {
    // One cell is quiet and slower, the other too noisy for a verdict.
    const stats::Pair sample = *next == 0 ? pair(random, 0, 0.6) : pair(random, 0.3, 0.02);
    pairing.note(*next, {&sample, 1}, 1);
    ++pairs[*next];
  }
  EXPECT_TRUE(pairing.decided(1));
  EXPECT_FALSE(pairing.decided(0));
  EXPECT_EQ(pairs[0] + pairs[1], 60);
}

TEST(Pairing, ACellThatIsGivenUpGetsNoMore) {
  Pairing pairing({cell(1), cell(1)}, 1000, 0);
  pairing.give_up(0);
  EXPECT_EQ(pairing.next(), 1U);
  EXPECT_FALSE(pairing.decided(0));
}

TEST(Pairing, NeverStartsAPairThatTheBudgetCanNotEnd) {
  Pairing pairing({cell(10)}, 85, 0);
  std::mt19937_64 random(1);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(pairing.next());
    const stats::Pair sample = pair(random, 0, 0.3);
    pairing.note(0, {&sample, 1}, 10);
  }
  EXPECT_FALSE(pairing.next());
}

TEST(Pairing, FewestPairsFollowFromWhatMayBeMissed) {
  auto strict = rule();
  strict.missed = 0.001;
  const stats::PairedRule both[] = {rule(), strict};
  EXPECT_EQ(Pairing::fewest({both, 1}), 8U);
  EXPECT_EQ(Pairing::fewest(both), 11U);
  EXPECT_EQ(Pairing::fewest({}), 0U);
}

}  // namespace pairing_test
}  // namespace weir::run
