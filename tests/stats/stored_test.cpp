// Tests intervals of times compared with stored runs.
#include "gate/stats/stored.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::stats {
namespace stored_test {

using ::testing::HasSubstr;
using Samples = std::vector<double>;

const Samples k_a = {28.6, 28.4, 28.9, 28.7, 28.1, 29.0, 28.5, 28.6, 28.8, 28.3};
const Samples k_b = {27.9, 27.5, 28.2, 28.0, 27.7, 28.1, 27.6, 27.9, 28.3, 27.8};

Samples scaled(Samples samples, double factor) {
  for (double& sample : samples) sample *= factor;
  return samples;
}

// Expected values: Price and Bonett's formula, with scipy 1.10.1's binom.cdf and norm.ppf.
TEST(MedianStandardError, FollowsPriceAndBonett) {
  EXPECT_NEAR(median_standard_error(Samples{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 1.5221611678823757,
              1e-12);
  EXPECT_NEAR(median_standard_error(Samples{4, 1, 2}), 1.3039516738034005, 1e-12);
  EXPECT_NEAR(median_standard_error(Samples{5, 3}), 1.482602218505602, 1e-12);
  EXPECT_EQ(median_standard_error(Samples{2, 2, 2}), 0);
  EXPECT_TRUE(std::isfinite(median_standard_error(Samples(5000, 1.5))));
}

// Expected values: the header's formulas in Python's standard library. ln s is integrated over 20
// of its standard deviations in 40 000 steps; median_standard_error as above.
TEST(Stored, AgreesWithItsFormulasWrittenTwice) {
  const std::vector<Samples> six = {
      k_a, scaled(k_a, 1.02), scaled(k_a, 0.97), scaled(k_a, 1.01), scaled(k_a, 0.99), k_b};
  struct Case {
    std::vector<Samples> stored;
    Samples current;
    double change, low, high, between;
  };
  for (const Case& want : std::vector<Case>{
           {{k_a}, k_b, -0.0244755245, -0.1072369487, 0.0659580960, 0.0309625750},
           {{k_a, k_b}, {20.0}, -0.2919810568, -0.3834988829, -0.1868776714, 0.0414197215},
           {six, scaled(k_a, 0.8), -0.1952477254, -0.2344394781, -0.1540496081, 0.0230420693},
           {std::vector<Samples>(5, k_a), k_b, -0.0244755245, -0.0367143054, -0.0120812468,
            0.0057380110}}) {
    const auto answer = compare_with_stored(want.stored, want.current, {});
    ASSERT_TRUE(answer);
    EXPECT_NEAR(answer->change, want.change, 1e-9);
    EXPECT_NEAR(answer->low, want.low, 2e-4);
    EXPECT_NEAR(answer->high, want.high, 2e-4);
    EXPECT_NEAR(answer->between, want.between, 2e-4);
  }
  const auto single = compare_with_stored(std::vector<Samples>{k_a}, k_b, {});
  EXPECT_NEAR(single->stored, 28.6, 1e-12);
  EXPECT_NEAR(single->current, 27.9, 1e-12);
}

TEST(Stored, SaysWhetherTheVariationIsAssumedOrSeen) {
  EXPECT_THAT(compare_with_stored(std::vector<Samples>{k_a}, k_b, {})->words,
              "1 stored run; runs are assumed to differ by 3.1 %");
  EXPECT_THAT(compare_with_stored(std::vector<Samples>(5, k_a), k_b, {})->words,
              "5 stored runs, which differ by about 0.57 %");
}

// Each run has the same processes. The more runs, the less remains of the assumed 3 %.
TEST(Stored, LetWhatIsAssumedFadeAsRunsAreStored) {
  const Samples still(10, 30.0);
  const auto reach = [&](std::size_t runs) {
    return -compare_with_stored(std::vector<Samples>(runs, still), still, {})->low;
  };
  EXPECT_NEAR(reach(1), 0.0824, 2e-4);
  EXPECT_NEAR(reach(2), 0.0449, 2e-4);
  EXPECT_NEAR(reach(5), 0.0122, 2e-4);
  EXPECT_NEAR(reach(20), 0.0054, 2e-4) << "no run is believed to repeat within less than 0.25 %";
}

TEST(Stored, OverrulesWhatIsAssumedWhereRunsDifferMore) {
  std::vector<Samples> wild;
  for (const double off : {0.7, 1.3, 0.9, 1.6, 1.0, 0.6, 1.2, 0.8}) {
    wild.push_back(scaled(k_a, off));
  }
  const auto answer = compare_with_stored(wild, k_a, {});
  EXPECT_NEAR(answer->between, 0.3, 0.05) << "the sd of their logarithms is .33";
  EXPECT_LT(answer->low, -0.4);
}

// Returns ten processes within half a percent of `rate`.
Samples around(double rate) {
  Samples samples;
  for (int i = 0; i < 10; ++i) samples.push_back(rate * (1 + 0.001 * (i - 4.5)));
  return samples;
}

TEST(Stored, TellsAboutHowManyMoreRunsPutALimitOutside) {
  struct Case {
    std::size_t stored;
    double rate, limit;
    std::optional<std::size_t> more;
  };
  // Expected values as above: each further run adds e^(2 mean of ln s) to the sum of squares. A
  // candidate at the limit stays there.
  for (const auto& [stored, rate, limit, more] :
       {Case{1, 100, -0.05, 4}, Case{1, 100, 0.05, 5}, Case{1, 95, -0.03, std::nullopt},
        Case{2, 96, -0.03, std::nullopt}, Case{3, 95, -0.05, std::nullopt}}) {
    const std::vector<Samples> runs(stored, around(100));
    const auto answer = compare_with_stored(runs, around(rate), {});
    const auto needed = more_stored_runs(*answer, limit, 20);
    EXPECT_EQ(needed, more) << stored << " runs, " << rate << " under " << limit << ": "
                            << (needed ? std::to_string(*needed) : "none");
  }
}

TEST(Stored, HasNoAnswerWithoutNumbersOnBothSides) {
  EXPECT_FALSE(compare_with_stored({}, k_b, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{Samples{}}, k_b, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{k_a}, Samples{}, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{k_a}, Samples{0.0}, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{{-1.0, 2}}, k_b, {}));
}

// The interval must cover the true value in 95 of 100 worlds in which the model is true. Runs and
// processes differ by 3 % each. The seed is fixed; 4000 worlds give a standard error of 0.35 %.
TEST(Stored, CoversTheTruthAsOftenAsItSays) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (const std::size_t sessions : {1U, 3U, 8U, 20U}) {
    int covered = 0;
    constexpr int k_worlds = 4000;
    for (int world = 0; world < k_worlds; ++world) {
      const auto session = [&] {
        const double offset = 0.03 * normal(random);
        Samples samples;
        for (int i = 0; i < 10; ++i) samples.push_back(std::exp(offset + 0.03 * normal(random)));
        return samples;
      };
      std::vector<Samples> stored;
      for (std::size_t i = 0; i < sessions; ++i) stored.push_back(session());
      const auto answer = compare_with_stored(stored, session(), {});
      covered += answer->low <= 0 && 0 <= answer->high;
    }
    const double share = static_cast<double>(covered) / k_worlds;
    EXPECT_GT(share, 0.925) << sessions;
    EXPECT_LT(share, 0.985) << sessions;
  }
}

TEST(MedianInterval, HoldsTheMedianBetweenItsEnds) {
  const auto interval = median_interval(k_a, 0.05);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->median, 28.6, 1e-9);
  EXPECT_LT(interval->low, 28.6);
  EXPECT_GT(interval->high, 28.6);
  EXPECT_GT(interval->low, 28.0);
}

}  // namespace stored_test
}  // namespace weir::stats
