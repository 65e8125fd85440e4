// Tests the document of a profile's page, and the parts of a command line shown in it.
#include "gate/report/timeline_document.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/report/hiding.hpp"
#include "gate/report/timeline_tracks.hpp"

namespace weir::report {
namespace timeline_document_test {

using observed::Command;
using observed::Interval;
using testing::HasSubstr;
using testing::Not;
using Kind = TimelineDocument::Kind;

constexpr const char* k_hostile = "</script><!-- \u202e\x1b[31m";

// Returns the text between the tags of the script element with this id.
std::string block(const std::string& text, const std::string& id) {
  const std::size_t at = text.find("id=\"" + id + "\">");
  EXPECT_NE(at, std::string::npos) << id;
  const std::size_t begin = text.find('>', at) + 1;
  return text.substr(begin, text.find("</script>", begin) - begin);
}

Json read_head(const TimelineDocument& page) {
  const auto json = parse_json(block(page.html_scripts(), "weir-profile"));
  EXPECT_TRUE(json) << json.error().message;
  return json ? *json : Json();
}

std::string read_events(const TimelineDocument& page) {
  return block(page.html_scripts(), "weir-events");
}

TEST(DocumentOfATimeline, HoldsEventsAsColumnsOfVarints) {
  TimelineDocument page({"a run", {{"machine", "m"}}, {"a doubt"}, {}});
  const auto process = page.process("engine (1)");
  const auto track = *page.track(process, Kind::device, "queue");
  // Events are out of order. The earliest of all is at 1 us: times count from there.
  page.event(track, {3e-6, 3.2e-6}, "add");
  page.event(track, {1e-6, 1.05e-6}, "mul", {{{"node", "q"}}, 64, {}});
  const Json head = read_head(page);
  EXPECT_EQ(head["schema"], "weir.profile-page/1");
  EXPECT_EQ(head["title"], "a run");
  EXPECT_EQ(head["facts"], Json::parse(R"([["machine", "m"]])"));
  EXPECT_EQ(head["warnings"], Json::parse(R"(["a doubt"])"));
  EXPECT_EQ(head["names"], Json::parse(R"(["add", "mul"])"));
  EXPECT_EQ(head["details"], Json::parse(R"([{"words": [["node", "q"]], "bytes": 64}])"));
  EXPECT_EQ(head["tracks"], Json::parse(R"([{"name": "queue", "kind": "device", "process": 0,
                                             "events": 2}])"));
  // Starts 0 and 2000 (0xd0 0x0f), lengths 50 and 200 (0xc8 0x01), names 1 0, details 1 0:
  // 00 d0 0f | 32 c8 01 | 01 00 | 01 00
  EXPECT_EQ(read_events(page), "ANAPMsgBAQABAA==");
}

TEST(DocumentOfATimeline, HoldsArrowsThatMayPointBack) {
  TimelineDocument page({});
  const auto process = page.process("p");
  const auto a = *page.track(process, Kind::cpu, "a"), b = *page.track(process, Kind::copy, "b");
  page.arrow(a, 2e-9, b, 1e-9, "get", {{}, 16, {}});
  EXPECT_EQ(read_head(page)["arrows"], 1);
  // The arrow goes from 0 to 1 and begins 1 after the earliest time, its own end. Its length is -1
  // (zigzag: 1), name 0, detail 1.
  EXPECT_EQ(read_events(page), "AAEBAQAB");  // 00 01 01 01 00 01
}

TEST(DocumentOfATimeline, EndsNoElementWhateverSomebodyIsCalled) {
  TimelineDocument page({k_hostile, {{k_hostile, k_hostile}}, {k_hostile}, {}});
  page.table({k_hostile, k_hostile, {{k_hostile, k_hostile}}, {{k_hostile}}});
  const auto track = *page.track(page.process(k_hostile), Kind::async, k_hostile);
  page.event(track, {0, 1}, k_hostile, {{{k_hostile, k_hostile}}, 0, {}});
  const auto document = timeline_page("<body>{{data}}</body>", page);
  ASSERT_TRUE(document) << document.error().message;
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = document->find("</script", at)) != std::string::npos; ++at) ++ends;
  EXPECT_EQ(ends, 2);  // both elements with the document
  EXPECT_THAT(*document, Not(HasSubstr("<!--")));
  EXPECT_THAT(*document, Not(HasSubstr("\x1b")));
  EXPECT_THAT(*document, Not(HasSubstr("\u202e")));  // printed as <U+202E>
  EXPECT_THAT(read_head(page)["names"][0].get<std::string>(), HasSubstr("</script><!-- <U+202E>"));
}

