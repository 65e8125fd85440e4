// Reads the machine's facts and health on macOS: sysctlbyname(3), host_statistics(3), thermal
// pressure by notify(3), the battery by IOKit's power sources. Built, not run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <dlfcn.h>
#include <libkern/OSThermalNotification.h>
#include <mach/mach.h>
#include <sys/sysctl.h>
#include <sys/utsname.h>

#include "gate/sys/apple_facts.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/machine_health.hpp"

// Declared in <notify.h>, which the cross compiler's headers lack; part of libSystem.
extern "C" std::uint32_t notify_register_check(const char* name, int* token);
extern "C" std::uint32_t notify_get_state(int token, std::uint64_t* state);
extern "C" std::uint32_t notify_cancel(int token);

namespace weir::sys {
namespace {

// Returns functions that read a sysctl by its name: as a number (nothing if there is none), or as
// text ("").
Sysctls real_sysctls() {
  return {[](const char* name) -> std::optional<std::int64_t> {
            std::int64_t number = 0;  // narrower values fill the lower half on both architectures
            std::size_t size = sizeof number;
            if (sysctlbyname(name, &number, &size, nullptr, 0) != 0) return std::nullopt;
            return number;
          },
          [](const char* name) -> std::string {
            char text[256] = {};
            std::size_t size = sizeof text - 1;
            return sysctlbyname(name, text, &size, nullptr, 0) == 0 ? std::string(text)
                                                                    : std::string();
          }};
}

std::optional<std::uint64_t> thermal_pressure() {
  int token = 0;
  if (notify_register_check(kOSThermalNotificationPressureLevelName, &token) != 0) {
    return std::nullopt;
  }
  std::uint64_t level = 0;
  const bool is_known = notify_get_state(token, &level) == 0;
  notify_cancel(token);
  return is_known ? std::optional(level) : std::nullopt;
}

// Opens IOKit at run time: only doctor needs it, and all else works without it.
std::optional<double> battery_seconds() {
  void* const kit = dlopen("/System/Library/Frameworks/IOKit.framework/IOKit", RTLD_LAZY);
  if (kit == nullptr) return std::nullopt;
  auto* const estimate = reinterpret_cast<double (*)()>(dlsym(kit, "IOPSGetTimeRemainingEstimate"));
  return estimate == nullptr ? std::nullopt : std::optional(estimate());
}

}  // namespace

Machine read_machine(const Files& /*files*/) {
  utsname system{};
  uname(&system);
  return apple_machine(real_sysctls(), system.machine);
}

std::optional<CpuTicks> RealMachineLoad::ticks() const {
  host_cpu_load_info load{};
  mach_msg_type_number_t count = HOST_CPU_LOAD_INFO_COUNT;
  const mach_port_t host = mach_host_self();
  const kern_return_t answer =
      host_statistics(host, HOST_CPU_LOAD_INFO, reinterpret_cast<host_info_t>(&load), &count);
  mach_port_deallocate(mach_task_self(), host);
  if (answer != KERN_SUCCESS) return std::nullopt;
  return apple_ticks(load.cpu_ticks[CPU_STATE_USER], load.cpu_ticks[CPU_STATE_SYSTEM],
                     load.cpu_ticks[CPU_STATE_IDLE], load.cpu_ticks[CPU_STATE_NICE]);
}

// Returns the bytes of memory that programs may still get; nothing if the system does not tell.
std::optional<std::int64_t> RealMachineLoad::memory_available() const {
  vm_statistics64 pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = mach_host_self();
  vm_size_t page_bytes = 0;
  const bool is_known =
      host_page_size(host, &page_bytes) == KERN_SUCCESS &&
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) ==
          KERN_SUCCESS;
  mach_port_deallocate(mach_task_self(), host);
  if (!is_known) return std::nullopt;
  return apple_available(pages.free_count, pages.inactive_count, page_bytes);
}

// Reads what may disturb measurements on this Mac: heat, battery, swap, memory and load.
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
