// Presets: what a weir.yaml with them comes to, which goes before which, and that it reads back.
#include "gate/config/presets.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "gate/config/parse.hpp"
#include "gate/unit/device_api.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace presets_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// With all that a preset may name.
Supported known_to_presets() {
  Supported context = test_context();
  context.probes = {"ggml", "instructions", "instrument"};
  for (const unit::DeviceApi& api : unit::device_apis()) context.probes.emplace_back(api.name);
  context.adapters = {"llama-bench", "generic", "llama-perf",    "agave",           "hf2q",
                      "mlx-lm",      "ollama",  "weir-observed", "google-benchmark"};
  return context;
}

Result<Settings> parse(std::string_view yaml) {
  return parse_settings(yaml, "weir.yaml", known_to_presets());
}

std::vector<std::string> cell_names(std::string_view yaml) { return cell_names(parse(yaml)); }

// The keys that select stored counts, by the names of cells.
std::map<std::string, std::map<std::string, std::string>> identities(std::string_view yaml,
                                                                     std::string_view engine) {
  std::map<std::string, std::map<std::string, std::string>> all;
  const auto settings = parse(yaml);
  EXPECT_TRUE(settings) << settings.error().message;
  if (!settings) return all;
  const auto matrix = expand(*settings);
  EXPECT_TRUE(matrix) << matrix.error().message;
  if (!matrix) return all;
  for (const Cell& cell : matrix->cells) {
    if (cell.key.engine == engine) all[cell.key.str()] = cell.identity;
  }
  return all;
}

