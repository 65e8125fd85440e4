// Tests checks of measurements against each other: they warn if two disagree, and say nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/observed/timeline.hpp"
#include "gate/observed/totals.hpp"

namespace weir::observed {
namespace cross_checks_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void add_row(Observed& observed, const char* op, const char* backend, double seconds) {
  ObservedOp row;
  row.op = op;
  row.backend = backend;
  row.calls = 10;
  row.seconds = seconds;
  row.phase = Phase::decode;
  observed.ops.push_back(row);
}

void add_buffer(Observed& observed, double seconds) {
  ObservedBuffer buffer;
  buffer.seconds = seconds;
  observed.buffers.push_back(buffer);
}

TEST(CrossChecks, TellWhereSumsAndWholeDisagree) {
  struct Case {
    double buffers;  // seconds, with 1 s of dispatches
    const char* want;
  };
  // A difference of 5 % is good, more than 10 % is not reliable. 1 / 0.93 is 8 % more, 1 / 0.5 100
  // %. Marks of an engine include idle time of the device, so its probe reports 88 to 92 % of them.
  const Case cases[] = {{1.0, ""},
                        {0.97, ""},
                        {0.93, "8 % apart"},
                        {0.5, "100 % apart, too much to trust"},
                        {1 / 0.92, ""},
                        {1 / 0.88, ""},
                        {1 / 0.4, "command buffers to 2.50 s: most of their time is in no"}};
  for (const Case& entry : cases) {
    Observed observed;
    add_row(observed, "MUL_MAT", "Metal", 1.0);
    add_buffer(observed, entry.buffers);
    const auto doubts = cross_checks(observed, "before");
    if (*entry.want == '\0') {
      EXPECT_TRUE(doubts.empty()) << entry.buffers;
    } else {
      ASSERT_EQ(doubts.size(), 1U) << entry.buffers;
      EXPECT_THAT(doubts.front(), HasSubstr(entry.want));
      EXPECT_THAT(doubts.front(), HasSubstr("before: "));
    }
  }
}

// Names that ggml, llama.cpp and an engine's marks use for the host.
TEST(CrossChecks, LookForNoOpOfTheCpuInACommandBuffer) {
  for (const char* backend : {"CPU", "BLAS", "CPU_REPACK", "host"}) {
    Observed observed;
    add_row(observed, "MUL_MAT", "Metal", 1.0);
    add_row(observed, "GET_ROWS", backend, 0.5);
    add_buffer(observed, 1.0);
    EXPECT_THAT(cross_checks(observed), IsEmpty()) << backend;
  }
}

TEST(CrossChecks, HoldOpsAgainstTheClock) {
  struct Case {
    double ops;  // seconds a token; a token takes 0.1 s
    const char* want;
  };
  const Case cases[] = {{0.2, "ops take 200 ms a token, the token 100 ms: they overlap"},
                        {0.105, ""},
                        {0.06, ""},
                        {0.03, "most of its time is in no op"}};
  for (const Case& entry : cases) {
    Observed observed;
    observed.profiled_tokens = 10;
    add_row(observed, "MUL_MAT", "Metal", 10 * entry.ops);
    observed.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {10.0}, {}, {}});
    const auto doubts = cross_checks(observed);
    if (*entry.want == '\0') {
      EXPECT_THAT(doubts, IsEmpty()) << entry.ops;
    } else {
      EXPECT_THAT(doubts, ElementsAre(HasSubstr(entry.want)));
    }
  }
}

// Returns a timeline of one queue that gets work from 1 s on; its last call ends at 2 s.
Timeline make_timeline(double device_seconds) {
  Process process;
  Submission submission;
  submission.call = {1.0, 1.1};
  submission.buffers.push_back({{}, Interval{1.2, 1.2 + device_seconds}, {}});
  process.submissions.push_back(submission);
  process.waits.push_back({0, 1, "wait for fence", {1.1, 2.0}, true});
  Timeline timeline;
  timeline.processes.push_back(process);
  return timeline;
}

TEST(Busy, IsTheBusiestQueueBesideTheClock) {
  const auto busy_now = busy(make_timeline(0.75));
  ASSERT_TRUE(busy_now);
  EXPECT_DOUBLE_EQ(busy_now->device, 0.75);
  EXPECT_DOUBLE_EQ(busy_now->wall, 1.0);
}

TEST(Busy, IsNothingWhereNothingWasTimed) {
  Timeline timeline = make_timeline(0.75);
  timeline.processes[0].submissions[0].buffers[0].device.reset();
  EXPECT_FALSE(busy(timeline));
  EXPECT_FALSE(busy(Timeline{}));
}

}  // namespace cross_checks_test
}  // namespace weir::observed
