// Turns an engine's system calls, counted by sys/calls.hpp, into ProbeCounts.
#pragma once

#include "gate/profile/counts.hpp"
#include "gate/sys/calls.hpp"

namespace weir::probes {

// Time-outs are multiplied by this while calls are traced.
inline constexpr double k_tracing_is_slower = 10;

// Counts "system_calls", "memory_calls", "futex_waits", "futex_wakes", "poll_calls",
// "threads_peak", reads of files, and peaks of memory by kind. Functions list each call by its
// name.
[[nodiscard]] profile::ProbeCounts system_call_counts(const sys::Calls& calls);

}  // namespace weir::probes
