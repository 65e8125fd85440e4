#include "gate/config/starter.hpp"

#include <gmock/gmock.h>

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace {

using testing::HasSubstr;
using testing::Not;

// With every adapter that a starter may name.
Result<Settings> parse_starter(const std::string& yaml) {
  Known known = known_here_and_now();
  for (const char* adapter : {"llama-perf", "agave", "hf2q", "mlx-lm"}) {
    known.adapters.emplace_back(adapter);
  }
  return parse_settings(yaml, "weir.yaml", known);
}

std::vector<std::string> cells_of(const std::string& yaml) {
  const auto settings = parse_starter(yaml);
  if (!settings) return {settings.error().message};
  const auto matrix = expand(*settings);
  if (!matrix) return {matrix.error().message};
  std::vector<std::string> names;
  for (const Cell& cell : matrix->cells) names.push_back(cell.key.str());
  return names;
}

TEST(Starter, MeasuresWhatWasFoundOnTheCpuAndOnVulkan) {
  const std::string yaml =
      starter_config({{{"llama.cpp", "/opt/llama.cpp/llama-bench", "llama-bench"}},
                      {{"tiny", "tiny.gguf"}},
                      true,
                      true,
                      true});
  EXPECT_THAT(cells_of(yaml), testing::ElementsAre(
                                  "llama.cpp/tiny/cpu/prefill", "llama.cpp/tiny/cpu/decode",
                                  "llama.cpp/tiny/vulkan/prefill", "llama.cpp/tiny/vulkan/decode"));
  const auto settings = parse_text(yaml);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->engines[0].command[0], "/opt/llama.cpp/llama-bench");
  EXPECT_THAT(settings->engines[0].probes, testing::ElementsAre("vulkan", "ggml"));
  ASSERT_EQ(settings->engines[0].cpu_ops_allowed.size(), 1U);
  EXPECT_EQ(settings->engines[0].cpu_ops_allowed[0].op, "GET_ROWS");
  EXPECT_EQ(settings->backends[1].extra.extra.env.at("GGML_VK_VISIBLE_DEVICES"), "0");
}

// Each engine of an adapter's own alone, with a model that it loads: its cells.
TEST(Starter, AsksEachEngineAsItsOwnHelpSays) {
  const struct {
    StarterEngine engine;
    StarterModel model;
    std::vector<std::string> cells;
    std::vector<std::string> command;
  } cases[] = {
      {{"llama.cpp", "llama-completion", "llama-perf"},
       {"tiny", "tiny.gguf"},
       {"llama.cpp/tiny/cpu/story", "llama.cpp/tiny/vulkan/story"},
       {"llama-completion", "-m", "{model}", "-p", "{prompt}", "-n", "{tokens}", "-no-cnv",
        "--ignore-eos", "-s", "{seed}", "-t", "{threads}"}},
      {{"agave", "./bin/agave", "agave"},
       {"tiny", "tiny.gguf"},
       {"agave/tiny/cpu/story", "agave/tiny/vulkan/story"},
       {"./bin/agave", "{model}", "-n", "{tokens}", "--seed", "{seed}", "--json",
        "--repeat-penalty", "2", "{args}", "{prompt}"}},
      {{"agave", "agave", "agave"},
       {"folder", "folder", true},
       {"agave/folder/cpu/story", "agave/folder/vulkan/story"},
       {}},
      {{"hf2q", "hf2q", "hf2q"},
       {"tiny", "tiny.gguf"},
       {"hf2q/tiny/metal/story"},
       {"hf2q", "generate", "--model", "{model}", "--prompt", "{prompt}", "--max-tokens",
        "{tokens}", "--temperature", "0"}},
      {{"mlx-lm", "mlx_lm.benchmark", "mlx-lm"},
       {"folder", "folder", true},
       {"mlx-lm/folder/metal/both"},
       {"mlx_lm.benchmark", "--model", "{model}", "-p", "{prompt_tokens}", "-g", "{tokens}", "-n",
        "{repeats}"}},
  };
  for (const auto& one : cases) {
    const std::string yaml = starter_config({{one.engine}, {one.model}, true, true, true});
    EXPECT_EQ(cells_of(yaml), one.cells) << yaml;
    const auto settings = parse_starter(yaml);
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->engines[0].output, one.engine.adapter);
    if (!one.command.empty()) {
      EXPECT_EQ(settings->engines[0].command, one.command);
    }
  }
}

