// Turns the calls of Python's functions into ProbeCounts.
#include "gate/probes/read/python.hpp"

#include <algorithm>
#include <set>

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/costly_calls.hpp"

namespace weir::probes {
namespace {

void add_to(std::int64_t& sum, std::uint64_t count) {
  add_capped(sum, static_cast<std::int64_t>(std::min<std::uint64_t>(count, INT64_MAX)));
}

}  // namespace

// Sums calls and lines of the processes in `users`, or of all processes if none of them is there.
// All calls are those of all processes.
profile::ProbeCounts python_counts(std::span<const ProbeFile> files,
                                   const std::set<std::uint32_t>& users) {
  const auto is_user = [&](const ProbeFile& file) { return users.contains(file.pid); };
  const bool any_user = std::ranges::any_of(files, is_user);
  profile::ProbeCounts out;
  out.probe = profile::k_python;
  for (const char* base : {"python_calls", "c_calls", "costly_calls", "python_thread_calls",
                           "costly_thread_calls", "import_calls", "host_calls", "unseen_threads"})
    out.counts[base] = 0;
  for (const ProbeFile& file : files) {
    for (const char* base : {"import_calls", "unseen_threads"})
      add_to(out.counts[base], look_up(file.counters, base, std::uint64_t{0}));
    for (const ProbeFunction& function : file.functions) {
      add_to(out.counts["host_calls"], function.calls);
      add_to(out.counts["host_calls"], function.calls_in_threads);
    }
    if ((file.flags & WEIR_PROBE_FUNCTIONS_OVERFLOWED) != 0) {
      out.warnings.push_back(fmt::format(
          "python probe in {}: more functions than it can keep apart: some are in (other)",
          file.process));
    }
    if (any_user && !is_user(file)) continue;
    for (const ProbeFunction& function : file.functions) {
      const bool is_in_c = (function.flags & WEIR_FUNCTION_IN_C) != 0;
      add_to(out.counts[is_in_c ? "c_calls" : "python_calls"], function.calls);
      add_to(out.counts["python_thread_calls"], function.calls_in_threads);
      if (profile::rank_costly_call(function.name)) {
        add_to(out.counts["costly_calls"], function.calls);
        if (!profile::waits_for_threads(function.name))
          add_to(out.counts["costly_thread_calls"], function.calls_in_threads);
      }
      if (function.lines > 0) add_to(out.counts["python_lines"], function.lines);
      const auto add_function = [&](std::string_view prefix, std::uint64_t count) {
        if (count > 1) add_to(out.functions[std::string(prefix) + function.name], count);
      };
      add_function(profile::k_host_call, function.calls);
      add_function(profile::k_thread_call, function.calls_in_threads);
      add_function(profile::k_host_lines, function.lines);
      if (function.waits && !profile::rank_costly_call(function.name))
        add_function(profile::k_host_wait, function.calls);
    }
  }
  return out;
}

namespace {

// Returns an error if the program kept the probe from seeing its calls.
Result<void> check_seen(const ProbeFile& file) {
  if ((file.flags & WEIR_PROBE_REPLACED) != 0) {
    return fail(Code::unavailable,
                "{} sets a function of its own by sys.setprofile or sys.settrace in place of the "
                "python probe's, so that its calls are in no count: run it without profiler, "
                "debugger or coverage tool, or take python out of its probes",
                file.process);
  }
  if ((file.flags & WEIR_PROBE_CALLS_UNSEEN) != 0) {
    return fail(Code::unavailable,
                "{} starts a further interpreter of Python, whose calls the python probe does not "
                "see: run it in processes or threads, or take python out of its probes",
                file.process);
  }
  return {};
}

}  // namespace

// Reads the Python probe's files. Only processes that use a device by the counts of other probes
// are summed, if there are any.
Result<profile::ProbeCounts> collect_python(const sys::Files& files, const std::string& folder,
                                            std::span<const std::string> probes) {
  std::vector<std::string> warnings;
  WEIR_TRY(const std::vector<ProbeFile> processes,
           read_processes(files, folder, profile::k_python, warnings));
  if (processes.empty()) {
    return fail(Code::unavailable,
                "no process of the engine ran Python 3.10 to 3.14: take python out of its probes");
  }
  for (const ProbeFile& process : processes) WEIR_CHECK(check_seen(process));
  std::set<std::uint32_t> users;
  for (const std::string& probe : probes) {
    if (probe == profile::k_python) continue;
    WEIR_TRY(const std::vector<ProbeFile> others, read_processes(files, folder, probe, warnings));
    for (const ProbeFile& file : others) {
      if (did_work(file)) users.insert(file.pid);
    }
  }
  profile::ProbeCounts out = python_counts(processes, users);
  out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
  return out;
}

}  // namespace weir::probes
