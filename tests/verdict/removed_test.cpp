// Tests gate.on_removed: parts of a gate that a pull request's own configuration removes.
#include "gate/verdict/removed.hpp"

#include <gmock/gmock.h>

#include "gate/verdict/allowance.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace removed_test {

using test::reference;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

BaseCell base_cell(const std::string& changed = "", const std::string& lost = "") {
  const std::string name = reference().cell.str();
  return {name, name, name, changed, lost};
}

// Judges a profile by the stored reference cell, as a cell of the base.
CellVerdict hold(const profile::Profile& candidate, const BaseCell& as, bool fails = true,
                 const std::vector<LimitEntry>& limits = {}) {
  const std::vector<baseline::Baseline> baselines{test::stored(reference())};
  const auto choice = baseline::choose(candidate, baselines);
  CellVerdict cell = judge_cell(candidate, {choice}, limits, {});
  check_removed(candidate, choice, limits, as, fails, cell);
  return cell;
}

profile::Profile uncounted(const std::string& why) {
  profile::Profile candidate = reference();
  candidate.metrics.clear();
  candidate.kernels.reset();
  candidate.counted_runs = 0;
  candidate.counts_skipped = why;
  test::add_time(candidate, "decode_tokens_per_second", test::around(100));
  return candidate;
}

std::vector<std::string> failed(const CellVerdict& cell) {
  std::vector<std::string> names;
  for (const Judgement& judgement : cell.metrics()) {
    if (judgement.verdict == Outcome::fail) names.push_back(judgement.metric.name);
  }
  if (cell.judgement_of("kernels").verdict == Outcome::fail) names.emplace_back("kernels");
  return names;
}

TEST(Removed, ACellThatIsGoneFailsAndItsLimitsAreNamed) {
  BaseCell gone = base_cell();
  gone.now = "";
  gone.limits = {"weir.yaml of 1a2b3c4:9:5"};
  const CellVerdict cell = removed_cell(gone);
  EXPECT_EQ(cell.verdict, Outcome::fail);
  EXPECT_EQ(cell.cell.str(), reference().cell.str());
  EXPECT_THAT(cell.notes,
              ElementsAre("the limit at weir.yaml of 1a2b3c4:9:5 holds no cell any more"));
  const NeededAllowances take = needed_allowances(judge_gate({cell}, {}));
  EXPECT_THAT(take.changes, ElementsAre(Allowable{gone.cell, "cell", "1", "0"}));
  EXPECT_THAT(take.beyond, IsEmpty());
}

TEST(Removed, WhatADetachedProbeCountedIsMissed) {
  const CellVerdict cell =
      hold(uncounted("the engine has no probes"), base_cell("", "probe vulkan"));
  EXPECT_THAT(failed(cell), UnorderedElementsAre("barriers_per_token", "dispatches_per_token",
                                                 "syncs_per_token", "kernels"));
  EXPECT_EQ(cell.verdict, Outcome::fail);
  EXPECT_EQ(test::metric(cell, "dispatches_per_token").reason,
            "not measured any more: the baseline holds 65; the pull request has no probe vulkan");
  // All of it can be accepted, and nothing of it is stored then.
  const NeededAllowances take = needed_allowances(judge_gate({cell}, {}));
  EXPECT_EQ(take.changes.size(), 4U);
  EXPECT_THAT(take.beyond, IsEmpty());
  std::vector<Allowance> all;
  std::vector<CellVerdict> cells{cell};
  baseline::Baseline now = test::stored(reference());
  for (const Allowable& change : take.changes) {
    all.push_back({change, 12, {}, "no longer wanted", "ada", "2027-01-01"});
    EXPECT_EQ(allowance_problem(all.back()), std::nullopt);
    const auto without = apply_to_baseline(change, now);
    ASSERT_TRUE(without) << change.metric;
    now = *without;
  }
  EXPECT_THAT(apply_allowances(all, {12, "", "2026-12-01"}, cells), IsEmpty());
  EXPECT_EQ(cells[0].verdict, Outcome::accepted);
  EXPECT_FALSE(now.counts.contains("dispatches_per_token"));
  EXPECT_THAT(now.kernels->counts, IsEmpty());
  // Another baseline is a different change.
  std::vector<CellVerdict> rebased{cell};
  rebased[0].judgements[0].baseline_text = "99";
  rebased[0].judgements[0].baseline = 99;
  EXPECT_EQ(apply_allowances(all, {12, "", "2026-12-01"}, rebased).size(), 1U);
}

TEST(Removed, WhereNoDeviceIsHereNothingIsMissed) {
  const CellVerdict cell = hold(uncounted("no device here"), base_cell());
  EXPECT_THAT(failed(cell), IsEmpty());
  EXPECT_EQ(test::metric(cell, "dispatches_per_token").verdict, Outcome::skipped);
  EXPECT_THAT(cell.warnings, IsEmpty());
}

TEST(Removed, APassThatBrokeIsAnErrorAsBefore) {
  profile::Profile broken = uncounted("");
  broken.counts_skipped.reset();
  broken.errors = {"counted: it crashed"};
  const CellVerdict cell = hold(broken, base_cell("", "probe vulkan"));
  EXPECT_THAT(failed(cell), IsEmpty());
  EXPECT_EQ(cell.verdict, Outcome::error);
}

TEST(Removed, OneCountThatIsGoneAmongOthersIsMissed) {
  profile::Profile candidate = reference();
  candidate.metrics.erase("syncs_per_token");
  EXPECT_THAT(failed(hold(candidate, base_cell())), ElementsAre("syncs_per_token"));
  const CellVerdict warned = hold(candidate, base_cell(), false);
  EXPECT_EQ(test::metric(warned, "syncs_per_token").verdict, Outcome::error) << "as before";
  EXPECT_THAT(warned.warnings, ElementsAre(HasSubstr("the baseline holds 1 (gate.on_removed")));
}

TEST(Removed, AnotherCellUnderTheNameFailsWhereItIsTheConfigurationThatChanged) {
  profile::Profile candidate = reference();
  candidate.provenance.fingerprint = "beef";
  EXPECT_THAT(failed(hold(candidate, base_cell("arguments"))), ElementsAre("cell"));
  EXPECT_THAT(failed(hold(candidate, base_cell())), IsEmpty()) << "a model of another content";
  EXPECT_EQ(hold(candidate, base_cell("arguments"), false).verdict, Outcome::new_);
  EXPECT_THAT(failed(hold(reference(), base_cell("arguments"))), IsEmpty()) << "it is judged";
}

TEST(Removed, APlainLimitThatNamesItsMetricIsMissedWithTheProbe) {
  LimitEntry most = test::entry({"submits_per_token"});
  most.max = Amount{3};
  const profile::Profile candidate = reference();
  EXPECT_THAT(failed(hold(candidate, base_cell("", "probe ggml"), true, {most})),
              ElementsAre("submits_per_token"));
  EXPECT_THAT(failed(hold(candidate, base_cell(), true, {most})), IsEmpty())
      << "it never was counted";
  most.mode = Mode::report;
  EXPECT_THAT(failed(hold(candidate, base_cell("", "probe ggml"), true, {most})), IsEmpty());
}

TEST(Removed, CountsThatNothingHoldsAreMissedAsTheCell) {
  const profile::Profile candidate = uncounted("the engine has no probes");
  const baseline::Choice none;
  CellVerdict cell = judge_cell(candidate, {none}, {}, {});
  check_removed(candidate, none, {}, base_cell("", "probe vulkan"), true, cell);
  EXPECT_THAT(failed(cell), ElementsAre("cell"));
}

}  // namespace removed_test
}  // namespace weir::verdict
