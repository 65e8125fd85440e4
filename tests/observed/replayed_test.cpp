// Tests the document of a replay: JSON, its main step, its ops and their times.
#include "gate/observed/replayed.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir::observed {
namespace replayed_test {

using namespace profile;  // the recording
using testing::ElementsAre;
using testing::HasSubstr;

ReplayNode product(std::int64_t count) {
  ReplayNode node;
  node.op = node.description = "MUL_MAT";
  node.op_number = 29;
  node.backend = "CPU";
  node.name = "Qcur-0";
  node.count = count;
  node.roots = {{256, false, "CPU"}, {16384, true, "CPU_Mapped"}, {256, false, "CPU"}};
  node.tensors = {{0, "f32", 0, {64, 1, 1, 1}, {4, 256, 256, 256}, 0, 0},
                  {1, "f32", 0, {64, 64, 1, 1}, {4, 256, 16384, 16384}, 0, 1},
                  {2, "f32", 0, {64, 1, 1, 1}, {4, 256, 256, 256}, 0, 2}};
  return node;
}

ReplayNode scan() {
  ReplayNode node = product(4);
  node.op = node.description = "SSM_SCAN";
  return node;
}

Replay recording() {
  Replay replay;
  replay.program = "llama-bench";
  replay.version = "0.9.5";
  replay.commit = "abc";
  replay.library = "/opt/engine/libggml-base.so";
  replay.threads = 2;
  replay.steps = {{7, 3, std::nullopt, {0.5}, {product(1)}},
                  {1, 12, 0.25, {0.004, 0.002, 0.003}, {product(8), scan()}}};
  replay.warnings = {"a doubt"};
  return replay;
}

TEST(Replay, IsTheSameAfterBeingWrittenAndRead) {
  const auto read = replay_from_json(*parse_json(dump_json(write_fields(recording()))));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, recording());
}

TEST(Replay, TheStepOfOneTokenStandsForDecodingElseTheLongest) {
  Replay replay = recording();
  EXPECT_EQ(main_step(replay), 1U);
  replay.steps[1].rows = 2;
  EXPECT_EQ(main_step(replay), 0U);  // 0.5 s against 9 ms
  EXPECT_EQ(main_step({}), std::nullopt);
}

TEST(Replay, OpsAreToldAsElsewhere) {
  EXPECT_EQ(type_text(product(1)), "f32,f32->f32");
  EXPECT_EQ(shape_text(product(1)), "64x64,64->64");
}

TEST(Replay, WhatIsOutOfBoundsIsRefusedWithItsPlace) {
  struct Case {
    const char* what;
    std::function<void(Json&)> change;
    const char* says;
  };
  const auto node = [](Json& json) -> Json& { return json["steps"][0]["nodes"][0]; };
  const Case cases[] = {
      {"another document", [](Json& j) { j["schema"] = "weir.profile/1"; }, "weir.ops/1"},
      {"another engine", [](Json& j) { j["engine"] = "mlx"; }, "engine"},
      {"no steps", [](Json& j) { j.erase("steps"); }, "steps"},
      {"a time below 0", [](Json& j) { j["steps"][0]["seconds"] = {-1}; }, "seconds"},
      {"a share of 2", [](Json& j) { j["steps"][0]["mask_open"] = 2; }, "mask_open"},
      {"a size below 0", [&](Json& j) { node(j)["tensors"][0]["ne"][1] = -1; }, "ne"},
      {"a size of 2^63", [&](Json& j) { node(j)["tensors"][0]["ne"][1] = 9223372036854775808ULL; },
       "ne"},
      {"a stride of 2^60", [&](Json& j) { node(j)["tensors"][0]["nb"][3] = 1LL << 60; }, "nb"},
      {"a size that is no whole number", [&](Json& j) { node(j)["tensors"][0]["ne"][0] = 1.5; },
       "ne"},
      {"three sizes",
       [&](Json& j) {
         node(j)["tensors"][0]["ne"] = {1, 2, 3};
       },
       "ne"},
      {"a root that is not there", [&](Json& j) { node(j)["tensors"][0]["root"] = 3; }, "root"},
      {"no roots", [&](Json& j) { node(j)["roots"] = Json::array(); }, "root"},
      {"a slot twice", [&](Json& j) { node(j)["tensors"][1]["slot"] = 0; }, "twice"},
      {"no result", [&](Json& j) { node(j)["tensors"].erase(0); }, "result"},
      {"an eleventh source", [&](Json& j) { node(j)["tensors"][1]["slot"] = 11; }, "slot"},
      {"a type of 1000", [&](Json& j) { node(j)["tensors"][0]["type_number"] = 1000; },
       "type_number"},
      {"an op of 1000", [&](Json& j) { node(j)["number"] = 1000; }, "number"},
      {"no calls", [&](Json& j) { node(j)["count"] = 0; }, "count"},
      {"a parameter of 2^40", [&](Json& j) { node(j)["params"][0] = 1LL << 40; }, "params"},
      {"no threads", [](Json& j) { j["threads"] = 0; }, "threads"},
      {"a node that is a word", [&](Json& j) { node(j) = "node"; }, "nodes"},
  };
  for (const Case& entry : cases) {
    Json json = write_fields(recording());
    entry.change(json);
    const auto read = replay_from_json(json);
    ASSERT_FALSE(read) << entry.what;
    EXPECT_EQ(read.error().code, Code::data) << entry.what;
    EXPECT_THAT(read.error().message, HasSubstr(entry.says)) << entry.what;
  }
}