std::string config_file(const char* name) {
  std::ifstream file(std::filesystem::path(WEIR_SOURCE_DIR) / "configs" / name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

constexpr std::string_view k_six_lines =
    "version: 1\n"
    "engines: {llama.cpp: {preset: llama-bench, program: build/bin/llama-bench}}\n"
    "models: {tiny: models/tiny.gguf}\n"
    "backends:\n"
    "  vulkan:\n"
    "  rx7900: {device: vulkan, twin: amd-rx-7900-xtx}\n";

TEST(Presets, MakeAGateOfSixLines) {
  EXPECT_THAT(cell_names(k_six_lines),
              ElementsAre("llama.cpp/tiny/vulkan/prefill", "llama.cpp/tiny/vulkan/decode",
                          "llama.cpp/tiny/rx7900/prefill", "llama.cpp/tiny/rx7900/decode"));
  const auto settings = parse(k_six_lines);
  ASSERT_TRUE(settings);
  const EngineSettings& engine = settings->engines[0];
  EXPECT_EQ(engine.command[0], "build/bin/llama-bench");
  EXPECT_EQ(engine.output, "llama-bench");
  EXPECT_EQ(engine.preset, "llama-bench 1");
  EXPECT_EQ(engine.counted_run_env.at("GGML_VK_DEBUG_MARKERS"), "1");
  ASSERT_EQ(engine.cpu_ops_allowed.size(), 1U);
  for (const BackendSettings& backend : settings->backends) {
    EXPECT_THAT(backend.extra.for_engine("llama.cpp").args, ElementsAre("-ngl", "99"));
  }
}

// A baseline of one is a baseline of the other.
TEST(Presets, AreTheSameCellsAsTheirCommandsWrittenOut) {
  const struct {
    const char* file;
    const char* engine;
    std::string with_preset;
  } cases[] = {
      {"llama.cpp.yaml", "llama.cpp",
       "version: 1\n"
       "engines: {llama.cpp: {preset: llama-bench, counted_env: {LP_NUM_THREADS: '1'}}}\n"
       "models: {tiny-llama: a.gguf, tiny-gemma3: b.gguf}\n"
       "backends: {cpu: , vulkan: }\n"
       "prompts: {prefill: {prompt_tokens: 9, tokens: 0}, decode: {prompt_tokens: 0, tokens: "
       "16}}\n"},
      {"engine.yaml", "weir-engine",
       "version: 1\n"
       "engines: {weir-engine: {preset: weir-engine, counted_env: {LP_NUM_THREADS: '1'}}}\n"
       "models: {tiny-llama: a.gguf, tiny-llama-q4_0: b.gguf}\n"
       "backends: {cpu: , vulkan: {env: {VK_LOADER_DRIVERS_SELECT: '*lvp*'}}}\n"
       "variants: {default: {}, fused: {args: [--fused-ffn]}}\n"
       "prompts: {prefill: {prompt_tokens: 4, tokens: 0}, decode: {prompt_tokens: 0, tokens: "
       "16}}\n"},
      {"llama-server.yaml", "llama-server",
       "version: 1\n"
       "engines: {llama-server: {preset: llama-server, counted_env: {LP_NUM_THREADS: '1'}}}\n"
       "models: {tiny-llama: a.gguf, tiny-gemma3: b.gguf}\n"
       "backends: {cpu: , vulkan: }\n"
       "prompts: {hello: {text: The quick brown fox jumps over the lazy dog and, tokens: 32,\n"
       "                  concurrency: [1, 4], requests: 16}}\n"},
  };
  for (const auto& c : cases) {
    const auto written = identities(config_file(c.file), c.engine);
    EXPECT_FALSE(written.empty());
    EXPECT_EQ(identities(c.with_preset, c.engine), written) << c.file;
  }
}

TEST(Presets, GiveWayToEachKeyThatStandsInTheFile) {
  const auto settings = parse(
      "version: 1\n"
      "engines:\n"
      "  a: {preset: llama-bench, command: [mine, -m, '{model}', -n, '{tokens}'], probes: ,\n"
      "      counted_env: {GGML_VK_DEBUG_MARKERS: , MINE: 1}, cpu_ops_allowed: {ROPE: small}}\n"
      "models: {m: m.gguf}\n"
      "backends:\n"
      "  cpu: {args: [-x]}\n"
      "  vulkan: {env: {GGML_VK_VISIBLE_DEVICES: '1'}}\n"
      "prompts: {only: {prompt_tokens: 0, tokens: 8}}\n");
  ASSERT_TRUE(settings) << settings.error().message;
  const EngineSettings& engine = settings->engines[0];
  EXPECT_EQ(engine.command[0], "mine");
  EXPECT_THAT(engine.probes, IsEmpty()) << "nothing takes the preset's away";
  EXPECT_THAT(engine.counted_run_env, ElementsAre(testing::Pair("MINE", "1")));
  EXPECT_EQ(engine.cpu_ops_allowed.size(), 2U);
  const Extra cpu = settings->backends[0].extra.for_engine("a");
  const Extra vulkan = settings->backends[1].extra.for_engine("a");
  EXPECT_THAT(cpu.args, ElementsAre("-x"));
  EXPECT_THAT(vulkan.args, ElementsAre("-ngl", "99"));
  EXPECT_EQ(vulkan.env.at("GGML_VK_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(settings->prompts.size(), 1U);
}

// Keys of one engine, under its own name in a backend.
TEST(Presets, GiveWayToWhatABackendHasForTheEngine) {
  const auto settings = parse(
      "version: 1\nengines: {a: {preset: llama-bench}}\nmodels: {m: m.gguf}\n"
      "backends: {vulkan: {engines: {a: {args: [-ngl, '50']}}}}\nprompts:\n");
  ASSERT_TRUE(settings) << settings.error().message;
  const Extra vulkan = settings->backends[0].extra.for_engine("a");
  EXPECT_THAT(vulkan.args, ElementsAre("-ngl", "50"));
  EXPECT_EQ(vulkan.env.at("GGML_VK_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(settings->prompts.size(), 2U) << "nothing is as good as left out";
}

TEST(Presets, GiveWayToTheEnvironmentOfTheEngine) {
  const auto settings = parse(
      "version: 1\nengines: {a: {preset: llama-bench, env: {GGML_VK_VISIBLE_DEVICES: '1'}}}\n"
      "models: {m: m.gguf}\nbackends: {vulkan: {}}\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->engines[0].extra.env.at("GGML_VK_VISIBLE_DEVICES"), "1");
  EXPECT_FALSE(settings->backends[0].extra.for_engine("a").env.contains("GGML_VK_VISIBLE_DEVICES"))
      << "a backend's goes before an engine's";
}

TEST(Presets, LeaveOutWhatTheirEnginesDoNotLoadOrRunOn) {
  EXPECT_THAT(
      cell_names("version: 1\n"
                 "engines: {llama.cpp: {preset: llama-bench}, mlx: {preset: mlx-lm},\n"
                 "          agave: {preset: agave}}\n"
                 "models: {file: f.gguf, folder: models/f}\n"
                 "backends: {cpu: , metal: }\n"),
      ElementsAre("llama.cpp/file/cpu/prefill", "llama.cpp/file/cpu/decode",
                  "llama.cpp/file/metal/prefill", "llama.cpp/file/metal/decode",
                  "mlx/folder/metal/both", "agave/file/cpu/story", "agave/folder/cpu/story"));
  // Arguments of one's own say how it runs there.
  EXPECT_THAT(cell_names("version: 1\nengines: {agave: {preset: agave}}\nmodels: {m: m.gguf}\n"
                         "backends: {metal: {args: [--backend, metal]}}\n"),
              ElementsAre("agave/m/metal/story"));
  // matrix.include decides alone.
  EXPECT_THAT(cell_names("version: 1\nengines: {a: {preset: llama-bench}}\n"
                         "models: {m: m.gguf, blob: sha256-1}\nbackends: {cpu: }\n"
                         "matrix: {include: [{model: blob, prompt: decode}]}\n"),
              ElementsAre("a/blob/cpu/decode"));
}

TEST(Presets, WhatAFileLeavesOutOfThemIsNotedAndWhatItReplacesIsShown) {
  const std::string yaml =
      "version: 1\nengines: {a: {preset: llama-bench}}\nmodels: {file: f.gguf, folder: models/f}\n"
      "backends: {cpu: , opencl: }\nprompts: {mine: {tokens: 8}}\n";
  const auto settings = parse(yaml);
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_THAT(matrix->notes, ElementsAre("engine a, preset llama-bench: left out: model folder"));
  EXPECT_THAT(
      *expanded_yaml(yaml, "weir.yaml"),
      HasSubstr("# engine a, preset llama-bench: prompts in this file replace the preset's: "
                "prefill, decode\n"));
  const auto complete = expand(*parse(
      "version: 1\nengines: {a: {preset: llama-bench}}\nmodels: {m: f.gguf}\nbackends: {cpu: }\n"));
  ASSERT_TRUE(complete);
  EXPECT_THAT(complete->notes, IsEmpty());
  // The same names, in any order, give no note.
  const auto same = expand(*parse(
      "version: 1\nengines: {a: {preset: llama-bench}}\nmodels: {m: f.gguf}\nbackends: {cpu: }\n"
      "prompts: {decode: {tokens: 8}, prefill: {prompt_tokens: 8}}\n"));
  ASSERT_TRUE(same);
  EXPECT_THAT(same->notes, IsEmpty());
}

TEST(Presets, FillModelsAndBackendsThatTheFileLeavesOut) {
  EXPECT_THAT(cell_names("version: 1\nengines: {b: {preset: google-benchmark, program: ./b}}\n"),
              ElementsAre("b/none/cpu/all"));
  EXPECT_THAT(
      cell_names("version: 1\nengines: {v: {preset: vllm-server}}\nmodels: {m: models/m}\n"),
      ElementsAre("v/m/cuda/chat@c1", "v/m/cuda/chat@c4"));
  EXPECT_THAT(cell_names("version: 1\nengines: {v: {preset: vllm}}\nmodels: {m: models/m}\n"),
              ElementsAre("v/m/cuda/decode"));
  EXPECT_THAT(cell_names("version: 1\nengines: {s: {preset: torch-script}}\n"),
              ElementsAre("s/none/cuda/decode"));
}

TEST(Presets, AddTheirLimitsBeforeTheFilesOwn) {
  const auto settings = parse(
      "version: 1\nengines: {agave: {preset: agave}}\nmodels: {m: m.gguf}\nbackends: {cpu: }\n"
      "limits: [{metrics: 'op_calls:*', mode: report}]\n");
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->limits.size(), 2U);
  EXPECT_EQ(settings->limits[0].match.engine, "agave");
  EXPECT_EQ(settings->limits[0].exact, true);
  EXPECT_EQ(settings->limits[1].mode, verdict::Mode::report);
}

TEST(Presets, SayWhatIsWrongAtThePlaceInTheFile) {
  const struct {
    const char* engine;
    const char* message;
  } cases[] = {
      {"{preset: lama-bench}",
       "weir.yaml:2:23: unknown preset \"lama-bench\" (did you mean \"llama-bench\"?)"},
      {"{program: x}", "weir.yaml:2:24: program takes the place of a preset's own"},
      {"{preset: llama-bench, program: x, command: [y]}", "program stands in the preset's command"},
      {"{preset: llama-bench, outputs: x}", "unknown key \"outputs\""},
      {"{preset: ollama}", "weir.yaml:2:11: engine \"e\" needs \"model_name\""},
      {"{preset: mlx-lm}", "preset mlx-lm runs on metal, and no backend here does"},
  };
  for (const auto& c : cases) {
    const auto settings = parse(fmt::format(
        "version: 1\nengines: {{e: {}}}\nmodels: {{m: m}}\nbackends: {{cpu: }}\n", c.engine));
    ASSERT_FALSE(settings) << c.engine;
    EXPECT_THAT(settings.error().message, HasSubstr(c.message));
  }
}

// All that are built in, each alone with a model.
TEST(Presets, AllMakeCellsOnEachOfTheirDevices) {
  EXPECT_GE(presets().size(), 10U);
  for (const Preset& preset : presets()) {
    EXPECT_FALSE(preset.about.empty()) << preset.name;
    std::string yaml = fmt::format(
        "version: 1\nengines: {{e: {{preset: {}, {}program: ./p}}}}\nmodels: {{m: "
        "m.gguf}}\nbackends:\n",
        preset.name, preset.name == "ollama" ? "model_name: m, " : "");
    for (const Preset::Device& device : preset.devices) yaml += fmt::format("  {}:\n", device.name);
    const auto cells = cell_names(yaml);
    EXPECT_GE(cells.size(), preset.devices.size()) << testing::PrintToString(cells);
    EXPECT_THAT(cells, testing::Each(testing::StartsWith("e/m/"))) << yaml;
  }
}

TEST(Presets, AreRecognisedByTheirPrograms) {
  EXPECT_EQ(find_preset_by_program("llama-bench")->name, "llama-bench");
  EXPECT_EQ(find_preset_by_program("bench"), nullptr);
}

// The output of config show means the same: the same tree, and the same cells.
TEST(ExpandedYaml, ReadsBackAsTheSameSettings) {
  std::vector<std::string> files{
      std::string(k_six_lines),
      "version: 1\nengines: {llama.cpp: {preset: llama-bench}, agave: {preset: agave}}\n"
      "models: {m: 'a \"b\": #c.gguf', n: models/n}\nbackends: {cpu: , vulkan: }\n",
      "version: 1\nengines:\n  e: {command: [e, '', '- x', 'null', '{{tokens}}', \"a\\tb\\n\", "
      "'{tokens}'],\n"
      "      output: generic, metrics: {syncs_per_token: {regex: '(\\d+) [s]yncs'}}}\n"
      "models: {m: m}\nbackends: {cpu: }\nprompts: {p: {tokens: 8, depth: [0, 9]}}\n"
      "limits: [{metrics: '*_per_token', exact: false}]\ngate: {budget: 10m, confirm: false}\n"};
  for (const char* file :
       {"llama.cpp.yaml", "engine.yaml", "llama-server.yaml", "generic-example.yaml"}) {
    files.push_back(config_file(file));
  }
  for (const std::string& yaml : files) {
    const auto shown = expanded_yaml(yaml, "weir.yaml");
    ASSERT_TRUE(shown) << shown.error().message;
    EXPECT_THAT(*shown, Not(HasSubstr("preset:")));
    const auto tree = parse_yaml(*shown, "shown");
    ASSERT_TRUE(tree) << tree.error().message << *shown;
    EXPECT_THAT(*shown, testing::EndsWith(to_yaml(*tree)));
    const auto cells = cell_names(yaml);
    EXPECT_FALSE(cells.empty());
    EXPECT_EQ(cell_names(*shown), cells) << *shown;
    const auto engine = cells.front().substr(0, cells.front().find_first_of("/@"));
    EXPECT_EQ(identities(*shown, engine), identities(yaml, engine));
  }
}

TEST(ExpandedYaml, NamesThePresetsAndTheirVersions) {
  EXPECT_EQ(
      *expanded_yaml("version: 1\nengines: {b: {preset: google-benchmark, program: ./b}}\n", "w"),
      "# b: preset google-benchmark, version 1\n"
      "version: 1\n"
      "engines:\n"
      "  b:\n"
      "    command: [./b, \"--benchmark_filter={prompt}\", \"--benchmark_repetitions={repeats}\", "
      "--benchmark_format=json]\n"
      "    output: google-benchmark\n"
      "models: {none: /dev/null}\n"
      "backends: {cpu: {}}\n"
      "prompts: {all: {text: \".\"}}\n"
      "limits: [{metrics: iteration_seconds, max_increase: 5%, match: {engine: b}}]\n");
}

}  // namespace presets_test
}  // namespace weir::config
