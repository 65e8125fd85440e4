// Tests of command lines with placeholders filled in.
#include <gmock/gmock.h>

#include "gate/config/placeholders.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace fill_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Placeholders, AreWordsInBracesAndEveryOtherBraceIsItself) {
  struct Case {
    const char* text;
    std::vector<std::string> words;
    const char* filled;  // with <word> for each
  };
  const Case cases[] = {
      {"", {}, ""},
      {"{tokens}", {"tokens"}, "<tokens>"},
      {"a{x}b{y-1}c", {"x", "y-1"}, "a<x>b<y-1>c"},
      {"{{tokens}}", {}, "{tokens}"},
      {"{{{tokens}}}", {}, "{{tokens}}"},
      {"{{tokens}", {"tokens"}, "{<tokens>"},
      {"{tokens}}", {"tokens"}, "<tokens>}"},
      {R"({"a": {"b": 1}})", {}, R"({"a": {"b": 1}})"},
      {"{} { x} {1} {a b} {", {}, "{} { x} {1} {a b} {"},
      {"{a{b}", {"b"}, "{a<b>"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(placeholders_in(c.text), c.words) << c.text;
    EXPECT_EQ(substitute(c.text, [](auto word) { return fmt::format("<{}>", word); }), c.filled)
        << c.text;
  }
}

// Cell of an engine that uses every placeholder, in arguments and environment.
struct ParsedConfig {
  Settings settings;
  Matrix matrix;
};

ParsedConfig make_config(const std::string& prompt) {
  const std::string yaml =
      "version: 1\n"
      "engines:\n"
      "  e: {command: [bin/e, '{model}', 'p={prompt_tokens},n={tokens}', -r, '{repeats}',\n"
      "        -d, '{depth}', -t, '{threads}', -s, '{seed}', '{args}', -o, '{out}/x', "
      "'{{tokens}}'],\n"
      "      output: llama-bench, probes: [vulkan], profile_args: [--trace, '{out}/{tokens}'],\n"
      "      counted_env: {DIR: '{probe_dir}', MODE: counted}, env: {MODE: plain, T: "
      "'{threads}'}}\n"
      "models: {m: m.gguf}\n"
      "backends: {cpu: {args: [-ngl, 0], env: {M: '{model}'}}}\n"
      "prompts: {p: " +
      prompt + "}\n";
  ParsedConfig config;
  auto settings = parse_text(yaml);
  if (!settings) {
    ADD_FAILURE() << settings.error().message;
    return config;
  }
  config.settings = std::move(*settings);
  auto matrix = expand(config.settings);
  if (!matrix) {
    ADD_FAILURE() << matrix.error().message;
    return config;
  }
  config.matrix = std::move(*matrix);
  for (Cell& cell : config.matrix.cells) cell.engine = nullptr;  // the settings have moved
  return config;
}

Filling filling(profile::Pass pass) {
  Filling values;
  values.parameters = {64, 8, 2, 256};
  values.model = "/models/{tokens} m.gguf";  // values are not searched for placeholders
  values.out = "/out";
  values.probe_dir = "/probe";
  values.threads = 6;
  values.pass = pass;
  return values;
}

TEST(Fill, PutsEachValueIntoItsOneArgument) {
  const ParsedConfig config = make_config("{tokens: 8}");
  const auto line = fill(config.matrix.cells.at(0), filling(profile::Pass::timed));
  EXPECT_THAT(line.argv,
              ElementsAre("bin/e", "/models/{tokens} m.gguf", "p=64,n=8", "-r", "2", "-d", "256",
                          "-t", "6", "-s", "1", "-ngl", "0", "-o", "/out/x", "{tokens}"));
  EXPECT_THAT(line.env, UnorderedElementsAre(Pair("MODE", "plain"), Pair("T", "6"),
                                             Pair("M", "/models/{tokens} m.gguf")));
}

