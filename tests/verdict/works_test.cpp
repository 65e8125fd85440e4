// Tests limits on single kernels and ops, which can gate a new one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/unit/metric.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace works_test {

using testing::ElementsAre;
using testing::HasSubstr;

LimitEntry kernels_free() {
  LimitEntry limit = test::entry({"kernels", "dispatches_per_token"});
  limit.exact = false;
  return limit;
}

std::vector<std::string> work_names(const CellVerdict& cell) {
  std::vector<std::string> names;
  for (const Judgement& judgement : cell.metrics()) {
    if (unit::is_op_or_kernel_metric(judgement.metric.name)) names.push_back(judgement.metric.name);
  }
  return names;
}

// The reference cell has 53 mul_mat and 12 rms_norm_mul a token.
TEST(SingleKernels, AreNotLookedAtUnlessALimitNamesThem) {
  const auto base = test::reference();
  EXPECT_THAT(work_names(test::judge(base, {test::stored(base)})), ElementsAre());
  LimitEntry all = test::entry({"*"});
  all.exact = true;
  EXPECT_THAT(work_names(test::judge(base, {test::stored(base)}, {all})), ElementsAre());
}

TEST(SingleKernels, AreOneMetricForEachNameThatAPatternFits) {
  const auto base = test::reference();
  LimitEntry limit = test::entry({"kernel_calls:*m*"});
  limit.exact = true;
  const CellVerdict cell = test::judge(base, {test::stored(base)}, {limit});
  EXPECT_THAT(work_names(cell), ElementsAre("kernel_calls:mul_mat", "kernel_calls:rms_norm_mul"));
  EXPECT_EQ(test::metric(cell, "kernel_calls:mul_mat").verdict, Outcome::pass);
  EXPECT_EQ(test::metric(cell, "kernel_calls:mul_mat").current, 53);
  EXPECT_EQ(unit::display_name(test::metric(cell, "kernel_calls:mul_mat").metric),
            "calls of mul_mat");
}

TEST(SingleKernels, ThatALimitNamesAndNobodyHasAreSaid) {
  const auto base = test::reference();
  auto timed = test::reference();
  test::add_time(timed, "decode_tokens_per_second", test::around(100));
  CellVerdict broken = test::judge(timed, {test::stored(timed)});
  broken.verdict = Outcome::error;
  Policy counts_only;
  counts_only.counts_only = true;
  struct Case {
    const char* pattern;
    std::vector<CellVerdict> cells;
    Policy policy;
    bool is_reported;
  };
  const auto judge_with = [](const profile::Profile& profile, const char* pattern) {
    LimitEntry limit = test::entry({pattern});
    limit.exact = true;
    return test::judge(profile, {test::stored(profile)}, {limit});
  };
  const std::vector<Case> cases{
      {"kernel_calls:mulmat*", {judge_with(base, "kernel_calls:mulmat*")}, {}, true},
      {"kernel_calls:mul_mat*", {judge_with(base, "kernel_calls:mul_mat*")}, {}, false},
      {"kernel_calls:gone",
       {judge_with(base, "kernel_calls:gone")},
       {},
       false},  // count 0 is a fact
      {"op:lm_hed", {judge_with(timed, "op:lm_hed")}, {}, true},
      {"op:lm_hed", {judge_with(timed, "op:lm_hed")}, counts_only, false},
      {"op:lm_hed", {judge_with(base, "op:lm_hed")}, {}, false},  // no time was measured
      {"op:lm_hed", {judge_with(timed, "op:lm_hed"), broken}, {}, false},
      {"dispatches_per_token", {judge_with(base, "dispatches_per_token")}, {}, false}};
  for (const Case& c : cases) {
    LimitEntry limit = test::entry({c.pattern});
    limit.source = "weir.yaml:11:5";
    const auto lines = limits_on_nothing(c.cells, std::vector{limit}, c.policy);
    EXPECT_EQ(lines.size(), c.is_reported ? 1 : 0) << c.pattern;
    if (c.is_reported) {
      EXPECT_THAT(lines, ElementsAre(fmt::format("\"{}\": nothing by that name was measured "
                                                 "(weir.yaml:11:5)",
                                                 c.pattern)));
    }
  }
}

// A pull request may write any names into a baseline.
TEST(SingleKernels, WithoutANameAreNoMetric) {
  auto base = test::reference();
  base.kernels->counts[""] = 1;
  LimitEntry limit = test::entry({"kernel_calls:*", "kernel_calls:"});
  limit.exact = true;
  const CellVerdict cell = test::judge(base, {test::stored(base)}, {limit});
  EXPECT_THAT(work_names(cell), ElementsAre("kernel_calls:mul_mat", "kernel_calls:rms_norm_mul"));
}

