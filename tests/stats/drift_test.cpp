// Tests the test for latencies that rise during a run.
#include "gate/stats/drift.hpp"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

namespace weir::stats {
namespace drift_test {

constexpr double k_level = 0.0015;
constexpr std::size_t k_requests = 2000;

// Logarithms of latencies that are autocorrelated (AR(1)), 10 % apart, and rise by `drift`.
class Soaks {
 public:
  explicit Soaks(double memory, double drift) : memory_(memory), drift_(drift) {}
  std::vector<Point> next() {
    constexpr double k_deviation = 0.1;
    std::normal_distribution<double> normal;
    double error = normal(engine_);
    std::vector<Point> points;
    for (std::size_t i = 0; i < k_requests; ++i) {
      const double at = static_cast<double>(i) / k_requests;
      points.push_back({at, k_deviation * error + std::log1p(drift_) * at});
      error = memory_ * error + std::sqrt(1 - memory_ * memory_) * normal(engine_);
    }
    return points;
  }

 private:
  double memory_, drift_;
  std::mt19937_64 engine_{7};
};

int count_detected(double memory, double drift, int soaks) {
  Soaks all(memory, drift);
  int detected = 0;
  for (int i = 0; i < soaks; ++i) {
    const auto interval = measure_drift(all.next(), k_level);
    detected += interval && (drift < 0 ? interval->high < 0 : interval->low > 0) ? 1 : 0;
  }
  return detected;
}

TEST(Drift, OfTenPercentOverTheRunIsFoundIn99Of100) {
  // 99.3 % of 4 000 (docs/evidence/serving-load.md); fewer here, to save time.
  EXPECT_GE(count_detected(0.6, 0.1, 400), 394);
  EXPECT_GE(count_detected(0.6, -0.1, 400), 394);
}

// Only slowdowns fail: 1 of 1000 at most is a false alarm.
TEST(Drift, IsHardlyEverFoundWhereThereIsNone) {
  for (const double memory : {0.0, 0.6, 0.9})
    EXPECT_LE(count_detected(memory, 0, 1000), 2) << memory;
}

// Slow moments of a busy machine last longer than the autocorrelation of simulated ones.
TEST(Drift, IsNotFoundInRecordedTimesOfAServerThatStaysTheSame) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + "/tests/stats/data/llama-server-latencies.txt");
  std::vector<std::vector<Point>> recorded;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      recorded.emplace_back();
      continue;
    }
    std::istringstream numbers(line);
    for (double ms = 0; numbers >> ms;) {
      std::vector<Point>& points = recorded.back();
      points.push_back({static_cast<double>(points.size()), std::log(ms)});
    }
  }
  std::erase_if(recorded, [](const auto& points) { return points.empty(); });  // only text
  ASSERT_EQ(recorded.size(), 4U);
  for (const auto& points : recorded) {
    ASSERT_EQ(points.size(), k_requests);
    const auto drift = measure_drift(points, k_level);
    ASSERT_TRUE(drift);
    EXPECT_FALSE(drift->stands_out()) << drift->low << " … " << drift->high;
  }
}

TEST(Drift, IsTheChangeFromTheFirstToTheLast) {
  std::vector<Point> points;
  for (int i = 0; i <= 1000; ++i) points.push_back({3600.0 + i, 5 + 0.002 * i});
  auto drift = measure_drift(points, k_level);
  ASSERT_TRUE(drift);
  EXPECT_NEAR(drift->change, 2, 1e-9);
  EXPECT_TRUE(drift->stands_out());
  // A stall of 50 requests in a row, a thousand times as slow, changes the slope only a little.
  for (int i = 700; i < 750; ++i) points[static_cast<std::size_t>(i)].y = 5000;
  drift = measure_drift(points, k_level);
  EXPECT_NEAR(drift->change, 2, 0.1);
}

TEST(Drift, OfASeriesThatStandsStillIsNone) {
  std::vector<Point> points;
  for (int i = 0; i < 400; ++i) points.push_back({static_cast<double>(i), 1});
  const auto drift = measure_drift(points, k_level);
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->change, 0);
  EXPECT_FALSE(drift->stands_out());
}

TEST(Drift, NeedsEnoughPointsAtDifferentMoments) {
  std::vector<Point> points(k_min_drift_points - 1, Point{0, 1});
  EXPECT_FALSE(measure_drift(points, k_level));
  points.push_back({0, 1});
  EXPECT_FALSE(measure_drift(points, k_level)) << "all at one moment";
  points.back().x = 1;
  EXPECT_TRUE(measure_drift(points, k_level));
}

}  // namespace drift_test
}  // namespace weir::stats
