// Tests the evidence that is read from a verdict, which holds only what changed.
#include "gate/explain/evidence.hpp"

#include <gtest/gtest.h>

#include "gate/base/json.hpp"

#include "tests/explain/build.hpp"
#include "tests/verdict/build.hpp"

namespace weir::explain {
namespace evidence_test {

namespace judged = verdict::test;

Explanation explained(const profile::Profile& before, const profile::Profile& after) {
  const auto cell = judged::judge(after, {judged::stored(before)});
  return explain(make_evidence(cell), nullptr, {default_bands(), {}});
}

// The baseline does not record which ops ran on its CPU, so we cannot know that one moved.
TEST(EvidenceOfAVerdict, NamesTheOpsThatTheGateFoundOnTheCpu) {
  const struct {
    std::set<std::string> ops;
    std::map<std::string, std::int64_t> counts;  // in place of 1
    const char* headline;
  } cases[] = {
      {{"CPY"}, {{"cpu_ops_per_token", 9}}, "Work moved to the CPU: CPY."},
      {{"CPY"}, {{"syncs_per_token", 9}}, "Work moved to the CPU: CPY."},
      {{"ADD", "CONT", "CPY", "ROPE"},
       {{"syncs_per_token", 9}},
       "Work moved to the CPU: ADD, CONT, CPY and 1 more kind."},
  };
  for (const auto& entry : cases) {
    profile::Profile before = judged::reference();
    for (const auto& [name, count] : entry.counts) judged::add_count(before, name, 1);
    before.placement = {profile::Placement::State::seen, "", {}};
    profile::Profile after = before;
    for (const auto& [name, count] : entry.counts) judged::add_count(after, name, count);
    after.placement = {
        profile::Placement::State::ran_elsewhere, "they ran on the CPU", {}, entry.ops};
    const auto why = explained(before, after);
    ASSERT_FALSE(why.findings.empty()) << entry.headline;
    EXPECT_EQ(why.findings.front().headline, entry.headline);
    EXPECT_EQ(why.reason, "placement: they ran on the CPU");
  }
}

TEST(EvidenceOfAVerdict, TellsOfALostFusion) {
  const profile::Profile before = judged::reference();  // mul_mat 53, rms_norm_mul 12
  profile::Profile after = before;
  after.kernels->counts = {{"mul_mat", 53}, {"rms_norm", 12}, {"mul", 12}};
  judged::add_count(after, "dispatches_per_token", 77);
  judged::add_count(after, "barriers_per_token", 58);
  const auto why = explained(before, after);
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.findings.front().kind, "fusion_lost");
  EXPECT_EQ(why.findings.front().delta, Rational(12));
  EXPECT_EQ(
      why.findings.front().headline,
      "Fusion lost: rms_norm_mul ran as one kernel 12 times a token; now rms_norm and mul run "
      "apart.");
}

// An engine's own report counts prefills and tokens; kernels are those of a token.
TEST(EvidenceOfAVerdict, IsOfTokensWherePrefillsAreCountedAsWell) {
  profile::Profile before = judged::reference();
  judged::add_count(before, "barriers_per_prefill", 46);
  profile::Profile after = before;
  after.kernels->counts = {{"mul_mat", 53}, {"rms_norm", 12}, {"mul", 12}};
  judged::add_count(after, "dispatches_per_token", 77);
  judged::add_count(after, "barriers_per_prefill", 58);
  const auto why = explained(before, after);
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.scope, unit::Scope::per_token);
  EXPECT_NE(why.findings.front().headline.find("12 times a token"), std::string::npos)
      << why.findings.front().headline;
}

TEST(EvidenceOfAVerdict, TellsOfOpsOnTheCpu) {
  profile::Profile before = judged::reference();
  before.placement = {profile::Placement::State::shown, "", {}};
  profile::Profile after = before;
  after.placement = {profile::Placement::State::ran_elsewhere, "", {{"SOFT_MAX", 4}}};
  judged::add_count(after, "dispatches_per_token", 61);
  judged::add_count(after, "syncs_per_token", 9);
  const auto why = explained(before, after);
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.findings.front().kind, "work_moved_to_cpu");
  EXPECT_EQ(why.findings.front().ops.front(), "SOFT_MAX");
}

