// Judges a machine's health: what makes times worse or less steady, and what to do about it.
#include "gate/sys/machine_health.hpp"

#include <algorithm>
#include <cstdlib>

#include "gate/base/text.hpp"
#include "gate/unit/metric.hpp"

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

// Returns the state of each GPU from nvidia-smi's output: name, reasons of a reduced clock, power
// caps, load and persistence. At most 64 GPUs.
std::vector<GpuHealth> parse_nvidia_smi(std::string_view content) {
  // Bits of nvml.h's nvmlClocksEventReasons: software power cap, hardware slowdown, software and
  // hardware thermal slowdown, power brake.
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
      gpu.slowed_by = "its hardware";
      if ((reasons & k_power) != 0) gpu.slowed_by = "its power cap";
      if ((reasons & k_heat) != 0) gpu.slowed_by = "heat";
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
  // Time that other virtual machines took was not used by programs here.
  health.busy = std::clamp(1 - idle - health.steal.value_or(0), 0.0, 1.0);
}

namespace {

// Thresholds for a finding. A decode loop that is held up 1 % of the time gets about 1 % slower,
// which is a fifth of the default limit of 5 %.
constexpr double k_busy = 0.10;       // share of all processors that other programs use
constexpr double k_wait = 0.10;       // share of ten seconds in which something waited
constexpr double k_steal = 0.01;      // share of all processors' time
constexpr double k_throttled = 0.01;  // share of a cgroup's periods
constexpr double k_gpu_busy = 0.05;
constexpr double k_memory_left = 0.10;
constexpr std::int64_t k_swap = std::int64_t{256} << 20;

std::string size_text(std::int64_t bytes) { return unit::show_bytes(static_cast<double>(bytes)); }

// Collects findings subject by subject.
class Report {
 public:
  void add(const char* subject, Weight weight, std::string what, std::string cure) {
    // GPUs of one name may have the same finding.
    const auto is_same = [&](const HealthFinding& finding) {
      return finding.subject == subject && finding.what == what;
    };
    if (std::ranges::any_of(report_.findings, is_same)) return;
    report_.findings.push_back({subject, weight, std::move(what), std::move(cure)});
  }
  void add_problem(const char* subject, std::string what, std::string cure) {
    add(subject, Weight::worse, std::move(what), std::move(cure));
  }
  void add_note(const char* subject, std::string what, std::string cure) {
    add(subject, Weight::note, std::move(what), std::move(cure));
  }
  // Ends a subject. One without a finding is fine, or unknown if nothing could be read about it.
  void add_fine_or_unknown(const char* subject, bool is_known) {
    const auto& findings = report_.findings;
    const bool has_finding = std::ranges::count(findings, subject, &HealthFinding::subject) > 0;
    if (has_finding) return;
    if (is_known) {
      report_.fine.emplace_back(subject);
    } else {
      report_.unknown.emplace_back(subject);
    }
  }
  HealthReport finish() {
    std::ranges::stable_sort(report_.findings, {}, &HealthFinding::weight);
    return std::move(report_);
  }

