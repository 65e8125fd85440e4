// The published llama.cpp for CUDA, on GPUs that are not here, through weir. The figures are those
// of docs/how-to/cuda-twins.md, and of a real H200 (docs/evidence/real-gpu.md).
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace cuda_twins_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;

class CudaTwins : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* major : {"12", "13"}) {
      ASSERT_TRUE(fs::exists(k_root + "/engines/llama.cpp-cuda" + major + "/llama-bench"))
          << "run ci/prepare test first";
    }
  }
  // One engine a major; `backends` below it.
  void configure(const std::string& engines, const std::string& backends,
                 const std::string& prompts = "decode: {prompt_tokens: 0, tokens: 16}") {
    std::string yaml = "version: 1\nengines:\n";
    for (const char* major : {"12", "13"}) {
      if (engines.find(major) == std::string::npos) continue;
      yaml += fmt::format(
          "  cuda{0}:\n    command: [{1}/engines/llama.cpp-cuda{0}/llama-bench, -m, '{{model}}', "
          "-p, '{{prompt_tokens}}', -n, '{{tokens}}', -r, '{{repeats}}', -o, json]\n"
          "    output: llama-bench\n    probes: [cuda, ggml]\n"
          "    cpu_ops_allowed: {{GET_ROWS: 'one look-up is cheaper than a dispatch'}}\n",
          major, k_root);
    }
    yaml += "models:\n  tiny-llama: " + k_root + "/models/tiny-llama.gguf\nbackends:\n" + backends +
            "prompts: {" + prompts + "}\n";
    spill(scratch_ / "weir.yaml", yaml);
  }
  Ended call(std::vector<std::string> words, const std::map<std::string, std::string>& env = {}) {
    return weir(scratch_, words, env);
  }
  Json measured(const std::map<std::string, std::string>& env = {}) {
    return json_of(call({"run", "--counts-only", "--json", "-"}, env));
  }

  Scratch scratch_;
};

constexpr const char* k_4090 = "  g: {device: cuda, twin: nvidia-rtx-4090, args: [-ngl, '99']}\n";

Json profile_of(const Json& run, const std::string& cell) {
  for (const Json& profile : run["profiles"]) {
    if (profile["cell"] == cell) return profile;
  }
  ADD_FAILURE() << "no " << cell;
  return Json::object();
}
Json value_of(const Json& run, const std::string& cell, const std::string& metric) {
  return metric_of(profile_of(run, cell), metric).value("exact", Json());
}

// Kernels, graph launches, copies a token on the RTX 4090, as another counter had them, written
// independently.
TEST_F(CudaTwins, CountWhatAnIndependentCounterCounted) {
  const struct {
    const char* setting;
    std::map<std::string, std::string> env;
    const char* arguments;
    int dispatches, graph_launches, copies;
  } cases[] = {
      {"as it is", {}, "", 57, 1, 7},
      {"without graphs", {{"GGML_CUDA_DISABLE_GRAPHS", "1"}}, "", 57, 0, 7},
      {"without fusions", {{"GGML_CUDA_DISABLE_FUSION", "1"}}, "", 85, 1, 7},
      {"without flash attention", {}, ", -fa, '0'", 61, 1, 7 + 4},
  };
  for (const auto& c : cases) {
    configure("13",
              fmt::format("  g: {{device: cuda, twin: nvidia-rtx-4090, args: [-ngl, '99'{}]}}\n",
                          c.arguments));
    const Json cells = measured(c.env);
    const std::string cell = "cuda13/tiny-llama/g/decode";
    EXPECT_EQ(value_of(cells, cell, "dispatches_per_token"), c.dispatches) << c.setting;
    EXPECT_EQ(value_of(cells, cell, "graph_launches_per_token"), c.graph_launches) << c.setting;
    EXPECT_EQ(value_of(cells, cell, "copies_per_token"), c.copies) << c.setting;
    EXPECT_EQ(value_of(cells, cell, "cublas_calls_per_token"), 0) << c.setting;
  }
}

