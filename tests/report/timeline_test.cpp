// Tests the text of `weir profile`, and its trace for Perfetto.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/timeline_text.hpp"
#include "gate/report/timeline_tracks.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace timeline_test {

using observed::Command;
using observed::Interval;
using support::expect_golden;

Command dispatch(const char* kernel, std::optional<std::uint32_t> group) {
  Command out;
  out.name = kernel;
  out.groups = {64, 1, 1};
  out.push_bytes = 16;
  out.group = group;
  return out;
}

Command copy(const char* what, std::uint64_t bytes, std::uint32_t group) {
  Command out;
  out.kind = Command::Kind::copy;
  out.name = what;
  out.bytes = bytes;
  out.group = group;
  return out;
}

// Builds a token: two buffers, the second one not timed; a graph, its waits and a transfer.
observed::Timeline a_token() {
  observed::Process process;
  process.pid = 4711;
  process.name = "engine";
  process.queues = {{"GPU", "vulkan queue 0.0"}};
  process.graphs = {{{{"RMS_NORM", "norm-0", "Vulkan0", false},
                      {"MUL", "norm_w-0", "Vulkan0", false},
                      {"MUL_MAT", "Qcur-0", "Vulkan0", false},
                      {"MUL_MAT", "Kcur-0", "Vulkan0", false}}}};
  process.graph_runs = {{0, 4711, {0.001, 0.004}}};
  observed::Submission first;
  first.thread = 4711;
  first.call = {0.0015, 0.0016};
  Command barrier;
  barrier.kind = Command::Kind::barrier;
  barrier.name = "memory barrier";
  first.buffers.push_back(
      {{dispatch("rms_norm_mul_f32", 0), barrier, dispatch("mul_mat_vec_f16_f32_f32", 1),
        dispatch("mul_mat_vec_f16_f32_f32", 1), barrier, copy("copy buffer", 2048, 2)},
       Interval{0.002, 0.0101},
       {{0.002, 0.0025}, {0.0026, 0.0099}, {0.00995, 0.01}}});
  observed::Submission second = first;
  second.call = {0.003, 0.0031};
  second.buffers = {{{dispatch("argmax_f32", std::nullopt)}, std::nullopt, {}}};
  process.submissions = {first, second};
  process.waits = {{0, 4711, "wait for fence", {0.0041, 0.0103}, true},
                   {std::nullopt, 4711, "wait for backend", {0.004, 0.0104}, false}};
  process.transfers = {{"set", "program", "Vulkan0", 256, 4711, {0, 0.0005}}};
  observed::Timeline out;
  out.processes.push_back(process);
  return out;
}

observed::Timeline aligned_token() {
  observed::Timeline out = a_token();
  auto& commands = out.processes[0].submissions[0].buffers[0].commands;
  commands[0].op = "RMS_NORM_MUL";
  commands[0].node = "norm-0";
  commands[2].op = commands[3].op = "MUL_MAT";
  out.alignment = observed::Alignment{1, 4, 1, 4, 0, {"graph 0: kernel argmax_f32"}};
  return out;
}

TEST(TimelineText, ReadsAsInTheGoldenFile) {
  observed::Timeline timeline = aligned_token();
  timeline.warnings = {"vulkan probe in engine: some of the device's work could not be timed"};
  expect_golden("timeline.txt", timeline_text(timeline, {}));
  expect_golden("timeline-by-op.txt", timeline_text(timeline, {.by = "op"}));
  expect_golden("timeline.json", dump_json(timeline_json(timeline), 1) + "\n");
}

TEST(TimelineText, TellsPartsThatDoNotAddUp) {
  const auto printed = [](double seconds) {
    observed::Timeline timeline = a_token();
    timeline.processes[0].submissions[0].buffers[0].device = Interval{0, seconds};
    return timeline_text(timeline, {});
  };
  // The parts take 7.85 ms. Lines end after 80 columns.
  const struct {
    double share;
    const char *sum, *why;
  } cases[] = {{0.88, "88.0 % of the whole.", "device idled between them"},
               {0.92, "92.0 % of the whole.\n", ""},
               {1.05, "105.0 % of the whole.\n", ""},
               {1.2, "120.0 % of the whole.", "overlap, or a clock is at fault."}};
  for (const auto& test_case : cases) {
    EXPECT_THAT(
        printed(0.00785 / test_case.share),
        testing::AllOf(testing::HasSubstr(test_case.sum), testing::HasSubstr(test_case.why)));
  }
}

// Compares the device's work with the time from the first submission to the end of the last call.
TEST(TimelineText, HoldsTheBusiestQueueAgainstTheClock) {
  const auto printed = [](double device) {
    observed::Timeline timeline = a_token();
    auto& process = timeline.processes[0];
    process.submissions[0].buffers[0].device = Interval{0, device};
    process.submissions[1].buffers[0].device.reset();
    return timeline_text(timeline, {});
  };
  const auto wall = observed::busy(a_token());
  ASSERT_TRUE(wall);
  EXPECT_THAT(printed(0.2 * wall->wall), testing::HasSubstr("in nothing above"));
  EXPECT_THAT(printed(0.8 * wall->wall), testing::Not(testing::HasSubstr("busiest queue")));
  EXPECT_THAT(printed(1.5 * wall->wall), testing::HasSubstr("its work overlaps, or a clock"));
}

