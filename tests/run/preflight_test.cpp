// Tests what is checked before a run starts, and the fingerprints of cells.
#include "gate/run/preflight.hpp"

#include <gmock/gmock.h>

#include "tests/run/scene.hpp"

namespace weir::run {
namespace preflight_test {

TEST(Preflight, TellsAllProblemsAtOnceAndEachOnce) {
  const auto scene = make_scene(R"(version: 1
engines:
  absent: {command: [no-such-bench, -m, "{model}", -n, "{tokens}", -p, "{prompt_tokens}"], output: llama-bench}
  plain: {command: [./plain, -m, "{model}", -n, "{tokens}", -p, "{prompt_tokens}"], output: llama-bench}
  missing: {command: [../bin/x, -m, "{model}", -n, "{tokens}", -p, "{prompt_tokens}"], output: llama-bench}
models: {gone: gone.gguf, fake: fake.gguf, tiny: tiny.bin}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 16}}
)");
  scene->files.put("/project/plain", "");
  scene->files.put("/project/fake.gguf", "not a model");
  scene->files.put("/file", "");
  scene->files.refuse_writes("/read-only");
  scene->files.put("/read-only/x", "");
  scene->around.output_places = {"/out", "/read-only/new/run", "/file/below"};
  const auto result = preflight(scene->cells, scene->around, scene->files);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Code::config);
  const std::string& all = result.error().message;
  const char* wanted[] = {
      "engine \"absent\": no program \"no-such-bench\" in PATH; install it, or name it with its "
      "path",
      "engine \"plain\": /project/plain: is not executable (chmod +x)",
      "engine \"missing\": /bin/x: no such program; build it, or correct the path",
      "model \"gone\": /project/gone.gguf: no such file\n  weir.yaml names it under models: fetch "
      "it",
      "weir model make gone.gguf makes a small GGUF",
      "model \"fake\": /project/fake.gguf: ",
      "/read-only/new/run: cannot be made: /read-only cannot be written",
      "/file/below: cannot be made: /file is not a folder",
  };
  for (const char* text : wanted) {
    const std::size_t at = all.find(text);
    EXPECT_NE(at, std::string::npos) << text << "\nis not in\n" << all;
    EXPECT_EQ(all.find(text, at + 1), std::string::npos) << "twice: " << text;
  }
  EXPECT_NE(all.find("weir.yaml:3:"), std::string::npos) << "an engine's place in the config";
}

TEST(Preflight, RefusesToHoldWhatNoProbeCanHold) {
  const auto refusal = [](const std::string& hold) {
    const auto scene = make_scene(
        "version: 1\nengines: {s: {kind: server, url: 'http://h:1', api: completions}}\n"
        "models: {tiny: tiny.bin}\nbackends: {cpu: {}}\n"
        "prompts: {p: {text: Hello, tokens: 4, concurrency: 2" +
        hold + "}}\n");
    const auto result = preflight(scene->cells, scene->around, scene->files);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal(", hold: none"), "");
  EXPECT_THAT(refusal(", hold: all"),
              testing::StartsWith("weir.yaml:2:11: prompt \"p\": hold: all: no probe can hold"));
}

TEST(Preflight, TellsOfATokenThatIsNotThereBeforeAnyServerStarts) {
  const auto scene = make_scene(R"(version: 1
engines:
  guarded: {kind: server, command: [./bench, '{port}'], api: completions, token_env: OWN_TOKEN}
  shared: {kind: server, url: 'http://h:1', api: completions, token_env: OWN_TOKEN}
  open: {kind: server, command: [./bench, '{port}'], api: completions}
models: {tiny: tiny.bin}
backends: {cpu: {}}
prompts: {hello: {text: Hello, tokens: 4}}
)");
  const auto refusal = [&](std::optional<std::string> token) {
    scene->around.tokens.clear();
    if (token) scene->around.tokens["OWN_TOKEN"] = Secret(*token);
    const auto result = preflight(scene->cells, scene->around, scene->files);
    if (result) return std::string();
    EXPECT_EQ(result.error().code, Code::config);
    return result.error().message;
  };
  EXPECT_EQ(refusal("sesame-0123"), "");
  const std::string unset =
      "the environment has no OWN_TOKEN (token_env), or nothing in it; set it to the server's "
      "token, or take token_env out";
  EXPECT_EQ(refusal(std::nullopt), "weir.yaml:3:3: engine \"guarded\": " + unset +
                                       "\nweir.yaml:4:3: engine \"shared\": " + unset);
  EXPECT_EQ(refusal(""), refusal(std::nullopt));
  const std::pair<const char*, const char*> cases[] = {
      {"short", "has fewer than 6 characters"},
      {"sesame-0123\n", "holds a line break"},
      {"sesame\r\nX-More: 1", "holds a line break"},
      {"Bearer sesame", "a space"},
  };
  for (const auto& [token, says] : cases) {
    EXPECT_NE(refusal(token).find(says), std::string::npos) << refusal(token);
    EXPECT_EQ(refusal(token).find(token), std::string::npos) << "the token itself";
  }
}

