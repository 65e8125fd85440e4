// The Chrome trace of `weir profile`, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/adapters/format.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/report/observed_text.hpp"
#include "gate/report/timeline_text.hpp"
#include "gate/report/timeline_tracks.hpp"

namespace weir::flow {
namespace own_trace_test {

using observed::Command;
using observed::Interval;
using report::chrome_trace;
using report::observed_groupings;
using report::observed_rows;
using report::ObservedStyle;
using report::set_grouping;

// A token: a dispatch, two that may overlap, a copy, and one that was not timed; as its device's
// probe saw them and again as the engine's marks say.
observed::Timeline marked_token() {
  observed::Process process;
  process.pid = 4711;
  process.name = "engine";
  process.queues = {{"GPU", "vulkan queue 0.0"}, {"GPU", "marks", true}};
  process.graphs = {{{{"RMS_NORM", "norm-0", "Vulkan0", false, {}, 0},
                      {"MUL_MAT", "Qcur-0", "Vulkan0", false, {}, 0},
                      {"MUL_MAT", "Kcur-0", "Vulkan0", false, {}, 0}},
                     1}};
  process.graph_runs = {{0, 4711, {0.001, 0.004}}};
  const auto dispatch = [](const char* kernel, const char* op, std::uint32_t node,
                           std::optional<std::uint32_t> group) {
    Command out;
    out.name = kernel;
    out.op = op;
    out.run = 0;
    out.first_node = node;
    out.nodes = 1;
    out.group = group;
    return out;
  };
  Command copy;
  copy.kind = Command::Kind::copy;
  copy.name = "copy buffer";
  copy.bytes = 2048;
  copy.group = 2;
  observed::Submission timed;
  timed.thread = 4711;
  timed.call = {0.0015, 0.0016};
  timed.buffers = {
      {{dispatch("rms_norm_f32", "RMS_NORM", 0, 0), dispatch("mul_mat_vec_f16", "MUL_MAT", 1, 1),
        dispatch("mul_mat_vec_f16", "MUL_MAT", 2, 1), copy},
       Interval{0.002, 0.0101},
       {{0.002, 0.0025}, {0.0026, 0.0099}, {0.00995, 0.01}}}};
  observed::Submission untimed = timed;
  untimed.call = {0.003, 0.0031};
  untimed.buffers = {{{dispatch("argmax_f32", "", 0, std::nullopt)}, std::nullopt, {}}};
  observed::Submission marks = timed;
  marks.queue = 1;
  process.submissions = {timed, marks, untimed};
  process.waits = {{0, 4711, "wait for fence", {0.0041, 0.0103}, true},
                   {std::nullopt, 4711, "wait for backend", {0.004, 0.0104}, false}};
  process.transfers = {{"set", "program", "Vulkan0", 256, 4711, {0, 0.0005}}};
  observed::Timeline out;
  out.processes.push_back(process);
  return out;
}

observed::Observed read_back(const std::string& trace) {
  auto read = adapters::read_any({trace, {}, "trace.json"});
  if (read) return std::move(*read);
  ADD_FAILURE() << read.error().message;
  return {};
}

// Each table of the trace is that of the profile: work that marks tell again counts once.
TEST(OwnTrace, HasTheRowsOfTheProfileThatItWasWrittenWith) {
  const observed::Timeline timeline = marked_token();
  const observed::Observed trace = read_back(chrome_trace(timeline));
  const observed::Observed profile = observed::to_observed(timeline);
  EXPECT_EQ(trace.format, "chrome-trace");
  for (const std::string& by : observed_groupings()) {
    ObservedStyle style;
    ASSERT_TRUE(set_grouping(style, by));
    EXPECT_EQ(observed_rows(trace, style), observed_rows(profile, style)) << by;
  }
  EXPECT_FALSE(profile.ops.empty());
}

// The device works 7.85 ms (0.5, 7.3 and 0.05), of which dispatches take 99.4 %. The wait of 6.4
// ms, 6.2 of it within the second, gets no share; nor does any other call.
TEST(OwnTrace, KeepsCallsOfTheCpuOutOfTheDevicesShares) {
  const std::string trace = chrome_trace(marked_token());
  // Without its end the rows are those of the events, and the marks' are not counted again.
  const std::string cut = trace.substr(0, trace.find("\"weirWork\""));
  for (const std::string& text : {trace, cut}) {
    ObservedStyle style;
    ASSERT_TRUE(set_grouping(style, "category"));
    const std::string table = observed_rows(read_back(text), style);
    EXPECT_THAT(table, testing::ContainsRegex("7.80 ms +99.4 % .* device"));
    EXPECT_THAT(table, testing::ContainsRegex("50.0 us +0.6 % .* copy"));
    EXPECT_THAT(table, testing::ContainsRegex("6.40 ms +2 .* wait"));
    for (const char* call : {"submit", "graph", "transfer"}) {
      EXPECT_THAT(table, testing::HasSubstr(call)) << text;
    }
  }
}

TEST(OwnTrace, ShowsHowFastTransfersWere) {
  ObservedStyle style;
  // 256 B in 500 us are 0.000512 GB/s.
  EXPECT_THAT(observed_rows(read_back(chrome_trace(marked_token())), style),
              testing::ContainsRegex("500.0 us +1 +500.0 us +0.00 +set program \u2192 Vulkan0"));
}

// Parts that fit no Observed leave the rows of the events.
TEST(OwnTrace, KeepsItsEventsWhereItsRowsMakeNoSense) {
  const std::string trace = chrome_trace(marked_token());
  for (const char* work : {R"({"ops": "none"})", R"({"ops": [{"step": 9}]})", "[]", "7"}) {
    const std::string head = trace.substr(0, trace.find("\"weirWork\""));
    const observed::Observed read = read_back(head + "\"weirWork\": [" + work + "]}");
    EXPECT_THAT(read.ops, testing::Not(testing::IsEmpty())) << work;
    EXPECT_THAT(read.cpu_calls, testing::Not(testing::IsEmpty())) << work;
  }
}

}  // namespace own_trace_test
}  // namespace weir::flow
