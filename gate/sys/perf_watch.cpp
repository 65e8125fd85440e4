// Finds performance events among the descriptors and mappings of processes, from /proc.
#include "gate/sys/perf_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>

#include <fcntl.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "gate/base/text.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/resting.hpp"

namespace weir::sys {
namespace {

constexpr std::string_view k_perf_event = "anon_inode:[perf_event]";

// Returns what a link of /proc leads to; "" where that cannot be seen.
std::string read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  return {target.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

// Returns a descriptor of this process for that of another one; none where weir may not have it.
Fd borrow_descriptor([[maybe_unused]] std::int64_t process, [[maybe_unused]] std::int64_t number) {
#if defined(__linux__) && defined(SYS_pidfd_getfd)
  const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!handle.open()) return Fd();
  return Fd(static_cast<int>(syscall(SYS_pidfd_getfd, handle.get(), number, 0)));
#else
  return Fd();
#endif
}

// Returns true if a thread has the descriptors of its process, as it does unless it asked for its
// own (unshare).
bool share_descriptors([[maybe_unused]] std::int64_t process,
                       [[maybe_unused]] std::int64_t thread) {
#ifdef __linux__
  constexpr int k_files = 2;  // KCMP_FILES
  return syscall(SYS_kcmp, process, thread, k_files, 0, 0) == 0;
#else
  return true;
#endif
}

// Returns the bytes of a counter, and of those in its group.
std::string read_counters(const Fd& event) {
  std::array<char, 4096> bytes{};
  const ssize_t count = read(event.get(), bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

}  // namespace

PerfWatch::PerfWatch(std::int64_t process) {
  constexpr std::uint64_t k_max_bytes = std::uint64_t{64} << 20;
  const RealFiles files;
  for (const std::int64_t pid : list_descendants(process)) {
    if (kill(static_cast<pid_t>(pid), 0) != 0) continue;  // of another user
    const std::string folder = fmt::format("/proc/{}", pid);
    const auto threads = files.list(folder + "/task");
    for (const std::string& thread : threads.value_or(std::vector<std::string>())) {
      const auto number = text::to_int(thread);
      if (number && (*number == pid || !share_descriptors(pid, *number)))
        add_descriptors(pid, fmt::format("{}/task/{}/fd", folder, thread));
    }
    const auto mappings = files.read(folder + "/maps", k_max_bytes);
    if (mappings && mappings->find(k_perf_event) != std::string::npos) has_events_ = true;
  }
}

// Finds the perf events (hardware counters) among a process's descriptors, borrows them, and reads
// their counters. `folder` is /proc/PID/fd.
void PerfWatch::add_descriptors(std::int64_t process, const std::string& folder) {
  const auto names = RealFiles().list(folder);
  if (!names) {
    // A process can hide its descriptors (PR_SET_DUMPABLE). One that has ended has none.
    const Fd folder_fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    has_events_ = has_events_ || (!folder_fd.open() && errno == EACCES);
    return;
  }
  for (const std::string& name : *names) {
    if (read_link(fmt::format("{}/{}", folder, name)) != k_perf_event) continue;
    has_events_ = true;
    const auto number = text::to_int(name);
    Fd descriptor = number ? borrow_descriptor(process, *number) : Fd();
    if (!descriptor.open()) continue;
    std::string reading = read_counters(descriptor);
    events_.push_back({std::move(descriptor), std::move(reading)});
  }
}

bool PerfWatch::has_counted() const {
  return std::ranges::any_of(
      events_, [](const Event& event) { return read_counters(event.descriptor) != event.reading; });
}

}  // namespace weir::sys
