// Rules that a team gives in weir.yaml.
#include "gate/explain/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace rules_test {

using test::side;

Side few() { return side({{"dispatches", 65}, {"syncs", 1}}, {{"mul_mat", 29}, {"add", 8}}); }
Side more() { return side({{"dispatches", 69}, {"syncs", 1}}, {{"mul_mat", 33}, {"add", 8}}); }

std::vector<std::string> rule_headlines(const Rule& rule, Side before, Side after) {
  const auto why = explain(test::evidence(std::move(before), std::move(after)), nullptr,
                           {default_bands(), {rule}});
  std::vector<std::string> list;
  for (const Finding& finding : why.findings) {
    if (finding.kind == "user_rule") list.push_back(finding.headline);
  }
  return list;
}

Rule rule(const std::string& kernel, Rule::Change change) {
  Rule rule;
  rule.kernel = kernel;
  rule.change = change;
  rule.say = "ask Ada";
  return rule;
}

TEST(Rule, SpeaksWhenItsKernelChangesSo) {
  using Change = Rule::Change;
  EXPECT_EQ(rule_headlines(rule("mul_*", Change::more), few(), more()).size(), 1U);
  EXPECT_EQ(rule_headlines(rule("mul_*", Change::any), more(), few()).size(), 1U);
  EXPECT_EQ(rule_headlines(rule("mul_*", Change::fewer), few(), more()).size(), 0U);
  EXPECT_EQ(rule_headlines(rule("add", Change::any), few(), more()).size(), 0U)
      << "add did not change";
  EXPECT_EQ(rule_headlines(rule("mul_*", Change::appeared), few(), more()).size(), 0U)
      << "it was there";
}

TEST(Rule, AsksForAllThatItNames) {
  Rule both = rule("mul_mat", Rule::Change::more);
  both.metric = "dispatches_per_token";
  EXPECT_EQ(rule_headlines(both, few(), more()).size(), 1U);
  both.metric = "syncs_per_token";
  EXPECT_EQ(rule_headlines(both, few(), more()).size(), 0U) << "syncs did not change";
  both.metric.clear();
  both.cell = "*/metal/*";
  EXPECT_EQ(rule_headlines(both, few(), more()).size(), 0U) << "the cell is on Vulkan";
}

TEST(Rule, SpeaksOfATimeThatTheGateFailed) {
  Evidence evidence = test::evidence(few(), few());
  evidence.before.metrics["decode_tokens_per_second"].samples = {28.6};
  evidence.after.metrics["decode_tokens_per_second"].samples = {25.1};
  Rule slower;
  slower.metric = "decode_*";
  slower.change = Rule::Change::slower;
  slower.say = "ask Ada";
  const auto says = [&] {
    const auto why = explain(evidence, nullptr, {default_bands(), {slower}});
    return !why.findings.empty() && why.findings.back().kind == "user_rule";
  };
  EXPECT_FALSE(says()) << "one run a side, and nobody judged it";
  evidence.gate = CellRuling{};
  evidence.gate->changed["decode_tokens_per_second"].metric =
      *unit::find_metric("decode_tokens_per_second");
  EXPECT_TRUE(says());
  slower.change = Rule::Change::faster;
  EXPECT_FALSE(says());
}

TEST(Rule, SaysNothingHarmful) {
  Rule hostile = rule("mul_*", Rule::Change::more);
  hostile.say = "\x1b[31mred\x07";
  const auto words = rule_headlines(hostile, few(), more());
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words.front().find('\x1b'), std::string::npos);
}

TEST(Bands, AreHintsAboutTheLaterSide) {
  struct Case {
    std::int64_t dispatches, syncs;
    std::vector<std::string> want;
  };
  const Case cases[] = {{450, 2, {}},
                        {1350, 2, {"dispatches_per_token"}},
                        {65, 2, {"dispatches_per_token"}},
                        {450, 0, {"syncs_per_token"}},
                        {450, 17, {"syncs_per_token"}}};
  for (const Case& entry : cases) {
    const auto why =
        test::explained(few(), side({{"dispatches", entry.dispatches}, {"syncs", entry.syncs}}));
    std::vector<std::string> metrics;
    for (const Hint& hint : why.hints) metrics.push_back(hint.metric);
    EXPECT_EQ(metrics, entry.want) << entry.dispatches << " " << entry.syncs;
  }
}

// Agave's handbook on few barriers: "Risky — may be missing necessary synchronization".
TEST(Bands, SayWhatFewOfACountMayMean) {
  const struct {
    std::int64_t dispatches, barriers, syncs;
    const char* text;
  } cases[] = {
      {400, 20, 1,
       "20 barriers/token is low (less than 100): well fused, a small model, work that runs "
       "elsewhere, or synchronization that is missing."},
      {90, 400, 1,
       "90 dispatches/token is low (less than 100): well fused, a small model, or work that runs "
       "elsewhere."},
      {400, 400, 0, "0 syncs/token: suspicious, for a token has to be waited for."},
  };
  for (const auto& entry : cases) {
    const Side side = test::counts(entry.dispatches, entry.barriers, entry.syncs);
    const auto hints = test::explained(side, side).hints;
    ASSERT_EQ(hints.size(), 1U) << entry.text;
    EXPECT_EQ(hints[0].text, entry.text);
  }
}

