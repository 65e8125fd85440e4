// Tests a baseline of another driver or another CPU. Equal counts pass, and any difference is new.
// A fail or an error occurs only if no baseline is needed (docs/explanation/counting.md, Device
// class).
#include <array>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace nearest_test {

using namespace test;
using profile::Placement;
using profile::Profile;
using ::testing::Contains;
using ::testing::HasSubstr;

baseline::Baseline of_another_driver(const Profile& profile) {
  baseline::Baseline near = stored(profile);
  near.device_class = "vulkan-10005-0-d-2-0a";
  return near;
}

Profile with_ops(std::map<std::string, std::int64_t> cpu_ops) {
  Profile profile = reference();
  profile.placement = {Placement::State::shown, "", std::move(cpu_ops)};
  return profile;
}

// Returns a profile of a CPU that its engine calls haswell; its baseline is of one called zen4.
Profile on_haswell() {
  Profile profile = with_ops({});
  profile.device = "cpu";
  profile.provenance.device_class = "cpu-haswell";
  return profile;
}

baseline::Baseline of_zen4(Profile profile) {
  profile.provenance.device_class = "cpu-zen4";
  return stored(profile);
}

Policy required() {
  Policy policy;
  policy.require_baseline = true;
  return policy;
}

TEST(NearestClass, MakesNewWhateverDiffersAndNothingFail) {
  struct Case {
    const char* what;
    std::function<void(Profile&)> change;
    const char* reason;
  };
  const Case k_cases[] = {
      {"a count that grew", [](Profile& now) { add_count(now, "dispatches_per_token", 77); },
       "nearest device class"},
      {"a count that is gone", [](Profile& now) { now.metrics.erase("syncs_per_token"); },
       "nearest device class"},
      {"other kernels", [](Profile& now) { now.kernels->counts["add"] = 1; }, "other kernels"},
      {"kernels that differ from token to token",
       [](Profile& now) {
         now.kernels->scope = unit::Scope::at_length;
         now.kernels->length = 24;
       },
       "no longer the same for every token"},
      {"kernels without names", [](Profile& now) { now.kernels->has_names = false; }, "named"},
      {"no kernels", [](Profile& now) { now.kernels.reset(); }, "this run none"},
      {"an op more on the CPU", [](Profile& now) { now.placement.cpu_ops["ROPE"] = 8; },
       "more often on the CPU here: ROPE"},
  };
  for (const Case& test_case : k_cases) {
    const Profile before = with_ops({{"GET_ROWS", 1}});
    Profile after = before;
    test_case.change(after);
    const CellVerdict cell = judge(after, {of_another_driver(before)});
    EXPECT_EQ(cell.verdict, Outcome::new_) << test_case.what;
    std::string reasons =
        cell.judgement_of("kernels").reason + cell.judgement_of("placement").reason + cell.reason;
    for (const Judgement& metric : cell.metrics()) reasons += metric.reason;
    EXPECT_THAT(reasons, HasSubstr(test_case.reason)) << test_case.what;
    EXPECT_THAT(reasons, HasSubstr("nearest device class")) << test_case.what;
    EXPECT_NE(judge(after, {stored(before)}).verdict, Outcome::new_)
        << test_case.what << ": its own class judges";
  }
}

TEST(NearestClass, IsNoExactBaselineWhereOneIsRequired) {
  const auto k_changes = std::to_array<std::function<void(Profile&)>>({
      [](Profile& now) { now.metrics.erase("syncs_per_token"); },
      [](Profile& now) { now.kernels->counts["add"] = 1; },
      [](Profile& now) { now.placement.cpu_ops["ROPE"] = 8; },
  });
  for (const auto& change : k_changes) {
    const Profile before = with_ops({{"GET_ROWS", 1}});
    Profile after = before;
    change(after);
    EXPECT_EQ(judge(after, {of_another_driver(before)}, {}, required()).verdict, Outcome::error);
  }
}

