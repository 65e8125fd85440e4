// `explain:` of weir.yaml: rules and bands as they are read, and each mistake with its place.
#include <gmock/gmock.h>

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace explain_test {

using explain::Rule;

// The text after it begins at line 10.
ExplainSettings read(std::string_view rest) {
  const auto settings = parse_text(config_with(rest));
  EXPECT_TRUE(settings) << (settings ? "" : settings.error().message);
  return settings ? settings->explain : ExplainSettings{};
}

TEST(ExplainRules, AreReadAsTheyStand) {
  const ExplainSettings read_in = read(
      "explain:\n"
      "  rules:\n"
      "    - when: {kernel: 'mul_mat_vec_q*', change: fewer}\n"
      "      say: 'Is GGML_VK_DISABLE_MMVQ set?'\n"
      "    - when: {metric: syncs_per_token, change: more, cell: '*/vulkan/*'}\n"
      "      say: 'See the runbook, chapter 3.'\n"
      "    - {when: {op: GET_ROWS}, say: x}\n");
  Rule kernel, metric, op;
  kernel.kernel = "mul_mat_vec_q*";
  kernel.change = Rule::Change::fewer;
  kernel.say = "Is GGML_VK_DISABLE_MMVQ set?";
  metric.metric = "syncs_per_token";
  metric.cell = "*/vulkan/*";
  metric.change = Rule::Change::more;
  metric.say = "See the runbook, chapter 3.";
  op.op = "GET_ROWS";
  op.say = "x";
  EXPECT_EQ(read_in.rules, (std::vector<Rule>{kernel, metric, op}));
  EXPECT_TRUE(read_in.bands.empty());
}

TEST(ExplainRules, TakeEachWordForAChange) {
  for (const auto& [change, word] : explain::k_changes) {
    const auto read_in = read(
        "explain: {rules: [{when: {metric: decode_tokens_per_second, change: " + std::string(word) +
        "}, say: x}]}\n");
    ASSERT_EQ(read_in.rules.size(), 1U) << word;
    EXPECT_EQ(read_in.rules.front().change, change) << word;
  }
}

TEST(ExplainRules, MayNameSeveralMetricsWithAGlob) {
  EXPECT_EQ(read("explain: {rules: [{when: {metric: '*_per_token'}, say: x}]}\n").rules.size(), 1U);
}

TEST(ExplainBands, AreReadAsTheyStand) {
  const ExplainSettings read_in = read(
      "explain:\n"
      "  bands:\n"
      "    dispatches_per_token: {low: 20, good: [50, 90.5], high: 120}\n"
      "    syncs_per_prefill: {high: 0}\n");
  explain::Bands bands;
  bands["dispatches_per_token"] = {20, 50, 90.5, 120};
  bands["syncs_per_prefill"].high = 0;
  EXPECT_EQ(read_in.bands, bands);
}

TEST(Explain, MayBeEmptyOrLeftOut) {
  for (const char* text : {"", "explain: {}\n", "explain: {rules: [], bands: {}}\n"}) {
    const ExplainSettings read_in = read(text);
    EXPECT_TRUE(read_in.rules.empty() && read_in.bands.empty()) << text;
  }
}

// A mistake in what follows `explain: ` in line 10; the column counts from that line's begin.
TEST(Explain, RefusesEachMistakeWithItsPlace) {
  const std::string long_saying(2001, 'x');
  std::string many = "{rules: [";
  for (int i = 0; i < 201; ++i) many += "{when: {op: A}, say: x}, ";
  many += "]}";
  const std::pair<std::string, std::string> cases[] = {
      {"{rule: []}",
       "weir.yaml:10:11: unknown key \"rule\" in explain (did you mean \"rules\"?)\n"
       "  known here: rules, bands"},
      {"3", "weir.yaml:10:10: explain must be a mapping, not \"3\""},
      {"{rules: {when: {op: ADD}, say: x}}",
       "weir.yaml:10:18: rules must be a list of {when, say}, not a mapping"},
      {"{rules: [ADD]}", "weir.yaml:10:19: a rule must be a mapping, not \"ADD\""},
      {"{rules: [{say: x}]}", "weir.yaml:10:19: a rule needs \"when\""},
      {"{rules: [{when: {op: ADD}}]}", "weir.yaml:10:19: a rule needs \"say\""},
      {"{rules: [{when: {op: ADD}, say: x, says: y}]}",
       "weir.yaml:10:45: unknown key \"says\" in a rule (did you mean \"say\"?)\n"
       "  known here: when, say"},
      {"{rules: [{when: {op: ADD}, say: [x]}]}", "weir.yaml:10:42: say must be a text, not a list"},
      {"{rules: [{when: {op: ADD}, say: " + long_saying + "}]}",
       "weir.yaml:10:42: say is longer than 2000 characters"},
      {"{rules: [{when: {cell: '*'}, say: x}]}",
       "weir.yaml:10:26: a rule says when it holds: kernel, op or metric"},
      {"{rules: [{when: {kernel: {}}, say: x}]}",
       "weir.yaml:10:26: a rule says when it holds: kernel, op or metric\n"
       "weir.yaml:10:35: kernel must be a text, not a mapping"},
      {"{rules: [{when: {kernal: x}, say: x}]}",
       "weir.yaml:10:27: unknown key \"kernal\" in when (did you mean \"kernel\"?)\n"
       "  known here: kernel, op, metric, cell, change\n"
       "weir.yaml:10:26: a rule says when it holds: kernel, op or metric"},
      {"{rules: [{when: {metric: sync_per_token}, say: x}]}",
       "weir.yaml:10:26: unknown metric \"sync_per_token\" (did you mean \"syncs_per_token\"?)"},
      {"{rules: [{when: {op: ADD, change: less}, say: x}]}",
       "weir.yaml:10:44: unknown change \"less\"\n"
       "  known here: any, more, fewer, appeared, vanished, slower, faster"},
      {"{rules: [{when: {kernel: a, change: faster}, say: x}]}",
       "weir.yaml:10:46: change: faster is for a metric of time: kernels and ops are counted here "
       "(any, more, fewer, appeared, vanished)"},
      {many, "weir.yaml:10:18: more than 200 rules"},
      {"{bands: []}",
       "weir.yaml:10:18: bands must be a mapping of metrics to their band, not a list"},
      {"{bands: {syncs: {high: 3}}}", "weir.yaml:10:19: unknown count \"syncs\""},
      {"{bands: {sync_per_token: {high: 3}}}",
       "weir.yaml:10:19: unknown count \"sync_per_token\" (did you mean \"syncs_per_token\"?)"},
      {"{bands: {load_seconds: {high: 3}}}",
       "weir.yaml:10:19: load_seconds is no count: bands are for counts alone"},
      {"{bands: {syncs_per_token: 3}}", "weir.yaml:10:36: a band must be a mapping, not \"3\""},
      {"{bands: {syncs_per_token: {hi: 3}}}",
       "weir.yaml:10:37: unknown key \"hi\" in a band\n"
       "  known here: low, high, good"},
      {"{bands: {syncs_per_token: {high: many}}}",
       "weir.yaml:10:43: high must be a count from 0 to 1e9, not \"many\""},
      {"{bands: {syncs_per_token: {low: -1}}}",
       "weir.yaml:10:42: low must be a count from 0 to 1e9, not \"-1\""},
      {"{bands: {syncs_per_token: {high: 1e10}}}",
       "weir.yaml:10:43: high must be a count from 0 to 1e9, not \"1e10\""},
      {"{bands: {syncs_per_token: {good: 3}}}",
       "weir.yaml:10:43: good is a list of two counts: [300, 600]"},
      {"{bands: {syncs_per_token: {good: [1, 2, 3]}}}",
       "weir.yaml:10:43: good is a list of two counts: [300, 600]"},
      {"{bands: {syncs_per_token: {good: [1, x]}}}",
       "weir.yaml:10:47: good must be a count from 0 to 1e9, not \"x\""},
      {"{bands: {syncs_per_token: {good: [600, 300]}}}",
       "weir.yaml:10:43: good begins above its end"},
      {"{bands: {syncs_per_token: {low: 5, high: 3}}}",
       "weir.yaml:10:36: low is above high: every count would be unusual"},
  };
  for (const auto& [yaml, message] : cases) {
    EXPECT_EQ(config_error(config_with("explain: " + yaml + "\n")), message) << yaml.substr(0, 80);
  }
}

}  // namespace explain_test
}  // namespace weir::config
