// Estimates weir's false fails, which are too rare to count, by importance sampling.
#include "benchmarks/decision_quality/tilted.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "gate/stats/replay.hpp"

#include "benchmarks/decision_quality/classic.hpp"
#include "benchmarks/decision_quality/replay.hpp"

namespace weir::quality {
namespace {

// The shifts of S, in gaps between tolerate and limit, as in gate/stats/paired.cpp. With other
// shifts the estimate stays right and spreads more; the bound needs the same ones.
constexpr std::array<double, 2> k_slower = {2, 5};
constexpr double k_confidence = 0.95;

}  // namespace

// Estimates the share of metrics that fail although nothing changed. The order of each pair is
// drawn with a bias towards "slower", and a fail counts by the inverse of that bias (see the
// header).
FalseFailEstimate estimate_false_fails(const Scenario& scenario, const stats::PairedRule& rule,
                                       std::uint32_t cap, std::uint64_t seed,
                                       std::uint64_t trials) {
  constexpr std::uint64_t k_coin_stream = 2;
  FalseFailEstimate estimate{trials, 0, 0, 0, 0};
  double sum_of_squares = 0;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    const std::uint64_t key = trial_key(seed, scenario, 0, trial);
    const std::unique_ptr<Pairs> pairs = scenario.start(Random(key), 0, Coin::fair);
    Random coin(derive_key(key, k_coin_stream));
    stats::PairedTest test(rule);
    stats::Evidence slower(stats::Side::larger, 0, rule.limit - rule.tolerate, k_slower);
    while (test.decision() == stats::Decision::undecided && test.pairs() < cap) {
      stats::Pair pair = pairs->next();
      stats::Evidence slower_as_drawn = slower;
      slower_as_drawn.add(pair);
      // The pair as dealt and the pair swapped give values of S that add up to twice its value
      // before. So S as dealt over twice that value is the chance to keep the order.
      if (coin.chance(std::exp(slower_as_drawn.log_value() - slower.log_value()) / 2)) {
        slower = std::move(slower_as_drawn);
      } else {
        std::swap(pair.base, pair.candidate);
        slower.add(pair);
      }
      test.add(pair);
    }
    if (slower.max_log_value() >= -std::log(rule.false_alarm)) ++estimate.crossed;
    if (test.decision() != stats::Decision::fail) continue;
    const double weight = std::exp(-slower.log_value());
    estimate.share += weight;
    sum_of_squares += weight * weight;
  }
  const auto count = static_cast<double>(trials);
  estimate.share /= count;
  estimate.error = std::sqrt((sum_of_squares / count - estimate.share * estimate.share) / count);
  estimate.upper = rule.false_alarm * stats::max_share(estimate.crossed, trials, k_confidence);
  return estimate;
}

}  // namespace weir::quality
