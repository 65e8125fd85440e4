// Tests that events of the ggml probe under WEIR_PROBE_REPLAY become a recording.
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/probes/read/replay_events.hpp"

namespace weir::probes {
namespace events_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string node_bytes(const char* name, std::uint64_t weights, std::int64_t columns = 64) {
  weir_event_step_node node{};
  node.op = 29;
  node.tensors = 2;
  std::strcpy(node.op_name, "MUL_MAT");
  std::strcpy(node.op_desc, "MUL_MAT");
  std::strcpy(node.name, name);
  weir_event_step_tensor result{};
  std::strcpy(result.type_name, "f32");
  result.ne[0] = columns;
  result.root = 1;
  weir_event_step_tensor source = result;
  source.slot = 1;
  source.root = weights;
  source.root_flags = WEIR_ROOT_CONSTANT;
  std::strcpy(source.memory, "CPU_Mapped");
  return bytes_of(node) + bytes_of(result) + bytes_of(source);
}

// Events of one thread, whose bytes live as long as this.
struct Recorded {
  ProbeRecord record;
  std::vector<std::unique_ptr<std::string>> bodies;

  Recorded() {
    record.counts.process = "engine";
    record.counts.devices.resize(1);
    record.counts.devices[0].name = "CPU";
    record.counts.graphs.resize(2);
    record.counts.graphs[1].rows = 1;
    record.events.threads.resize(1);
  }
  void add(std::uint16_t kind, std::uint32_t index, std::string body) {
    bodies.push_back(std::make_unique<std::string>(std::move(body)));
    record.events.threads[0].events.push_back({kind, index, *bodies.back()});
  }
  void step(std::uint32_t list, std::uint64_t nanoseconds) {
    add(WEIR_EVENT_STEP, list,
        bytes_of(weir_event_step{1000, 1000 + nanoseconds, 1, 3, 5, 2, 16, 64}));
  }
};

TEST(ReplayEvents, NodesThatDifferInTheirWeightsAloneAreOneWithACount) {
  Recorded recorded;
  recorded.add(WEIR_EVENT_ENGINE, 0, std::string("0.9.5\0", 6));
  recorded.step(0, 9'000'000);  // the first touches fresh memory
  recorded.add(WEIR_EVENT_STEP_NODE, 0, node_bytes("Qcur-0", 7));
  recorded.add(WEIR_EVENT_STEP_NODE, 0, node_bytes("Qcur-1", 8));
  recorded.add(WEIR_EVENT_STEP_NODE, 0, node_bytes("result", 9, 128));
  recorded.step(0, 3'000'000);
  recorded.step(0, 4'000'000);
  const profile::Replay replay = make_replay(recorded.record);
  EXPECT_THAT(replay.warnings, IsEmpty());
  EXPECT_EQ(replay.version, "0.9.5");
  EXPECT_EQ(replay.threads, 2);
  ASSERT_EQ(replay.steps.size(), 1U);
  const profile::ReplayStep& step = replay.steps[0];
  EXPECT_EQ(step.rows, 1);
  EXPECT_EQ(step.visible_mask_share, 0.25);
  EXPECT_EQ(step.views, 2);  // of 5 nodes 3 work
  EXPECT_THAT(step.seconds, ElementsAre(testing::DoubleEq(0.003), testing::DoubleEq(0.004)));
  ASSERT_EQ(step.nodes.size(), 2U);
  EXPECT_EQ(step.nodes[0].name, "Qcur-0");
  EXPECT_EQ(step.nodes[0].count, 2);
  EXPECT_EQ(step.nodes[0].backend, "CPU");
  ASSERT_EQ(step.nodes[0].roots.size(), 2U);
  EXPECT_FALSE(step.nodes[0].roots[0].constant);
  EXPECT_TRUE(step.nodes[0].roots[1].constant);
  EXPECT_EQ(step.nodes[0].roots[1].memory, "CPU_Mapped");
  // The recording can be read as a file.
  const auto read = profile::replay_from_json(write_fields(replay));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, replay);
}

TEST(ReplayEvents, GraphsWithoutRoomForTheirNodesAreTold) {
  Recorded recorded;
  recorded.step(UINT32_MAX, 1);
  const profile::Replay replay = make_replay(recorded.record);
  EXPECT_THAT(replay.steps, IsEmpty());
  EXPECT_THAT(replay.warnings, Contains(HasSubstr("more shapes")));
}

TEST(ReplayEvents, NodesThatMakeNoSenseAreLeftOutAndTold) {
  for (const std::string& body :
       {node_bytes("x", 7, -1), node_bytes("x", 7).substr(0, 300), std::string(), [] {
          std::string bytes = node_bytes("x", 7);
          bytes[0] = '\xFF';
          bytes[1] = '\xFF';  // the op's number
          return bytes;
        }()}) {
    Recorded recorded;
    recorded.step(0, 1);
    recorded.add(WEIR_EVENT_STEP_NODE, body.empty() ? 5 : 0, node_bytes("y", 7));
    recorded.add(WEIR_EVENT_STEP_NODE, 0, body);
    const profile::Replay replay = make_replay(recorded.record);
    ASSERT_EQ(replay.steps.size(), 1U);
    EXPECT_LE(replay.steps[0].nodes.size(), 1U + (body.empty() ? 1U : 0U));
    EXPECT_THAT(replay.warnings, Contains(HasSubstr("make no sense")));
  }
}

TEST(ReplayEvents, RandomBytesMakeARecordingThatCanBeReadOrNone) {
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) {
    Recorded recorded;
    recorded.step(0, random());
    std::string body = node_bytes("x", 7);
    for (int n = 0; n < 4; ++n) body[random() % body.size()] = static_cast<char>(random());
    recorded.add(WEIR_EVENT_STEP_NODE, 0, body);
    const profile::Replay replay = make_replay(recorded.record);
    const auto read = profile::replay_from_json(write_fields(replay));
    ASSERT_TRUE(read) << read.error().message;
  }
}

}  // namespace events_test
}  // namespace weir::probes
