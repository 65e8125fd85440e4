// What a profiler wrote, shown to people.
#include "gate/report/observed_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::report {
namespace {

using testing::HasSubstr;
using testing::Not;

profile::Observed two_ops() {
  profile::Observed observed;
  observed.format = "vk-perf-logger";
  observed.context.engine = "llama.cpp";
  profile::ObservedOp op;
  op.op = "MUL_MAT";
  op.kernel = "MUL_MAT_VEC";
  op.calls = 4;
  op.seconds = 0.003;
  observed.ops.push_back(op);
  op.op = op.kernel = "ADD";
  op.calls = 1;
  op.seconds = 0.001;
  observed.ops.push_back(op);
  return observed;
}

TEST(ObservedText, IsWhatItIsOfAndATableOfOps) {
  EXPECT_EQ(observed_text(two_ops(), {}),
            "llama.cpp (format vk-perf-logger)\n"
            "\n"
            "     time   share  calls      each  work\n"
            "  3.00 ms  75.0 %      4  750.0 us  MUL_MAT_VEC\n"
            "  1.00 ms  25.0 %      1   1.00 ms  ADD\n");
}

TEST(ObservedText, SaysWhatItLeavesOutAndWhatIsDoubted) {
  auto observed = two_ops();
  observed.warnings = {"it ends in the middle"};
  const std::string text = observed_text(observed, {80, 1, profile::GroupBy::op});
  EXPECT_THAT(text, HasSubstr("MUL_MAT\n"));
  EXPECT_THAT(text, Not(HasSubstr("ADD")));
  EXPECT_THAT(text, HasSubstr("and 1 more (--top 2 shows them)"));
  EXPECT_THAT(text, HasSubstr("doubt: it ends in the middle"));
}

TEST(ObservedText, IsInertWhateverNamesAre) {
  auto observed = two_ops();
  observed.context.model = "a\n::error::b\x1b[31m";
  observed.ops[0].kernel = "x\n::warning::y\x1b[0m";
  const std::string text = observed_text(observed, {});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\n::")));
}

}  // namespace
}  // namespace weir::report