TEST(SingleKernels, ThatAreNewFailWhereTheyMayNotChange) {
  const auto base = test::reference();
  auto now = base;
  now.kernels->counts = {{"mul_mat", 53}, {"rms_norm", 6}, {"rms_norm_mul", 6}};
  LimitEntry limit = test::entry({"kernel_calls:rms_norm*"});
  limit.exact = true;
  const CellVerdict cell = test::judge(now, {test::stored(base)}, {kernels_free(), limit});
  EXPECT_EQ(cell.verdict, Outcome::fail);
  const Judgement& fresh = test::metric(cell, "kernel_calls:rms_norm");
  EXPECT_EQ(fresh.verdict, Outcome::fail);
  EXPECT_EQ(fresh.baseline, 0) << "a kernel that a baseline with kernels lacks ran no time";
  EXPECT_EQ(fresh.reason, "0 to 6 (+6), must not change");
  EXPECT_EQ(test::metric(cell, "kernel_calls:rms_norm_mul").verdict, Outcome::fail);
  EXPECT_EQ(test::metric(cell, "kernel_calls:mul_mat").verdict, Outcome::info) << "not named";
}

TEST(SingleKernels, HaveBoundsWithAndWithoutABaseline) {
  struct Case {
    const char* pattern;
    std::optional<Amount> min, max;
    Outcome want;
  };
  const Case cases[] = {
      {"kernel_calls:mul_mat", {}, Amount{53, false}, Outcome::pass},
      {"kernel_calls:mul_mat", {}, Amount{52, false}, Outcome::fail},
      {"kernel_calls:flash_attn", Amount{1, false}, {}, Outcome::fail},  // never ran
      {"kernel_calls:contig_cpy", {}, Amount{0, false}, Outcome::pass},
      {"kernel_calls:rms_norm_*", {}, Amount{0, false}, Outcome::fail},
  };
  for (const Case& test_case : cases) {
    LimitEntry limit = test::entry({test_case.pattern});
    limit.min = test_case.min;
    limit.max = test_case.max;
    const auto base = test::reference();
    for (const auto& baselines : {std::vector<baseline::Baseline>{}, {test::stored(base)}}) {
      const CellVerdict cell = test::judge(base, baselines, {limit});
      const auto names = work_names(cell);
      ASSERT_EQ(names.size(), 1U) << test_case.pattern;
      EXPECT_EQ(test::metric(cell, names.front()).verdict, test_case.want) << test_case.pattern;
    }
  }
}

TEST(SingleKernels, WithoutABaselineAreNew) {
  LimitEntry limit = test::entry({"kernel_calls:mul_mat"});
  limit.exact = true;
  const CellVerdict cell = test::judge(test::reference(), {}, {limit});
  EXPECT_EQ(test::metric(cell, "kernel_calls:mul_mat").verdict, Outcome::new_);
}

TEST(SingleKernels, BesideABaselineThatNamesNoneAreNew) {
  auto base = test::reference();
  base.kernels->has_names = false;  // kernels are hashes of code
  LimitEntry limit = test::entry({"kernel_calls:mul_mat"});
  limit.exact = true;
  const CellVerdict cell = test::judge(test::reference(), {test::stored(base)}, {limit});
  EXPECT_EQ(test::metric(cell, "kernel_calls:mul_mat").verdict, Outcome::new_);
}

TEST(SingleKernels, ThatNobodyNamesAreToldNotToBeJudged) {
  auto now = test::reference();
  now.kernels.reset();
  LimitEntry limit = test::entry({"kernel_calls:mul_mat"});
  limit.max = Amount{60, false};
  const CellVerdict cell = test::judge(now, {}, {limit});
  EXPECT_THAT(work_names(cell), ElementsAre());
  EXPECT_THAT(cell.warnings, testing::Contains(HasSubstr("kernel_calls:mul_mat: not judged")));
}

// A tolerance is looser than exact, and a change within it is not reported.
TEST(SingleKernels, MayGrowAsFarAsTheLimitSays) {
  const auto base = test::reference();
  auto now = base;
  now.kernels->counts["mul_mat"] = 55;
  for (const auto& [most, want] : {std::pair(2.0, Outcome::pass), std::pair(1.0, Outcome::fail)}) {
    LimitEntry limit = test::entry({"kernel_calls:mul_mat"});
    limit.max_increase = Amount{most, false};
    const CellVerdict cell = test::judge(now, {test::stored(base)}, {kernels_free(), limit});
    EXPECT_EQ(test::metric(cell, "kernel_calls:mul_mat").verdict, want) << most;
  }
}

TEST(SingleOps, OfTheCpuAreCountedOverTheirShapes) {
  auto base = test::reference();
  base.device = "cpu";
  base.kernels->counts = {{"MUL_MAT q8_0,f32->f32 256x64,256->64", 8},
                          {"MUL_MAT q8_0,f32->f32 256x512,256->512", 1},
                          {"ROPE f32 64x4", 8}};
  LimitEntry limit = test::entry({"op_calls:MUL_*", "kernel_calls:*"});
  limit.exact = true;
  const CellVerdict cell = test::judge(base, {test::stored(base)}, {limit});
  EXPECT_THAT(work_names(cell), ElementsAre("op_calls:MUL_MAT"));
  EXPECT_EQ(test::metric(cell, "op_calls:MUL_MAT").current, 9);
}

