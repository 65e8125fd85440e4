// weir replay on the real llama.cpp: a recording of a step on the CPU and on Vulkan (lavapipe), its
// ops computed alone, and what happens where a recording, the engine or an op is not what it should
// be. No times are held against anything: benchmarks/replay does that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/replay_support.hpp"

namespace weir::e2e {
namespace replay_verb_test {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST_F(Replayed, EveryOpOfAStepIsComputedAloneAndTheSumStandsBesideTheStep) {
  record("tiny-llama");
  const Json recording = document(scratch / "ops.json");
  EXPECT_EQ(recording.at("threads"), 1);
  const Ended ended = replay({"--json", "after.json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(ContainsRegex("a step of 1 token of llama-bench's: [0-9]+ ops "
                                  "replayed in [0-9.]+ [mu]s"),
                    HasSubstr("that it took when it was recorded"), HasSubstr("libggml-cpu-"),
                    HasSubstr("1 thread"), HasSubstr("only view bytes in another way: no work")));
  const Json observed = document(scratch / "after.json");
  EXPECT_EQ(observed.at("schema"), "weir.observed/1");
  EXPECT_EQ(count_calls(observed), k_step);
  EXPECT_EQ(observed.value("warnings", Json::array()), Json::array());
  // The rows add up to the sum.
  double sum = 0, reported = 0;
  for (const Json& op : observed.at("ops")) sum += op.at("seconds").get<double>();
  for (const Json& timing : observed.at("timings")) {
    if (timing.at("metric").at("name") == "replay_seconds") reported = timing.at("mean");
  }
  EXPECT_NEAR(sum, reported, reported * 1e-9);
}

// Only the row of the embedding is looked up on the CPU, as tests/probes/ggml_llama_test.cpp has
// it.
TEST_F(Replayed, AStepOnVulkanIsReplayedThere) {
  record_on_vulkan();
  const Ended ended = replay({"--json", "-"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json observed = json_of(ended);
  std::map<std::string, int> expected{{"CPU GET_ROWS", 1}, {"Vulkan0 GET_ROWS", 2}};
  for (const auto& [op, calls] : k_step) {
    if (op != "GET_ROWS") expected["Vulkan0 " + op] = calls;
  }
  EXPECT_EQ(count_calls_by_place(observed), expected);
  EXPECT_EQ(observed.value("warnings", Json::array()), Json::array());
  EXPECT_THAT(observed.at("context").dump(),
              AllOf(HasSubstr("libggml-cpu-"), HasSubstr("libggml-vulkan.so on llvmpipe")));
  EXPECT_THAT(ended.err, HasSubstr("that it took when it was recorded"));
}

// The scheduler gives a device copies of what the program writes: they are no weights, and masks
// are read where they were written.
TEST_F(Replayed, ARecordingOnVulkanKnowsInputsFromWeights) {
  record_on_vulkan();
  const Json recording = document(scratch / "ops.json");
  ASSERT_EQ(recording.at("steps").size(), 1U);
  const Json& step = recording.at("steps").at(0);
  // 8 tokens one after the other, in 256 places: open are 1 to 8 of them, (1 + 8) / 2 on average,
  // and a warm-up of one token before them.
  ASSERT_TRUE(step.contains("mask_open"));
  EXPECT_NEAR(step.at("mask_open").get<double>(), 4.5 / 256, 1.0 / 256);
  for (const Json& node : step.at("nodes")) {
    for (const Json& root : node.at("roots")) {
      // Weights and caches are of some KiB, positions, places and masks of less.
      const bool small = root.at("bytes").get<int>() < 1024;
      EXPECT_FALSE(small && root.value("constant", false)) << node.dump();
    }
  }
}

TEST_F(Replayed, ARecordingIsReplayedElsewhereWhereOnSaysSo) {
  record("tiny-llama-q4_0");  // with weights that lay re-arranged for the CPU
  const Ended vulkan = replay({"--on", "vulkan", "--json", "-"});
  ASSERT_EQ(vulkan.exit_code, 0) << vulkan.err;
  for (const auto& [op, calls] : count_calls_by_place(json_of(vulkan))) {
    EXPECT_THAT(op, testing::StartsWith("Vulkan0 "));
  }
  EXPECT_EQ(count_calls(json_of(vulkan)), k_step);
  EXPECT_THAT(json_of(vulkan).at("warnings").dump(),
              HasSubstr("82 ops were recorded on CPU and replayed on Vulkan0"));
  record_on_vulkan();
  const Ended cpu = replay({"--on", "cpu", "--json", "-"}, k_cpu_only);
  ASSERT_EQ(cpu.exit_code, 0) << cpu.err;
  EXPECT_EQ(count_calls(json_of(cpu)), k_step);
  const Ended nowhere = replay({"--on", "vulkan-1"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--on vulkan-1"));
}

TEST_F(Replayed, ADeviceThatIsNotThereIsNamed) {
  record_on_vulkan();
  const Ended some = replay({"--json", "-"}, k_cpu_only);
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_EQ(count_calls(json_of(some)), (std::map<std::string, int>{{"GET_ROWS", 1}}));
  EXPECT_THAT(json_of(some).at("warnings").dump(),
              AllOf(HasSubstr("29 \u00d7 MUL_MAT: Vulkan0 could not be used"),
                    HasSubstr("GGML_VK_VISIBLE_DEVICES=0")));
  const Ended none = replay({"--on", "vulkan"}, k_cpu_only);
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("GGML_VK_VISIBLE_DEVICES=0"));
}

TEST_F(Replayed, OtherVerbsReadWhatItFound) {
  record("tiny-llama-q4_0");
  ASSERT_EQ(replay({"--json", "a.json"}).exit_code, 0);
  ASSERT_EQ(replay({"--json", "b.json"}).exit_code, 0);
  const Ended profile = weir(scratch, {"profile", "a.json", "--by", "shape"});
  EXPECT_EQ(profile.exit_code, 0) << profile.err;
  EXPECT_THAT(profile.out, AllOf(HasSubstr("MUL_MAT"), HasSubstr("q4_0,f32->f32")));
  const Ended compared = weir(scratch, {"compare", "a.json", "b.json"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
}

TEST_F(Replayed, AProfileShowsWhatShareOfTheMeasuredPeakItsOpsReach) {
  record("tiny-llama-q4_0");
  const Ended peak = replay({"--peak", "--json", "peak.json"});
  ASSERT_EQ(peak.exit_code, 0) << peak.err;
  EXPECT_THAT(peak.out, AllOf(HasSubstr("4096x4096,4096x512->4096x512"),
                              HasSubstr("4096x32768,4096->32768")));
  ASSERT_EQ(replay({"--json", "ops-seen.json"}).exit_code, 0);
  const Ended profile =
      weir(scratch, {"profile", "ops-seen.json", "--by", "op-shape", "--peak", "peak.json"});
  EXPECT_EQ(profile.exit_code, 0) << profile.err;
  EXPECT_THAT(profile.out, ContainsRegex("of peak +work\n.* [0-9.]+ %  MUL_MAT"));
}

// As docs/how-to/replay.md has it.
TEST_F(Replayed, OpsAreMetricsOfACellWhereALimitNamesThem) {
  record("tiny-llama");
  spill(scratch / "weir.yaml",
        std::string("version: 1\n"
                    "engines:\n"
                    "  ops:\n"
                    "    command: [" WEIR_BINARY_DIR "/weir, replay, ops.json, --engine, ") +
            k_engines +
            ", --seconds, '0.002', --top, '{tokens}', --json, --quiet]\n"
            "    output: weir-observed\n"
            "models: {recorded: " WEIR_SOURCE_DIR
            "/models/tiny-llama.gguf}\n"
            "backends: {cpu: {}}\n"
            "prompts: {step: {prompt_tokens: 0, tokens: 1}}\n"
            "limits:\n"
            "  - {metrics: 'op:MUL_MAT', max_increase: 5%}\n"
            "  - {metrics: 'op_calls:*', exact: true}\n"
            "gate: {budget: 30s, runs: 2}\n");
  const Ended ended = weir(scratch, {"run"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(ContainsRegex("time of MUL_MAT +[0-9.]+ [mu]s"),
                               ContainsRegex("calls of MUL_MAT +29 "),
                               ContainsRegex("calls of SET_ROWS +8 ")));
}

TEST_F(Replayed, ASingleOpIsReplayedWithoutASumToHoldItAgainst) {
  record("tiny-llama");
  const Ended ended = replay({"--op", "RMS*", "--json", "-"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(count_calls(json_of(ended)), (std::map<std::string, int>{{"RMS_NORM", 9}}));
  EXPECT_THAT(ended.err, Not(HasSubstr("that it took when it was recorded")));
  const Ended none = replay({"--op", "CONV_2D"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no op that --op selects"));
}

class ReplayedOn : public Replayed, public testing::WithParamInterface<const char*> {
 protected:
  const std::string on = GetParam();
  Ended replay_there() {
    if (on.empty()) return replay({"--json", "-"});
    return replay({"--json", "-", "--on", on});
  }
};
INSTANTIATE_TEST_SUITE_P(Each, ReplayedOn, testing::Values("", "vulkan"), [](const auto& test) {
  return *test.param == 0 ? "WhereItRan" : test.param;
});

TEST_P(ReplayedOn, WhatDoesNotFitIsLeftOutAndNamed) {
  record("tiny-llama");
  Json recording = document(scratch / "ops.json");
  std::map<std::string, std::function<void(Json&)>> changes{
      {"RMS_NORM", [](Json& node) { node["tensors"][0]["ne"][0] = 1 << 20; }},
      {"MUL", [](Json& node) { node["op"] = "SSM_SCAN"; }},
      {"ADD", [](Json& node) { node["tensors"][1]["offset"] = 1 << 30; }},
      {"SWIGLU", [](Json& node) { node["tensors"][0]["type"] = "q4_0"; }},
  };
  if (on.empty()) changes["ROPE"] = [](Json& node) { node["backend"] = "CUDA0"; };
  for (Json& step : recording.at("steps")) {
    for (Json& node : step.at("nodes")) {
      const auto change = changes.find(node.at("description").get<std::string>());
      if (change != changes.end()) change->second(node);
    }
  }
  spill(scratch / "ops.json", recording.dump());
  const Ended ended = replay_there();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json observed = json_of(ended);
  auto expected = k_step;
  for (const auto& [op, change] : changes) expected.erase(op);
  EXPECT_EQ(count_calls(observed), expected);
  const std::string warnings = observed.at("warnings").dump();
  EXPECT_THAT(warnings, AllOf(HasSubstr("its shapes do not fit RMS_NORM"),
                              HasSubstr("no rule for the shapes of SSM_SCAN"),
                              HasSubstr("does not lie within its bytes")));
  if (on.empty()) {
    EXPECT_THAT(warnings, HasSubstr("it ran on CUDA0"));
  }
  EXPECT_THAT(warnings, HasSubstr("SWIGLU"));
}

// A parameter that ggml refuses ends the program that computes; the ops behind it go on.
TEST_P(ReplayedOn, AnOpThatEndsTheProgramIsLeftOutAndTheOthersGoOn) {
  record("tiny-llama");
  Json recording = document(scratch / "ops.json");
  for (Json& step : recording.at("steps")) {
    for (Json& node : step.at("nodes")) {
      if (node.at("op") == "GLU") node["params"][0] = 12345;  // there is no such gate
    }
  }
  spill(scratch / "ops.json", recording.dump());
  const Ended ended = replay_there();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  auto expected = k_step;
  expected.erase("SWIGLU");
  EXPECT_EQ(count_calls(json_of(ended)), expected);
  EXPECT_THAT(json_of(ended).at("warnings").dump(), HasSubstr("4 \u00d7 SWIGLU: "));
}

TEST_F(Replayed, AnotherVersionOrNoEngineIsRefusedWithWhatToDo) {
  record("tiny-llama");
  fs::create_directories(scratch / "empty");
  const Ended empty = replay({"--engine", "empty"});
  EXPECT_EQ(empty.exit_code, 3);
  EXPECT_THAT(empty.err, AllOf(HasSubstr("no libggml-base.so"), HasSubstr("--engine DIR")));
  const Ended absent = replay({"--engine", "nowhere"});
  EXPECT_EQ(absent.exit_code, 2);
  Json recording = document(scratch / "ops.json");
  recording["version"] = "0.0.1";
  spill(scratch / "ops.json", recording.dump());
  const Ended refused = replay();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("recorded with ggml 0.0.1"), HasSubstr("--any-version")));
  EXPECT_EQ(replay({"--any-version"}).exit_code, 0);
}

// A recording is somebody's file: where it says that libraries lie, code would run.
TEST_F(Replayed, RunsNoCodeThatOnlyTheRecordingNames) {
  record("tiny-llama");
  const Ended ended = weir(scratch, {"replay", "ops.json"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("--engine DIR"), HasSubstr(fs::canonical(k_engines).string())));
}

TEST_F(Replayed, AFileThatIsNoRecordingIsRefused) {
  for (const auto& [text, message] :
       {std::pair{"{", "ops.json"}, std::pair{"{\"schema\": \"weir.profile/1\"}", "weir.ops/1"}}) {
    spill(scratch / "ops.json", text);
    const Ended ended = replay();
    EXPECT_EQ(ended.exit_code, 3) << text;
    EXPECT_THAT(ended.err, HasSubstr(message));
  }
  const Ended usage = weir(scratch, {"replay"});
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_THAT(usage.err, HasSubstr("--record ops.json"));
}

TEST_F(Replayed, AProgramWithoutGgmlIsNotRecorded) {
  const Ended ended = weir(scratch, {"replay", "--record", "ops.json", "--", "/bin/true"});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, HasSubstr("no graph was computed"));
  EXPECT_FALSE(fs::exists(scratch / "ops.json"));
}

}  // namespace replay_verb_test
}  // namespace weir::e2e
