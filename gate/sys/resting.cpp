// Watches whether all threads of a server sleep and its connections are idle, from /proc.
#include "gate/sys/resting.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <csignal>
#include <ctime>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "gate/base/result.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/fd.hpp"
#include "gate/sys/files.hpp"

namespace weir::sys {
namespace {

constexpr std::size_t k_page = 4096;

// Reads the beginning of a file; nothing if that fails, since its process may have ended.
std::optional<std::string> read_proc(const std::string& path, std::size_t max_bytes) {
  auto text = RealFiles().read_prefix(path, max_bytes);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// Lists the entries of a folder whose names are numbers.
std::vector<std::int64_t> list_numbers(const std::string& path) {
  std::vector<std::int64_t> numbers;
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return numbers;
  while (const dirent* entry = readdir(folder)) {
    if (const auto number = text::to_int(entry->d_name)) numbers.push_back(*number);
  }
  closedir(folder);
  return numbers;
}

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words = text::split(line, ' ');
  std::erase(words, "");
  return words;
}

// Reads a number of /proc/PID/stat by its place after the name. The name is in brackets and may
// contain anything.
constexpr std::size_t k_state = 0, k_parent = 1, k_group = 2, k_flags = 6, k_nice = 16,
                      k_resident_pages = 21, k_realtime_priority = 37, k_policy = 38;
// Returns the words after the name of a stat file; none if it cannot be read.
std::vector<std::string> read_stat(const std::string& path) {
  const auto stat = read_proc(path, k_page);
  const std::size_t name_ends = stat ? stat->rfind(')') : std::string::npos;
  if (name_ends == std::string::npos) return {};
  return split_words(text::trim(std::string_view(*stat).substr(name_ends + 1)));
}
std::optional<std::string> read_stat_word(const std::string& proc, std::int64_t process,
                                          std::size_t place) {
  auto words = read_stat(fmt::format("{}/{}/stat", proc, process));
  return words.size() <= place ? std::nullopt : std::optional(std::move(words[place]));
}
std::optional<std::int64_t> read_stat_number(const std::string& proc, std::int64_t process,
                                             std::size_t place) {
  const auto word = read_stat_word(proc, process, place);
  return word ? text::to_int(*word) : std::nullopt;
}

// Returns the state of a process: "R", "S", "D", "T", …; "" once it is gone.
std::string read_state(std::int64_t process) {
  return read_stat_word("/proc", process, k_state).value_or("");
}
bool is_stopped_or_gone(std::string_view state) {
  return std::string_view("TtZX").find(state) != std::string_view::npos;
}

std::optional<std::uint64_t> parse_hex(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// Parses the number after the colon, as in "0100007F:1F90".
std::optional<std::uint64_t> parse_after_colon(std::string_view word) {
  const std::size_t colon = word.find(':');
  return colon == std::string_view::npos ? std::nullopt : parse_hex(word.substr(colon + 1));
}

}  // namespace

// Returns a thread's state and number of context switches, from /proc/PID/task/TID/status; nothing
// if a field is missing.
std::optional<ThreadState> parse_thread_status(std::string_view text) {
  ThreadState state;
  int field_count = 0;
  for (const std::string& line : text::lines(text)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name = std::string_view(line).substr(0, colon);
    const std::string_view value = text::trim(std::string_view(line).substr(colon + 1));
    if (name == "State") {
      state.sleeps = value.starts_with('S');
      state.is_stopped = value.starts_with('T') || value.starts_with('t');
      ++field_count;
    } else if (name == "voluntary_ctxt_switches" || name == "nonvoluntary_ctxt_switches") {
      const auto count = text::to_int(value);
      if (!count || *count < 0) return std::nullopt;
      state.switches += static_cast<std::uint64_t>(*count);
      ++field_count;
    }
  }
  return field_count == 3 ? std::optional(state) : std::nullopt;
}

// Adds the connections of `port` from a table like /proc/net/tcp: how many there are, and how many
// have unread or unsent bytes.
void add_traffic(std::string_view text, int port, PortTraffic& traffic) {
  constexpr std::uint64_t k_established = 1;
  constexpr std::size_t k_local_address = 1, k_remote_address = 2, k_connection_state = 3,
                        k_queues = 4, k_inode = 9;
  for (const std::string& line : text::lines(text)) {
    const auto words = split_words(line);
    if (words.size() <= k_inode || parse_hex(words[k_connection_state]) != k_established) continue;
    const std::string_view queues = words[k_queues];
    const auto send_bytes = parse_hex(queues.substr(0, queues.find(':')));
    const auto unread_bytes = parse_after_colon(queues);
    if (parse_after_colon(words[k_local_address]) == static_cast<std::uint64_t>(port)) {
      ++traffic.connections;
      // A connection that waits to be accepted belongs to no open file yet.
      if (unread_bytes.value_or(1) != 0 || words[k_inode] == std::string_view("0"))
        ++traffic.unread;
    } else if (parse_after_colon(words[k_remote_address]) == static_cast<std::uint64_t>(port) &&
               send_bytes.value_or(1) != 0) {
      ++traffic.unsent;
    }
  }
}

Resting::Resting(std::span<const std::int64_t> processes, std::string proc)
    : proc_(std::move(proc)) {
  for (const std::int64_t process : processes) {
    if (const auto group = read_stat_number(proc_, process, k_group)) groups_.push_back(*group);
  }
  processes_ = members();
}

// Returns the processes of the watched groups.
std::vector<std::int64_t> Resting::members() const {
  std::vector<std::int64_t> processes;
  for (const std::int64_t process : list_numbers(proc_)) {
    const auto group = read_stat_number(proc_, process, k_group);
    if (group && std::ranges::count(groups_, *group) > 0) processes.push_back(process);
  }
  return processes;
}

// Returns true if the engine's processes are at rest: no thread has run since the last call, or
// each was asleep once in k_rounds rounds. Sets awake_ to a thread that was not.
bool Resting::all_sleep() {
  Threads threads_now;
  awake_.clear();
  for (const std::int64_t process : processes_) {
    const std::string folder = fmt::format("{}/{}/task", proc_, process);
    for (const std::int64_t thread : list_numbers(folder)) {
      const auto status = read_proc(fmt::format("{}/{}/status", folder, thread), 2 * k_page);
      const auto state = status ? parse_thread_status(*status) : std::nullopt;
      if (!state) continue;  // it has ended meanwhile
      threads_now[{process, thread}] = *state;
      if (state->sleeps) asleep_.insert({process, thread});
      const auto previous = previous_threads_.find({process, thread});
      if (state->sleeps && previous != previous_threads_.end() && previous->second == *state)
        continue;
      if (awake_.empty()) awake_ = fmt::format("thread {} of process {}", thread, process);
    }
  }
  const bool is_unchanged = threads_now == previous_threads_;
  previous_threads_ = std::move(threads_now);
  if (previous_threads_.empty()) return false;
  const bool is_round_over = std::ranges::all_of(
      previous_threads_, [&](const auto& thread) { return asleep_.contains(thread.first); });
  if (is_round_over) {
    asleep_.clear();
    ++rounds_;
  }
  return (is_unchanged && awake_.empty()) || rounds_ >= k_rounds;
}

void Resting::begin_again() {
  asleep_.clear();
  rounds_ = 0;
}

// Returns the connections of the port on this machine; nothing if the system does not show them.
std::optional<PortTraffic> Resting::traffic(int port) const {
  constexpr std::size_t k_max_bytes = std::size_t{16} << 20;
  PortTraffic traffic;
  bool is_readable = false;
  for (const char* name : {"/net/tcp", "/net/tcp6"}) {
    const auto text = read_proc(proc_ + name, k_max_bytes);
    if (!text) continue;
    is_readable = true;
    add_traffic(*text, port, traffic);
  }
  return is_readable ? std::optional(traffic) : std::nullopt;
}

// Returns the ids of a process's children, their children and so on. `proc` is the path of /proc.
std::vector<std::int64_t> list_descendants(std::int64_t process, const std::string& proc) {
  std::multimap<std::int64_t, std::int64_t> children;
  for (const std::int64_t pid : list_numbers(proc)) {
    if (const auto parent = read_stat_number(proc, pid, k_parent)) children.emplace(*parent, pid);
  }
  std::vector<std::int64_t> descendants;
  std::set<std::int64_t> visited{process};
  const auto add_children = [&](std::int64_t pid) {
    const auto [begin, end] = children.equal_range(pid);
    for (auto child = begin; child != end; ++child) {
      if (visited.insert(child->second).second) descendants.push_back(child->second);
    }
  };
  add_children(process);
  for (std::size_t i = 0; i < descendants.size(); ++i) add_children(descendants[i]);
  return descendants;
}

// Sums up the resident memory of all descendants of a process; nothing if there is none.
std::optional<std::int64_t> resident_bytes_below(std::int64_t process, const std::string& proc) {
  std::int64_t pages = 0;
  for (const std::int64_t pid : list_descendants(process, proc))
    pages += read_stat_number(proc, pid, k_resident_pages).value_or(0);
  return pages == 0 ? std::nullopt : std::optional(pages * sysconf(_SC_PAGESIZE));
}

// Stops all descendants of a process by SIGSTOP, and returns those that it stopped. Processes that
// begin meanwhile are found in the next of up to 100 rounds.
std::vector<std::int64_t> stop_descendants(std::int64_t process) {
  constexpr int k_max_rounds = 100;
  std::set<std::int64_t> stopped;
  for (int round = 0; round < k_max_rounds; ++round) {
    bool is_any_running = false;
    for (const std::int64_t pid : list_descendants(process)) {
      const std::string state = read_state(pid);
      // One that waits in the kernel, as after vfork(), stops before it runs again.
      const bool will_stop = state == "D" && stopped.contains(pid);
      if (is_stopped_or_gone(state) || will_stop) continue;
      if (kill(static_cast<pid_t>(pid), SIGSTOP) != 0) continue;
      is_any_running = true;
      stopped.insert(pid);
    }
    if (!is_any_running) break;
  }
  return {stopped.begin(), stopped.end()};
}

void continue_processes(std::span<const std::int64_t> processes) {
  for (const std::int64_t pid : processes) (void)kill(static_cast<pid_t>(pid), SIGCONT);
}

bool are_descendants_stopped(std::int64_t process) {
  const std::vector<std::int64_t> descendants = list_descendants(process);
  return !descendants.empty() && std::ranges::all_of(descendants, [](std::int64_t pid) {
    const std::string state = read_state(pid);
    return state == "D" || is_stopped_or_gone(state);
  });
}

namespace {

// Returns what decides how a process may use the machine, besides its threads' settings.
std::string read_process_settings(std::int64_t process) {
  std::string settings;
  for (const char* name : {"limits", "autogroup", "cgroup"})
    settings += read_proc(fmt::format("/proc/{}/{}", process, name), 4 * k_page).value_or("");
  return settings;
}

// Returns the scheduling settings of a thread as text to compare: processors, memory nodes,
// priorities, policy, timer slack and tracer.
std::string thread_settings(std::string_view status, const std::vector<std::string>& stat,
                            std::int64_t thread) {
  const std::size_t begin = status.find("Cpus_allowed:"),
                    end = status.find("voluntary_ctxt_switches:");
  std::string settings;
  if (begin < end) settings = status.substr(begin, end - begin);
  const std::size_t tracer = status.find("TracerPid:");
  if (tracer != std::string_view::npos)
    settings += status.substr(tracer, status.find('\n', tracer) - tracer);
  for (const std::size_t field : {k_nice, k_realtime_priority, k_policy})
    settings += field < stat.size() ? " " + stat[field] : std::string();
#ifdef __linux__
  constexpr int k_of_process = 1;  // IOPRIO_WHO_PROCESS: one thread
  settings += fmt::format(" {}", syscall(SYS_ioprio_get, k_of_process, thread));
  // The time slice, and bounds on the processor's clock.
  std::array<std::uint64_t, 16> attributes{};  // struct sched_attr
  (void)syscall(SYS_sched_getattr, thread, attributes.data(), sizeof attributes, 0);
  for (const std::uint64_t word : attributes) settings += fmt::format(" {:x}", word);
  settings += read_proc(fmt::format("/proc/{}/timerslack_ns", thread), k_page).value_or("");
#endif
  return settings;
}

// Returns true for a thread of the kernel's that works for a process and takes no signals.
bool is_kernel_worker(const std::vector<std::string>& stat) {
  constexpr std::int64_t k_io_worker = 0x10;  // PF_IO_WORKER
  const auto flags = k_flags < stat.size() ? text::to_int(stat[k_flags]) : std::nullopt;
  return flags && (*flags & k_io_worker) != 0;
}

bool may_signal(std::int64_t process) { return kill(static_cast<pid_t>(process), 0) == 0; }

}  // namespace

// A thread is shown as stopped a moment before it leaves its processor, which counts as a switch.
StoppedTree::StoppedTree(std::int64_t process) : process_(process) {
  constexpr int k_max_readings = 500, k_equal_readings = 3;
  const timespec pause{0, 2'000'000};
  const auto is_stopped = [](const auto& thread) { return thread.second.state.is_stopped; };
  int equal_readings = 0;
  for (int reading = 0; reading < k_max_readings && equal_readings < k_equal_readings; ++reading) {
    if (reading > 0) nanosleep(&pause, nullptr);
    Threads threads_now = read_threads();
    const bool is_same_as_before =
        std::ranges::all_of(threads_now, is_stopped) && threads_now == threads_;
    equal_readings = is_same_as_before ? equal_readings + 1 : 0;
    threads_ = std::move(threads_now);
  }
}

// Returns the state and settings of all threads of the descendants that weir may signal. Kernel
// workers, and threads that have ended, are left out.
StoppedTree::Threads StoppedTree::read_threads() const {
  Threads threads;
  for (const std::int64_t pid : list_descendants(process_)) {
    if (!may_signal(pid)) continue;
    const std::string process_settings = read_process_settings(pid);
    const std::string folder = fmt::format("/proc/{}/task", pid);
    for (const std::int64_t thread : list_numbers(folder)) {
      const auto stat = read_stat(fmt::format("{}/{}/stat", folder, thread));
      const auto status = read_proc(fmt::format("{}/{}/status", folder, thread), 2 * k_page);
      const auto state = status ? parse_thread_status(*status) : std::nullopt;
      if (!state || stat.empty() || is_kernel_worker(stat)) continue;
      // One that waits in the kernel stops before it runs again; one that has ended never does.
      if (std::string_view("DZX").find(stat[k_state]) != std::string_view::npos) continue;
      threads[{pid, thread}] = {*state, process_settings + thread_settings(*status, stat, thread)};
    }
  }
  return threads;
}

// Returns what happened to the stopped processes since their threads were read: none, one ran, or
// settings changed.
StoppedTree::Change StoppedTree::find_change() const {
  const Threads threads_now = read_threads();
  for (const auto& [id, thread] : threads_now) {
    const auto earlier = threads_.find(id);
    // A thread that waited in the kernel was not seen before.
    if (!thread.state.is_stopped) return Change::ran;
    if (earlier != threads_.end() && earlier->second.state != thread.state) return Change::ran;
  }
  for (const auto& [id, thread] : threads_) {
    const auto match = threads_now.find(id);
    if (match == threads_now.end()) return Change::ran;
    if (match->second.settings != thread.settings) return Change::settings;
  }
  return Change::none;
}

bool can_see_rest() {
#ifdef __linux__
  const auto status = read_proc("/proc/thread-self/status", 2 * k_page);
  return status && parse_thread_status(*status) && read_proc("/proc/net/tcp", 1).has_value();
#else
  return false;
#endif
}

std::optional<SharedPage> SharedPage::open(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!file.open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size < static_cast<off_t>(k_page)) {
    return std::nullopt;
  }
  void* page = mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return page == MAP_FAILED ? std::nullopt : std::optional(SharedPage(page));
}

SharedPage::~SharedPage() {
  if (page_ != nullptr) munmap(page_, k_page);
}

std::string_view SharedPage::bytes() const { return {static_cast<const char*>(page_), k_page}; }

std::uint32_t SharedPage::get(std::size_t at) const {
  return __atomic_load_n(static_cast<const std::uint32_t*>(page_) + at / 4, __ATOMIC_ACQUIRE);
}

void SharedPage::set(std::size_t at, std::uint32_t value) {
  __atomic_store_n(static_cast<std::uint32_t*>(page_) + at / 4, value, __ATOMIC_RELEASE);
}

void SharedPage::set_and_wake(std::size_t at, std::uint32_t value) {
  set(at, value);
#ifdef __linux__
  syscall(SYS_futex, static_cast<std::uint32_t*>(page_) + at / 4, FUTEX_WAKE, INT_MAX, nullptr,
          nullptr, 0);
#endif
}

}  // namespace weir::sys
