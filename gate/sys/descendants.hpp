// Where Linux and macOS differ in keeping hold of what an engine starts. For the supervisor,
// between fork and exec: all of it is async-signal-safe.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace weir::sys {

// Closes every descriptor from `first` on.
void close_descriptors(int first);

// Those of this process's descendants whose parent ends become its own children. macOS has no such
// thing: there they go to launchd.
void adopt_descendants();

// In a fresh child: its parent's end is its own. Not on macOS (kill_session makes up for it).
void end_with_parent();

// SIGKILL to all that is left of what this process, the leader of its session, has started: its
// children, which others become in turn (Linux); every process of its session (macOS, where one
// that made a session of its own is lost sight of).
void kill_descendants();

// Processes that wait() does not tell of: on macOS those of this session that are no children. 0 on
// Linux.
[[nodiscard]] std::int64_t strangers_left();

// SIGKILL to the session that `leader` led and left behind. On Linux its end has done that.
void kill_session(pid_t leader);

}  // namespace weir::sys
