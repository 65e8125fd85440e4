// Whatever stands in weir.yaml, the answer is settings or an error that names a place.
#include <fstream>
#include <iterator>
#include <random>

#include <gmock/gmock.h>

#include "gate/config/starter.hpp"

#include "tests/config/parse_text.hpp"
#include "tests/support/mutated.hpp"

namespace weir::config {
namespace random_test {

constexpr std::string_view k_pieces[] = {
    "{",       "}",     "[",       "]",      ": ",    "- ",      "\n",    "  ",    "&a ",
    "*a",      "!!x ",  "|",       ">",      "'",     "\"",      "#",     "---\n", "? ",
    "{model}", "{{x}}", "~",       "-1",     "1e999", "5%",      "\xFF",  "\x1B",  "\\",
    "<<",      "*",     "engines", "tokens", "args",  "metrics", "limits"};

TEST(Settings, AnswerEveryOneOf10000MutatedTexts) {
  const std::string seeds[] = {
      config_with(
          "variants: {fused: {engines: {agave: {args: [-x]}}}}\n"
          "matrix: {exclude: [{engine: llama.cpp, prompt: hello}]}\n"
          "limits:\n- {match: {backend: vulkan}, metrics: syncs_per_token, min: 1, max: 3}\n"
          "gate: {budget: 10m, on_inconclusive: warn}\n"),
      starter_config({}),
      "version: 1\n"
      "engines: {a: {preset: llama-bench, program: x, env: {A: 1}, probes: }, m: {preset: agave}}\n"
      "models: {tiny: tiny.gguf, f: f}\nbackends: {cpu: , vulkan: {engines: {a: {args: [-x]}}}}\n"
      "matrix: {exclude: [{engine: a, model: f}]}\nlimits:\n- {metrics: kernels, mode: report}\n",
  };
  std::mt19937 random(1);
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto settings = parse_text(tests::mutated(seeds[i % 3], k_pieces, 6, random));
    if (!settings) {
      ++refused;
      EXPECT_EQ(settings.error().code, Code::config);
      EXPECT_EQ(settings.error().message.rfind("weir.yaml:", 0), 0U) << settings.error().message;
      continue;
    }
    ++read;
    const auto matrix = expand(*settings);
    if (!matrix) continue;
    for (const Cell& cell : matrix->cells) {
      EXPECT_FALSE(fill(cell, {}).argv.empty());
      EXPECT_FALSE(counted_requests(cell).empty());
    }
  }
  // The inputs reach both answers; were it one alone, they would test little.
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace random_test
}  // namespace weir::config
