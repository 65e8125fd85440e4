// Many trials of a rule on a scenario, on several threads. Results depend on the seed alone.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "benchmarks/decision_quality/rules.hpp"
#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

struct ReplaySettings {
  std::uint64_t seed = 1;
  std::uint64_t trials = 1000;
  unsigned threads = 1;
  Coin coin = Coin::fair;
};

// Numbers of pairs for which the share of decided trials is reported.
inline constexpr std::array<std::uint32_t, 4> k_pair_limits{10, 30, 100, 300};

// Outcomes of trials, counted.
struct Tally {
  std::uint64_t trials = 0, fail = 0, pass = 0, inconclusive = 0;
  std::uint64_t unlike = 0;  // part of `inconclusive`: the sides spread differently
  // Trials that failed or passed within k_pair_limits[i] pairs.
  std::array<std::uint64_t, k_pair_limits.size()> decided_within{};
  std::map<std::uint32_t, std::uint64_t> pairs;  // number of pairs -> trials that took so many

  void add(const Outcome& outcome);
  void add(const Tally& other);
  // `count` over all trials; 0 without trials.
  [[nodiscard]] double share(std::uint64_t count) const;
  [[nodiscard]] double pairs_mean() const;
  // The smallest number that 95 % of the trials did not pass.
  [[nodiscard]] std::uint32_t pairs_p95() const;
};

// Trial t deals the same runs to every rule: they follow from seed, scenario, effect and t.
[[nodiscard]] Tally replay(const Scenario& scenario, double effect, const Rule& rule,
                           const ReplaySettings& settings);

// Calls work(trial, tally) for all trials below `count` on `threads` threads, in any order. Each
// thread has a tally of its own; all are added to `sum`.
void run_trials(std::uint64_t count, unsigned threads, Tally& sum,
                const std::function<void(std::uint64_t trial, Tally&)>& work);

// The key of the random numbers of one trial.
[[nodiscard]] std::uint64_t trial_key(std::uint64_t seed, const Scenario& scenario, double effect,
                                      std::uint64_t trial);

}  // namespace weir::quality
