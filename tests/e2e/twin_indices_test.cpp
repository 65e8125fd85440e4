// Engines on device twins that look up what they read: experts on the CPU by ids that a GPU would
// have computed, and tokens that it would have chosen.
#include <algorithm>
#include <array>
#include <fstream>

#include <gmock/gmock.h>

#include "gate/model/make.hpp"

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace twin_indices_test {

using model::GgufHeader;
using model::GgufTensor;
using model::GgufValue;
using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;
constexpr std::uint32_t k_f32 = 0;

// gpt-oss has biases, which the CPU adds by the ids of the experts, too.
GgufHeader as_gpt_oss(GgufHeader header) {
  constexpr std::string_view k_old = "qwen3moe";
  constexpr std::uint32_t k_window = 128;
  for (auto& [key, value] : header.metadata) {
    if (key == "general.architecture") value = GgufValue::string("gpt-oss");
    if (key.starts_with(k_old)) key.replace(0, k_old.size(), "gpt-oss");
  }
  header.metadata.emplace_back("gpt-oss.attention.sliding_window", GgufValue::u32(k_window));
  const std::uint64_t heads = *header.own_number("attention.head_count");
  std::vector<GgufTensor> tensors;
  for (GgufTensor tensor : header.tensors) {
    const auto has_part = [&](std::string_view part) {
      return tensor.name.find(fmt::format(".{}.weight", part)) != std::string::npos;
    };
    if (has_part("attn_k_norm")) continue;
    const auto rename = [&](std::string_view part) {
      tensor.name = fmt::format("{}.{}", tensor.name.substr(0, tensor.name.find('.', 4)), part);
    };
    if (has_part("attn_q_norm")) {
      rename("attn_sinks.weight");
      tensor.dims = {heads};
    }
    if (has_part("ffn_norm")) rename("post_attention_norm.weight");
    tensors.push_back(tensor);
    if (std::ranges::none_of(std::array{"attn_output", "ffn_gate_inp", "ffn_gate_exps",
                                        "ffn_up_exps", "ffn_down_exps"},
                             has_part)) {
      continue;
    }
    tensor.name.replace(tensor.name.rfind('.'), std::string::npos, ".bias");
    tensor.dims.erase(tensor.dims.begin());
    tensor.type = k_f32;
    tensors.push_back(tensor);
  }
  header.tensors = std::move(tensors);
  return header;
}

void write_model(const fs::path& path, GgufHeader header) {
  std::ofstream file(path, std::ios::binary);
  const auto written = write_random_gguf(header, 1, [&](std::string_view bytes) -> Result<void> {
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return {};
  });
  ASSERT_TRUE(written) << written.error().message;
}

GgufHeader small(const std::string& architecture) {
  auto options = *model::default_model(architecture);
  options.layers = 3;
  options.experts = 8;
  options.experts_used = 2;
  return *model::make_model(options);
}

class TwinIndices : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* engine : {"llama.cpp", "llama.cpp-cuda13"}) {
      ASSERT_TRUE(fs::exists(k_root + "/engines/" + engine + "/llama-bench"))
          << "run ci/prepare test first";
    }
    write_model(scratch_ / "mixtral.gguf", small("llama"));
    write_model(scratch_ / "qwen3moe.gguf", small("qwen3moe"));
    write_model(scratch_ / "gpt-oss.gguf", as_gpt_oss(small("qwen3moe")));
    std::string yaml = "version: 1\nengines:\n";
    for (const auto& [engine, folder, probes] :
         {std::array{"vulkan", "llama.cpp", "[vulkan, ggml]"},
          std::array{"cuda", "llama.cpp-cuda13", "[cuda, ggml]"},
          std::array{"blind", "llama.cpp", "[vulkan]"}}) {
      yaml += fmt::format(
          "  {}:\n    command: [{}/engines/{}/llama-bench, -m, '{{model}}', -p, "
          "'{{prompt_tokens}}', -n, '{{tokens}}', -r, '{{repeats}}', -ngl, '99', -o, json]\n"
          "    output: llama-bench\n    probes: {}\n",
          engine, k_root, folder, probes);
    }
    yaml +=
        "models: {mixtral: mixtral.gguf, qwen3moe: qwen3moe.gguf, gpt-oss: gpt-oss.gguf}\n"
        "backends:\n"
        "  rx7900: {device: vulkan, twin: amd-rx-7900-xtx, args: [-ot, exps=CPU]}\n"
        "  rtx4090: {device: vulkan, twin: nvidia-rtx-4090, args: [-ncmoe, '2']}\n"
        "  h100: {device: cuda, twin: nvidia-h100, args: [-ot, exps=CPU]}\n"
        "  l4: {device: cuda, twin: nvidia-l4, args: [-ncmoe, '2']}\n"
        "prompts: {decode: {prompt_tokens: 0, tokens: 8}, prefill: {prompt_tokens: 64, tokens: "
        "0}}\n"
        "matrix:\n  include:\n"
        "    - {engine: vulkan, backend: rx7900}\n    - {engine: cuda, backend: h100}\n"
        "    - {engine: vulkan, backend: rtx4090, model: qwen3moe}\n"
        "    - {engine: cuda, backend: l4, model: qwen3moe}\n"
        "    - {engine: blind, backend: rx7900, model: qwen3moe, prompt: decode}\n";
    spill(scratch_ / "weir.yaml", yaml);
  }

  Scratch scratch_;
};

