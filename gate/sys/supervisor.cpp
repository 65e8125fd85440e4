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

// Everything below runs in a child forked from a program with threads: no allocation, no locks, no
// library calls beyond system calls.
namespace weir::sys {
namespace {

// Where the supervisor keeps what it needs, so that everything above can be closed.
constexpr int k_control = 3, k_report = 4, k_out = 5, k_err = 6, k_first_unused = 7;
constexpr std::int64_t k_second_ns = 1'000'000'000;
#ifdef __linux__
constexpr int k_all_threads = __WALL;  // where they are traced
#else
constexpr int k_all_threads = 0;
#endif
// How long the end of killed processes is waited for; one that hangs in a driver may never end.
constexpr std::int64_t k_reap_ns = 5 * k_second_ns;

void on_child(int) {}  // its only task is to end pselect()

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

// Puts the four descriptors at their places. In two steps: they may stand in each other's way.
bool place_descriptors(const SupervisorOrder& order) {
  int high[4];
  const int given[4] = {order.control_fd, order.report_fd, order.out_fd, order.err_fd};
  for (int i = 0; i < 4; ++i) {
    high[i] = fcntl(given[i], F_DUPFD_CLOEXEC, 16);
    if (high[i] < 0) return false;
  }
  for (int i = 0; i < 4; ++i) {
    if (dup2(high[i], k_control + i) < 0) return false;
    fcntl(k_control + i, F_SETFD, FD_CLOEXEC);
  }
  close_descriptors(k_first_unused);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return false;
  // weir's own streams are let go: whoever reads from them must not wait for the supervisor.
  for (int fd = 0; fd < 3; ++fd) {
    if (dup2(null, fd) < 0) return false;
  }
  close(null);
  return true;
}

void send(const SupervisorReport& report) {
  // Smaller than PIPE_BUF, so whole or not at all; nothing can be done when weir is gone.
  while (write(k_report, &report, sizeof report) < 0 && errno == EINTR) {
  }
}

struct StartFailure {
  Stage stage;
  std::int32_t error;
};

[[noreturn]] void become_engine(const SupervisorOrder& order, int failure_fd, pid_t supervisor) {
  const auto give_up = [&](Stage stage) {
    const StartFailure failure{stage, errno};
    if (write(failure_fd, &failure, sizeof failure) < 0) _exit(126);
    _exit(127);
  };
  setpgid(0, 0);
  end_with_parent();  // should the supervisor be killed alone
  if (getppid() != supervisor) _exit(127);
  if (dup2(k_out, STDOUT_FILENO) < 0 || dup2(k_err, STDERR_FILENO) < 0) give_up(Stage::redirect);
  if (order.folder != nullptr && chdir(order.folder) != 0) give_up(Stage::folder);
  reset_signals();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (order.calls != nullptr && !be_traced()) give_up(Stage::trace);
  execve(order.program, order.argv, order.envp);
  give_up(Stage::exec);
  _exit(127);
}

// Sleeps until a child ends, the control pipe speaks (when `control` is wanted) or time is up.
void pause_until(bool* control, std::int64_t ns) {
  sigset_t open_to_children;
  sigfillset(&open_to_children);
  sigdelset(&open_to_children, SIGCHLD);
  fd_set readable;
  FD_ZERO(&readable);
  if (control != nullptr) FD_SET(k_control, &readable);
  timespec timeout{static_cast<time_t>(ns / k_second_ns), static_cast<long>(ns % k_second_ns)};
  const int ready = pselect(k_control + 1, control != nullptr ? &readable : nullptr, nullptr,
                            nullptr, ns < 0 ? nullptr : &timeout, &open_to_children);
  if (control != nullptr) *control = ready > 0 && FD_ISSET(k_control, &readable);
}

// Whatever ended, and whoever is traced and stopped goes on; as waitpid says.
pid_t reap_one(const SupervisorOrder& order, int* status) {
  const pid_t reaped = waitpid(-1, status, WNOHANG | k_all_threads);
  if (reaped > 0 && order.calls != nullptr) note_traced(reaped, *status, *order.calls);
  return reaped;
}

// Ends what is left after the engine: its group, and all that came back.
std::int64_t end_the_rest(pid_t engine, const SupervisorOrder& order) {
  std::int64_t ended = 0, strangers = 0;
  const std::int64_t deadline = steady_ns() + k_reap_ns;
  for (;;) {
    const std::int64_t left = strangers_left();
    if (left > strangers) strangers = left;
    kill(-engine, SIGKILL);
    kill_descendants();
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = reap_one(order, &status)) > 0) {
      if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) continue;
      ended = order.calls == nullptr ? ended + 1 : 1;  // the traced come thread by thread
    }
    if (reaped < 0 && errno == ECHILD && left == 0) return ended + strangers;
    if (steady_ns() > deadline) return ended + strangers;
    pause_until(nullptr, k_second_ns / 100);
  }
}

std::int64_t peak_bytes(const rusage& used) {
  return std::int64_t{used.ru_maxrss} * (k_on_macos ? 1 : 1024);
}

