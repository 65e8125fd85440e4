// Tests of the best fixed number of pairs.
#include "benchmarks/decision_quality/fixed.hpp"

#include <gtest/gtest.h>

#include "benchmarks/decision_quality/noise.hpp"

namespace weir::quality {
namespace fixed_test {

constexpr ReplaySettings k_replay{1, 400, 2, Coin::fair};

// docs/evidence/decision-quality.md has these for normal noise of 1 % and 5 %. By formula, N = 2
// (sd (z_a + z_b) / gap)^2 with t quantiles for z: 81 for 5 %, just above the ladder's 80.
TEST(FixedN, IsTheSmallestOnTheLadderWithThePower) {
  const Limits limits{0.05, 0.1, 10'000};
  EXPECT_EQ(find_fixed_n(*noise("normal-1"), limits, k_replay)->pairs, 10U);
  EXPECT_EQ(find_fixed_n(*noise("normal-5"), limits, k_replay)->pairs, 113U);
}

TEST(FixedN, DecidesByItsTestAfterItsPairs) {
  const Limits limits{0.05, 0.1, 10'000};
  const Rule fixed = make_fixed_n_rule(FixedN{113, FixedTest::welch}, limits);
  const Scenario scenario = *noise("normal-5");
  const Tally unchanged = replay(scenario, 0, fixed, k_replay);
  EXPECT_EQ(unchanged.pass, 400U);
  EXPECT_EQ(unchanged.pairs_p95(), 113U);
  EXPECT_GE(replay(scenario, stats::effect_of_drop(0.1), fixed, k_replay).fail, 394U);
}

TEST(FixedN, StaysOpenWhereNoNumberIsEnough) {
  const Limits few{0.05, 0.1, 50};
  EXPECT_FALSE(find_fixed_n(*noise("normal-20"), few, k_replay));
  const Tally tally = replay(*noise("normal-20"), 0, make_fixed_n_rule({}, few), k_replay);
  EXPECT_EQ(tally.inconclusive, 400U);
  EXPECT_EQ(tally.pairs_p95(), 50U);
}

}  // namespace fixed_test
}  // namespace weir::quality
