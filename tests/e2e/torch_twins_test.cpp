// Hugging Face's transformers on PyTorch, both as PyPI has them, on a CUDA twin: a script that
// generates tokens, its counts, and the causes of changes that were planted in it.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace torch_twins_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;

class TorchTwins : public testing::Test {
 protected:
  void SetUp() override {
    const std::string python = k_root + "/engines/torch/bin/python";
    ASSERT_TRUE(fs::exists(python)) << python << ": run ci/prepare all first";
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines: {hf: {preset: transformers, command: [" + python +
              ", engine.py, '{model}', '{tokens}', '{args}']}}\n"
              "models: {llama: model}\nbackends: {rtx4090: {device: cuda, twin: nvidia-rtx-4090}}\n"
              "prompts: {decode: {prompt_tokens: 0, tokens: 24}}\n");
    make_model({"--layers", "2", "--vocab", "512"});
    plant("");
    accepted_ = weir(scratch_, {"baseline", "accept", "--counts-only"});
  }
  void make_model(std::vector<std::string> options) {
    options.insert(options.begin(), {"model", "make", "model", "--hf"});
    const Ended ended = weir(scratch_, options);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }
  // Writes the script, with a line of Python behind its model.
  void plant(const std::string& line) {
    std::string script = slurp(k_root + "/tests/engines/transformers.py");
    const std::size_t at = script.find("model.generation_config");
    spill(scratch_ / "engine.py", script.insert(at, line + "\n"));
  }
  Ended gate() { return weir(scratch_, {"gate", "--counts-only", "--json", "verdict.json"}); }

  Scratch scratch_;
  Ended accepted_;
};

// Two layers of seven products each, and the head: 15. Each token reads back once if all sequences
// have ended.
TEST_F(TorchTwins, CountAToken) {
  ASSERT_EQ(accepted_.exit_code, 0) << accepted_.out << accepted_.err;
  const Ended same = gate();
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  const Json verdict = parse_json(slurp(scratch_ / "verdict.json")).value_or(Json());
  const Json cell = cell_of(verdict, "hf/llama/rtx4090/decode");
  const std::map<std::string, int> expected = {
      {"dispatches_per_token", 113},    {"cublas_calls_per_token", 15},
      {"copies_per_token", 3},          {"syncs_per_token", 1},
      {"submits_per_token", 116},       {"graph_launches_per_token", 0},
      {"small_read_backs_per_token", 1}};
  for (const auto& [metric, value] : expected) {
    EXPECT_EQ(metric_of(cell, metric)["current"], value) << metric;
  }
}

// The environment of a cell's command is whole wherever it is shown or run.
TEST_F(TorchTwins, RunACellsCommandAsItIsShown) {
  const Ended doctor = weir(scratch_, {"doctor", "--cell", "hf/llama/rtx4090/decode"});
  EXPECT_EQ(doctor.exit_code, 0) << doctor.out << doctor.err;
  EXPECT_THAT(doctor.out, HasSubstr("tokens/s"));
  const Ended shown = weir(scratch_, {"run", "--dry-run"});
  EXPECT_THAT(shown.out, HasSubstr(" LD_PRELOAD=lib"));
}

TEST_F(TorchTwins, FailForPlantedChangesWithTheirCauseFirst) {
  ASSERT_EQ(accepted_.exit_code, 0) << accepted_.out << accepted_.err;
  const std::string each_layer = "for layer in model.model.layers: layer.register_forward_hook(";
  const std::string each_token = "model.register_forward_hook(";
  struct Change {
    std::string line, row, why;
  };
  const std::vector<Change> changes = {
      {each_layer + "lambda m, i, o: (o.sum().item(), o)[1])", "small read backs/token",
       "A value is read back: 2 bytes of reduce_kernel"},
      {each_token + "lambda m, i, o: torch.cuda.synchronize())", "syncs/token         1 → 2",
       "The CPU waits for the GPU more often in a token"},
      {each_layer + "lambda m, i, o: o.clone())", "copies/token        3 → 5",
       "More is copied between memories a token."},
      {each_token + "lambda m, i, o: torch.cuda.empty_cache())", "allocations/token",
       "Devices are asked for memory more often a token."},
      {"model.set_attn_implementation('eager')", "dispatches/token",
       "Math fallback: attention runs without a fused kernel"},
  };
  for (const Change& change : changes) {
    plant(change.line);
    const Ended ended = gate();
    EXPECT_EQ(ended.exit_code, 1) << change.line << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr(change.row)) << change.line;
    EXPECT_THAT(ended.out, HasSubstr(change.why)) << change.line;
  }
}

// Calls of Python's functions and those in C are the same in each process, under any load.
TEST_F(TorchTwins, FailForPlantedWorkOfTheHostWithItsNameFirst) {
  std::string config = slurp(scratch_ / "weir.yaml");
  const std::string preset = "preset: transformers,";
  spill(scratch_ / "weir.yaml",
        config.insert(config.find(preset) + preset.size(), " probes: [python],"));
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  const std::string each_token = "model.register_forward_hook(lambda m, i, o: (";
  struct Change {
    std::string line, why;
  };
  const std::vector<Change> changes = {
      {each_token + "__import__('time').sleep(0.001), None)[1])",
       "The host now calls `sleep`, once a token."},
      {each_token + "o.logits.sum().item(), None)[1])", "The host now calls `item`, once a token."},
      {each_token + "__import__('copy').deepcopy([1]), None)[1])",
       "The host now calls `deepcopy`, twice a token."},
      {each_token + "__import__('logging').getLogger('engine').warning('step'), None)[1])",
       "The host now calls `_log`, once a token."},
      {"once = model.prepare_inputs_for_generation\n"
       "model.prepare_inputs_for_generation = lambda *a, **k: (once(*a, **k), once(*a, **k))[1]",
       "The host now calls `<lambda>`, once a token."},
  };
  for (const Change& change : changes) {
    plant(change.line);
    const Ended ended = gate();
    EXPECT_EQ(ended.exit_code, 1) << change.line << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("why: " + change.why)) << change.line;
  }
}

