// Facts about this machine, and what it is doing besides.
//
// The parse_ functions are pure (text of /proc in, numbers out) and take hostile text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gate/sys/files.hpp"

namespace weir::sys {

// Facts that do not change while weir runs.
struct Machine {
  std::string cpu_model;            // "AMD EPYC 9654 96-Core Processor"
  std::int64_t physical_cores = 1;  // in the machine
  std::int64_t logical_cores = 1;
  // Physical cores that weir and its engines may use: fewer under an affinity mask or a cgroup
  // limit. What {threads} is by default.
  std::int64_t usable_cores = 1;
  std::int64_t memory_bytes = 0;
  std::string os_release;  // "debian 12"
  std::string cpu_class;   // device class of the CPU: "cpu-x86-64-v4"

  // For people: "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12".
  [[nodiscard]] std::string name() const;
  friend bool operator==(const Machine&, const Machine&) = default;
};
[[nodiscard]] Machine read_machine(const Files& files);

// The class that times depend on: device class, CPU model, cores, memory in GiB, OS release. One
// valid name of characters [A-Za-z0-9._-].
[[nodiscard]] std::string machine_class(const Machine& machine, std::string_view device_class);

// Its model, cores and class.
[[nodiscard]] Machine parse_cpuinfo(std::string_view text, std::string_view architecture);
[[nodiscard]] std::string parse_os_release(std::string_view text);  // "" when it says nothing
// A line of /proc/meminfo in bytes: "MemAvailable".
[[nodiscard]] std::optional<std::int64_t> parse_meminfo(std::string_view text,
                                                        std::string_view key);
// cgroup v2's cpu.max: processors, nothing for "max".
[[nodiscard]] std::optional<double> parse_cpu_max(std::string_view text);

// Processor time since the machine started, in ticks over all processors.
struct CpuTicks {
  std::uint64_t total = 0, steal = 0;
  std::uint64_t idle = 0;  // also while waiting for a disk
  bool tells_steal = true;
};
[[nodiscard]] std::optional<CpuTicks> parse_stat(std::string_view text);
// steal / total between two readings, 0…1; nothing when no time passed, one goes back or the system
// does not tell.
[[nodiscard]] std::optional<double> steal_share(const CpuTicks& before, const CpuTicks& after);

// Readings that change, so they are read each time. Absent if the system does not tell.
class MachineLoad {
 public:
  virtual ~MachineLoad() = default;
  [[nodiscard]] virtual std::optional<CpuTicks> ticks() const = 0;
  [[nodiscard]] virtual std::optional<double> load_average() const = 0;  // one minute
  [[nodiscard]] virtual std::optional<std::int64_t> memory_available() const = 0;
};
class RealMachineLoad final : public MachineLoad {
 public:
  [[nodiscard]] std::optional<CpuTicks> ticks() const override;
  [[nodiscard]] std::optional<double> load_average() const override;
  [[nodiscard]] std::optional<std::int64_t> memory_available() const override;
};

}  // namespace weir::sys
