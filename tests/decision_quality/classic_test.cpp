// Tests of Mann and Whitney's and Welch's tests.
#include "benchmarks/decision_quality/classic.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "gate/stats/replay.hpp"

namespace weir::quality {
namespace classic_test {

using Values = std::vector<double>;

Values sorted(Values values) {
  std::sort(values.begin(), values.end());
  return values;
}

const Values k_a = sorted({12.1, 11.4, 13.0, 12.7, 11.9, 12.3, 14.8});
const Values k_b = sorted({12.9, 13.1, 12.2, 14.0, 13.6, 15.2});

// scipy 1.10.1: scipy.stats.mannwhitneyu(b, a, alternative, method="exact").
TEST(MannWhitney, IsExactForFewRunsWithoutTies) {
  const MannWhitney test = mann_whitney(k_a, k_b);
  EXPECT_EQ(test.u, 33);
  EXPECT_FALSE(test.ties);
  EXPECT_NEAR(test.p.greater, 0.050699300699300696, 1e-14);
  EXPECT_NEAR(test.p.less, 0.9632867132867133, 1e-14);
  EXPECT_NEAR(test.p.two_sided(), 0.10139860139860139, 1e-14);
}

// As above, with a + 1.05 in place of a.
TEST(MannWhitney, MovesTheFirstSampleByTheShift) {
  const MannWhitney test = mann_whitney(k_a, k_b, 1.05);
  EXPECT_EQ(test.u, 18);
  EXPECT_NEAR(test.p.greater, 0.6858974358974359, 1e-14);
}

TEST(MannWhitney, IsExactForTenAgainstTen) {
  Values a, b;
  for (int i = 0; i < 10; ++i) {
    a.push_back(i);
    b.push_back(i + 4.5);
  }
  const MannWhitney test = mann_whitney(a, b);
  EXPECT_EQ(test.u, 85);
  EXPECT_NEAR(test.p.greater, 0.0034207278789322136, 1e-15);  // scipy 1.10.1, method="exact"
}

// scipy 1.10.1: method="asymptotic" (continuity corrected).
TEST(MannWhitney, CountsTiesHalfAndCorrectsForThem) {
  const MannWhitney test =
      mann_whitney(Values{1, 2, 2, 3, 3, 3, 4, 5}, Values{2, 3, 3, 4, 4, 5, 5, 6, 7});
  EXPECT_EQ(test.u, 55);
  EXPECT_TRUE(test.ties);
  EXPECT_NEAR(test.p.greater, 0.03467522719090861, 1e-13);
  EXPECT_NEAR(test.p.less, 0.9722090215103386, 1e-13);
}

TEST(MannWhitney, IsNormalForManyRuns) {
  Values a, b;
  for (int i = 0; i < 25; ++i) a.push_back((i * 37 % 101) / 10.0 + 0.013 * i);
  for (int i = 0; i < 30; ++i) b.push_back((i * 53 % 97) / 10.0 + 1.5 + 0.0171 * i);
  const MannWhitney test = mann_whitney(sorted(a), sorted(b));
  EXPECT_EQ(test.u, 458);
  EXPECT_NEAR(test.p.greater, 0.08158265271877141, 1e-13);  // scipy 1.10.1, method="asymptotic"
  EXPECT_NEAR(test.p.less, 0.9209377691401092, 1e-13);
}

TEST(MannWhitney, SaysNothingOfValuesThatAreAllEqual) {
  const Values same(5, 3.0);
  const MannWhitney test = mann_whitney(same, same);
  EXPECT_EQ(test.p.greater, 1);
  EXPECT_EQ(test.p.less, 1);
}

// scipy 1.10.1: scipy.stats.ttest_ind(b, a, equal_var=False); df by Welch and Satterthwaite's
// formula with numpy.var(ddof=1).
TEST(Welch, AgreesWithScipy) {
  const Welch test = welch(k_a, k_b);
  EXPECT_NEAR(test.t, 1.5169496905422954, 1e-12);
  EXPECT_NEAR(test.df, 10.876630807965208, 1e-11);
}

TEST(Welch, IsCertainOfADifferenceWithoutSpread) {
  EXPECT_TRUE(std::isinf(welch(Values{1, 1}, Values{2, 2}).t));
  EXPECT_EQ(welch(Values{1, 1}, Values{2, 2}, 1).t, 0);
}

// scipy 1.10.1: scipy.stats.beta.ppf(.95, hits + 1, trials - hits).
TEST(UpperBound, IsClopperAndPearsons) {
  struct Case {
    std::uint64_t hits, trials;
    double bound;
  };
  for (const auto& [hits, trials, bound] :
       {Case{0, 1296000, 2.3115191444493868e-06}, Case{3, 1000, 0.007735244718479458},
        Case{8, 14200, 0.0010162943173437457}, Case{50, 100, 0.5863782853690883},
        Case{99, 100, 0.9994871985837377}}) {
    EXPECT_NEAR(stats::max_share(hits, trials, 0.95), bound, 1e-10 * bound)
        << hits << "/" << trials;
  }
  EXPECT_EQ(stats::max_share(7, 7, 0.95), 1);
}

TEST(PerGate, IsTheChanceOfAtLeastOne) {
  EXPECT_NEAR(share_per_gate(0.1, 2), 0.19, 1e-15);
  EXPECT_NEAR(share_per_gate(5e-6, 200), 0.000999502, 1e-9);  // 1 - (1 - 5e-6)^200
  EXPECT_EQ(share_per_gate(1, 200), 1);
  EXPECT_EQ(share_per_gate(0, 200), 0);
}

}  // namespace classic_test
}  // namespace weir::quality