TEST_F(CudaTwins, TakeTheKernelsOfTheirGpu) {
  std::string backends;
  for (const char* gpu :
       {"p40", "rtx-2080-ti", "a100", "rtx-3060", "rtx-4090", "h100", "rtx-5090"}) {
    backends +=
        fmt::format("  {}: {{device: cuda, twin: nvidia-{}, args: [-ngl, '99']}}\n", gpu, gpu);
  }
  configure("12 13", backends);
  const Json cells = measured();
  const auto kernels = [&](const std::string& cell) {
    return profile_of(cells, cell)["kernels"].dump();
  };
  const auto cell_name = [](const char* major, const char* gpu) {
    return fmt::format("cuda{}/tiny-llama/{}/decode", major, gpu);
  };
  for (const char* gpu : {"rtx-2080-ti", "a100", "rtx-3060"}) {
    EXPECT_THAT(kernels(cell_name("13", gpu)), HasSubstr("flash_attn_stream_k_fixup")) << gpu;
  }
  for (const char* gpu : {"rtx-4090", "h100", "rtx-5090"}) {
    EXPECT_THAT(kernels(cell_name("13", gpu)), HasSubstr("flash_attn_combine_results")) << gpu;
  }
  for (const char* gpu : {"h100", "rtx-5090"}) {
    EXPECT_EQ(value_of(cells, cell_name("13", gpu), "programmatic_launches_per_token"), 49) << gpu;
  }
  EXPECT_EQ(value_of(cells, cell_name("13", "rtx-4090"), "programmatic_launches_per_token"), 0);
  // CUDA 13 has no code for it any more, and CUDA 12's build makes no graphs of it.
  EXPECT_FALSE(profile_of(cells, cell_name("13", "p40"))["errors"].empty());
  EXPECT_THAT(kernels(cell_name("12", "p40")), HasSubstr("flash_attn_tile"));
  EXPECT_EQ(value_of(cells, cell_name("12", "p40"), "graph_launches_per_token"), 0);
}

TEST_F(CudaTwins, AreGatedExactlyAndFailWithTheirCause) {
  configure("13",
            std::string(k_4090) +
                "  two: {device: cuda, twin: nvidia-h100, count: 2, args: [-ngl, '99']}\n",
            "decode: {prompt_tokens: 0, tokens: 16}, prefill: {prompt_tokens: 64, tokens: 0}");
  ASSERT_EQ(call({"baseline", "accept", "--counts-only", "--baselines", "base"}).exit_code, 0);
  EXPECT_THAT(relative_files(scratch_ / "base"), HasSubstr("twin-cuda-nvidia-rtx-4090.json"));
  EXPECT_THAT(relative_files(scratch_ / "base"), HasSubstr("twin-cuda-nvidia-h100-x2.json"));
  const std::vector<std::string> gate{"gate", "--counts-only", "--baselines",
                                      "base", "--json",        "-"};
  const Json green = json_of(call(gate));
  EXPECT_EQ(green["verdict"], "pass") << green.dump(1);
  const struct {
    std::map<std::string, std::string> env;
    const char* metric;
  } cases[] = {{{{"GGML_CUDA_DISABLE_GRAPHS", "1"}}, "submits_per_token"},
               {{{"GGML_CUDA_DISABLE_FUSION", "1"}}, "dispatches_per_token"}};
  for (const auto& c : cases) {
    const Ended ended = call(gate, c.env);
    EXPECT_EQ(ended.exit_code, 1) << ended.err;
    const Json cell = cell_of(json_of(ended), "cuda13/tiny-llama/g/decode");
    EXPECT_EQ(metric_of(cell, c.metric)["verdict"], "fail") << cell.dump(1);
  }
  EXPECT_THAT(call({"explain", "--cell", "*/g/decode", "--checklist"}).out,
              HasSubstr("RMS_NORM+MUL 9 times a token"));
}

