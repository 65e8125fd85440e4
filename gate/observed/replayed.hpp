// What replaying the ops of a step gave, beside what the step took when it was recorded. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/profile/replay.hpp"

namespace weir::observed {

// Of one node of the step; times are of one call.
struct ReplayedNode {
  std::optional<double> median, least, most;
  std::int64_t runs = 0;    // of a graph
  std::int64_t copies = 0;  // in that graph
  std::string left_out;     // why, where it has no times
};

struct Replayed {
  std::string engine = "ggml";  // whose kernels these are
  std::string version, commit;  // of it
  std::string library;          // with the device, where it is no CPU's; several joined by " and "
  std::optional<std::int64_t> threads;  // of the CPU's kernels; nothing where none of these ran
  std::vector<ReplayedNode> nodes;      // those of the step, in its order
  std::vector<std::string> warnings;
};

struct ReplaySums {
  std::optional<double> recorded;  // median of the step's graphs
  std::optional<double> replayed;  // of each op its median times its count; nothing without any
  std::int64_t calls = 0;          // replayed
  std::int64_t left_out = 0;       // calls
  [[nodiscard]] std::optional<double> ratio() const;  // replayed / recorded
};
[[nodiscard]] ReplaySums sums_of(const profile::ReplayStep& step, const Replayed& replayed);

// "4 x SSM_SCAN: weir has no rule …", one for each op and reason, the most frequent first.
[[nodiscard]] std::vector<std::string> leave_outs(const profile::ReplayStep& step,
                                                  const Replayed& replayed);

// As weir profile, compare and explain read it (format "weir-replay"): an op a row, with the times
// of its calls in one step; `replay_seconds` and, of a whole step alone, `recorded_step_seconds`.
// `whole`: all ops of the step were asked for.
[[nodiscard]] Observed observed_of(const profile::Replay& replay, const profile::ReplayStep& step,
                                   const Replayed& replayed, bool whole);

}  // namespace weir::observed
