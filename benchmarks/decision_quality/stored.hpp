// How often the interval against stored runs (gate/stats/stored.hpp) holds the truth, and how many
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

inline constexpr std::size_t k_processes = 10;  // of a run: gate.runs

// Stored runs of one machine, in time order: each call is the next one's times.
using NextRun = std::function<std::vector<double>(Random&)>;
struct Machine {
  std::string name;
  std::function<NextRun(Random&)> start;  // of one trial
};

// Runs are off by normal `run_sd`, their processes by normal `process_sd`.
[[nodiscard]] Machine made_machine(double run_sd, double process_sd);
// Processes that follow each other in a recording. Runs lie anywhere in it, as those of different
// days do, or one behind the other (a stationary bootstrap, as pairs are replayed).
enum class RunsOfTrace { apart, in_a_row };
[[nodiscard]] Machine machine_of_trace(const Trace& trace, RunsOfTrace order);

struct Coverage {
  std::uint64_t trials = 0, covered = 0;  // the interval holds "no change"
  double reach = 0;                       // the median of how far it goes down: 0.05 is -5 %
  std::uint64_t passed = 0;               // unchanged, under max_drop
  std::uint64_t found = 0;                // fails, slower by twice max_drop
};
[[nodiscard]] Coverage coverage_of(const Machine& machine, std::size_t stored, double max_drop,
                                   std::uint64_t trials, std::uint64_t seed);

// The fewest stored runs, up to `most`, with which `max_drop` is decidable: 9 of 10 unchanged
// candidates pass, and 9 of 10 fail that are slower by twice as much.
[[nodiscard]] std::optional<std::size_t> runs_for(const Machine& machine, double max_drop,
                                                  std::size_t most, std::uint64_t trials,
                                                  std::uint64_t seed);

}  // namespace weir::quality
