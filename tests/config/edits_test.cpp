// Tests of which keys of weir.yaml the base decides, and of edits of all the others.
#include "gate/config/edits.hpp"

#include <gmock/gmock.h>

#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/config/keys.hpp"
#include "gate/config/rules.hpp"

#include "tests/config/parse_text.hpp"
#include "tests/support/golden.hpp"

namespace weir::config {
namespace edits_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string_view rule_name(EditRule rule) {
  switch (rule) {
    case EditRule::base:
      return "base";
    case EditRule::cells:
      return "cells";
    case EditRule::addable:
      return "addable";
    case EditRule::not_judged:
      break;
  }
  return "not judged";
}

// The part of `path` after the name of an entry: "container.image" of "engines.*.container.image".
std::string key_within(const std::string& path) {
  std::string key = path;
  for (int i = 0; i < 2; ++i) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos) return "";
    key.erase(0, dot + 1);
  }
  return key;
}

// Puts `value` at `key` of an entry; "*" becomes a name and "[]" a list.
Json entry_with(const std::string& key, const Json& value) {
  if (key.empty()) return value;
  const std::size_t dot = key.find('.');
  std::string first = key.substr(0, dot);
  const std::string rest = dot == std::string::npos ? "" : key.substr(dot + 1);
  if (first == "*") first = "mine";
  const bool is_list = first.ends_with("[]");
  if (is_list) first.resize(first.size() - 2);
  const Json inner = entry_with(rest, value);
  Json entry = Json::object();
  entry[first] = is_list ? Json::array({inner}) : inner;
  return entry;
}

// Each key of the schema has a decision. A new one is "not judged"; the file is read when it is
// accepted (WEIR_UPDATE_GOLDENS=1).
TEST(Edits, EachKeyOfTheSchemaHasADecisionThatSomebodyRead) {
  std::string lines;
  for (const KeyInfo& key : list_keys(test_context())) {
    lines += fmt::format("{}: {}\n", key.path(), rule_name(edit_rule(key.path())));
  }
  tests::expect_file("tests/golden/config/edit_rules.txt", lines);
}

TEST(Edits, EachKeyThatNoRuleExemptsIsListedWhereItDiffers) {
  std::size_t listed = 0;
  for (const KeyInfo& info : list_keys(test_context())) {
    const std::string path = info.path(), section = path.substr(0, path.find('.'));
    const bool is_of_cells =
        std::ranges::find(k_cell_sections, section) != std::end(k_cell_sections);
    const std::string key = key_within(path);
    if (!is_of_cells || key.empty()) continue;
    Json base = Json::object(), head = Json::object();
    base[section]["e"] = entry_with(key, "1");
    head[section]["e"] = entry_with(key, "2");
    for (const auto& [before, after] : {std::pair(&base, &head), std::pair(&head, &base)}) {
      // "engines" within an entry is named for the engine of the cell.
      const EntryPlace place{section, "e", "mine"};
      const EntryEdit edit = compare_entries(
          *before, place, *after, place, [](const auto&) { return false; },
          [](std::string_view text) { return short_hash(text); });
      const EditRule rule = edit_rule(path);
      const bool is_exempt = rule == EditRule::base || rule == EditRule::cells;
      const bool is_map_of_keys = key == "engines";  // its own keys are listed
      if (is_exempt || is_map_of_keys) {
        EXPECT_THAT(edit.differences, IsEmpty()) << path;
      } else {
        EXPECT_EQ(edit.differences.size(), 1U) << path;
        EXPECT_FALSE(edit.hash.empty()) << path;
        ++listed;
      }
    }
  }
  EXPECT_GT(listed, 200U);
}

