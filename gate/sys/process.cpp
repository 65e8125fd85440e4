// Runs processes: the entry to the supervisor, the environment, ports, and reasons for failures.
#include "gate/sys/process.hpp"

#include <csignal>
#include <cstdlib>
#include <random>

#include <signal.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "gate/base/text.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/supervisor.hpp"

extern char** environ;

namespace weir::sys {

namespace {

// Both are stateless.
const RealClock k_real_clock;
RealPause g_real_pause;

}  // namespace

RealProcesses::RealProcesses() : RealProcesses(k_real_clock, g_real_pause) {}

RealProcesses::RealProcesses(const Clock& clock, Pause& pause) : clock_(clock), pause_(pause) {
  // Engines run as weir's own user; the variables that they do not inherit stay in weir's memory.
  hide_process();
  // Writing to a supervisor that was killed must not end weir.
  struct sigaction current {};
  sigaction(SIGPIPE, nullptr, &current);
  if (current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
#ifdef __GLIBC__
  // By default glibc would keep memory as large as the largest output in each thread.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

// Runs a process to its end. Whatever goes wrong in the engine, a failed start too, is part of the
// result.
Result<Finished> RealProcesses::run(const ProcessSpec& spec, const Stop& stop) {
  if (spec.argv.empty()) return fail(Code::internal, "a process needs a program to run");
  for (const std::string& argument : spec.argv) {
    if (argument.find('\0') != std::string::npos) {
      return Finished{.ended = HowEnded::not_started,
                      .start_error = "an argument holds a zero byte: no program can be given that"};
    }
  }
  if (stop.requested()) return Finished{.ended = HowEnded::interrupted};
  const TakeOutputPlace take_output_place = [is_taken =
                                                 large_output_taken_]() -> std::shared_ptr<void> {
    if (is_taken->exchange(true)) return nullptr;
    return {is_taken.get(), [is_taken](void*) { is_taken->store(false); }};
  };
  return run_process(spec, stop, clock_, pause_, take_output_place);
}

const std::string& error_output(const Finished& finished) {
  return text::trim(finished.err).empty() ? finished.out : finished.err;
}

// Describes how a process ended, to follow its name: "exited with code 1".
std::string describe_ending(const Finished& finished, const ProcessSpec& spec) {
  switch (finished.ended) {
    case HowEnded::exited:
      return fmt::format("exited with code {}", finished.exit_code);
    case HowEnded::signaled:
      return fmt::format("was ended by signal {}", finished.signal);
    case HowEnded::timed_out:
      return fmt::format("did not end within {:g} s and was stopped", spec.timeout_seconds);
    case HowEnded::output_limit:
      return fmt::format("printed more than {:g} MiB and was stopped",
                         static_cast<double>(spec.output_limit) / (1 << 20));
    case HowEnded::not_started:
      return "could not be started: " + finished.start_error;
    case HowEnded::interrupted:
      break;
  }
  return "was interrupted";
}

EnvironmentList own_environment() {
  EnvironmentList list;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    list.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return list;
}

std::optional<std::string> environment_value(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

namespace {

// Returns a socket that listens at the port of 127.0.0.1 (0: any free one); a closed one with
// errno if that fails.
Fd bind_port(int port) {
  Fd fd(socket(AF_INET, SOCK_STREAM, 0));
  if (!fd.open()) return fd;
  // As servers do: ignore connections of earlier programs that are still closing.
  const int enabled = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), 1) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

}  // namespace

// Takes a port below those that systems give to connections: what starts the server (srun, ssh) may
// open some of these before the server binds its own.
Result<int> free_port() {
  constexpr int k_first = 20000, k_last = 32767;  // Linux gives 32768 and up, macOS 49152 and up
  constexpr int k_tries = 100;
  std::random_device random;
  std::uniform_int_distribution<int> ports(k_first, k_last);
  for (int i = 0; i < k_tries; ++i) {
    const int port = ports(random);
    if (bind_port(port).open()) return port;
  }
  const Fd fd = bind_port(0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (!fd.open() || getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail(Code::io, "no port for a server: {}", errno_text());
  }
  return static_cast<int>(ntohs(address.sin_port));
}

bool is_free(int port) { return bind_port(port).open(); }

// Tries to count the system calls of a shell. Returns why that fails and what to do, or nothing if
// it works.
std::optional<std::string> trace_problem(Processes& processes) {
  ProcessSpec probe_run;
  probe_run.argv = {"/bin/sh", "-c", ":"};
  probe_run.count_calls = true;
  const auto finished = processes.run(probe_run, Stop());
  const bool has_started = finished && finished->ended != HowEnded::not_started;
  if (has_started && finished->calls && !finished->calls->by_name.empty()) return std::nullopt;
  if (has_started)
    return "the kernel does not say which calls a traced program makes (Linux 5.3 does)";
  return fmt::format(
      "{}\nAllow ptrace: kernel.yama.ptrace_scope below 2, and in a container "
      "--cap-add SYS_PTRACE",
      finished ? finished->start_error : finished.error().message);
}

// Explains why the system refused a hardware counter (`error` is errno), and what to do about it.
// `paranoid` is kernel.perf_event_paranoid, if known.
std::string perf_refusal(int error, std::optional<int> paranoid) {
  constexpr int k_own_processes = 2;  // the highest level at which own programs can be counted
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
