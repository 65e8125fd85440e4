// The small process between weir and one engine: starts the engine, reports its end, and ends
// whatever the engine leaves behind.
//
// Why a process of its own: descendants that change their group or session come back to it (it is
// their subreaper on Linux), so that those of engines side by side are never mixed up; and it
// notices when weir is gone, however that happened, because its control pipe then closes. On macOS,
// which has no subreapers, descendants are reached through the supervisor's session
// (process_macos.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <sys/types.h>

#include "gate/sys/calls.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/perf_events.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {

// The stage at which the start of an engine failed.
enum class Stage : std::int32_t { none, fork, folder, redirect, trace, exec };

// A message of the report pipe: `started` or `not_started`, then (after `started`) `ended`. In
// between `settling` may come: the engine is gone, and its children get time to end.
struct SupervisorReport {
  enum class What : std::int32_t { started, not_started, settling, ended };
  What what = What::started;
  Stage stage = Stage::none;  // not_started
  std::int32_t error = 0;     // not_started: errno
  std::int32_t status = 0;    // ended: as wait() gives it
  std::int64_t wall_ns = 0;
  std::int64_t cpu_us = 0;
  std::int64_t peak_bytes = 0;
  bool peak_is_bound = false;  // the peak may be weir's own; the engine's lies at or below it
  ProcessUsage usage{};
  std::int64_t left_behind = 0;
  std::int32_t count_error = 0;  // errno, when an event was to be counted and was not
  PerfCount counted{};
};

// One byte on the control pipe each; closing it means that weir is gone: kill.
// While `settling` each of them ends the rest at once.
inline constexpr char k_control_terminate = 'T';  // SIGTERM to the engine's group
inline constexpr char k_control_kill = 'K';       // SIGKILL to all descendants

struct SupervisorOrder {
  const char* program = nullptr;  // a path
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* folder = nullptr;      // or nullptr
  const PerfEvent* count = nullptr;  // or nullptr
  CallCounts* calls = nullptr;       // or nullptr; shared: the supervisor writes them
  std::int64_t settle_ns = 0;        // for what the engine leaves to end by itself
  int control_fd = -1, report_fd = -1, out_fd = -1, err_fd = -1;
};

// Forks the supervisor and returns its process id, or -1 with errno. Everything `order` points to
// is ready before; the new process calls nothing but async-signal-safe functions and never returns.
[[nodiscard]] pid_t start_supervisor(const SupervisorOrder& order);

// Answers the place for one large output (see RealProcesses), nothing while somebody else has it.
using TakeOutputPlace = std::function<std::shared_ptr<void>()>;

// `clock` and `pause` as RealProcesses has them.
// REQUIRES: spec.argv is not empty and holds no zero byte.
[[nodiscard]] Finished run_process(const ProcessSpec& spec, const Stop& stop, const Clock& clock,
                                   Pause& pause, const TakeOutputPlace& take_output_place);

// The differences of Linux and macOS in keeping hold of an engine's children. For the supervisor,
// between fork and exec: all of it is async-signal-safe.

// Hides this process's memory, environment and descriptors from other processes of its user
// (/proc/PID/environ), but for root's. A program that it starts is not hidden. Not on macOS.
void hide_process();

// Closes every descriptor from `first` on.
void close_descriptors(int first);

// Gives this process the processors and the priority that weir had as it began, where it may: an
// engine of the same user can have changed weir's since, and children inherit them.
void restore_scheduling();

// Makes this process adopt descendants whose parent ends. macOS has nothing like it: there they go
// to launchd.
void adopt_descendants();

// In a fresh child: its parent's end is its own. Not on macOS (kill_session makes up for it).
void end_with_parent();

// SIGKILL to all that is left of what this process, the leader of its session, has started: its
// children, which others become in turn (Linux); every process of its session (macOS, where one
// that made a session of its own is lost sight of).
void kill_descendants();

// Processes that wait() does not tell of: on macOS those of this session that are no children. 0 on
// Linux.
[[nodiscard]] std::int64_t count_strangers();

// SIGKILL to the session that `leader` led and left behind. On Linux its end has done that.
void kill_session(pid_t leader);

}  // namespace weir::sys