TEST(EvidenceOfAVerdict, TellsOfMoreBarriersBetweenTheSameKernels) {
  const profile::Profile before = judged::reference();
  profile::Profile after = before;
  judged::add_count(after, "barriers_per_token", 65);
  const auto why = explained(before, after);
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "batching_lost");
}

TEST(EvidenceOfAVerdict, TakesAnyNumberOfAVerdictsText) {
  for (const double value : {1e300, -1e300, 9.3e18}) {
    verdict::CellVerdict cell;
    verdict::Judgement metric;
    metric.metric = *unit::find_metric("syncs_per_token");
    metric.nature = profile::Nature::exact;
    metric.baseline = 1;
    metric.current = value;
    cell.judgements = {metric};
    const Evidence evidence = make_evidence(cell);
    EXPECT_EQ(evidence.before.metrics.at("syncs_per_token").exact, Rational(1));
    EXPECT_EQ(evidence.after.metrics.at("syncs_per_token").exact, std::nullopt) << value;
  }
}

TEST(EvidenceOfAVerdict, TellsNothingWhereNothingChanged) {
  profile::Profile same = judged::reference();
  judged::add_time(same, "decode_tokens_per_second", judged::around(30));
  const auto why = explained(same, same);
  EXPECT_TRUE(why.findings.empty());
  EXPECT_FALSE(why.sides_differ);
}

// A verdict keeps one number a side, too few to tell anything from noise again.
TEST(EvidenceOfAVerdict, TellsOfATimeThatTheGateFailed) {
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse("llama.cpp/tiny-llama/vulkan/decode");
  cell.device = "vulkan";
  cell.verdict = verdict::Outcome::fail;
  cell.judgements.resize(2);
  cell.judgements[0].metric = *unit::find_metric("dispatches_per_token");
  cell.judgements[0].nature = profile::Nature::exact;
  cell.judgements[0].baseline = cell.judgements[0].current = 65;
  verdict::Judgement& rate = cell.judgements[1];
  rate.metric = *unit::find_metric("decode_tokens_per_second");
  rate.verdict = verdict::Outcome::fail;
  rate.baseline = 28.6;
  rate.current = 25.1;
  const auto why = explain(make_evidence(cell), nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "time_changed");
  EXPECT_EQ(why.findings.front().headline, "decode tok/s 28.6 → 25.1 (−12.2 %), counts unchanged.");
  EXPECT_EQ(why.verdict, "fail");
  // A change has one number: the gate's estimate, not the ratio of both medians.
  for (const auto& [change, words] :
       {std::pair(-0.187, "decode tok/s 28.6 → 25.1 (−18.7 %), counts unchanged."),
        std::pair(1.2, "decode tok/s 28.6 → 25.1 (+120 %), counts unchanged.")}) {
    rate.change = change;
    const auto shown = explain(make_evidence(cell), nullptr, {default_bands(), {}});
    ASSERT_EQ(shown.findings.size(), 1U);
    EXPECT_EQ(shown.findings.front().headline, words);
  }
  // A change at the start explains no rate.
  verdict::CellVerdict beside = cell;
  beside.judgements.push_back(cell.judgements[0]);
  beside.judgements[2].metric = *unit::find_metric("allocations_fixed");
  beside.judgements[2].verdict = verdict::Outcome::fail;
  beside.judgements[2].baseline = 5;
  beside.judgements[2].current = 6;
  const auto both = explain(make_evidence(beside), nullptr, {default_bands(), {}});
  ASSERT_EQ(both.findings.size(), 2U);
  EXPECT_EQ(both.findings.front().kind, "time_changed");
  EXPECT_EQ(both.findings.back().kind, "memory_changed");
  // A limit on the value itself fails a metric that did not change.
  rate.low = -0.2;
  rate.high = 0.01;
  EXPECT_TRUE(explain(make_evidence(cell), nullptr, {default_bands(), {}}).findings.empty());
}

