// weir doctor on this machine and on programs whose make is known.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace doctor_test {

const std::string k_fake = WEIR_BINARY_DIR "/tests/fake_engines/fake_engine";

Json fit_of(const Json& engine, const std::string& probe) {
  for (const Json& fit : engine.value("probes", Json::array())) {
    if (fit.value("probe", "") == probe) return fit;
  }
  return Json::object();
}

TEST(Doctor, LooksAtTheMachineAlone) {
  const Scratch scratch;
  const Ended ended = weir(scratch, {"doctor"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out.rfind("weir doctor: ", 0), 0U) << ended.out;
  EXPECT_NE(ended.out.find("\nmachine\n"), std::string::npos);
  EXPECT_NE(ended.out.find("ggml, "), std::string::npos) << "the probes built beside it\n"
                                                         << ended.out;
}

TEST(Doctor, SaysWhatProbesSeeOfProgramsAndThreeWhereOneCannotBeRead) {
  const Scratch scratch;
  spill_program(scratch / "start.sh", "#!/bin/sh\nexec engine\n");
  const std::string script = (scratch / "start.sh").string();
  const Ended ended = weir(scratch, {"doctor", k_fake, script, "--json", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json.value("schema", ""), "weir.doctor/1");
  const Json engines = json.value("engines", Json::array());
  ASSERT_EQ(engines.size(), 2U);
  // The fake engine is a dynamic program without ggml or Vulkan.
  EXPECT_EQ(fit_of(engines[0], "ggml")["state"], "unused");
  EXPECT_EQ(fit_of(engines[0], "vulkan")["state"], "unused");
  EXPECT_EQ(fit_of(engines[1], "ggml")["state"], "perhaps");

  spill(scratch / "torn", slurp(k_fake).substr(0, 200));
  const Ended torn = weir(scratch, {"doctor", "./torn", "./absent", k_fake});
  EXPECT_EQ(torn.exit_code, 3);
  EXPECT_NE(torn.out.find("./torn: ELF: "), std::string::npos) << torn.out;
  EXPECT_NE(torn.out.find("./absent: no such program"), std::string::npos) << torn.out;
  EXPECT_NE(torn.out.find("unused"), std::string::npos) << "the others are still shown";
}

TEST(Doctor, LooksAtTheEnginesOfTheConfig) {
  const Scratch scratch;
  spill(scratch / "weir.yaml", "version: 1\nengines:\n  mine: {command: [" + k_fake +
                                   ", ok, -m, '{model}', -n, '{tokens}'], output: llama-bench, "
                                   "probes: [vulkan]}\n"
                                   "models: {m: model.bin}\nbackends: {cpu: {}}\n"
                                   "prompts: {decode: {tokens: 8}}\n");
  const Json json = json_of(weir(scratch, {"doctor", "--json", "-"}));
  const Json engines = json.value("engines", Json::array());
  ASSERT_EQ(engines.size(), 1U);
  EXPECT_EQ(engines[0]["name"], "mine");
  EXPECT_EQ(fit_of(engines[0], "vulkan")["asked_for"], true);
  EXPECT_EQ(fit_of(engines[0], "ggml")["asked_for"], false);
}

// What a gate's "look" names: the command of the cell, how it ended, and what it printed.
TEST(Doctor, ShowsWhyACellIsAnErrorByTheCommandThatTheGateNames) {
  const Scratch scratch;
  spill_program(scratch / "engine", "#!/bin/sh\necho loading $1\necho no device >&2\nexit 7\n");
  spill(scratch / "model.bin", "a model");
  spill(scratch / "weir.yaml",
        "version: 1\nengines:\n  mine: {command: [./engine, '{tokens}'], output: generic, "
        "metrics: {syncs_per_token: {regex: '([0-9]+) syncs'}}}\n"
        "models: {m: model.bin}\nbackends: {cpu: {env: {LANE: '3'}}}\nprompts: {decode: {tokens: "
        "8}}\n");
  const Ended gate = weir(scratch, {"gate", "--counts-only"});
  EXPECT_EQ(gate.exit_code, 3);
  EXPECT_NE(gate.out.find("look     weir doctor --cell 'mine/m/cpu/decode'"), std::string::npos)
      << gate.out;
  const Ended doctor = weir(scratch, {"doctor", "--cell", "mine/m/cpu/decode"});
  EXPECT_EQ(doctor.exit_code, 3);
  for (const char* shown : {"LANE=3", "/engine 8", "it exited with code 7", "out      loading 8",
                            "err      no device"}) {
    EXPECT_NE(doctor.out.find(shown), std::string::npos) << shown << "\n" << doctor.out;
  }
}

TEST(Doctor, SaysWhyACellCannotRunHere) {
  const Scratch scratch;
  spill_program(scratch / "engine", "#!/bin/sh\n");
  spill(scratch / "weir.yaml",
        "version: 1\nengines: {mine: {command: [./engine, '{tokens}'], probes: [cuda], output: "
        "generic, metrics: {start_ms: {regex: '(.*) ms'}}}}\n"
        "models: {m: /dev/null}\nbackends: {cuda: {twin: nvidia-rtx-4090}}\n"
        "prompts: {decode: {tokens: 8}}\n");
  const Ended doctor = weir(scratch, {"doctor", "--cell", "mine/m/cuda/decode"});
  EXPECT_EQ(doctor.exit_code, 3) << doctor.err;
  EXPECT_NE(doctor.out.find("engine \"mine\": engine has no CUDA"), std::string::npos)
      << doctor.out;
  const Ended planned = weir(scratch, {"run", "--dry-run"});
  EXPECT_NE(planned.out.find("# mine/m/cuda/decode cannot run here: weir.yaml:2:11: engine "
                             "\"mine\": engine has no CUDA code"),
            std::string::npos)
      << planned.out;
}

TEST(Doctor, IsNotNeededWhereAGateNamesTheTwinOfAGpuThatIsNotHere) {
  if (fs::exists("/dev/nvidiactl") || fs::exists("/dev/dxg")) GTEST_SKIP() << "a GPU is here";
  const Scratch scratch;
  spill_program(scratch / "engine", "#!/bin/sh\necho CUDA error: no CUDA-capable device\nexit 1\n");
  spill(scratch / "weir.yaml",
        "version: 1\nengines: {mine: {command: [./engine, '{tokens}'], probes: [cuda], output: "
        "generic, metrics: {start_ms: {regex: '(.*) ms'}}}}\n"
        "models: {m: /dev/null}\nbackends: {cuda: {}}\nprompts: {decode: {tokens: 8}}\n");
  const Ended gate = weir(scratch, {"gate", "--counts-only", "--json", "-"});
  EXPECT_EQ(gate.exit_code, 3);
  EXPECT_NE(gate.out.find("This machine has no such GPU. Simulate one by its name (weir device "
                          "list): backends: {cuda: {device: cuda, twin: nvidia-rtx-4090}}"),
            std::string::npos)
      << gate.out;
}

TEST(Doctor, ShowsWhichMetricsACellsOutputLacks) {
  const Scratch scratch;
  spill_program(scratch / "engine", "#!/bin/sh\necho 4 submits\necho 5 submits\necho 6 submits\n");
  spill(scratch / "model.bin", "a model");
  spill(scratch / "weir.yaml",
        "version: 1\nengines:\n  mine: {command: [./engine, '{tokens}'], output: generic, metrics: "
        "{syncs_per_token: {regex: '([0-9]+) syncs'}, submits_per_token: {regex: '([0-9]+) "
        "submits'}}}\n"
        "models: {m: model.bin}\nbackends: {cpu: {}}\nprompts: {decode: {tokens: 8}}\n");
  const Ended doctor = weir(scratch, {"doctor", "--cell", "mine/m/cpu/decode"});
  EXPECT_EQ(doctor.exit_code, 3) << doctor.err;
  for (const char* shown : {"ended    well", "error    ", "syncs_per_token found nothing",
                            "submits_per_token: printed 3 times", "out      4 submits"}) {
    EXPECT_NE(doctor.out.find(shown), std::string::npos) << shown << "\n" << doctor.out;
  }
}

// A request is judged as a gate does, and what the machine has for other engines is left out.
TEST(Doctor, ASelectedServerIsJudgedByItsAnswerAlone) {
  const Scratch scratch;
  const auto engine = [&](const std::string& mode) {
    return "  " + mode +
           ": {kind: server, command: [" WEIR_BINARY_DIR "/tests/fake_engines/fake_server, " +
           mode + ", '{port}'], api: completions}\n";
  };
  spill(scratch / "model.bin", "no model at all");
  spill(scratch / "weir.yaml",
        "version: 1\nengines:\n" + engine("ok") + engine("short") + engine("unreported") +
            "models: {m: model.bin}\nbackends: {cpu: {}}\n"
            "prompts: {hello: {text: Hello world, tokens: 8, requests: 4}}\n");
  const struct {
    std::string engine;
    int exit_code;
    std::string shown;
  } cases[] = {{"ok", 0, "it answered a request"},
               {"short", 3, "asked for 8 tokens, 4 were generated"},
               {"unreported", 0, "warning  1 of 1 requests have no report of their tokens"}};
  for (const auto& [name, exit_code, shown] : cases) {
    const Ended ended = weir(scratch, {"doctor", "--cell", name + "/*"});
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    EXPECT_THAT(ended.out, testing::HasSubstr(shown));
    EXPECT_THAT(ended.out, testing::Not(testing::HasSubstr("probes and devices")));
  }
}

}  // namespace doctor_test
}  // namespace weir::e2e
