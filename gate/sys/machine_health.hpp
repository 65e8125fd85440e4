// Facts that make times on this machine worse, as the system reports them.
//
// On Linux everything is read through Files from /proc and /sys, text of hostile length and
// content; on macOS the system is asked (apple_facts.hpp). Facts that it does not report are
// absent. judge_health() says what they mean.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/sys/files.hpp"
#include "gate/sys/machine.hpp"

namespace weir::sys {

// A GPU that the system or its driver tells about.
struct GpuHealth {
  std::string name;
  std::optional<bool> slowed;        // its clock is held down right now, by heat or power
  std::string slowed_by;             // "heat", "power cap"
  std::optional<bool> clocks_fixed;  // set to one value by somebody
  std::optional<double> power_cap_watts, power_default_watts;
  std::optional<double> busy;       // 0…1, by whatever runs now
  std::optional<bool> persistence;  // its driver stays loaded between programs
};

struct MachineHealth {
  bool macos = false;           // remedies are for macOS
  std::int64_t processors = 1;  // logical

  std::map<std::string, int> governors;    // name -> processors under it
  std::map<std::string, int> preferences;  // energy_performance_preference, the same
  std::optional<bool> turbo;
  std::optional<bool> smt;

  std::optional<double> busy;      // share of all processors' time, within the moment looked at
  std::optional<double> steal;     // the same, taken by other virtual machines
  std::optional<double> load;      // processes that run or want to, average of a minute
  std::optional<double> cpu_wait;  // share of the last 10 s in which some process waited for a CPU
  std::optional<double> io_wait;   // the same for the disk

  std::optional<std::int64_t> memory_bytes, memory_available, swap_total, swap_used;

  std::optional<double> quota;  // processors that a cgroup grants
  bool has_cgroup = false;
  std::optional<double> throttled;  // share of periods in which that was used up

  bool virtual_machine = false;
  std::string virtual_machine_name;  // "KVM", "" when it does not tell

  std::optional<double> hottest_zone;  // degrees Celsius
  std::string hot_zone;                // a zone beyond its own limit: "x86_pkg_temp at 98 °C"
  std::optional<std::int64_t> slowed_by_heat;  // times since the machine started
  bool tells_heat = false;                     // hot_zone would say so, whatever the two above do

  std::optional<bool> on_battery;
  std::optional<int> battery_percent;
  std::string power_profile;  // "low-power", "balanced", "performance"; "" when it has none

  std::vector<GpuHealth> gpus;
};

// All but busy and steal, which take time to see (add_activity), and NVIDIA's (parse_nvidia_smi).
[[nodiscard]] MachineHealth read_machine_health(const Files& files);
// Adds the activity between two readings of /proc/stat.
void add_activity(MachineHealth& health, const CpuTicks& before, const CpuTicks& after);

// "some avg10=19.56 …" of /proc/pressure/*: 0.1956.
[[nodiscard]] std::optional<double> parse_pressure(std::string_view text);
// nr_throttled / nr_periods of a cgroup's cpu.stat.
[[nodiscard]] std::optional<double> parse_throttled(std::string_view text);

// Fields of `nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits`; it prints one GPU a
// line.
inline constexpr std::string_view k_nvidia_fields =
    "name,clocks_throttle_reasons.active,power.limit,power.default_limit,utilization.gpu,"
    "persistence_mode";
[[nodiscard]] std::vector<GpuHealth> parse_nvidia_smi(std::string_view text);

// Judges what a machine's facts mean for times measured on it, and what to do about each. Pure.
//
// Counts do not depend on any of this.

enum class Weight {
  worse,  // makes times worse or less steady right now
  note,   // may, in time or with other programs
};

struct HealthFinding {
  std::string subject;  // "governor": lower case, kept: the id in JSON
  Weight weight = Weight::note;
  std::string what;  // one sentence without a full stop
  std::string cure;  // one sentence without a full stop; never empty
};

struct HealthReport {
  std::vector<HealthFinding> findings;  // the heaviest first, else in a fixed order
  std::vector<std::string> fine;        // subjects with nothing to say
  std::vector<std::string> unknown;     // subjects that this machine does not tell about
};
[[nodiscard]] HealthReport judge_health(const MachineHealth& health);

}  // namespace weir::sys
