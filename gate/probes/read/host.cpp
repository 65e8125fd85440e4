// Turns counted system calls into the counts of the probe `host`.
#include "gate/probes/read/host.hpp"

#include "gate/base/find.hpp"

namespace weir::probes {
namespace {

// Calls that are counted together. Counts of most depend on how threads meet and on times.
struct CallGroup {
  std::string_view base;
  std::initializer_list<std::string_view> calls;
};
constexpr std::string_view k_all_others = "system_calls";
const CallGroup k_groups[] = {
    {"memory_calls", {"mmap", "munmap", "mprotect", "brk", "madvise", "mremap"}},
    {"futex_waits", {"futex wait"}},
    {"futex_wakes", {"futex wake"}},
    {"poll_calls",
     {"poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "nanosleep",
      "clock_nanosleep", "sched_yield"}},
};

// The name of the count that a call belongs to.
std::string_view count_name(const std::string& call) {
  const auto* group =
      find_first(k_groups, [&](const CallGroup& entry) { return holds(entry.calls, call); });
  return group == nullptr ? k_all_others : group->base;
}

}  // namespace

// Returns the counts of a program's system calls, by name and by group, with peaks of memory and
// reads of files.
profile::ProbeCounts system_call_counts(const sys::Calls& calls) {
  profile::ProbeCounts out;
  out.probe = "host";
  out.counts = {{"threads_peak", calls.max_threads},
                {"allowed_cpus", calls.min_cpus},
                {"opened_files", calls.files.opened},
                {"read_bytes", calls.files.read_bytes},
                {"mapped_file_bytes", calls.files.mapped_bytes},
                {"host_anonymous_peak_bytes", calls.peak.anonymous},
                {"host_file_peak_bytes", calls.peak.of_files},
                {"host_shared_peak_bytes", calls.peak.shared}};
  out.counts[std::string(k_all_others)] = 0;
  for (const CallGroup& group : k_groups) out.counts[std::string(group.base)] = 0;
  for (const auto& [name, times] : calls.by_name) {
    out.counts[std::string(count_name(name))] += times;
    out.functions[std::string(profile::k_system_call) + name] = times;
  }
  return out;
}

}  // namespace weir::probes
