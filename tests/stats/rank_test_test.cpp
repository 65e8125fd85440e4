// Ranks of two small sets. Expected chances are shares of splits, by hand.
#include "gate/stats/rank_test.hpp"

#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace weir::stats {
namespace rank_test_test {

using Values = std::vector<double>;

TEST(RankTest, CountsTheSplitsOfAllValues) {
  EXPECT_NEAR(chance_of_higher_ranks(Values{1, 2, 3}, Values{4, 5, 6}), 1.0 / 20, 1e-12);
  EXPECT_NEAR(chance_of_higher_ranks(Values{4, 5, 6}, Values{1, 2, 3}), 1, 1e-12);
  EXPECT_NEAR(chance_of_higher_ranks(Values{0, 0, 0}, Values{0, 1, 0}), 0.5, 1e-12);
  EXPECT_NEAR(chance_of_higher_ranks(Values{0, 0}, Values{0, 0}), 1, 1e-12);
  EXPECT_NEAR(chance_of_higher_ranks(Values{1, 1, 1, 1, 1}, Values(5, 2)), 1.0 / 252, 1e-12);
  EXPECT_EQ(chance_of_higher_ranks(Values{}, Values{1}), 1);
}

TEST(RankTest, GoesOnWithTheNormalDistribution) {
  Values low, high;
  for (int i = 0; i < 30; ++i) {
    low.push_back(i % 7);
    high.push_back(i % 7 + (i % 3 == 0 ? 2 : 0));
  }
  const double exact = chance_of_higher_ranks(low, high);
  low.push_back(3);
  high.push_back(3);
  EXPECT_NEAR(chance_of_higher_ranks(low, high), exact, 0.1 * exact);
}

TEST(RankTest, SaysHowManyValuesCanDecide) {
  EXPECT_EQ(fewest_values(3, 0.004), 10U);  // 1 of 286
  EXPECT_EQ(fewest_values(5, 0.004), 5U);   // 1 of 252
  EXPECT_EQ(fewest_values(10, 0.004), 3U);
  EXPECT_EQ(values_to_decide(Values{63, 64, 64}, Values{65, 66, 65}, true, true), 5U);
  EXPECT_EQ(values_to_decide(Values{}, Values{65}, true, true), std::nullopt);
}

TEST(RankTest, AFarSetHasMovedHoweverFewValuesItHas) {
  EXPECT_EQ(compare_sets(Values{63, 64, 63}, Values{75}, true).shift, Shift::rose);
  EXPECT_EQ(compare_sets(Values{63, 64, 63}, Values{52}, true).shift, Shift::fell);
  EXPECT_EQ(compare_sets(Values{63, 64, 63}, Values{74}, true).shift, Shift::undecided);
  EXPECT_EQ(compare_sets(Values{63, 64}, Values{175}, true).shift, Shift::undecided);
}

TEST(RankTest, ASetWithAFarValueIsNotTheSame) {
  const Values base{63, 64, 63, 64, 64, 63, 63, 64, 63, 64};
  Values candidate = base;
  EXPECT_EQ(compare_sets(base, candidate, true).shift, Shift::none);
  candidate[2] = 6400;
  const SetComparison compared = compare_sets(base, candidate, true);
  EXPECT_EQ(compared.shift, Shift::undecided);
  EXPECT_EQ(compared.far_values, 1U);
  candidate[2] = 0;  // less is not worse
  EXPECT_EQ(compare_sets(base, candidate, true).shift, Shift::none);
}

// The table of docs/how-to/varying-counts.md, with fewer rounds: values 0 to 3 are equally likely.
TEST(RankTest, KeepsItsErrorRates) {
  std::mt19937_64 random(7);
  const int rounds = 400;
  for (const int processes : {3, 5, 10}) {
    std::array<int, 4> same{}, risen{};
    for (int round = 0; round < rounds; ++round) {
      Values base, candidate, higher;
      for (int i = 0; i < processes; ++i) {
        base.push_back(static_cast<double>(random() % 4));
        candidate.push_back(static_cast<double>(random() % 4));
        higher.push_back(candidate.back() + 1);
      }
      ++same[static_cast<std::size_t>(compare_sets(base, candidate, true).shift)];
      ++risen[static_cast<std::size_t>(compare_sets(base, higher, true).shift)];
    }
    const auto of = [](const std::array<int, 4>& counts, Shift shift) {
      return counts[static_cast<std::size_t>(shift)];
    };
    // 1 % of 400, and three standard deviations.
    EXPECT_LE(of(same, Shift::rose) + of(same, Shift::fell), 10) << processes;
    // 5 % of 400, and three standard deviations.
    EXPECT_LE(of(risen, Shift::none), 33) << processes;
    if (processes == 3) EXPECT_EQ(of(risen, Shift::rose), 0);
    if (processes == 10) EXPECT_GE(of(risen, Shift::rose), 20);
  }
}

}  // namespace rank_test_test
}  // namespace weir::stats
