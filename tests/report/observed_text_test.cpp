// Tests the text that shows the report of an engine or another profiler.
#include "gate/report/observed_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::report {
namespace observed_text_test {

using testing::HasSubstr;
using testing::Not;

observed::Observed two_ops() {
  observed::Observed observed;
  observed.format = "vk-perf-logger";
  observed.context.engine = "llama.cpp";
  observed::ObservedOp op;
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

TEST(ObservedText, StaysReadableWhateverANumberIs) {
  observed::Observed observed = two_ops();
  observed.ops[0].seconds = 1e300;
  observed.ops[0].flops = 1e308;  // four calls overflow a double
  observed.ops[1].flops = 1e300;
  const std::string text = observed_text(observed, {});
  EXPECT_THAT(text, HasSubstr("1e+300 s"));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 80U) << text;
    at = end + 1;
  }
}

TEST(ObservedText, SaysThatAPercentileIsABound) {
  observed::Observed observed = two_ops();
  const auto metric = *unit::find_metric("time_to_first_token_seconds");
  observed.latencies = {{metric, "percentile", 50, 0.05, true},
                        {metric, "percentile", 90, 0.07, false},
                        {metric, "median", std::nullopt, 0.04, false}};
  const std::string text = observed_text(observed, {});
  EXPECT_THAT(text, testing::ContainsRegex("p50 +at most 50.0 ms"));
  EXPECT_THAT(text, testing::ContainsRegex("p90 +70.0 ms"));
  EXPECT_THAT(text, Not(HasSubstr("median"))) << "the document's p50 is the same figure";
}

observed::Observed two_buffers() {
  observed::Observed observed = two_ops();
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    observed.ops[static_cast<std::size_t>(layer)].layer = layer;
    observed.ops[static_cast<std::size_t>(layer)].phase = observed::Phase::decode;
    observed::ObservedBuffer buffer;
    buffer.label = layer == 0 ? "attention of\nthe first" : "head";
    buffer.dispatches = 12 + layer;
    buffer.seconds = layer == 0 ? 0.0001 : 0.004;
    observed.buffers.push_back(buffer);
  }
  observed.profiled_tokens = 2;
  return observed;
}

std::string shown_by(const observed::Observed& observed, const std::string& word) {
  ObservedStyle style;
  EXPECT_TRUE(set_grouping(style, word)) << word;
  return observed_text(observed, style);
}

TEST(ObservedText, ListsCommandBuffersWithMostTimeFirst) {
  EXPECT_EQ(shown_by(two_buffers(), "buffer"),
            "llama.cpp (format vk-perf-logger)\n"
            "\n"
            "  buffers  dispatches     total  label\n"
            "        1          13   4.00 ms  head\n"
            "        1          12  100.0 us  attention of the first\n"
            "\n"
            "  also there: 2 layers (--by layer)\n");
}

TEST(ObservedText, CountsLayersAndNotTheRowsOfNone) {
  observed::Observed observed = two_buffers();
  observed.ops.emplace_back().op = "lm_head";
  EXPECT_THAT(shown_by(observed, "op"), HasSubstr("2 layers (--by layer)"));
  observed.ops.erase(observed.ops.begin());
  EXPECT_THAT(shown_by(observed, "op"), testing::Not(HasSubstr("(--by layer)")));
}

TEST(ObservedText, ListsCommandBuffersWhereThereIsNothingElse) {
  auto observed = two_buffers();
  observed.ops.clear();
  EXPECT_THAT(observed_text(observed, {}), HasSubstr("4.00 ms  head\n"));
}

TEST(ObservedText, DividesTheWorkOfDecodingByItsTokens) {
  EXPECT_THAT(shown_by(two_buffers(), "token"), HasSubstr("  calls      time  what\n"
                                                          "   2.00   1.50 ms  MUL_MAT_VEC\n"
                                                          "   0.50  500.0 us  ADD\n"));
}

TEST(ObservedText, GroupsByLayerAndSaysWhatElseThereIs) {
  const std::string text = shown_by(two_buffers(), "layer");
  EXPECT_THAT(text, HasSubstr("3.00 ms  75.0 %      4  750.0 us  layer 0\n"
                              "  1.00 ms  25.0 %      1   1.00 ms  layer 1\n"));
  EXPECT_THAT(text, HasSubstr("also there: 2 command buffers (--by buffer)"));
  auto observed = two_buffers();
  observed.buffers[0].buffers = 40;
  EXPECT_THAT(shown_by(observed, "layer"), HasSubstr("41 command buffers (--by buffer)"));
  EXPECT_THAT(shown_by(two_buffers(), "split"), HasSubstr("it names no splits of a graph"));
}

// 2 x 64 x 256 operations a call in 750 us: 0.04 GFLOP/s.
TEST(ObservedText, HasRatesWhereTheShapeGivesThem) {
  auto observed = two_ops();
  observed.ops[0].flops = 2.0 * 64 * 256;
  EXPECT_THAT(observed_text(observed, {}),
              HasSubstr("     time   share  calls      each  GFLOP/s  work\n"
                        "  3.00 ms  75.0 %      4  750.0 us     0.04  MUL_MAT_VEC\n"
                        "  1.00 ms  25.0 %      1   1.00 ms           ADD\n"));
}

TEST(ObservedText, ShowsTheShareOfAPeakWhereOneWasNamed) {
  auto observed = two_ops();
  observed.ops[0].seconds_at_peak = 0.0015;
  EXPECT_THAT(observed_text(observed, {}),
              HasSubstr("     time   share  calls      each  of peak  work\n"
                        "  3.00 ms  75.0 %      4  750.0 us   50.0 %  MUL_MAT_VEC\n"
                        "  1.00 ms  25.0 %      1   1.00 ms           ADD\n"));
}

// Two rows of one kernel, of which one has a shape: a rate would describe both.
TEST(ObservedText, HasNoRateWhereSomeRowsDoNotSay) {
  auto observed = two_ops();
  observed.ops[0].flops = 1e6;
  observed.ops[1].kernel = observed.ops[0].kernel;
  EXPECT_THAT(observed_text(observed, {}), Not(HasSubstr("GFLOP/s")));
}

TEST(ObservedText, LeavesOutColumnsOfTimesThatNobodySays) {
  auto observed = two_ops();
  for (auto& op : observed.ops) op.seconds.reset();
  EXPECT_THAT(observed_text(observed, {}), HasSubstr("  calls  work\n"
                                                     "      4  MUL_MAT_VEC\n"));
}

TEST(ObservedText, SaysWhatItLeavesOutAndWhatIsDoubted) {
  auto observed = two_ops();
  observed.warnings = {"it ends in the middle"};
  const std::string text = observed_text(observed, {80, 1, observed::GroupBy::op});
  EXPECT_THAT(text, HasSubstr("MUL_MAT\n"));
  EXPECT_THAT(text, Not(HasSubstr("ADD")));
  EXPECT_THAT(text, HasSubstr("and 1 more (--top 2 shows them)"));
  EXPECT_THAT(text, HasSubstr("warning: it ends in the middle"));
}

TEST(ObservedText, IsInertWhateverNamesAre) {
  auto observed = two_ops();
  observed.context.model = "a\n::error::b\x1b[31m";
  observed.ops[0].kernel = "x\n::warning::y\x1b[0m";
  const std::string text = observed_text(observed, {});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\n::")));
}

}  // namespace observed_text_test
}  // namespace weir::report
