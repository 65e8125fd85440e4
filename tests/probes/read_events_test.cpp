// Tests of reading files of events, and of the timeline made from them.
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/probes/read/device_clock.hpp"
#include "gate/probes/read/timeline.hpp"

namespace weir::probes {
namespace read_events_test {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::uint32_t k_block = 1024;

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class Body>
std::string record(std::uint16_t kind, std::uint32_t index, const Body& body,
                   std::string tail = "") {
  std::string text = bytes_of(body) + tail;
  text.resize((text.size() + 7) / 8 * 8, '\0');
  return bytes_of(weir_event{kind, static_cast<std::uint16_t>(1 + text.size() / 8), index}) + text;
}

std::string thread(std::uint32_t id) { return bytes_of(weir_event{WEIR_EVENT_THREAD, 1, id}); }

// A file of blocks that hold these records.
std::string make_file(const std::vector<std::string>& blocks) {
  weir_events_header header{};
  std::memcpy(header.magic, WEIR_EVENTS_MAGIC, sizeof header.magic);
  header.version = WEIR_EVENTS_VERSION;
  header.header_size = WEIR_EVENTS_HEADER_SIZE;
  header.block_size = k_block;
  header.blocks = static_cast<std::uint32_t>(blocks.size());
  header.pid = 42;
  std::strcpy(header.probe, "vulkan");
  std::string out = bytes_of(header);
  out.resize(WEIR_EVENTS_HEADER_SIZE, '\0');
  for (const std::string& records : blocks) {
    std::string block = bytes_of(weir_events_block{static_cast<std::uint32_t>(records.size()), 0});
    block += records;
    block.resize(k_block, '\0');
    out += block;
  }
  return out;
}

ProbeFile counts_with(std::size_t kernels) {
  ProbeFile out;
  out.probe = "vulkan";
  out.process = "engine";
  out.pid = 42;
  out.devices.resize(1);
  out.devices[0].api = "vulkan";
  out.queues.resize(1);
  for (std::size_t i = 0; i < kernels; ++i) {
    ProbeKernel kernel;
    kernel.name = "kernel" + std::to_string(i);
    out.kernels.push_back(kernel);
  }
  return out;
}

// One submission of one buffer with two groups, at 1000 and 2000 ticks of 10 ns.
std::string a_submission(bool calibrated) {
  const std::uint64_t groups[] = {1000, 1500, 1600, 2000};
  const std::string pairs(reinterpret_cast<const char*>(groups), sizeof groups);
  const weir_event_clock clock = calibrated ? weir_event_clock{500, 1'000'000, 0, 10e-9, 64, 0}
                                            : weir_event_clock{0, 0, 0, 10e-9, 64, WEIR_CLOCK_NONE};
  return record(WEIR_EVENT_CLOCK, 0, clock) +
         record(WEIR_EVENT_BUFFER, 0, weir_event_buffer{1, 0, 3}) +
         record(WEIR_EVENT_DISPATCH, 1, weir_event_dispatch{4, 2, 1, 0, 0, 3}, "abc") +
         record(WEIR_EVENT_BARRIER, 0, weir_event_barrier{1, 0, 0, 0, 0, 0}) +
         record(WEIR_EVENT_DISPATCH, 2, weir_event_dispatch{1, 1, 1, 0, 1, 0}) +
         record(WEIR_EVENT_SUBMIT, 0, weir_event_submit{1, 1'003'000, 1'004'000, 1, 0}) +
         record(WEIR_EVENT_TIMES, 0, weir_event_times{1, 0, 0, 900, 2100, 2, 0}, pairs);
}

observed::Timeline read_timeline(const std::string& bytes, const ProbeFile& counts) {
  auto events = read_event_file(bytes);
  EXPECT_TRUE(events) << events.error().message;
  std::vector<ProbeRecord> records;
  records.push_back({counts, std::move(*events)});
  return make_timeline(std::move(records));
}

TEST(ReadEventFile, PutsTheBlocksOfAThreadTogetherAlsoWhereOneChangesHands) {
  const auto wait = [](std::uint64_t at) {
    return record(WEIR_EVENT_WAIT, 0, weir_event_wait{at, at + 1, 0, 0});
  };
  const std::string bytes = make_file(
      {thread(7) + wait(1), thread(8) + wait(2), thread(7) + wait(3) + thread(9) + wait(4)});
  const auto read = read_event_file(bytes);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(read->threads, SizeIs(3));
  EXPECT_EQ(read->threads[0].thread, 7U);
  ASSERT_THAT(read->threads[0].events, SizeIs(2));
  EXPECT_EQ(read->threads[0].events[1].as<weir_event_wait>().begin, 3U);
  EXPECT_EQ(read->threads[2].thread, 9U);
}

TEST(ReadEventFile, RefusesWhatIsNotWhole) {
  const std::string good = make_file({thread(1) + a_submission(true)});
  ASSERT_TRUE(read_event_file(good));
  const auto changed = [&](std::size_t at, std::uint32_t value) {
    std::string out = good;
    std::memcpy(out.data() + at, &value, sizeof value);
    return out;
  };
  const struct {
    const char* what;
    std::string bytes;
    const char* says;
  } cases[] = {
      {"too short", good.substr(0, 4000), "too few"},
      {"no magic", changed(0, 0), "not one"},
      {"another version", changed(8, 9), "version 9"},
      {"no blocks' size", changed(16, 0), "blocks of 0"},
      {"more used than there is", changed(WEIR_EVENTS_HEADER_SIZE, 5000), "5000 of"},
      {"a record without a length", changed(WEIR_EVENTS_HEADER_SIZE + 8, WEIR_EVENT_THREAD),
       "record of 0 bytes"},
      {"records of nobody", changed(WEIR_EVENTS_HEADER_SIZE + 8, 1U << 16 | 77), "whose"},
  };
  for (const auto& c : cases) {
    const auto read = read_event_file(c.bytes);
    ASSERT_FALSE(read) << c.what;
    EXPECT_THAT(read.error().message, HasSubstr(c.says)) << c.what;
  }
  // A file whose last block is cut off ends before it.
  const auto cut = read_event_file(good.substr(0, good.size() - 1));
  ASSERT_TRUE(cut);
  EXPECT_THAT(cut->threads, SizeIs(0));
}

TEST(Timeline, TiesDeviceTimesToTheClockOfTheCpu) {
  const auto timeline = read_timeline(make_file({thread(5) + a_submission(true)}), counts_with(3));
  EXPECT_THAT(timeline.warnings, SizeIs(0));
  ASSERT_THAT(timeline.processes, SizeIs(1));
  ASSERT_THAT(timeline.processes[0].submissions, SizeIs(1));
  const observed::Submission& submission = timeline.processes[0].submissions[0];
  EXPECT_EQ(submission.thread, 5U);
  const observed::BufferWork& buffer = submission.buffers.at(0);
  ASSERT_TRUE(buffer.device);
  ASSERT_THAT(buffer.groups, SizeIs(2));
  // 1000 ticks are 500 behind the pair: 1 000 000 + 500 x 10 ns. The earliest time of all is the
  // submission's, 1 003 000, and is 0.
  EXPECT_NEAR(submission.call.begin, 0, 1e-12);
  EXPECT_NEAR(buffer.groups[0].begin, 2e-6, 1e-12);
  EXPECT_NEAR(buffer.groups[1].length(), 4e-6, 1e-12);
  EXPECT_EQ(buffer.commands[0].name, "kernel1");
  EXPECT_EQ(buffer.commands[0].push_bytes, 3U);
  EXPECT_EQ(buffer.commands[2].group, 1U);
}

TEST(Timeline, PlacesDeviceWorkAtItsSubmissionWhereTheDriverTiesNothing) {
  const auto timeline = read_timeline(make_file({thread(5) + a_submission(false)}), counts_with(3));
  const observed::Submission& submission = timeline.processes.at(0).submissions.at(0);
  ASSERT_TRUE(submission.buffers.at(0).device);
  EXPECT_NEAR(submission.buffers[0].device->begin, submission.call.begin, 1e-12);
  EXPECT_NEAR(submission.buffers[0].device->length(), 12e-6, 1e-12);
  EXPECT_THAT(timeline.warnings, Contains(HasSubstr("as early as its submission allows")));
}

// Commands of 10 ns ticks: one held up behind another, a copy that was not timed.
TEST(Timeline, TiesCommandsByTheTimeOfTheirCall) {
  const std::string commands =
      record(WEIR_EVENT_CLOCK, 0, weir_event_clock{0, 0, 0, 10e-9, 64, WEIR_CLOCK_NONE}) +
      record(WEIR_EVENT_COMMAND, 1, weir_event_command{1000, 1100, 1300, 0, 0, 0, 50'000}) +
      record(WEIR_EVENT_COMMAND, 2, weir_event_command{1020, 1300, 1400, 0, 0, 0, 50'100}) +
      record(WEIR_EVENT_COMMAND, 0, weir_event_command{0, 0, 0, 64, 0, 1 + WEIR_COPY_READ, 60'000});
  const auto timeline = read_timeline(make_file({thread(5) + commands}), counts_with(3));
  EXPECT_THAT(timeline.warnings, testing::ElementsAre(HasSubstr("as early as its submission")));
  const auto& lone_commands = timeline.processes.at(0).commands;
  ASSERT_THAT(lone_commands, SizeIs(3));
  EXPECT_EQ(lone_commands[1].command.name, "kernel2");
  // Tick 1000 is 50 000 ns of the CPU's clock: the first call came closest to its tick.
  ASSERT_TRUE(lone_commands[0].device && lone_commands[1].device);
  EXPECT_NEAR(lone_commands[0].enqueued, 0, 1e-12);
  EXPECT_NEAR(lone_commands[0].device->begin, 1e-6, 1e-12);
  EXPECT_NEAR(lone_commands[0].device->length(), 2e-6, 1e-12);
  EXPECT_NEAR(lone_commands[1].enqueued, 0.1e-6, 1e-12);
  EXPECT_NEAR(lone_commands[1].device->begin, 3e-6, 1e-12);
  EXPECT_FALSE(lone_commands[2].device);
  EXPECT_EQ(lone_commands[2].command.name, "copy to host");
  EXPECT_EQ(lone_commands[2].command.bytes, 64U);
  EXPECT_NEAR(lone_commands[2].enqueued, 10e-6, 1e-12);
}

TEST(Timeline, LeavesOutWhatPointsNowhereAndSaysSo) {
  // Kernel 2 is not in the counts; neither is queue 9.
  const std::string strays = record(WEIR_EVENT_SUBMIT, 9, weir_event_submit{2, 1, 2, 0, 0}) +
                             record(WEIR_EVENT_TRANSFER, 3, weir_event_transfer{1, 2, 3}) +
                             record(WEIR_EVENT_NODE, 3, weir_event_node{4, 5}, "x");
  const auto timeline =
      read_timeline(make_file({thread(5) + a_submission(true) + strays}), counts_with(2));
  EXPECT_THAT(timeline.warnings, Contains(HasSubstr("4 records of events make no sense")));
  EXPECT_EQ(timeline.processes.at(0).submissions.at(0).buffers.at(0).commands.at(2).name,
            "(unknown)");
}

TEST(Timeline, ForgetsASubmissionThatWasRefused) {
  const std::string refused = record(WEIR_EVENT_BUFFER, 0, weir_event_buffer{1, 0, 1}) +
                              record(WEIR_EVENT_DISPATCH, 1, weir_event_dispatch{});
  const auto timeline = read_timeline(make_file({thread(5) + refused}), counts_with(2));
  EXPECT_THAT(timeline.processes.at(0).submissions, SizeIs(0));
}

TEST(Timeline, SurvivesTenThousandDamagedFiles) {
  const std::string good =
      make_file({thread(5) + a_submission(true), thread(6) + a_submission(false)});
  std::mt19937 random(20260101);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = good;
    for (std::uint32_t hits = 1 + random() % 8; hits > 0; --hits) {
      // Most of the file is padding.
      const std::size_t at =
          random() % 2 == 0 ? random() % 128 : WEIR_EVENTS_HEADER_SIZE + random() % (2 * k_block);
      bytes[at] = static_cast<char>(random());
    }
    if (random() % 16 == 0) bytes.resize(random() % bytes.size());
    auto events = read_event_file(bytes);
    if (!events) continue;
    std::vector<ProbeRecord> records;
    records.push_back({counts_with(3), std::move(*events)});
    const auto timeline = make_timeline(std::move(records));
    EXPECT_LE(timeline.processes.size(), 1U);
  }
}

DeviceClock make_clock(const std::vector<weir_event_clock>& pairs) {
  DeviceClock clock;
  for (const weir_event_clock& pair : pairs) clock.add(pair);
  clock.finish();
  return clock;
}

TEST(DeviceClock, FollowsTheDriftBetweenTwoPairsInWhateverOrderTheyCome) {
  // 0.5 % slow. A thread hands in the first and the last pair before another one those between.
  const DeviceClock clock = make_clock({{1000, 50'000, 0, 1e-9, 64, WEIR_CLOCK_CALIBRATED},
                                        {3000, 52'020, 0, 1e-9, 64, WEIR_CLOCK_CALIBRATED},
                                        {2000, 51'005, 0, 1e-9, 64, WEIR_CLOCK_CALIBRATED}});
  EXPECT_NEAR(*clock.cpu_nanoseconds(1500, 50'400), 50'502.5, 1e-6);
  // Between the second and the third: 1015 for 1000 ticks is beyond 1 %, so a jump: the tick's own.
  EXPECT_NEAR(*clock.cpu_nanoseconds(2500, 51'400), 51'505, 1e-6);
  EXPECT_NEAR(*clock.cpu_nanoseconds(900, 40'000), 49'899.5, 1e-6);
  EXPECT_STREQ(clock.warning(), "");
}

TEST(DeviceClock, GoesOnWhereACounterBeginsAgainAlsoAfterManyRounds) {
  const DeviceClock clock = make_clock({{0xfff0, 1'000, 0, 1e-9, 16, WEIR_CLOCK_CALIBRATED}});
  EXPECT_NEAR(*clock.cpu_nanoseconds(0x0010, 1'030), 1'032, 1e-9);
  EXPECT_NEAR(*clock.cpu_nanoseconds(0x0010, 1'032 + 10 * 65'536), 1'032 + 10 * 65'536, 1e-6);
  EXPECT_NEAR(*clock.length(0xfff0, 0x0010), 32, 1e-9);
}

TEST(DeviceClock, SaysWhatItsTimesAreWorth) {
  EXPECT_FALSE(DeviceClock().cpu_nanoseconds(1, 0));
  DeviceClock untied;
  untied.add({0, 0, 0, 1e-9, 64, WEIR_CLOCK_NONE});
  EXPECT_THAT(untied.warning(), HasSubstr("stand on their own"));
  // Work begins no earlier than it was submitted: the nearest submission ties the clocks.
  untied.add_submission(1'000, 500);  // waited 100 ns for the device
  untied.add_submission(2'100, 1'500);
  untied.finish();
  EXPECT_NEAR(*untied.cpu_nanoseconds(1'500, 2'100), 2'100, 1e-9);
  EXPECT_NEAR(*untied.cpu_nanoseconds(500, 1'000), 1'100, 1e-9);
}

TEST(Timeline, TakesNoMoreNodesThanAFileMayTell) {
  std::string records = thread(5);
  for (std::uint32_t graph = 0; graph < 20; ++graph) {
    records += record(WEIR_EVENT_NODE, 0, weir_event_node{graph, (1U << 20) - 1}, "x");
  }
  ProbeFile counts = counts_with(1);
  counts.ops.resize(1);
  counts.graphs.resize(20);
  const auto timeline = read_timeline(make_file({records}), counts);
  std::size_t nodes = 0;
  for (const observed::Graph& graph : timeline.processes.at(0).graphs) nodes += graph.nodes.size();
  EXPECT_LE(nodes, std::size_t{1} << 20);
  EXPECT_THAT(timeline.warnings, Contains(HasSubstr("19 records of events make no sense")));
}

}  // namespace read_events_test
}  // namespace weir::probes