// Ten GPUs, two models, a prompt and decoding: the figures of this repository.
TEST_F(CudaTwins, CountAsTheRepositorysBaselinesHaveIt) {
  const Ended ended =
      call({"gate", "--counts-only", "-c", k_root + "/configs/llama.cpp-cuda.yaml", "--baselines",
            k_root + "/baselines", "--require-baseline", "--json", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out.substr(0, 3000) << ended.err;
  const Json verdict = json_of(ended);
  EXPECT_EQ(verdict["verdict"], "pass");
  EXPECT_EQ(verdict["cells"].size(), 40U);
}

// Its libraries in the place of a machine's own: the path of a real GPU, without `twin`.
TEST_F(CudaTwins, AreHeldAgainstADriverOfTheMachineByTheSameProbe) {
  configure("13", k_4090);
  ASSERT_EQ(call({"run", "--counts-only"}).exit_code, 0);
  const auto in_twins = [&](const std::string& begin, const std::string& part) -> std::string {
    for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out/twins")) {
      const std::string name = entry.path().filename();
      if (name.starts_with(begin) && name.find(part) != std::string::npos) return entry.path();
    }
    ADD_FAILURE() << "no twins/" << begin << "*" << part;
    return "";
  };
  const auto card = [&](const char* more) {
    return fmt::format(
        "  card: {{device: cuda, args: [-ngl, '99'], env: {{LD_LIBRARY_PATH: {}, "
        "WEIR_RUNTIME_TWIN: "
        "{}, WEIR_RUNTIME_KERNELS: {}{}}}}}\n",
        in_twins("cuda-", ""), in_twins("nvidia", ".cuda"), in_twins("", ".kernels"), more);
  };
  const auto notes = [&](const char* more) {
    configure("13", k_4090 + card(more));
    const Ended ended = call({"gate", "--counts-only", "--json", "-"});
    const Json verdict = json_of(ended);
    EXPECT_EQ(verdict["cells"].size(), 2U) << ended.err;
    return verdict["notes"].dump();
  };
  EXPECT_THAT(notes(""),
              testing::ContainsRegex("against the real NVIDIA GeForce RTX 4090: [1-9][0-9]"
                                     " counts of 1 cell equal, and their kernels"));
  EXPECT_THAT(notes(", GGML_CUDA_DISABLE_FUSION: '1'"), HasSubstr("1 of 1 cell differs"));

  // Only the engine can tell that there is such a device.
  const Ended ab = call({"ab", k_root + "/engines/llama.cpp-cuda13/llama-bench", "--env",
                         "GGML_CUDA_DISABLE_GRAPHS=1", "--counts-only", "--json", "-", "--", "-m",
                         k_root + "/models/tiny-llama.gguf", "-p", "0", "-n", "16", "-ngl", "99"},
                        {{"LD_LIBRARY_PATH", in_twins("cuda-", "")},
                         {"WEIR_RUNTIME_TWIN", in_twins("nvidia", ".cuda")},
                         {"WEIR_RUNTIME_KERNELS", in_twins("", ".kernels")}});
  EXPECT_EQ(ab.exit_code, 1) << ab.err;
  const Json cell = cell_of(json_of(ab), "llama-bench/tiny-llama/cuda/decode");
  EXPECT_EQ(metric_of(cell, "graph_launches_per_token")["baseline"], 1);
  EXPECT_EQ(metric_of(cell, "graph_launches_per_token")["current"], 0);
}

TEST_F(CudaTwins, SayWhatAProgramAsksForThatTheyDoNotHave) {
  spill(scratch_ / "engine.c",
        "int cudaSomethingNew(void);\nint main(void) { return cudaSomethingNew(); }\n");
  spill(scratch_ / "cudart.c", "int cudaSomethingNew(void) { return 0; }\n");
  const std::string folder = scratch_.path().string();
  const auto compile = [&](const std::string& words) {
    ASSERT_EQ(std::system((std::string(WEIR_CXX) + " -x c " + words + " 2>/dev/null").c_str()), 0);
  };
  compile(folder + "/cudart.c -shared -fPIC -Wl,-soname,libcudart.so.13 -o " + folder +
          "/libcudart.so.13");
  compile(folder + "/engine.c -x none " + folder + "/libcudart.so.13 -o " + folder + "/engine");
  spill(scratch_ / "weir.yaml",
        "version: 1\nengines:\n  e: {command: [./engine, '{tokens}'], output: generic, probes: "
        "[cuda], metrics: {decode_tokens_per_second: {regex: '(\\d+)'}}}\n"
        "models: {m: " +
            k_root + "/models/tiny-llama.gguf}\nbackends:\n" + k_4090 +
            "prompts: {decode: {tokens: 8}}\n");
  const Ended ended = call({"gate", "--counts-only"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
  EXPECT_THAT(ended.out + ended.err, HasSubstr("engine calls cudaSomethingNew"));
}

TEST_F(CudaTwins, TellThatAModelDoesNotFit) {
  ASSERT_EQ(call({"model", "make", "large.gguf", "--like", "mixtral-8x7b", "--hollow"}).exit_code,
            0);
  spill(scratch_ / "weir.yaml",
        "version: 1\nengines:\n  e: {preset: llama-bench, program: " + k_root +
            "/engines/llama.cpp-cuda13/llama-bench}\nmodels: {m: large.gguf}\nbackends:\n" +
            k_4090 + "prompts: {decode: {prompt_tokens: 0, tokens: 16}}\n");
  const Ended ended = call({"gate", "--counts-only"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("the CUDA twin is out of memory: "));

  // Accepted it passes; a baseline of a build that fitted fails it.
  ASSERT_EQ(call({"baseline", "accept", "--counts-only", "--baselines", "base"}).exit_code, 0);
  const Ended again = call({"gate", "--counts-only", "--baselines", "base"});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  const fs::path stored = scratch_ / "base/e/m/g/decode/twin-cuda-nvidia-rtx-4090.json";
  Json baseline = Json::parse(slurp(stored));
  ASSERT_TRUE(baseline["counts"].contains("fits")) << baseline.dump(1);
  baseline["counts"]["syncs_per_token"] = std::exchange(baseline["counts"]["fits"], Json());
  baseline["counts"].erase("fits");
  spill(stored, baseline.dump());
  const Ended red = call({"gate", "--counts-only", "--baselines", "base"});
  EXPECT_EQ(red.exit_code, 1) << red.out << red.err;
  EXPECT_THAT(red.out, HasSubstr("fits  1 → 0"));
}

// Published engines for Node, by scripts of a few lines (tests/e2e/node).
class NodeOnCudaTwins : public testing::Test {
 protected:
  void SetUp() override {
    const std::string packages = k_root + "/.cache/node-engines/node_modules";
    if (!fs::exists(packages)) {
      GTEST_SKIP() << "no " << packages << ": run ci/node-engines (x86-64 alone)";
    }
    fs::create_directory_symlink(packages, scratch_ / "node_modules");
  }
  // Gated on two GPUs against what it counted before; the verdict.
  Json gated(const std::string& script, const std::string& model, const std::string& more) {
    spill(scratch_ / "weir.yaml",
          fmt::format("version: 1\nengines:\n  e:\n    command: [node, {}, '{{model}}', "
                      "'{{tokens}}']\n{}    output: generic\n    facts: {{generated_tokens: "
                      "{{regex: '^(\\d+) tokens'}}}}\n    metrics: {{decode_tokens_per_second: "
                      "{{regex: '([\\d.]+) tokens/s'}}}}\nmodels: {{m: {}}}\nbackends:\n"
                      "  rtx4090: {{device: cuda, twin: nvidia-rtx-4090}}\n"
                      "  h100: {{device: cuda, twin: nvidia-h100}}\n"
                      "prompts: {{decode: {{prompt_tokens: 0, tokens: 16}}}}\n",
                      script, more, model));
    fs::copy_file(k_root + "/tests/e2e/node/" + script, scratch_ / script);
    const Ended accepted =
        weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base"});
    EXPECT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
    Json verdict =
        json_of(weir(scratch_, {"gate", "--counts-only", "--baselines", "base", "--json", "-"}));
    EXPECT_EQ(verdict["verdict"], "pass") << verdict.dump(1).substr(0, 3000);
    return verdict;
  }

  Scratch scratch_;
};

// llama.cpp by another door: the counts of llama-bench on the same GPU (the table above).
TEST_F(NodeOnCudaTwins, NodeLlamaCppCountsAsLlamaBenchDoes) {
  const Json verdict =
      gated("llama.mjs", k_root + "/models/tiny-llama.gguf",
            "    probes: [cuda, ggml]\n    cpu_ops_allowed: {GET_ROWS: 'one look-up'}\n"
            "    gpu_code: node_modules/@node-llama-cpp/linux-x64-cuda/bins/linux-x64-cuda/"
            "libggml-cuda.so\n");
  const std::map<std::string, int> expected = {
      {"dispatches_per_token", 57}, {"graph_launches_per_token", 1}, {"copies_per_token", 7},
      {"syncs_per_token", 7},       {"cublas_calls_per_token", 0},   {"cpu_ops_per_token", 1}};
  for (const auto& [metric, count] : expected) {
    for (const char* gpu : {"rtx4090", "h100"}) {
      const Json judgement = metric_of(cell_of(verdict, fmt::format("e/m/{}/decode", gpu)), metric);
      EXPECT_EQ(judgement["current"], count) << gpu << " " << metric << judgement;
    }
  }
  const auto programmatic = [&](const char* cell) {
    return metric_of(cell_of(verdict, cell), "programmatic_launches_per_token")["current"];
  };
  EXPECT_EQ(programmatic("e/m/rtx4090/decode"), 0);
  EXPECT_EQ(programmatic("e/m/h100/decode"), 49);
}

// 8 tokens a window, whose encoder they share: counts of a window are whole.
TEST_F(NodeOnCudaTwins, WhisperNodeIsCountedByTokensOfWindows) {
  ASSERT_EQ(std::system(("node " + k_root + "/tests/e2e/node/hollow_whisper.mjs " +
                         (scratch_ / "whisper.bin").string())
                            .c_str()),
            0);
  const Json verdict =
      gated("whisper.mjs", "whisper.bin",
            "    probes: [cuda]\n"
            "    gpu_code: node_modules/@fugood/node-whisper-linux-x64-cuda/index.node\n");
  const std::map<std::string, double> expected = {{"dispatches_per_token", 751.0 / 8},
                                                  {"cublas_calls_per_token", 53.0 / 8},
                                                  {"copies_per_token", 62.0 / 8},
                                                  {"syncs_per_token", 45.0 / 8},
                                                  {"graph_launches_per_token", 0}};
  for (const auto& [metric, count] : expected) {
    for (const char* gpu : {"rtx4090", "h100"}) {
      const Json judgement = metric_of(cell_of(verdict, fmt::format("e/m/{}/decode", gpu)), metric);
      EXPECT_EQ(judgement["current"], count) << gpu << " " << metric << judgement;
    }
  }
}

TEST_F(CudaTwins, CompareTwoProgramsWithoutAConfiguration) {
  const std::string bench = k_root + "/engines/llama.cpp-cuda13/llama-bench";
  std::vector<std::string> command{"ab", bench, "--env", "GGML_CUDA_DISABLE_GRAPHS=1"};
  command.insert(command.end(), {"--twin", "nvidia-rtx-4090", "--", "-m"});
  command.insert(command.end(), {k_root + "/models/tiny-llama.gguf", "-ngl", "99", "-p", "0"});
  command.insert(command.end(), {"-n", "16"});
  const Ended ended = weir(scratch_, command);
  EXPECT_EQ(ended.exit_code, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("FAIL  llama-bench / tiny-llama / nvidia-rtx-4090 / decode"));
  EXPECT_THAT(ended.out, HasSubstr("why: GPU graphs are no longer used"));
}

TEST_F(NodeOnCudaTwins, AskForTheLibraryThatNodeOpensByItself) {
  spill(scratch_ / "none.mjs", "");
  const std::string yaml =
      "version: 1\nengines:\n  e: {command: [node, none.mjs, '{tokens}'], output: generic, probes: "
      "[cuda], metrics: {decode_tokens_per_second: {regex: '(\\d+)'}}}\nmodels: {m: none.mjs}\n"
      "backends:\n  g: {device: cuda, twin: nvidia-h100}\nprompts: {decode: {tokens: 8}}\n";
  spill(scratch_ / "weir.yaml", yaml);
  const Ended ended = weir(scratch_, {"gate", "--counts-only"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
  EXPECT_THAT(ended.out + ended.err, HasSubstr("weir.yaml:3:3: engine \"e\": node has no CUDA"));
}

}  // namespace cuda_twins_test
}  // namespace weir::e2e