TEST(DocumentOfATimeline, LeavesOutWhatHasNoTimeAndSaysSo) {
  TimelineDocument page({});
  const auto track = *page.track(page.process("p"), Kind::cpu, "t");
  page.event(track, {0, std::numeric_limits<double>::infinity()}, "x");
  page.event(track, {std::nan(""), 1}, "x");
  page.event(track + 1, {0, 1}, "no such track");
  page.event(track, {5, 4}, "ends before it begins");
  const Json head = read_head(page);
  EXPECT_EQ(head["tracks"][0]["events"], 1);
  EXPECT_EQ(head["warnings"],
            Json::parse(R"(["2 events left out: without a time that makes sense"])"));
}

TEST(DocumentOfATimeline, HasSoManyTracksAndNoMore) {
  TimelineDocument page({});
  const auto process = page.process("p");
  for (std::size_t i = 0; i < TimelineDocument::k_max_tracks; ++i) {
    ASSERT_TRUE(page.track(process, Kind::cpu, "t"));
  }
  EXPECT_FALSE(page.track(process, Kind::cpu, "t"));
  EXPECT_THAT(read_head(page)["warnings"][0].get<std::string>(), HasSubstr("1 track left out"));
}

TEST(DocumentOfATimeline, RefusesAPageThatHasNoPlaceForIt) {
  const auto document = timeline_page("<html></html>", TimelineDocument({}));
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::data);
}

observed::Timeline a_token() {
  observed::Process process;
  process.pid = 7;
  process.name = "engine";
  process.queues = {{"GPU", "queue 0"}};
  process.graphs = {{{{"MUL", "q", "Vulkan0", false}}}};
  process.graph_runs = {{0, 7, {0, 9e-6}}};
  Command kernel;
  kernel.name = "mul_f32";
  kernel.op = "MUL";
  kernel.node = "q";
  kernel.groups = {4, 2, 1};
  kernel.group = 0;
  Command copy;
  copy.kind = Command::Kind::copy;
  copy.name = "copy buffer";
  copy.bytes = 32;
  copy.group = 1;
  Command untimed = kernel;
  untimed.group.reset();
  observed::Submission submission;
  submission.thread = 7;
  submission.call = {1e-6, 2e-6};
  submission.buffers = {
      {{kernel, kernel, copy, untimed}, Interval{3e-6, 6e-6}, {{3e-6, 5e-6}, {5e-6, 6e-6}}},
      {{kernel}, Interval{6e-6, 7e-6}, {}}};
  process.submissions = {submission};
  process.waits = {{0, 7, "wait for fence", {2e-6, 8e-6}, true}};
  process.transfers = {{"get", "Vulkan0", "program", 32, 7, {8e-6, 9e-6}}};
  observed::Timeline out;
  out.processes = {process};
  out.warnings = {"the clocks drift"};
  return out;
}

TEST(PageOfATimeline, HasTracksForThreadsQueuesCopiesAndBackends) {
  const Json head = read_head(timeline_document(a_token(), {"t", {}, {}, {}}));
  std::vector<std::string> tracks;
  for (const Json& track : head["tracks"]) {
    tracks.push_back(fmt::format("{} {} {}", track["kind"].get<std::string>(),
                                 track["name"].get<std::string>(), track["events"].get<int>()));
  }
  EXPECT_THAT(tracks,
              testing::ElementsAre("cpu CPU thread 7 4", "device queue 0, GPU 2",
                                   "copy queue 0 copies, GPU 1", "backend backend Vulkan0 0"));
  EXPECT_EQ(head["arrows"], 3);  // two buffers, one transfer
  EXPECT_THAT(
      head["names"].get<std::vector<std::string>>(),
      testing::ElementsAre("graph 0", "submit", "mul_f32 x 2", "copy buffer", "command buffer",
                           "wait for fence", "get Vulkan0 \u2192 program", "get"));
  EXPECT_EQ(head["warnings"], Json::parse(R"(["the clocks drift"])"));
  EXPECT_EQ(head["facts"], Json::parse(R"([["device", "GPU"]])"));
  EXPECT_EQ(head["processes"], Json::parse(R"j(["engine (7)"])j"));
}

// The same token with marks of the engine next to the device's probe.
observed::Timeline marked_token() {
  observed::Timeline out = a_token();
  observed::Process& process = out.processes[0];
  process.queues.push_back({"GPU", "vulkan queue 0.0", true});
  observed::Submission marks = process.submissions[0];
  marks.queue = 1;
  process.submissions.push_back(marks);
  return out;
}