TEST(Edits, ASectionOfALaterVersionTouchesAllCells) {
  const Json base = {{"version", "1"}, {"gate", {{"runs", "3"}}}},
             head = {{"version", "1"}, {"gate", {{"runs", "1"}}}, {"later", "x"}};
  const EntryEdit edit =
      compare_other_sections(base, head, [](std::string_view text) { return short_hash(text); });
  ASSERT_EQ(edit.differences.size(), 1U);
  EXPECT_EQ(edit.differences[0].key, "later");
}

// What judging by the base makes of a pull request's file, as lines.
std::vector<std::string> edited(const std::string& base, const std::string& head) {
  const auto before = parse_text(base), after = parse_text(head);
  EXPECT_TRUE(before) << (before ? "" : before.error().message);
  EXPECT_TRUE(after) << (after ? "" : after.error().message);
  if (!before || !after) return {};
  const auto base_cells = expand(*before), head_cells = expand(*after);
  EXPECT_TRUE(base_cells && head_cells);
  const Edits edits = compare_rules(*before, *base_cells, *after, *head_cells,
                                    [](std::string_view text) { return short_hash(text); });
  std::vector<std::string> lines;
  for (const verdict::Proposal& proposal : edits.proposals) lines.push_back(proposal.words());
  for (const verdict::BaseCell& cell : edits.cells) {
    EXPECT_EQ(cell.edited.empty(), cell.edit.empty());
    if (!cell.edit.empty()) lines.push_back(cell.cell);
  }
  return lines;
}

std::string file_with(const std::string& engine,
                      const std::string& backends = "{cpu: {}, vulkan: {}}",
                      const std::string& rest = "prompts: {decode: {tokens: 32}}\n") {
  return "version: 1\nengines:\n  e: {command: [bench, -m, '{model}', -n, '{tokens}']" + engine +
         "}\nmodels: {tiny: tiny.gguf}\nbackends: " + backends + "\n" + rest;
}
const std::string k_generic =
    ", output: generic, metrics: {load_seconds: {regex: 'load (\\d+)', unit: s}";

TEST(Edits, SettingsThatSilenceARedAreNotJudgedInTheCellsThatTheyTouch) {
  const std::string plain = file_with(", output: llama-bench, probes: [vulkan]");
  EXPECT_THAT(edited(plain, file_with(", output: llama-bench, probes: [vulkan], ok_exit_codes: "
                                      "[139]")),
              ElementsAre("engines.e.ok_exit_codes: added, [\"139\"]: not judged, in 2 cells",
                          "e/tiny/cpu/decode", "e/tiny/vulkan/decode"));
  EXPECT_THAT(edited(plain, file_with(", output: llama-bench, probes: [vulkan]",
                                      "{cpu: {gpu: other}, vulkan: {}}")),
              ElementsAre("backends.cpu.gpu: added, other: not judged", "e/tiny/cpu/decode"));
  EXPECT_THAT(edited(file_with(k_generic + ", held: {regex: a(b), unit: count, better: lower}}"),
                     file_with(k_generic + ", held: {regex: a(b), unit: count, better: lower, "
                                           "kind: memory}}")),
              ElementsAre("engines.e.metrics.held.kind: added, memory: not judged, in 2 cells",
                          "e/tiny/cpu/decode", "e/tiny/vulkan/decode"));
  EXPECT_THAT(edited(file_with(k_generic + "}, facts: {model: {regex: 'of (.*)'}}"),
                     file_with(k_generic + "}")),
              ElementsAre("engines.e.facts.model.regex: of (.*) → removed: not judged, in 2 cells",
                          "e/tiny/cpu/decode", "e/tiny/vulkan/decode"));
}

