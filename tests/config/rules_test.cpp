// Tests of changes to the rules by an edit of weir.yaml: base text and head text in, the
// proposals out.
#include "gate/config/rules.hpp"

#include <gmock/gmock.h>

#include "gate/base/hash.hpp"

#include "parse_text.hpp"

namespace weir::config {
namespace rules_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Edits edits_between(const std::string& base, const std::string& head) {
  const auto before = parse_text(base), after = parse_text(head);
  EXPECT_TRUE(before) << (before ? "" : before.error().message);
  EXPECT_TRUE(after) << (after ? "" : after.error().message);
  if (!before || !after) return {};
  const auto base_cells = expand(*before), head_cells = expand(*after);
  EXPECT_TRUE(base_cells && head_cells);
  return compare_rules(*before, *base_cells, *after, *head_cells,
                       [](std::string_view text) { return short_hash(text); });
}

// "e/tiny/cpu/decode: gone".
std::vector<std::string> renamings(const Edits& edits) {
  std::vector<std::string> lines;
  for (const verdict::BaseCell& base_cell : edits.cells) {
    lines.push_back(base_cell.cell + ": " +
                    (base_cell.current_name.empty() ? "gone" : base_cell.current_name));
  }
  return lines;
}

std::vector<std::string> proposals_between(const std::string& base, const std::string& head) {
  std::vector<std::string> lines;
  for (const verdict::Proposal& proposal : edits_between(base, head).proposals) {
    lines.push_back(proposal.words());
  }
  return lines;
}

TEST(Rules, NothingIsProposedWhereNothingChanged) {
  EXPECT_THAT(proposals_between(config_with(""), config_with("")), IsEmpty());
}

// k_head has 2 engines × 1 model × 2 backends; llama.cpp takes the prompt "decode" alone, agave
// both.
TEST(Rules, AnEditToALimitIsToldByWhatItChangesAndWhichWay) {
  const struct {
    const char* base;
    const char* head;
    std::vector<std::string> words;
  } cases[] = {
      // The default of throughput is 5 %.
      {"",
       "limits: [{metrics: decode_tokens_per_second, max_drop: 20%}]",
       {"max_drop of decode_tokens_per_second: 5 % → 20 %: looser, in 4 cells"}},
      {"limits: [{metrics: decode_tokens_per_second, max_drop: 20%}]",
       "limits: [{metrics: decode_tokens_per_second, max_drop: 2%}]",
       {"max_drop of decode_tokens_per_second: 20 % → 2 %: tighter, in 4 cells"}},
      {"limits: [{metrics: syncs_per_token, max: 3}]",
       "",
       {"max of syncs_per_token: 3 → removed: looser, in 4 cells"}},
      {"limits: [{metrics: syncs_per_token, min: 1}]",
       "limits: [{metrics: syncs_per_token, min: 2}]",
       {"min of syncs_per_token: 1 → 2: tighter, in 4 cells"}},
      {"limits: [{metrics: load_seconds, max: 1.5}]",
       "limits: [{metrics: load_seconds, max: 2500 ms}]",
       {"max of load_seconds: 1.5 → 2.50 s: looser, in 4 cells"}},
      {"limits: [{metrics: peak_rss_bytes, max: 64KiB, max_increase: 1MB}]",
       "limits: [{metrics: peak_rss_bytes, max: 65536, max_increase: 1e6}]",
       {}},
      {"",
       "limits: [{metrics: barriers_per_token, exact: false}]",
       {"limit of barriers_per_token: exact → not exact: looser, in 4 cells"}},
      {"",
       "limits: [{metrics: barriers_per_token, exact: false, max_increase: 5%, max: 70}]",
       {"limit of barriers_per_token: exact → max_increase 5 %, max 70: looser, in 4 cells"}},
      {"limits: [{metrics: barriers_per_token, exact: false, max_increase: 5%, max: 70}]",
       "limits: [{metrics: barriers_per_token, max: 80}]",
       {"max of barriers_per_token: 70 → 80: looser, in 4 cells",
        "limit of barriers_per_token: max_increase 5 % → exact: tighter, in 4 cells"}},
      {"",
       "limits: [{match: {backend: vulkan}, metrics: kernels, mode: report}]",
       {"mode of kernels: gate → report: looser, in 2 cells"}},
      {"limits: [{metrics: barriers_per_token, max_increase: 4}]",
       "limits: [{metrics: barriers_per_token, max_increase: 5%}]",
       {"max_increase of barriers_per_token: 4 → 5 %: changed, in 4 cells"}},
      {"limits: [{metrics: load_seconds, max_increase: 10%, tolerate: 1%}]",
       "limits: [{metrics: load_seconds, max_increase: 10%, tolerate: 4%}]",
       {"tolerate of load_seconds: 1 % → 4 %: looser, in 4 cells"}},
      {"limits: [{metrics: syncs_per_token, mode: off}]",
       "limits: [{metrics: syncs_per_token, mode: off, min: 1}]",
       {"min of syncs_per_token: added, 1: tighter, in 4 cells",
        "mode of syncs_per_token: off → gate: tighter, in 4 cells"}},
      {"",
       "limits: [{metrics: syncs_per_token, mode: off, min: 1}]",
       {"limit of syncs_per_token: exact → min 1: looser, in 4 cells"}},
      {"limits: [{metrics: syncs_per_token, mode: report, until: 2027-01-01}]",
       "limits: [{metrics: syncs_per_token, mode: report, until: 2028-01-01}]",
       {"until of the limit of syncs_per_token: 2027-01-01 → 2028-01-01: looser"}},
      // Written otherwise, the same in effect; and an entry that a later one overrides.
      {"",
       "limits: [{metrics: decode_tokens_per_second, max_drop: 20%},\n"
       "         {metrics: decode_tokens_per_second, max_drop: 5%}]",
       {}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(proposals_between(config_with(c.base), config_with(c.head)), c.words)
        << c.base << " → " << c.head;
  }
}

TEST(Rules, MetricsThatChangeAlikeAreToldInOneLine) {
  EXPECT_THAT(
      proposals_between(config_with(""),
                        config_with("limits: [{metrics: [splits_per_token, submits_per_token, "
                                    "syncs_per_token], exact: false}]")),
      ElementsAre("limit of splits_per_token, submits_per_token, syncs_per_token: exact → "
                  "not exact: looser, in 4 cells"));
}

TEST(Rules, EachSettingOfTheGateKnowsWhichWayIsLooser) {
  const struct {
    const char* head;
    const char* words;
  } cases[] = {
      {"{false_alarm: 0.0001}", "gate.false_alarm: 0.001 → 0.0001: looser"},
      {"{on_removed: warn}", "gate.on_removed: fail → warn: looser"},
      {"{missed: 0.1}", "gate.missed: 0.01 → 0.1: looser"},
      {"{missed: 0.001}", "gate.missed: 0.01 → 0.001: tighter"},
      {"{stored_level: 0.01}", "gate.stored_level: 0.05 → 0.01: looser"},
      {"{budget: 1m}", "gate.budget: 10 m 0 s → 1 m 0 s: looser"},
      {"{runs: 3}", "gate.runs: 10 → 3: looser"},
      {"{on_inconclusive: fail}", "gate.on_inconclusive: warn → fail: tighter"},
      {"{comment: never}", "gate.comment: changed → never: changed"},
      {"{waive_own: true}", "gate.waive_own: off → on: looser"},
      {"{repeats: 1}", "gate.repeats: 3 → 1: changed"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(proposals_between(config_with(""), config_with(std::string("gate: ") + c.head)),
                ElementsAre(c.words));
  }
}

// An engine of its own for these, from its first line to its last.
std::string with_engine(const std::string& engine, const std::string& rest = "") {
  return "version: 1\nengines:\n  e: {" + engine +
         "}\nmodels: {tiny: tiny.gguf}\nbackends: {vulkan: {}, cpu: {}}\n"
         "prompts: {decode: {tokens: 32}}\n" +
         rest;
}
const std::string k_command =
    "command: [llama-bench, -m, '{model}', -n, '{tokens}'], output: llama-bench";

TEST(Rules, WhatAnEngineMayRunOnTheCpuIsARuleAndItsProbesAreNot) {
  EXPECT_THAT(proposals_between(with_engine(k_command + ", cpu_ops_allowed: {GET_ROWS: cheap}"),
                                with_engine(k_command + ", cpu_ops_allowed: {MUL_MAT: why not}")),
              ElementsAre("cpu_ops_allowed of engine e: MUL_MAT: added, \"why not\": looser",
                          "cpu_ops_allowed of engine e: GET_ROWS: \"cheap\" → removed: tighter"));
  EXPECT_THAT(
      proposals_between(
          with_engine(k_command + ", cpu_ops_allowed: {ADD: {match: {backend: cpu}, why: a}}"),
          with_engine(k_command + ", cpu_ops_allowed: {ADD: {when: ne0 < 9, why: b}}")),
      ElementsAre("cpu_ops_allowed of engine e: ADD where ne0 < 9: added, \"b\": looser",
                  "cpu_ops_allowed of engine e: ADD, backend cpu: \"a\" → removed: tighter"));
  EXPECT_THAT(proposals_between(with_engine(k_command + ", probes: [vulkan, ggml]"),
                                with_engine(k_command + ", probes: [ggml]")),
              ElementsAre("engines.e.probes: [\"vulkan\",\"ggml\"] → [\"ggml\"]: not judged, in "
                          "2 cells"));
}

TEST(Rules, AVariableThatIsPassedThroughIsToldWhereverItStands) {
  EXPECT_THAT(
      proposals_between(with_engine(k_command), with_engine(k_command + ", env: {GITHUB_TOKEN: }")),
      ElementsAre("engines.e.env.GITHUB_TOKEN: added, null: not judged, in 2 cells"));
  EXPECT_THAT(
      proposals_between(config_with(""), config_with("variants: {default: {env: {A_TOKEN: }}}\n")),
      ElementsAre("variants.default.env.A_TOKEN: added, null: not judged, in 4 cells"));
}

TEST(Rules, ALimitOnASingleKernelIsTold) {
  EXPECT_THAT(proposals_between(config_with("limits: [{metrics: 'kernel_calls:mul*', max: 4}]\n"),
                                config_with("limits: [{metrics: 'kernel_calls:mul*', max: 8}]\n")),
              ElementsAre("max of kernel_calls:mul*: 4 → 8: looser, in 4 cells"));
  EXPECT_THAT(proposals_between(config_with("limits: [{metrics: 'op_calls:ROPE', max: 4}]\n"),
                                config_with("")),
              ElementsAre("max of op_calls:ROPE: 4 → removed: looser, in 4 cells"));
}

TEST(Rules, CellsThatAreGoneOrAreOtherCellsAreToldFirst) {
  const std::string base = with_engine(k_command);
  const Edits gone =
      edits_between(base, with_engine(k_command,
                                      "matrix: {exclude: [{backend: cpu}]}\n"
                                      "limits: [{metrics: dispatches_fixed, max: 9}]\n"));
  EXPECT_THAT(renamings(gone),
              ElementsAre("e/tiny/vulkan/decode: e/tiny/vulkan/decode", "e/tiny/cpu/decode: gone"));
  ASSERT_EQ(gone.proposals.size(), 2U);
  EXPECT_EQ(gone.proposals[0].words(),
            "cells that are not measured any more: 1 of 2 → removed: looser, and holds already");
  EXPECT_EQ(gone.proposals[1].words(), "max of dispatches_fixed: added, 9: tighter");
}

TEST(Rules, ACellUnderANewNameThatIsMeasuredAsBeforeIsRenamed) {
  const std::string base = config_with("");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string head = base;
    for (std::size_t at = 0; (at = head.find(from, at)) != std::string::npos; at += to.size()) {
      head.replace(at, from.size(), to);
    }
    return edits_between(base, head);
  };
  struct Case {
    const char *from, *to, *shown;
  };
  for (const auto& [from, to, shown] :
       {Case{"decode:", "generate:", "generate"}, Case{"tiny:", "small:", "/small/"},
        Case{"vulkan: {args", "gpu: {device: vulkan, args", "/gpu/"}}) {
    const Edits renamed = with(from, to);
    const auto words = renamings(renamed);
    EXPECT_THAT(words, Contains(HasSubstr(shown))) << to;
    EXPECT_THAT(words, Not(Contains(HasSubstr("gone")))) << to;
    EXPECT_THAT(renamed.proposals, IsEmpty()) << to;
  }
  // Other work under another name is no cell of the base.
  EXPECT_THAT(renamings(with("decode: {tokens: 32", "generate: {tokens: 33")),
              Contains(HasSubstr("gone")));
}

TEST(Rules, ALimitOfTheBaseWhoseCellsAreGoneIsNamedWithThem) {
  const Edits edits =
      edits_between(with_engine(k_command,
                                "limits:\n  - {match: {backend: cpu}, mode: report}\n"
                                "  - {metrics: dispatches_fixed, max: 9}\n"),
                    with_engine(k_command, "matrix: {exclude: [{backend: cpu}]}\n"));
  EXPECT_THAT(edits.cells[0].limits, IsEmpty());
  ASSERT_EQ(edits.cells[1].limits.size(), 1U);
  EXPECT_THAT(edits.cells[1].limits[0], HasSubstr(":8:"));
}

TEST(Rules, AreTakenFromTheBaseForWhatBothHaveAndANewEngineKeepsItsOwnList) {
  auto base = parse_text(with_engine(k_command + ", cpu_ops_allowed: {GET_ROWS: cheap}",
                                     "limits: [{metrics: syncs_per_token, max: 3}]\n"
                                     "gate: {runs: 7}\n"));
  auto head =
      parse_text("version: 1\nengines:\n  e: {" + k_command +
                 ", cpu_ops_allowed: {MUL_MAT: x}, timeout: 7s}\n" + "  fresh: {" + k_command +
                 ", cpu_ops_allowed: {ROPE: y}}\nmodels: {tiny: tiny.gguf}\nbackends: {cpu: {}}\n"
                 "prompts: {decode: {tokens: 32}}\ngate: {runs: 1}\n");
  ASSERT_TRUE(base && head);
  copy_rules(*base, *head);
  EXPECT_EQ(head->gate.runs, 7);
  ASSERT_EQ(head->limits.size(), 1U);
  EXPECT_THAT(head->engines[0].cpu_ops_allowed, ElementsAre(CpuOp{"GET_ROWS", "cheap"}));
  EXPECT_EQ(head->engines[0].timeout_seconds, 7);  // how it is measured
  EXPECT_THAT(head->engines[1].cpu_ops_allowed, ElementsAre(CpuOp{"ROPE", "y"}));
}

TEST(Rules, ALimitOfTheBaseMayNameWhatTheHeadNoLongerHas) {
  // In a whole matrix, an entry that matches nothing is an error.
  const auto base = parse_text(with_engine(k_command,
                                           "limits: [{match: {backend: cpu}, mode: report}]\n"
                                           "gate: {reference: e/tiny/cpu/decode}\n"));
  auto head = parse_text(
      "version: 1\nengines:\n  e: {" + k_command +
      "}\nmodels: {tiny: tiny.gguf}\nbackends: {vulkan: {}}\nprompts: {decode: {tokens: 32}}\n");
  ASSERT_TRUE(base && head);
  const auto cells = expand(*head);
  ASSERT_TRUE(cells);
  copy_rules(*base, *head);
  EXPECT_EQ(head->limits.size(), 1U);
  EXPECT_TRUE(expand(*head)) << "a configuration is expanded more than once";
}

TEST(Rules, AnEntryOfTheBaseWhoseTimeIsOverHoldsNoMoreButKeepsNobodyOut) {
  Supported past = test_context();
  past.today = "";
  auto base = parse_settings(
      with_engine(k_command,
                  "limits: [{metrics: syncs_per_token, mode: report, until: 2026-01-01},\n"
                  "         {metrics: copies_per_token, mode: off, min: 1, until: 2026-01-01},\n"
                  "         {metrics: syncs_per_token, max: 4, until: 2026-01-01}]\n"),
      "weir.yaml", past);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_THAT(
      remove_expired_limits(*base, "2026-11-20"),
      testing::Each(testing::EndsWith("until 2026-01-01, which is over: it holds no more")));
  ASSERT_EQ(base->limits.size(), 1U);  // the one that holds something stays
  EXPECT_TRUE(base->limits[0].max);
}

}  // namespace rules_test
}  // namespace weir::config