TEST(Starter, GivesEachEngineItsOwnArgumentsModelsAndDevices) {
  const std::string yaml = starter_config({{{"llama.cpp", "llama-bench", "llama-bench"},
                                            {"agave", "agave", "agave"},
                                            {"mlx-lm", "mlx_lm.benchmark", "mlx-lm"},
                                            {"own", "own", "generic"}},
                                           {{"file", "f.gguf"}, {"folder", "folder", true}},
                                           true,
                                           true,
                                           true});
  EXPECT_THAT(
      cells_of(yaml),
      testing::UnorderedElementsAre(
          "llama.cpp/file/cpu/prefill", "llama.cpp/file/cpu/decode", "llama.cpp/file/cpu/both",
          "llama.cpp/file/vulkan/prefill", "llama.cpp/file/vulkan/decode",
          "llama.cpp/file/vulkan/both", "agave/file/cpu/story", "agave/file/vulkan/story",
          "agave/folder/cpu/story", "agave/folder/vulkan/story", "mlx-lm/folder/metal/both",
          "own/file/cpu/decode", "own/folder/cpu/decode"))
      << yaml;
  const auto settings = parse_starter(yaml);
  ASSERT_TRUE(settings) << settings.error().message;
  for (const BackendSettings& backend : settings->backends) {
    if (backend.name != "vulkan") continue;
    EXPECT_THAT(backend.extra.for_engine("llama.cpp").args, testing::ElementsAre("-ngl", "99"));
    EXPECT_THAT(backend.extra.for_engine("agave").args,
                testing::ElementsAre("--backend", "vulkan"));
  }
}

// Its own report says where the work ran where no probe sees the device.
TEST(Starter, TurnsAgavesProfileOnAndGatesTheCallsOfItsOps) {
  const auto settings = parse_starter(
      starter_config({{{"agave", "agave", "agave"}}, {{"file", "f.gguf"}}, true, false, true}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_THAT(settings->engines[0].profile_args, testing::ElementsAre("--profile"));
  ASSERT_EQ(settings->limits.size(), 2U);
  EXPECT_EQ(settings->limits[1].match.engine, "agave");
  EXPECT_THAT(settings->limits[1].metrics, testing::ElementsAre("op_calls:*"));
  EXPECT_EQ(settings->limits[1].exact, true);
}

TEST(Starter, LeavesOutModelsThatNoEngineLoads) {
  const auto models_of = [](StarterEngine engine) {
    const auto settings =
        parse_starter(starter_config({{std::move(engine)},
                                      {{"file", "f.gguf"}, {"folder", "folder", true}},
                                      false,
                                      false,
                                      false}));
    EXPECT_TRUE(settings) << (settings ? "" : settings.error().message);
    std::vector<std::string> names;
    if (settings) {
      for (const ModelSettings& model : settings->models) names.push_back(model.name);
    }
    return names;
  };
  EXPECT_THAT(models_of({"llama.cpp", "llama-bench", "llama-bench"}), testing::ElementsAre("file"));
  EXPECT_THAT(models_of({"mlx-lm", "mlx_lm.benchmark", "mlx-lm"}), testing::ElementsAre("folder"));
  EXPECT_THAT(models_of({"agave", "agave", "agave"}), testing::ElementsAre("file", "folder"));
}

TEST(Starter, ReportsTimesAndGatesCounts) {
  const auto settings = parse_text(starter_config({}));
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->limits.size(), 1U);
  EXPECT_EQ(settings->limits[0].mode, verdict::Mode::report);
  const profile::CellKey cell{"e", "default", "m", "cpu", "p", {}, {}};
  for (const std::string& name : unit::metric_names()) {
    // Counts and the quality of answers gate from the first day.
    const unit::Kind kind = unit::find_metric(name)->kind;
    const bool gates = kind == unit::Kind::count || kind == unit::Kind::quality;
    EXPECT_EQ(settings->limits[0].covers(cell, name), !gates) << name;
  }
}

TEST(Starter, CanBeReadWhateverWasFound) {
  const StarterInput cases[] = {
      {},
      {{}, {}, true, false, true},
      {{{"llama.cpp", "llama-bench", "llama-bench"}}, {}, false, false, false},
      {{{"llama.cpp", "a/llama-bench", "llama-bench"},
        {"llama.cpp", "b/llama-bench", "llama-bench"}},
       {{"m", "m.gguf"}, {"M", "n.gguf"}, {"-.-", "o.gguf"}, {"", "p.gguf"}},
       true,
       false,
       true},
      {{{"x", "llama-completion", "llama-perf"},
        {"x", "agave", "agave"},
        {"x", "hf2q", "hf2q"},
        {"x", "mlx_lm.benchmark", "mlx-lm"},
        {"x", "llama-bench", "llama-bench"}},
       {{"m", "m.gguf"}, {"m", "m", true}},
       true,
       true,
       true},
      {{{"mlx-lm", "mlx_lm.benchmark", "mlx-lm"}}, {{"m", "m.gguf"}}, true, false, true},
      {{{"hf2q", "hf2q", "hf2q"}, {"own", "own", "other"}}, {}, true, false, true},
      {{{"a b: [c", "/with blank/\"quote\"\\back: #x", "other"}},
       {{std::string(300, 'x'), "~"}, {"{model}", "null"}, {"ä", "- a\nb"}},
       false,
       false,
       false},
  };
  for (const StarterInput& found : cases) {
    const std::string yaml = starter_config(found);
    const auto cells = cells_of(yaml);
    ASSERT_FALSE(cells.empty());
    EXPECT_THAT(cells.front(), Not(HasSubstr("weir.yaml"))) << yaml;  // an error would name it
  }
}

}  // namespace
}  // namespace weir::config
