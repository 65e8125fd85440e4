// Whatever an engine prints, an adapter answers with a report or an error.
#include <random>

#include <gtest/gtest.h>

#include "gate/adapters/format.hpp"

#include "tests/adapters/read_data.hpp"
#include "tests/support/mutated.hpp"
#include "tests/support/rounds.hpp"

namespace weir::adapters {
namespace random_test {

config::GenericOutput rules() {
  config::GenericOutput result;
  for (const char* pointer : {"/0/samples_ns/0", "/n_gen"}) {
    config::ValueRule rule;
    rule.metric = "decode_tokens_per_second";
    rule.pointer = pointer;
    rule.pick = config::ValueRule::Pick::all;
    result.values.push_back(rule);
  }
  config::ValueRule regex;
  regex.metric = "syncs_per_token";
  regex.regex = R"((\d+))";
  result.values.push_back(regex);
  return result;
}

// Bytes that matter to a reader of JSON.
constexpr std::string_view k_pieces[] = {"{",     "}",   "[",    "]",  "\"", ",",     ":",    "-",
                                         "1e999", "NaN", "null", "\n", "\\", "\x1B[", "\xFF", "0"};

TEST(Adapters, AnswerEveryOneOf10000MutatedOutputs) {
  // One result each: as an array, and as a line.
  const std::string array = read_data("llama-bench.json");
  const std::string lines = read_data("llama-bench.jsonl");
  const std::string seeds[] = {array.substr(0, array.find("},") + 1) + "\n]\n",
                               lines.substr(0, lines.find('\n') + 1)};
  const auto generic = rules();
  std::mt19937 random(1);
  for (const char* name : {"llama-bench", "generic"}) {  // the others: ChangedSamples
    const Adapter& adapter = *find(name);
    int errors = 0;
    int reports = 0;
    for (int i = 0; i < 10'000 / tests::k_one_of; ++i) {
      const std::string out = tests::mutated(seeds[i % 2], k_pieces, 8, random);
      const auto report =
          adapter.read({out, "1 syncs", {16, 0, i % 2 == 0 ? 3 : 2, 0}, "vulkan", &generic, {}});
      if (report) {
        ++reports;
        continue;
      }
      ++errors;
      EXPECT_FALSE(report.error().message.empty());
    }
    // The inputs reach both answers; were it one alone, they would test little.
    EXPECT_GT(errors, 50 / tests::k_one_of) << adapter.name;
    EXPECT_GT(reports, 50 / tests::k_one_of) << adapter.name;
  }
}

TEST(Adapters, AreFoundByName) {
  for (const Adapter& adapter : table()) EXPECT_EQ(find(adapter.name), &adapter);
  EXPECT_EQ(find("llama-Bench"), nullptr);
  for (const char* published : {"llama-bench", "llama-bench-table", "llama-perf", "agave", "hf2q",
                                "mlx-lm", "ollama", "weir-observed", "generic", "google-benchmark"})
    EXPECT_NE(find(published), nullptr) << published;
}

}  // namespace random_test
}  // namespace weir::adapters
