// Tests how facts about a Mac are read from its sysctls.
#include "gate/sys/apple_facts.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "gate/sys/machine_health.hpp"

namespace weir::sys {
namespace apple_facts_test {

// Returns a system that answers these names only.
Sysctls make_sysctls(std::map<std::string, std::int64_t> numbers,
                     std::map<std::string, std::string> texts) {
  return {[numbers = std::move(numbers)](const char* name) -> std::optional<std::int64_t> {
            const auto match = numbers.find(name);
            return match == numbers.end() ? std::nullopt : std::optional(match->second);
          },
          [texts = std::move(texts)](const char* name) {
            const auto match = texts.find(name);
            return match == texts.end() ? std::string() : match->second;
          }};
}

Sysctls apple_laptop() {
  return make_sysctls(
      {{"hw.physicalcpu", 8},
       {"hw.logicalcpu", 8},
       {"hw.memsize", std::int64_t{16} << 30},
       {"kern.hv_vmm_present", 0}},
      {{"machdep.cpu.brand_string", "Apple M2"}, {"kern.osproductversion", "14.5"}});
}

bool has_finding(const HealthReport& report, std::string_view subject) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const HealthFinding& finding) { return finding.subject == subject; });
}

bool contains(const std::vector<std::string>& subjects, std::string_view subject) {
  return std::find(subjects.begin(), subjects.end(), subject) != subjects.end();
}

TEST(AppleFacts, NameAMachineAsItsSysctlsDo) {
  const Machine machine = apple_machine(apple_laptop(), "arm64");
  EXPECT_EQ(machine.name(), "Apple M2, 8 cores, 16 GiB, macos 14.5");
  EXPECT_EQ(machine.usable_cores, 8);
  EXPECT_EQ(machine_class(machine, machine.cpu_class),
            "cpu-apple-arm64-Apple-M2-8c-16g-macos-14.5");
}

TEST(AppleFacts, MakeAWholeMachineOfASystemThatTellsNothing) {
  const Machine machine = apple_machine(make_sysctls({}, {}), "arm64");
  EXPECT_EQ(machine.cpu_model, "arm64");
  EXPECT_EQ(machine.physical_cores, 1);
  EXPECT_EQ(machine.os_release, "macos");
  const Machine absurd =
      apple_machine(make_sysctls({{"hw.physicalcpu", -3}, {"hw.logicalcpu", 0}, {"hw.memsize", -1}},
                                 {{"machdep.cpu.brand_string", "\x1b[2J"}}),
                    "arm64");
  EXPECT_EQ(absurd.physical_cores, 1);
  EXPECT_EQ(absurd.logical_cores, 1);
  EXPECT_EQ(absurd.memory_bytes, 0);
  EXPECT_EQ(absurd.cpu_model.find('\x1b'), std::string::npos);
}

// Half of the time between the readings is idle. macOS does not report other guests of the host.
TEST(AppleFacts, TellHowBusyItIsAndNothingOfOthers) {
  MachineHealth health;
  add_activity(health, apple_ticks(100, 50, 800, 0), apple_ticks(130, 60, 850, 10));
  EXPECT_DOUBLE_EQ(health.busy.value(), 0.5);
  EXPECT_FALSE(health.steal.has_value());
}

TEST(AppleFacts, CountAsAvailableWhatNobodyHoldsOrUsed) {
  EXPECT_EQ(apple_available(3, 2, 16384), 5 * 16384);
}

struct Case {
  const char* when;
  AppleReadings readings;
  const char* subject;
  bool is_finding;
};

TEST(AppleFacts, BecomeFindingsWhereTheyMakeTimesWorse) {
  const auto with = [](auto set) {
    AppleReadings readings;
    set(readings);
    return readings;
  };
  // Levels of OSThermalNotification.h, answers of IOPSGetTimeRemainingEstimate (IOPowerSources.h).
  const Case cases[] = {
      {"cool", with([](auto& r) { r.thermal_pressure = 0; }), "heat", false},
      {"hot", with([](auto& r) { r.thermal_pressure = 2; }), "heat", true},
      {"a level of the future", with([](auto& r) { r.thermal_pressure = 99; }), "heat", true},
      {"on the mains", with([](auto& r) { r.battery_seconds = -2; }), "power", false},
      {"just unplugged", with([](auto& r) { r.battery_seconds = -1; }), "power", true},
      {"on its battery", with([](auto& r) { r.battery_seconds = 7200; }), "power", true},
      {"swapped out", with([](auto& r) { r.swap_used = std::int64_t{1} << 30; }), "swap", true},
      {"full", with([](auto& r) { r.memory_available = 1 << 20; }), "memory", true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.when);
    const HealthReport report = judge_health(apple_health(apple_laptop(), c.readings));
    EXPECT_EQ(has_finding(report, c.subject), c.is_finding);
    EXPECT_EQ(contains(report.fine, c.subject), !c.is_finding);
    EXPECT_FALSE(contains(report.unknown, c.subject));
    for (const HealthFinding& finding : report.findings) {
      EXPECT_EQ(finding.cure.find("swapoff"), std::string::npos) << "no command of Linux's";
    }
  }
}

TEST(AppleFacts, AreUnknownWhereTheSystemDoesNotAnswer) {
  const HealthReport report = judge_health(apple_health(make_sysctls({}, {}), {}));
  EXPECT_TRUE(report.findings.empty());
  for (const char* subject : {"heat", "power", "swap", "memory", "steal", "load"}) {
    EXPECT_TRUE(contains(report.unknown, subject)) << subject;
  }
}

}  // namespace apple_facts_test
}  // namespace weir::sys
