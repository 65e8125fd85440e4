// Processes on Linux: descriptors, orphans, performance counters.
#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

void hide_process() { prctl(PR_SET_DUMPABLE, 0); }

namespace {

// Mirrors the kernel's struct sched_attr, as of Linux 5.3: how a thread is scheduled.
struct SchedulerAttributes {
  std::uint32_t size = sizeof(SchedulerAttributes), policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;
  std::uint32_t min_clock = 0,
                max_clock = 0;  // of 1024; both 0 where the kernel has no such bounds
  friend bool operator==(const SchedulerAttributes&, const SchedulerAttributes&) = default;
};
constexpr int k_io_of_thread = 1;                   // IOPRIO_WHO_PROCESS
constexpr std::uint64_t k_has_clock_bounds = 0x60;  // SCHED_FLAG_UTIL_CLAMP

std::optional<SchedulerAttributes> read_attributes(pid_t thread) {
  SchedulerAttributes attributes;
  const bool is_read = syscall(SYS_sched_getattr, thread, &attributes, sizeof attributes, 0) == 0;
  return is_read ? std::optional(attributes) : std::nullopt;
}

long read_io_priority(pid_t thread) { return syscall(SYS_ioprio_get, k_io_of_thread, thread); }

// Makes a short file of /proc hold `text`.
void write_proc(const char* path, std::string_view text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!write(file, text.data(), text.size());
  close(file);
}

std::string read_proc(const char* path) {
  std::array<char, 4096> text{};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t count = file < 0 ? 0 : read(file, text.data(), text.size());
  if (file >= 0) close(file);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

// The processors and the priorities of a program.
struct Scheduling {
  cpu_set_t cpus{};
  bool has_cpus = false;
  int policy = SCHED_OTHER, nice = 0;
  sched_param parameters{};
  std::optional<SchedulerAttributes> attributes;
  long io_priority = -1;     // -1: not known
  long timer_slack_ns = -1;  // by how much the kernel may delay what a thread waits for
};

Scheduling read_scheduling() {
  Scheduling scheduling;
  scheduling.has_cpus = sched_getaffinity(0, sizeof scheduling.cpus, &scheduling.cpus) == 0;
  scheduling.policy = sched_getscheduler(0);
  sched_getparam(0, &scheduling.parameters);
  scheduling.nice = getpriority(PRIO_PROCESS, 0);
  scheduling.attributes = read_attributes(0);
  scheduling.io_priority = read_io_priority(0);
  scheduling.timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  return scheduling;
}

constexpr int k_limits = RLIM_NLIMITS;
using Limits = std::array<rlimit, k_limits>;

Limits read_limits() {
  Limits limits{};
  for (int i = 0; i < k_limits; ++i) {
    getrlimit(static_cast<__rlimit_resource_t>(i), &limits.at(static_cast<std::size_t>(i)));
  }
  return limits;
}

constexpr const char* k_session_priority = "/proc/self/autogroup";
constexpr const char* k_own_cgroups = "/proc/self/cgroup";

const Scheduling g_scheduling_at_start = read_scheduling();
const Limits g_limits_at_start = read_limits();

// Returns the last word of "/autogroup-7 nice 0".
std::string read_session_priority() {
  const std::string text = read_proc(k_session_priority);
  return text.substr(text.rfind(' ') + 1);
}
const std::string g_session_priority_at_start = read_session_priority();

// Sets a thread's timer slack to that of weir's start; thread 0 is the caller. Another thread's is
// read first, and only written if it differs.
void set_timer_slack(pid_t thread) {
  const long slack_ns = g_scheduling_at_start.timer_slack_ns;
  if (slack_ns <= 0) return;
  if (thread == 0) {
    prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);
    return;
  }
  std::array<char, 48> path{}, slack_text{};
  snprintf(path.data(), path.size(), "/proc/%d/timerslack_ns", static_cast<int>(thread));
  const std::string current = read_proc(path.data());
  snprintf(slack_text.data(), slack_text.size(), "%ld", slack_ns);
  if (!current.empty() && text::trim(current) != slack_text.data())
    write_proc(path.data(), slack_text.data());
}

// Gives a thread (0: the caller) the scheduling that weir began with. Does not allocate for the
// caller, which may be a child forked from a process with several threads.
void set_scheduling(pid_t thread) {
  const Scheduling& scheduling = g_scheduling_at_start;
  if (scheduling.has_cpus) sched_setaffinity(thread, sizeof scheduling.cpus, &scheduling.cpus);
  sched_setscheduler(thread, scheduling.policy, &scheduling.parameters);
  setpriority(PRIO_PROCESS, static_cast<id_t>(thread), scheduling.nice);
  if (scheduling.attributes && read_attributes(thread) != scheduling.attributes) {
    SchedulerAttributes attributes = *scheduling.attributes;
    if (attributes.max_clock > 0) attributes.flags |= k_has_clock_bounds;
    (void)syscall(SYS_sched_setattr, thread, &attributes, 0);
  }
  if (scheduling.io_priority >= 0 && read_io_priority(thread) != scheduling.io_priority)
    (void)syscall(SYS_ioprio_set, k_io_of_thread, thread, scheduling.io_priority);
  set_timer_slack(thread);
}

// Gives the session of this process the priority that it began with. The kernel takes ten a second
// from all users. Returns false if it cannot be had back.
bool restore_session_priority() {
  constexpr int k_attempts = 5;
  const timespec pause{0, 120'000'000};
  for (int attempt = 0; read_session_priority() != g_session_priority_at_start; ++attempt) {
    if (attempt == k_attempts) return false;
    if (attempt > 0) nanosleep(&pause, nullptr);
    write_proc(k_session_priority, g_session_priority_at_start);
  }
  return true;
}

// Returns true if this process is in the cgroups in which it was at the first call.
bool is_in_own_cgroups() {
  static const std::string at_first_call = read_proc(k_own_cgroups);
  return read_proc(k_own_cgroups) == at_first_call;
}

}  // namespace

