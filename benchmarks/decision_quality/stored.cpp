// Measures how often the interval against stored runs covers the truth.
#include "benchmarks/decision_quality/stored.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gate/stats/quantile.hpp"
#include "gate/stats/stored.hpp"

namespace weir::quality {

// Returns a machine whose logarithms of times vary normally, by `run_sd` from run to run and by
// `process_sd` within a run.
SimulatedMachine simulated_machine(double run_sd, double process_sd) {
  const RunGenerator next = [=](Random& random) {
    const double run_offset = run_sd * random.normal();
    std::vector<double> times;
    for (std::size_t i = 0; i < k_processes_per_run; ++i) {
      times.push_back(std::exp(run_offset + process_sd * random.normal()));
    }
    return times;
  };
  return {fmt::format("runs {:.2g} %, processes {:.2g} %", run_sd * 100, process_sd * 100),
          [next](Random&) { return next; }};
}

// Returns a machine that replays a recording. Scattered runs begin at any place; consecutive ones
// go on after the last.
SimulatedMachine recorded_machine(const Trace& trace, RunOrder order) {
  const auto log_times = std::make_shared<const std::vector<double>>(trace.runs);
  const auto next_run = [log_times, order](std::size_t& index, Random& random) {
    const std::size_t size = log_times->size();
    if (order == RunOrder::scattered) index = random.below(size);
    std::vector<double> times;
    for (std::size_t i = 0; i < k_processes_per_run; ++i) {
      times.push_back(std::exp((*log_times)[index]));
      if (order == RunOrder::scattered) {
        index = (index + 1) % size;
      } else {
        index = next_index(index, size, k_mean_block_length, random);
      }
    }
    return times;
  };
  const auto start = [log_times, next_run](Random& first_random) -> RunGenerator {
    std::size_t index = first_random.below(log_times->size());
    return [next_run, index](Random& random) mutable { return next_run(index, random); };
  };
  return {trace.name + (order == RunOrder::scattered ? "" : ", in a row"), start};
}

// In each trial compares one unchanged candidate with `stored` stored runs. Counts whether the
// interval covers "no change", passes max_drop, and would detect twice max_drop.
Coverage measure_coverage(const SimulatedMachine& machine, std::size_t stored, double max_drop,
                          std::uint64_t trials, std::uint64_t seed) {
  Coverage coverage{.trials = trials};
  std::vector<double> reaches;
  const std::uint64_t key = derive_key(derive_key(seed, machine.name), stored);
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    Random random(derive_key(key, trial));
    RunGenerator next = machine.start(random);
    std::vector<std::vector<double>> runs;
    for (std::size_t i = 0; i < stored; ++i) runs.push_back(next(random));
    // The interval is of times: longer is worse. A drop of the rate adds to the logarithm of a
    // time, so it moves both ends of the interval by as much.
    const auto interval = *stats::compare_with_stored(runs, next(random), {});
    const double low = std::log1p(interval.low), high = std::log1p(interval.high);
    const double limit = -std::log1p(-max_drop), twice_limit = -std::log1p(-2 * max_drop);
    if (low <= 0 && high >= 0) ++coverage.covered;
    if (high < limit) ++coverage.passed;
    if (low + twice_limit > limit) ++coverage.detected;
    reaches.push_back(-std::expm1(-(high - low) / 2));
  }
  coverage.reach = *stats::median(reaches);
  return coverage;
}

// Returns the fewest stored runs with which 9 of 10 candidates are decided rightly; nullopt if
// `max_runs` are too few.
std::optional<std::size_t> fewest_stored_runs(const SimulatedMachine& machine, double max_drop,
                                              std::size_t max_runs, std::uint64_t trials,
                                              std::uint64_t seed) {
  constexpr double k_enough = 0.9;
  for (std::size_t stored = 1; stored <= max_runs; ++stored) {
    const Coverage coverage = measure_coverage(machine, stored, max_drop, trials, seed);
    const double min_trials = k_enough * static_cast<double>(trials);
    if (static_cast<double>(coverage.passed) >= min_trials &&
        static_cast<double>(coverage.detected) >= min_trials) {
      return stored;
    }
  }
  return std::nullopt;
}

}  // namespace weir::quality
