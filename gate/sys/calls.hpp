// System calls of an engine and all that it starts, counted from outside: a seccomp filter stops
// each thread once a call, and the supervisor, which traces it (ptrace), counts and lets it go on.
// That takes no privileges and is exact; what is counted runs slower, so nothing is timed by it.
// Calls that look at a link itself (readlink, lstat) are left out: where a checkout lies decides
// how many there are. In the same way it is seen which files of a folder are opened; only such
// calls are stopped then.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace weir::sys {

// Resident memory of a process, in bytes.
struct Resident {
  std::int64_t anonymous = 0, of_files = 0, shared = 0;

  friend bool operator==(const Resident&, const Resident&) = default;
};

// Files that calls opened, read and mapped.
struct FilesRead {
  std::int64_t opened = 0;        // for reading or writing, each time
  std::int64_t read_bytes = 0;    // pipes and sockets are in it
  std::int64_t mapped_bytes = 0;  // asked for, whether they were looked at or not

  friend bool operator==(const FilesRead&, const FilesRead&) = default;
};

// Files of a folder that were opened or run, in shared memory.
struct OpenedFiles {
  // Names in memory of the process that reads, which the one that writes has a copy of.
  const char* folder = nullptr;         // null: none
  const char* const* except = nullptr;  // files and folders in it that are left out; ends in null
  // "NAME=VALUE" for each variable that a process needs for a GPU's library: its own value must
  // contain VALUE. Ends in null; null: none.
  const char* const* needed_variables = nullptr;
  const char* const* needed_by_python = nullptr;  // the same for Python
  std::array<char, 256> library{};    // a GPU's library that a process opened without them
  bool has_unprobed_python = false;   // a process ran Python without them
  std::int64_t opens = 0;             // calls that opened a file, wherever it lies
  std::array<char, 1 << 16> paths{};  // the first ones; a zero byte ends each
  std::size_t size = 0;               // of all paths

  // False: calls are counted instead.
  [[nodiscard]] bool is_wanted() const {
    return folder != nullptr || needed_variables != nullptr || needed_by_python != nullptr;
  }
};

// The call that a thread makes, and what its result is wanted for.
struct CurrentCall {
  enum class Kind : std::uint8_t { other, open, read, start };
  pid_t thread = 0;
  std::uint64_t number = 0;
  Kind kind = Kind::other;
};

// Counts in shared memory: one process writes them, another reads.
struct CallCounts {
  // Without futexes, counted separately, looks at links, and opens that find no file.
  std::array<std::uint64_t, 1024> by_number{};
  std::uint64_t futex_waits = 0, futex_wakes = 0;
  FilesRead files;
  // Each kind's most, of one process. Memory shrinks by calls alone: right before each is a peak.
  Resident peak;
  std::array<CurrentCall, 4096> current{};    // by the end of the thread's number
  std::int64_t threads = 1, max_threads = 1;  // alive now, and at once
  std::int64_t min_cpus = 0;  // fewest that a thread was allowed at its end; 0: none has ended
  bool has_hidden_process = false;    // one was started that cannot be traced
  bool has_executed_program = false;  // the engine's own program runs
  OpenedFiles opened;
};

// The same with the names of the calls: "read", "futex wait", "futex wake", "call 999".
struct Calls {
  std::map<std::string, std::int64_t> by_name;
  FilesRead files;
  Resident peak;
  std::int64_t max_threads = 1;
  std::int64_t min_cpus = 0;
  bool has_hidden_process = false;  // one was started out of sight: its calls are not in here

  friend bool operator==(const Calls&, const Calls&) = default;
};
[[nodiscard]] Calls calls_of(const CallCounts& counts);
// The paths, without links; nothing if the system does not tell which files are opened.
[[nodiscard]] std::optional<std::vector<std::string>> paths_of(const OpenedFiles& opened);

// Memory for counts that a forked process writes. Throws nothing; null with errno.
struct SharedCounts {
  SharedCounts();
  ~SharedCounts();
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  CallCounts* counts = nullptr;
};

// For the supervisor and its child, between fork and exec: async-signal-safe.

// In the child, right before it becomes the engine: stops until its parent traces it. False with
// errno where the system does not let it be traced.
[[nodiscard]] bool allow_tracing(const CallCounts& counts);
// In the parent: lets `engine` go until it is another program, or is gone.
void trace_until_exec(pid_t engine, CallCounts& counts);
// Handles wait()'s report of a traced thread: counts it, and lets the thread go on.
void handle_trace_stop(pid_t thread, int status, CallCounts& counts);

}  // namespace weir::sys
