#include "gate/stats/stored.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::stats {
namespace {

using ::testing::HasSubstr;
using Samples = std::vector<double>;

const Samples k_a = {28.6, 28.4, 28.9, 28.7, 28.1, 29.0, 28.5, 28.6, 28.8, 28.3};
const Samples k_b = {27.9, 27.5, 28.2, 28.0, 27.7, 28.1, 27.6, 27.9, 28.3, 27.8};

Samples scaled(Samples samples, double factor) {
  for (double& sample : samples) sample *= factor;
  return samples;
}

// Expected: Price and Bonett's formula, with scipy 1.10.1's binom.cdf and norm.ppf.
TEST(MedianStandardError, FollowsPriceAndBonett) {
  EXPECT_NEAR(median_standard_error(Samples{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 1.5221611678823757,
              1e-12);
  EXPECT_NEAR(median_standard_error(Samples{4, 1, 2}), 1.3039516738034005, 1e-12);
  EXPECT_NEAR(median_standard_error(Samples{5, 3}), 1.482602218505602, 1e-12);
  EXPECT_EQ(median_standard_error(Samples{2, 2, 2}), 0);
  EXPECT_TRUE(std::isfinite(median_standard_error(Samples(5000, 1.5))));
}

// Expected: the header's formulas in Python with numpy and scipy 1.10.1.
TEST(Stored, AgreesWithItsFormulasWrittenTwice) {
  const auto one = compare_with_stored(std::vector<Samples>{k_a}, k_b, {});
  ASSERT_TRUE(one);
  EXPECT_NEAR(one->change, -0.024475524475524483, 1e-12);
  EXPECT_NEAR(one->low, -0.10319280804269185, 1e-12);
  EXPECT_NEAR(one->high, 0.0611511714912803, 1e-12);
  EXPECT_TRUE(one->assumed);
  EXPECT_NEAR(one->stored, 28.6, 1e-12);
  EXPECT_NEAR(one->current, 27.9, 1e-12);

  const auto single = compare_with_stored(std::vector<Samples>{k_a, k_b}, Samples{20.0}, {});
  ASSERT_TRUE(single);
  EXPECT_NEAR(single->low, -0.37316091356154757, 1e-12);
  EXPECT_NEAR(single->high, -0.2002878653919275, 1e-12);

  const std::vector<Samples> six = {
      k_a, scaled(k_a, 1.02), scaled(k_a, 0.97), scaled(k_a, 1.01), scaled(k_a, 0.99), k_b};
  const auto many = compare_with_stored(six, scaled(k_a, 0.8), {});
  ASSERT_TRUE(many);
  EXPECT_FALSE(many->assumed);
  EXPECT_NEAR(many->between, 0.024536946786679364, 1e-12);
  EXPECT_NEAR(many->low, -0.24285710444911832, 1e-9);
  EXPECT_NEAR(many->high, -0.14464465379985827, 1e-9);
}

TEST(Stored, SaysWhetherTheVariationIsAssumedOrSeen) {
  EXPECT_THAT(compare_with_stored(std::vector<Samples>{k_a}, k_b, {})->words,
              "1 stored session; sessions are taken to differ by 3 % (assumed until 5 are stored)");
  EXPECT_THAT(compare_with_stored(std::vector<Samples>(5, k_a), k_b, {})->words,
              HasSubstr("5 stored sessions; sessions are taken to differ by 2.1 % (estimated"));
}

TEST(Stored, NeverClaimsMoreThanTheAssumedVariationFromSessionsOfOneQuietHour) {
  // Five equal sessions: nothing is seen between them, yet the assumed part stays.
  const Samples still(10, 30.0);
  const auto answer = compare_with_stored(std::vector<Samples>(5, still), still, {});
  ASSERT_TRUE(answer);
  EXPECT_NEAR(answer->between, 0.03 * std::sqrt(4.0 / 8), 1e-12);
  EXPECT_LT(answer->low, -0.04);
}

TEST(Stored, HasNoAnswerWithoutNumbersOnBothSides) {
  EXPECT_FALSE(compare_with_stored({}, k_b, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{Samples{}}, k_b, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{k_a}, Samples{}, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{k_a}, Samples{0.0}, {}));
  EXPECT_FALSE(compare_with_stored(std::vector<Samples>{{-1.0, 2}}, k_b, {}));
}

// The interval must hold the truth in 95 of 100 worlds where the model is true: sessions and
// processes differ by 3 % each. Fixed seed; 4000 worlds give a standard error of 0.35 %.
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
    EXPECT_GT(share, 0.935) << sessions;
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

}  // namespace
}  // namespace weir::stats
