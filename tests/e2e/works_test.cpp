// Limits on single kernels and ops: of the unmodified llama.cpp, whose kernels are counted, and of
// an engine that prints the time of an op.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace works_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;

Json metric_named(const Json& verdict, const std::string& name) {
  for (const Json& cell : verdict["cells"]) {
    for (const Json& metric : cell["judgements"]) {
      if (metric["subject"] == name) return metric;
    }
  }
  return Json::object();
}

// GGML_VK_DISABLE_FUSION parts rms_norm_mul_f32 into two kernels, of which one is new.
TEST(LimitsOnSingleKernels, FailWhatIsNewInLlamaCpp) {
  const std::string engine = k_root + "/engines/llama.cpp/llama-bench";
  ASSERT_TRUE(fs::exists(engine)) << "run ci/prepare test first";
  const Scratch scratch;
  spill(scratch / "weir.yaml", "version: 1\nengines:\n  llama.cpp:\n    command: [" + engine +
                                   ", -m, \"{model}\", -p, \"{prompt_tokens}\", -n, \"{tokens}\", "
                                   "-r, \"{repeats}\", -t, \"1\", -o, json]\n"
                                   "    output: llama-bench\n    probes: [vulkan]\n"
                                   "    counted_env: {GGML_VK_DEBUG_MARKERS: \"1\"}\n"
                                   "models:\n  tiny: " +
                                   k_root +
                                   "/models/tiny-llama.gguf\n"
                                   "backends:\n  vulkan: {args: [-ngl, \"99\"], env: "
                                   "{GGML_VK_VISIBLE_DEVICES: \"0\"}}\n"
                                   "prompts:\n  decode: {prompt_tokens: 0, tokens: 16}\n"
                                   "limits:\n"
                                   "  - {metrics: [\"*\", kernels], exact: false}\n"
                                   "  - {metrics: \"kernel_calls:mul*\", exact: true}\n");
  const std::map<std::string, std::string> env{{"LP_NUM_THREADS", "1"}};
  const Ended stored = weir(scratch, {"baseline", "accept", "--counts-only"}, env);
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  const Ended same = weir(scratch, {"gate", "--counts-only", "--json", "-"}, env);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(metric_named(json_of(same), "kernel_calls:mul_f32_f32_f32_norepeat"), Json::object())
      << "it is not there, and a pattern is no name";
  auto unfused = env;
  unfused["GGML_VK_DISABLE_FUSION"] = "1";
  const Ended ended = weir(scratch, {"gate", "--counts-only", "--json", "-"}, unfused);
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  const Json metric = metric_named(json_of(ended), "kernel_calls:mul_f32_f32_f32_norepeat");
  EXPECT_EQ(metric.value("verdict", ""), "fail") << ended.out;
  EXPECT_EQ(metric.value("baseline", -1), 0);
  EXPECT_EQ(metric.value("current", -1), 9) << "README: +9 a token";
  EXPECT_THAT(ended.err, HasSubstr("calls of mul_f32_f32_f32_"));
}

TEST(LimitsOnSingleOps, HoldWhatAnEnginePrintsOfThem) {
  const Scratch scratch;
  const auto engine = [&](const char* ms, const char* calls) {
    spill_program(scratch / "engine", std::string("#!/bin/sh\necho 'speed 100'\necho 'lm_head ") +
                                          ms + " ms'\necho 'softmax " + calls + " calls'\n");
  };
  engine("2.0", "8");
  spill(scratch / "weir.yaml",
        "version: 1\nengines:\n  mine:\n    command: [./engine, \"{model}\", \"{tokens}\"]\n"
        "    output: generic\n    metrics:\n"
        "      decode_tokens_per_second: {regex: 'speed ([0-9.]+)'}\n"
        "      op:lm_head: {regex: 'lm_head ([0-9.]+) ms', unit: ms}\n"
        "      op_calls:softmax: {regex: 'softmax ([0-9]+) calls'}\n"
        "models:\n  m: " WEIR_SOURCE_DIR
        "/models/tiny-llama.gguf\nbackends:\n  cpu: {}\nprompts:\n  decode: {tokens: 8}\n"
        "limits:\n  - {metrics: op:lm_head, max: 0.003}\n"
        "  - {metrics: \"op_calls:*\", max: 8}\ngate: {runs: 5}\n");
  const Ended good = weir(scratch, {"gate", "--json", "-"});
  ASSERT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(metric_named(json_of(good), "op:lm_head").value("current", 0.0), 0.002) << good.out;
  EXPECT_EQ(metric_named(json_of(good), "op:lm_head").value("verdict", ""), "pass");
  EXPECT_EQ(metric_named(json_of(good), "op_calls:softmax").value("verdict", ""), "pass");
  engine("4.0", "9");
  const Ended slow = weir(scratch, {"gate", "--json", "-"});
  EXPECT_EQ(slow.exit_code, 1) << slow.err;
  EXPECT_EQ(metric_named(json_of(slow), "op:lm_head").value("verdict", ""), "fail") << slow.out;
  EXPECT_EQ(metric_named(json_of(slow), "op_calls:softmax").value("verdict", ""), "fail");
}

// An engine whose own profile is all there is: no probe sees it.
TEST(LimitsOnSingleOps, HoldWhatAnEngineWritesAsWeirsOwnFormat) {
  const Scratch scratch;
  const auto engine = [&](int dispatches, int calls) {
    spill_program(
        scratch / "engine",
        "#!/bin/sh\ncat <<END\n"
        R"({"schema": "weir.observed/1", "format": "e", "generated_tokens": 4, "profiled_tokens": 4,
 "timings": [{"metric": "decode_tokens_per_second", "samples": [50.0]}],
 "counts": [{"metric": "dispatches_per_token", "values": [)" +
            std::to_string(dispatches) + R"(]}],
 "ops": [{"op": "gemv", "phase": "decode", "calls": )" +
            std::to_string(4 * calls) + R"(, "seconds": 0.01}]})" + "\nEND\n");
  };
  engine(30, 4);
  spill(scratch / "weir.yaml",
        "version: 1\nengines:\n  mine:\n    command: [./engine, \"{model}\", \"{tokens}\"]\n"
        "    output: weir-observed\n"
        "models:\n  m: " WEIR_SOURCE_DIR
        "/models/tiny-llama.gguf\nbackends:\n  metal: {}\n"
        "prompts:\n  decode: {tokens: 4}\n"
        "limits:\n  - {metrics: \"op_calls:gemv\", exact: true}\ngate: {runs: 5}\n");
  ASSERT_EQ(weir(scratch, {"baseline", "accept", "--counts-only"}).exit_code, 0);
  const Ended good = weir(scratch, {"gate", "--counts-only", "--json", "-"});
  ASSERT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(metric_named(json_of(good), "op_calls:gemv").value("current", 0), 4) << good.out;
  EXPECT_EQ(metric_named(json_of(good), "dispatches_per_token").value("verdict", ""), "pass");
  engine(31, 8);
  const Ended more = weir(scratch, {"gate", "--counts-only", "--json", "-"});
  EXPECT_EQ(more.exit_code, 1) << more.err;
  EXPECT_EQ(metric_named(json_of(more), "op_calls:gemv").value("verdict", ""), "fail") << more.out;
  EXPECT_EQ(metric_named(json_of(more), "dispatches_per_token").value("verdict", ""), "fail");
}

}  // namespace works_test
}  // namespace weir::e2e