TEST(Edits, APullRequestThatOnlyAddsIsJudgedOnTheRest) {
  const std::string both = "{cpu: {}, vulkan: {}}", prompts = "prompts: {decode: {tokens: 32}}\n",
                    base = file_with(k_generic + "}", both, prompts);
  const std::string heads[] = {
      // A metric, a prompt, a backend, an engine with arguments of its own, a model, a variant.
      file_with(k_generic + ", mine: {regex: 'm (\\d+)', unit: ms, better: lower}}", both, prompts),
      file_with(k_generic + "}", both, "prompts: {long: {tokens: 64}, decode: {tokens: 32}}\n"),
      file_with(k_generic + "}", "{vulkan: {}, opencl: {}, cpu: {}}", prompts),
      file_with(k_generic + "}}\n  f: {command: [other, '{tokens}'], output: llama-bench",
                "{cpu: {engines: {f: {args: [-x]}}}, vulkan: {}}", prompts),
      file_with(k_generic + "}", both,
                "# a comment\n" + prompts + "matrix: {include: [{engine: e}]}\n"),
      file_with(k_generic + "}", both, prompts + "variants: {default: {}, v: {env: {A: b}}}\n"),
  };
  for (const std::string& head : heads) EXPECT_THAT(edited(base, head), IsEmpty()) << head;
}

TEST(Edits, AnotherDepthIsANewCellAndAnotherDepthOfOneCellAnEdit) {
  const auto file = [](const std::string& depth) {
    return "version: 1\nengines:\n  e: {command: [bench, -m, '{model}', -n, '{tokens}', -d, "
           "'{depth}'], output: llama-bench}\nmodels: {tiny: tiny.gguf}\nbackends: {cpu: {}}\n"
           "prompts: {decode: {tokens: 4, depth: " +
           depth + "}}\n";
  };
  EXPECT_THAT(edited(file("[0, 8]"), file("[0, 8, 16]")), IsEmpty());
  EXPECT_THAT(edited(file("8"), file("16")),
              ElementsAre("prompt: not judged", "e/tiny/cpu/decode"));
}

TEST(Edits, AMetricThatTakesThePlaceOfAMeasuredOneIsNoAddition) {
  const std::string base = file_with(k_generic + "}, probes: [vulkan]");
  for (const char* metric :
       {"syncs_per_token: {regex: 's (\\d+)'}", "peak_rss_bytes: {regex: a(b)}",
        "mine: {regex: 's (\\d+)', unit: count, better: lower}"}) {
    EXPECT_THAT(edited(base, file_with(k_generic + ", " + metric + "}, probes: [vulkan]")).size(),
                testing::Gt(2U))
        << metric;
  }
}

TEST(Edits, ARenamedEntryBringsNoKeysOfItsOwn) {
  const std::string base = file_with(", output: llama-bench, cpu_ops_allowed: {ROPE: cheap}");
  std::string head = file_with(
      ", output: llama-bench, ok_exit_codes: 1, cpu_ops_allowed: {ROPE: "
      "cheap, MUL_MAT: x}",
      "{cpu: {}, gpu: {device: vulkan}}");
  head.replace(head.find("  e: {"), 6, "  f: {");
  const std::vector<std::string> lines = edited(base, head);
  EXPECT_THAT(lines,
              testing::Contains("engines.e.ok_exit_codes: added, 1: not judged, in 2 cells"));
  EXPECT_THAT(lines,
              testing::Contains("cpu_ops_allowed: ROPE → MUL_MAT, ROPE: not judged, in 2 cells"));
}

TEST(Edits, ValuesOfPrivateCellsAreNotShown) {
  const std::string prompt =
      "prompts: {secret: {text: a very long text, tokens: 4, private: true}}\n";
  std::string edit = prompt;
  edit.replace(edit.find("long"), 4, "brief");
  const auto file = [&](const std::string& prompts) {
    return "version: 1\nengines:\n  e: {command: [bench, -m, '{model}', -n, '{tokens}', "
           "'{prompt}'], output: llama-bench}\nmodels: {tiny: tiny.gguf}\nbackends: {cpu: {}}\n" +
           prompts;
  };
  EXPECT_THAT(edited(file(prompt), file(edit)),
              ElementsAre("prompts.secret.text: not judged", "e/tiny/cpu/secret"));
}

}  // namespace edits_test
}  // namespace weir::config