TEST(EvidenceOfAVerdict, TellsOfACountThatIsNearlyExact) {
  profile::Profile before = judged::reference();
  judged::add_nearly(before, "instructions_per_token", {1e6, 1e6, 1.0001e6});
  profile::Profile after = judged::reference();
  judged::add_nearly(after, "instructions_per_token", {1.2e6, 1.2e6, 1.2001e6});
  Rule rule;
  rule.metric = "instructions_per_token";
  rule.say = "ask Ada";
  for (const auto& [change, holds] :
       {std::pair(Rule::Change::more, true), std::pair(Rule::Change::fewer, false),
        std::pair(Rule::Change::any, true), std::pair(Rule::Change::appeared, false)}) {
    rule.change = change;
    const auto cell = judged::judge(after, {judged::stored(before)});
    const auto why = explain(make_evidence(cell), nullptr, {default_bands(), {rule}});
    ASSERT_FALSE(why.findings.empty());
    EXPECT_EQ(why.findings.front().kind, "count_changed");
    EXPECT_EQ(why.findings.front().delta, Rational(200000));
    EXPECT_EQ(why.findings.back().kind == "user_rule", holds) << static_cast<int>(change);
  }
}

TEST(EvidenceOfAVerdict, SaysWhatTheGateSaidOfACellThatIsNoPass) {
  const auto fresh = judged::judge(judged::reference(), {});
  const auto why = explain(make_evidence(fresh), nullptr, {default_bands(), {}});
  EXPECT_EQ(why.verdict, "new");
  EXPECT_EQ(why.reason, "no baseline is stored") << "of the cell, not of one metric";
  EXPECT_EQ(write_fields(why)["verdict"], "new");
}

TEST(EvidenceOfAVerdict, KeepsTheWholeReason) {
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse("llama.cpp/tiny-llama/vulkan/decode");
  cell.verdict = verdict::Outcome::error;
  cell.reason = "the engine ended with code 1: " + std::string(150, 'w') + " and the last word";
  const auto why = explain(make_evidence(cell), nullptr, {default_bands(), {}});
  EXPECT_EQ(why.reason, cell.reason);
}

TEST(EvidenceOfProfiles, TakesCountsOfTheLengthThatKernelsHave) {
  profile::Profile before = judged::reference();
  before.metrics.clear();
  for (const int length : {8, 16, 24}) {
    judged::add_count(before, "dispatches_at_" + std::to_string(length), 10 * length);
  }
  before.kernels->scope = unit::Scope::at_length;
  before.kernels->length = 16;
  profile::Profile unnamed = before;
  unnamed.kernels.reset();
  EXPECT_EQ(make_evidence(before, before).length, 16);
  EXPECT_EQ(make_evidence(unnamed, unnamed).length, 24);
}

const Check& check(const Explanation& why, const std::string& question) {
  static const Check k_none;
  for (const Check& check : why.checklist) {
    if (check.question == question) return check;
  }
  ADD_FAILURE() << "no such question: " << question;
  return k_none;
}

TEST(ChecklistOfAVerdict, SaysOfANewCellThatThereIsNoBaseline) {
  const auto find_answer = [](const verdict::CellVerdict& cell) {
    const auto why = explain(make_evidence(cell), nullptr, {default_bands(), {}});
    return check(why, "Profiled with a baseline").answer;
  };
  const profile::Profile same = judged::reference();
  EXPECT_EQ(find_answer(judged::judge(same, {judged::stored(same)})), Check::Answer::fine);
  EXPECT_EQ(find_answer(judged::judge(same, {})), Check::Answer::wrong);
}

