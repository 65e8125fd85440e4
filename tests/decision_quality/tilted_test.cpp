// Tests of estimating false fails by importance sampling.
#include "benchmarks/decision_quality/tilted.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "benchmarks/decision_quality/noise.hpp"
#include "benchmarks/decision_quality/replay.hpp"

namespace weir::quality {
namespace tilted_test {

// At levels where they can be counted.
TEST(Tilted, FindsAsManyFalseFailsAsCountingDoes) {
  stats::PairedRule rule = paired_rule({0.05, 0.1, 10'000}, false);
  rule.false_alarm = 0.02;
  rule.blamed = 0.3;
  const Rule counted{"counted", [&rule](Pairs& pairs, Random&) {
                       stats::PairedTest test(rule);
                       while (test.decision() == stats::Decision::undecided) test.add(pairs.next());
                       return Outcome{
                           test.decision() == stats::Decision::fail ? Verdict::fail : Verdict::pass,
                           static_cast<std::uint32_t>(test.pairs())};
                     }};
  constexpr std::uint64_t k_trials = 4000;
  const Scenario ticks = *noise("ticks");
  const Tally tally = replay(ticks, 0, counted, {1, k_trials, 1, Coin::fair});
  const FalseFailEstimate tilted = estimate_false_fails(ticks, rule, 10'000, 1, 1000);
  const double share = tally.share(tally.fail);
  ASSERT_GT(tally.fail, 5U);
  const double error = std::hypot(std::sqrt(share / k_trials), tilted.error);
  EXPECT_NEAR(tilted.share, share, 4 * error);
  EXPECT_GT(tilted.upper, tilted.share);
  EXPECT_LE(tilted.upper, rule.false_alarm);
}

TEST(Tilted, DependsOnTheSeed) {
  const Scenario floor = *noise("floor");
  const stats::PairedRule rule = paired_rule({0.05, 0.1, 10'000}, false);
  const FalseFailEstimate estimate = estimate_false_fails(floor, rule, 10'000, 1, 50);
  EXPECT_EQ(estimate.share, estimate_false_fails(floor, rule, 10'000, 1, 50).share);
  EXPECT_NE(estimate.share, estimate_false_fails(floor, rule, 10'000, 2, 50).share);
}

}  // namespace tilted_test
}  // namespace weir::quality
