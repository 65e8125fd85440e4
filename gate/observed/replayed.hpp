// The results of replaying the ops of a step, beside the recorded times of the step. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/profile/replay.hpp"

namespace weir::observed {

// The result for one node of the step; times are per call.
struct ReplayedNode {
  std::optional<double> median, min_seconds, max_seconds;
  std::int64_t runs = 0;    // runs of a graph
  std::int64_t copies = 0;  // copies of the node in that graph
  std::string left_out;     // why it has no times; "" if it has
};

struct Replayed {
  std::string engine = "ggml";  // engine whose kernels ran
  std::string version, commit;  // the engine's
  std::string library;  // with the device, unless it is the CPU's; several joined by " and "
  std::optional<std::int64_t> threads;  // for the CPU's kernels; nothing if none of these ran
  std::vector<ReplayedNode> nodes;      // the step's nodes, in its order
  std::vector<std::string> warnings;
};

struct ReplaySums {
  std::optional<double> recorded;  // median of the step's graphs
  std::optional<double> replayed;  // sum of each op's median times its count; nothing without any
  std::int64_t calls = 0;          // replayed calls
  std::int64_t left_out = 0;       // other calls
  [[nodiscard]] std::optional<double> ratio() const;  // replayed / recorded
};
[[nodiscard]] ReplaySums sum_up_times(const profile::ReplayStep& step, const Replayed& replayed);

// "4 x SSM_SCAN: weir has no rule …", one for each op and reason, the most frequent first.
[[nodiscard]] std::vector<std::string> list_left_out(const profile::ReplayStep& step,
                                                     const Replayed& replayed);

// The replay as weir profile, compare and explain read it (format "weir-replay"): an op a row, with
// the times of its calls in one step. Timings are `replay_seconds` and, for a whole step alone,
// `recorded_step_seconds`. `whole_step`: all ops of the step were to be replayed.
[[nodiscard]] Observed to_observed(const profile::Replay& replay, const profile::ReplayStep& step,
                                   const Replayed& replayed, bool whole_step);

}  // namespace weir::observed
