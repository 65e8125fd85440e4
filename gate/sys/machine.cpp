// Parses what a machine says about itself, and names its class.
#include "gate/sys/machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "gate/base/text.hpp"

namespace weir::sys {
namespace {

// Returns text as part of a name: other characters than letters, digits, '.' and '_' become a
// single '-'.
std::string to_name_part(std::string_view text) {
  std::string part;
  for (const char c : text) {
    const bool is_allowed = text::is_alphanumeric(c) || c == '.' || c == '_';
    if (is_allowed) {
      part += c;
    } else if (!part.empty() && part.back() != '-') {
      part += '-';
    }
  }
  while (part.ends_with('-')) part.pop_back();
  return part;
}

// Returns the level of the x86-64 psABI. A level needs its own flags and those of all lower levels.
std::string x86_class(const std::set<std::string, std::less<>>& flags) {
  static const std::vector<std::vector<std::string_view>> k_levels = {
      {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
      {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
      {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
  };
  const auto first_missing = std::ranges::find_if_not(k_levels, [&](const auto& needed) {
    return std::ranges::all_of(needed, [&](std::string_view flag) { return flags.contains(flag); });
  });
  return fmt::format("cpu-x86-64-v{}", 1 + (first_missing - k_levels.begin()));
}

// Lists the features that engines on Arm choose kernels by.
std::string arm_class(const std::set<std::string, std::less<>>& flags) {
  std::string name = "cpu-arm64";
  constexpr std::pair<std::string_view, std::string_view> k_parts[] = {
      {"asimddp", "dotprod"}, {"i8mm", "i8mm"}, {"sve", "sve"}, {"sve2", "sve2"}, {"sme", "sme"}};
  for (const auto& [flag, part] : k_parts) {
    if (flags.contains(flag)) name.append("-").append(part);
  }
  return name;
}

// Rounds up, because the kernel keeps a varying bit of the memory for itself.
long long gibibytes(std::int64_t bytes) {
  return std::llround(std::ceil(static_cast<double>(bytes) / (1 << 30)));
}

}  // namespace

std::string Machine::name() const {
  return fmt::format("{}, {} {}, {} GiB, {}", cpu_model, physical_cores,
                     physical_cores == 1 ? "core" : "cores", gibibytes(memory_bytes), os_release);
}

// Returns the CPU model, cores and CPU class (its instruction set) from /proc/cpuinfo.
// `architecture` is that of uname(2).
Machine parse_cpuinfo(std::string_view content, std::string_view architecture) {
  Machine machine;
  std::int64_t processor_count = 0;
  std::set<std::pair<std::string, std::string>> core_ids;
  std::set<std::string, std::less<>> flags;
  std::string package_id = "0", implementer;
  for (const std::string& line : text::lines(content)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key(text::trim(std::string_view(line).substr(0, colon)));
    const std::string value(text::trim(std::string_view(line).substr(colon + 1)));
    if (key == "processor") ++processor_count;
    if (key == "model name" && machine.cpu_model.empty())
      machine.cpu_model = text::printable(value);
    if (key == "CPU implementer") implementer = value;
    if (key == "CPU part" && machine.cpu_model.empty()) {
      machine.cpu_model = text::printable(fmt::format("Arm {} {}", implementer, value));
    }
    if (key == "physical id") package_id = value;
    if (key == "core id") core_ids.emplace(package_id, value);
    if ((key == "flags" || key == "Features") && flags.empty()) {
      for (const std::string& flag : text::split(value, ' ')) flags.insert(flag);
    }
  }
  machine.logical_cores = std::max<std::int64_t>(1, processor_count);
  machine.physical_cores =
      core_ids.empty() ? machine.logical_cores : static_cast<std::int64_t>(core_ids.size());
  if (machine.cpu_model.empty()) machine.cpu_model = std::string(architecture);
  if (architecture == "x86_64") {
    machine.cpu_class = x86_class(flags);
  } else if (architecture == "aarch64" || architecture == "arm64") {
    machine.cpu_class = arm_class(flags);
  } else {
    machine.cpu_class = "cpu-" + to_name_part(architecture);
  }
  return machine;
}

// Returns "ID VERSION", such as "debian 12", from /etc/os-release.
std::string parse_os_release(std::string_view content) {
  std::map<std::string, std::string> values;
  for (const std::string& line : text::lines(content)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    std::string value(text::trim(std::string_view(line).substr(equals + 1)));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    values[std::string(text::trim(std::string_view(line).substr(0, equals)))] =
        text::printable(value);
  }
  return std::string(text::trim(values["ID"] + " " + values["VERSION_ID"]));
}

std::optional<std::int64_t> parse_meminfo(std::string_view content, std::string_view key) {
  for (const std::string& line : text::lines(content)) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    std::string_view value = text::trim(std::string_view(line).substr(key.size() + 1));
    if (value.ends_with(" kB")) value.remove_suffix(3);
    const auto kib = text::to_int(value);
    if (!kib || *kib < 0 || *kib > (std::int64_t{1} << 50)) return std::nullopt;
    return *kib * 1024;
  }
  return std::nullopt;
}

std::optional<double> parse_cpu_max(std::string_view content) {
  const auto parts = text::split(text::trim(content), ' ');
  if (parts.size() != 2) return std::nullopt;
  const auto quota = text::to_double(parts[0]);
  const auto period = text::to_double(parts[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// Returns the ticks of all processors together, from the first line of /proc/stat; nothing if it
// has another form.
std::optional<CpuTicks> parse_stat(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  if (!line.starts_with("cpu ")) return std::nullopt;
  CpuTicks ticks;
  int index = 0;
  for (const std::string& field : text::split(line.substr(4), ' ')) {
    if (field.empty()) continue;
    const auto value = text::to_int(field);
    if (!value || *value < 0) return std::nullopt;
    // Order: user nice system idle iowait irq softirq steal. Guest times are part of user and nice.
    if (index < 8) ticks.total += static_cast<std::uint64_t>(*value);
    if (index == 7) ticks.steal = static_cast<std::uint64_t>(*value);
    if (index == 3 || index == 4) ticks.idle += static_cast<std::uint64_t>(*value);
    ++index;
  }
  if (index < 8) return std::nullopt;
  return ticks;
}

std::optional<double> steal_share(const CpuTicks& before, const CpuTicks& after) {
  if (!after.tells_steal) return std::nullopt;
  if (after.total <= before.total || after.steal < before.steal) return std::nullopt;
  return std::min(1.0, static_cast<double>(after.steal - before.steal) /
                           static_cast<double>(after.total - before.total));
}

std::string machine_class(const Machine& machine, std::string_view device_class) {
  return fmt::format("{}-{}-{}c-{}g-{}", to_name_part(device_class),
                     to_name_part(machine.cpu_model),
                     machine.usable_cores == machine.physical_cores
                         ? std::to_string(machine.physical_cores)
                         : fmt::format("{}of{}", machine.usable_cores, machine.physical_cores),
                     gibibytes(machine.memory_bytes), to_name_part(machine.os_release));
}

std::optional<double> RealMachineLoad::load_average() const {
  double averages[1];
  if (getloadavg(averages, 1) != 1) return std::nullopt;
  return averages[0];
}

}  // namespace weir::sys