TEST(Preflight, LooksUpWhatRunningNeeds) {
  const auto scene = make_scene();
  const auto prepared = preflight(scene->cells, scene->around, scene->files);
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  const PreparedCell& cpu = (*prepared)[0];
  const PreparedCell& vulkan = (*prepared)[1];
  EXPECT_EQ(cpu.program, "/project/bench");
  EXPECT_EQ(cpu.model, "/project/tiny.bin");
  EXPECT_EQ(cpu.model_bytes, 7U);  // "weights"
  EXPECT_EQ(cpu.threads_in(profile::Pass::timed), 4);
  EXPECT_EQ(cpu.threads_in(profile::Pass::counted), 1) << "side by side with others";
  EXPECT_TRUE(cpu.on_cpu);
  EXPECT_TRUE(cpu.probes.empty());
  EXPECT_EQ(cpu.facts.counts_skip_reason, "no probe sees cpu");
  EXPECT_EQ(cpu.facts.provenance.device_class, "cpu-x86-64-v3");
  EXPECT_EQ(cpu.facts.provenance.machine_class, "cpu-x86-64-v3-Test-CPU-4c-8g-debian-12");
  EXPECT_EQ(vulkan.probes, std::vector<std::string>{"vulkan"});
  EXPECT_EQ(vulkan.facts.counts_skip_reason, std::nullopt);
  using Allowed = std::map<std::string, std::string>;
  EXPECT_EQ(vulkan.facts.cpu_ops_allowed,
            (Allowed{{"GET_ROWS", "one look-up"}, {"SOFT_MAX", "cheaper"}}))
      << "ADD is allowed in cells of another backend";
  using When = std::map<std::string, std::vector<std::string>>;
  EXPECT_EQ(vulkan.facts.cpu_ops_when, (When{{"SOFT_MAX", {"ne0 < 128"}}}));
  EXPECT_EQ(vulkan.facts.provenance.device_class, "vulkan-1-2-3-4-5");
  EXPECT_EQ(vulkan.facts.provenance.machine_class, "vulkan-1-2-3-4-5-Test-CPU-4c-8g-debian-12");
}

TEST(Preflight, LooksForNoModelWhereThereIsNone) {
  const auto scene = make_scene();
  scene->cells.front().model_path.clear();
  const auto prepared = preflight(scene->cells, scene->around, scene->files);
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  EXPECT_EQ(prepared->front().model, "");
  EXPECT_EQ(prepared->front().model_bytes, 0U);
}

TEST(Preflight, SaysWhatLetsGgmlTakeAVulkanDeviceThatIsACpu) {
  const auto scene = make_scene();
  auto& device = scene->around.devices["vulkan"];
  const auto cure = [&] {
    const auto prepared = preflight(scene->cells, scene->around, scene->files);
    return prepared ? prepared->at(1).facts.device_cure : prepared.error().message;
  };
  device.on_cpu = false;
  EXPECT_EQ(cure(), "");
  device.on_cpu = true;
  EXPECT_EQ(cure(),
            "It is a CPU, and ggml leaves such devices out unless the backend has env: "
            "{GGML_VK_VISIBLE_DEVICES: \"0\"}");
  scene->cells[1].env["GGML_VK_VISIBLE_DEVICES"] = "0";
  EXPECT_EQ(cure(), "");
  scene->cells[1].env.clear();
  scene->cells[1].adapter = "agave";
  EXPECT_EQ(cure(), "") << "an engine without ggml";
}

