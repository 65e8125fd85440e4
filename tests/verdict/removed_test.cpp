// Tests gate.on_removed: parts of a gate that a pull request's own configuration removes.
#include "gate/verdict/removed.hpp"

#include <gmock/gmock.h>

#include "gate/verdict/waiver.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace removed_test {

using test::reference;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

BaseCell base_cell(const std::string& edited = "") {
  const std::string name = reference().cell.str();
  return {name, name, name, edited, edited.empty() ? "" : "1a2b3c4d5e6f7081"};
}

// Judges a profile by the stored reference cell, as a cell of the base.
CellVerdict hold(const profile::Profile& candidate, const BaseCell& as, bool fails = true,
                 const std::vector<LimitEntry>& limits = {}) {
  const std::vector<baseline::Baseline> baselines{test::stored(reference())};
  const auto choice = baseline::choose_baseline(candidate, baselines);
  CellVerdict cell = judge_cell(candidate, {choice}, limits, {});
  check_removed(candidate, choice, limits, fails, cell);
  if (const auto edit = find_edit(candidate, choice, as)) mark_edited(*edit, cell);
  return cell;
}

profile::Profile uncounted(const std::string& why) {
  profile::Profile candidate = reference();
  candidate.metrics.clear();
  candidate.kernels.reset();
  candidate.counted_runs = 0;
  candidate.counts_skip_reason = why;
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
  gone.current_name = "";
  gone.limits = {"weir.yaml of 1a2b3c4:9:5"};
  const CellVerdict cell = removed_cell(gone);
  EXPECT_EQ(cell.verdict, Outcome::fail);
  EXPECT_EQ(cell.cell.str(), reference().cell.str());
  EXPECT_THAT(cell.notes,
              ElementsAre("the limit at weir.yaml of 1a2b3c4:9:5 holds no cell any more"));
  const NeededWaivers take = needed_waivers(judge_gate({cell}, {}));
  EXPECT_THAT(take.changes, ElementsAre(Waivable{gone.cell, "cell", "1", "0"}));
  EXPECT_THAT(take.beyond, IsEmpty());
}

TEST(Removed, AnEditedCellIsNotJudgedAndTheEditCanBeWaived) {
  const CellVerdict cell = hold(reference(), base_cell("engines.mine.probes"));
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_THAT(test::metric(cell, "cell").reason, HasSubstr("engines.mine.probes"));
  const GateVerdict gate = judge_gate({cell}, {});
  EXPECT_EQ(gate.exit_code, ExitCode::unmeasured);
  const NeededWaivers take = needed_waivers(gate);
  EXPECT_THAT(take.changes,
              ElementsAre(Waivable{cell.cell.str(), "cell", "1", "edited 1a2b3c4d5e6f7081"}));
  EXPECT_THAT(take.beyond, IsEmpty());
  const Waiver waiver{take.changes[0], 12, {}, "a new probe", "ada", "2027-01-01"};
  EXPECT_EQ(waiver_problem(waiver), std::nullopt);
  std::vector<CellVerdict> cells{cell};
  EXPECT_THAT(apply_waivers({waiver}, {{{12, ""}}, 12, {}, "2026-12-01"}, cells), IsEmpty());
  EXPECT_EQ(cells[0].verdict, Outcome::waived);
  // Another edit is a different change.
  std::vector<CellVerdict> rebased{cell};
  rebased[0].judgements[0].current_text = "edited 0000000000000000";
  EXPECT_EQ(apply_waivers({waiver}, {{{12, ""}}, 12, {}, "2026-12-01"}, rebased).size(), 1U);
  EXPECT_EQ(rebased[0].verdict, Outcome::error);
}

TEST(Removed, AnEditDoesNotHideAFailNorAnError) {
  profile::Profile worse = reference();
  worse.metrics.erase("syncs_per_token");
  EXPECT_EQ(hold(worse, base_cell("engines.mine.probes")).verdict, Outcome::fail);
  profile::Profile broken = uncounted("");
  broken.errors = {"counted: it crashed"};
  const CellVerdict cell = hold(broken, base_cell("engines.mine.timeout"));
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_THAT(needed_waivers(judge_gate({cell}, {})).beyond, testing::SizeIs(1));
}

TEST(Removed, WhereNoDeviceIsHereNothingIsMissed) {
  const CellVerdict cell = hold(uncounted("no device here"), base_cell());
  EXPECT_THAT(failed(cell), IsEmpty());
  EXPECT_EQ(test::metric(cell, "dispatches_per_token").verdict, Outcome::skipped);
  EXPECT_THAT(cell.warnings, IsEmpty());
}

TEST(Removed, APassThatBrokeIsAnErrorAsBefore) {
  profile::Profile broken = uncounted("");
  broken.counts_skip_reason.reset();
  broken.errors = {"counted: it crashed"};
  const CellVerdict cell = hold(broken, base_cell());
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

TEST(Removed, FilesOfOtherContentAreAnEdit) {
  profile::Profile candidate = reference();
  candidate.provenance.fingerprint = "beef";
  std::map<std::string, std::string>& parts = candidate.provenance.fingerprint_parts;
  const auto stored_parts = test::stored(reference()).fingerprint_parts;
  parts = stored_parts;
  parts["model header"] = "other";
  baseline::Baseline stored = test::stored(reference());
  stored.fingerprint_parts["model header"] = "as stored";
  const auto choice = baseline::choose_baseline(candidate, {&stored, 1});
  const auto edit = find_edit(candidate, choice, base_cell());
  ASSERT_TRUE(edit);
  EXPECT_EQ(edit->what, "model header");
  EXPECT_EQ(edit->hash, "beef");
  // A baseline that is older than the base's own keys says nothing about files.
  stored.fingerprint_parts["arguments"] = "older";
  EXPECT_FALSE(
      find_edit(candidate, baseline::choose_baseline(candidate, {&stored, 1}), base_cell()));
}

}  // namespace removed_test
}  // namespace weir::verdict
