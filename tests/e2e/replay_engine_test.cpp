// weir replay --on weir-engine: ops that the real llama.cpp computed, on the reference engine's
// kernels.
#include "tests/e2e/replay_support.hpp"

namespace weir::e2e {
namespace replay_engine_test {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class ReplayedOnWeirEngine : public Replayed {
 protected:
  Ended replay_there(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"replay",    "ops.json", "--on",   "weir-engine",
                                   "--seconds", "0.002",    "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return weir(scratch, words);
  }
  // Each node of the recording's steps.
  template <class Change>
  void change(Change change) {
    Json recording = document(scratch / "ops.json");
    for (Json& step : recording.at("steps")) {
      for (Json& node : step.at("nodes")) change(node);
    }
    spill(scratch / "ops.json", recording.dump());
  }
};

// As llama.cpp's step has them; norms come with their weights there, sums within products, and the
// cache is written by the kernel that turns keys.
const std::map<std::string, int> k_of_weir_engine{
    {"GET_ROWS", 3}, {"MUL_MAT", 29}, {"RMS_NORM", 9}, {"ROPE", 8}, {"SWIGLU", 4}};

TEST_F(ReplayedOnWeirEngine, WhatItHasKernelsForIsComputedAndTheRestIsNamed) {
  for (const char* model : {"tiny-llama", "tiny-llama-q4_0", "tiny-llama-f32"}) {
    record(model);
    const Ended ended = replay_there();
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ(count_calls(json_of(ended)), k_of_weir_engine) << model;
    EXPECT_EQ(json_of(ended).at("context").at("engine"), "weir-engine");
    EXPECT_THAT(ended.err, AllOf(ContainsRegex("weir-engine [0-9]+, its kernels for [A-Z0-9_]+, 1"),
                                 HasSubstr("53 ops replayed")));
    EXPECT_THAT(json_of(ended).at("warnings").dump(),
                AllOf(HasSubstr("9 \u00d7 MUL: weir-engine has no kernel for it alone"),
                      HasSubstr("8 \u00d7 ADD: "), HasSubstr("8 \u00d7 SET_ROWS: "),
                      HasSubstr("keeps keys and values as floats, not f16"),
                      HasSubstr("53 ops were recorded on CPU and replayed on weir-engine")));
  }
}

// llama-bench takes no such cache, llama-server does.
TEST_F(ReplayedOnWeirEngine, AttentionOverACacheOfFloatsIsComputed) {
  record("tiny-llama");
  change([](Json& node) {
    if (node.at("op") != "FLASH_ATTN_EXT") return;
    for (Json& tensor : node.at("tensors")) {
      if (tensor.at("slot") == 2 || tensor.at("slot") == 3) tensor["type"] = "f32";
    }
  });
  auto expected = k_of_weir_engine;
  expected["FLASH_ATTN_EXT"] = 4;
  EXPECT_EQ(count_calls(json_of(replay_there())), expected);
}

TEST_F(ReplayedOnWeirEngine, SeveralTokensAtOnceAreLeftOut) {
  record("tiny-llama", {"-p", "9"});  // beside the test of single tokens
  const Json steps = document(scratch / "ops.json").at("steps");
  const auto prefill = std::find_if(steps.begin(), steps.end(),
                                    [](const Json& step) { return step.at("rows") == 9; });
  ASSERT_NE(prefill, steps.end());
  const Ended ended = replay_there({"--step", std::to_string(prefill - steps.begin() + 1)});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(json_of(ended).at("warnings").dump(),
              AllOf(HasSubstr("weir-engine multiplies a matrix with one vector of floats"),
                    HasSubstr("weir-engine normalizes one vector of floats")));
}

TEST_F(ReplayedOnWeirEngine, WhatDoesNotFitIsLeftOut) {
  const std::map<std::string, std::function<void(Json&)>> changes{
      {"does not fit its op", [](Json& node) { node["tensors"][0]["ne"][0] = 1 << 20; }},
      {"of an unknown type", [](Json& node) { node["tensors"][1]["type"] = "q9_9"; }},
      {"too large",
       [](Json& node) {
         for (Json& tensor : node["tensors"]) {
           for (Json& size : tensor["ne"]) size = std::int64_t{1} << 40;
         }
       }},
      {"empty",
       [](Json& node) {
         for (Json& tensor : node["tensors"]) {
           for (Json& size : tensor["ne"]) size = 0;
         }
       }},
      {"without tensors", [](Json& node) { node["tensors"] = Json::array(); }},
  };
  record("tiny-llama");
  const std::string recording = slurp(scratch / "ops.json");
  for (const auto& [what, spoil] : changes) {
    spill(scratch / "ops.json", recording);
    change([&](Json& node) {
      if (node.at("op") != "ROPE") spoil(node);
    });
    const Ended ended = replay_there();
    EXPECT_EQ(ended.exit_code, 0) << what << ended.err;
    EXPECT_EQ(count_calls(json_of(ended)), (std::map<std::string, int>{{"ROPE", 8}})) << what;
    EXPECT_THAT(json_of(ended).at("warnings").dump(), testing::Not(HasSubstr("ended the program")))
        << what;
  }
}

TEST_F(ReplayedOnWeirEngine, EngineNamesOneThatLiesElsewhere) {
  record("tiny-llama");
  EXPECT_EQ(replay_there({"--engine", WEIR_BINARY_DIR "/weir-engine"}).exit_code, 0);
  const Ended none = replay_there({"--engine", "nowhere"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("--engine nowhere: no such program"));
}

// An engine that is none: what it says of the first op, and how it goes on when it is started
// again.
class ReplayedByAStandIn : public ReplayedOnWeirEngine {
 protected:
  Ended replay_by(const std::string& first, const std::string& again) {
    record("tiny-llama");
    spill_program(scratch / "stand-in",
                  "#!/bin/sh\nfor word; do last=$word; done\n"
                  "echo '{\"library\": \"stand-in\", \"version\": \"1\", \"commit\": \"\"}'\n"
                  "if [ \"$last\" = 0 ]; then\n" +
                      first + "\nelse\n" + again + "\nfi\n");
    return replay_there({"--engine", "./stand-in"});
  }
  const std::string first_ =
      "echo '{\"begins\": 0}'\necho '{\"node\": 0, \"median\": 0.001, \"least\": 0.001, \"runs\": "
      "5, "
      "\"copies\": 1}'\n";
};

TEST_F(ReplayedByAStandIn, KeepsItsTimesWhereItCrashesBetweenTwoOps) {
  const Ended ended = replay_by(first_ + "kill -SEGV $$", "echo '{\"complete\": true}'");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(json_of(ended).at("ops").size(), 1U);
  EXPECT_THAT(json_of(ended).at("warnings").dump(),
              HasSubstr("the program that computes ops ended behind one of them"));
}

TEST_F(ReplayedByAStandIn, KeepsItsTimesWhereItCanNotBeginAgain) {
  const Ended ended = replay_by(first_ + "echo '{\"begins\": 1}'\nkill -SEGV $$",
                                "echo '{\"error\": \"the device was lost\"}'");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(json_of(ended).at("ops").size(), 1U);
  EXPECT_THAT(json_of(ended).at("warnings").dump(), HasSubstr("not reached: the device was lost"));
}

}  // namespace replay_engine_test
}  // namespace weir::e2e
