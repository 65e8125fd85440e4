// Tests the counting of instructions through perf events.
#include "gate/sys/perf_events.hpp"

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gate/sys/process.hpp"

namespace weir::sys {
namespace perf_events_test {

using testing::Test;

// Counts an event over a script. Without hardware counters, the kernel's own events take the same
// way.
Finished counted_run(const std::string& script, const PerfEvent& event) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", script};
  spec.count = event;
  const Interrupts interrupts;
  auto finished = processes.run(spec, interrupts.stop());
  if (!finished) throw std::runtime_error(finished.error().message);
  return std::move(*finished);
}

class PerfEventsOfTheKernel : public Test {
 protected:
  void SetUp() override {
    if (const auto why = counter_problem(page_faults_event())) GTEST_SKIP() << *why;
  }
};

TEST_F(PerfEventsOfTheKernel, AreCountedOverAnEngineFromOutside) {
  const Finished finished = counted_run("exit 0", page_faults_event());
  ASSERT_TRUE(finished.counted) << finished.count_error;
  EXPECT_EQ(finished.count_error, "");
  EXPECT_GT(finished.counted->value, 0U);
  EXPECT_GT(finished.counted->enabled_ns, 0U);
  EXPECT_EQ(finished.counted->running_ns, finished.counted->enabled_ns);
}

TEST_F(PerfEventsOfTheKernel, HoldWhatChildrenDidAndNothingOfWeir) {
  const auto single = counted_run("exit 0", page_faults_event()).counted;
  const auto more = counted_run("(exit 0); (exit 0); (exit 0); (exit 0)", page_faults_event());
  ASSERT_TRUE(single && more.counted);
  EXPECT_GT(more.counted->value, single->value);
  // weir is far bigger than a shell that does nothing: a shell has some hundred faults at most.
  EXPECT_LT(single->value, 2000U);
}

TEST_F(PerfEventsOfTheKernel, AreCountedUpToTheEndOfAKilledEngine) {
  const Finished finished = counted_run("kill -9 $$", page_faults_event());
  EXPECT_EQ(finished.ended, HowEnded::signaled);
  ASSERT_TRUE(finished.counted);
  EXPECT_GT(finished.counted->value, 0U);
}

TEST(PerfEvents, AreLeftAloneWhenNobodyAsks) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = {"/bin/true"};
  const Interrupts interrupts;
  const auto finished = processes.run(spec, interrupts.stop());
  ASSERT_TRUE(finished);
  EXPECT_FALSE(finished->counted);
  EXPECT_EQ(finished->count_error, "");
}

TEST(PerfEvents, ThatTheSystemRefusesLeaveTheEngineRunningAndSayWhy) {
  constexpr std::uint32_t k_no_such_type = 0xFFFFFFF0;
  const Finished finished = counted_run("echo fine", {k_no_such_type, 0});
  EXPECT_EQ(finished.ended, HowEnded::exited);
  EXPECT_EQ(finished.out, "fine\n");
  EXPECT_FALSE(finished.counted);
  EXPECT_NE(finished.count_error, "");
}

TEST(PerfEvents, OfInstructionsAreThereOrTheReasonIsTold) {
  const auto why = counter_problem(instructions_event());
  const Finished finished = counted_run("exit 0", instructions_event());
  EXPECT_EQ(finished.counted.has_value(), !why.has_value()) << why.value_or("countable");
  if (why) {
    EXPECT_NE(why->find('\n'), std::string::npos) << "no cure: " << *why;
  } else {
    EXPECT_GT(finished.counted->value, 10'000U);  // the start of a shell takes that many
  }
}

TEST(PerfEvents, AreRefusedInWordsWithACure) {
  struct Case {
    int error;
    std::optional<int> paranoid;
    std::string_view says, cure;
  };
  for (const Case& c : std::vector<Case>{
           {ENOENT, 2, "no counters of instructions", "instructions: valgrind"},
           {EOPNOTSUPP, {}, "no counters of instructions", "virtual performance counters"},
           {EACCES, 4, "perf_event_paranoid is 4", "sysctl kernel.perf_event_paranoid=2"},
           {EACCES, 2, "container", "--cap-add PERFMON"},
           {EPERM, {}, "container", "seccomp"},
           {EBUSY, 2, "another program", "End it"},
           {ENOSYS, {}, "no perf events", "valgrind"},
           {EMFILE, {}, "no descriptor", "ulimit"},
           {EINVAL, {}, "no counter", "valgrind"}}) {
    const std::string words = perf_refusal(c.error, c.paranoid);
    const std::size_t line = words.find('\n');
    ASSERT_NE(line, std::string::npos) << words;
    EXPECT_NE(words.substr(0, line).find(c.says), std::string::npos) << words;
    EXPECT_NE(words.substr(line).find(c.cure), std::string::npos) << words;
  }
}

}  // namespace perf_events_test
}  // namespace weir::sys
