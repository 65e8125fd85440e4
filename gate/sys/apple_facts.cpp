// Turns readings of a Mac into a machine's facts and health.
#include "gate/sys/apple_facts.hpp"

#include <algorithm>

#include "gate/base/text.hpp"

namespace weir::sys {
namespace {

// IOPSGetTimeRemainingEstimate() returns this if the Mac is not on battery.
constexpr double k_on_the_mains = -2;

std::int64_t at_least_one(std::optional<std::int64_t> number) {
  return std::max<std::int64_t>(1, number.value_or(1));
}

// Names a level of OSThermalNotification.h.
std::string pressure_text(std::uint64_t level) {
  constexpr const char* k_levels[] = {"no", "moderate", "heavy", "critical", "critical"};
  return k_levels[std::min<std::uint64_t>(level, std::size(k_levels) - 1)];
}

}  // namespace

// Returns the processor, memory and system of a Mac. `architecture` is that of uname(3): "arm64".
Machine apple_machine(const Sysctls& sysctls, std::string_view architecture) {
  Machine machine;
  machine.cpu_model = text::printable(sysctls.text("machdep.cpu.brand_string"));
  if (machine.cpu_model.empty()) machine.cpu_model = text::printable(architecture);
  machine.logical_cores = at_least_one(sysctls.number("hw.logicalcpu"));
  machine.physical_cores =
      std::min(at_least_one(sysctls.number("hw.physicalcpu")), machine.logical_cores);
  machine.usable_cores = machine.physical_cores;  // macOS has neither masks nor quotas
  machine.memory_bytes = std::max<std::int64_t>(0, sysctls.number("hw.memsize").value_or(0));
  machine.os_release =
      text::printable(text::trim(fmt::format("macos {}", sysctls.text("kern.osproductversion"))));
  machine.cpu_class = architecture == "arm64" ? "cpu-apple-arm64" : "cpu-x86-64";
  return machine;
}

CpuTicks apple_ticks(std::uint64_t user, std::uint64_t system, std::uint64_t idle,
                     std::uint64_t nice) {
  CpuTicks ticks;
  ticks.total = user + system + idle + nice;
  ticks.idle = idle;
  ticks.tells_steal = false;
  return ticks;
}

std::int64_t apple_available(std::uint64_t free_pages, std::uint64_t inactive_pages,
                             std::uint64_t page_bytes) {
  return static_cast<std::int64_t>((free_pages + inactive_pages) * page_bytes);
}

// Returns what disturbs measurements on a Mac: load, swap, heat and battery, from readings and
// sysctls.
MachineHealth apple_health(const Sysctls& sysctls, const AppleReadings& readings) {
  MachineHealth health;
  health.macos = true;
  health.processors = at_least_one(sysctls.number("hw.logicalcpu"));
  health.load = readings.load;
  health.memory_bytes = sysctls.number("hw.memsize");
  health.memory_available = readings.memory_available;
  health.swap_total = readings.swap_total;
  health.swap_used = readings.swap_used;
  if (sysctls.number("kern.hv_vmm_present").value_or(0) != 0) health.virtual_machine = true;
  if (readings.thermal_pressure) {
    health.tells_heat = true;
    if (*readings.thermal_pressure > 0) {
      health.hot_zone =
          fmt::format("{} thermal pressure", pressure_text(*readings.thermal_pressure));
    }
  }
  if (readings.battery_seconds) health.on_battery = *readings.battery_seconds != k_on_the_mains;
  return health;
}

}  // namespace weir::sys