TEST(Preflight, HandsOnTheLibraryWithGpuCodeThatAScriptOpens) {
  std::string yaml = k_scene_yaml;
  yaml.insert(yaml.find("    timeout"), "    gpu_code: modules/addon.node\n");
  const auto scene = make_scene(yaml);
  std::vector<std::string> paths;
  scene->around.runtime_files = [&](const std::string& program, const std::string& library,
                                      const DeviceTwin&) -> Result<RuntimeFiles> {
    paths = {program, library};
    return RuntimeFiles{.kernels = "/out/twins/x.kernels"};
  };
  config::Cell& cell = scene->cells.back();
  cell.device = "cuda";
  cell.twin = "nvidia-h100";
  scene->around.twins[twin_key(cell)].runtime = probes::find_runtime_api("cuda");
  const auto none = preflight(scene->cells, scene->around, scene->files);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message,
              testing::HasSubstr("gpu_code: /project/modules/addon.node: no such file"));
  scene->files.put("/project/modules/addon.node", "code");
  const auto prepared = preflight(scene->cells, scene->around, scene->files);
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(paths, (std::vector<std::string>{"/project/bench", "/project/modules/addon.node"}));
  EXPECT_EQ(prepared->back().twin->files.kernels, "/out/twins/x.kernels");
}

TEST(Preflight, FindsTheFilesThatNameKernels) {
  std::string yaml = k_scene_yaml;
  yaml.insert(yaml.find("    timeout"), "    kernel_names: shaders/**/*.spv\n");
  const auto scene = make_scene(yaml);
  const auto none = preflight(scene->cells, scene->around, scene->files);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message,
              testing::HasSubstr(
                  "engine \"bench\": kernel_names: /project/shaders/**/*.spv: no such file"));
  scene->files.put("/project/shaders/gemv.spv", "code");
  const auto prepared = preflight(scene->cells, scene->around, scene->files);
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_TRUE((*prepared)[0].shaders.empty()) << "no probe sees the CPU";
  ASSERT_EQ((*prepared)[1].shaders.size(), 1U);
  EXPECT_EQ((*prepared)[1].shaders[0].name, "gemv");
  // A base that lacks such files is no error.
  scene->around.programs = OtherCheckout{{"/project"}, "/base"};
  scene->files.put("/base/bench", "program");
  scene->files.set_executable("/base/bench");
  const auto base = preflight(scene->cells, scene->around, scene->files);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_TRUE((*base)[1].shaders.empty());
}

TEST(Preflight, KnowsAnEngineThatCountsByItself) {
  const auto scene = make_scene(R"(version: 1
engines:
  own:
    command: [./bench, -m, "{model}", -n, "{tokens}", -p, "{prompt_tokens}"]
    output: generic
    metrics: {syncs_per_token: {regex: '(\d+) syncs'}}
models: {tiny: tiny.bin}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 16}}
)");
  const auto prepared = preflight(scene->cells, scene->around, scene->files);
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  EXPECT_EQ(prepared->front().facts.counts_skip_reason, std::nullopt);
  EXPECT_TRUE(prepared->front().facts.counts_reported_per_token);
}

// The contents of the model and of the config change a fingerprint; paths and the policy do not.
TEST(Fingerprint, FollowsTheModelAndTheConfigAsWritten) {
  const auto fingerprint = [](const std::string& from, const std::string& to,
                              const std::function<void(Scene&)>& change = {}) {
    std::string yaml = k_scene_yaml;
    if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
    const auto scene = make_scene(yaml);
    if (change) change(*scene);
    const auto prepared = preflight(scene->cells, scene->around, scene->files);
    if (!prepared) throw std::runtime_error(prepared.error().message);
    return prepared->back().facts.provenance.fingerprint;
  };
  const std::string base = fingerprint("", "");
  EXPECT_EQ(base.size(), 16U);
  EXPECT_NE(base, fingerprint("-r, ", "-x, -r, ")) << "an argument";
  EXPECT_NE(base, fingerprint("PLAIN: value", "PLAIN: other")) << "environment";
  EXPECT_NE(base, fingerprint("tokens: 16", "tokens: 32")) << "the prompt";
  EXPECT_NE(base,
            fingerprint("", "", [](Scene& s) { s.files.put("/project/tiny.bin", "Weights"); }))
      << "the model";
  EXPECT_NE(base,
            fingerprint("", "", [](Scene& s) { s.files.put("/project/tiny.bin", "weights2"); }))
      << "the model's size";
  EXPECT_EQ(base, fingerprint("[./bench", "[./other",
                              [](Scene& s) {
                                s.files.put("/project/other", "");
                                s.files.set_executable("/project/other");
                              }))
      << "the program's path";
  EXPECT_EQ(base,
            fingerprint("{tiny: tiny.bin}", "{tiny: elsewhere/tiny.bin}",
                        [](Scene& s) { s.files.put("/project/elsewhere/tiny.bin", "weights"); }))
      << "the model's path";
  EXPECT_EQ(base, fingerprint("runs: 3", "runs: 5")) << "the gate's policy";
}