// The script of docs/how-to/python.md.
TEST(TorchScripts, AreCountedByTheirSteps) {
  const std::string page = slurp(k_root + "/docs/how-to/python.md");
  const std::string opening = "```python\n";
  const std::size_t begin = page.find(opening) + opening.size();
  const Scratch scratch;
  spill(scratch / "engine.py", page.substr(begin, page.find("```", begin) - begin));
  spill(scratch / "weir.yaml",
        "version: 1\nengines: {mine: {preset: torch-script, program: " + k_root +
            "/engines/torch/bin/python}}\n"
            "backends: {rtx4090: {device: cuda, twin: nvidia-rtx-4090}}\n");
  const Ended ended = weir(scratch, {"run", "--counts-only", "--json", "-"});
  const Json profiles = json_of(ended)["profiles"];
  ASSERT_EQ(profiles.size(), 1U) << ended.err;
  EXPECT_EQ(metric_of(profiles[0], "dispatches_per_token")["exact"], 2);
  EXPECT_EQ(metric_of(profiles[0], "small_read_backs_per_token")["exact"], 0);
}

// Each architecture loads with all its weights under the names that its class asks for, and any
// text comes back from the tokenizer.
TEST(TorchScripts, LoadEachModelThatWeirMakes) {
  Scratch scratch;
  spill(scratch / "weir.yaml", "version: 1\nengines: {mine: {preset: torch-script, command: [" +
                                   k_root +
                                   "/engines/torch/bin/python, engine.py, '{tokens}']}}\n"
                                   "backends: {rtx4090: {device: cuda, twin: nvidia-rtx-4090}}\n"
                                   "prompts: {decode: {prompt_tokens: 0, tokens: 3}}\n");
  const std::vector<std::vector<std::string>> models = {
      {"--arch", "llama"},
      {"--arch", "qwen3"},
      {"--arch", "gemma3"},
      {"--arch", "qwen3moe"},
      {"--arch", "llama", "--experts", "4", "--experts-used", "2"}};
  for (std::size_t i = 0; i < models.size(); ++i) {
    std::vector<std::string> words{"model", "make",      "made" + std::to_string(i),
                                   "--hf",  "--weights", "--layers",
                                   "1",     "--vocab",   "512"};
    words.insert(words.end(), models[i].begin(), models[i].end());
    ASSERT_EQ(weir(scratch, words).exit_code, 0);
  }
  spill(scratch / "engine.py", R"(
import os, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
text = "Hello wörld,\n 日本 2!"
for i in range(5 if not os.path.exists("loaded") else 0):
    tokenizer = AutoTokenizer.from_pretrained(f"made{i}")
    assert tokenizer.decode(tokenizer.encode(text)) == text
    model, faults = AutoModelForCausalLM.from_pretrained(f"made{i}", output_loading_info=True)
    assert not any(faults.values()), faults
    assert torch.isfinite(model(torch.tensor([tokenizer.encode(text)])).logits).all()
open("loaded", "w").write("all")
print(f"{sys.argv[1]} tokens, 10 tokens/s")
)");
  const Ended ended = weir(scratch, {"run", "--counts-only"});
  EXPECT_TRUE(fs::exists(scratch / "loaded")) << ended.out << ended.err;
}

