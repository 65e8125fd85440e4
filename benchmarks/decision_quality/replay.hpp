// Many trials of a rule on a scenario, on several threads; what comes out depends on the seed
// alone.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "benchmarks/decision_quality/rules.hpp"
#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

struct Replay {
  std::uint64_t seed = 1;
  std::uint64_t trials = 1000;
  unsigned threads = 1;
  Coin coin = Coin::fair;
};

inline constexpr std::array<std::uint32_t, 4> k_looks{10, 30, 100, 300};

struct Tally {
  std::uint64_t trials = 0, fail = 0, pass = 0, inconclusive = 0;
  std::uint64_t unlike = 0;  // of the inconclusive ones
  std::array<std::uint64_t, k_looks.size()> decided_within{};
  std::map<std::uint32_t, std::uint64_t> pairs;  // how many trials took so many

  void add(const Outcome& outcome);
  void add(const Tally& other);
  [[nodiscard]] double share(std::uint64_t count) const;
  [[nodiscard]] double pairs_mean() const;
  // The smallest number that 95 % of the trials did not pass.
  [[nodiscard]] std::uint32_t pairs_p95() const;
};

// The runs of trial t are those of (seed, scenario, effect, t), whatever the rule.
[[nodiscard]] Tally replay(const Scenario& scenario, double effect, const Rule& rule,
                           const Replay& settings);

// Calls work(trial) for all trials below `count` on `threads` threads, in no order, each thread
// with the tally that it adds to.
void in_parallel(std::uint64_t count, unsigned threads, Tally& sum,
                 const std::function<void(std::uint64_t trial, Tally&)>& work);

// The start of what happens in a trial.
[[nodiscard]] std::uint64_t trial_key(std::uint64_t seed, const Scenario& scenario, double effect,
                                      std::uint64_t trial);

}  // namespace weir::quality
