// Tests of expanding the matrix into cells.
#include "gate/config/matrix.hpp"

#include <gmock/gmock.h>

#include "gate/base/json.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace matrix_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

// Cells point into their settings, so both stay together.
struct Expanded {
  Settings settings;
  Matrix matrix;
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Cell& cell : matrix.cells) all.push_back(cell.key.str());
    return all;
  }
  [[nodiscard]] const Cell& cell(const std::string& name) const {
    for (const Cell& candidate : matrix.cells) {
      if (candidate.key.str() == name) return candidate;
    }
    ADD_FAILURE() << "no cell " << name;
    return matrix.cells.front();
  }
};

std::unique_ptr<Expanded> expanded(const std::string& yaml) {
  auto result = std::make_unique<Expanded>();
  auto settings = parse_text(yaml);
  if (!settings) {
    ADD_FAILURE() << settings.error().message;
    return result;
  }
  result->settings = std::move(*settings);
  auto matrix = expand(result->settings);
  if (!matrix) {
    ADD_FAILURE() << matrix.error().message;
    return result;
  }
  result->matrix = std::move(*matrix);
  return result;
}

TEST(Matrix, HasCellsWithoutAModelWhereNoCommandAsksForOne) {
  const std::string form =
      "version: 1\nengines: {e: {command: [e, '{tokens}'MODEL], output: generic, facts: "
      "{generated_tokens: {pointer: /n}}}}\nMODELSbackends: {cpu: }\nprompts: {p: {tokens: 32}}\n";
  const auto yaml = [&](const std::string& argument, const std::string& models) {
    std::string text = form;
    text.replace(text.find("MODELS"), 6, models);
    return text.replace(text.find("MODEL"), 5, argument);
  };
  EXPECT_THAT(cell_names(parse_text(yaml("", ""))), ElementsAre("e/none/cpu/p"));
  EXPECT_THAT(cell_names(parse_text(yaml("", "models: {built-in: }\n"))),
              ElementsAre("e/built-in/cpu/p"));
  EXPECT_EQ(expanded(yaml("", ""))->cell("e/none/cpu/p").model_path, "");
  EXPECT_THAT(cell_names(parse_text(yaml(", '{model}'", ""))),
              ElementsAre("weir.yaml:1:1: the configuration needs \"models\""));
  EXPECT_THAT(cell_names(parse_text(yaml(", '{model}'", "models: {none: }\n"))),
              ElementsAre(HasSubstr("{model} in the command needs a file")));
}

TEST(Matrix, IsTheProductOfWhatFitsInTheOrderWritten) {
  const auto result = expanded(config_with(""));
  EXPECT_THAT(result->names(),
              ElementsAre("llama.cpp/tiny/cpu/decode", "llama.cpp/tiny/vulkan/decode",
                          "agave/tiny/cpu/hello", "agave/tiny/vulkan/hello"));
  EXPECT_THAT(result->matrix.notes,
              ElementsAre("left out: llama.cpp × hello: the command takes no text (it has neither "
                          "{prompt} nor {prompt_file})",
                          "left out: agave × decode: the command wants a text, and the prompt has "
                          "none"));
}

TEST(Matrix, SaysHowAProgramWithoutAPromptIsRun) {
  const std::string yaml =
      "version: 1\nengines: {mine: {command: [./mine], output: llama-bench}}\n"
      "backends: {cpu: }\nprompts: {run: {text: once}}\n";
  EXPECT_THAT(config_error(yaml), HasSubstr("env: {WEIR_PROMPT: \"{prompt}\"} at its engine"));
  std::string mended = yaml;
  mended.replace(mended.find("output:"), 0, "env: {WEIR_PROMPT: \"{prompt}\"}, ");
  EXPECT_EQ(config_error(mended), "");
}

