#include <cerrno>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate/base/text.hpp"
#include "gate/sys/fd.hpp"
#include "gate/sys/perf_events.hpp"

namespace weir::sys {
namespace {

std::optional<int> paranoid_level() {
  const Fd fd(open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC));
  if (!fd.open()) return std::nullopt;
  char buffer[16];
  const ssize_t got = read(fd.get(), buffer, sizeof buffer);
  if (got <= 0) return std::nullopt;
  const auto level =
      text::to_int(text::trim(std::string_view(buffer, static_cast<std::size_t>(got))));
  return level ? std::optional<int>(static_cast<int>(*level)) : std::nullopt;
}

}  // namespace

PerfEvent instructions_event() { return {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}; }
PerfEvent page_faults_event() { return {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}; }

int open_for_children(const PerfEvent& event) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = event.type;
  wanted.config = event.config;
  wanted.disabled = 1;
  // A child gets a counter of its own, which begins when it becomes the engine and is added to this
  // one: what runs between fork and exec is ours, not the engine's.
  wanted.inherit = 1;
  wanted.enable_on_exec = 1;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

bool read_counter(int fd, PerfCount& count) {
  std::uint64_t values[3] = {};
  ssize_t got = 0;
  while ((got = read(fd, values, sizeof values)) < 0 && errno == EINTR) {
  }
  if (got != sizeof values) {
    if (got >= 0) errno = EIO;
    return false;
  }
  count = {values[0], values[1], values[2]};
  return true;
}

std::optional<std::string> why_not_counted(const PerfEvent& event) {
  const Fd fd(open_for_children(event));
  if (fd.open()) return std::nullopt;
  const int error = errno;
  return perf_refusal(error, paranoid_level());
}

}  // namespace weir::sys