TEST(Fingerprint, KnowsWhichVariablesItIsOfAndOfPrivateCellsNone) {
  const auto parts = [](const std::string& from, const std::string& to) {
    std::string yaml = k_scene_yaml;
    yaml.replace(yaml.find(from), from.size(), to);
    const auto scene = make_scene(yaml);
    const auto prepared = preflight(scene->cells, scene->around, scene->files);
    if (!prepared) throw std::runtime_error(prepared.error().message);
    return prepared->back().facts.provenance.fingerprint_parts;
  };
  auto named = parts("PLAIN: value", "PLAIN: hidden");
  EXPECT_THAT(named["variables"], testing::HasSubstr("PLAIN="));
  EXPECT_THAT(named["variables"], testing::Not(testing::HasSubstr("hidden")));
  EXPECT_NE(named["variables"], parts("PLAIN: value", "PLAIN: other")["variables"]);
  const std::string fingerprint = combine_fingerprint(named);
  named.erase("variables");
  EXPECT_EQ(combine_fingerprint(named), fingerprint) << "that of baselines which lack them";
  EXPECT_FALSE(
      parts("{tiny: tiny.bin}", "{tiny: {path: tiny.bin, private: true}}").contains("variables"));
}

TEST(Fingerprint, KnowsAModelFolderByItsFilesAndItsConfig) {
  sys::MemoryFiles files;
  files.put("/m/config.json", "{\"layers\": 4}");
  files.put("/m/model.safetensors", "0123456789");
  files.put("/m/.lock", "x");
  const auto before = read_model_facts(files, "/m");
  ASSERT_TRUE(before.has_value()) << before.error().message;
  EXPECT_EQ(before->bytes, 13U + 10U);
  files.put("/m/.lock", "xyz");
  EXPECT_EQ(read_model_facts(files, "/m")->header_hash, before->header_hash);
  files.put("/m/config.json", "{\"layers\": 5}");
  EXPECT_NE(read_model_facts(files, "/m")->header_hash, before->header_hash);
  EXPECT_FALSE(read_model_facts(files, "/").has_value()) << "no files in it";
}

TEST(ModelFiles, AreAllPartsOfAModelOrAllFilesOfAFolder) {
  sys::MemoryFiles files;
  for (const char* path :
       {"/m/a-00001-of-00002.gguf", "/m/a-00002-of-00002.gguf", "/m/a-00001-of-00003.gguf",
        "/m/b-00001-of-00002.gguf", "/m/a.gguf", "/m/of-.gguf", "/m/.lock"}) {
    files.put(path, "x");
  }
  using testing::ElementsAre;
  EXPECT_THAT(model_files(files, "/m/a-00002-of-00002.gguf"),
              ElementsAre("/m/a-00001-of-00002.gguf", "/m/a-00002-of-00002.gguf"));
  for (const std::string alone : {"/m/a.gguf", "/m/of-.gguf"})
    EXPECT_THAT(model_files(files, alone), ElementsAre(alone));
  EXPECT_EQ(model_files(files, "/m").size(), 6U);
  for (const char* none : {"", "/dev/null", "/m/c.gguf", "/m/c-00001-of-00002.gguf"})
    EXPECT_THAT(model_files(files, none), ElementsAre()) << none;
}

}  // namespace preflight_test
}  // namespace weir::run
