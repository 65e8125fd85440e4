// Presets and weir ab on the real llama.cpp and weir-engine: six lines gate a device and a
// simulated GPU, and two programs are compared without any.
#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace ab_test {

using testing::HasSubstr;
using testing::Not;

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_bench = k_root + "/engines/llama.cpp/llama-bench";
const std::string k_model = k_root + "/models/tiny-llama.gguf";
const std::string k_engine = WEIR_BINARY_DIR "/weir-engine";

class Presets : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs::exists(k_bench)) << "run ci/prepare test first"; }
  Ended ab(std::vector<std::string> words) {
    words.insert(words.begin(), "ab");
    const sys::EnvironmentList& twin = on_twin_of_lavapipe();
    return weir(scratch_, words, {twin.begin(), twin.end()});
  }
  Scratch scratch_;
};

TEST_F(Presets, GateLlamaCppOnLavapipeAndASimulatedGpuBySixLines) {
  const std::string yaml =
      "version: 1\n"
      "engines: {llama.cpp: {preset: llama-bench, program: " +
      k_bench +
      "}}\n"
      "models: {tiny-llama: " +
      k_model +
      "}\n"
      "backends:\n"
      "  vulkan:\n"
      "  rx7900: {device: vulkan, twin: amd-rx-7900-xtx}\n";
  spill(scratch_ / "weir.yaml", yaml);
  // All that the preset asks for but 512 tokens of prompt on lavapipe, which take a minute each
  // time.
  const auto of_few = [&](std::vector<std::string> words) {
    for (const char* cells : {"*/decode", "*/rx7900/*"})
      words.insert(words.end(), {"--cell", cells});
    return weir(scratch_, words);
  };
  const Ended accepted = of_few({"baseline", "accept", "--counts-only"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  const Ended same = of_few({"gate", "--counts-only", "--json", "-"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  const Json json = json_of(same);
  // The figures of an unmodified llama.cpp, docs/explanation/counting.md.
  const Json lavapipe = cell_of(json, "llama.cpp/tiny-llama/vulkan/decode");
  EXPECT_EQ(metric_of(lavapipe, "dispatches_per_token")["current"], 65);
  EXPECT_EQ(metric_of(lavapipe, "barriers_per_token")["current"], 46);
  EXPECT_EQ(cell_of(json, "llama.cpp/tiny-llama/rx7900/decode")["verdict"], "pass");

  // Written out by weir config show it is the same gate, with the same baselines.
  const Ended shown = weir(scratch_, {"config", "show"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("# llama.cpp: preset llama-bench, version 1\n"));
  EXPECT_THAT(shown.out, Not(HasSubstr("preset:")));
  spill(scratch_ / "weir.yaml", shown.out);
  const Ended written = of_few({"gate", "--counts-only", "--require-baseline"});
  EXPECT_EQ(written.exit_code, 0) << written.out << written.err;
}

TEST_F(Presets, CompareOneProgramInTwoEnvironments) {
  const Ended ended =
      ab({k_bench, "--env", "GGML_VK_DISABLE_FUSION=1", "--counts-only", "--out", "runs", "--write",
          "kept.yaml", "--", "-m", k_model, "-ngl", "99", "-p", "0", "-n", "16"});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("FAIL  llama-bench / tiny-llama / vulkan / decode"));
  EXPECT_THAT(ended.out, HasSubstr("dispatches/token  65 → 85   +20"));
  EXPECT_THAT(ended.out, HasSubstr("+9 rms_norm_f32"));
  EXPECT_THAT(ended.out, HasSubstr("why: Fusion lost: rms_norm_mul"));
  EXPECT_LE(std::ranges::count(ended.out, '\n'), 40);
  EXPECT_THAT(ended.out,
              HasSubstr("weir baseline accept -c kept.yaml, then weir gate -c kept.yaml"));
  EXPECT_THAT(ended.out, HasSubstr("weir explain runs/"));
  const Ended planned = weir(scratch_, {"plan", "-c", "kept.yaml", "--guess", "--shards", "1"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
}

TEST_F(Presets, LetTheCandidatesEnvironmentGoBeforeTheirOwn) {
  const Ended ended =
      ab({k_bench, "--env", "GGML_VK_VISIBLE_DEVICES=7", "--device", "vulkan", "--counts-only",
          "--", "-m", k_model, "-ngl", "99", "-p", "0", "-n", "16"});
  EXPECT_EQ(ended.exit_code, 1) << "the preset's 0 would make both the same\n" << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("Work moved to the CPU"));
}

TEST_F(Presets, FindNothingBetweenAProgramAndItself) {
  const Ended ended = ab({k_bench, k_bench, "--counts-only", "--json", "-", "--", "-m", k_model,
                          "-ngl", "99", "-p", "0", "-n", "16"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json cell = cell_of(json_of(ended), "llama-bench/tiny-llama/vulkan/decode");
  EXPECT_EQ(metric_of(cell, "dispatches_per_token")["current"], 65);
}

// The same program: nothing to blame, whether the pairs decide within the budget or not.
TEST_F(Presets, TimeAProgramInPairsUntilTheBudgetIsSpent) {
  const Ended ended = ab({k_bench, k_bench, "--budget", "20s", "--json", "-", "--", "-m", k_model,
                          "-ngl", "0", "-dev", "none", "-p", "0", "-n", "8", "-r", "1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json cell = cell_of(json_of(ended), "llama-bench/tiny-llama/cpu/decode");
  const Json rate = metric_of(cell, "decode_tokens_per_second");
  EXPECT_THAT(rate["verdict"], testing::AnyOf("pass", "inconclusive"));
  // A busy machine may not fit the fewest that decide.
  if (rate["pairs"] == 0) {
    EXPECT_THAT(rate.value("reason", ""), HasSubstr("do not fit the budget"));
  }
}

TEST_F(Presets, CountAProgramThatNobodyKnowsOverAWholeRun) {
  spill_program(scratch_ / "mine", "#!/bin/sh\nexec " + k_bench + " -o csv -r 1 -p 0 -n 4 -m " +
                                       k_model + " -ngl 99 \"$@\" >/dev/null\n");
  const Ended ended = ab({"./mine", "--env", "GGML_VK_DISABLE_FUSION=1", "--"});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("FAIL  mine / none / vulkan / run"));
  EXPECT_THAT(ended.out, HasSubstr("dispatches at 1"));
  EXPECT_THAT(ended.out, HasSubstr("rms_norm_f32")) << "kernels have names without a preset";
  EXPECT_THAT(ended.out, HasSubstr("Counts are totals of a run"));
}

TEST_F(Presets, CompareTheReferenceEngineWithAFaultAndWithout) {
  if (!fs::exists(k_engine)) GTEST_SKIP() << "weir-engine is not built here";
  const Ended ended = ab({k_engine, "--env", "WEIR_ENGINE_PLANT=lost-fusion", "--counts-only", "--",
                          "-m", k_model, "--backend", "vulkan", "--fused-ffn", "-n", "16"});
  EXPECT_EQ(ended.exit_code, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("weir-engine / tiny-llama / vulkan / decode"));
  EXPECT_THAT(ended.out, HasSubstr("dispatches/token"));
}

TEST_F(Presets, SayWhatAnAbLacks) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } cases[] = {
      {{k_bench, "--", "-n", "4"}, "one program and nothing that differs"},
      {{k_bench, "--env", "A", "--", "-n", "4"}, "--env A: expected NAME=VALUE"},
      {{k_bench, k_bench, "--preset", "lama-bench", "--", "-n", "4"},
       "did you mean \"llama-bench\"?"},
      {{k_bench, "nowhere/llama-bench", "--", "-n", "4"}, "no such program: nowhere/llama-bench"},
      {{k_bench, k_bench, "--preset", "llama-server", "--"}, "is an inference server"},
      {{k_bench, k_bench, "--metric", "load_ms=([0-9]+)", "--", "-n", "4"},
       "--metric is for programs that weir does not know: the preset llama-bench reads what"},
      {{"true", "true", "--"}, "no probe saw it do anything"},
  };
  for (const auto& test_case : cases) {
    const Ended ended = ab(test_case.words);
    EXPECT_EQ(ended.exit_code, 2) << test_case.message;
    EXPECT_THAT(ended.err, HasSubstr(test_case.message));
  }
}

}  // namespace ab_test
}  // namespace weir::e2e
