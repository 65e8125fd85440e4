// Measures how often the interval against stored runs covers the truth.
#include "benchmarks/decision_quality/stored.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gate/stats/quantile.hpp"
#include "gate/stats/stored.hpp"

namespace weir::quality {

// A machine whose logarithms of times vary normally, by `run_sd` from run to run and by
// `process_sd` within a run.
Machine simulated_machine(double run_sd, double process_sd) {
  const NextRun next = [=](Random& random) {
    const double run = run_sd * random.normal();
    std::vector<double> times;
    for (std::size_t i = 0; i < k_processes; ++i) {
      times.push_back(std::exp(run + process_sd * random.normal()));
    }
    return times;
  };
  return {fmt::format("runs {:.2g} %, processes {:.2g} %", run_sd * 100, process_sd * 100),
          [next](Random&) { return next; }};
}

// A machine that replays a recording. Scattered runs begin at any place; consecutive ones go on
// after the last.
Machine recorded_machine(const Trace& trace, RunOrder order) {
  const auto logs = std::make_shared<const std::vector<double>>(trace.runs);
  const auto start = [logs, order](Random& first) -> NextRun {
    return [logs, order, at = first.below(logs->size())](Random& random) mutable {
      if (order == RunOrder::scattered) at = random.below(logs->size());
      std::vector<double> times;
      for (std::size_t i = 0; i < k_processes; ++i) {
        times.push_back(std::exp((*logs)[at]));
        at = order == RunOrder::scattered ? (at + 1) % logs->size()
                                          : next_place(at, logs->size(), k_mean_block, random);
      }
      return times;
    };
  };
  return {trace.name + (order == RunOrder::scattered ? "" : ", in a row"), start};
}

// In each trial compares one unchanged candidate with `stored` stored runs, and counts whether the
// interval covers "no change", passes max_drop, and would detect twice max_drop.
Coverage measure_coverage(const Machine& machine, std::size_t stored, double max_drop,
                          std::uint64_t trials, std::uint64_t seed) {
  Coverage coverage{.trials = trials};
  std::vector<double> reaches;
  const std::uint64_t key = derive_key(derive_key(seed, machine.name), stored);
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    Random random(derive_key(key, trial));
    NextRun next = machine.start(random);
    std::vector<std::vector<double>> runs;
    for (std::size_t i = 0; i < stored; ++i) runs.push_back(next(random));
    // The interval is of times: longer is worse. A drop of the rate adds to the logarithm of a
    // time, so it moves both ends of the interval by as much.
    const auto interval = *stats::compare_with_stored(runs, next(random), {});
    const double low = std::log1p(interval.low), high = std::log1p(interval.high);
    const double limit = -std::log1p(-max_drop), twice = -std::log1p(-2 * max_drop);
    if (low <= 0 && high >= 0) ++coverage.covered;
    if (high < limit) ++coverage.passed;
    if (low + twice > limit) ++coverage.detected;
    reaches.push_back(-std::expm1(-(high - low) / 2));
  }
  coverage.reach = *stats::median(reaches);
  return coverage;
}

// Returns the fewest stored runs with which 9 of 10 candidates are decided rightly, or nothing if
// `most` are too few.
std::optional<std::size_t> fewest_stored_runs(const Machine& machine, double max_drop,
                                              std::size_t most, std::uint64_t trials,
                                              std::uint64_t seed) {
  constexpr double k_enough = 0.9;
  for (std::size_t stored = 1; stored <= most; ++stored) {
    const Coverage coverage = measure_coverage(machine, stored, max_drop, trials, seed);
    const double least = k_enough * static_cast<double>(trials);
    if (static_cast<double>(coverage.passed) >= least &&
        static_cast<double>(coverage.detected) >= least) {
      return stored;
    }
  }
  return std::nullopt;
}

}  // namespace weir::quality
