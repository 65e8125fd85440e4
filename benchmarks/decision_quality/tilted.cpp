#include "benchmarks/decision_quality/tilted.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "gate/stats/replay.hpp"

#include "benchmarks/decision_quality/classic.hpp"
#include "benchmarks/decision_quality/replay.hpp"

namespace weir::quality {
namespace {

// The shifts of S in gaps, as in gate/stats/paired.cpp. Were they others there, estimates would
// still be right and only spread more; the bound needs them to be the same.
constexpr std::array<double, 2> k_slower = {2, 5};
constexpr double k_confidence = 0.95;

}  // namespace

Tilted tilted_false_fails(const Scenario& scenario, const stats::PairedRule& rule,
                          std::uint32_t cap, std::uint64_t seed, std::uint64_t trials) {
  constexpr std::uint64_t k_coin = 2;
  Tilted tilted{trials, 0, 0, 0, 0};
  double squares = 0;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    const std::uint64_t key = trial_key(seed, scenario, 0, trial);
    const std::unique_ptr<Pairs> pairs = scenario.start(Random(key), 0, Coin::fair);
    Random coin(key_of(key, k_coin));
    stats::PairedTest test(rule);
    stats::Evidence slower(stats::Side::larger, 0, rule.limit - rule.tolerate, k_slower);
    while (test.decision() == stats::Decision::undecided && test.pairs() < cap) {
      stats::Pair pair = pairs->next();
      stats::Evidence so = slower;
      so.add(pair);
      // S of both orders adds up to twice S before.
      if (coin.chance(std::exp(so.log_value() - slower.log_value()) / 2)) {
        slower = std::move(so);
      } else {
        std::swap(pair.base, pair.candidate);
        slower.add(pair);
      }
      test.add(pair);
    }
    tilted.crossed += slower.log_most() >= -std::log(rule.false_alarm) ? 1 : 0;
    if (test.decision() != stats::Decision::fail) continue;
    const double weight = std::exp(-slower.log_value());
    tilted.share += weight;
    squares += weight * weight;
  }
  const auto count = static_cast<double>(trials);
  tilted.share /= count;
  tilted.error = std::sqrt((squares / count - tilted.share * tilted.share) / count);
  tilted.upper = rule.false_alarm * stats::share_at_most(tilted.crossed, trials, k_confidence);
  return tilted;
}

}  // namespace weir::quality