TEST(Checklist, TicksWhatTheMeasurementAnswers) {
  const auto why = test::explained(test::counts(690, 690, 1), test::counts(706, 930, 17));
  ASSERT_EQ(why.checklist.size(), 8U) << "Agave's list has eight points";
  EXPECT_EQ(why.checklist[1].answer, Check::Answer::wrong) << "17 syncs";
  EXPECT_EQ(why.checklist[3].answer, Check::Answer::unknown) << "no op was timed";
  EXPECT_EQ(why.checklist[4].answer, Check::Answer::unknown) << "no other model";
  EXPECT_EQ(why.checklist[5].answer, Check::Answer::unknown) << "no probe saw ops";
}

TEST(Checklist, OfANewCellLooksAtTheCountsThatTheVerdictHolds) {
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse("e/m/metal/decode");
  cell.device = "metal";
  cell.verdict = verdict::Outcome::new_;
  for (const auto& [name, count] :
       {std::pair{"dispatches_per_token", 706}, {"syncs_per_token", 17}}) {
    verdict::Judgement metric;
    metric.metric = *unit::find_metric(name);
    metric.nature = profile::Nature::exact;
    metric.current = count;
    metric.current_text = std::to_string(count);
    metric.verdict = verdict::Outcome::new_;
    cell.judgements.push_back(metric);
  }
  cell.judgements.back().nature = profile::Nature::sampled;
  Options options{default_bands(), {}};
  options.other_quantizations = {"q8_0 41.2 tokens/s"};
  const auto why = explain(make_evidence(cell), nullptr, options);
  EXPECT_TRUE(why.findings.empty()) << "nothing to compare with";
  EXPECT_EQ(why.checklist[1].answer, Check::Answer::wrong);
  EXPECT_EQ(why.checklist[1].note, "17");
  EXPECT_EQ(why.checklist[2].note, "706");
  EXPECT_EQ(why.checklist[4].note, "in this run: q8_0 41.2 tokens/s");
  EXPECT_EQ(why.hints.size(), 1U) << "17 syncs are high, 706 dispatches are not";
}

// The gate knew the model; the verdict alone does not name a kernel.
TEST(Checklist, HasTheFusionThatTheGateFoundLostOpen) {
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse("e/m/metal/decode");
  cell.device = "metal";
  cell.verdict = verdict::Outcome::fail;
  cell.put("kernels").verdict = verdict::Outcome::pass;
  Finding lost;
  lost.kind = kind::fusion_lost;
  lost.headline = "Fusion lost: gelu_mul ran as one kernel 6 times a token.";
  cell.findings = {lost};
  const auto why = explain(make_evidence(cell), nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings[0].headline, lost.headline);
  EXPECT_EQ(why.checklist.back().answer, Check::Answer::wrong);
  EXPECT_EQ(why.checklist.back().note, "a fusion was lost");
}

// Matrix multiplications take 0.30 s and 0.31 s of 1 s, in two shapes.
TEST(Checklist, SaysWhatShareOfTheTimeTheSlowestOpTakes) {
  Side side;
  for (const auto& [name, shape, seconds] :
       {std::tuple{"MUL_MAT", "64x64", 0.30}, {"MUL_MAT", "64x256", 0.31}, {"ADD", "64", 0.39}}) {
    Work work;
    work.kind = Work::Kind::op;
    work.name = name;
    work.shape = shape;
    work.times = 1;
    work.seconds = seconds;
    side.works.push_back(work);
  }
  const auto why = explain(test::evidence(side, side), nullptr, {default_bands(), {}});
  EXPECT_EQ(why.checklist[3].note, "MUL_MAT takes 61 % of the time of ops");
}

// Layers of Agave with and without a list of their ops. In an unlisted layer, an op may take longer
// than all listed ones, unless the layer is shorter than one of them.
TEST(Checklist, NamesNoOpTheSlowestWhereMoreTimeIsNotListed) {
  const struct {
    double head, not_listed;
    Check::Answer answer;
    const char* note;
  } cases[] = {
      {0.40, 0.50, Check::Answer::unknown,
       "lm_head_gemv takes 40 % of the time of ops, but 50 % is in no op that is listed"},
      {0.50, 0.40, Check::Answer::fine, "lm_head_gemv takes 50 % of the time of ops"},
      {0, 0.40, Check::Answer::unknown, "no op was timed: weir profile CELL"},
  };
  for (const auto& entry : cases) {
    Side side;
    for (const auto& [name, seconds] : {std::pair{std::string("lm_head_gemv"), entry.head},
                                        {"gemv", entry.head > 0 ? 0.10 : 0.0},
                                        {std::string(observed::k_not_listed), entry.not_listed}}) {
      if (seconds <= 0) continue;
      Work work;
      work.kind = Work::Kind::op;
      work.name = name;
      work.times = 1;
      work.seconds = seconds;
      side.works.push_back(work);
    }
    const auto why = explain(test::evidence(side, side), nullptr, {default_bands(), {}});
    EXPECT_EQ(why.checklist[3].answer, entry.answer) << entry.note;
    EXPECT_EQ(why.checklist[3].note, entry.note);
  }
}

}  // namespace rules_test
}  // namespace weir::explain
