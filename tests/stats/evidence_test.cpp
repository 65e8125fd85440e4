// Tests the bets of the paired rule. Two implementations in two languages agree on the numbers of
// the test vector to six digits.
#include "gate/stats/evidence.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "gate/stats/paired.hpp"

namespace weir::stats {
namespace evidence_test {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

struct Vector {
  const char* name;
  Side side;
  double null_share;  // a drop
  std::vector<double> shifts;
  double pair_after_two, place_after_two, pair_after_six, place_after_six;
};

TEST(Evidence, MeetsTheVectorOfTheStudyToSixDigits) {
  const double times[][2] = {{10, 11.1},   {10.4, 19},   {18, 11.3},
                             {10.1, 11.2}, {10.2, 11.0}, {17.5, 18.9}};
  const double gap = effect_of_drop(0.10) - effect_of_drop(0.05);
  const Vector vectors[] = {
      {"S", Side::larger, 0, {2, 5}, 3.083227, 1.962803, .903377, 6.614034},
      {"L", Side::larger, 0.05, {1, 3}, 2.757827, 1.281579, .819252, 2.919026},
      {"W", Side::smaller, 0.10, {2}, .225535, .338254, .432647, .398830},
  };
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.name);
    Evidence evidence(vector.side, effect_of_drop(vector.null_share), gap, vector.shifts);
    int pairs = 0;
    for (const auto& [base, candidate] : times) {
      evidence.add({std::log(base), std::log(candidate)});
      if (++pairs != 2) continue;
      EXPECT_NEAR(std::exp(evidence.log_pair_bets()), vector.pair_after_two, 5e-7);
      EXPECT_NEAR(std::exp(evidence.log_density_bets()), vector.place_after_two, 5e-7);
    }
    EXPECT_NEAR(std::exp(evidence.log_pair_bets()), vector.pair_after_six, 5e-7);
    EXPECT_NEAR(std::exp(evidence.log_density_bets()), vector.place_after_six, 5e-7);
    EXPECT_NEAR(std::exp(evidence.log_value()),
                (vector.pair_after_six + vector.place_after_six) / 2, 1e-6);
  }
}

// An evidence is fair on any machine because swapping a pair swaps gain and loss.
TEST(Evidence, PairFactorsOfAPairAndOfItsSwapAddUpToTwo) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> difference(-3, 3), size(0.001, 1);
  for (int i = 0; i < 100'000; ++i) {
    const double d = difference(random), shift = size(random), scale = size(random);
    ASSERT_NEAR(pair_factor(d, shift, scale) + pair_factor(-d, shift, scale), 2, 1e-12);
  }
}

TEST(Evidence, PairFactorNeverFallsWithTheDifference) {
  for (const double shift : {0.01, 0.1, 0.5}) {
    for (const double scale : {0.003, 0.05, 0.4}) {
      double last = 0;
      for (double d = -3; d <= 3; d += 0.001) {
        const double factor = pair_factor(d, shift, scale);
        ASSERT_GE(factor, last);
        ASSERT_GT(factor, 0);
        ASSERT_LT(factor, 2);
        last = factor;
      }
    }
  }
  EXPECT_EQ(pair_factor(k_infinity, 0.1, 0.1), pair_factor(10, 0.1, 0.1));
}

// Returns a RunDensity that has learned an irregular series: two modes, a tail, an outlier below, a
// time-out.
RunDensity learned(std::uint64_t seed, int pairs) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.04);
  std::exponential_distribution<double> tail(3);
  RunDensity place(0.0541, 10);
  for (int i = 0; i < pairs; ++i) {
    const auto value = [&] {
      const auto kind = random() % 10;
      if (kind == 0) return 2 + tail(random);
      if (kind == 1) return k_infinity;
      return (kind < 5 ? 2.0 : 2.6) + noise(random);
    };
    const double lo = value(), hi = value();
    place.learn_pair(i == 7 ? 0.3 : lo, hi);
  }
  return place;
}

TEST(Evidence, PlaceFactorsOfAPairAndOfItsSwapAddUpToTwo) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> any(-1, 6);
  for (const int pairs : {0, 1, 2, 9, 60}) {
    const RunDensity place = learned(static_cast<std::uint64_t>(pairs) + 3, pairs);
    for (int i = 0; i < 500; ++i) {
      const double x = any(random), y = i % 50 == 0 ? k_infinity : any(random);
      ASSERT_NEAR(place.bet_factor(x, y) + place.bet_factor(y, x), 2, 1e-12);
    }
  }
}

TEST(Evidence, PlaceFactorNeverRisesInLoNorFallsInHi) {
  for (const int pairs : {1, 2, 9, 60}) {
    const RunDensity place = learned(static_cast<std::uint64_t>(pairs) + 11, pairs);
    for (const double fixed : {0.2, 1.9, 2.0, 2.3, 2.7, 5.0}) {
      double last_hi = 0, last_lo = 2;
      for (double value = -1; value < 6; value += 0.004) {
        const double in_hi = place.bet_factor(fixed, value), in_lo = place.bet_factor(value, fixed);
        ASSERT_GE(in_hi, last_hi - 1e-12);
        ASSERT_LE(in_lo, last_lo + 1e-12);
        last_hi = in_hi;
        last_lo = in_lo;
      }
    }
  }
}

TEST(Evidence, PlaceBetsNothingBeforeItHasLearned) {
  RunDensity place(0.05, 5);
  EXPECT_EQ(place.bet_factor(1, 2), 1);
  place.learn_pair(1, 2);
  EXPECT_GT(place.bet_factor(1, 1.1), 1);
}

TEST(Evidence, TiesBetNothing) {
  const double shifts[] = {2, 5};
  Evidence evidence(Side::larger, 0, 0.05, shifts);
  for (int i = 0; i < 20; ++i) evidence.add({2, 2});
  for (int i = 0; i < 20; ++i) evidence.add({k_infinity, k_infinity});
  EXPECT_NEAR(evidence.log_value(), 0, 1e-12);
}

TEST(Evidence, ATimedOutRunCountsForTheSideThatFinished) {
  const double shifts[] = {2, 5};
  Evidence evidence(Side::larger, 0, 0.05, shifts);
  for (int i = 0; i < 5; ++i) evidence.add({2, 2.001});
  const double before = evidence.log_value();
  evidence.add({2, k_infinity});
  EXPECT_GT(evidence.log_value(), before);
  EXPECT_TRUE(std::isfinite(evidence.log_value()));
}

TEST(Evidence, AFirstRunFarAboveAllOthersDoesNotBlindThePlace) {
  const double shifts[] = {2, 5};
  Evidence late(Side::larger, 0, 0.05, shifts), plain(Side::larger, 0, 0.05, shifts);
  std::mt19937_64 random(4);
  std::normal_distribution<double> noise(0, 0.02);
  late.add({12, 12.1});
  plain.add({2, 2.0});
  for (int i = 0; i < 30; ++i) {
    const Pair pair{2 + noise(random), 2.1 + noise(random)};
    late.add(pair);
    plain.add(pair);
  }
  // It learns as without that pair, less the information of one pair.
  EXPECT_GT(late.log_density_bets(), 0.8 * plain.log_density_bets());
}

}  // namespace evidence_test
}  // namespace weir::stats
