// System calls of an engine, as they are counted (sys/calls.hpp) in a process of their own.
#pragma once

#include "gate/profile/counts.hpp"
#include "gate/sys/calls.hpp"

namespace weir::probes {

// Time-outs are for engines at their own speed.
inline constexpr double k_tracing_is_slower = 10;

// "system_calls", "memory_calls", "futex_waits", "futex_wakes", "poll_calls", "threads_peak", what
// was read of files, peaks of memory by kind, and each call by its name among the functions.
[[nodiscard]] profile::ProbeCounts counted_calls(const sys::Calls& calls);

}  // namespace weir::probes
