#include "benchmarks/decision_quality/stored.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gate/stats/quantile.hpp"
#include "gate/stats/stored.hpp"

namespace weir::quality {

Machine made_machine(double run_sd, double process_sd) {
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

Machine machine_of_trace(const Trace& trace, RunsOfTrace order) {
  const auto kept = std::make_shared<const std::vector<double>>(trace.runs);
  const auto start = [kept, order](Random& first) -> NextRun {
    return [kept, order, at = first.below(kept->size())](Random& random) mutable {
      if (order == RunsOfTrace::apart) at = random.below(kept->size());
      std::vector<double> times;
      for (std::size_t i = 0; i < k_processes; ++i) {
        times.push_back(std::exp((*kept)[at]));
        at = order == RunsOfTrace::apart ? (at + 1) % kept->size()
                                         : next_place(at, kept->size(), k_mean_block, random);
      }
      return times;
    };
  };
  return {trace.name + (order == RunsOfTrace::apart ? "" : ", in a row"), start};
}

Coverage coverage_of(const Machine& machine, std::size_t stored, double max_drop,
                     std::uint64_t trials, std::uint64_t seed) {
  Coverage found{.trials = trials};
  std::vector<double> reaches;
  const std::uint64_t key = key_of(key_of(seed, machine.name), stored);
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    Random random(key_of(key, trial));
    NextRun next = machine.start(random);
    std::vector<std::vector<double>> runs;
    for (std::size_t i = 0; i < stored; ++i) runs.push_back(next(random));
    // Times: longer is worse. A drop of the rate is the time's logarithm that much higher, and the
    // interval moves with it.
    const auto interval = *stats::compare_with_stored(runs, next(random), {});
    const double low = std::log1p(interval.low), high = std::log1p(interval.high);
    const double limit = -std::log1p(-max_drop), twice = -std::log1p(-2 * max_drop);
    found.covered += low <= 0 && high >= 0 ? 1 : 0;
    found.passed += high < limit ? 1 : 0;
    found.found += low + twice > limit ? 1 : 0;
    reaches.push_back(-std::expm1(-(high - low) / 2));
  }
  found.reach = *stats::median(reaches);
  return found;
}

std::optional<std::size_t> runs_for(const Machine& machine, double max_drop, std::size_t most,
                                    std::uint64_t trials, std::uint64_t seed) {
  constexpr double k_enough = 0.9;
  for (std::size_t stored = 1; stored <= most; ++stored) {
    const Coverage found = coverage_of(machine, stored, max_drop, trials, seed);
    const double least = k_enough * static_cast<double>(trials);
    if (static_cast<double>(found.passed) >= least && static_cast<double>(found.found) >= least) {
      return stored;
    }
  }
  return std::nullopt;
}

}  // namespace weir::quality
