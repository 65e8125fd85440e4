// Whatever an engine prints, an adapter answers with a report or an error.
#include <random>

#include <gtest/gtest.h>

#include "gate/adapters/adapter.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace {

config::GenericOutput rules() {
  config::GenericOutput found;
  for (const char* pointer : {"/0/n_gen", "/0/samples_ns/0", "/backends"}) {
    config::ValueRule rule;
    rule.metric = "decode_tokens_per_second";
    rule.pointer = pointer;
    rule.pick = config::ValueRule::Pick::all;
    found.values.push_back(rule);
  }
  config::ValueRule regex;
  regex.metric = "syncs_per_token";
  regex.regex = R"((\d+))";
  found.values.push_back(regex);
  return found;
}

// Flips, drops, doubles and inserts what matters to a reader of JSON.
std::string mutated(std::string text, std::mt19937& random) {
  static constexpr std::string_view k_pieces[] = {"{",  "}",     "[",     "]",   "\"",   ",",
                                                  ":",  "-",     "1e999", "NaN", "null", "\n",
                                                  "\\", "\x1B[", "\xFF",  "0"};
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t i = below(8) + 1; i > 0 && !text.empty(); --i) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, below(40) + 1);
        break;
      case 2:
        text.insert(at, k_pieces[below(std::size(k_pieces))]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(60)));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

TEST(Adapters, AnswerEveryOneOf10000MutatedOutputs) {
  const std::string seeds[] = {read_data("llama-bench.json").substr(0, 1300) + "]",
                               read_data("llama-bench.jsonl").substr(0, 1200)};
  const auto generic = rules();
  std::mt19937 random(1);
  for (const Adapter& adapter : table()) {
    int errors = 0;
    for (int i = 0; i < 10'000; ++i) {
      const std::string out = mutated(seeds[i % 2], random);
      const auto report =
          adapter.read({out, seeds[1], {16, 0, 3, 0}, "vulkan", &generic, std::nullopt});
      if (report) continue;
      ++errors;
      EXPECT_FALSE(report.error().message.empty());
    }
    EXPECT_GT(errors, 100) << adapter.name << ": these inputs no longer reach its errors";
  }
}

TEST(Adapters, AreFoundByName) {
  for (const Adapter& adapter : table()) EXPECT_EQ(find(adapter.name), &adapter);
  EXPECT_EQ(find("llama-Bench"), nullptr);
  EXPECT_EQ(names(), (std::vector<std::string>{"llama-bench", "generic"}));
}

}  // namespace
}  // namespace weir::adapters
