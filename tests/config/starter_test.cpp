// Tests of the weir.yaml that weir init writes.
#include "gate/config/starter.hpp"

#include <gmock/gmock.h>

#include "gate/base/text.hpp"
#include "gate/unit/device_api.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace starter_test {

using testing::HasSubstr;
using testing::Not;

// With all that a starter's presets may name.
Result<Settings> parse_starter(const std::string& yaml) {
  Supported context = test_context();
  for (const char* adapter : {"llama-perf", "agave", "hf2q", "mlx-lm"}) {
    context.adapters.emplace_back(adapter);
  }
  for (const unit::DeviceApi& api : unit::device_apis()) context.probes.emplace_back(api.name);
  return parse_settings(yaml, "weir.yaml", context);
}

std::vector<std::string> cell_names(const std::string& yaml) {
  return cell_names(parse_starter(yaml));
}

// A working gate: version, engine, model, backends and what is reported of times.
TEST(Starter, IsSixLinesForLlamaCpp) {
  const std::string yaml = starter_config({{{"llama.cpp", "build/bin/llama-bench", "llama-bench"}},
                                           {{"tiny", "models/tiny.gguf"}},
                                           true,
                                           true});
  std::string plain;
  for (const std::string& line : text::lines(yaml)) {
    if (!text::trim(line).starts_with('#')) plain += line + "\n";
  }
  EXPECT_EQ(
      plain,
      "version: 1\n"
      "engines:\n"
      "  llama.cpp: {preset: llama-bench, program: build/bin/llama-bench}\n"
      "models:\n"
      "  tiny: models/tiny.gguf\n"
      "backends: {cpu: {}, vulkan: {}}\n"
      "limits: [{metrics: [\"*_per_second\", \"*_seconds*\", peak_rss_bytes], mode: report}]\n");
  EXPECT_TRUE(yaml.starts_with("# yaml-language-server: $schema=https://")) << yaml;
  EXPECT_THAT(
      cell_names(yaml),
      testing::ElementsAre("llama.cpp/tiny/cpu/prefill", "llama.cpp/tiny/cpu/decode",
                           "llama.cpp/tiny/vulkan/prefill", "llama.cpp/tiny/vulkan/decode"));
}

TEST(Starter, RunsAScriptByThePresetOfItsPackage) {
  const std::string yaml = starter_config({{{"onnxruntime-web", "", "onnxruntime-web"}},
                                           {{"small", "small.onnx"}, {"tiny", "tiny.gguf"}},
                                           true,
                                           true});
  EXPECT_THAT(yaml, HasSubstr("  onnxruntime-web: {preset: onnxruntime-web}\n"));
  EXPECT_THAT(cell_names(yaml), testing::ElementsAre("onnxruntime-web/small/vulkan/decode"));
}

TEST(Starter, CountsAnEngineThatItDoesNotKnowWithProbes) {
  const std::string yaml = starter_config({{}, {{"tiny", "tiny.gguf"}}, true, true});
  EXPECT_THAT(yaml, HasSubstr("    probes: [vulkan, ggml]\n"));
  EXPECT_THAT(yaml, HasSubstr("facts: {generated_tokens: "));
  EXPECT_THAT(cell_names(yaml),
              testing::ElementsAre("my-engine/tiny/cpu/decode", "my-engine/tiny/vulkan/decode"));
}

TEST(Starter, GivesEachEngineItsOwnModelsAndDevices) {
  const std::string yaml = starter_config({{{"llama.cpp", "llama-bench", "llama-bench"},
                                            {"agave", "agave", "agave"},
                                            {"mlx-lm", "mlx_lm.benchmark", "mlx-lm"}},
                                           {{"file", "f.gguf"}, {"folder", "folder", true}},
                                           true,
                                           true});
  EXPECT_THAT(cell_names(yaml),
              testing::UnorderedElementsAre(
                  "llama.cpp/file/cpu/prefill", "llama.cpp/file/cpu/decode",
                  "llama.cpp/file/vulkan/prefill", "llama.cpp/file/vulkan/decode",
                  "llama.cpp/file/metal/prefill", "llama.cpp/file/metal/decode",
                  "agave/file/cpu/story", "agave/file/vulkan/story", "agave/folder/cpu/story",
                  "agave/folder/vulkan/story", "mlx-lm/folder/metal/both"))
      << yaml;
}

TEST(Starter, LeavesProbesOutWhereNoneAreInstalled) {
  const auto settings = parse_starter(
      starter_config({{{"llama.cpp", "llama-bench", "llama-bench"}}, {}, true, false}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(settings->engines[0].probes.empty());
}

TEST(Starter, LeavesOutModelsThatNoEngineLoads) {
  const auto model_names = [](StarterEngine engine) {
    const auto settings = parse_starter(starter_config(
        {{std::move(engine)}, {{"file", "f.gguf"}, {"folder", "folder", true}}, false, true}));
    EXPECT_TRUE(settings) << (settings ? "" : settings.error().message);
    std::vector<std::string> names;
    if (settings) {
      for (const ModelSettings& model : settings->models) names.push_back(model.name);
    }
    return names;
  };
  EXPECT_THAT(model_names({"llama.cpp", "llama-bench", "llama-bench"}),
              testing::ElementsAre("file"));
  EXPECT_THAT(model_names({"mlx-lm", "mlx_lm.benchmark", "mlx-lm"}),
              testing::ElementsAre("folder"));
  EXPECT_THAT(model_names({"agave", "agave", "agave"}), testing::ElementsAre("file", "folder"));
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
    const bool gates = kind == unit::Kind::count || kind == unit::Kind::quality ||
                       (kind == unit::Kind::usage && name != "process_cpu_seconds");
    EXPECT_EQ(settings->limits[0].covers(cell, name), !gates) << name;
  }
}

TEST(Starter, CanBeReadWhateverWasFound) {
  const StarterInput cases[] = {
      {},
      {{}, {}, true, true},
      {{{"llama.cpp", "llama-bench", "llama-bench"}}, {}, false, false},
      {{{"llama.cpp", "a/llama-bench", "llama-bench"},
        {"llama.cpp", "b/llama-bench", "llama-bench"}},
       {{"m", "m.gguf"}, {"M", "n.gguf"}, {"-.-", "o.gguf"}, {"", "p.gguf"}},
       true,
       true},
      {{{"x", "llama-completion", "llama-completion"},
        {"x", "agave", "agave"},
        {"x", "hf2q", "hf2q"},
        {"x", "mlx_lm.benchmark", "mlx-lm"},
        {"x", "llama-bench", "llama-bench"}},
       {{"m", "m.gguf"}, {"m", "m", true}},
       true,
       true},
      {{{"mlx-lm", "mlx_lm.benchmark", "mlx-lm"}}, {{"m", "m.gguf"}}, true, true},
      {{{"hf2q", "hf2q", "hf2q"}, {"own", "own", "other"}}, {}, true, true},
      {{{"a b: [c", "/with blank/\"quote\"\\back: #x", "agave"}},
       {{std::string(300, 'x'), "~"}, {"{model}", "null"}, {"\xC3\xA4", "- a\nb"}},
       false,
       false},
  };
  for (const StarterInput& input : cases) {
    const std::string yaml = starter_config(input);
    const auto cells = cell_names(yaml);
    ASSERT_FALSE(cells.empty());
    EXPECT_THAT(cells.front(), Not(HasSubstr("weir.yaml"))) << yaml;  // an error would name it
  }
}

}  // namespace starter_test
}  // namespace weir::config
