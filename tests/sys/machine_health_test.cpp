// Tests which disturbances of a machine are found in its system files.
#include "gate/sys/machine_health.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/memory_files.hpp"

namespace weir::sys {
namespace machine_health_test {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Files of a laptop, as Linux 6.1 writes them.
void make_laptop(MemoryFiles& files) {
  for (const char* cpu : {"cpu0", "cpu1"}) {
    const std::string at = std::string("/sys/devices/system/cpu/") + cpu;
    files.put(at + "/cpufreq/scaling_governor", "powersave\n");
    files.put(at + "/cpufreq/energy_performance_preference", "balance_power\n");
    files.put(at + "/thermal_throttle/core_throttle_count", "12\n");
  }
  files.put("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
  files.put("/sys/devices/system/cpu/smt/active", "1\n");
  files.put("/proc/cpuinfo", "processor : 0\nprocessor : 1\nflags : fpu\n");
  files.put("/proc/loadavg", "1.80 0.50 0.25 2/345 6789\n");
  files.put("/proc/pressure/cpu", "some avg10=1.50 avg60=2.00 avg300=1.00 total=12345\n");
  files.put("/proc/pressure/io", "some avg10=45.00 avg60=2.00 avg300=1.00 total=12345\n");
  files.put("/proc/meminfo",
            "MemTotal: 16000000 kB\nMemAvailable: 1000000 kB\nSwapTotal: 8000000 kB\nSwapFree: "
            "4000000 kB\n");
  files.put("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
  files.put("/sys/class/thermal/thermal_zone0/temp", "98000\n");
  files.put("/sys/class/thermal/thermal_zone0/trip_point_0_type", "passive\n");
  files.put("/sys/class/thermal/thermal_zone0/trip_point_0_temp", "95000\n");
  files.put("/sys/class/power_supply/BAT0/type", "Battery\n");
  files.put("/sys/class/power_supply/BAT0/status", "Discharging\n");
  files.put("/sys/class/power_supply/BAT0/capacity", "41\n");
  files.put("/sys/class/power_supply/hid-mouse/type", "Battery\n");
  files.put("/sys/class/power_supply/hid-mouse/scope", "Device\n");
  files.put("/sys/class/power_supply/hid-mouse/capacity", "5\n");
  files.put("/sys/firmware/acpi/platform_profile", "low-power\n");
}

const HealthFinding* find(const HealthReport& report, std::string_view subject) {
  for (const HealthFinding& finding : report.findings) {
    if (finding.subject == subject) return &finding;
  }
  return nullptr;
}

TEST(MachineHealth, NamesWhatIsWrongOnALaptopWithACureForEach) {
  MemoryFiles files;
  make_laptop(files);
  const HealthReport report = judge_health(read_machine_health(files));
  struct Case {
    const char* subject;
    Weight weight;
    const char* what;
  };
  for (const Case& c : std::vector<Case>{
           {"governor", Weight::worse, "2 of 2 processors"},
           {"heat", Weight::worse, "x86_pkg_temp at 98 °C"},
           {"power", Weight::worse, "battery (41 % left)"},
           {"swap", Weight::worse, "3.81 GiB"},               // 4 000 000 KiB
           {"memory", Weight::worse, "977 MiB of 15.3 GiB"},  // 1 000 000 KiB of 16 000 000
           {"disk", Weight::worse, "45 %"},
           {"load", Weight::note, "1.8 programs"},
           {"turbo", Weight::note, "turbo is on"},
           {"SMT", Weight::note, "two threads"}}) {
    const HealthFinding* finding = find(report, c.subject);
    ASSERT_NE(finding, nullptr) << c.subject;
    EXPECT_EQ(finding->weight, c.weight) << c.subject;
    EXPECT_THAT(finding->what, HasSubstr(c.what));
    EXPECT_NE(finding->cure, "") << c.subject;
  }
  for (std::size_t i = 1; i < report.findings.size(); ++i) {
    EXPECT_LE(report.findings[i - 1].weight, report.findings[i].weight) << "the heaviest first";
  }
  EXPECT_THAT(report.unknown, Contains("steal"));
}

TEST(MachineHealth, HasNothingToSayOfAQuietMachineAndKnowsNothingWithoutFiles) {
  MemoryFiles quiet;
  quiet.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  quiet.put("/sys/devices/system/cpu/cpufreq/boost", "0\n");
  quiet.put("/sys/devices/system/cpu/smt/active", "0\n");
  quiet.put("/proc/loadavg", "0.05 0.50 0.25 2/345 6789\n");
  quiet.put("/proc/pressure/io", "some avg10=0.00 avg60=2.00 avg300=1.00 total=12345\n");
  quiet.put("/proc/meminfo",
            "MemTotal: 16 kB\nMemAvailable: 15 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
  quiet.put("/proc/self/cgroup", "0::/\n");
  quiet.put("/sys/class/thermal/thermal_zone0/temp", "45000\n");
  quiet.put("/sys/class/power_supply/BAT0/type", "Battery\n");
  quiet.put("/sys/class/power_supply/BAT0/status", "Full\n");
  MachineHealth health = read_machine_health(quiet);
  add_activity(health, {.total = 1000, .steal = 0, .idle = 900},
               {.total = 1100, .steal = 0, .idle = 999});
  const HealthReport report = judge_health(health);
  EXPECT_THAT(report.findings, IsEmpty()) << report.findings.front().what;
  EXPECT_THAT(report.unknown, IsEmpty());

  const HealthReport nothing = judge_health(read_machine_health(MemoryFiles()));
  EXPECT_THAT(nothing.findings, IsEmpty());
  EXPECT_THAT(nothing.fine, IsEmpty());
}

TEST(MachineHealth, BelievesThePreferenceWhereTheGovernorIsCalledPowersaveAnyway) {
  MemoryFiles files;
  make_laptop(files);
  for (const char* cpu : {"cpu0", "cpu1"}) {
    files.put(
        std::string("/sys/devices/system/cpu/") + cpu + "/cpufreq/energy_performance_preference",
        "performance\n");
  }
  EXPECT_EQ(find(judge_health(read_machine_health(files)), "governor"), nullptr);
}

TEST(MachineHealth, FindsTheTightestQuotaOfBothKindsOfGroups) {
  MemoryFiles files;
  files.put("/proc/cpuinfo", "processor : 0\nprocessor : 1\nprocessor : 2\nprocessor : 3\n");
  files.put("/proc/self/cgroup", "0::/kube/pod\n");
  files.put("/sys/fs/cgroup/kube/pod/cpu.max", "max 100000\n");
  files.put("/sys/fs/cgroup/kube/cpu.max", "150000 100000\n");
  files.put("/sys/fs/cgroup/kube/cpu.stat", "usage_usec 1\nnr_periods 200\nnr_throttled 50\n");
  HealthReport report = judge_health(read_machine_health(files));
  ASSERT_NE(find(report, "quota"), nullptr);
  EXPECT_EQ(find(report, "quota")->weight, Weight::worse);
  EXPECT_THAT(find(report, "quota")->what, HasSubstr("1.5 of 4 processors, used up in 25 %"));

  files.put("/proc/self/cgroup", "5:cpu,cpuacct:/docker/x\n1:name=systemd:/\n");
  files.put("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "200000\n");
  files.put("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  report = judge_health(read_machine_health(files));
  ASSERT_NE(find(report, "quota"), nullptr);
  EXPECT_EQ(find(report, "quota")->weight, Weight::note) << "nobody says that it was used up";
  EXPECT_THAT(find(report, "quota")->what, HasSubstr("2.0 of 4"));

  files.put("/proc/self/cgroup", "0::/../../outside\n");
  EXPECT_EQ(find(judge_health(read_machine_health(files)), "quota"), nullptr);
}

TEST(MachineHealth, TellsWhatOthersTookFromWhatRanHere) {
  MachineHealth health;
  health.processors = 2;
  // 100 ticks: 50 idle, 20 stolen, so 30 ran here.
  add_activity(health, {.total = 0, .steal = 0, .idle = 0},
               {.total = 100, .steal = 20, .idle = 50});
  EXPECT_DOUBLE_EQ(*health.steal, 0.2);
  EXPECT_DOUBLE_EQ(*health.busy, 0.3);
  const HealthReport report = judge_health(health);
  EXPECT_THAT(find(report, "steal")->what, HasSubstr("20 %"));
  EXPECT_THAT(find(report, "load")->what, HasSubstr("30 % of 2"));
  MachineHealth standing;
  add_activity(standing, {.total = 5, .steal = 0, .idle = 5}, {.total = 5, .steal = 0, .idle = 5});
  EXPECT_EQ(standing.busy, std::nullopt);
  const auto ticks = parse_stat("cpu  10 0 5 70 5 0 0 10 0 0\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->idle, 75U) << "idle and iowait";
}

// Output of nvidia-smi. The reasons are bits of nvml.h: 0x4 software power cap, 0x20 software
// thermal slowdown, 0x1 idle, 0x2 clocks set by somebody.
TEST(MachineHealth, ReadsNvidiaGpus) {
  const auto gpus = parse_nvidia_smi(
      "NVIDIA A, 0x0000000000000004, 300.00, 700.00, 35, Disabled\n"
      "NVIDIA B, 0x0000000000000001, 700.00, 700.00, 0, Enabled\n"
      "NVIDIA C, [N/A], [N/A], [N/A], [N/A], [N/A]\nno line at all\n");
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].slowed, true);
  EXPECT_EQ(gpus[0].slowed_by, "its power cap");
  EXPECT_EQ(gpus[0].persistence, false);
  EXPECT_EQ(gpus[1].slowed, false);
  EXPECT_EQ(gpus[2].slowed, std::nullopt);
  EXPECT_EQ(gpus[2].power_cap_watts, std::nullopt);
  MachineHealth health;
  health.gpus = gpus;
  std::string all;
  for (const HealthFinding& finding : judge_health(health).findings) all += finding.what + "\n";
  EXPECT_EQ(all,
            "NVIDIA A: its clock is held down by its power cap\n"
            "NVIDIA A: capped at 300 W of 700 W\n"
            "NVIDIA A: 35 % busy with other work\n"
            "NVIDIA A: its clock floats with heat and load\n"
            "NVIDIA A: its driver starts anew with each program\n"
            "NVIDIA B: its clock floats with heat and load\n");
  health.gpus = {gpus[1], gpus[1]};
  EXPECT_EQ(judge_health(health).findings.size(), 1U) << "two GPUs that are alike";
}

TEST(MachineHealth, TakesAnyTextForAnAnswerOrForNone) {
  EXPECT_EQ(parse_pressure("some avg10=19.56 avg60=1.00 avg300=1.00 total=1\n"), 0.1956);
  EXPECT_EQ(parse_pressure("some avg10=x"), std::nullopt);
  EXPECT_EQ(parse_pressure("some avg10=101.0"), std::nullopt);
  EXPECT_EQ(parse_throttled("nr_periods 0\nnr_throttled 0\n"), std::nullopt);
  EXPECT_EQ(parse_throttled("nr_periods 4\nnr_throttled 5\n"), std::nullopt);
  std::mt19937 random(3);
  MemoryFiles good;
  make_laptop(good);
  for (int round = 0; round < 300; ++round) {
    MemoryFiles files;
    make_laptop(files);
    for (const char* path :
         {"/proc/loadavg", "/proc/pressure/cpu", "/proc/meminfo", "/proc/cpuinfo",
          "/sys/class/thermal/thermal_zone0/temp", "/sys/class/power_supply/BAT0/capacity",
          "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"}) {
      std::string text = *good.read(path, 65'536);
      for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random());
      files.put(path, text);
    }
    for (const HealthFinding& finding : judge_health(read_machine_health(files)).findings) {
      EXPECT_EQ(finding.what.find('\x1b'), std::string::npos);
      EXPECT_NE(finding.cure, "");
    }
  }
}

}  // namespace machine_health_test
}  // namespace weir::sys