void restore_scheduling() { set_scheduling(0); }

// Gives all threads of this process the scheduling and limits that it began with. Returns false if
// one cannot be restored.
bool restore_own_settings() {
  DIR* threads = opendir("/proc/self/task");
  while (const dirent* entry = threads == nullptr ? nullptr : readdir(threads)) {
    if (const auto thread = text::to_int(entry->d_name))
      set_scheduling(static_cast<pid_t>(*thread));
  }
  if (threads != nullptr) closedir(threads);
  bool is_restored = restore_session_priority() && is_in_own_cgroups();
  for (int i = 0; i < k_limits; ++i) {
    const auto resource = static_cast<__rlimit_resource_t>(i);
    const rlimit& limit = g_limits_at_start.at(static_cast<std::size_t>(i));
    rlimit now{};
    const bool is_same = getrlimit(resource, &now) == 0 && now.rlim_cur == limit.rlim_cur &&
                         now.rlim_max == limit.rlim_max;
    is_restored = (is_same || setrlimit(resource, &limit) == 0) && is_restored;
  }
  return is_restored;
}

void adopt_descendants() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

// Ends this process with its parent. The supervisor has one thread, so its end is the process's
// end.
void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

// Kills our direct children: the engine, and orphans that became ours. Their children become ours
// in turn, so call it until none is left. Unreaped ids cannot have been reused.
void kill_descendants() {
  const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char buffer[4096];
  pid_t pid = 0;
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (ssize_t i = 0; i < count; ++i) {
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

std::int64_t count_strangers() { return 0; }

void kill_session(pid_t /*leader*/) {}

std::string own_program_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

namespace {

std::optional<int> paranoid_level() {
  const Fd fd(open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC));
  if (!fd.open()) return std::nullopt;
  char buffer[16];
  const ssize_t count = read(fd.get(), buffer, sizeof buffer);
  if (count <= 0) return std::nullopt;
  const auto level =
      text::to_int(text::trim(std::string_view(buffer, static_cast<std::size_t>(count))));
  return level ? std::optional<int>(static_cast<int>(*level)) : std::nullopt;
}

}  // namespace

PerfEvent instructions_event() { return {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}; }
PerfEvent page_faults_event() { return {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}; }

// Opens a hardware counter over this process's children. Returns its descriptor, or -1 with errno.
int open_for_children(const PerfEvent& event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.disabled = 1;
  // Each child gets its own counter, which starts when it becomes the engine and is added to this
  // one. Instructions between fork and exec are ours, so they are not counted.
  attributes.inherit = 1;
  attributes.enable_on_exec = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

// Reads a hardware counter; returns false with errno if that fails.
bool read_counter(int fd, PerfCount& count) {
  std::uint64_t values[3] = {};
  ssize_t bytes_read = 0;
  do {
    bytes_read = read(fd, values, sizeof values);
  } while (bytes_read < 0 && errno == EINTR);
  if (bytes_read != sizeof values) {
    if (bytes_read >= 0) errno = EIO;
    return false;
  }
  count = {.value = values[0], .enabled_ns = values[1], .running_ns = values[2]};
  return true;
}

std::optional<std::string> counter_problem(const PerfEvent& event) {
  const Fd fd(open_for_children(event));
  if (fd.open()) return std::nullopt;
  const int error = errno;
  return perf_refusal(error, paranoid_level());
}

}  // namespace weir::sys
