// The unmodified llama-server through the example config: both tiny models, CPU and Vulkan.
#include <fmt/format.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace llama_serving_test {

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_engine = k_root + "/engines/llama.cpp/llama-server";

struct Place {
  const char *model, *backend;
};

class LlamaServer : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_engine)) << "run ci/llama.cpp llama-server first";
    ASSERT_TRUE(fs::exists(k_root + "/models/tiny-llama.gguf")) << "run ci/models first";
    write_config("");
  }

  // The example config; llama-server behind a wrapper that adds arguments.
  void write_config(const std::string& more) {
    spill_program(scratch_ / "server", "#!/bin/sh\nexec " + k_engine + " \"$@\" " + more + "\n");
    std::string text = slurp(k_root + "/configs/llama-server.yaml");
    for (const std::string words : {"../engines/llama.cpp/llama-server",
                                    "../models/tiny-llama.gguf", "../models/tiny-gemma3.gguf"}) {
      replace(text, words, words.ends_with("server") ? "./server" : k_root + words.substr(2));
    }
    if (GetParam().backend == std::string_view("vulkan")) {
      // lavapipe computes on the cores that all else runs on, and prompts take it the longest (7 s
      // for tiny-gemma3's of 47 tokens, one thread).
      replace(text, "The quick brown fox jumps over the lazy dog and", "The");
      replace(text, "tokens: 32", "tokens: 16");
      replace(text, "timeout: 120s", "timeout: 300s");
    }
    spill(scratch_ / "weir.yaml", text);
  }

  static void replace(std::string& text, const std::string& words, const std::string& by) {
    const auto at = text.find(words);
    ASSERT_NE(at, std::string::npos) << words;
    text.replace(at, words.size(), by);
  }

  static std::string cell(const char* prompt) {
    return fmt::format("llama-server/{}/{}/{}", GetParam().model, GetParam().backend, prompt);
  }

  Json gate(int exit_code, const std::string& cells) {
    const Ended ended = weir(scratch_, {"gate", "--counts-only", "--json", "-", "--cell", cells});
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err << ended.out;
    EXPECT_EQ(processes_with(scratch_.path().filename()), std::vector<std::string>{});
    return json_of(ended);
  }

  Scratch scratch_;
};

TEST_P(LlamaServer, PassesAgainstItsOwnCountsAndFailsWhenRequestsNoLongerShareBatches) {
  const Ended accepted =
      weir(scratch_, {"baseline", "accept", "--counts-only", "--cell", cell("*")});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  const Json same = gate(0, cell("*"));
  // A request alone: one graph a token.
  const std::string alone = cell("hello@c1"), together = cell("hello@c4");
  EXPECT_EQ(metric_of(cell_of(same, alone), "graphs_per_token")["current"], 1);
  EXPECT_EQ(metric_of(cell_of(same, alone), "graphs_per_token")["nature"], "exact");
  EXPECT_EQ(cell_of(same, alone)["verdict"], "pass");
  const Json shared = metric_of(cell_of(same, together), "graphs_per_token");
  EXPECT_EQ(shared["nature"], "exact") << "a burst that is held makes the same batches";
  EXPECT_LT(shared.value("current", 1.0), 0.5) << "four requests share most graphs";

  // Requests join no batch that is under way.
  write_config("--no-cont-batching");
  const Json unbatched = cell_of(gate(1, together), together);
  const Json later = metric_of(unbatched, "graphs_per_token");
  EXPECT_EQ(later["verdict"], "fail") << later;
  EXPECT_GT(later.value("current", 0.0), shared.value("current", 1.0));
  EXPECT_EQ(unbatched["findings"][0]["kind"], "batches_changed") << unbatched["findings"];

  // One slot: requests wait for each other, and every token is a graph of its own again.
  write_config("-np 1");
  const Json single_slot = metric_of(cell_of(gate(1, together), together), "graphs_per_token");
  EXPECT_EQ(single_slot["verdict"], "fail") << single_slot;
  EXPECT_GE(single_slot.value("current", 0.0), 1);
}

