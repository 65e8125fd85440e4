// Tests of made-up series, and of trials on them.
#include "benchmarks/change_points/series.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "benchmarks/change_points/trials.hpp"

namespace weir::changes {
namespace series_test {

const std::vector<Recording> k_times{make_recording({17.0, 17.1, 17.3, 17.2, 18.0})};

std::vector<double> seeded_series(const std::string& noise, const std::vector<Event>& events) {
  Random random(3);
  return make_series(noise, 4000, events, k_times, random);
}

TEST(Series, AStepIsSoManySpreadsOfTheNoiseAndADriftSoMuchANight) {
  const auto plain = seeded_series("normal", {}), step = seeded_series("normal", {{1000, 2, 0}});
  const auto drift = seeded_series("normal", {{1000, 0, 0.001}});
  EXPECT_EQ(step[999], plain[999]);
  EXPECT_NEAR(step[1000] - plain[1000], 2 * 0.02 * 100, 1e-9);
  EXPECT_EQ(drift[999], plain[999]);
  EXPECT_NEAR(drift[1000] / plain[1000], 1.001, 1e-12);
  EXPECT_NEAR(drift[1059] / plain[1059], 1.060, 1e-12);
  const auto logarithmic = seeded_series("lognormal", {{1000, 2, 0}});
  EXPECT_NEAR(std::log(logarithmic[2000] / seeded_series("lognormal", {})[2000]), 0.6, 1e-9);
}

TEST(Series, ANightRemembersTheOneBeforeAsItsNameSays) {
  for (const auto& [noise, memory] :
       {std::pair{"normal", 0.0}, std::pair{"spikes", 0.0}, std::pair{"normal-0.3@0.005", 0.3},
        std::pair{"t3-0.7", 0.7}, std::pair{"drawn", 0.0}}) {
    const auto values = seeded_series(noise, {});
    double mean = 0, squares = 0, next = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      squares += (values[i] - mean) * (values[i] - mean);
      if (i > 0) next += (values[i] - mean) * (values[i - 1] - mean);
    }
    EXPECT_NEAR(next / squares, memory, 0.05) << noise;
  }
}

TEST(Series, EveryNoiseMakesTheSameSeriesAgain) {
  for (const std::string& noise : noise_names())
    EXPECT_EQ(seeded_series(noise, {}), seeded_series(noise, {})) << noise;
}

TEST(Trials, AShareDoesNotDependOnTheNumberOfThreads) {
  const auto test = [](Random& random) { return random.uniform() < 0.3; };
  Bench single_thread, three_threads;
  three_threads.threads = 3;
  const double share = measure_share(single_thread, "any", 1000, test);
  EXPECT_EQ(share, measure_share(three_threads, "any", 1000, test));
  EXPECT_NEAR(share, 0.3, 0.05);
}

// Wide heavy tails make some values that no time can have; such a night is an outlier, no change.
TEST(Trials, ANightBelowZeroIsNoChangeAndAStepBehindItIsStillSeen) {
  Random random(7);
  std::vector<double> values = make_series("normal@0.05", 200, {}, {}, random);
  values[60] = -20;
  const auto anywhere = [](std::size_t) { return true; };
  EXPECT_FALSE(weir_method().after_each_night(values, anywhere));
  for (std::size_t i = 120; i < values.size(); ++i) values[i] += 60;
  EXPECT_TRUE(weir_method().after_each_night(
      values, [](std::size_t place) { return place >= 118 && place <= 122; }));
}

}  // namespace series_test
}  // namespace weir::changes