// The last call ends after 10.4 ms.
TEST(TimelineText, TellsWhatRecordingTookOfTheRun) {
  observed::Timeline timeline = a_token();
  EXPECT_THAT(timeline_text(timeline, {}), testing::Not(testing::HasSubstr("Recording took")));
  EXPECT_FALSE(timeline_json(timeline).contains("recording"));
  timeline.recording = 0.00052;
  EXPECT_THAT(
      timeline_text(timeline, {}),
      testing::HasSubstr("  Recording took about 520.0 us of processor time in 10.40 ms: 5.00 %, "
                         "without\n    what timestamps cost the device.\n"));
  EXPECT_EQ(timeline_json(timeline)["recording"],
            Json({{"seconds", 0.00052}, {"wall_seconds", 0.0104}}));
  for (auto& submission : timeline.processes[0].submissions) {
    for (auto& buffer : submission.buffers) buffer.device.reset();
  }
  EXPECT_THAT(
      timeline_text(timeline, {}),
      testing::HasSubstr("Recording took about 520.0 us of processor time in 10.40 ms: 5.00 %.\n"));
}

TEST(TimelineText, CutsLongTablesAndSaysHowToSeeTheRest) {
  EXPECT_THAT(timeline_text(a_token(), {.max_rows = 1}),
              testing::HasSubstr("and 3 more (--top 4 shows them)"));
}

TEST(TimelineText, FitsIntoEightyColumnsAndKeepsHostileNamesOnTheirLine) {
  observed::Timeline timeline = a_token();
  timeline.processes[0].name = "\x1b[31mevil\n::error::x";
  timeline.processes[0].submissions[0].buffers[0].commands[0].name =
      std::string(300, 'x') + "\n::error::y\x1b]0;z";
  const std::string text = timeline_text(timeline, {});
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("\n::")));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  for (const std::string& line : text::lines(text)) EXPECT_LE(text::columns(line), 80U) << line;
}

TEST(ChromeTrace, HasTracksForThreadsQueuesAndCopies) {
  const std::string trace = chrome_trace(aligned_token());
  expect_golden("timeline.trace.json", trace);
  const auto json = parse_json(trace);
  ASSERT_TRUE(json) << json.error().message;
  std::set<std::string> tracks;
  for (const Json& event : json->at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name") {
      tracks.insert(event.at("args").at("name").get<std::string>());
    }
    if (event.at("ph") == "X") {
      EXPECT_GE(event.at("ts").get<double>(), 0);
      EXPECT_GE(event.at("dur").get<double>(), 0);
    }
  }
  EXPECT_THAT(tracks, testing::ElementsAre("CPU thread 4711", "vulkan queue 0.0 copies, GPU",
                                           "vulkan queue 0.0, GPU"));
}

// OpenCL reports its work command by command.
observed::Timeline commands_alone() {
  observed::Process process;
  process.pid = 12;
  process.name = "clpeak";
  process.queues = {{"CPU", "opencl queue 0.0"}};
  process.commands = {{0, dispatch("peak", std::nullopt), 0.001, Interval{0.0015, 0.002}},
                      {0, dispatch("peak", std::nullopt), 0.003, std::nullopt},
                      {0, copy("copy to host", 2048, 0), 0.004, Interval{0.005, 0.0051}}};
  observed::Timeline out;
  out.processes.push_back(process);
  return out;
}

TEST(TimelineText, CountsCommandsWhereThereAreNoSubmissions) {
  const std::string text = timeline_text(commands_alone(), {});
  EXPECT_THAT(text, testing::HasSubstr("clpeak (12): 3 commands, 0 graphs"));
  // One of the two was timed: 0.5 ms, the best estimate for each of them.
  EXPECT_THAT(text, testing::ContainsRegex("500.0 us +83.3 % +2 +500.0 us +peak"));
  EXPECT_THAT(text, testing::HasSubstr("copy to host (2.00 KiB)"));
}

TEST(ChromeTrace, ShowsCommandsThatWereTimedAndHowLongTheyWaited) {
  const auto json = parse_json(chrome_trace(commands_alone()));
  ASSERT_TRUE(json) << json.error().message;
  std::vector<std::string> shown;
  for (const Json& event : json->at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    shown.push_back(fmt::format("{} {} {}", event.at("cat").get<std::string>(),
                                event.at("name").get<std::string>(),
                                event.at("args").at("microseconds since it was enqueued").dump()));
  }
  EXPECT_THAT(shown, testing::ElementsAre("device peak 500.0", "copy copy to host 1000.0"));
}

}  // namespace timeline_test
}  // namespace weir::report