TEST(PageOfATimeline, CountsWorkOnceThatTheEnginesMarksTellAgain) {
  const auto once = observed::work_times(a_token()), twice = observed::work_times(marked_token());
  ASSERT_EQ(twice.size(), once.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(twice[i].calls, once[i].calls) << once[i].name;
    EXPECT_DOUBLE_EQ(twice[i].seconds, once[i].seconds) << once[i].name;
  }
  EXPECT_EQ(observed::coverage(marked_token()).buffers, observed::coverage(a_token()).buffers);
  const Json head = read_head(timeline_document(marked_token(), {}));
  std::vector<std::string> tracks;
  for (const Json& track : head["tracks"]) {
    tracks.push_back(track["kind"].get<std::string>() + " " + track["name"].get<std::string>());
  }
  EXPECT_THAT(tracks, testing::ElementsAre(
                          "cpu CPU thread 7", "device queue 0, GPU", "copy queue 0 copies, GPU",
                          "marks the engine's marks, GPU", "backend backend Vulkan0"));
  EXPECT_EQ(head["tables"][0]["rows"], Json::parse(R"([["mul_f32", 2]])"));
}

TEST(PageOfATimeline, TakesTheEnginesMarksWhereTheDeviceHasNoTimes) {
  observed::Timeline timeline = marked_token();
  for (observed::BufferWork& buffer : timeline.processes[0].submissions[0].buffers) {
    buffer.device.reset();
    buffer.groups.clear();
  }
  const auto work = observed::work_times(timeline), alone = observed::work_times(a_token());
  ASSERT_EQ(work.size(), alone.size());
  EXPECT_DOUBLE_EQ(work[0].seconds, alone[0].seconds);
  EXPECT_EQ(observed::repeated_queues(timeline.processes[0]), (std::vector<bool>{true, false}));
}

TEST(PageOfATimeline, TellsWorkWithoutTimesInATable) {
  const Json head = read_head(timeline_document(a_token(), {}));
  // The kernel without a group, and that of the buffer with untimed parts.
  EXPECT_EQ(head["tables"][0]["rows"], Json::parse(R"([["mul_f32", 2]])"));
}

TEST(PageOfATimeline, NamesWorkByOpWhereItIsAsked) {
  const Json head = read_head(timeline_document(a_token(), {}, observed::By::op));
  EXPECT_EQ(head["names"][2], "MUL x 2");
}

TEST(ShownCommand, HidesPlacesPromptsAndSecrets) {
  const struct {
    std::vector<std::string> words;
    const char* hidden;
    const char* shown;
  } cases[] = {
      {{"/home/ann/llama-bench", "-m", "/data/secret project/m.gguf", "-p", "512,1024"},
       "llama-bench -m m.gguf -p 512,1024",
       "/home/ann/llama-bench -m '/data/secret project/m.gguf' -p 512,1024"},
      {{"main", "-p", "Dear Ann", "--n-tokens", "8"},
       "main -p <8 bytes> --n-tokens 8",
       "main -p 'Dear Ann' --n-tokens 8"},
      {{"main", "--prompt=x", "--api-key", "k", "--token=t"},
       "main --prompt=<1 bytes> --api-key *** --token=***",
       "main --prompt=x --api-key *** --token=***"},
      {{"main", "--file=/home/ann/notes.txt"},
       "main --file=notes.txt",
       "main --file=/home/ann/notes.txt"},
      {{"env", "HOME=/home/ann", "API_KEY=k", "main"},
       "env HOME=ann API_KEY=*** main",
       "env HOME=/home/ann API_KEY=*** main"},
      {{"main", "two words"}, "main <9 bytes>", "main 'two words'"},
      {{"sh", "-c", "cat /home/ann/x | main"},
       "sh -c <22 bytes>",
       "sh -c 'cat /home/ann/x | main'"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(shown_command(c.words, PrivateWords::hidden), c.hidden);
    EXPECT_EQ(shown_command(c.words, PrivateWords::shown), c.shown);
  }
}

TEST(ShownCommand, TakesPlacesOutOfWhatWasSaid) {
  EXPECT_EQ(without_places("cannot read /home/ann/probes/4711.bin: cut short"),
            "cannot read 4711.bin: cut short");
  EXPECT_EQ(without_places("(~/x/y) 3 / 4 a/b \"/q/r\""), "(y) 3 / 4 a/b \"r\"");
}

}  // namespace timeline_document_test
}  // namespace weir::report
