// The supervisor: a process between weir and an engine that ends everything the engine started.
#include "gate/sys/supervisor.hpp"

#include <climits>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gate/sys/system.hpp"

// Everything below runs in a child forked from a program with threads, so it may only make system
// calls: no allocation, no locks, no other library calls.
namespace weir::sys {
namespace {

// Descriptors of the supervisor, placed low so that all others can be closed.
constexpr int k_control = 3, k_report = 4, k_out = 5, k_err = 6, k_first_unused = 7;
constexpr std::int64_t k_second_ns = 1'000'000'000;
#ifdef __linux__
constexpr int k_all_threads = __WALL;  // also waits for traced threads
#else
constexpr int k_all_threads = 0;
#endif
// Time to wait for killed processes to end; one that hangs in a driver may never do so.
constexpr std::int64_t k_reap_ns = 5 * k_second_ns;

void on_child(int) {}  // its only purpose is to interrupt pselect()

std::int64_t steady_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * k_second_ns + now.tv_nsec;
}

void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
}

// Moves the supervisor's four descriptors to their fixed numbers and closes all others. Goes by
// high numbers, as one may be in another's place. Returns false with errno if the system refuses.
bool place_descriptors(const SupervisorOrder& order) {
  int high_fds[4];
  const int fds[4] = {order.control_fd, order.report_fd, order.out_fd, order.err_fd};
  for (int i = 0; i < 4; ++i) {
    high_fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
    if (high_fds[i] < 0) return false;
  }
  for (int i = 0; i < 4; ++i) {
    if (dup2(high_fds[i], k_control + i) < 0) return false;
    fcntl(k_control + i, F_SETFD, FD_CLOEXEC);
  }
  close_descriptors(k_first_unused);
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null_fd < 0) return false;
  // Let go of weir's own streams: whoever reads them must not wait for the supervisor.
  for (int fd = 0; fd < 3; ++fd) {
    if (dup2(null_fd, fd) < 0) return false;
  }
  close(null_fd);
  return true;
}

void send(const SupervisorReport& report) {
  // Smaller than PIPE_BUF, so it is written completely or not at all. If weir is gone, so be it.
  while (write(k_report, &report, sizeof report) < 0 && errno == EINTR) {
  }
}

struct StartFailure {
  Stage stage;
  std::int32_t error;
};

// Turns the forked child into the engine; on failure reports the stage through `failure_fd`.
[[noreturn]] void become_engine(const SupervisorOrder& order, int failure_fd, pid_t supervisor) {
  const auto give_up = [&](Stage stage) {
    const StartFailure failure{stage, errno};
    if (write(failure_fd, &failure, sizeof failure) < 0) _exit(126);
    _exit(127);
  };
  setpgid(0, 0);
  end_with_parent();  // in case the supervisor alone is killed
  if (getppid() != supervisor) _exit(127);
  if (dup2(k_out, STDOUT_FILENO) < 0 || dup2(k_err, STDERR_FILENO) < 0) give_up(Stage::redirect);
  if (order.folder != nullptr && chdir(order.folder) != 0) give_up(Stage::folder);
  reset_signals();
  sigset_t no_signals;
  sigemptyset(&no_signals);
  sigprocmask(SIG_SETMASK, &no_signals, nullptr);
  if (order.calls != nullptr && !allow_tracing(*order.calls)) give_up(Stage::trace);
  execve(order.program, order.argv, order.envp);
  give_up(Stage::exec);
  _exit(127);
}

// Sleeps until a child ends, `ns` nanoseconds are over (below 0: no limit), or weir sends an
// order. `has_input` is set to whether it did; null ignores orders.
void pause_until(bool* has_input, std::int64_t ns) {
  sigset_t open_to_children;
  sigfillset(&open_to_children);
  sigdelset(&open_to_children, SIGCHLD);
  fd_set readable;
  FD_ZERO(&readable);
  if (has_input != nullptr) FD_SET(k_control, &readable);
  timespec timeout{static_cast<time_t>(ns / k_second_ns), static_cast<long>(ns % k_second_ns)};
  const int ready = pselect(k_control + 1, has_input != nullptr ? &readable : nullptr, nullptr,
                            nullptr, ns < 0 ? nullptr : &timeout, &open_to_children);
  if (has_input != nullptr) *has_input = ready > 0 && FD_ISSET(k_control, &readable);
}

