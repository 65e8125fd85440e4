#include "gate/sys/machine_health.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "gate/base/text.hpp"

namespace weir::sys {
std::optional<double> parse_pressure(std::string_view content) {
  for (const std::string& line : text::lines(content)) {
    if (!line.starts_with("some avg10=")) continue;
    const auto percent = text::to_double(text::split(line.substr(11), ' ').front());
    if (!percent || *percent < 0 || *percent > 100) return std::nullopt;
    return *percent / 100;
  }
  return std::nullopt;
}

std::optional<double> parse_throttled(std::string_view content) {
  std::optional<long long> periods, throttled;
  for (const std::string& line : text::lines(content)) {
    if (line.starts_with("nr_periods ")) periods = text::to_int(line.substr(11));
    if (line.starts_with("nr_throttled ")) throttled = text::to_int(line.substr(13));
  }
  if (!periods || !throttled || *periods <= 0 || *throttled < 0 || *throttled > *periods) {
    return std::nullopt;
  }
  return static_cast<double>(*throttled) / static_cast<double>(*periods);
}

std::vector<GpuHealth> parse_nvidia_smi(std::string_view content) {
  // nvml.h, nvmlClocksEventReasons: software power cap, hardware slowdown, software and hardware
  // thermal slowdown, power brake.
  constexpr unsigned long long k_power = 0x4 | 0x80, k_heat = 0x20 | 0x40, k_hardware = 0x8;
  constexpr unsigned long long k_fixed = 0x2;
  std::vector<GpuHealth> gpus;
  for (const std::string& line : text::lines(content)) {
    std::vector<std::string> fields = text::split(line, ',');
    if (fields.size() != 6 || gpus.size() == 64) continue;
    for (std::string& field : fields) field = text::printable(text::trim(field));
    GpuHealth gpu;
    gpu.name = fields[0];
    if (fields[1].starts_with("0x") && fields[1].size() <= 18) {
      const unsigned long long reasons = std::strtoull(fields[1].c_str(), nullptr, 16);
      gpu.slowed = (reasons & (k_power | k_heat | k_hardware)) != 0;
      gpu.slowed_by = (reasons & k_heat) != 0    ? "heat"
                      : (reasons & k_power) != 0 ? "its power cap"
                                                 : "its hardware";
      gpu.clocks_fixed = (reasons & k_fixed) != 0;
    }
    gpu.power_cap_watts = text::to_double(fields[2]);
    gpu.power_default_watts = text::to_double(fields[3]);
    if (const auto busy = text::to_double(fields[4])) gpu.busy = *busy / 100;
    if (fields[5] == "Enabled" || fields[5] == "Disabled") gpu.persistence = fields[5] == "Enabled";
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

void add_activity(MachineHealth& health, const CpuTicks& before, const CpuTicks& after) {
  health.steal = steal_share(before, after);
  if (after.total <= before.total || after.idle < before.idle) return;
  const double idle = static_cast<double>(after.idle - before.idle) /
                      static_cast<double>(after.total - before.total);
  // What others took is not what programs here did.
  health.busy = std::clamp(1 - idle - health.steal.value_or(0), 0.0, 1.0);
}

}  // namespace weir::sys