// A prefix cache that is switched off is told by the tokens that came from it.
TEST_P(LlamaServer, IsRedWithoutItsPrefixCache) {
  if (GetParam().backend == std::string_view("vulkan")) GTEST_SKIP() << "what the server counts";
  std::string text = slurp(scratch_ / "weir.yaml");
  replace(text, "concurrency: [1, 4]", "concurrency: [1, 4], cache: true");
  spill(scratch_ / "weir.yaml", text);
  const std::string cells = cell("*");
  ASSERT_EQ(weir(scratch_, {"baseline", "accept", "--counts-only", "--cell", cells}).exit_code, 0);
  const Json same = gate(0, cells);
  for (const char* prompt : {"hello@c1", "hello@c4"}) {
    const Json hits = metric_of(cell_of(same, cell(prompt)), "cached_prompt_share");
    EXPECT_EQ(hits["nature"], "exact") << prompt;
    EXPECT_GT(hits.value("current", 0.0), 0.3) << prompt;
  }
  spill_program(scratch_ / "server", "#!/bin/sh\nexec " + k_engine + " \"$@\" --no-cache-prompt\n");
  const Json without = gate(1, cells);
  for (const char* prompt : {"hello@c1", "hello@c4"}) {
    const Json hits = metric_of(cell_of(without, cell(prompt)), "cached_prompt_share");
    EXPECT_EQ(hits["verdict"], "fail") << hits;
    EXPECT_EQ(hits["current"], 0) << hits;
  }
}

// The model drafts for itself, and then one with other weights does: the same tokens, more graphs.
TEST_P(LlamaServer, IsRedWithAWorseDraftModel) {
  if (GetParam().backend == std::string_view("vulkan")) GTEST_SKIP() << "slow on two cores";
  if (GetParam().model == std::string_view("tiny-gemma3")) {
    GTEST_SKIP() << "with random weights it repeats a token, whatever the seed: drafts agree";
  }
  const auto drafted_by = [](const std::string& model) {
    return "--spec-type draft-simple -md " + k_root + "/models/" + model + ".gguf";
  };
  write_config(drafted_by(GetParam().model));
  const std::string cells = cell("*");
  ASSERT_EQ(weir(scratch_, {"baseline", "accept", "--counts-only", "--cell", cells}).exit_code, 0);
  const Json same = gate(0, cells);
  const Json good = metric_of(cell_of(same, cell("hello@c4")), "draft_acceptance");
  EXPECT_EQ(good["nature"], "exact") << good;
  EXPECT_GT(good.value("current", 0.0), 0.9) << "it agrees with itself";
  ASSERT_EQ(weir(scratch_, {"model", "make", "other.gguf", "--arch",
                            std::string(GetParam().model).substr(5), "--seed", "9"})
                .exit_code,
            0);
  spill_program(scratch_ / "server", "#!/bin/sh\nexec " + k_engine +
                                         " \"$@\" --spec-type draft-simple -md " +
                                         (scratch_ / "other.gguf").string() + "\n");
  const Json worse = cell_of(gate(1, cells), cell("hello@c4"));
  for (const char* metric : {"draft_acceptance", "graphs_per_token"}) {
    EXPECT_EQ(metric_of(worse, metric)["verdict"], "fail") << metric_of(worse, metric);
  }
}

// Four lines and a preset, as a user begins: green on itself, red when attention takes other
// kernels.
TEST_P(LlamaServer, IsGatedByItsPreset) {
  spill(scratch_ / "weir.yaml",
        fmt::format("version: 1\nengines: {{llama-server: {{preset: llama-server, program: "
                    "./server}}}}\nmodels: {{{}: {}/models/{}.gguf}}\nbackends: {{{}: }}\n",
                    GetParam().model, k_root, GetParam().model, GetParam().backend));
  const std::string alone = cell("chat@c1");
  ASSERT_EQ(weir(scratch_, {"run", "--counts-only", "--cell", alone}).exit_code, 0);
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only", "--cell", alone});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  const Json same = cell_of(gate(0, alone), alone);
  EXPECT_EQ(same["verdict"], "pass");
  EXPECT_EQ(metric_of(same, "graphs_per_token")["nature"], "exact");
  spill_program(scratch_ / "server", "#!/bin/sh\nexec " + k_engine + " \"$@\" -fa off\n");
  const Json later = cell_of(gate(1, alone), alone);
  const char* of_device =
      GetParam().backend == std::string_view("cpu") ? "cpu_ops_per_token" : "dispatches_per_token";
  EXPECT_EQ(metric_of(later, of_device)["verdict"], "fail") << later;
}

// Another digest is a note where the likely tokens are near, and a fail where they are not.
TEST_P(LlamaServer, IsJudgedByItsLikelyTokens) {
  spill(scratch_ / "weir.yaml",
        fmt::format("version: 1\nengines: {{llama-server: {{preset: llama-server, program: "
                    "./server, logits: {{max_kl: 0.0001}}}}}}\nmodels: {{{}: {}/models/{}.gguf}}\n"
                    "backends: {{{}: }}\n",
                    GetParam().model, k_root, GetParam().model, GetParam().backend));
  const std::string alone = cell("chat@c1");
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only", "--cell", alone});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_EQ(metric_of(cell_of(gate(0, alone), alone), "output_kl")["current"], 0);
  spill_program(scratch_ / "server",
                "#!/bin/sh\nexec " + k_engine + " \"$@\" --rope-freq-scale 0.5\n");
  const Json scaled = metric_of(cell_of(gate(1, alone), alone), "output_kl");
  EXPECT_EQ(scaled["verdict"], "fail") << scaled;
  EXPECT_GT(scaled.value("current", 0.0), 0.0001);
}

