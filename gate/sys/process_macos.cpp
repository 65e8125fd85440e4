// Processes on macOS. Built, not run. The libproc calls here are single
// system calls (proc_info) without allocation.
#include <cerrno>
#include <cstdint>

#include <libproc.h>
#include <mach-o/dyld.h>
#include <signal.h>
#include <unistd.h>

#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/supervisor.hpp"

namespace weir::sys {
namespace {

constexpr int k_max_processes = 16384;  // several times macOS's own default limit

// Calls visit(pid) for every other process of the session, except zombies. Runs in the supervisor,
// which has one thread, or in weir under kill_session(), each with its own list.
template <class Visit>
void visit_session(pid_t leader, pid_t* pids, const Visit& visit) {
  const int number = proc_listallpids(pids, k_max_processes * static_cast<int>(sizeof *pids));
  for (int i = 0; i < number && i < k_max_processes; ++i) {
    if (pids[i] > 1 && pids[i] != leader && getsid(pids[i]) == leader) visit(pids[i]);
  }
}

// The supervisor's list: too large for the stack of the thread that forked it.
pid_t g_pids[k_max_processes];

}  // namespace

void close_descriptors(int first) {
  long limit = sysconf(_SC_OPEN_MAX);
  if (limit < 0 || limit > 65536) limit = 65536;
  for (int fd = first; fd < limit; ++fd) close(fd);
}

void hide_process() {}

void restore_scheduling() {}

bool restore_own_settings() { return true; }

void adopt_descendants() {}

void end_with_parent() {}

void kill_descendants() {
  visit_session(getpid(), g_pids, [](pid_t pid) { kill(pid, SIGKILL); });
}

std::int64_t count_strangers() {
  std::int64_t strangers = 0;
  const pid_t self = getpid();
  visit_session(self, g_pids, [&](pid_t pid) {
    proc_bsdshortinfo info{};
    const int count = proc_pidinfo(pid, PROC_PIDT_SHORTBSDINFO, 0, &info, sizeof info);
    if (count == sizeof info && static_cast<pid_t>(info.pbsi_ppid) == self) return;
    ++strangers;
  });
  return strangers;
}

void kill_session(pid_t leader) {
  // Several threads of weir may call this. A session's id is not reused while a member lives.
  auto* const pids = new pid_t[k_max_processes];
  visit_session(leader, pids, [](pid_t pid) { kill(pid, SIGKILL); });
  delete[] pids;
}

std::string own_program_path() {
  std::uint32_t size = 0;
  _NSGetExecutablePath(nullptr, &size);  // only sets the size that it needs
  std::string path(size, '\0');
  if (size == 0 || _NSGetExecutablePath(path.data(), &size) != 0) return "";
  // The path may contain links and dots.
  return real_path(path.c_str()).value_or("");
}

Calls calls_of(const CallCounts& /*counts*/) { return {}; }
std::optional<std::vector<std::string>> paths_of(const OpenedFiles& /*opened*/) { return {}; }
SharedCounts::SharedCounts() { errno = ENOTSUP; }
SharedCounts::~SharedCounts() = default;
bool allow_tracing(const CallCounts& /*counts*/) {
  errno = ENOTSUP;
  return false;
}
void trace_until_exec(pid_t /*engine*/, CallCounts& /*counts*/) {}
void handle_trace_stop(pid_t /*thread*/, int /*status*/, CallCounts& /*counts*/) {}

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

std::optional<std::string> counter_problem(const PerfEvent& /*event*/) {
  return "perf events are not on macOS\nCount instructions on Linux";
}

}  // namespace weir::sys