TEST(Matrix, LeavesOutPromptsWhoseDimensionsTheCommandCanNotTake) {
  const auto result = expanded(
      "version: 1\n"
      "engines: {a: {command: [a, '{model}', '{tokens}'], output: llama-bench}}\n"
      "models: {m: m}\nbackends: {cpu: }\n"
      "prompts: {fine: {prompt_tokens: 0, tokens: 8, depth: 0}, fill: {prompt_tokens: 8},\n"
      "          deep: {tokens: 8, depth: [0, 4]}, filed: {file: a.txt},\n"
      "          given: {prompt_tokens: 8, args: ['{prompt_tokens}']},\n"
      "          seeded: {tokens: 8, threads: 2, env: {OMP_NUM_THREADS: '{threads}'}}}\n");
  EXPECT_THAT(result->names(),
              ElementsAre("a/m/cpu/fine", "a/m/cpu/deep@d0", "a/m/cpu/given", "a/m/cpu/seeded"));
  EXPECT_THAT(result->matrix.notes,
              ElementsAre("left out: a × fill: the command has no {prompt_tokens}",
                          "left out: a × deep: the command has no {depth}",
                          "left out: a × filed: the command has no {prompt_file}"));
}

TEST(Matrix, MakesACellOfEachDepthOfAList) {
  const auto result = expanded(with_head(
      "prompts: {long: {tokens: 16, depth: [256, 0]}, one: {tokens: 16, depth: 256}}\n"
      "matrix: {exclude: [{prompt: long@d0, backend: vulkan}, {engine: agave, prompt: '*'}]}\n"
      "limits: [{match: {prompt: long}, mode: report}, {match: {prompt: '*@d256'}, mode: off}]\n"));
  EXPECT_THAT(result->names(),
              ElementsAre("llama.cpp/tiny/cpu/long@d256", "llama.cpp/tiny/cpu/long@d0",
                          "llama.cpp/tiny/cpu/one", "llama.cpp/tiny/vulkan/long@d256",
                          "llama.cpp/tiny/vulkan/one"));
  EXPECT_EQ(result->cell("llama.cpp/tiny/cpu/long@d256").depth, 256);
  EXPECT_EQ(result->cell("llama.cpp/tiny/cpu/one").depth, 256);
}

TEST(Matrix, MakesACellOfEachNumberOfThreadsOfAList) {
  const auto result = expanded(
      "version: 1\n"
      "engines: {a: {command: [a, '{model}', '{tokens}', '{threads}'], output: llama-bench}}\n"
      "models: {m: m}\nbackends: {cpu: }\n"
      "prompts: {decode: {tokens: 8, threads: [1, all, 4]}, one: {tokens: 8, threads: 2}}\n");
  EXPECT_THAT(result->names(), ElementsAre("a/m/cpu/decode@t1", "a/m/cpu/decode@t4",
                                           "a/m/cpu/decode@tall", "a/m/cpu/one"));
  EXPECT_EQ(result->cell("a/m/cpu/decode@t4").threads, 4);
  EXPECT_EQ(result->cell("a/m/cpu/decode@tall").threads, k_all_threads);
  EXPECT_EQ(result->cell("a/m/cpu/one").threads, 2);
  EXPECT_NE(result->cell("a/m/cpu/decode@t4").identity, result->cell("a/m/cpu/decode@t1").identity);
  const auto chosen = select(result->matrix, std::vector<std::string>{"a/m/cpu/decode"});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->size(), 3U) << "a name without threads is all of them";
}

TEST(Matrix, MakesVariantsOnlyForTheEnginesTheyName) {
  const auto result =
      expanded(config_with("variants: {default: {}, fused: {engines: {agave: {args: [--mega]}}}}\n"
                           "matrix: {exclude: [{backend: vulkan}]}\n"));
  EXPECT_THAT(result->names(), ElementsAre("llama.cpp/tiny/cpu/decode", "agave/tiny/cpu/hello",
                                           "agave@fused/tiny/cpu/hello"));
  EXPECT_THAT(result->cell("agave@fused/tiny/cpu/hello").command,
              ElementsAre("agave", "{model}", "-n", "{tokens}", "--mega", "-ngl", "0", "{prompt}"));
}