// A GPU that is not there, and what makes llama.cpp take other kernels on it, in a shell's words.
struct Gpu {
  const char *name, *engine, *backend;
  std::vector<const char*> switches;
};

class LlamaServerOnTwin : public testing::TestWithParam<Gpu> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(engine())) << "run ci/llama.cpp [--cuda 13] llama-server first";
    start_with("");
    const bool cuda = fs::exists(folder() + "/libggml-cuda.so");  // the wrapper has no such code
    // About 200 tokens by the model's small vocabulary.
    spill(scratch_ / "weir.yaml",
          fmt::format("version: 1\nengines: {{s: {{preset: llama-server, program: ./server{}}}}}\n"
                      "models: {{m: {}/models/tiny-llama.gguf}}\nbackends: {{g: {}}}\n"
                      "prompts: {{p: {{prompt_tokens: 50, tokens: 16, concurrency: [1, 4]}}}}\n"
                      "limits: [{{metrics: kernel_code, exact: true}}]\n",
                      cuda ? ", gpu_code: " + folder() + "/libggml-cuda.so" : "", k_root,
                      GetParam().backend));
  }

  void start_with(const std::string& words) {
    const bool argument = words.starts_with("-");
    spill_program(scratch_ / "server",
                  fmt::format("#!/bin/sh\n{}exec {} \"$@\" {}\n",
                              argument || words.empty() ? "" : "export " + words + "\n", engine(),
                              argument ? words : ""));
  }
  static std::string folder() { return k_root + "/engines/" + GetParam().engine; }
  static std::string engine() { return folder() + "/llama-server"; }
  Ended gate() { return weir(scratch_, {"gate", "--counts-only", "--json", "-"}); }

  Scratch scratch_;
};

TEST_P(LlamaServerOnTwin, IsGreenOnItselfAndRedByOtherKernelsOfPromptsAndTokens) {
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  const std::vector<std::string> cells{"s/m/g/p@c1", "s/m/g/p@c4"};
  constexpr int k_again = 3;
  for (int i = 0; i < k_again; ++i) {
    const Ended same = gate();
    EXPECT_EQ(same.exit_code, 0) << same.err;
    for (const std::string& name : cells) {
      const Json cell = cell_of(json_of(same), name);
      EXPECT_EQ(cell["verdict"], "pass") << cell;
      EXPECT_EQ(metric_of(cell, "kernels")["verdict"], "pass") << cell["judgements"];
      EXPECT_EQ(metric_of(cell, "kernel_code").value("verdict", ""), "pass") << name;
      EXPECT_EQ(metric_of(cell, "placement")["verdict"], "pass") << name;
      EXPECT_EQ(cell["warnings"].dump().find("could not list every op"), std::string::npos) << name;
    }
  }
  for (const char* setting : GetParam().switches) {
    start_with(setting);
    const Json verdict = json_of(gate());
    for (const std::string& name : cells) {
      const Json cell = cell_of(verdict, name);
      EXPECT_EQ(cell["verdict"], "fail") << setting << " in " << name << ": " << cell;
      ASSERT_FALSE(cell["findings"].empty()) << setting << " in " << name;
      EXPECT_NE(cell["findings"][0]["kind"], "made_late") << setting << " in " << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Real, LlamaServerOnTwin,
    testing::Values(Gpu{"RX_7900",
                        "llama.cpp",
                        "{device: vulkan, twin: amd-rx-7900-xtx}",
                        {"GGML_VK_DISABLE_F16=1", "GGML_VK_DISABLE_FUSION=1",
                         "GGML_VK_DISABLE_COOPMAT=1", "-fa off", "-ctk q8_0 -ctv q8_0"}},
                    Gpu{"RTX_4090",
                        "llama.cpp-cuda13",
                        "{device: cuda, twin: nvidia-rtx-4090}",
                        {"GGML_CUDA_DISABLE_FUSION=1", "GGML_CUDA_DISABLE_GRAPHS=1", "-fa off",
                         "-ctk q8_0 -ctv q8_0", "-ub 64"}}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(Real, LlamaServer,
                         testing::Values(Place{"tiny-llama", "cpu"}, Place{"tiny-llama", "vulkan"},
                                         Place{"tiny-gemma3", "cpu"},
                                         Place{"tiny-gemma3", "vulkan"}),
                         [](const auto& test) {
                           return fmt::format("{}_on_{}", test.param.model + 5, test.param.backend);
                         });

}  // namespace llama_serving_test
}  // namespace weir::e2e