void describe(SupervisorReport& report, const rusage& used, std::int64_t floor_bytes) {
  const auto micro = [](const timeval& t) {
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000 + t.tv_usec;
  };
  report.cpu_us = micro(used.ru_utime) + micro(used.ru_stime);
  report.took = {used.ru_nvcsw, used.ru_nivcsw, used.ru_minflt, used.ru_majflt};
  const std::int64_t peak = peak_bytes(used);
  // The system counts the moment between fork and exec, when the engine was a copy of this
  // process: a peak no higher than that is not the engine's.
  constexpr std::int64_t k_margin = 512 << 10;
  report.peak_bytes = peak > floor_bytes + k_margin ? peak : -1;
}

std::int64_t own_peak_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return peak_bytes(used);
}

// A counter over the engine and what it starts; fd below 0: none, because of `error` (0: none was
// asked for).
struct Counter {
  int fd = -1;
  std::int32_t error = 0;
};

Counter make_counter(const PerfEvent* event) {
  if (event == nullptr) return {};
  const int fd = open_for_children(*event);
  return {fd, fd < 0 ? errno : 0};
}

void describe(SupervisorReport& report, const Counter& counter) {
  report.count_error = counter.error;
  if (counter.fd >= 0 && !read_counter(counter.fd, report.counted)) report.count_error = errno;
}

// Waits a while for what the engine left to end by itself; not if weir wants it gone, or is.
void let_the_rest_end(const SupervisorOrder& order) {
  const std::int64_t deadline = steady_ns() + order.settle_ns;
  while (steady_ns() < deadline) {
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = reap_one(order, &status)) > 0) {
    }
    if (reaped < 0 && errno == ECHILD && strangers_left() == 0) return;
    bool spoken = false;
    pause_until(&spoken, k_second_ns / 100);
    if (spoken) return;
  }
}

// Waits for the engine, obeying the control pipe.
void watch(pid_t engine, std::int64_t started_ns, std::int64_t floor_bytes, const Counter& counter,
           const SupervisorOrder& order) {
  SupervisorReport report;
  report.what = SupervisorReport::What::ended;
  bool listening = true;  // the control pipe is open
  bool killing = false;
  for (;;) {
    int status = 0;
    rusage used{};
    pid_t reaped = 0;
    // A traced engine may stop without end: weir is heard in between.
    constexpr int k_most_stops = 256;
    for (int stop = 0; stop < k_most_stops; ++stop) {
      reaped = wait4(-1, &status, WNOHANG | k_all_threads, &used);
      if (reaped <= 0) break;
      if (order.calls != nullptr) note_traced(reaped, status, *order.calls);
      if (reaped != engine || WIFSTOPPED(status)) continue;
      report.wall_ns = steady_ns() - started_ns;
      report.status = status;
      describe(report, used, floor_bytes);
      if (!killing && order.settle_ns > 0) {
        report.what = SupervisorReport::What::settling;
        send(report);
        let_the_rest_end(order);
        report.what = SupervisorReport::What::ended;
      }
      report.left_behind = end_the_rest(engine, order);
      describe(report, counter);
      send(report);
      return;
    }
    if (reaped < 0 && errno == ECHILD) return;  // cannot be: the engine was never reaped
    bool spoken = false;
    pause_until(listening ? &spoken : nullptr, reaped > 0 ? 0 : killing ? k_second_ns / 20 : -1);
    if (spoken) {
      char wish = 0;
      const ssize_t got = read(k_control, &wish, 1);
      if (got == 0) listening = false;
      if (got == 0 || (got == 1 && wish == k_control_kill)) killing = true;
      if (got == 1 && wish == k_control_terminate) {
        kill(-engine, SIGTERM);
        kill(-engine, SIGCONT);  // a stopped process would never see it
      }
    }
    if (killing) {
      kill(-engine, SIGKILL);
      kill_descendants();
    }
  }
}

[[noreturn]] void supervise(const SupervisorOrder& order) {
  reset_signals();
  setsid();  // away from the terminal and its signals
  SupervisorReport report;
  report.what = SupervisorReport::What::not_started;
  report.stage = Stage::redirect;
  if (!place_descriptors(order)) {
    report.error = errno;
    // The report pipe may not be at its place yet.
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
  // Before the engine's process is made, which inherits it.
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
  setpgid(engine, engine);  // whichever of the two comes first
  close(failure[1]);
  close(k_out);
  close(k_err);
  if (order.calls != nullptr) trace_to_its_start(engine, *order.calls);
  StartFailure why{};
  ssize_t got = 0;
  while ((got = read(failure[0], &why, sizeof why)) < 0 && errno == EINTR) {
  }
  close(failure[0]);
  if (got == sizeof why) {
    waitpid(engine, nullptr, 0);
    report.stage = why.stage;
    report.error = why.error;
    send(report);
    _exit(0);
  }
  report.what = SupervisorReport::What::started;
  report.stage = Stage::none;
  send(report);
  watch(engine, started_ns, floor_bytes, counter, order);
  _exit(0);
}

}  // namespace

pid_t start_supervisor(const SupervisorOrder& order) {
  // No handler of weir's may run in the child: all signals wait until it has let go of them.
  sigset_t all, before;
  sigfillset(&all);
  if (const int error = pthread_sigmask(SIG_SETMASK, &all, &before); error != 0) {
    errno = error;
    return -1;
  }
  const pid_t pid = fork();
  if (pid == 0) supervise(order);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

}  // namespace weir::sys
