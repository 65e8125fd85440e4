// Reads the machine's facts and health on Linux: /proc, /sys, os-release, affinity and cgroups.
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

std::int64_t allowed_processors(std::int64_t fallback) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return fallback;
}

// Calls visit(folder) from a cgroup up to the root: "/a/b", "/a", "".
template <class Visit>
void visit_ancestors(std::string path, const Visit& visit) {
  for (;;) {
    visit(path);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

// Returns the lowest CPU limit of this process's cgroups (version 2), in processors; nothing if
// none is visible here.
std::optional<double> cgroup_processors(const Files& files) {
  std::string path;
  for (const std::string& line : text::lines(read_or_empty(files, "/proc/self/cgroup"))) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  std::optional<double> tightest;
  visit_ancestors(path, [&](const std::string& group) {
    const auto limit = parse_cpu_max(read_or_empty(files, "/sys/fs/cgroup" + group + "/cpu.max"));
    if (limit && (!tightest || *limit < *tightest)) tightest = limit;
  });
  return tightest;
}

}  // namespace

// Returns the facts of this machine that times and counts depend on: CPU, usable cores, memory and
// system.
Machine read_machine(const Files& files) {
  utsname system{};
  uname(&system);
  Machine machine = parse_cpuinfo(read_or_empty(files, "/proc/cpuinfo"), system.machine);
  machine.memory_bytes =
      parse_meminfo(read_or_empty(files, "/proc/meminfo"), "MemTotal").value_or(0);
  std::string release = parse_os_release(read_or_empty(files, "/etc/os-release"));
  machine.os_release = release.empty() ? "linux" : std::move(release);
  // Limits count threads, but two threads of one core are not two cores.
  const double threads_per_core =
      static_cast<double>(machine.logical_cores) / static_cast<double>(machine.physical_cores);
  double usable = static_cast<double>(allowed_processors(machine.logical_cores)) / threads_per_core;
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

constexpr std::size_t k_max_entries = 4096;

// Reads one word or line of /sys; nothing if it is not there.
std::optional<std::string> read_word(const Files& files, const std::string& path) {
  const auto content = files.read_prefix(path, 4096);
  if (!content) return std::nullopt;
  return text::printable(text::trim(*content));
}

std::optional<std::int64_t> read_number(const Files& files, const std::string& path) {
  const auto content = read_word(files, path);
  return content ? text::to_int(*content) : std::nullopt;
}

std::vector<std::string> list_names(const Files& files, const std::string& folder,
                                    std::string_view prefix) {
  std::vector<std::string> names;
  for (std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
    if (name.starts_with(prefix) && names.size() < k_max_entries) names.push_back(std::move(name));
  }
  return names;
}

// Reads what governs the clock: governors, preferences, turbo, SMT (two threads a core), and how
// often heat reduced it.
void read_frequency(const Files& files, MachineHealth& health) {
  const std::string cpus = "/sys/devices/system/cpu";
  for (const std::string& cpu : list_names(files, cpus, "cpu")) {
    if (!text::has_only_digits(std::string_view(cpu).substr(3))) continue;
    if (const auto governor = read_word(files, cpus + "/" + cpu + "/cpufreq/scaling_governor")) {
      ++health.governors[*governor];
    }
    if (const auto preference =
            read_word(files, cpus + "/" + cpu + "/cpufreq/energy_performance_preference")) {
      ++health.preferences[*preference];
    }
    if (const auto throttle_count =
            read_number(files, cpus + "/" + cpu + "/thermal_throttle/core_throttle_count")) {
      health.slowed_by_heat = std::max(health.slowed_by_heat.value_or(0), *throttle_count);
    }
  }
  if (const auto no_turbo = read_number(files, cpus + "/intel_pstate/no_turbo")) {
    health.turbo = *no_turbo == 0;
  } else if (const auto boost = read_number(files, cpus + "/cpufreq/boost")) {
    health.turbo = *boost != 0;
  }
  if (const auto smt = read_number(files, cpus + "/smt/active")) health.smt = *smt != 0;
}

// Reads the load of processors and disk, and the use of memory and swap.
void read_load(const Files& files, MachineHealth& health) {
  if (const auto load = read_word(files, "/proc/loadavg")) {
    health.load = text::to_double(text::split(*load, ' ').front());
  }
  const auto read_pressure = [&](const char* path) {
    return parse_pressure(read_or_empty(files, path));
  };
  health.cpu_wait = read_pressure("/proc/pressure/cpu");
  health.io_wait = read_pressure("/proc/pressure/io");
  const std::string memory = read_or_empty(files, "/proc/meminfo");
  health.memory_bytes = parse_meminfo(memory, "MemTotal");
  health.memory_available = parse_meminfo(memory, "MemAvailable");
  health.swap_total = parse_meminfo(memory, "SwapTotal");
  if (const auto swap_free = parse_meminfo(memory, "SwapFree"); swap_free && health.swap_total) {
    health.swap_used = std::max<std::int64_t>(0, *health.swap_total - *swap_free);
  }
}

// Finds the lowest CPU quota from this process's cgroup up to the root, of version 1 or 2, in
// processors.
void read_quota(const Files& files, MachineHealth& health) {
  const auto keep_if_lower = [&](std::optional<double> quota, const std::string& folder) {
    if (!quota || (health.quota && *health.quota <= *quota)) return;
    health.quota = quota;
    health.throttled = parse_throttled(read_or_empty(files, folder + "/cpu.stat"));
  };
  for (const std::string& line : text::lines(read_or_empty(files, "/proc/self/cgroup"))) {
    const std::vector<std::string> parts = text::split(line, ':');
    if (parts.size() != 3 || parts[2].find("..") != std::string::npos) continue;
    health.has_cgroup = true;
    const auto controllers = text::split(parts[1], ',');
    const std::string path = parts[2] == "/" ? "" : parts[2];
    if (parts[0] == "0") {
      visit_ancestors(path, [&](const std::string& group) {
        const std::string folder = "/sys/fs/cgroup" + group;
        keep_if_lower(parse_cpu_max(read_or_empty(files, folder + "/cpu.max")), folder);
      });
    } else if (std::ranges::find(controllers, "cpu") != controllers.end()) {
      visit_ancestors(path, [&](const std::string& group) {
        const std::string folder = "/sys/fs/cgroup/" + parts[1] + group;
        const auto quota = read_number(files, folder + "/cpu.cfs_quota_us");
        const auto period = read_number(files, folder + "/cpu.cfs_period_us");
        if (!quota || !period || *quota <= 0 || *period <= 0) return;
        keep_if_lower(static_cast<double>(*quota) / static_cast<double>(*period), folder);
      });
    }
  }
}

// Sets whether this is a virtual machine, and of which vendor.
void read_virtualization(const Files& files, MachineHealth& health) {
  const std::string cpus = read_or_empty(files, "/proc/cpuinfo");
  for (const std::string& line : text::lines(cpus)) {
    if (!line.starts_with("flags")) continue;
    const auto flags = text::split(line, ' ');
    health.virtual_machine = std::ranges::find(flags, "hypervisor") != flags.end();
    break;
  }
  const std::string vendor = read_word(files, "/sys/class/dmi/id/sys_vendor").value_or("");
  const std::string product = read_word(files, "/sys/class/dmi/id/product_name").value_or("");
  constexpr std::pair<const char*, const char*> k_vendors[] = {{"QEMU", "KVM"},
                                                               {"KVM", "KVM"},
                                                               {"Amazon EC2", "Amazon EC2"},
                                                               {"Google", "Google Cloud"},
                                                               {"VMware", "VMware"},
                                                               {"VirtualBox", "VirtualBox"},
                                                               {"Virtual Machine", "Hyper-V"},
                                                               {"Xen", "Xen"},
                                                               {"Firecracker", "Firecracker"},
                                                               {"Parallels", "Parallels"}};
  const bool is_metal = product.find("metal") != std::string::npos;
  for (const auto& [vendor_text, name] : k_vendors) {
    if (!is_metal && (vendor + " " + product).find(vendor_text) != std::string::npos) {
      // Physical Google and Amazon machines have no hypervisor flag; Arm CPUs have no flags at all.
      health.virtual_machine = health.virtual_machine || cpus.find("flags") == std::string::npos;
      if (health.virtual_machine) health.virtual_machine_name = name;
      return;
    }
  }
}

// Reads the highest temperature in °C, and names a zone that is so hot that the clock is reduced.
void read_temperature(const Files& files, MachineHealth& health) {
  const std::string zones = "/sys/class/thermal";
  for (const std::string& zone : list_names(files, zones, "thermal_zone")) {
    const auto millidegrees = read_number(files, zones + "/" + zone + "/temp");
    // Missing sensors read 0 or absurd values.
    if (!millidegrees || *millidegrees < 1000 || *millidegrees > 150'000) continue;
    const double degrees = static_cast<double>(*millidegrees) / 1000;
    health.hottest_zone = std::max(health.hottest_zone.value_or(degrees), degrees);
    for (int trip = 0; trip < 16; ++trip) {
      const std::string path = fmt::format("{}/{}/trip_point_{}", zones, zone, trip);
      const auto type = read_word(files, path + "_type");
      if (!type) break;
      const auto limit_millidegrees = read_number(files, path + "_temp");
      // At "active" trip points fans run faster; at these the clock goes down.
      const bool slows_clock = *type == "passive" || *type == "hot" || *type == "critical";
      if (slows_clock && limit_millidegrees && *limit_millidegrees > 1000 &&
          *millidegrees >= *limit_millidegrees) {
        health.hot_zone =
            fmt::format("{} at {:.0f} °C",
                        read_word(files, zones + "/" + zone + "/type").value_or(zone), degrees);
      }
    }
  }
}

// Reads whether the machine runs on battery, and its power profile ("" if unknown).
void read_power(const Files& files, MachineHealth& health) {
  const std::string supplies = "/sys/class/power_supply";
  for (const std::string& supply : list_names(files, supplies, "")) {
    const auto type = read_word(files, supplies + "/" + supply + "/type");
    // Skip batteries of devices such as a mouse.
    if (type != "Battery" || read_word(files, supplies + "/" + supply + "/scope") == "Device")
      continue;
    const bool is_draining = read_word(files, supplies + "/" + supply + "/status") == "Discharging";
    health.on_battery = health.on_battery.value_or(false) || is_draining;
    if (const auto percent = read_number(files, supplies + "/" + supply + "/capacity")) {
      health.battery_percent = static_cast<int>(std::clamp<std::int64_t>(*percent, 0, 100));
    }
  }
  health.power_profile = read_word(files, "/sys/firmware/acpi/platform_profile").value_or("");
}

// Reads the GPUs whose drivers (amdgpu) report load, power caps and clock in /sys.
void read_gpus(const Files& files, MachineHealth& health) {
  const std::string cards = "/sys/class/drm";
  for (const std::string& card : list_names(files, cards, "card")) {
    if (!text::has_only_digits(std::string_view(card).substr(4))) continue;
    const std::string device = cards + "/" + card + "/device/";
    const auto clock_level = read_word(files, device + "power_dpm_force_performance_level");
    if (!clock_level) continue;
    GpuHealth gpu;
    gpu.name = "AMD GPU (" + card + ")";
    gpu.clocks_fixed = *clock_level != "auto" && *clock_level != "low";
    if (const auto busy = read_number(files, device + "gpu_busy_percent")) {
      gpu.busy = static_cast<double>(*busy) / 100;
    }
    for (const std::string& monitor : list_names(files, device + "hwmon", "hwmon")) {
      const std::string path = fmt::format("{}hwmon/{}/power1_cap", device, monitor);
      const auto cap = read_number(files, path);
      const auto default_cap = read_number(files, path + "_default");
      if (cap && *cap > 0) gpu.power_cap_watts = static_cast<double>(*cap) / 1e6;
      if (default_cap && *default_cap > 0)
        gpu.power_default_watts = static_cast<double>(*default_cap) / 1e6;
    }
    health.gpus.push_back(std::move(gpu));
  }
}

}  // namespace

// Reads what may disturb measurements on this machine. Left out are its activity, which takes time
// to see, and NVIDIA's GPUs, which a program reports.
MachineHealth read_machine_health(const Files& files) {
  MachineHealth health;
  health.processors = read_machine(files).logical_cores;
  read_frequency(files, health);
  read_load(files, health);
  read_quota(files, health);
  read_virtualization(files, health);
  read_temperature(files, health);
  read_power(files, health);
  read_gpus(files, health);
  return health;
}

}  // namespace weir::sys
