// Counts system calls of an engine and its children, or sees which files they open, with ptrace and
// seccomp.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstddef>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/text.hpp"
#include "gate/sys/calls.hpp"
#include "gate/sys/paths.hpp"

namespace weir::sys {
namespace {

struct CallName {
  long number;
  const char* name;
};
// System calls that engines make; others are shown by number.
// clang-format off
#define WEIR_CALLS(X) \
  X(read) X(write) X(close) X(fstat) X(lseek) X(mmap) X(mprotect) X(munmap) X(brk) \
  X(madvise) X(mremap) X(ioctl) X(pread64) X(pwrite64) X(readv) X(writev) X(openat) \
  X(newfstatat) X(statx) X(faccessat) X(readlinkat) X(getdents64) X(fcntl) X(fsync) \
  X(ftruncate) X(unlinkat) X(renameat) X(sched_yield) X(sched_getaffinity) \
  X(sched_setaffinity) X(nanosleep) X(clock_nanosleep) X(clock_gettime) X(gettimeofday) \
  X(times) X(getrusage) X(sysinfo) X(getpid) X(getppid) X(gettid) X(getcpu) X(getrandom) \
  X(ppoll) X(pselect6) X(epoll_pwait) X(epoll_ctl) X(eventfd2) X(timerfd_settime) \
  X(membarrier) X(mlock) X(munlock) X(mbind) X(set_mempolicy) X(mincore) X(clone) X(execve) \
  X(wait4) X(exit) X(exit_group) X(tgkill) X(rt_sigaction) X(rt_sigprocmask) X(sigaltstack) \
  X(set_tid_address) X(set_robust_list) X(prctl) X(prlimit64) X(uname) X(socket) X(connect) \
  X(accept4) X(sendto) X(recvfrom) X(sendmsg) X(recvmsg) X(memfd_create) X(pipe2) X(dup3) \
  X(socketpair) X(process_vm_readv) X(io_uring_enter) X(clone3) X(rseq)
#ifdef __x86_64__
#define WEIR_OLDER_CALLS(X) \
  X(open) X(stat) X(lstat) X(access) X(readlink) X(poll) X(select) X(epoll_wait) \
  X(arch_prctl) X(time) X(unlink) X(mkdir) X(rename) X(pipe)
#else
#define WEIR_OLDER_CALLS(X)
#endif
#define WEIR_CALL(name) {SYS_##name, #name},
// clang-format on
constexpr CallName k_call_names[] = {WEIR_CALLS(WEIR_CALL) WEIR_OLDER_CALLS(WEIR_CALL)};

std::string call_name(long number) {
  for (const CallName& call : k_call_names) {
    if (call.number == number) return call.name;
  }
  return fmt::format("call {}", number);
}

// Returns true if a futex operation waits for another thread; false if it wakes one.
bool is_wait(std::uint64_t operation) {
  constexpr std::uint64_t k_lock_pi2 = 13;
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case k_lock_pi2:
      return true;
    default:
      return false;
  }
}

// Reads a line like "RssAnon:	  1234 kB" as bytes; 0 if it is not there.
std::int64_t read_kilobytes(std::string_view status, std::string_view key) {
  constexpr std::int64_t k_kibi = 1024;
  const std::size_t key_at = status.find(key);
  if (key_at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(key_at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::int64_t kilobytes = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kilobytes);
  return kilobytes * k_kibi;
}

// Returns the number of processors that a thread may use, from the line "Cpus_allowed:
// ff,ffffffff" of /proc/PID/status; 0 without that line.
std::int64_t count_cpus(std::string_view status) {
  constexpr std::string_view k_key = "Cpus_allowed:\t";
  const std::size_t key_at = status.find(k_key);
  if (key_at == std::string_view::npos) return 0;
  std::int64_t cpus = 0;
  for (const char c : status.substr(key_at + k_key.size())) {
    if (c == '\n') break;
    unsigned digit = 0;
    constexpr int k_hex = 16;
    if (std::from_chars(&c, &c + 1, digit, k_hex).ec == std::errc()) cpus += std::popcount(digit);
  }
  return cpus;
}

// Updates the peaks of memory from /proc/PID/status, and for an ending thread the fewest allowed
// processors.
void record_memory_and_cpus(pid_t thread, bool is_ending, CallCounts& counts) {
  std::array<char, 32> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/status", thread);
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 4096> text{};
  const ssize_t count = read(file, text.data(), text.size());
  close(file);
  if (count <= 0) return;
  const std::string_view status(text.data(), static_cast<std::size_t>(count));
  Resident& peak = counts.peak;
  peak.anonymous = std::max(peak.anonymous, read_kilobytes(status, "RssAnon:"));
  peak.of_files = std::max(peak.of_files, read_kilobytes(status, "RssFile:"));
  peak.shared = std::max(peak.shared, read_kilobytes(status, "RssShmem:"));
  const std::int64_t cpus = is_ending ? count_cpus(status) : 0;
  if (cpus > 0 && (counts.min_cpus == 0 || cpus < counts.min_cpus)) counts.min_cpus = cpus;
}

constexpr std::uint32_t k_open_calls[] = {
#ifdef __x86_64__
    SYS_open, SYS_creat,
#endif
    SYS_openat, SYS_openat2};

bool is_open_call(std::uint64_t number) {
  return std::ranges::any_of(k_open_calls, [&](std::uint32_t call) { return call == number; });
}

// Returns true for a call that starts a process or a thread, in a program of 32 bits, too.
bool is_start_call(std::uint64_t number, [[maybe_unused]] std::uint32_t architecture) {
#ifdef __x86_64__
  constexpr std::uint64_t k_fork_32 = 2, k_clone_32 = 120, k_vfork_32 = 190;
  if (architecture == AUDIT_ARCH_I386 &&
      (number == k_fork_32 || number == k_clone_32 || number == k_vfork_32))
    return true;
  if (number == SYS_fork || number == SYS_vfork) return true;
#endif
  return number == SYS_clone || number == SYS_clone3;
}

bool is_read_call(std::uint64_t number) {
  return number == SYS_read || number == SYS_pread64 || number == SYS_readv ||
         number == SYS_preadv || number == SYS_preadv2;
}

// Returns true if a call looks at a link itself. A path is resolved by one such call for each of
// its folders (realpath), so their number tells how deep a checkout lies, and nothing of the
// engine.
bool looks_at_link(std::uint64_t number, const std::uint64_t (&args)[6]) {
  constexpr auto has_no_follow = [](std::uint64_t flags) {
    return (flags & AT_SYMLINK_NOFOLLOW) != 0 && (flags & AT_EMPTY_PATH) == 0;
  };
#ifdef __x86_64__
  if (number == SYS_readlink || number == SYS_lstat) return true;
#endif
  return number == SYS_readlinkat || (number == SYS_newfstatat && has_no_follow(args[3])) ||
         (number == SYS_statx && has_no_follow(args[2]));
}

bool changes_memory(std::uint64_t number) {
  return number == SYS_mmap || number == SYS_munmap || number == SYS_mremap ||
         number == SYS_madvise || number == SYS_brk || number == SYS_execve;
}

// Returns the place where the thread's current call is noted.
CurrentCall& current_call(pid_t thread, CallCounts& counts) {
  return counts.current.at(static_cast<std::size_t>(thread) % counts.current.size());
}

// Returns true for a library by which a program reaches a GPU or a device twin.
bool is_gpu_library(std::string_view path) {
  constexpr std::string_view k_names[] = {"libvulkan",    "libcuda.so",     "libcudart",
                                          "libamdhip64",  "libhsa-",        "libOpenCL",
                                          "libweir_twin", "libVk_weir_twin"};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(k_names, [&](auto start) { return name.starts_with(start); });
}

// Returns true for the first module that each Python reads from a file.
bool is_first_module_of_python(std::string_view path) {
  const std::size_t folder = path.rfind("/encodings/");
  if (folder == std::string_view::npos) return false;
  const std::string_view name = path.substr(folder);
  return name == "/encodings/__init__.py" || name == "/encodings/__init__.pyc" ||
         name.starts_with("/encodings/__pycache__/__init__.cpython-");
}

// Returns true if the environment that a process began with has all `needed` variables,
// "NAME=VALUE" with VALUE as a part of theirs. `needed` ends in null.
bool has_variables(pid_t thread, const char* const* needed) {
  static std::array<char, std::size_t{4} << 20> buffer;  // the system's limit is lower
  std::array<char, 64> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/environ", thread);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  std::size_t size = 0;
  for (ssize_t count = 1; fd >= 0 && count > 0 && size < buffer.size();) {
    count = read(fd, buffer.data() + size, buffer.size() - size);
    if (count > 0) size += static_cast<std::size_t>(count);
  }
  if (fd >= 0) close(fd);
  const std::string_view environment(buffer.data(), size);
  const auto has = [&](std::string_view variable) {
    const std::size_t equals = variable.find('=') + 1;
    for (std::size_t at = 0; at < environment.size();) {
      const std::string_view variable_here =
          environment.substr(at, environment.find('\0', at) - at);
      if (variable_here.starts_with(variable.substr(0, equals)) &&
          variable_here.substr(equals).find(variable.substr(equals)) != std::string_view::npos) {
        return true;
      }
      at += variable_here.size() + 1;
    }
    return false;
  };
  for (; *needed != nullptr; ++needed) {
    if (!has(*needed)) return false;
  }
  return true;
}

// Records the file behind a link below /proc/PID: one in the watched folder, or a GPU's library or
// a module of Python that is opened without the needed variables. Does not allocate.
void record_file(pid_t thread, std::string_view name, OpenedFiles& opened) {
  std::array<char, 64> link{};
  fmt::format_to_n(link.data(), link.size() - 1, "/proc/{}/{}", thread, name);
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlink(link.data(), target.data(), target.size() - 1);
  if (length <= 0) return;
  const std::string_view path(target.data(), static_cast<std::size_t>(length));
  if (opened.needed_variables != nullptr && opened.library.front() == '\0' &&
      is_gpu_library(path) && !has_variables(thread, opened.needed_variables)) {
    const std::string_view file = path.substr(path.rfind('/') + 1);
    std::ranges::copy(file.substr(0, opened.library.size() - 1), opened.library.begin());
  }
  if (opened.needed_by_python != nullptr && !opened.has_unprobed_python &&
      is_first_module_of_python(path)) {
    opened.has_unprobed_python = !has_variables(thread, opened.needed_by_python);
  }
  if (opened.folder == nullptr || !is_within(path, opened.folder)) return;
  for (const char* const* except = opened.except; *except != nullptr; ++except) {
    if (is_within(path, *except)) return;
  }
  for (std::size_t offset = 0; offset < opened.size;) {
    const std::string_view recorded(&opened.paths.at(offset));
    if (recorded == path) return;
    offset += recorded.size() + 1;
  }
  if (path.size() >= opened.paths.size() - opened.size) return;
  std::ranges::copy(path, opened.paths.begin() + static_cast<std::ptrdiff_t>(opened.size));
  opened.size += path.size() + 1;
}

// Records the file that a call of the thread has opened.
void record_opened(pid_t thread, OpenedFiles& opened) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return;
  if (info.op != PTRACE_SYSCALL_INFO_EXIT || info.exit.is_error != 0) return;
  ++opened.opens;
  std::array<char, 32> name{};
  const auto end = fmt::format_to_n(name.data(), name.size(), "fd/{}", info.exit.rval).out;
  record_file(thread, {name.data(), end}, opened);
}

// Counts the system call that the thread is about to make. Returns true if its result is needed
// too, for files that are opened or read.
bool count_call_entry(pid_t thread, CallCounts& counts) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return false;
  if (info.op != PTRACE_SYSCALL_INFO_SECCOMP) return false;
  const auto number = info.seccomp.nr;
  const auto& args = info.seccomp.args;
  if (number == SYS_futex) {
    if (is_wait(args[1])) {
      ++counts.futex_waits;
    } else {
      ++counts.futex_wakes;
    }
    return false;
  }
  if (looks_at_link(number, args)) return false;
  ++counts.by_number[std::min<std::uint64_t>(number, counts.by_number.size() - 1)];
  if (changes_memory(number)) record_memory_and_cpus(thread, /*is_ending=*/false, counts);
  if (number == SYS_mmap && (args[3] & MAP_ANONYMOUS) == 0) {
    counts.files.mapped_bytes += static_cast<std::int64_t>(args[1]);
  }
  using Kind = CurrentCall::Kind;
  CurrentCall& call = current_call(thread, counts);
  call = {thread, number, Kind::other};
  if (is_start_call(number, info.arch)) {
    call.kind = Kind::start;
  } else if (is_open_call(number)) {
    call.kind = Kind::open;
  } else if (is_read_call(number)) {
    call.kind = Kind::read;
  }
  return call.kind != Kind::other;
}

