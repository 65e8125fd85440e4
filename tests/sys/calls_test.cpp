// Tests the counting of system calls of real processes.
#include "gate/sys/calls.hpp"

#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/sys/process.hpp"

namespace weir::sys {
namespace calls_test {

Finished traced(std::vector<std::string> argv) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.count_calls = true;
  spec.timeout_seconds = 60;
  const Interrupts interrupts;
  auto finished = processes.run(spec, interrupts.stop());
  if (!finished) throw std::runtime_error(finished.error().message);
  return std::move(*finished);
}

Finished shell(const std::string& script) { return traced({"/bin/sh", "-c", script}); }

std::int64_t writes(const Finished& finished) {
  return finished.calls ? finished.calls->by_name.at("write") : -1;
}

// Skips the tests if the machine forbids ptrace (kernel.yama.ptrace_scope, a container's profile).
class SystemCalls : public testing::Test {
 protected:
  void SetUp() override {
    const Finished finished = shell("echo");
    if (finished.ended == HowEnded::not_started) GTEST_SKIP() << finished.start_error;
  }
};

TEST_F(SystemCalls, AreCountedOneByOneFromOutside) {
  EXPECT_EQ(writes(shell("echo a")), 1);
  EXPECT_EQ(writes(shell("echo a; echo b; echo c")), 3);
  EXPECT_EQ(shell("echo a; echo b").out, "a\nb\n");
}

TEST_F(SystemCalls, AreTheSameInEveryRun) {
  const auto first = shell("for i in 1 2 3 4 5 6 7 8; do echo $i; done").calls;
  ASSERT_TRUE(first);
  EXPECT_GT(first->by_name.at("mmap"), 0);
  for (int run = 0; run < 10; ++run) {
    auto again = shell("for i in 1 2 3 4 5 6 7 8; do echo $i; done").calls;
    ASSERT_TRUE(again);
    again->peak = first->peak;  // the system counts pages roughly
    EXPECT_EQ(again, first);
  }
}

TEST_F(SystemCalls, OfWhatAnEngineStartsAreItsOwn) {
  const Finished finished = shell("(echo a); (echo b); /bin/echo c");
  EXPECT_EQ(finished.out, "a\nb\nc\n");
  EXPECT_EQ(writes(finished), 3);
  EXPECT_EQ(finished.left_behind, 0);
}

// Each process stops at its end and waits until its tracer lets it go on.
TEST_F(SystemCalls, OfAnEngineThatLeavesAProcessEndWithIt) {
  const Finished finished = shell("sleep 600 >/dev/null 2>&1 & echo a");
  EXPECT_EQ(finished.out, "a\n");
  EXPECT_EQ(finished.left_behind, 1);
}

TEST_F(SystemCalls, TellWhatWasReadOfFiles) {
  const auto none = shell(":").calls;
  const auto some = shell("read line < /proc/version; : < /dev/null; : < /nonexistent").calls;
  ASSERT_TRUE(none && some);
  EXPECT_EQ(some->files.opened - none->files.opened, 2) << "one of the three is not there";
  std::string version;
  std::getline(std::ifstream("/proc/version"), version);
  EXPECT_EQ(some->files.read_bytes - none->files.read_bytes, version.size() + 1);
  EXPECT_GT(none->files.mapped_bytes, 1 << 20) << "the C library is mapped";
  EXPECT_EQ(none->files.mapped_bytes, some->files.mapped_bytes);
}

TEST_F(SystemCalls, TellWhatMemoryAProcessHadAtItsPeak) {
  constexpr std::int64_t k_mebi = 1 << 20;
  // The engine holds 32 MiB once, and frees them before it ends.
  const auto calls = traced({"/usr/bin/perl", "-e", "my $x = 'x' x (32 << 20); undef $x;"}).calls;
  ASSERT_TRUE(calls);
  EXPECT_GT(calls->peak.anonymous, 32 * k_mebi);
  EXPECT_LT(calls->peak.anonymous, 80 * k_mebi);
  EXPECT_GT(calls->peak.of_files, k_mebi);
  EXPECT_EQ(calls->peak.shared, 0);
}

TEST_F(SystemCalls, TellWhatAThreadWasAllowed) {
  const auto all = shell(":").calls;
  const auto pinned = traced({"/usr/bin/taskset", "-c", "0", "/bin/true"}).calls;
  ASSERT_TRUE(all && pinned);
  EXPECT_EQ(all->min_cpus, std::thread::hardware_concurrency());
  EXPECT_EQ(pinned->min_cpus, 1);
}

TEST_F(SystemCalls, TellHowManyThreadsWereAliveAtOnce) {
  EXPECT_EQ(shell("echo").calls->max_threads, 1);
  EXPECT_EQ(shell("(echo a; :); (echo b; :); echo c").calls->max_threads, 2);
}

TEST_F(SystemCalls, LeaveTheEndOfAnEngineAsItWas) {
  EXPECT_EQ(shell("exit 7").exit_code, 7);
  const Finished killed = shell("kill -SEGV $$");
  EXPECT_EQ(killed.ended, HowEnded::signaled);
  EXPECT_EQ(killed.signal, SIGSEGV);
  EXPECT_TRUE(killed.calls);
  // The engine gets a signal that it handles.
  EXPECT_EQ(shell("trap 'echo caught' USR1; kill -USR1 $$; echo on").out, "caught\non\n");
}

TEST_F(SystemCalls, OfAnEngineThatHangsEndWithItsTimeOut) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", "(sleep 1000) & sleep 1000"};
  spec.count_calls = true;
  spec.timeout_seconds = 0.3;
  spec.kill_grace_seconds = 0.2;
  const Interrupts interrupts;
  const auto finished = processes.run(spec, interrupts.stop());
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->ended, HowEnded::timed_out);
}

TEST_F(SystemCalls, OfAProgramThatIsNotThereAreNone) {
  const Finished finished = traced({"/nonexistent/engine"});
  EXPECT_EQ(finished.ended, HowEnded::not_started);
  EXPECT_THAT(finished.start_error, testing::HasSubstr("No such file"));
  EXPECT_FALSE(finished.calls);
}

TEST(SystemCallsOfNobody, AreLeftAloneWhenNobodyAsks) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = {"/bin/true"};
  const Interrupts interrupts;
  const auto finished = processes.run(spec, interrupts.stop());
  ASSERT_TRUE(finished);
  EXPECT_FALSE(finished->calls);
  ASSERT_TRUE(finished->usage);
  EXPECT_GT(finished->usage->minor_faults, 0);
}

}  // namespace calls_test
}  // namespace weir::sys
