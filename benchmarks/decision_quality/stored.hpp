// How often the interval against stored runs (gate/stats/stored.hpp) covers the truth, and how many
// stored runs a limit takes, on recorded and made-up runs. A stored run is the processes that one
// gate times; the candidate is one more of them, of the same program. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/decision_quality/random.hpp"
#include "benchmarks/decision_quality/trace.hpp"

namespace weir::quality {

inline constexpr std::size_t k_processes_per_run = 10;  // processes per stored run: gate.runs

// Each call returns the times of the machine's next stored run, in time order.
using RunGenerator = std::function<std::vector<double>(Random&)>;
struct SimulatedMachine {
  std::string name;
  std::function<RunGenerator(Random&)> start;  // called once per trial
};

// Logarithms of times vary normally, by `run_sd` between runs and `process_sd` within a run.
[[nodiscard]] SimulatedMachine simulated_machine(double run_sd, double process_sd);
// The places of runs in the recording of a machine. `scattered`: anywhere, as runs of
// different days do. `consecutive`: one after the other, by the stationary bootstrap of pairs.
enum class RunOrder { scattered, consecutive };
// The processes of a run are adjacent in the recording.
[[nodiscard]] SimulatedMachine recorded_machine(const Trace& trace, RunOrder order);

struct Coverage {
  std::uint64_t trials = 0, covered = 0;  // covered: the interval contains "no change"
  double reach = 0;                       // median of half the interval: 0.05 is -5 %
  std::uint64_t passed = 0;               // unchanged candidates that pass max_drop
  std::uint64_t detected = 0;             // candidates slower by twice max_drop that fail
};
// Compares unchanged candidates with `stored` stored runs each.
[[nodiscard]] Coverage measure_coverage(const SimulatedMachine& machine, std::size_t stored,
                                        double max_drop, std::uint64_t trials, std::uint64_t seed);

// Returns the fewest stored runs, at most `most`, with which 9 of 10 unchanged candidates pass and
// 9 of 10 candidates slower by twice `max_drop` fail.
[[nodiscard]] std::optional<std::size_t> fewest_stored_runs(const SimulatedMachine& machine,
                                                            double max_drop, std::size_t max_runs,
                                                            std::uint64_t trials,
                                                            std::uint64_t seed);

}  // namespace weir::quality