TEST(ChecklistOfAVerdict, AsksTheGateAboutKernelsThatAreTheSame) {
  const profile::Profile same = judged::reference();
  const auto why = explained(same, same);
  EXPECT_EQ(check(why, "Ops in a row are fused").answer, Check::Answer::fine);
  profile::Profile unnamed = same;
  unnamed.kernels.reset();
  EXPECT_EQ(check(explained(unnamed, unnamed), "Ops in a row are fused").answer,
            Check::Answer::unknown);
}

// A verdict holds ops only where they changed: that SOFT_MAX left the CPU says nothing of the rest.
TEST(ChecklistOfAVerdict, DoesNotClaimThatNoOpIsOnTheCpu) {
  profile::Profile before = judged::reference();
  before.placement = {profile::Placement::State::shown, "", {{"GET_ROWS", 1}, {"SOFT_MAX", 4}}};
  profile::Profile after = before;
  after.placement.cpu_ops = {{"GET_ROWS", 1}};
  EXPECT_EQ(check(explained(before, after), "No op runs on the CPU unasked").answer,
            Check::Answer::unknown);
}

TEST(ChecklistOfProfiles, KnowsWhichOpsAreAllowedOnTheCpu) {
  profile::Profile same = judged::reference();
  same.placement = {profile::Placement::State::shown, "", {{"GET_ROWS", 1}}};
  const auto find_answer = [&](const AllowedOps& allowed) {
    const auto why = explain(make_evidence(same, same), nullptr, {default_bands(), {}, allowed});
    return check(why, "No op runs on the CPU unasked").answer;
  };
  EXPECT_EQ(find_answer(std::nullopt), Check::Answer::unknown);
  EXPECT_EQ(find_answer(std::set<std::string>{}), Check::Answer::wrong);
  EXPECT_EQ(find_answer(std::set<std::string>{"GET_ROWS"}), Check::Answer::fine);
}

TEST(ChecklistOfProfiles, ClaimsNoComparisonOfOneAlone) {
  const auto why = explain(make_evidence(judged::reference()), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.is_alone);
  EXPECT_FALSE(why.sides_differ);
  EXPECT_EQ(check(why, "Profiled with a baseline").answer, Check::Answer::wrong);
  EXPECT_EQ(check(why, "Ops in a row are fused").answer, Check::Answer::unknown);
  EXPECT_EQ(check(why, "Work that may overlap is batched").answer, Check::Answer::unknown);
}

TEST(EvidenceOfProfiles, LeavesOutWhatOneSideLacks) {
  const profile::Profile before = judged::reference();
  profile::Profile after = before;
  after.metrics.erase("barriers_per_token");
  after.kernels.reset();
  const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.findings.empty());
}

// The verdict has only a hash to tell that a program was changed.
TEST(EvidenceOfTwoProfiles, HasKernelsOfOtherCode) {
  profile::Profile before = judged::reference(), after = before;
  const auto with = [](const char* key) {
    profile::KernelSet codes;
    codes.counts = {{key, 53}};
    return codes;
  };
  before.codes = with("mul_mat@00000000c0ffee00");
  after.codes = with("mul_mat@00000000c0ffee01");
  const auto why = explain(make_evidence(before, after), nullptr, {});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "code_changed");

  Evidence spilling = make_evidence(before, after);
  ASSERT_EQ(spilling.code.size(), 1U);
  struct Case {
    std::int64_t before, now;
    const char* headline;
  };
  for (const auto& [was, now, headline] :
       {Case{0, 51, "The kernel mul_mat spills 51 registers; it spilled none."},
        Case{51, 168, "The kernel mul_mat spills 168 registers; it spilled 51."},
        Case{51, 7, "The kernel mul_mat has other code: spilled registers 51 \u2192 7."}}) {
    spilling.code.front().costs = {{"spilled_registers", was, now}};
    EXPECT_EQ(explain(spilling, nullptr, {}).findings.front().headline, headline);
  }
  after.codes->scope = unit::Scope::per_prefill;
  EXPECT_TRUE(explain(make_evidence(before, after), nullptr, {}).findings.empty())
      << "counted by another unit";
}

}  // namespace evidence_test
}  // namespace weir::explain