TEST(Fill, AddsTheProfilersArgumentsAndEnvironmentInACountedPass) {
  const ParsedConfig config = make_config("{tokens: 8, threads: 3, seed: 9}");
  const auto line = fill(config.matrix.cells.at(0), filling(profile::Pass::counted));
  EXPECT_THAT(line.argv, ElementsAre("bin/e", "/models/{tokens} m.gguf", "p=64,n=8", "-r", "2",
                                     "-d", "256", "-t", "3", "-s", "9", "-ngl", "0", "-o", "/out/x",
                                     "{tokens}", "--trace", "/out/8"));
  EXPECT_THAT(line.env, UnorderedElementsAre(Pair("MODE", "counted"), Pair("DIR", "/probe"),
                                             Pair("T", "3"), Pair("M", "/models/{tokens} m.gguf")));
}

TEST(Fill, PutsATextWithBlanksAndQuotesIntoOneArgument) {
  const auto settings = parse_text(
      with_head("prompts: {p: {text: \"it's \\\"a\\\" {model} $(x)\\n\", tokens: 8}}\n"));
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(fill(matrix->cells.at(0), filling(profile::Pass::timed)).argv.back(),
            "it's \"a\" {model} $(x)\n");
}

TEST(Asked, SweepsOverTokensForDecodeAndOverRepeatsForPrefill) {
  const GateSettings gate;  // repeats 3
  const ParsedConfig decode = make_config("{prompt_tokens: 16, tokens: 32, depth: 4}");
  const Cell& cell = decode.matrix.cells.at(0);
  EXPECT_EQ(cell.sweep, profile::Sweep::tokens);
  EXPECT_EQ(timed_request(cell, gate), (profile::RunParameters{16, 32, 3, 4}));
  // n, 2n, 3n with n = min(8, 32 / 4)
  EXPECT_THAT(counted_requests(cell),
              ElementsAre(profile::RunParameters{16, 8, 1, 4}, profile::RunParameters{16, 16, 1, 4},
                          profile::RunParameters{16, 24, 1, 4}));
  const std::int64_t report_counts[] = {5, 7, 9}, of_an_engine_that_counts[] = {32};
  EXPECT_THAT(counted_requests(cell, report_counts),
              ElementsAre(profile::RunParameters{16, 5, 1, 4}, profile::RunParameters{16, 7, 1, 4},
                          profile::RunParameters{16, 9, 1, 4}));
  EXPECT_EQ(counted_requests(cell, of_an_engine_that_counts).size(), 3U) << "one is no line";

  const ParsedConfig prefill = make_config("{prompt_tokens: 16}");
  EXPECT_EQ(prefill.matrix.cells.at(0).sweep, profile::Sweep::repeats);
  EXPECT_THAT(counted_requests(prefill.matrix.cells.at(0)),
              ElementsAre(profile::RunParameters{16, 0, 1, 0}, profile::RunParameters{16, 0, 2, 0},
                          profile::RunParameters{16, 0, 3, 0}));
}

TEST(Asked, RunsOnceWhereTheEngineCountsByItselfOrCanNotRepeat) {
  const auto settings = parse_text(
      "version: 1\n"
      "engines:\n"
      "  own: {command: [o, '{tokens}'], output: generic,\n"
      "        metrics: {syncs_per_token: {regex: '(\\d+)'}}}\n"
      "  once: {command: [o, '{prompt_tokens}'], output: llama-bench, probes: [vulkan]}\n"
      "models: {m: m}\nbackends: {vulkan: }\n"
      "prompts: {decode: {tokens: 32}, prefill: {prompt_tokens: 16}}\n");
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  ASSERT_EQ(matrix->cells.size(), 2U);
  const Cell& own = matrix->cells[0];
  EXPECT_EQ(own.sweep, profile::Sweep::none);
  EXPECT_THAT(counted_requests(own), ElementsAre(profile::RunParameters{0, 32, 1, 0}));
  EXPECT_EQ(timed_request(own, {}), (profile::RunParameters{0, 32, 1, 0})) << "it has no {repeats}";
  EXPECT_EQ(matrix->cells[1].sweep, profile::Sweep::none);
  EXPECT_THAT(counted_requests(matrix->cells[1]), ElementsAre(profile::RunParameters{16, 0, 1, 0}));
}

}  // namespace fill_test
}  // namespace weir::config
