// Translates macOS's own numbers (sysctl values, ticks, pages) to the facts that weir keeps.
//
// Pure: machine_macos.cpp asks the system, and tests ask anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gate/sys/machine.hpp"
#include "gate/sys/machine_health.hpp"

namespace weir::sys {

// sysctlbyname(3): nothing and "" for a name that this system does not have.
struct Sysctls {
  std::function<std::optional<std::int64_t>(const char* name)> number;
  std::function<std::string(const char* name)> text;
};

// `architecture` as uname(3) has it: "arm64".
[[nodiscard]] Machine apple_machine(const Sysctls& sysctls, std::string_view architecture);

// host_statistics(HOST_CPU_LOAD_INFO), summed over all processors. Others' time is not told.
[[nodiscard]] CpuTicks apple_ticks(std::uint64_t user, std::uint64_t system, std::uint64_t idle,
                                   std::uint64_t nice);

// Memory that programs may still get: free pages, and pages that were not used lately.
[[nodiscard]] std::int64_t apple_available(std::uint64_t free_pages, std::uint64_t inactive_pages,
                                           std::uint64_t page_bytes);

// Readings that need more than sysctls; absent if the system did not answer.
struct AppleReadings {
  std::optional<std::uint64_t> thermal_pressure;  // OSThermalPressureLevel: 0 is none
  std::optional<double>
      battery_seconds;  // IOPSGetTimeRemainingEstimate: -2 on the mains, -1 unsure
  std::optional<std::int64_t> swap_total, swap_used;
  std::optional<std::int64_t> memory_available;
  std::optional<double> load;
};
[[nodiscard]] MachineHealth apple_health(const Sysctls& sysctls, const AppleReadings& readings);

}  // namespace weir::sys
