// weir init, for engines that are found by the names of their programs; none of them is started.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace init_test {

using testing::HasSubstr;
using testing::Not;

class Init : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(scratch_ / "path");
    // A program that tells whether it was started.
    program_ = "#!/bin/sh\ntouch " + (scratch_ / "started").string() + "\n";
  }
  void install(const std::string& program) {
    spill_program(scratch_ / ("path/" + program), program_);
  }
  void model_folder(const std::string& name) {
    spill(scratch_ / (name + "/config.json"), "{}");
    spill(scratch_ / (name + "/model.safetensors"), "no weights");
  }
  // The config that is written.
  std::string init() {
    const Ended ended =
        weir(scratch_, {"init", "--force"}, {{"PATH", (scratch_ / "path").string()}});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_FALSE(fs::exists(scratch_ / "started"));
    output_ = ended.out;
    return slurp(scratch_ / "weir.yaml");
  }
  Scratch scratch_;
  std::string program_, output_;
};

TEST_F(Init, FindsEachEngineByItsProgram) {
  const struct {
    const char* program;
    const char* engine;
    const char* preset;
  } cases[] = {{"llama-bench", "llama.cpp", "llama-bench"},
               {"llama-completion", "llama.cpp", "llama-completion"},
               {"agave", "agave", "agave"},
               {"hf2q", "hf2q", "hf2q"},
               {"mlx_lm.benchmark", "mlx-lm", "mlx-lm"}};
  spill(scratch_ / "models/tiny.gguf", "no model at all");
  model_folder("models/folder");
  for (const auto& test_case : cases) {
    install(test_case.program);
    const std::string yaml = init();
    EXPECT_THAT(yaml, HasSubstr(std::string("\n  ") + test_case.engine + ": {preset: " +
                                test_case.preset + ", program: " + test_case.program + "}\n"))
        << output_;
    EXPECT_THAT(output_, HasSubstr(std::string("engine  ") + test_case.engine + " (" +
                                   test_case.program + ")"));
    fs::remove(scratch_ / ("path/" + std::string(test_case.program)));
  }
}

TEST_F(Init, FindsWhatAVirtualEnvironmentHas) {
  model_folder("models/folder");
  spill(scratch_ / "models/tiny.gguf", "no model at all");
  spill(scratch_ / "CMakeLists.txt", "");
  const auto install_in = [&](const fs::path& environment, const char* program) {
    spill(environment / "pyvenv.cfg", "home = /usr/bin\n");
    spill_program(environment / "bin" / program, program_);
  };
  install("mlx_lm.benchmark");
  install_in(scratch_ / ".venv", "mlx_lm.benchmark");
  EXPECT_THAT(init(),
              HasSubstr("  mlx-lm: {preset: mlx-lm, program: ./.venv/bin/mlx_lm.benchmark}\n"))
      << "it works in a shell where the environment is not active, and no build makes it";
  install_in(scratch_ / "venv", "vllm");
  install("vllm");
  EXPECT_THAT(init(),
              HasSubstr("  vllm-server: {preset: vllm-server, program: ./venv/bin/vllm}\n"));
  fs::remove_all(scratch_ / "venv");
  EXPECT_THAT(init(), Not(HasSubstr("vllm"))) << "a server of PATH is for its user to name";

  const Scratch elsewhere;
  const fs::path bin = elsewhere / "bin";
  install_in(elsewhere.path(), "llama-bench");
  const Ended ended = weir(scratch_, {"init", "--force"},
                           {{"PATH", bin.string()}, {"VIRTUAL_ENV", elsewhere.path().string()}});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(slurp(scratch_ / "weir.yaml"),
              HasSubstr("program: " + (bin / "llama-bench").string() + "}"));
}

TEST_F(Init, FindsWhatZigBuilds) {
  spill_program(scratch_ / "zig-out/bin/agave", program_);
  EXPECT_THAT(init(), HasSubstr("program: ./zig-out/bin/agave}"));
}

// The one that came with weir is nobody's engine; one that is built here is.
TEST_F(Init, TakesNoInstalledReferenceEngine) {
  install("weir-engine");
  EXPECT_THAT(init(), Not(HasSubstr("weir-engine")));
  EXPECT_THAT(output_, HasSubstr("no engine found"));
  install("llama-bench");
  EXPECT_THAT(init(), Not(HasSubstr("weir-engine")));
  EXPECT_THAT(output_, HasSubstr("engine  llama.cpp (llama-bench)"));
  spill_program(scratch_ / "build/weir-engine", program_);
  EXPECT_THAT(init(),
              HasSubstr("weir-engine: {preset: weir-engine, program: ./build/weir-engine}"));
}

TEST_F(Init, TakesLlamaBenchAloneOfLlamaCpp) {
  install("llama-bench");
  install("llama-completion");
  EXPECT_THAT(init(), Not(HasSubstr("llama-completion,")));
}

