// Engines in containers: llama.cpp counts the same inside, and nothing is left behind. Docker is a
// stand-in (containers/docker), which gives an engine no more than it was told to.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace containers_test {

using testing::HasSubstr;

const std::string k_engines = WEIR_SOURCE_DIR "/engines";
const std::string k_bench = k_engines + "/llama.cpp/llama-bench";
const std::string k_fakes = WEIR_BINARY_DIR "/tests/fake_engines";
const std::string k_arguments =
    "-m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}', -t, '{threads}', -o, "
    "json";

class Containers : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(scratch_ / "bin");
    fs::create_directories(scratch_ / "daemon");
    for (const char* name : {"docker", "podman"}) {
      fs::create_symlink(WEIR_SOURCE_DIR "/tests/e2e/containers/docker", scratch_ / "bin" / name);
    }
    std::string program = WEIR_SOURCE_DIR "/tests/e2e/containers/dockerd";
    std::string folder = scratch_ / "daemon";
    char* argv[] = {program.data(), folder.data(), nullptr};
    ASSERT_EQ(posix_spawn(&daemon_, argv[0], nullptr, nullptr, argv, environ), 0);
    env_ = {{"PATH", (scratch_ / "bin").string() + ":" + std::getenv("PATH")},
            {"FAKE_DOCKER", folder}};
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(scratch_ / "daemon")) << "a container is left";
    fs::remove_all(scratch_ / "daemon");
    waitpid(daemon_, nullptr, 0);
    EXPECT_EQ(processes_with(scratch_.path().string()), std::vector<std::string>{});
  }

  void write_config(const std::string& engines, const std::string& rest) {
    spill(scratch_ / "weir.yaml", "version: 1\nengines:\n" + engines + rest);
  }
  [[nodiscard]] std::string fake_engine(const std::string& mode) const {
    return "  " + mode + ": {container: {runtime: docker, image: image, args: [-v, '" + k_fakes +
           ":" + k_fakes + "']}, command: [" + k_fakes + "/fake_engine, " + mode +
           ", -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}'], output: "
           "llama-bench, timeout: " +
           (mode == "hang" || mode == "ignore_term" ? "2s" : "10m") + "}\n";
  }

  Scratch scratch_;
  std::map<std::string, std::string> env_;
  pid_t daemon_ = -1;
  const std::string fake_rest_ =
      "models: {m: model.bin}\nbackends: {cpu: {}}\n"
      "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\ngate: {runs: 1}\n";
};

// On the CPU and on a twin: libraries, manifests, the twin's driver and its description lie
// outside.
TEST_F(Containers, CountTheSameInsideAsOutside) {
  ASSERT_TRUE(fs::exists(k_bench)) << "run ci/prepare test first";
  const std::string mount = fs::canonical(k_engines).string();
  const std::string bench = mount + "/llama.cpp/llama-bench";
  const std::string both =
      ", output: llama-bench, probes: [ggml, vulkan], cpu_ops_allowed: {GET_ROWS: embedding}}\n";
  write_config(
      "  native: {command: [" + bench + ", " + k_arguments + "]" + both +
          "  docker: {container: {runtime: docker, image: image, args: [--gpus, all, -v, '" +
          mount + ":" + mount + ":ro']}, command: [" + bench + ", " + k_arguments + "]" + both +
          "  podman: {container: podman, command: [podman, run, --init, -v, '" + mount + ":" +
          mount + ":ro', image, " + bench + ", " + k_arguments + "]" + both,
      "models: {m: " WEIR_SOURCE_DIR
      "/models/tiny-llama.gguf}\n"
      "backends: {cpu: {args: [-ngl, 0]}, twin: {device: vulkan, twin: amd-rx-7900-xtx, args: "
      "[-ngl, 99]}}\nprompts: {decode: {prompt_tokens: 0, tokens: 8}}\n");
  const Ended ended = weir(scratch_, {"gate", "--counts-only", "--json", "-"}, env_);
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const Json verdict = json_of(ended);
  for (const std::string backend : {"cpu", "twin"}) {
    const Json native = cell_of(verdict, "native/m/" + backend + "/decode");
    // docs/explanation/counting.md has these for the model.
    const bool on_cpu = backend == "cpu";
    EXPECT_EQ(metric_of(native, on_cpu ? "cpu_ops_per_token" : "syncs_per_token")["current"],
              on_cpu ? 82 : 1);
    for (const std::string engine : {"docker", "podman"}) {
      const Json inside = cell_of(verdict, engine + "/m/" + backend + "/decode");
      EXPECT_EQ(inside["judgements"], native["judgements"]) << engine;
      EXPECT_EQ(inside["verdict"], native["verdict"]) << engine;
    }
  }
}

