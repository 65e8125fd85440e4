// What macOS says of the machine's health: swap by sysctl(3), thermal pressure by notify(3), the
// battery by IOKit's power sources. Built, not run.
#include <cstdlib>

#include <dlfcn.h>
#include <libkern/OSThermalNotification.h>
#include <sys/sysctl.h>

#include "gate/sys/apple_facts.hpp"
#include "gate/sys/apple_sysctls.hpp"
#include "gate/sys/machine_health.hpp"

// Of <notify.h>, which the cross compiler's headers lack; part of libSystem.
extern "C" std::uint32_t notify_register_check(const char* name, int* token);
extern "C" std::uint32_t notify_get_state(int token, std::uint64_t* state);
extern "C" std::uint32_t notify_cancel(int token);

namespace weir::sys {
namespace {

std::optional<std::uint64_t> thermal_pressure() {
  int token = 0;
  if (notify_register_check(kOSThermalNotificationPressureLevelName, &token) != 0) {
    return std::nullopt;
  }
  std::uint64_t level = 0;
  const bool known = notify_get_state(token, &level) == 0;
  notify_cancel(token);
  return known ? std::optional(level) : std::nullopt;
}

// Opened, not linked: doctor alone asks, and a Mac without it loses nothing else.
std::optional<double> battery_seconds() {
  void* const kit = dlopen("/System/Library/Frameworks/IOKit.framework/IOKit", RTLD_LAZY);
  if (kit == nullptr) return std::nullopt;
  auto* const estimate = reinterpret_cast<double (*)()>(dlsym(kit, "IOPSGetTimeRemainingEstimate"));
  return estimate == nullptr ? std::nullopt : std::optional(estimate());
}

}  // namespace

MachineHealth read_machine_health(const Files& /*files*/) {
  AppleReadings readings;
  readings.thermal_pressure = thermal_pressure();
  readings.battery_seconds = battery_seconds();
  xsw_usage swap{};
  std::size_t size = sizeof swap;
  if (sysctlbyname("vm.swapusage", &swap, &size, nullptr, 0) == 0) {
    readings.swap_total = static_cast<std::int64_t>(swap.xsu_total);
    readings.swap_used = static_cast<std::int64_t>(swap.xsu_used);
  }
  const RealMachineLoad load;
  readings.memory_available = load.memory_available();
  readings.load = load.load_average();
  return apple_health(real_sysctls(), readings);
}

}  // namespace weir::sys