// vLLM's own program, without CUDA graphs; ci/python-engines installs it.
class VllmTwins : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(k_vllm)) GTEST_SKIP() << k_vllm << ": ci/python-engines gets it";
    fs::create_directories(scratch_ / "model");
    spill(scratch_ / "model/config.json",
          R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,)"
          R"( "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,)"
          R"( "num_key_value_heads": 2, "vocab_size": 16384, "max_position_embeddings": 512})");
  }
  // Counts a token of one cell, with `backend` in its braces.
  Json count_token(const std::string& backend) {
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines: {vllm: {preset: vllm, program: " + k_vllm +
              "}}\nmodels: {llama: model}\nbackends: {gpu: {device: cuda, " + backend +
              "}}\nprompts: {decode: {prompt_tokens: 0, tokens: 16}}\n");
    const Ended ended = weir(scratch_, {"run", "--counts-only", "--json", "-"});
    const Json profiles = json_of(ended)["profiles"];
    EXPECT_EQ(profiles.size(), 1U) << ended.err;
    return profiles.empty() ? Json() : profiles[0];
  }
  static void expect_metrics(const Json& profile, const std::map<std::string, int>& expected) {
    for (const auto& [metric, value] : expected) {
      EXPECT_EQ(metric_of(profile, metric)["exact"], value) << metric;
    }
  }

  const std::string k_vllm = k_root + "/engines/vllm/bin/vllm";
  Scratch scratch_;
};

// The engine core is a process of its own.
TEST_F(VllmTwins, CountATokenOfItsBenchmark) {
  expect_metrics(count_token("twin: nvidia-rtx-4090"), {{"dispatches_per_token", 42},
                                                        {"cublas_calls_per_token", 9},
                                                        {"copies_per_token", 13},
                                                        {"syncs_per_token", 2},
                                                        {"small_read_backs_per_token", 1}});
}

// Two all-reduces a layer and one of the embedding, and the logits are gathered, in each rank.
TEST_F(VllmTwins, CountARankOfTensorParallel) {
  const Json profile = count_token(
      "twin: nvidia-h100, count: 2, env: {VLLM_ALLREDUCE_USE_SYMM_MEM: '0'}, "
      "args: [-tp, '2', --disable-custom-all-reduce, --no-async-scheduling]");
  expect_metrics(profile, {{"dispatches_per_token", 51},
                           {"cublas_calls_per_token", 9},
                           {"copies_per_token", 11},
                           {"syncs_per_token", 1},
                           {"rank_differences_per_token", 0}});
  const Json& kernels = profile["kernels"]["counts"];
  EXPECT_EQ(kernels["ncclAllReduce(256 bf16, 2 ranks)"], 5);
  EXPECT_EQ(kernels["ncclAllGather(8192 bf16, 2 ranks)"], 1);
}

// Its test of the GPUs passes: memory is shared with other processes.
TEST_F(VllmTwins, CountItsOwnAllReduce) {
  const Json profile =
      count_token("twin: nvidia-h100, count: 2, args: [-tp, '2', --no-async-scheduling]");
  expect_metrics(
      profile,
      {{"dispatches_per_token", 51}, {"copies_per_token", 16}, {"rank_differences_per_token", 0}});
  EXPECT_EQ(profile["kernels"]["counts"]["vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>"], 5);
}

TEST_F(VllmTwins, CountATokenOfItsCudaGraphs) {
  const Json profile = count_token(
      "twin: nvidia-rtx-4090, args: [--no-enforce-eager, -cc, "
      "'{\"mode\": 0, \"cudagraph_mode\": \"FULL_DECODE_ONLY\"}']");
  expect_metrics(profile, {{"dispatches_per_token", 42},
                           {"graph_launches_per_token", 1},
                           {"submits_per_token", 31},
                           {"copies_per_token", 13},
                           {"syncs_per_token", 2}});
}

// torch takes cuDNN's attention on Hopper and newer. Llama 3.3's 70B has 131 GiB of weights, which
// nobody writes; 80 layers of seven products each, and the head: 561.
TEST_F(TorchTwins, LoadA70BWhereItFitsAndEndInTorchsOwnErrorWhereNot) {
  std::string config = slurp(scratch_ / "weir.yaml");
  const std::string backend = "rtx4090: {device: cuda, twin: nvidia-rtx-4090}";
  config.replace(
      config.find(backend), backend.size(),
      "h100: {device: cuda, twin: nvidia-h100}, b200: {device: cuda, twin: nvidia-b200}");
  spill(scratch_ / "weir.yaml", config);
  make_model({"--like", "llama-3.3-70b"});
  const Ended ended = weir(scratch_, {"run", "--counts-only", "--json", "-"});
  const Json profiles = json_of(ended)["profiles"];
  ASSERT_EQ(profiles.size(), 2U) << ended.err;
  const auto of = [&](const std::string& cell) {
    return *std::ranges::find_if(profiles, [&](const Json& each) { return each["cell"] == cell; });
  };
  const Json fits = of("hf/llama/b200/decode");
  EXPECT_EQ(metric_of(fits, "cublas_calls_per_token")["exact"], 561);
  EXPECT_EQ(fits["kernels"]["counts"]["cudnnBackendExecute"], 80);
  EXPECT_THAT(of("hf/llama/h100/decode").dump(), HasSubstr("torch.OutOfMemoryError"));
}

}  // namespace torch_twins_test
}  // namespace weir::e2e
