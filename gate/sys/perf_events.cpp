#include "gate/sys/perf_events.hpp"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace weir::sys {

std::string perf_refusal(int error, std::optional<int> paranoid) {
  constexpr int k_own_processes = 2;  // the highest level at which one's own programs are countable
  switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
      return "this machine offers no counters of instructions (a virtual machine without them)\n"
             "Give it virtual performance counters, use a machine of its own, or count with "
             "valgrind (instructions: valgrind)";
    case EACCES:
    case EPERM:
      if (paranoid && *paranoid > k_own_processes) {
        return fmt::format(
            "the system lets nobody count (kernel.perf_event_paranoid is {})\n"
            "sysctl kernel.perf_event_paranoid={}, as root, or count with valgrind",
            *paranoid, k_own_processes);
      }
      return "counting is not allowed here: a container without the right to perf_event_open\n"
             "Start it with --cap-add PERFMON or a seccomp profile that allows perf_event_open, or "
             "count with valgrind";
    case ENOSYS:
      return "this system has no perf events\nCount with valgrind, where that runs";
    case EBUSY:
      return "another program has the counters for itself\nEnd it, or count with valgrind";
    case EMFILE:
    case ENFILE:
      return "no descriptor is left for a counter\nRaise the limit of open files (ulimit -n)";
    default:
      return fmt::format("the system gave no counter: {}\nCount with valgrind",
                         std::generic_category().message(error));
  }
}

}  // namespace weir::sys
