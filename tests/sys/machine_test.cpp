// Tests which facts about a machine are read from its system files.
#include "gate/sys/machine.hpp"

#include <gtest/gtest.h>

#include "tests/support/memory_files.hpp"

namespace weir::sys {
namespace machine_test {

std::string cpuinfo(int packages, int cores, int threads, const std::string& flags) {
  std::string text;
  int processor = 0;
  for (int package = 0; package < packages; ++package) {
    for (int core = 0; core < cores; ++core) {
      for (int thread = 0; thread < threads; ++thread) {
        text += fmt::format(
            "processor\t: {}\nmodel name\t: Test  CPU @ 2.00GHz\nphysical id\t: {}\n"
            "core id\t\t: {}\nflags\t\t: {}\n\n",
            processor++, package, core, flags);
      }
    }
  }
  return text;
}

constexpr const char* k_v2 = "fpu cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3";
constexpr const char* k_v3 =
    "fpu cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe";
constexpr const char* k_v4 =
    "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe avx512f "
    "avx512bw "
    "avx512cd avx512dq avx512vl";

// Levels as in the x86-64 psABI.
TEST(Machine, NamesTheInstructionSetByItsLevel) {
  const auto cpu_class = [](const std::string& flags) {
    return parse_cpuinfo(cpuinfo(1, 1, 1, flags), "x86_64").cpu_class;
  };
  EXPECT_EQ(cpu_class("fpu sse2"), "cpu-x86-64-v1");
  EXPECT_EQ(cpu_class(k_v2), "cpu-x86-64-v2");
  EXPECT_EQ(cpu_class(k_v3), "cpu-x86-64-v3");
  EXPECT_EQ(cpu_class(k_v4), "cpu-x86-64-v4");
  EXPECT_EQ(cpu_class("avx512f avx512bw avx512cd avx512dq avx512vl"), "cpu-x86-64-v1")
      << "a level needs those below it";
  EXPECT_EQ(parse_cpuinfo("Features : fp asimd asimddp i8mm sve\n", "aarch64").cpu_class,
            "cpu-arm64-dotprod-i8mm-sve");
  EXPECT_EQ(parse_cpuinfo("", "riscv64").cpu_class, "cpu-riscv64");
}

TEST(Machine, CountsCoresAndNotThreads) {
  const Machine server = parse_cpuinfo(cpuinfo(2, 8, 2, k_v3), "x86_64");
  EXPECT_EQ(server.physical_cores, 16);
  EXPECT_EQ(server.logical_cores, 32);
  EXPECT_EQ(server.cpu_model, "Test  CPU @ 2.00GHz");
  const Machine bare = parse_cpuinfo("processor : 0\nprocessor : 1\n", "x86_64");
  EXPECT_EQ(bare.physical_cores, 2) << "a machine that does not tell its cores";
  EXPECT_EQ(bare.cpu_model, "x86_64");
  EXPECT_EQ(parse_cpuinfo("", "x86_64").physical_cores, 1);
}

TEST(Machine, ReadsWhatTheSystemSaysOfItself) {
  EXPECT_EQ(parse_os_release("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\n"
                             "ID=debian\n"),
            "debian 12");
  EXPECT_EQ(parse_os_release("ID=arch\n"), "arch");
  EXPECT_EQ(parse_os_release(""), "");
  const char* meminfo =
      "MemTotal:       24639804 kB\nMemFree:  1 kB\nMemAvailable:   23000000 kB\n";
  EXPECT_EQ(parse_meminfo(meminfo, "MemTotal"), 24639804LL * 1024);
  EXPECT_EQ(parse_meminfo(meminfo, "MemAvailable"), 23000000LL * 1024);
  EXPECT_EQ(parse_meminfo(meminfo, "Mem"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemTotal: x kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2.0);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("1 0\n"), std::nullopt);
}

TEST(Machine, HasAClassThatIsOneName) {
  MemoryFiles files;
  files.put("/proc/cpuinfo", cpuinfo(1, 4, 1, k_v3));
  files.put("/proc/meminfo", "MemTotal: 16262144 kB\n");  // 15.5 GiB of 16: the kernel has the rest
  files.put("/etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n");
  Machine machine = read_machine(files);
  EXPECT_EQ(machine.cpu_model, "Test  CPU @ 2.00GHz");
  machine.usable_cores = 4;  // this depends on where the test runs
  EXPECT_EQ(machine_class(machine, "vulkan-10005-0"),
            "vulkan-10005-0-Test-CPU-2.00GHz-4c-16g-debian-12");
  machine.usable_cores = 2;
  EXPECT_EQ(machine_class(machine, "cpu-x86-64-v3"),
            "cpu-x86-64-v3-Test-CPU-2.00GHz-2of4c-16g-debian-12");
  EXPECT_EQ(machine.name(), "Test  CPU @ 2.00GHz, 4 cores, 16 GiB, debian 12");
}

TEST(Machine, UsesNoMoreCoresThanItsGroupMay) {
  MemoryFiles files;
  files.put("/proc/cpuinfo", cpuinfo(1, 64, 1, k_v3));
  files.put("/proc/self/cgroup", "0::/job/step\n");
  files.put("/sys/fs/cgroup/job/cpu.max", "100000 100000\n");  // one processor, set above the step
  files.put("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(read_machine(files).usable_cores, 1);
}

TEST(Machine, MeasuresStolenTime) {
  const auto before = parse_stat("cpu  100 0 50 800 0 0 0 50 7 7\ncpu0 1 2 3\n");
  const auto after = parse_stat("cpu  150 0 50 830 0 0 0 70 9 9\n");
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->total, 1000U);  // user time includes guest time
  EXPECT_DOUBLE_EQ(steal_share(*before, *after).value_or(-1), 0.2);  // 20 of 100
  EXPECT_EQ(steal_share(*before, *before), std::nullopt);
  EXPECT_EQ(steal_share(*after, *before), std::nullopt);
  for (const char* text : {"", "cpu", "cpu 1 2 3\n", "cpu a b c d e f g h\n", "intr 1\n"}) {
    EXPECT_FALSE(parse_stat(text).has_value()) << text;
  }
}

TEST(Machine, ReadsThisOne) {
  const Machine machine = read_machine(RealFiles());
  EXPECT_GE(machine.usable_cores, 1);
  EXPECT_LE(machine.usable_cores, machine.physical_cores);
  EXPECT_GT(machine.memory_bytes, 1 << 20);
  EXPECT_TRUE(machine.cpu_class.starts_with("cpu-"));
  const RealMachineLoad load;
  EXPECT_TRUE(load.ticks().has_value());
  EXPECT_GE(load.load_average().value_or(-1), 0);
  EXPECT_GT(load.memory_available().value_or(0), 0);
}

}  // namespace machine_test
}  // namespace weir::sys
