// What Linux says of the machine: /proc, /etc/os-release, the affinity mask, cgroups.
#include <algorithm>
#include <cmath>
#include <utility>

#include <sched.h>
#include <sys/utsname.h>

#include "gate/base/text.hpp"
#include "gate/sys/machine.hpp"

namespace weir::sys {
namespace {

constexpr std::uint64_t k_proc_limit = std::uint64_t{16} << 20;

std::string read_or_empty(const Files& files, const std::string& path) {
  return files.read_prefix(path, k_proc_limit).value_or("");
}

std::int64_t allowed_processors(std::int64_t otherwise) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return otherwise;
}

// The tightest limit of the cgroups that this process is in, as seen from here.
std::optional<double> cgroup_processors(const Files& files) {
  std::string path;
  for (const std::string& line : text::lines(read_or_empty(files, "/proc/self/cgroup"))) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  std::optional<double> tightest;
  for (;;) {
    const auto here = parse_cpu_max(read_or_empty(files, "/sys/fs/cgroup" + path + "/cpu.max"));
    if (here && (!tightest || *here < *tightest)) tightest = here;
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return tightest;
    path.resize(slash);
  }
}

}  // namespace

Machine read_machine(const Files& files) {
  Machine machine;
  utsname system{};
  uname(&system);
  const CpuFacts facts = parse_cpuinfo(read_or_empty(files, "/proc/cpuinfo"), system.machine);
  machine.cpu_model = facts.model;
  machine.physical_cores = facts.physical_cores;
  machine.logical_cores = facts.logical_cores;
  machine.cpu_class = facts.cpu_class;
  machine.memory_bytes =
      parse_meminfo(read_or_empty(files, "/proc/meminfo"), "MemTotal").value_or(0);
  std::string release = parse_os_release(read_or_empty(files, "/etc/os-release"));
  machine.os_release = release.empty() ? "linux" : std::move(release);
  // Two threads of one core are not two cores: limits count threads.
  const double threads_a_core =
      static_cast<double>(machine.logical_cores) / static_cast<double>(machine.physical_cores);
  double usable = static_cast<double>(allowed_processors(machine.logical_cores)) / threads_a_core;
  if (const auto limit = cgroup_processors(files)) usable = std::min(usable, *limit);
  machine.usable_cores =
      std::clamp<std::int64_t>(std::llround(std::ceil(usable)), 1, machine.physical_cores);
  return machine;
}

std::optional<CpuTicks> RealMachineLoad::ticks() const {
  const auto text = RealFiles().read_prefix("/proc/stat", 4096);
  return text ? parse_stat(*text) : std::nullopt;
}

std::optional<std::int64_t> RealMachineLoad::memory_available() const {
  const auto text = RealFiles().read_prefix("/proc/meminfo", 65536);
  return text ? parse_meminfo(*text, "MemAvailable") : std::nullopt;
}

}  // namespace weir::sys