TEST_F(Containers, AreRemovedWhenTheEngineHangsOrCrashes) {
  spill(scratch_ / "model.bin", "no model at all");
  write_config(
      fake_engine("hang") + fake_engine("ignore_term") + fake_engine("crash") + fake_engine("ok"),
      fake_rest_);
  const Ended ended = weir(scratch_, {"gate", "--json", "-"}, env_);
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  const Json verdict = json_of(ended);
  const std::pair<const char*, const char*> cases[] = {
      {"hang", "did not end within 2 s"}, {"ignore_term", "did not end within"}, {"crash", "SIG"}};
  for (const auto& [mode, reason] : cases) {
    const Json cell = cell_of(verdict, std::string(mode) + "/m/cpu/decode");
    EXPECT_THAT(cell.value("reason", ""), HasSubstr(reason)) << mode;
  }
  const Json ok = cell_of(verdict, "ok/m/cpu/decode");
  EXPECT_EQ(metric_of(ok, "decode_tokens_per_second")["verdict"], "new");
}

TEST_F(Containers, AreRemovedOnCtrlC) {
  spill(scratch_ / "model.bin", "no model at all");
  write_config(fake_engine("hang"), fake_rest_);
  std::string config = slurp(scratch_ / "weir.yaml");
  config.replace(config.find("timeout: 2s"), 11, "timeout: 10m");
  spill(scratch_ / "weir.yaml", config);
  Weir interrupted(scratch_, {"run"}, env_);
  const auto runs = [&] {
    for (const auto& entry : fs::directory_iterator(scratch_ / "daemon")) {
      if (fs::exists(entry.path() / "pid")) return true;
    }
    return false;
  };
  ASSERT_TRUE(eventually(runs));
  interrupted.kill(SIGINT);
  EXPECT_EQ(interrupted.wait().exit_code, 130);
}

TEST_F(Containers, TakeAnImageFromTheCommandOfAgainst) {
  spill(scratch_ / "model.bin", "no model at all");
  write_config(fake_engine("ok"), fake_rest_);
  const Ended commit = weir(scratch_, {"gate", "--against", "HEAD"}, env_);
  EXPECT_EQ(commit.exit_code, 2);
  EXPECT_THAT(commit.err, HasSubstr("--against -- docker run"));
  // The stand-in has no such image: it is the base's that fails.
  const Ended absent = weir(scratch_,
                            {"gate", "--json", "-", "--against", "--", "docker", "run", "elsewhere",
                             "engine", "-p", "{prompt_tokens}", "-n", "{tokens}"},
                            env_);
  EXPECT_EQ(absent.exit_code, 3) << absent.err;
  EXPECT_THAT(absent.out + absent.err, HasSubstr("no such image: elsewhere"));
  // Its probes would be lost on one side alone.
  const Ended blind = weir(scratch_,
                           {"gate", "--against", "--", "docker", "run", "-e", "LD_PRELOAD=x.so",
                            "image", "engine", "-p", "{prompt_tokens}", "-n", "{tokens}"},
                           env_);
  EXPECT_EQ(blind.exit_code, 2) << blind.err;
  EXPECT_THAT(blind.err, HasSubstr("LD_PRELOAD is what probes come in by"));
}

TEST_F(Containers, ThatCanNotBeLookedAtAreSaidToBe) {
  spill(scratch_ / "model.bin", "no model at all");
  write_config(fake_engine("ok"), fake_rest_);
  EXPECT_THAT(weir(scratch_, {"doctor"}, env_).out, HasSubstr("runs in a container"));
  const Ended dry = weir(scratch_, {"run", "--dry-run"}, env_);
  EXPECT_THAT(dry.out, HasSubstr("/bin/docker run --rm --cidfile="));
  fs::remove(scratch_ / "bin/docker");
  auto env = env_;
  env["PATH"] = (scratch_ / "bin").string();
  const Ended missing = weir(scratch_, {"run"}, env);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("no program \"docker\" in PATH"));
}

}  // namespace containers_test
}  // namespace weir::e2e