TEST(Matrix, ReplacesTheValuesOfFlagsThatTheCommandHas) {
  const auto result = expanded(
      "version: 1\n"
      "engines: {a: {command: [a, -ngl, '99', --device=gpu, '{args}', '{tokens}'],\n"
      "  output: llama-bench}}\nmodels: {none: }\n"
      "backends: {cpu: {args: [-fa, '1']}}\nprompts: {decode: {tokens: 8}}\n"
      "variants: {half: {replace: {-ngl: '20', --device: none, -fa: 0}},\n"
      "           more: {args: [-ctk, f16], replace: {-ctk: q8_0}}, other: {replace: {-t: 4}}}\n");
  const struct {
    const char* cell;
    std::vector<std::string> command;
  } cases[] = {
      {"a@half/none/cpu/decode", {"a", "-ngl", "20", "--device=none", "-fa", "0", "{tokens}"}},
      {"a@more/none/cpu/decode",
       {"a", "-ngl", "99", "--device=gpu", "-ctk", "q8_0", "-fa", "1", "{tokens}"}},
  };
  for (const auto& c : cases) EXPECT_EQ(result->cell(c.cell).command, c.command) << c.cell;
  EXPECT_EQ(result->names().size(), 2U);
  EXPECT_THAT(result->matrix.notes,
              testing::Contains("left out: a × decode: replace: the command has no -t: "
                                "add it to args"));
  EXPECT_THAT(config_error(config_with("variants: {v: {replace: {ngl: '1'}}}\n")),
              HasSubstr("\"ngl\" is no flag: one starts with -"));
}

// Arguments of docker are not the engine's.
TEST(Matrix, ReplacesNoFlagOfAContainer) {
  EXPECT_THAT(
      config_error("version: 1\n"
                   "engines: {a: {command: [a, '{tokens}'], output: llama-bench,\n"
                   "  container: {runtime: docker, image: me/it:1, args: [--device=gpu]}}}\n"
                   "models: {none: }\nbackends: {cpu: {}}\nprompts: {decode: {tokens: 8}}\n"
                   "variants: {v: {replace: {--device: none}}}\n"),
      HasSubstr("replace: the command has no --device: add it to args"));
}

TEST(Matrix, TakesOnlyWhatIsIncludedAndThenLeavesOutWhatIsExcluded) {
  const auto result = expanded(
      config_with("matrix: {include: [{engine: 'llama*'}, {prompt: hello, backend: cpu}],\n"
                  "         exclude: [{engine: llama.cpp, backend: vulkan}]}\n"));
  EXPECT_THAT(result->names(), ElementsAre("llama.cpp/tiny/cpu/decode", "agave/tiny/cpu/hello"));
  EXPECT_THAT(config_error(config_with("matrix: {exclude: [{engine: '*'}]}\n")),
              HasSubstr("the matrix has no cell"));
  EXPECT_THAT(config_error(with_head("prompts: {p: {file: a}}\n")),
              AllOf(HasSubstr("the matrix has no cell:\n  left out: llama.cpp × p: "),
                    HasSubstr("\n  left out: agave × p: ")));
}

TEST(Matrix, PutsArgumentsAndEnvironmentInTheirOrder) {
  // Precedence engine < model < variant < backend < prompt; for_engine's own come last in each.
  const auto result = expanded(
      "version: 1\n"
      "engines:\n"
      "  a: {command: [a, '{args}', '{model}', '{tokens}'], output: llama-bench,\n"
      "      env: {A: engine, B: engine, C: engine, D: engine, E: engine}, seed: 2}\n"
      "models: {m: {path: m, args: [m], env: {B: model, E: model}}}\n"
      "variants: {v: {args: [v], env: {C: variant}, engines: {a: {args: [va], seed: 4}}}}\n"
      "backends: {cpu: {args: [b], env: {D: backend, C: backend}}}\n"
      "prompts: {p: {tokens: 8, args: [p], env: {E: prompt}}}\n");
  const Cell& cell = result->cell("a@v/m/cpu/p");
  EXPECT_THAT(cell.command, ElementsAre("a", "m", "v", "va", "b", "p", "{model}", "{tokens}"));
  EXPECT_THAT(cell.env,
              UnorderedElementsAre(Pair("A", "engine"), Pair("B", "model"), Pair("C", "backend"),
                                   Pair("D", "backend"), Pair("E", "prompt")));
  EXPECT_EQ(cell.seed, 4);
  EXPECT_EQ(cell.threads, 0);
}

