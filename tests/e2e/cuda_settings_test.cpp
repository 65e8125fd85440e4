// Tests how settings, models as large as real ones and injected regressions change the counts of
// the published llama.cpp on CUDA twins.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace cuda_settings_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_config = k_root + "/configs/llama.cpp-cuda-settings.yaml";

class CudaSettings : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* file :
         {"engines/llama.cpp-cuda12", "engines/llama.cpp-cuda13", "models/llama-3.3-70b.gguf"}) {
      ASSERT_TRUE(fs::exists(k_root + "/" + file)) << file << ": run ci/prepare test first";
    }
  }

  Scratch scratch_;
};

// KV cache on the host or quantized, layers on the CPU, two GPUs, quantized weights; and three
// hollow models on four GPUs, of which some are too small.
TEST_F(CudaSettings, CountAsTheRepositorysBaselinesHaveIt) {
  const Ended ended = weir(scratch_, {"gate", "--counts-only", "-c", k_config, "--baselines",
                                      k_root + "/baselines", "--require-baseline", "--json", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out.substr(0, 3000) << ended.err;
  const Json verdict = json_of(ended);
  EXPECT_EQ(verdict["verdict"], "pass");
  EXPECT_EQ(verdict["cells"].size(), 96U);
}

double count_of(const Json& profile, const std::string& base) {
  const bool decode = profile["cell"].get<std::string>().ends_with("/decode");
  const Json exact = metric_of(profile, base + (decode ? "_per_token" : "_per_prefill"))["exact"];
  return exact.is_number() ? exact.get<double>() : -1;
}

// Kernels that a node of ggml's graph starts besides its own: they prepare its input (as q8_1, as
// f16, by experts) or add up its parts. Read in ggml-cuda of this build.
bool is_helper(std::string_view kernel) {
  return std::ranges::any_of(
      std::array{"quantize_q8_1", "quantize_mmq_q8_1", "convert_unary_cont_vec4",
                 "dequantize_block_q8_0_f16", "mm_ids_helper", "mul_mat_q_stream_k_fixup",
                 "flash_attn_stream_k_fixup", "flash_attn_combine_results"},
      [&](std::string_view helper) { return kernel.starts_with(helper); });
}

// Without fusions each node of the graph that the scheduler hands to a GPU is one kernel, with its
// helpers; each tensor that the scheduler carries is a copy, and the logits another; each copy is
// waited for, and each graph but the last of a GPU.
TEST_F(CudaSettings, LeaveNoCountThatTheGraphDoesNotExplain) {
  const Ended ended = weir(scratch_, {"run", "--counts-only", "-c", k_config, "--json", "-"},
                           {{"GGML_CUDA_DISABLE_FUSION", "1"}});
  int looked_at = 0;
  const Json run = json_of(ended);
  for (const Json& profile : run["profiles"]) {
    const std::string cell = profile["cell"];
    if (!profile["errors"].empty()) continue;  // does not fit
    ++looked_at;
    double nodes = 0, helpers = 0;
    for (const auto& [op, count] : profile["graph_ops"]["counts"].items()) {
      nodes += count.get<double>();
    }
    for (const auto& [kernel, count] : profile["kernels"]["counts"].items()) {
      if (is_helper(kernel)) helpers += count.get<double>();
    }
    EXPECT_GT(nodes, 0) << cell;
    EXPECT_EQ(count_of(profile, "dispatches"), nodes + helpers) << cell;

    const double gpus = cell.find("h100x2") == std::string::npos ? 1 : 2;
    // The hidden state goes from GPU to GPU by way of the host; on layers that are left to the CPU
    // a prompt's weights are carried, and rows of quantized ones padded: seven a layer.
    const bool pads = cell.find("partial") != std::string::npos && cell.ends_with("/prefill");
    const double fills = !pads                                           ? 0
                         : cell.find("q4_0") != std::string::npos        ? 7 * 3
                         : cell.find("tiny-gemma3") != std::string::npos ? 7 * 5
                                                                         : 0;
    const double carried = count_of(profile, "tensor_copies") + gpus;
    EXPECT_EQ(count_of(profile, "copies"), carried + fills) << cell;
    EXPECT_EQ(count_of(profile, "syncs"), carried + count_of(profile, "graph_launches") - gpus)
        << cell;
  }
  EXPECT_EQ(looked_at, 90);
}

// An engine that is changed from outside, so that the cells stay the same.
TEST_F(CudaSettings, FailOnTheGpusThatARegressionConcernsAndNameIt) {
  spill(scratch_ / "engine",
        "#!/bin/sh\nmajor=13\n[ \"$GPU\" != p40 ] || major=${P40:-12}\nexec " + k_root +
            "/engines/llama.cpp-cuda$major/llama-bench -ngl ${NGL:-99} $EXTRA \"$@\"\n");
  fs::permissions(scratch_ / "engine", fs::perms::owner_all);
  std::string yaml = "version: 1\nengines:\n";
  for (const auto& [engine, major] : {std::pair("old", "12"), std::pair("new", "13")}) {
    yaml += fmt::format(
        "  {}:\n    command: [./engine, -m, '{{model}}', -p, '{{prompt_tokens}}', -n, "
        "'{{tokens}}', -r, '{{repeats}}', -o, json]\n    output: llama-bench\n    probes: [cuda, "
        "ggml]\n    gpu_code: {}/engines/llama.cpp-cuda{}/libggml-cuda.so\n"
        "    cpu_ops_allowed: {{GET_ROWS: 'one look-up is cheaper than a dispatch'}}\n",
        engine, k_root, major);
  }
  yaml += "models: {m: " + k_root +
          "/models/tiny-llama.gguf}\nbackends:\n"
          "  p40: {device: cuda, twin: nvidia-p40, env: {GPU: p40}}\n"
          "  rtx2080ti: {device: cuda, twin: nvidia-rtx-2080-ti}\n"
          "  rtx4090: {device: cuda, twin: nvidia-rtx-4090}\n"
          "  h100: {device: cuda, twin: nvidia-h100}\n"
          "prompts: {decode: {prompt_tokens: 0, tokens: 16}}\nmatrix:\n  include:\n"
          "    - {engine: old, backend: p40}\n    - {engine: new, backend: 'rtx*'}\n"
          "    - {engine: new, backend: h100}\n";
  spill(scratch_ / "weir.yaml", yaml);
  ASSERT_EQ(
      weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base"}).exit_code, 0);

  const std::string all = "p40 rtx2080ti rtx4090 h100", newer = "rtx2080ti rtx4090 h100";
  const struct {
    std::pair<std::string, std::string> change;
    int exit_code;
    std::string red, cause;
  } cases[] = {
      {{"NOTHING", "1"}, 0, "", ""},
      // CUDA 12's build makes no graphs on the P40.
      {{"GGML_CUDA_DISABLE_GRAPHS", "1"}, 1, newer, "GPU graphs are no longer used"},
      {{"GGML_CUDA_DISABLE_FUSION", "1"},
       1,
       all,
       "Fusion seems lost: mul_mat_vec_f ran as one kernel"},
      {{"EXTRA", "-fa 0"}, 1, all, "Fusion lost: flash_attn"},
      {{"EXTRA", "-nkvo 1"}, 1, all, "Work moved to the CPU: SET_ROWS 8 times a token."},
      {{"P40", "13"}, 3, "p40", "no kernel image is available"},
      {{"NGL", "4"}, 1, all, "Work moved to the CPU: 1 of 4 layers (MUL_MAT 7 times a token"},
  };
  for (const auto& c : cases) {
    const Ended ended =
        weir(scratch_, {"gate", "--counts-only", "--baselines", "base", "--json", "-"}, {c.change});
    EXPECT_EQ(ended.exit_code, c.exit_code) << c.change.first << ended.err;
    const Json verdict = json_of(ended);
    EXPECT_EQ(verdict["cells"].size(), 4U) << c.change.first;
    for (const Json& cell : verdict["cells"]) {
      const bool red = c.red.find(cell["backend"].get<std::string>()) != std::string::npos;
      EXPECT_EQ(cell["verdict"] != "pass", red) << c.change.first << " " << cell["cell"];
      if (!red) continue;
      const std::string explanation = cell["findings"].empty()
                                          ? cell["stderr_tail"].get<std::string>()
                                          : cell["findings"][0]["text"].get<std::string>();
      EXPECT_THAT(explanation, HasSubstr(c.cause)) << cell["cell"];
    }
  }
}

}  // namespace cuda_settings_test
}  // namespace weir::e2e