 private:
  HealthReport report_;
};

// Reports whether other programs keep processors or the disk busy.
void judge_load(const MachineHealth& health, Report& report) {
  const char* cure =
      "Stop them or wait; `weir gate --counts-only` needs no quiet machine, and --against a base "
      "program a less quiet one";
  if (health.busy && *health.busy > k_busy) {
    report.add_problem("load",
                       fmt::format("other programs keep {} of {} processors busy",
                                   unit::percent(*health.busy, 0), health.processors),
                       cure);
  } else if (health.cpu_wait && *health.cpu_wait > k_wait) {
    report.add_problem("load",
                       fmt::format("in {} of the last 10 s some program waited for a processor",
                                   unit::percent(*health.cpu_wait, 0)),
                       cure);
  } else if (health.load && *health.load > 0.5 * static_cast<double>(health.processors)) {
    report.add_note(
        "load",
        fmt::format("{:.1f} programs on average wanted a processor within the last minute "
                    "(there are {})",
                    *health.load, health.processors),
        cure);
  }
  report.add_fine_or_unknown("load", health.busy || health.cpu_wait || health.load);
  if (health.io_wait && *health.io_wait > k_wait) {
    report.add_problem("disk",
                       fmt::format("in {} of the last 10 s some program waited for the disk",
                                   unit::percent(*health.io_wait, 0)),
                       "Wait until it is quiet; load times and first tokens suffer most");
  }
  report.add_fine_or_unknown("disk", health.io_wait.has_value());
}

// Reports what lets the clock change or shares cores: governors, turbo and SMT (two threads a
// core).
void judge_frequency(const MachineHealth& health, Report& report) {
  std::string governor_names;
  int slow_processors = 0;
  for (const auto& [name, processors] : health.governors) {
    if (name == "performance") continue;
    text::append_item(governor_names, ", ", name);
    slow_processors += processors;
  }
  // intel_pstate and amd_pstate name their governor "powersave"; the preference decides there.
  const bool prefers_speed =
      health.preferences.size() == 1 && health.preferences.begin()->first == "performance";
  if (slow_processors > 0 && !prefers_speed) {
    report.add_problem("governor",
                       fmt::format("{} of {} processors change their clock by load (governor {})",
                                   slow_processors, health.processors, governor_names),
                       "sudo cpupower frequency-set -g performance");
  }
  report.add_fine_or_unknown("governor", !health.governors.empty());
  if (health.turbo == true) {
    report.add_note("turbo",
                    "turbo is on: the clock depends on temperature and on how many cores work",
                    "For steadier, slower times: echo 1 | sudo tee "
                    "/sys/devices/system/cpu/intel_pstate/no_turbo (or 0 into cpufreq/boost)");
  }
  report.add_fine_or_unknown("turbo", health.turbo.has_value());
  if (health.smt == true) {
    report.add_note(
        "SMT", "two threads share each core, so a neighbour takes half of one",
        "Use as many threads as physical cores (weir's {threads} is that), or: echo off | "
        "sudo tee /sys/devices/system/cpu/smt/control");
  }
  report.add_fine_or_unknown("SMT", health.smt.has_value());
}

// Reports what slows the processor down: heat, battery and power profile.
void judge_heat_and_power(const MachineHealth& health, Report& report) {
  if (!health.hot_zone.empty()) {
    report.add_problem("heat", fmt::format("{}: the clock is held down", health.hot_zone),
                       "Let it cool, and give it air; fewer threads heat less");
  } else if (health.slowed_by_heat && *health.slowed_by_heat > 0) {
    report.add_note("heat",
                    fmt::format("slowed down by heat {} times since the machine started",
                                *health.slowed_by_heat),
                    "Run the timed cells after a pause; look whether the number grows with a run");
  }
  report.add_fine_or_unknown("heat",
                             health.hottest_zone || health.slowed_by_heat || health.tells_heat);
  if (health.on_battery == true) {
    const std::string battery_left =
        health.battery_percent ? fmt::format(" ({} % left)", *health.battery_percent) : "";
    report.add_problem("power", fmt::format("runs on its battery{}", battery_left), "Plug it in");
  } else if (health.power_profile == "low-power" || health.power_profile == "quiet" ||
             health.power_profile == "cool") {
    report.add_problem("power", fmt::format("the power profile is {}", health.power_profile),
                       "powerprofilesctl set performance");
  }
  report.add_fine_or_unknown("power", health.on_battery || !health.power_profile.empty());
}

// Reports whether memory is short: swap in use, or little memory free.
void judge_memory(const MachineHealth& health, Report& report) {
  if (health.swap_used && *health.swap_used > k_swap) {
    report.add_problem(
        "swap", fmt::format("{} of memory are out on the disk", size_text(*health.swap_used)),
        health.macos
            ? "End what fills the memory; macOS empties its swap by itself, or when it restarts"
            : "End what fills the memory, then: sudo swapoff -a && sudo swapon -a");
  }
  report.add_fine_or_unknown("swap", health.swap_used.has_value());
  if (health.memory_bytes && health.memory_available &&
      static_cast<double>(*health.memory_available) <
          k_memory_left * static_cast<double>(*health.memory_bytes)) {
    report.add_problem(
        "memory",
        fmt::format("{} of {} are free", size_text(*health.memory_available),
                    size_text(*health.memory_bytes)),
        "End what fills it: a model that does not fit is read from the disk each time");
  }
  report.add_fine_or_unknown("memory", health.memory_available.has_value());
}

// Reports what others may take from this machine: CPU quotas, time stolen by the hypervisor, and
// virtual machines as such.
void judge_sharing(const MachineHealth& health, Report& report) {
  const char* other_machine_hint = "Times need another machine or --against; counts do not";
  if (health.quota && *health.quota < static_cast<double>(health.processors)) {
    const bool is_used_up = health.throttled && *health.throttled > k_throttled;
    const std::string description = fmt::format(
        "a quota grants {:.1f} of {} processors{}", *health.quota, health.processors,
        is_used_up
            ? fmt::format(", used up in {} of its periods", unit::percent(*health.throttled, 0))
            : "");
    const char* cure =
        "Lift it (docker --cpus, Kubernetes limits.cpu), or give whole processors by --cpuset-cpus";
    report.add("quota", is_used_up ? Weight::worse : Weight::note, description, cure);
  }
  report.add_fine_or_unknown("quota", health.has_cgroup);
  if (health.steal && *health.steal > k_steal) {
    report.add_problem("steal",
                       fmt::format("other virtual machines take {} of the processors' time",
                                   unit::percent(*health.steal, 0)),
                       other_machine_hint);
  }
  report.add_fine_or_unknown("steal", health.steal.has_value());
  if (health.virtual_machine) {
    report.add_note("virtual machine",
                    fmt::format("neighbours come and go unseen{}",
                                health.virtual_machine_name.empty()
                                    ? ""
                                    : fmt::format(" ({})", health.virtual_machine_name)),
                    other_machine_hint);
  }
}

// Reports what makes one GPU slower or less steady: its clock, power cap, other work and driver.
void judge_gpu(const GpuHealth& gpu, Report& report) {
  if (gpu.slowed == true) {
    report.add_problem("GPU",
                       fmt::format("{}: its clock is held down by {}", gpu.name, gpu.slowed_by),
                       "Let it cool or give it air; for a cap: sudo nvidia-smi -pl WATTS");
  }
  if (gpu.power_cap_watts && gpu.power_default_watts &&
      *gpu.power_cap_watts < 0.99 * *gpu.power_default_watts) {
    report.add_problem(
        "GPU",
        fmt::format("{}: capped at {:.0f} W of {:.0f} W", gpu.name, *gpu.power_cap_watts,
                    *gpu.power_default_watts),
        "Keep it the same for every session, or lift it: sudo nvidia-smi -pl, rocm-smi "
        "--resetpoweroverdrive");
  }
  if (gpu.busy && *gpu.busy > k_gpu_busy) {
    report.add_problem(
        "GPU", fmt::format("{}: {} busy with other work", gpu.name, unit::percent(*gpu.busy, 0)),
        "End it or wait: nvidia-smi and rocm-smi --showpids name it");
  }
  if (gpu.clocks_fixed == false) {
    report.add_note("GPU", fmt::format("{}: its clock floats with heat and load", gpu.name),
                    "For steadier times: sudo nvidia-smi -lgc MHZ, rocm-smi --setperflevel high");
  }
  if (gpu.persistence == false) {
    report.add_note("GPU", fmt::format("{}: its driver starts anew with each program", gpu.name),
                    "sudo nvidia-smi -pm 1 (load times alone suffer)");
  }
}

}  // namespace

HealthReport judge_health(const MachineHealth& health) {
  Report report;
  judge_load(health, report);
  judge_sharing(health, report);
  judge_heat_and_power(health, report);
  judge_frequency(health, report);
  judge_memory(health, report);
  for (const GpuHealth& gpu : health.gpus) judge_gpu(gpu, report);
  return report.finish();
}

}  // namespace weir::sys