TEST(NearestClass, ShowsOpsOfBothSides) {
  const CellVerdict cell = judge(with_ops({{"ROPE", 8}}), {of_another_driver(with_ops({}))});
  EXPECT_EQ(cell.judgement_of("placement").verdict, Outcome::new_);
  ASSERT_EQ(cell.judgement_of("placement").changed.size(), 1U);
  EXPECT_EQ(cell.judgement_of("placement").changed[0].current, Rational(8));
}

TEST(NearestClass, StillFailsWhatNeedsNoBaseline) {
  Profile after = with_ops({{"ROPE", 8}});
  after.placement.state = Placement::State::ran_elsewhere;
  after.placement.reason = "ROPE ran on the CPU";
  const CellVerdict cell = judge(after, {of_another_driver(with_ops({}))});
  EXPECT_EQ(cell.judgement_of("placement").verdict, Outcome::fail);
}

TEST(NearestClass, MayComputeOtherNumbersButNotOtherWork) {
  Profile after = reference();
  after.work.output_digest = "other";
  CellVerdict cell = judge(after, {of_another_driver(reference())});
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_THAT(cell.notes, Contains(HasSubstr("another device class may round otherwise")));
  after.work.model = "llama 2B";
  cell = judge(after, {of_another_driver(reference())});
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_THAT(cell.reason, HasSubstr("model: llama 2B"));
}

TEST(NearestClass, OfACpuPassesEqualCountsWithANote) {
  const CellVerdict cell = judge(on_haswell(), {of_zen4(on_haswell())}, {}, required());
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_EQ(cell.base, "nearest: cpu-zen4");
  EXPECT_EQ(cell.device_class, "cpu-haswell");
  EXPECT_THAT(cell.notes, Contains("the baseline is of the nearest device class, cpu-zen4"));
}

TEST(NearestClass, OfACpuShowsBothNumbersOfWhatIsNew) {
  Profile now = on_haswell();
  add_count(now, "dispatches_per_token", 66);
  const CellVerdict cell = judge(now, {of_zen4(on_haswell())});
  EXPECT_EQ(cell.verdict, Outcome::new_);
  const Judgement& grown = metric(cell, "dispatches_per_token");
  EXPECT_EQ(grown.verdict, Outcome::new_);
  EXPECT_EQ(grown.baseline, 65);
  EXPECT_EQ(grown.current, 66);
  EXPECT_EQ(grown.reason, "65 to 66: the baseline is of the nearest device class, cpu-zen4");
  EXPECT_EQ(metric(cell, "barriers_per_token").verdict, Outcome::pass);
}

TEST(NearestClass, NeverJudgesInstructions) {
  Profile now = on_haswell();
  add_nearly(now, "instructions_per_token", {1000, 1000, 1000});
  const baseline::Baseline zen4 = of_zen4(now);
  const CellVerdict same = judge(now, {zen4});
  EXPECT_EQ(metric(same, "instructions_per_token").verdict, Outcome::new_) << "equal by chance";
  EXPECT_EQ(metric(same, "instructions_per_token").baseline, 1000);
  EXPECT_THAT(metric(same, "instructions_per_token").reason, HasSubstr("cpu-zen4"));
  EXPECT_EQ(metric(same, "dispatches_per_token").verdict, Outcome::pass);
  add_nearly(now, "instructions_per_token", {2000, 2000, 2000});
  EXPECT_EQ(metric(judge(now, {zen4}), "instructions_per_token").verdict, Outcome::new_);
  EXPECT_EQ(metric(judge(now, {stored(on_haswell()), zen4}), "instructions_per_token").verdict,
            Outcome::new_)
      << "the baseline of its own class has none";
  EXPECT_EQ(metric(judge(now, {of_zen4(now), stored(now)}), "instructions_per_token").verdict,
            Outcome::pass);
}

}  // namespace nearest_test
}  // namespace weir::verdict
