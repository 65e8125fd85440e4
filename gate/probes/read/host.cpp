#include "gate/probes/read/host.hpp"

#include "gate/base/find.hpp"

namespace weir::probes {
namespace {

// What threads that meet, and the time that something takes, enter into.
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

std::string_view group_of(const std::string& call) {
  const auto* group =
      first_of(k_groups, [&](const CallGroup& one) { return holds(one.calls, call); });
  return group == nullptr ? k_all_others : group->base;
}

}  // namespace

profile::ProbeCounts counted_calls(const sys::Calls& calls) {
  profile::ProbeCounts made;
  made.probe = "host";
  made.counts = {{"threads_peak", calls.most_threads},
                 {"allowed_cpus", calls.least_cpus},
                 {"opened_files", calls.files.opened},
                 {"read_bytes", calls.files.read_bytes},
                 {"mapped_file_bytes", calls.files.mapped_bytes},
                 {"host_anonymous_peak_bytes", calls.peak.anonymous},
                 {"host_file_peak_bytes", calls.peak.of_files},
                 {"host_shared_peak_bytes", calls.peak.shared}};
  made.counts[std::string(k_all_others)] = 0;
  for (const CallGroup& group : k_groups) made.counts[std::string(group.base)] = 0;
  for (const auto& [name, times] : calls.by_name) {
    made.counts[std::string(group_of(name))] += times;
    made.functions[std::string(profile::k_system_call) + name] = times;
  }
  return made;
}

}  // namespace weir::probes
