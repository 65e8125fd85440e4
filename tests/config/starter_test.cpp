#include "gate/config/starter.hpp"

#include <gmock/gmock.h>

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> cells_of(const std::string& yaml) {
  const auto settings = parse_text(yaml);
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
  EXPECT_TRUE(settings->engines[0].cpu_ops_allowed.contains("GET_ROWS"));
  EXPECT_EQ(settings->backends[1].extra.extra.env.at("GGML_VK_VISIBLE_DEVICES"), "0");
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