// Reaps one ended child, or lets a stopped traced thread go on. Returns what waitpid() does.
pid_t reap_one(const SupervisorOrder& order, int* status) {
  const pid_t reaped = waitpid(-1, status, WNOHANG | k_all_threads);
  if (reaped > 0 && order.calls != nullptr) handle_trace_stop(reaped, *status, *order.calls);
  return reaped;
}

// Kills what is left of the engine: its process group and orphans. Returns how many there were.
// Gives up after k_reap_ns.
std::int64_t kill_leftovers(pid_t engine, const SupervisorOrder& order) {
  std::int64_t killed = 0, strangers = 0;
  const std::int64_t deadline = steady_ns() + k_reap_ns;
  for (;;) {
    const std::int64_t strangers_now = count_strangers();
    if (strangers_now > strangers) strangers = strangers_now;
    kill(-engine, SIGKILL);
    kill_descendants();
    int status = 0;
    pid_t reaped = reap_one(order, &status);
    for (; reaped > 0; reaped = reap_one(order, &status)) {
      if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) continue;
      killed = order.calls == nullptr ? killed + 1 : 1;  // traced ones are reaped thread by thread
    }
    if (reaped < 0 && errno == ECHILD && strangers_now == 0) return killed + strangers;
    if (steady_ns() > deadline) return killed + strangers;
    pause_until(nullptr, k_second_ns / 100);
  }
}

std::int64_t peak_bytes(const rusage& usage) {
  return std::int64_t{usage.ru_maxrss} * (k_on_macos ? 1 : 1024);
}

// Adds the CPU time, memory and switches that the engine and its children used. Peak memory is but
// a bound if it may be this process's own, of which the engine was a copy at first.
void add_usage_to_report(SupervisorReport& report, std::int64_t floor_bytes) {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto to_microseconds = [](const timeval& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000 + time.tv_usec;
  };
  report.cpu_us = to_microseconds(usage.ru_utime) + to_microseconds(usage.ru_stime);
  report.usage = {usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_minflt, usage.ru_majflt};
  const std::int64_t peak = peak_bytes(usage);
  constexpr std::int64_t k_margin = 512 << 10;
  report.peak_is_bound = peak <= floor_bytes + k_margin;
  report.peak_bytes = peak > floor_bytes + k_margin ? peak : floor_bytes + k_margin;
}

std::int64_t own_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return peak_bytes(usage);
}

// A performance counter over the engine and its children. If `fd` is below 0 there is none, because
// of `error`, or because none was asked for (0).
struct Counter {
  int fd = -1;
  std::int32_t error = 0;
};

Counter make_counter(const PerfEvent* event) {
  if (event == nullptr) return {};
  const int fd = open_for_children(*event);
  return {fd, fd < 0 ? errno : 0};
}

void add_count_to_report(SupervisorReport& report, const Counter& counter) {
  report.count_error = counter.error;
  if (counter.fd >= 0 && !read_counter(counter.fd, report.counted)) report.count_error = errno;
}

// Gives the engine's remaining processes time to end by themselves, up to order.settle_ns. Returns
// at once if weir sends an order or is gone.
void wait_for_leftovers(const SupervisorOrder& order) {
  const std::int64_t deadline = steady_ns() + order.settle_ns;
  while (steady_ns() < deadline) {
    int status = 0;
    pid_t reaped = 0;
    do {
      reaped = reap_one(order, &status);
    } while (reaped > 0);
    if (reaped < 0 && errno == ECHILD && count_strangers() == 0) return;
    bool has_order = false;
    pause_until(&has_order, k_second_ns / 100);
    if (has_order) return;
  }
}