// Notes that the tracer was told of what the thread starts.
void note_start(pid_t thread, CallCounts& counts) {
  CurrentCall& call = current_call(thread, counts);
  if (call.thread == thread) call.kind = CurrentCall::Kind::other;
  ++counts.threads;
  counts.max_threads = std::max(counts.max_threads, counts.threads);
}

// Counts the result of a call: a file that was opened, bytes that were read, or a process that
// hides from tracing. An open that finds no file is not counted: how often programs search depends
// on the folder.
void count_return(pid_t thread, CallCounts& counts) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return;
  const CurrentCall& call = current_call(thread, counts);
  if (info.op != PTRACE_SYSCALL_INFO_EXIT || call.thread != thread) return;
  const bool has_failed = info.exit.is_error != 0;
  switch (call.kind) {
    case CurrentCall::Kind::start:
      if (!has_failed && info.exit.rval > 0) counts.has_hidden_process = true;
      return;
    case CurrentCall::Kind::open:
      if (info.exit.rval == -ENOENT || info.exit.rval == -ENOTDIR)
        --counts.by_number.at(call.number);
      if (!has_failed) ++counts.files.opened;
      return;
    case CurrentCall::Kind::read:
      if (!has_failed) counts.files.read_bytes += info.exit.rval;
      return;
    case CurrentCall::Kind::other:
      return;
  }
}

}  // namespace