TEST(Matrix, PassesOnTheVariablesThatStandUnderEnvWithoutAValue) {
  const std::string yaml =
      "version: 1\n"
      "engines:\n"
      "  a: {command: [a, '{model}', '{tokens}'], output: llama-bench, env: {A_TOKEN: , B_TOKEN: "
      "x}}\n"
      "models: {m: m}\n"
      "backends: {cpu: {env: {B_TOKEN: , A_TOKEN: set}}}\n"
      "prompts: {p: {tokens: 8}, q: {tokens: 8, engines: {a: {env: {A_TOKEN: }}}}}\n";
  const auto result = expanded(yaml);
  const Cell& cell = result->cell("a/m/cpu/p");
  EXPECT_THAT(cell.passed_variables, ElementsAre("B_TOKEN")) << "the last one that names it holds";
  EXPECT_THAT(cell.env, ElementsAre(Pair("A_TOKEN", "set")));
  EXPECT_EQ(cell.identity.at("environment"), R"({"set":{"A_TOKEN":"set"}})")
      << "what is inherited is no part of what is measured";
  EXPECT_THAT(result->cell("a/m/cpu/q").passed_variables, ElementsAre("A_TOKEN", "B_TOKEN"));
}

TEST(Matrix, RefusesToMeasureOneModelUnderTwoNames) {
  constexpr const char* k_yaml =
      "version: 1\nengines: {{a: {{command: [a, '{{tokens}}'], output: llama-bench}}}}\n"
      "models: {{m: m, n: {}}}\nbackends: {{cpu: }}\nprompts: {{p: {{tokens: 8}}}}\n";
  EXPECT_THAT(config_error(fmt::format(k_yaml, "n")),
              HasSubstr("so that all models would be the same"));
  const auto result = expanded(fmt::format(k_yaml, "{path: n, args: [--big]}"));
  EXPECT_THAT(result->names(), ElementsAre("a/n/cpu/p"));
}

TEST(Matrix, IsPrivateWhereAnyOfItsPartsIs) {
  const auto result = expanded(
      "version: 1\nengines: {a: {command: [a, '{model}', '{tokens}'], output: llama-bench}}\n"
      "models: {m: m, s: {path: s, private: true}}\nbackends: {cpu: }\n"
      "prompts: {p: {tokens: 8}}\n");
  EXPECT_FALSE(result->cell("a/m/cpu/p").is_private);
  EXPECT_TRUE(result->cell("a/s/cpu/p").is_private);
}

TEST(Matrix, RefusesAProductThatNobodyRuns) {
  std::string models = "models: {";
  std::string prompts = "prompts: {";
  for (int i = 0; i < 900; ++i) {
    models += fmt::format("m{}: m, ", i);
    prompts += fmt::format("p{}: {{tokens: 8}}, ", i);
  }
  EXPECT_THAT(config_error("version: 1\nengines: {a: {command: [a], output: llama-bench}}\n" +
                           models + "}\nbackends: {cpu: }\n" + prompts + "}\n"),
              HasSubstr("more than 50000 combinations"));
}

// The parts of the fingerprint.
TEST(Identity, IsWhatWasWrittenWithoutTheProgramsPath) {
  const std::string yaml = config_with("");
  std::string moved = yaml;
  moved.replace(moved.find("[llama-bench"), 12, "[/opt/llama-bench");
  const auto a = expanded(yaml);
  const auto b = expanded(moved);
  const Cell& cell = a->cell("llama.cpp/tiny/vulkan/decode");
  EXPECT_EQ(cell.identity, b->cell("llama.cpp/tiny/vulkan/decode").identity);
  EXPECT_EQ(cell.identity.at("arguments"),
            R"({"command":["-m","{model}","-p","{prompt_tokens}","-n","{tokens}","-r",)"
            R"("{repeats}","-d","{depth}","-ngl","99"]})");
  EXPECT_EQ(cell.identity.at("environment"), R"({"set":{"SHOWN":"0"}})");
  EXPECT_EQ(cell.identity.at("prompt"), R"({"depth":0,"prompt_tokens":0,"tokens":32})");
}

