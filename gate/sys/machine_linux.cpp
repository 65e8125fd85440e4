// What Linux says of the machine: /proc, /etc/os-release, the affinity mask, cgroups.
#include <algorithm>
#include <cmath>

#include <sched.h>
#include <sys/utsname.h>

#include "gate/base/text.hpp"
#include "gate/sys/machine_health.hpp"

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

// Calls visit(folder) from a cgroup up to the root: "/a/b", "/a", "".
template <class Visit>
void upwards(std::string path, const Visit& visit) {
  for (;;) {
    visit(path);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

// The tightest limit of the cgroups that this process is in, as seen from here.
std::optional<double> cgroup_processors(const Files& files) {
  std::string path;
  for (const std::string& line : text::lines(read_or_empty(files, "/proc/self/cgroup"))) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  std::optional<double> tightest;
  upwards(path, [&](const std::string& at) {
    const auto here = parse_cpu_max(read_or_empty(files, "/sys/fs/cgroup" + at + "/cpu.max"));
    if (here && (!tightest || *here < *tightest)) tightest = here;
  });
  return tightest;
}

}  // namespace

Machine read_machine(const Files& files) {
  utsname system{};
  uname(&system);
  Machine machine = parse_cpuinfo(read_or_empty(files, "/proc/cpuinfo"), system.machine);
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

namespace {

constexpr std::size_t k_most_entries = 4096;

// One word or line of /sys; nothing when it is not there.
std::optional<std::string> word(const Files& files, const std::string& path) {
  const auto content = files.read_prefix(path, 4096);
  if (!content) return std::nullopt;
  return text::printable(text::trim(*content));
}

std::optional<std::int64_t> whole(const Files& files, const std::string& path) {
  const auto content = word(files, path);
  return content ? text::to_int(*content) : std::nullopt;
}

std::vector<std::string> names(const Files& files, const std::string& folder,
                               std::string_view prefix) {
  std::vector<std::string> found;
  for (std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
    if (name.starts_with(prefix) && found.size() < k_most_entries) found.push_back(std::move(name));
  }
  return found;
}

bool is_number(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

void read_frequency(const Files& files, MachineHealth& health) {
  const std::string cpus = "/sys/devices/system/cpu";
  for (const std::string& cpu : names(files, cpus, "cpu")) {
    if (!is_number(std::string_view(cpu).substr(3))) continue;
    if (const auto governor = word(files, cpus + "/" + cpu + "/cpufreq/scaling_governor")) {
      ++health.governors[*governor];
    }
    if (const auto preference =
            word(files, cpus + "/" + cpu + "/cpufreq/energy_performance_preference")) {
      ++health.preferences[*preference];
    }
    if (const auto times =
            whole(files, cpus + "/" + cpu + "/thermal_throttle/core_throttle_count")) {
      health.slowed_by_heat = std::max(health.slowed_by_heat.value_or(0), *times);
    }
  }
  if (const auto no_turbo = whole(files, cpus + "/intel_pstate/no_turbo")) {
    health.turbo = *no_turbo == 0;
  } else if (const auto boost = whole(files, cpus + "/cpufreq/boost")) {
    health.turbo = *boost != 0;
  }
  if (const auto smt = whole(files, cpus + "/smt/active")) health.smt = *smt != 0;
}

void read_load(const Files& files, MachineHealth& health) {
  if (const auto load = word(files, "/proc/loadavg")) {
    health.load = text::to_double(text::split(*load, ' ').front());
  }
  const auto pressure = [&](const char* of) { return parse_pressure(read_or_empty(files, of)); };
  health.cpu_wait = pressure("/proc/pressure/cpu");
  health.io_wait = pressure("/proc/pressure/io");
  const std::string memory = read_or_empty(files, "/proc/meminfo");
  health.memory_bytes = parse_meminfo(memory, "MemTotal");
  health.memory_available = parse_meminfo(memory, "MemAvailable");
  health.swap_total = parse_meminfo(memory, "SwapTotal");
  if (const auto unused = parse_meminfo(memory, "SwapFree"); unused && health.swap_total) {
    health.swap_used = std::max<std::int64_t>(0, *health.swap_total - *unused);
  }
}

// The tightest limit from this process's own group up to the root.
void read_quota(const Files& files, MachineHealth& health) {
  const auto take = [&](std::optional<double> quota, const std::string& folder) {
    if (!quota || (health.quota && *health.quota <= *quota)) return;
    health.quota = quota;
    health.throttled = parse_throttled(read_or_empty(files, folder + "/cpu.stat"));
  };
  for (const std::string& line : text::lines(read_or_empty(files, "/proc/self/cgroup"))) {
    const std::vector<std::string> parts = text::split(line, ':');
    if (parts.size() != 3 || parts[2].find("..") != std::string::npos) continue;
    health.looked_for_quota = true;
    const auto controllers = text::split(parts[1], ',');
    const std::string path = parts[2] == "/" ? "" : parts[2];
    if (parts[0] == "0") {
      upwards(path, [&](const std::string& at) {
        const std::string folder = "/sys/fs/cgroup" + at;
        take(parse_cpu_max(read_or_empty(files, folder + "/cpu.max")), folder);
      });
    } else if (std::ranges::find(controllers, "cpu") != controllers.end()) {
      upwards(path, [&](const std::string& at) {
        const std::string folder = "/sys/fs/cgroup/" + parts[1] + at;
        const auto quota = whole(files, folder + "/cpu.cfs_quota_us");
        const auto period = whole(files, folder + "/cpu.cfs_period_us");
        if (!quota || !period || *quota <= 0 || *period <= 0) return;
        take(static_cast<double>(*quota) / static_cast<double>(*period), folder);
      });
    }
  }
}

void read_virtual(const Files& files, MachineHealth& health) {
  const std::string cpus = read_or_empty(files, "/proc/cpuinfo");
  for (const std::string& line : text::lines(cpus)) {
    if (!line.starts_with("flags")) continue;
    const auto flags = text::split(line, ' ');
    health.virtual_machine = std::ranges::find(flags, "hypervisor") != flags.end();
    break;
  }
  const std::string vendor = word(files, "/sys/class/dmi/id/sys_vendor").value_or("");
  const std::string product = word(files, "/sys/class/dmi/id/product_name").value_or("");
  constexpr std::pair<const char*, const char*> k_known[] = {{"QEMU", "KVM"},
                                                             {"KVM", "KVM"},
                                                             {"Amazon EC2", "Amazon EC2"},
                                                             {"Google", "Google Cloud"},
                                                             {"VMware", "VMware"},
                                                             {"VirtualBox", "VirtualBox"},
                                                             {"Virtual Machine", "Hyper-V"},
                                                             {"Xen", "Xen"},
                                                             {"Firecracker", "Firecracker"},
                                                             {"Parallels", "Parallels"}};
  const bool metal = product.find("metal") != std::string::npos;
  for (const auto& [mark, name] : k_known) {
    if (!metal && (vendor + " " + product).find(mark) != std::string::npos) {
      // A physical Google or Amazon machine has no hypervisor flag; Arm has none at all.
      health.virtual_machine = health.virtual_machine || cpus.find("flags") == std::string::npos;
      if (health.virtual_machine) health.virtual_machine_name = name;
      return;
    }
  }
}

void read_heat(const Files& files, MachineHealth& health) {
  const std::string zones = "/sys/class/thermal";
  for (const std::string& zone : names(files, zones, "thermal_zone")) {
    const auto milli = whole(files, zones + "/" + zone + "/temp");
    // Sensors that are not there answer 0, or absurdly.
    if (!milli || *milli < 1000 || *milli > 150'000) continue;
    const double degrees = static_cast<double>(*milli) / 1000;
    health.hottest_zone = std::max(health.hottest_zone.value_or(degrees), degrees);
    for (int trip = 0; trip < 16; ++trip) {
      const std::string at = fmt::format("{}/{}/trip_point_{}", zones, zone, trip);
      const auto type = word(files, at + "_type");
      if (!type) break;
      const auto limit = whole(files, at + "_temp");
      // Below "passive" fans run faster; from there on clocks go down.
      const bool slows = *type == "passive" || *type == "hot" || *type == "critical";
      if (slows && limit && *limit > 1000 && *milli >= *limit) {
        health.hot_zone = fmt::format(
            "{} at {:.0f} °C", word(files, zones + "/" + zone + "/type").value_or(zone), degrees);
      }
    }
  }
}

void read_power(const Files& files, MachineHealth& health) {
  const std::string supplies = "/sys/class/power_supply";
  for (const std::string& supply : names(files, supplies, "")) {
    const auto type = word(files, supplies + "/" + supply + "/type");
    // A mouse has a battery as well.
    if (type != "Battery" || word(files, supplies + "/" + supply + "/scope") == "Device") continue;
    const bool draining = word(files, supplies + "/" + supply + "/status") == "Discharging";
    health.on_battery = health.on_battery.value_or(false) || draining;
    if (const auto left = whole(files, supplies + "/" + supply + "/capacity")) {
      health.battery_percent = static_cast<int>(std::clamp<std::int64_t>(*left, 0, 100));
    }
  }
  health.power_profile = word(files, "/sys/firmware/acpi/platform_profile").value_or("");
}

// amdgpu and Intel's drivers say it in /sys.
void read_gpus(const Files& files, MachineHealth& health) {
  const std::string cards = "/sys/class/drm";
  for (const std::string& card : names(files, cards, "card")) {
    if (!is_number(std::string_view(card).substr(4))) continue;
    const std::string device = cards + "/" + card + "/device/";
    const auto level = word(files, device + "power_dpm_force_performance_level");
    if (!level) continue;
    GpuHealth gpu;
    gpu.name = "AMD GPU (" + card + ")";
    gpu.clocks_fixed = *level != "auto" && *level != "low";
    if (const auto busy = whole(files, device + "gpu_busy_percent")) {
      gpu.busy = static_cast<double>(*busy) / 100;
    }
    for (const std::string& monitor : names(files, device + "hwmon", "hwmon")) {
      const std::string at = fmt::format("{}hwmon/{}/power1_cap", device, monitor);
      const auto cap = whole(files, at);
      const auto usual = whole(files, at + "_default");
      if (cap && *cap > 0) gpu.power_cap_watts = static_cast<double>(*cap) / 1e6;
      if (usual && *usual > 0) gpu.power_default_watts = static_cast<double>(*usual) / 1e6;
    }
    health.gpus.push_back(std::move(gpu));
  }
}

}  // namespace

MachineHealth read_machine_health(const Files& files) {
  MachineHealth health;
  health.processors = read_machine(files).logical_cores;
  read_frequency(files, health);
  read_load(files, health);
  read_quota(files, health);
  read_virtual(files, health);
  read_heat(files, health);
  read_power(files, health);
  read_gpus(files, health);
  return health;
}

}  // namespace weir::sys