// Waits until the engine ends and carries out weir's orders. Sends the final report.
void watch_engine(pid_t engine, std::int64_t started_ns, std::int64_t floor_bytes,
                  const Counter& counter, const SupervisorOrder& order) {
  SupervisorReport report;
  report.what = SupervisorReport::What::ended;
  bool is_listening = true;  // false once the control pipe is closed
  bool is_killing = false;
  for (;;) {
    int status = 0;
    pid_t reaped = 0;
    // A traced engine may stop again and again, so check for orders in between.
    constexpr int k_max_stops = 256;
    for (int stop = 0; stop < k_max_stops; ++stop) {
      reaped = reap_one(order, &status);
      if (reaped <= 0) break;
      if (reaped != engine || WIFSTOPPED(status)) continue;
      report.wall_ns = steady_ns() - started_ns;
      report.status = status;
      if (!is_killing && order.settle_ns > 0) {
        report.what = SupervisorReport::What::settling;
        add_usage_to_report(report, floor_bytes);
        send(report);
        wait_for_leftovers(order);
        report.what = SupervisorReport::What::ended;
      }
      report.left_behind = kill_leftovers(engine, order);
      add_usage_to_report(report, floor_bytes);
      add_count_to_report(report, counter);
      send(report);
      return;
    }
    if (reaped < 0 && errno == ECHILD) return;  // impossible: the engine was never reaped
    bool has_order = false;
    std::int64_t wait_ns = is_killing ? k_second_ns / 20 : -1;
    if (reaped > 0) wait_ns = 0;
    pause_until(is_listening ? &has_order : nullptr, wait_ns);
    if (has_order) {
      char command = 0;
      const ssize_t count = read(k_control, &command, 1);
      if (count == 0) is_listening = false;
      if (count == 0 || (count == 1 && command == k_control_kill)) is_killing = true;
      if (count == 1 && command == k_control_terminate) {
        kill(-engine, SIGTERM);
        kill(-engine, SIGCONT);  // a stopped process would never see it
      }
    }
    if (is_killing) {
      kill(-engine, SIGKILL);
      kill_descendants();
    }
  }
}

// The supervisor's main function: starts the engine, reports that, then watches it.
[[noreturn]] void run_supervisor(const SupervisorOrder& order) {
  reset_signals();
  restore_scheduling();
  setsid();  // away from the terminal and its signals
  SupervisorReport report;
  report.what = SupervisorReport::What::not_started;
  report.stage = Stage::redirect;
  if (!place_descriptors(order)) {
    report.error = errno;
    // The report pipe may not be in its place yet.
    if (write(order.report_fd, &report, sizeof report) < 0) _exit(1);
    _exit(1);
  }
  struct sigaction action {};
  action.sa_handler = on_child;
  sigaction(SIGCHLD, &action, nullptr);
  adopt_descendants();
  int failure[2];
  if (pipe(failure) != 0) {
    report.error = errno;
    send(report);
    _exit(1);
  }
  fcntl(failure[0], F_SETFD, FD_CLOEXEC);
  fcntl(failure[1], F_SETFD, FD_CLOEXEC);
  // Create the counter first: the engine's process inherits it.
  const Counter counter = make_counter(order.count);
  const std::int64_t floor_bytes = own_peak_bytes();
  const pid_t self = getpid();
  const std::int64_t started_ns = steady_ns();
  const pid_t engine = fork();
  if (engine < 0) {
    report.stage = Stage::fork;
    report.error = errno;
    send(report);
    _exit(1);
  }
  if (engine == 0) become_engine(order, failure[1], self);
  setpgid(engine, engine);  // both processes do this, since either may run first
  close(failure[1]);
  close(k_out);
  close(k_err);
  if (order.calls != nullptr) trace_until_exec(engine, *order.calls);
  StartFailure start_failure{};
  ssize_t count = 0;
  do {
    count = read(failure[0], &start_failure, sizeof start_failure);
  } while (count < 0 && errno == EINTR);
  close(failure[0]);
  if (count == sizeof start_failure) {
    waitpid(engine, nullptr, 0);
    report.stage = start_failure.stage;
    report.error = start_failure.error;
    send(report);
    _exit(0);
  }
  report.what = SupervisorReport::What::started;
  report.stage = Stage::none;
  send(report);
  watch_engine(engine, started_ns, floor_bytes, counter, order);
  _exit(0);
}

}  // namespace

// Forks the supervisor, a process that starts and watches the engine. Returns its process id, or
// -1 with errno.
pid_t start_supervisor(const SupervisorOrder& order) {
  // Block all signals: none of weir's handlers may run in the child before it has reset them.
  sigset_t all_signals, previous_mask;
  sigfillset(&all_signals);
  if (const int error = pthread_sigmask(SIG_SETMASK, &all_signals, &previous_mask); error != 0) {
    errno = error;
    return -1;
  }
  const pid_t pid = fork();
  if (pid == 0) run_supervisor(order);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &previous_mask, nullptr);
  errno = error;
  return pid;
}

}  // namespace weir::sys
