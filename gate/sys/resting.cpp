#include "gate/sys/resting.hpp"

#include <algorithm>
#include <charconv>
#include <climits>

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

// The beginning of a file; nothing where it cannot be read: what it was of may have ended.
std::optional<std::string> read_proc(const std::string& path, std::size_t most) {
  auto text = RealFiles().read_prefix(path, most);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// Entries of a folder whose names are numbers.
std::vector<std::int64_t> numbers_in(const std::string& path) {
  std::vector<std::int64_t> numbers;
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return numbers;
  while (const dirent* entry = readdir(folder)) {
    if (const auto number = text::to_int(entry->d_name)) numbers.push_back(*number);
  }
  closedir(folder);
  return numbers;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words = text::split(line, ' ');
  std::erase(words, "");
  return words;
}

// A word of /proc/PID/stat, by its place behind the name, which is in brackets and may hold
// anything.
constexpr std::size_t k_parent = 1, k_group = 2, k_resident_pages = 21;
std::optional<std::int64_t> of_stat(const std::string& proc, std::int64_t process,
                                    std::size_t place) {
  const auto stat = read_proc(fmt::format("{}/{}/stat", proc, process), k_page);
  if (!stat) return std::nullopt;
  const std::size_t name_ends = stat->rfind(')');
  if (name_ends == std::string::npos) return std::nullopt;
  const auto words = words_of(text::trim(std::string_view(*stat).substr(name_ends + 1)));
  return words.size() <= place ? std::nullopt : text::to_int(words[place]);
}

std::optional<std::uint64_t> hexadecimal(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// Of "0100007F:1F90".
std::optional<std::uint64_t> behind_colon(std::string_view word) {
  const std::size_t colon = word.find(':');
  return colon == std::string_view::npos ? std::nullopt : hexadecimal(word.substr(colon + 1));
}

}  // namespace

std::optional<ThreadState> parse_thread_status(std::string_view text) {
  ThreadState state;
  int found = 0;
  for (const std::string& line : text::lines(text)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name = std::string_view(line).substr(0, colon);
    const std::string_view value = text::trim(std::string_view(line).substr(colon + 1));
    if (name == "State") {
      state.sleeps = value.starts_with('S');
      ++found;
    } else if (name == "voluntary_ctxt_switches" || name == "nonvoluntary_ctxt_switches") {
      const auto count = text::to_int(value);
      if (!count || *count < 0) return std::nullopt;
      state.switches += static_cast<std::uint64_t>(*count);
      ++found;
    }
  }
  return found == 3 ? std::optional(state) : std::nullopt;
}

void add_traffic(std::string_view text, int port, PortTraffic& traffic) {
  constexpr std::uint64_t k_established = 1;
  constexpr std::size_t k_local = 1, k_remote = 2, k_state = 3, k_queues = 4, k_inode = 9;
  for (const std::string& line : text::lines(text)) {
    const auto words = words_of(line);
    if (words.size() <= k_inode || hexadecimal(words[k_state]) != k_established) continue;
    const std::string_view queues = words[k_queues];
    const auto to_send = hexadecimal(queues.substr(0, queues.find(':')));
    const auto to_read = behind_colon(queues);
    if (behind_colon(words[k_local]) == static_cast<std::uint64_t>(port)) {
      ++traffic.connections;
      // One that waits to be accepted belongs to no open file yet.
      if (to_read != 0 || words[k_inode] == std::string_view("0")) ++traffic.unread;
    } else if (behind_colon(words[k_remote]) == static_cast<std::uint64_t>(port) && to_send != 0) {
      ++traffic.unsent;
    }
  }
}

Resting::Resting(std::span<const std::int64_t> processes, std::string proc)
    : proc_(std::move(proc)) {
  for (const std::int64_t process : processes) {
    if (const auto group = of_stat(proc_, process, k_group)) groups_.push_back(*group);
  }
  processes_ = members();
}

std::vector<std::int64_t> Resting::members() const {
  std::vector<std::int64_t> found;
  for (const std::int64_t process : numbers_in(proc_)) {
    const auto group = of_stat(proc_, process, k_group);
    if (group && std::ranges::count(groups_, *group) > 0) found.push_back(process);
  }
  return found;
}

bool Resting::rest() {
  Threads now;
  awake_.clear();
  for (const std::int64_t process : processes_) {
    const std::string folder = fmt::format("{}/{}/task", proc_, process);
    for (const std::int64_t thread : numbers_in(folder)) {
      const auto status = read_proc(fmt::format("{}/{}/status", folder, thread), 2 * k_page);
      const auto state = status ? parse_thread_status(*status) : std::nullopt;
      if (!state) continue;  // it has ended meanwhile
      now[{process, thread}] = *state;
      if (state->sleeps) asleep_.insert({process, thread});
      const auto before = before_.find({process, thread});
      if (state->sleeps && before != before_.end() && before->second == *state) continue;
      if (awake_.empty()) awake_ = fmt::format("thread {} of process {}", thread, process);
    }
  }
  const bool same = now == before_;
  before_ = std::move(now);
  if (before_.empty()) return false;
  const bool round_is_over = std::ranges::all_of(
      before_, [&](const auto& thread) { return asleep_.contains(thread.first); });
  if (round_is_over) {
    asleep_.clear();
    ++rounds_;
  }
  return (same && awake_.empty()) || rounds_ >= k_rounds;
}

void Resting::begin_again() {
  asleep_.clear();
  rounds_ = 0;
}

std::optional<PortTraffic> Resting::traffic(int port) const {
  constexpr std::size_t k_most = std::size_t{16} << 20;
  PortTraffic traffic;
  bool any = false;
  for (const char* name : {"/net/tcp", "/net/tcp6"}) {
    const auto text = read_proc(proc_ + name, k_most);
    if (!text) continue;
    any = true;
    add_traffic(*text, port, traffic);
  }
  return any ? std::optional(traffic) : std::nullopt;
}

std::optional<std::int64_t> resident_bytes_below(std::int64_t process, const std::string& proc) {
  std::multimap<std::int64_t, std::int64_t> children;
  for (const std::int64_t one : numbers_in(proc)) {
    if (const auto parent = of_stat(proc, one, k_parent)) children.emplace(*parent, one);
  }
  std::int64_t pages = 0;
  std::vector<std::int64_t> left{process};
  std::set<std::int64_t> seen;
  while (!left.empty()) {
    const std::int64_t one = left.back();
    left.pop_back();
    if (!seen.insert(one).second) continue;
    if (one != process) pages += of_stat(proc, one, k_resident_pages).value_or(0);
    const auto [begin, end] = children.equal_range(one);
    for (auto child = begin; child != end; ++child) left.push_back(child->second);
  }
  return pages == 0 ? std::nullopt : std::optional(pages * sysconf(_SC_PAGESIZE));
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
