#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "gate/sys/descendants.hpp"

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

}  // namespace weir::sys
