// The published HIP build of llama.cpp on HIP twins: counts as stored, and as CUDA's twin has them
// where the kernels are the same.
#include <gmock/gmock.h>

#include "tests/e2e/engine_under_git.hpp"
#include "tests/support/code_blocks.hpp"

namespace weir::e2e {
namespace hip_twins_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_config = k_root + "/configs/llama.cpp-hip.yaml";

class HipTwins : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* file :
         {"engines/llama.cpp-hip", "engines/llama.cpp-cuda13", "models/llama-3.3-70b.gguf"}) {
      ASSERT_TRUE(fs::exists(k_root + "/" + file)) << file << ": run ci/prepare test first";
    }
  }
  Ended gate(std::vector<std::string> more, std::map<std::string, std::string> env = {}) {
    std::vector<std::string> words{"gate",
                                   "--counts-only",
                                   "-c",
                                   k_config,
                                   "--baselines",
                                   k_root + "/baselines",
                                   "--require-baseline"};
    words.insert(words.end(), more.begin(), more.end());
    return weir(scratch_, words, std::move(env));
  }

  Scratch scratch_;
};

// Attention that is not fused, graphs off, a KV cache on the host or quantized, two GPUs, and three
// hollow models on three GPUs, of which one is too small for the largest.
TEST_F(HipTwins, CountAsTheRepositorysBaselinesHaveIt) {
  const Ended ended = gate({"--json", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out.substr(0, 3000) << ended.err;
  const Json verdict = json_of(ended);
  EXPECT_EQ(verdict["verdict"], "pass");
  EXPECT_EQ(verdict["cells"].size(), 80U);
}

// The same source, model and shapes: a token's counts are those of NVIDIA's GPUs in all settings.
TEST_F(HipTwins, CountATokenAsCudaTwinsDo) {
  const Ended ended = weir(
      scratch_, {"run", "--counts-only", "-c", k_root + "/configs/llama.cpp-cuda-settings.yaml",
                 "--cell", "*/tiny-llama/rtx4090/decode", "--json", "-"});
  const Json cuda = json_of(ended)["profiles"];
  int compared = 0;
  for (const Json& profile : cuda) {
    const std::string cell = profile["cell"];
    const std::size_t variant = cell.find('@');
    const std::string name =
        variant == std::string::npos ? "" : cell.substr(variant, cell.find('/') - variant);
    const std::string stored = k_root + "/baselines/llama.cpp-hip" + name +
                               "/tiny-llama/mi300x/decode/twin-hip-amd-mi300x.json";
    if (!fs::exists(stored)) continue;
    ++compared;
    const Json hip = parse_json(slurp(stored)).value_or(Json());
    for (const char* count : {"dispatches", "copies", "syncs", "submits", "barriers",
                              "graph_launches", "graph_instantiations", "allocations"}) {
      const std::string metric = std::string(count) + "_per_token";
      EXPECT_EQ(hip["counts"][metric], metric_of(profile, metric)["exact"]) << cell << " " << count;
    }
  }
  EXPECT_EQ(compared, 3) << "default, kv-on-host and kv-q8";
}

TEST_F(HipTwins, FailWhereGraphsAreOffWithThatAsTheCause) {
  const Ended ended =
      gate({"--cell", "llama.cpp-hip/tiny-llama/*/decode"}, {{"GGML_CUDA_DISABLE_GRAPHS", "1"}});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("1 cause"));
  EXPECT_THAT(ended.out, HasSubstr("raphs are no longer used"));
}

// llama.cpp behind a script that the change edits.
class EditedOnHipTwins : public EngineUnderGit {};

TEST_F(EditedOnHipTwins, FailWithTheCauseFirst) {
  const std::string engine = k_root + "/engines/llama.cpp-hip/";
  ASSERT_TRUE(fs::exists(engine)) << "run ci/prepare test first";
  const auto write_script = [&](const std::string& environment, const std::string& arguments) {
    spill_program(scratch_ / "run.sh", "#!/bin/sh\n" + environment + " exec " + engine +
                                           "llama-bench \"$@\" -ngl 99 " + arguments + "\n");
  };
  spill(scratch_ / "weir.yaml",
        "version: 1\nengines:\n  e:\n    command: [./run.sh, -m, '{model}', -p, "
        "'{prompt_tokens}', -n, '{tokens}', -r, '{repeats}', -o, json]\n    output: llama-bench\n"
        "    gpu_code: " +
            engine +
            "libggml-hip.so\n    probes: [hip, ggml]\n"
            "    cpu_ops_allowed: {GET_ROWS: one look-up}\n"
            "models: {tiny-llama: " +
            k_root +
            "/models/tiny-llama.gguf}\n"
            "backends:\n  rx7900xtx: {device: hip, twin: amd-rx-7900-xtx}\n"
            "  mi300x: {device: hip, twin: amd-mi300x}\n"
            "prompts:\n  prefill: {prompt_tokens: 64, tokens: 0}\n"
            "  decode: {prompt_tokens: 0, tokens: 16}\n");
  write_script("", "-fa 1");
  git({"add", "-A"});
  git({"commit", "-q", "-m", "base"});
  struct Case {
    const char *environment, *arguments, *cause;
  };
  for (const auto& [environment, arguments, cause] :
       {Case{"GGML_CUDA_DISABLE_GRAPHS=1", "-fa 1", "GPU graphs are no longer used"},
        Case{"", "-fa 0", "Fusion lost: FLASH_ATTN_EXT"},
        Case{"", "-fa 1 -ctk q8_0 -ctv q8_0", "The KV cache takes less memory"},
        Case{"", "-fa 1 -nkvo 1", "Work moved to the CPU: SET_ROWS"}}) {
    write_script(environment, arguments);
    const Json verdict =
        json_of(weir_here({"gate", "--counts-only", "--against", "HEAD", "--json", "-"}));
    EXPECT_EQ(verdict["verdict"], "fail") << cause << last_.err;
    ASSERT_FALSE(verdict["causes"].empty()) << cause;
    EXPECT_THAT(verdict["causes"][0]["headline"].get<std::string>(), HasSubstr(cause));
    EXPECT_EQ(verdict["causes"][0]["cells"].size(), 4U) << cause;
    EXPECT_EQ(verdict["causes"].size(), 1U) << cause;
  }
}

// The example of docs/how-to/cuda-twins.md for two engines, as it stands there.
TEST_F(HipTwins, StandBesideACudaTwinAsThePageSays) {
  const Scratch scratch;
  for (const auto& [build, engine] : {std::pair("cuda", "cuda13"), std::pair("hip", "hip")}) {
    const fs::path folder = scratch / (std::string("build-") + build);
    fs::create_directories(folder);
    fs::create_symlink(fmt::format("{}/engines/llama.cpp-{}", k_root, engine), folder / "bin");
  }
  fs::create_directories(scratch / "models");
  fs::create_symlink(k_root + "/models/tiny-llama.gguf", scratch / "models/tiny-llama.gguf");
  const std::string page = slurp(k_root + "/docs/how-to/cuda-twins.md");
  const std::string section = page.substr(page.find("## Two engines on two GPUs"));
  spill(scratch / "weir.yaml",
        tests::code_blocks(section.substr(0, section.find("\n## ", 1)), "yaml"));
  ASSERT_EQ(weir(scratch, {"baseline", "accept", "--counts-only"}).exit_code, 0);
  const Ended same = weir(scratch, {"gate", "--counts-only"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  const Ended red = weir(scratch, {"gate", "--counts-only"}, {{"GGML_CUDA_DISABLE_GRAPHS", "1"}});
  EXPECT_EQ(red.exit_code, 1) << red.out << red.err;
  EXPECT_THAT(red.out, HasSubstr("FAIL  both cells\n        cuda / rtx4090, hip / mi300x\n"));
  EXPECT_THAT(red.out, HasSubstr("why: GPU graphs are no longer used"));
}

// An engine that opens its library by itself, and prints how large the table of kernels is that it
// is given: a build for CUDA 12 has other kernels than one for CUDA 13.
class OpenedLibrary : public EngineUnderGit {};

TEST_F(OpenedLibrary, OfTheBaseIsReadForTheBase) {
  const auto link_build = [&](const char* major) {
    fs::remove(scratch_ / "code.so");
    fs::create_symlink(k_root + "/engines/llama.cpp-cuda" + major + "/libggml-cuda.so",
                       scratch_ / "code.so");
  };
  spill(scratch_ / "weir.yaml",
        "version: 1\nengines: {e: {command: [./engine, '{model}', '{tokens}'], gpu_code: code.so, "
        "output: generic, metrics: {dispatches_per_token: {regex: 'kernels: (\\d+)'}}}}\n"
        "models: {m: model.bin}\nbackends: {card: {device: cuda, twin: nvidia-rtx-4090}}\n"
        "prompts: {decode: {tokens: 8}}\n");
  spill_program(scratch_ / "engine",
                "#!/bin/sh\necho kernels: $(stat -L -c %s \"$WEIR_RUNTIME_KERNELS\")\n");
  link_build("12");
  git({"add", "-A"});
  git({"commit", "-q", "-m", "CUDA 12"});
  link_build("13");
  const Json verdict =
      json_of(weir_here({"gate", "--counts-only", "--against", "HEAD", "--json", "-"}));
  const Json kernels = metric_of(cell_of(verdict, "e/m/card/decode"), "dispatches_per_token");
  EXPECT_GT(kernels["baseline"], 1000) << last_.err;
  EXPECT_GT(kernels["current"], 1000);
  EXPECT_NE(kernels["baseline"], kernels["current"]);
}

}  // namespace hip_twins_test
}  // namespace weir::e2e
