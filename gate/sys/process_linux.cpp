#include <climits>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate/base/text.hpp"
#include "gate/sys/supervisor.hpp"

namespace weir::sys {

void close_descriptors(int first) {
  if (close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  long limit = sysconf(_SC_OPEN_MAX);
  if (limit < 0 || limit > 65536) limit = 65536;
  for (int fd = first; fd < limit; ++fd) close(fd);
}

void adopt_descendants() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

// The supervisor has one thread, whose end is the process's end.
void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

// The engine, and what came back. Their own children come back in turn, so that repeating it
// reaches all. Only unreaped children are named here: no process id can have gone to somebody else.
void kill_descendants() {
  const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char buffer[4096];
  pid_t pid = 0;
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        pid = pid * 10 + (buffer[i] - '0');
      } else {
        if (pid > 1) kill(pid, SIGKILL);
        pid = 0;
      }
    }
  }
  if (pid > 1) kill(pid, SIGKILL);
  close(fd);
}

std::int64_t strangers_left() { return 0; }

void kill_session(pid_t /*leader*/) {}

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

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