// The engine prints its command buffers by label, each a count of its own.
TEST(CommandBuffers, MayNotChangeByLabelUnlessALimitSaysSo) {
  using Labels = std::map<std::string, std::int64_t>;
  const auto profile_with = [](const Labels& labels, std::int64_t dispatches = 65) {
    auto profile = test::reference();
    test::add_count(profile, "dispatches_per_token", dispatches);
    for (const auto& [label, count] : labels) test::add_count(profile, "buffers:" + label, count);
    return profile;
  };
  const Labels usual{{"attn", 40}, {"head", 1}};
  LimitEntry free = test::entry({"buffers:*"});
  free.exact = false;
  LimitEntry most = test::entry({"buffers:at*"});
  most.exact = false;
  most.max = Amount{41, false};
  const struct {
    const char* what;
    Labels before, now;
    std::int64_t dispatches;
    std::vector<LimitEntry> limits;
    const char* label;
    Outcome want;
    const char* reason;
  } cases[] = {
      {"the same", usual, usual, 65, {}, "attn", Outcome::pass, ""},
      {"more",
       usual,
       {{"attn", 43}, {"head", 1}},
       65,
       {},
       "attn",
       Outcome::fail,
       "40 to 43 (+3), must not change"},
      {"a new label",
       usual,
       {{"attn", 40}, {"head", 1}, {"moe", 2}},
       65,
       {},
       "moe",
       Outcome::fail,
       "0 to 2 (+2), must not change"},
      {"a label that is gone, with the same work",
       usual,
       {{"attn", 40}},
       65,
       {},
       "head",
       Outcome::improved,
       "1 to 0 (-1), with the same work on the device"},
      {"fewer, with less work",
       usual,
       {{"attn", 38}, {"head", 1}},
       60,
       {},
       "attn",
       Outcome::fail,
       "40 to 38 (-2): fewer command buffers, and nothing here sees where the work went"},
      {"labels that the baseline has not",
       {},
       usual,
       65,
       {},
       "attn",
       Outcome::new_,
       "the baseline does not hold this count"},
      {"labels that are no longer printed",
       usual,
       {},
       65,
       {},
       "attn",
       Outcome::error,
       "could not be measured: the baseline holds 40, this run nothing"},
      {"freed", usual, {{"attn", 43}, {"head", 1}}, 65, {free}, "attn", Outcome::info, ""},
      {"within a bound", usual, {{"attn", 41}, {"head", 1}}, 65, {most}, "attn", Outcome::pass, ""},
      {"above a bound",
       usual,
       {{"attn", 42}, {"head", 1}},
       65,
       {most},
       "attn",
       Outcome::fail,
       "42 is above max 41"},
  };
  for (const auto& test_case : cases) {
    const CellVerdict cell =
        test::judge(profile_with(test_case.now, test_case.dispatches),
                    {test::stored(profile_with(test_case.before))}, test_case.limits);
    const Judgement& judgement = test::metric(cell, std::string("buffers:") + test_case.label);
    EXPECT_EQ(judgement.verdict, test_case.want) << test_case.what << ": " << judgement.reason;
    EXPECT_THAT(judgement.reason, testing::StartsWith(test_case.reason)) << test_case.what;
  }
}

// The table of Agave has the calls of its ops, where no probe names one.
TEST(SingleOps, AreJudgedByTheEnginesOwnProfile) {
  auto base = test::reference();
  base.device = "cpu";
  base.kernels.reset();
  auto now = test::add_count(base, "op_calls:add", 12);
  test::add_count(now, "op_calls:add", 13);
  LimitEntry limit = test::entry({"op_calls:*"});
  limit.exact = true;
  const CellVerdict cell = test::judge(now, {test::stored(base)}, {limit});
  EXPECT_EQ(test::metric(cell, "op_calls:add").verdict, Outcome::fail);
  EXPECT_THAT(cell.warnings, testing::Not(testing::Contains(HasSubstr("not judged"))));
}

TEST(SingleOps, HaveTimesThatAreJudgedAsOthers) {
  const auto base = [] {
    auto profile = test::reference();
    test::add_time(profile, "op:lm_head", test::around(0.002));
    return profile;
  }();
  LimitEntry limit = test::entry({"op:lm_head"});
  limit.max_increase = Amount{0.2, true};
  auto slow = base;
  test::add_time(slow, "op:lm_head", test::around(0.004));
  EXPECT_EQ(test::metric(test::judge(slow, {test::stored(base)}, {limit}), "op:lm_head").verdict,
            Outcome::fail);
  EXPECT_EQ(test::metric(test::judge(slow, {test::stored(base)}), "op:lm_head").verdict,
            Outcome::info)
      << "no limit names it";
}

}  // namespace works_test
}  // namespace weir::verdict
