// Turns the calls of Python's functions into ProbeCounts.
#pragma once

#include <span>
#include <string>

#include "gate/base/result.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/profile/counts.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// Sums the calls of processes that use a device. If none does, of all processes. `users`: ids of
// those that do.
//
// - Counts: python_calls, c_calls, costly_calls, and where lines were counted python_lines, all of
//   main threads; python_thread_calls and costly_thread_calls of the others.
// - Counts of all processes and threads: host_calls but those within imports, which are
//   import_calls; unseen_threads.
// - Functions: calls (profile::k_host_call) and lines (k_host_lines) of main threads by name, and
//   calls of others (k_thread_call). Calls of functions in C that give up the processor in at least
//   half of their calls, and are no costly ones by name, are there once more (k_host_wait). Those
//   that were called once are left out, as a token calls them more often.
[[nodiscard]] profile::ProbeCounts python_counts(std::span<const ProbeFile> files,
                                                 const std::set<std::uint32_t>& users);

// Reads the files of the Python probe in `folder`. Those of the other `probes` tell which processes
// use a device. Fails as collect() does, and with Code::unavailable if no process ran Python, or
// one kept calls from the probe.
[[nodiscard]] Result<profile::ProbeCounts> collect_python(const sys::Files& files,
                                                          const std::string& folder,
                                                          std::span<const std::string> probes);

}  // namespace weir::probes