TEST_F(Init, FindsModelsThatAreFolders) {
  install("mlx_lm.benchmark");
  spill(scratch_ / "models/tiny.gguf", "no model at all");
  model_folder("models/folder");
  spill(scratch_ / "models/no-weights/config.json", "{}");
  const std::string yaml = init();
  EXPECT_THAT(yaml, HasSubstr("  folder: models/folder\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("tiny.gguf"))) << "mlx_lm loads no GGUF file";
  EXPECT_THAT(yaml, Not(HasSubstr("no-weights")));
}

TEST_F(Init, GatesOneSimulatedGpuWhereItIsTold) {
  spill(scratch_ / "package.json", R"({"dependencies": {"@fugood/whisper.node": "*"}})");
  spill(scratch_ / "models/tiny.bin", "no model at all");
  const auto init = [&](const std::string& twin) {
    return weir(scratch_, {"init", "--force", "--twin", twin});
  };
  ASSERT_EQ(init("nvidia-rtx-4090").exit_code, 0);
  const std::string yaml = slurp(scratch_ / "weir.yaml");
  EXPECT_THAT(yaml,
              HasSubstr("backends: {nvidia-rtx-4090: {device: vulkan, twin: nvidia-rtx-4090}}\n"));
  EXPECT_THAT(yaml, HasSubstr("  tiny: models/tiny.bin\n")) << "whisper.cpp loads it";
  EXPECT_EQ(init("nvidia-h100").exit_code, 0);
  EXPECT_THAT(slurp(scratch_ / "weir.yaml"), HasSubstr("{device: cuda, twin: nvidia-h100}"));
  EXPECT_THAT(init("amd-mi300x").err, HasSubstr("a device for hip, on which"));
  const Ended unknown = init("nvidia-rtx-4091");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("nvidia-rtx-4090"));
  EXPECT_THAT(init("some/mine.json").err, HasSubstr("takes a name"));
  const Ended refused = weir(scratch_, {"init", "--twin", "nvidia-rtx-4090", "--ci", "github"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("stays as it is"));
}

TEST_F(Init, ListsPresetsAndWhetherTheyWereTried) {
  const Ended ended = weir(scratch_, {"init", "--list"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("llama-bench       llama-bench       cpu vulkan"));
  EXPECT_THAT(ended.out, HasSubstr("tried on llama.cpp v0.5.0"));
  EXPECT_THAT(ended.out, HasSubstr("not tried on the real program"));
  EXPECT_FALSE(fs::exists(scratch_ / "weir.yaml"));
  const Json json = json_of(weir(scratch_, {"init", "--list", "--json"}));
  EXPECT_EQ(json["schema"], "weir.presets/1");
}

TEST_F(Init, StopsACommandThatDoesNotEndAndSaysHowAServerIsWritten) {
  spill_program(scratch_ / "server", "#!/bin/sh\nexec sleep 100\n");
  const Ended ended = weir(scratch_, {"init", "--timeout", "1s", "--", "./server", "8000"});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, HasSubstr("running server once to see what it does, for at most 1.0 s"));
  EXPECT_THAT(ended.err, HasSubstr("did not end within 1 s and was stopped\n  a server does not "
                                   "end: docs/how-to/servers.md has its weir.yaml\n"));
  EXPECT_FALSE(fs::exists(scratch_ / "weir.yaml"));
}

TEST_F(Init, AsksWhetherABareNumberIsTheNumberOfTokens) {
  spill_program(scratch_ / "engine", "#!/bin/sh\necho \"$1 tokens, 41.5 tokens/s\"\n");
  const Ended asked = weir(scratch_, {"init", "--", "./engine", "24"});
  EXPECT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("24 looks like the number of tokens"));
  EXPECT_THAT(asked.out, HasSubstr("\n  weir init --force --tokens 24 -- ./engine 24\n"));
  EXPECT_THAT(slurp(scratch_ / "weir.yaml"), HasSubstr("command: [./engine, 24]"));
  const Ended named = weir(scratch_, {"init", "--force", "--tokens", "24", "--", "./engine", "24"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  const std::string yaml = slurp(scratch_ / "weir.yaml");
  EXPECT_THAT(yaml, HasSubstr("command: [./engine, \"{tokens}\"]"));
  EXPECT_THAT(yaml, HasSubstr("prompts: {decode: {prompt_tokens: 0, tokens: 24}}"));
  EXPECT_EQ(weir(scratch_, {"run"}).exit_code, 0);
  const Ended other = weir(scratch_, {"init", "--force", "--tokens", "8", "--", "./engine", "24"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--tokens 8: no argument of the command after -- is 8"));
}

TEST_F(Init, SaysInItsHelpWhatItLooksFor) {
  const Ended ended = weir(scratch_, {"init", "--help"});
  for (const char* program :
       {"llama-bench", "llama-completion", "agave", "hf2q", "mlx_lm.benchmark"}) {
    EXPECT_THAT(ended.out, HasSubstr(program));
  }
}

}  // namespace init_test
}  // namespace weir::e2e
