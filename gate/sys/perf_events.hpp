// Counters that the system keeps of a process and everything it starts (Linux perf events), read
// from outside: the engine is not changed and runs at its own speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weir::sys {

// An event to count, as perf_event_open(2) names it. Only the process's own work counts, not the
// kernel's for it.
struct PerfEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;

  friend bool operator==(const PerfEvent&, const PerfEvent&) = default;
};
// Instructions that the processor retired: needs counters in hardware.
[[nodiscard]] PerfEvent instructions_event();
// Kept by the kernel itself, so that they are there on any Linux.
[[nodiscard]] PerfEvent page_faults_event();

struct PerfCount {
  std::uint64_t value = 0;
  // Nanoseconds that threads ran, and those in which the counter was theirs: fewer when others want
  // it too, and the value is then too low.
  std::uint64_t enabled_ns = 0, running_ns = 0;
};

// Opens a counter that stands still in the caller and runs in what it forks from now on, once that
// has become another program. A descriptor (closed by exec), or -1 with errno. Async-signal-safe.
[[nodiscard]] int open_for_children(const PerfEvent& event);
// Sums the counter over all of them, those that have ended and those that run. False with errno.
// Async-signal-safe.
[[nodiscard]] bool read_counter(int fd, PerfCount& count);

// Why the event cannot be counted here and what to do about it, two lines ready to show; nothing
// when it can. Asks the system.
[[nodiscard]] std::optional<std::string> counter_problem(const PerfEvent& event);
// The same from the error that opening ended with. `paranoid`: kernel.perf_event_paranoid, where
// known. Pure.
[[nodiscard]] std::string perf_refusal(int error, std::optional<int> paranoid);

}  // namespace weir::sys
