// Recorded runs, and their replay. Pure: the text comes in as an argument.
//
// A line is a run (or a pair), in time order; all lines of a file have the same of these shapes:
//   ns                  one program: an A/A trace
//   epoch_ns pp|tg ns   two kinds of runs in one file: two traces, NAME-pp and NAME-tg
//   A_ns B_ns           pairs of two programs, their order by coin
// Empty lines and lines that start with '#' are passed over. Times are positive decimal numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

inline constexpr std::size_t k_trace_bytes = std::size_t{64} << 20;
inline constexpr std::size_t k_trace_runs = 1'000'000;
inline constexpr std::size_t k_trace_line = 200;
inline constexpr std::size_t k_min_trace_runs = 2;
inline constexpr double k_mean_block_length = 60;  // runs; of pairs half as many

struct Trace {
  std::string name;
  std::vector<double> runs;        // ln ns in time order; empty for pairs
  std::vector<stats::Pair> pairs;  // ln ns
};

// Fails with Code::data as "FILE:LINE: reason". The trace is named after `file`, without folders
// and extension.
[[nodiscard]] Result<std::vector<Trace>> read_trace(std::string_view file, std::string_view text);

// The known ratio of the programs of a trace of pairs: the candidate's time over the base's.
struct KnownRatio {
  std::string trace;  // "" for all
  double ratio = 1;   // > 0
};
// "53/48" or "NAME=53/48", decimals allowed.
[[nodiscard]] Result<KnownRatio> read_known_ratio(std::string_view text);

// Returns the next place of a stationary bootstrap in a recording of `size` (> 0): the one after
// `at`, wrapping at the end, or any one with probability 1 / mean_block. (Politis and Romano,
// Journal of the American Statistical Association 89, 1994.)
[[nodiscard]] std::size_t next_index(std::size_t at, std::size_t size, double mean_block,
                                     Random& random);

// Single runs: one program, the candidate's times are scaled by the effect. Pairs: replayed as they
// are; with a known ratio also divided by it, which makes the effect 0.
[[nodiscard]] Scenario scenario_of_trace(const Trace& trace, const std::optional<double>& ratio);

}  // namespace weir::quality