// Reads 10 000 recordings with bytes changed, removed or inserted: each is refused or read.
TEST(Replay, RandomBytesDoNotBreakTheReader) {
  const std::string valid = dump_json(write_fields(recording()));
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) {
    std::string text = valid;
    for (int n = 0; n < 3; ++n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        default:
          text.insert(at, 1, "0123456789-{}[],\""[random() % 17]);
      }
    }
    const auto json = parse_json(text);
    if (!json) continue;
    const auto read = replay_from_json(*json);
    if (read) (void)write_fields(*read);
  }
}

Replayed times() {
  Replayed replayed;
  replayed.version = "0.9.5";
  replayed.library = "libggml-cpu-haswell.so";
  replayed.nodes.resize(2);
  replayed.nodes[0].median = 0.0003;
  replayed.nodes[0].min_seconds = 0.0002;
  replayed.nodes[1].left_out = "weir has no rule for the shapes of SSM_SCAN";
  return replayed;
}

TEST(Replayed, SumsAreMediansTimesCallsBesideTheMedianOfTheStep) {
  const Replay replay = recording();
  const ReplaySums sums = sum_up_times(replay.steps[1], times());
  EXPECT_DOUBLE_EQ(*sums.recorded, 0.003);  // the median of 4, 2, 3 ms
  EXPECT_DOUBLE_EQ(*sums.replayed, 8 * 0.0003);
  EXPECT_DOUBLE_EQ(*sums.ratio(), 0.8);
  EXPECT_EQ(sums.calls, 8);
  EXPECT_EQ(sums.left_out, 4);
  EXPECT_FALSE(sum_up_times({}, {}).ratio());
}

TEST(Replayed, WhatIsLeftOutIsAWarningOfTheProfileAndNoRow) {
  const Replay replay = recording();
  const Observed observed = to_observed(replay, replay.steps[1], times(), true);
  EXPECT_THAT(observed.warnings,
              ElementsAre("a doubt",
                          "left out: 4 \u00d7 SSM_SCAN: weir has no rule for the shapes of "
                          "SSM_SCAN"));
  ASSERT_EQ(observed.ops.size(), 1U);
  EXPECT_EQ(observed.ops[0].op, "MUL_MAT");
  EXPECT_EQ(observed.ops[0].calls, 8);
  EXPECT_EQ(observed.ops[0].phase, Phase::decode);
  EXPECT_DOUBLE_EQ(*observed.ops[0].seconds, 0.0024);
  const auto back = read_fields<Observed>(write_fields(observed), "observed");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, observed);
}

TEST(Replayed, APartOfAStepIsNotHeldAgainstTheWhole) {
  const Replay replay = recording();
  const auto names = [&](bool is_whole) {
    std::vector<std::string> out;
    for (const auto& timing : to_observed(replay, replay.steps[1], times(), is_whole).timings) {
      out.push_back(timing.metric.name);
    }
    return out;
  };
  EXPECT_THAT(names(true), ElementsAre("replay_seconds", "recorded_step_seconds"));
  EXPECT_THAT(names(false), ElementsAre("replay_seconds"));
}

}  // namespace replayed_test
}  // namespace weir::observed