// Returns the counts of system calls by name, from those by number.
Calls calls_of(const CallCounts& counts) {
  Calls calls;
  const auto add_named = [&](const std::string& name, std::uint64_t count) {
    if (count > 0) calls.by_name[name] += static_cast<std::int64_t>(count);
  };
  for (std::size_t i = 0; i < counts.by_number.size(); ++i) {
    if (counts.by_number[i] > 0) add_named(call_name(static_cast<long>(i)), counts.by_number[i]);
  }
  add_named("futex wait", counts.futex_waits);
  add_named("futex wake", counts.futex_wakes);
  calls.files = counts.files;
  calls.peak = counts.peak;
  calls.max_threads = counts.max_threads;
  calls.min_cpus = counts.min_cpus;
  calls.has_hidden_process = counts.has_hidden_process;
  return calls;
}

SharedCounts::SharedCounts() {
  void* memory =
      mmap(nullptr, sizeof(CallCounts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) counts = new (memory) CallCounts;
}
SharedCounts::~SharedCounts() {
  if (counts != nullptr) munmap(counts, sizeof(CallCounts));
}

std::optional<std::vector<std::string>> paths_of(const OpenedFiles& opened) {
  if (opened.opens == 0 && opened.size == 0) return std::nullopt;
  std::vector<std::string> paths;
  for (std::size_t at = 0; at < opened.size; at += paths.back().size() + 1) {
    paths.emplace_back(&opened.paths.at(at));
  }
  return paths;
}

// Lets the parent trace this process, which stops at the calls that a seccomp filter selects. Runs
// in the child before it becomes the engine. Returns false with errno if the system refuses.
bool allow_tracing(const CallCounts& counts) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return false;
  // Stop until the parent has set its options: with the filter alone, each call would fail.
  raise(SIGSTOP);
  // A call that a jump selects skips the rest of the jumps, and the last but one return.
  constexpr std::size_t k_jumps = std::size(k_open_calls);
  std::array<sock_filter, k_jumps + 3> program{};
  std::size_t size = 0;
  if (counts.opened.is_wanted()) {
    program.at(size++) = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    for (std::size_t i = 0; i < k_jumps; ++i) {
      program.at(size++) = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k_open_calls[i],
                                    static_cast<std::uint8_t>(k_jumps - i), 0);
    }
    program.at(size++) = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  program.at(size++) = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  const sock_fprog filter{static_cast<std::uint16_t>(size), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Handles a stop of a traced thread: counts the event that stopped it, and lets the thread
// continue, with its signal if it got one.
void handle_trace_stop(pid_t thread, int status, CallCounts& counts) {
  if (!WIFSTOPPED(status)) return;
  constexpr int k_event_shift = 16, k_call_returned = SIGTRAP | 0x80;
  const int signal = WSTOPSIG(status);
  int forwarded_signal = 0;
  bool wants_return_value = false;
  const bool is_watching = counts.opened.is_wanted();
  switch (status >> k_event_shift) {
    case PTRACE_EVENT_SECCOMP:
      wants_return_value =
          counts.has_executed_program && (is_watching || count_call_entry(thread, counts));
      break;
    case PTRACE_EVENT_EXEC:
      counts.has_executed_program = true;
      if (is_watching) record_file(thread, "exe", counts.opened);
      break;
    case PTRACE_EVENT_EXIT:  // happens once a thread, while reaping may report it twice
      record_memory_and_cpus(thread, /*is_ending=*/true, counts);
      --counts.threads;
      break;
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
      note_start(thread, counts);
      break;
    default:
      if (signal == k_call_returned && is_watching) {
        record_opened(thread, counts.opened);
      } else if (signal == k_call_returned) {
        count_return(thread, counts);
      } else if (signal != SIGSTOP) {  // a new thread begins with the tracer's SIGSTOP
        forwarded_signal = signal;
      }
  }
  ptrace(wants_return_value ? PTRACE_SYSCALL : PTRACE_CONT, thread, nullptr, forwarded_signal);
}

// Lets the child run until it has become the engine's program, or ended. Sets the trace options at
// its first stop.
void trace_until_exec(pid_t engine, CallCounts& counts) {
  int status = 0;
  bool has_options = false;
  while (!counts.has_executed_program && waitpid(engine, &status, __WALL) == engine &&
         WIFSTOPPED(status)) {
    if (!has_options) {
      has_options = true;
      ptrace(PTRACE_SETOPTIONS, engine, nullptr,
             PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD |
                 PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
                 PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK);
    }
    handle_trace_stop(engine, status, counts);
  }
}

}  // namespace weir::sys
