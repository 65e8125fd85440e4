// Every switch of the pinned llama.cpp's Vulkan backend that takes another path, on three twins and
// on lavapipe: what the kernels' verdict must be, with the switch set, and where it was set in the
// baseline and is no longer.
#include <gmock/gmock.h>

#include "gate/base/text.hpp"

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace kernel_paths_test {

const std::string k_root = WEIR_SOURCE_DIR;

// By "model/device/prompt", those that are no pass.
using Verdicts = std::map<std::string, std::string>;

Verdicts all(const std::vector<std::string>& models, const std::vector<std::string>& devices,
             const std::vector<std::string>& prompts, const std::string& verdict) {
  Verdicts verdicts;
  for (const std::string& model : models) {
    for (const std::string& device : devices) {
      for (const std::string& prompt : prompts)
        verdicts[model + "/" + device + "/" + prompt] = verdict;
    }
  }
  return verdicts;
}

const std::vector<std::string> k_models{"f16", "q4_0"}, k_prompts{"decode", "prefill"},
    k_cards{"a770", "rtx4090", "rx7900"};

class KernelPaths : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_root + "/engines/llama.cpp/llama-bench"))
        << "run ci/prepare test first";
  }

  // `backends` in YAML; prompts so long that products of matrices are taken, and one token.
  void plan(const std::string& backends, const std::string& models, int prompt, int tokens) {
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  llama.cpp:\n    command: [" + k_root +
              "/engines/llama.cpp/llama-bench, -m, '{model}', -p, '{prompt_tokens}', -n, "
              "'{tokens}', -r, '{repeats}', -t, '{threads}', -o, json, --no-warmup]\n"
              "    output: llama-bench\n    probes: [vulkan, ggml]\n"
              "    counted_env: {GGML_VK_DEBUG_MARKERS: '1'}\n"
              "    cpu_ops_allowed: {GET_ROWS: 'one look-up is cheaper than a dispatch'}\n"
              "models: {" +
              models + "}\nbackends: {" + backends + "}\n" +
              "prompts: {decode: {prompt_tokens: 0, tokens: " + std::to_string(tokens) +
              "}, prefill: {prompt_tokens: " + std::to_string(prompt) + ", tokens: 0}}\n");
  }

  using Environment = std::map<std::string, std::string>;
  // Names of variables, separated by blanks.
  static Environment environment_with(const std::string& variables) {
    Environment env;
    for (const std::string& variable : text::split(variables, ' ')) {
      if (!variable.empty()) env["GGML_VK_" + variable] = "1";
    }
    return env;
  }

  void accept(const std::string& variable) {
    const Ended ended =
        weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base" + variable},
             environment_with(variable));
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }

  Verdicts gate(const std::string& variable, const std::string& stored) {
    const Json gate = json_of(
        weir(scratch_, {"gate", "--counts-only", "--json", "-", "--baselines", "base" + stored},
             environment_with(variable)));
    Verdicts verdicts;
    for (const Json& cell : gate["cells"]) {
      const std::string name = cell["cell"], kernels = metric_of(cell, "kernels")["verdict"];
      if (kernels != "pass") verdicts[name.substr(name.find('/') + 1)] = kernels;
      if (kernels == "fail") {
        EXPECT_EQ(cell["verdict"], "fail") << name;
      }
    }
    return verdicts;
  }

  Scratch scratch_;
};

TEST_F(KernelPaths, OfEachCardAreHeldWhateverTheTotalOfDispatchesDoes) {
  plan(
      "a770: {device: vulkan, twin: intel-arc-a770, args: [-ngl, '99']}, "
      "rtx4090: {device: vulkan, twin: nvidia-rtx-4090, args: [-ngl, '99']}, "
      "rx7900: {device: vulkan, twin: amd-rx-7900-xtx, args: [-ngl, '99']}",
      "f16: " + k_root + "/models/tiny-llama.gguf, q4_0: " + k_root +
          "/models/tiny-llama-q4_0.gguf",
      64, 16);
  Verdicts without_f16 = all({"f16"}, k_cards, {"prefill"}, "fail");
  without_f16["q4_0/rx7900/prefill"] = "fail";
  const struct {
    const char* variable;
    Verdicts expected;
    const char* why;
  } cases[] = {
      {"DISABLE_COOPMAT", all(k_models, {"rx7900"}, k_prompts, "fail"),
       "matrix instructions of RDNA 3: attention, and products of q4_0"},
      {"DISABLE_COOPMAT2", all(k_models, {"rtx4090"}, k_prompts, "fail"),
       "attention and products; in the prefill of f16 14 copies go with them"},
      {"DISABLE_F16", without_f16, "products accumulate in 32 bits"},
      {"DISABLE_INTEGER_DOT_PRODUCT", all({"q4_0"}, {"a770"}, {"prefill"}, "fail"),
       "products of q4_0, and nothing is quantized first any more"},
      {"FORCE_MMVQ", all({"q4_0"}, k_cards, k_prompts, "fail"), "vectors are quantized first"},
      {"DISABLE_FUSION", all(k_models, k_cards, k_prompts, "fail"), "more dispatches"},
  };
  accept("");
  for (const auto& c : cases) EXPECT_EQ(gate(c.variable, ""), c.expected) << c.variable << c.why;
  // No run of additions in these models, rows too short for MMVQ, nothing in bf16, no kernel that
  // uses dot2 or decodes vectors by matrices, an order that is good as it is.
  EXPECT_EQ(gate("DISABLE_MULTI_ADD DISABLE_MMVQ DISABLE_BFLOAT16 DISABLE_DOT2 "
                 "DISABLE_COOPMAT2_DECODE_VECTOR DISABLE_GRAPH_OPTIMIZE",
                 ""),
            Verdicts{});
  accept("DISABLE_FUSION");
  EXPECT_EQ(gate("", "DISABLE_FUSION"), all(k_models, k_cards, k_prompts, "improved"));
  accept("FORCE_MMVQ");
  EXPECT_EQ(gate("", "FORCE_MMVQ"), all({"q4_0"}, k_cards, k_prompts, "fail"))
      << "fewer dispatches, since nothing is quantized, and the products by other kernels";
}

TEST_F(KernelPaths, AreHeldOnARealDevice) {
  plan("lavapipe: {device: vulkan, args: [-ngl, '99'], env: {GGML_VK_VISIBLE_DEVICES: '0'}}",
       "q4_0: " + k_root + "/models/tiny-llama-q4_0.gguf", 16, 4);
  accept("");
  EXPECT_EQ(gate("DISABLE_F16", ""), all({"q4_0"}, {"lavapipe"}, {"prefill"}, "fail"));
  EXPECT_EQ(gate("DISABLE_INTEGER_DOT_PRODUCT", ""), Verdicts{}) << "it has none";
  accept("DISABLE_FUSION");
  EXPECT_EQ(gate("", "DISABLE_FUSION"), all({"q4_0"}, {"lavapipe"}, k_prompts, "improved"));
}

}  // namespace kernel_paths_test
}  // namespace weir::e2e