TEST(Identity, ChangesWithEverythingThatCountsMayDependOn) {
  constexpr const char* k_base =
      "version: 1\nengines: {a: {command: [a, '{model}', '{tokens}'], output: llama-bench}}\n"
      "models: {m: m}\nbackends: {cpu: }\nprompts: {p: {tokens: 8}}\n";
  const auto identity = [&](const std::string& from, const std::string& to) {
    std::string yaml = k_base;
    if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
    return expanded(yaml)->matrix.cells.at(0).identity;
  };
  const auto base = identity("", "");
  const std::pair<const char*, const char*> changes[] = {
      {"'{tokens}'", "'{tokens}', -x"},
      {"llama-bench}", "llama-bench, profile_args: [-x]}"},
      {"llama-bench}", "llama-bench, counted_env: {A: 1}}"},
      {"llama-bench}", "llama-bench, env: {A: 1}}"},
      {"tokens: 8", "tokens: 9"},
      {"tokens: 8", "tokens: 8, args: [-x]"},
      {"'{tokens}'], output: llama-bench}", "'{tokens}', '{seed}'], output: llama-bench, seed: 9}"},
  };
  for (const auto& [from, to] : changes) EXPECT_NE(identity(from, to), base) << to;
  EXPECT_EQ(identity("{p: ", "{q: "), base) << "a name is no part of it";
}

TEST(Select, TakesCellsByNameAndSaysWhatThereIs) {
  const auto result = expanded(config_with(""));
  const auto select_names = [&](std::vector<std::string> globs) {
    std::vector<std::string> names;
    const auto chosen = select(result->matrix, globs);
    if (!chosen) return std::vector<std::string>{chosen.error().message};
    for (const Cell& cell : *chosen) names.push_back(cell.key.str());
    return names;
  };
  EXPECT_EQ(select_names({}), result->names());
  EXPECT_THAT(select_names({"*decode", "agave/tiny/cpu/hello"}),
              ElementsAre("llama.cpp/tiny/cpu/decode", "llama.cpp/tiny/vulkan/decode",
                          "agave/tiny/cpu/hello"));
  EXPECT_THAT(select_names({"*", "agave/tiny/cpu/helo"}),
              ElementsAre("no cell is named \"agave/tiny/cpu/helo\" (did you mean "
                          "\"agave/tiny/cpu/hello\"?)\n"
                          "  cells here: llama.cpp/tiny/cpu/decode\n"
                          "              llama.cpp/tiny/vulkan/decode\n"
                          "              agave/tiny/cpu/hello\n"
                          "              agave/tiny/vulkan/hello"));
  EXPECT_EQ(select(result->matrix, std::vector<std::string>{"x"}).error().code, Code::usage);
}

TEST(Select, TakesAllDepthsOfAListByTheNameOfTheirLine) {
  const auto result = expanded(
      with_head("prompts: {long: {tokens: 16, depth: [0, 256]}, one: {tokens: 16, depth: 256}}\n"
                "matrix: {include: [{engine: llama.cpp, backend: cpu}]}\n"));
  const auto chosen = select(result->matrix, std::vector<std::string>{"llama.cpp/tiny/cpu/long"});
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_EQ(chosen->size(), 2U);
  EXPECT_EQ((*chosen)[0].key.depth, 0);
  EXPECT_EQ((*chosen)[1].key.depth, 256);
}

TEST(Select, TakesARenamedCellByItsFormerName) {
  const auto result = expanded(config_with(""));
  const FormerNames former{{"agave/tiny/cpu/hello", *profile::CellKey::parse("old/m/cpu/p@d0")}};
  for (const char* glob : {"old/m/cpu/p@d0", "old/m/cpu/p", "*/cpu/p*"}) {
    const auto chosen = select(result->matrix, std::vector<std::string>{glob}, {}, former);
    ASSERT_TRUE(chosen) << chosen.error().message;
    ASSERT_EQ(chosen->size(), 1U);
    EXPECT_EQ(chosen->front().key.str(), "agave/tiny/cpu/hello");
  }
}

}  // namespace matrix_test
}  // namespace weir::config
