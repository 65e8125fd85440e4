// macOS lets a program count its own instructions alone, and has no counter that a child inherits.
#include <cerrno>

#include "gate/sys/perf_events.hpp"

namespace weir::sys {

PerfEvent instructions_event() { return {}; }
PerfEvent page_faults_event() { return {}; }

int open_for_children(const PerfEvent& /*event*/) {
  errno = ENOSYS;
  return -1;
}

bool read_counter(int /*fd*/, PerfCount& /*count*/) {
  errno = ENOSYS;
  return false;
}

std::optional<std::string> why_not_counted(const PerfEvent& /*event*/) {
  return "perf events are not on macOS\nCount instructions on Linux";
}

}  // namespace weir::sys