TEST_F(TwinIndices, OfExpertsOnTheCpuGiveTheSameCountsTwice) {
  const std::vector<std::string> some{"--counts-only", "--cell", "vulkan/*", "--cell",
                                      "cuda/*",        "--json", "-"};
  std::vector<std::string> words{"run"};
  words.insert(words.end(), some.begin(), some.end());
  std::array<std::map<std::string, std::string>, 2> metrics;
  for (auto& by_cell : metrics) {
    const Ended ended = weir(scratch_, words);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    const Json run = json_of(ended);
    for (const Json& profile : run["profiles"]) {
      const std::string cell = profile["cell"];
      EXPECT_TRUE(profile["errors"].empty()) << cell << profile["errors"];
      EXPECT_THAT(profile["warnings"].dump(), HasSubstr("a device twin computes no values"))
          << cell;
      if (cell.ends_with("/decode")) {  // a look-up of the token, and a layer's three products
        EXPECT_GT(metric_of(profile, "cpu_ops_per_token")["exact"].get<double>(), 1 + 3) << cell;
      }
      by_cell[cell] = profile["metrics"].dump();
    }
  }
  EXPECT_EQ(metrics[0].size(), (3U * 2U + 2U) * 2U);
  EXPECT_EQ(metrics[0], metrics[1]);
}

TEST_F(TwinIndices, ThatNoProbeMakesValidEndInAnErrorThatNamesTheTwin) {
  const Ended ended = weir(scratch_, {"run", "--counts-only", "--cell", "blind/*", "--json", "-"});
  const Json run = json_of(ended);
  ASSERT_EQ(run["profiles"].size(), 1U) << ended.err;
  EXPECT_THAT(run["profiles"][0]["errors"].dump(), HasSubstr("the device twin may be why"));
}

TEST_F(TwinIndices, OfTokensLieInTheVocabularyOfTheReferenceEngine) {
  const std::string engine = std::string(WEIR_BINARY_DIR) + "/weir-engine";
  if (!fs::exists(engine)) GTEST_SKIP() << "built without Vulkan";
  spill(scratch_ / "weir.yaml",
        "version: 1\nengines:\n  weir-engine:\n    command: [" + engine +
            ", -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}', --backend, "
            "vulkan, --json]\n    output: weir-observed\n    probes: [vulkan, instrument]\n"
            "models: {tiny-llama: " +
            k_root +
            "/models/tiny-llama.gguf}\n"
            "backends: {rx7900: {device: vulkan, twin: amd-rx-7900-xtx}}\n"
            "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\n");
  const Ended ended = weir(scratch_, {"run", "--counts-only", "--json", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json run = json_of(ended);
  ASSERT_EQ(run["profiles"].size(), 1U);
  EXPECT_TRUE(run["profiles"][0]["errors"].empty()) << run["profiles"][0]["errors"];
}

}  // namespace twin_indices_test
}  // namespace weir::e2e
