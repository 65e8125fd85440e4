// Findings say no more than was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace said_test {

using test::best;
using test::counts;
using test::explained;
using test::side;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> finding_kinds(const Explanation& why) {
  std::vector<std::string> kinds;
  for (const Finding& finding : why.findings) kinds.push_back(finding.kind);
  return kinds;
}

// Profile of a Vulkan layer alone: kernels by name, no ops.
TEST(LostFusion, IsNoMoveBecauseOfOneCopyLess) {
  const auto why = explained(
      side({{"dispatches", 65}, {"copies", 2}}, {{"mul_mat_vec", 53}, {"rms_norm_mul", 12}}),
      side({{"dispatches", 77}, {"copies", 1}},
           {{"mul_mat_vec", 53}, {"rms_norm", 12}, {"mul", 12}}));
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "fusion_lost");
  EXPECT_THAT(finding_kinds(why), Not(testing::Contains("work_moved_to_gpu")));
}

TEST(GainedFusion, IsNoMoveBecauseOfOneSyncMore) {
  const auto why = explained(
      side({{"dispatches", 77}, {"syncs", 1}},
           {{"mul_mat_vec", 53}, {"rms_norm", 12}, {"mul", 12}}),
      side({{"dispatches", 65}, {"syncs", 2}}, {{"mul_mat_vec", 53}, {"rms_norm_mul", 12}}));
  EXPECT_THAT(finding_kinds(why), Not(testing::Contains("work_moved_to_cpu")));
  EXPECT_THAT(finding_kinds(why), testing::Contains("fusion_gained"));
}

// Kernels, waits and copies changed at once; some cases moved work to the CPU.
TEST(StepInBetween, IsAMoveOnlyWhereWorkIsGoneAndDataCrosses) {
  struct Case {
    const char* what;
    test::Counts before, after;  // kernels
    int syncs, copies;           // new ones
    bool moved;
    int submits = 0;
  };
  const test::Counts layers = {{"mul_mat_vec_f16", 29}, {"rms_norm_mul_f32", 8},
                               {"rope_norm_f32", 4},    {"rope_norm_f32_f16", 4},
                               {"set_rows_f32_f16", 4}, {"flash_attn_f32_f16", 4}};
  const auto with = [&](const test::Counts& changes) {
    test::Counts counts = layers;
    for (const auto& [name, count] : changes) counts[name] = count;
    std::erase_if(counts, [](const auto& entry) { return entry.second == Rational(0); });
    return counts;
  };
  const std::vector<Case> cases = {
      {"one layer's products, fusions beside them apart", layers,
       with({{"mul_mat_vec_f16", 26},
             {"rms_norm_mul_f32", 6},
             {"rms_norm_f32", 1},
             {"add_rms_f32", 2}}),
       2, 2, true},
      {"the same where memory is shared", layers, with({{"mul_mat_vec_f16", 26}}), 2, 0, true},
      {"the cache's rows", layers,
       with({{"rope_norm_f32", 8}, {"rope_norm_f32_f16", 0}, {"set_rows_f32_f16", 0}}), 12, 12,
       true},
      {"half of a fusion", layers, with({{"rms_norm_mul_f32", 4}, {"rms_norm_f32", 4}}), 4, 8,
       true},
      {"half of a fusion where memory is shared", layers,
       with({{"rms_norm_mul_f32", 4}, {"rms_norm_f32", 4}}), 2, 0, true, 40},
      {"a fusion undone in part, and each submission waited for", layers,
       with({{"rms_norm_mul_f32", 4}, {"rms_norm_f32", 4}}), 31, 0, false, 23},
      {"rows fused, and a wait that has nothing to do with it", layers,
       with({{"rope_norm_f32", 0}, {"rope_norm_f32_f16", 8}, {"set_rows_f32_f16", 0}}), 1, 0,
       false},
      {"products that attention does now",
       with({{"flash_attn_f32_f16", 0}, {"mul_mat_vec_f16", 37}, {"soft_max_f32", 4}}), layers, 1,
       1, false},
      {"products in another kernel", layers,
       with({{"mul_mat_vec_f16", 1}, {"mul_mat_vec_glu_f16", 14}}), 1, 1, false},
      {"fusions alone", with({{"rms_norm_mul_f32", 0}, {"rms_norm_f32", 8}, {"mul_f32", 8}}),
       layers, 1, 1, false},
      {"more work, and more waits", layers, with({{"mul_mat_vec_f16", 33}}), 2, 2, false},
      {"less work, and fewer waits", layers, with({{"mul_mat_vec_f16", 26}}), -1, -1, false},
      {"less work, and fewer copies", layers, with({{"mul_mat_vec_f16", 26}}), 1, -1, false},
      {"waits and copies alone", layers, layers, 4, 4, false},
  };
  for (const Case& entry : cases) {
    const auto cell = [&](const test::Counts& kernels, int syncs, int copies, int submits) {
      Rational sum(0);
      for (const auto& [name, count] : kernels) sum = sum.plus(count).value_or(sum);
      return side({{"dispatches", sum}, {"syncs", syncs}, {"copies", copies}, {"submits", submits}},
                  kernels);
    };
    const auto before = cell(entry.before, 20, 20, 10);
    const auto after = cell(entry.after, 20 + entry.syncs, 20 + entry.copies, 10 + entry.submits);
    const auto kinds = finding_kinds(explained(before, after));
    ASSERT_FALSE(kinds.empty()) << entry.what;
    EXPECT_EQ(kinds.front() == "work_moved_to_cpu", entry.moved)
        << entry.what << ": " << kinds.front();
    const auto back = finding_kinds(explained(after, before));
    EXPECT_EQ(back.front() == "work_moved_to_gpu", entry.moved) << entry.what << ", undone";
  }
}

TEST(WorkOnTheCpu, LeavesALostFusionToItself) {
  const auto why = explained(
      side({{"dispatches", 69}}, {{"mul_mat_vec", 53}, {"soft_max", 4}, {"rms_norm_mul", 12}},
           {{"GET_ROWS", 1}}),
      side({{"dispatches", 77}}, {{"mul_mat_vec", 53}, {"rms_norm", 12}, {"mul", 12}},
           {{"GET_ROWS", 1}, {"SOFT_MAX", 4}}));
  ASSERT_EQ(finding_kinds(why), (std::vector<std::string>{"work_moved_to_cpu", "fusion_lost"}));
  EXPECT_EQ(why.findings[0].ops, (std::vector<std::string>{"SOFT_MAX", "soft_max"}));
}

// Every kernel runs twice as often and no wait is new: it decodes twice.
TEST(BroadRise, SeemsToBeAMove) {
  const auto why =
      explained(side({{"dispatches", 22}, {"syncs", 1}},
                     {{"mul_mat_vec", 12}, {"rms_norm_mul", 4}, {"rope", 2}, {"soft_max", 4}}),
                side({{"dispatches", 44}, {"syncs", 1}},
                     {{"mul_mat_vec", 24}, {"rms_norm_mul", 8}, {"rope", 4}, {"soft_max", 8}}));
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->headline, "Work seems to have moved to the GPU.");
}

TEST(MoreBarriers, StandBetweenTheSameDispatchesOnlyWhereTheseAreCounted) {
  const auto why = explained(side({{"barriers", 46}}), side({{"barriers", 65}}));
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->headline,
            "Batching seems lost: +19 barriers a token; dispatches are not known.");
  const auto counted = explained(side({{"dispatches", 65}, {"barriers", 46}}),
                                 side({{"dispatches", 65}, {"barriers", 65}}));
  EXPECT_EQ(best(counted)->headline,
            "Batching lost: +19 barriers a token between the same dispatches.");
}

TEST(Copies, AreMoreOrLessByTheirBytesAndElseByTheLeadingCount) {
  using test::Counts;
  struct Case {
    Counts before, after;
    const char *kind, *headline;
  };
  const Case cases[] = {
      {{{"copies", 2}}, {{"copies", 4}}, "extra_copies", "More is"},
      {{{"copies", 4}, {"tensor_copies", 1}},
       {{"copies", 2}, {"tensor_copies", 9}},
       "copies_removed",
       "Other things are"},
      {{{"copies", 4}, {"copied_bytes", 100}},
       {{"copies", 2}, {"copied_bytes", 900}},
       "extra_copies",
       "Other things are"},
      {{{"copies", 4}, {"copied_bytes", 900}},
       {{"copies", 2}, {"copied_bytes", 100}},
       "copies_removed",
       "Less is"},
  };
  for (const Case& entry : cases) {
    const auto why = explained(side(entry.before), side(entry.after));
    ASSERT_NE(best(why), nullptr) << entry.headline;
    EXPECT_EQ(best(why)->kind, entry.kind) << entry.headline;
    EXPECT_THAT(best(why)->headline, testing::StartsWith(entry.headline));
  }
}

// Names have nothing in common: only the numbers fit.
TEST(FusionByNumber, IsHedged) {
  const auto why = explained(side({{"dispatches", 24}}, {{"soft_max", 24}}),
                             side({{"dispatches", 48}}, {{"argsort", 24}, {"add", 24}}));
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->headline,
            "Fusion seems lost: soft_max ran as one kernel 24 times a token; now add and argsort "
            "run apart.");
}

TEST(AnotherVariant, IsToldInFractions) {
  const Rational half = *Rational::make(1, 2);
  const auto why =
      explained(side({{"dispatches", 1}}, {{"mul_mat_vec_q4_k_f32", half}, {"add_f32", half}}),
                side({{"dispatches", 1}}, {{"mul_mat_vec_q4_k_f16", half}, {"add_f32", half}}));
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "variant_changed");
  EXPECT_THAT(best(why)->headline, HasSubstr("1/2 times a token"));
}

// 384 = 1 x 8 experts x 48 layers.
TEST(SyncPerLayer, CountsTheExpertsInUse) {
  ModelFacts model = test::plain_model(48);
  model.experts_used = 8;
  const auto why = explained(side({{"dispatches", 2000}, {"syncs", 1}}),
                             side({{"dispatches", 2384}, {"syncs", 385}}), &model);
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->headline,
            "A CPU step came in between GPU steps, once for each of 8 experts in each layer.");
}

// One number fits, with 4 layers and a family of 3: the chance is 2/4. With 8 layers and one set it
// is 1/8.
TEST(SyncPerLayer, IsNoFactWhereChanceDoesAsWell) {
  const auto after_syncs = [](std::int64_t more, const ModelFacts& model) {
    return explained(side({{"dispatches", 100}, {"syncs", 1}}),
                     side({{"dispatches", 100}, {"syncs", 1 + more}}), &model);
  };
  const ModelFacts four = test::plain_model(4), eight = test::plain_model(8);
  const auto chance = after_syncs(4, four);
  ASSERT_NE(best(chance), nullptr);
  EXPECT_EQ(best(chance)->kind, "sync_added");
  EXPECT_FALSE(best(chance)->per_layer);
  EXPECT_THAT(best(chance)->lines, testing::Each(Not(HasSubstr("chance"))));
  EXPECT_EQ(best(after_syncs(8, eight))->kind, "sync_per_layer");
}

// Agave waits after each dispatch: when 6 kernels go, their waits go, too.
TEST(SyncRemoved, StandsBehindTheKernelThatIsGone) {
  const auto why =
      explained(side({{"dispatches", 117}, {"syncs", 117}},
                     {{"gemv_f32", 43}, {"gelu_mul", 6}, {"rope", 12}}),
                side({{"dispatches", 111}, {"syncs", 111}}, {{"gemv_f32", 43}, {"rope", 12}}));
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].kind, "op_removed");
  EXPECT_EQ(why.findings[1].kind, "sync_removed");
  const auto alone = explained(counts(117, 0, 117), counts(117, 0, 111));
  EXPECT_EQ(best(alone)->kind, "sync_removed");
}

// Agave 03a2b5c with gelu_mul split into parts, counted on the simulated Radeon RX 7900 XTX. The
// six new waits belong to the six new dispatches.
TEST(SyncAdded, StandsBehindTheFusionThatIsLostWhereEachDispatchIsWaitedFor) {
  const ModelFacts six = test::plain_model(6);
  const auto why = explained(side({{"dispatches", 117}, {"syncs", 117}, {"submits", 117}},
                                  {{"gemv_f32", 43}, {"gelu_mul", 6}, {"rms_norm", 25}}),
                             side({{"dispatches", 123}, {"syncs", 123}, {"submits", 123}},
                                  {{"gemv_f32", 43}, {"gelu", 6}, {"mul", 6}, {"rms_norm", 25}}),
                             &six);
  ASSERT_GE(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].kind, "fusion_lost");
  EXPECT_EQ(why.findings[1].kind, "sync_added");
}

// The sum 8 = 6 + 2 fits six layers, as most numbers do.
TEST(SyncAdded, SplitsARestBehindFewLayersAsAPerhaps) {
  const ModelFacts six = test::plain_model(6);
  const auto why = explained(counts(117, 0, 117), counts(117, 0, 125), &six);
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "sync_added");
  EXPECT_THAT(best(why)->lines,
              testing::ElementsAre("+8 syncs",
                                   "Perhaps 1 × 6 layers + 2: so few layers fit most "
                                   "numbers."));
  EXPECT_FALSE(best(why)->per_layer);
  const auto none = explained(counts(117, 0, 117), counts(117, 0, 120), &six);
  EXPECT_THAT(best(none)->lines, testing::ElementsAre("+3 syncs"));
}

// Each token needs a wait. No wait does not mean a fast engine.
TEST(Checklist, DoesNotTickATokenThatNothingWaitsFor) {
  for (const auto& check : explained(counts(117, 0, 1), counts(117, 0, 0)).checklist) {
    if (check.question.find("Syncs") != std::string::npos) {
      EXPECT_EQ(check.answer, Check::Answer::unknown);
    }
  }
}

// Sums over 8, 16 and 24 tokens are three numbers; works were counted over one.
TEST(CountsAtLengths, AreThoseOfOneLength) {
  Evidence evidence = test::evidence(side({{"dispatches_at_8", 80}, {"dispatches_at_16", 160}}),
                                     side({{"dispatches_at_8", 88}, {"dispatches_at_16", 176}}));
  evidence.scope = unit::Scope::at_length;
  for (const auto& [length, delta] : {std::pair(8, 8), std::pair(16, 16)}) {
    evidence.length = length;
    const auto why = explain(evidence, nullptr, {default_bands(), {}});
    ASSERT_NE(best(why), nullptr);
    EXPECT_EQ(best(why)->metric, "dispatches_at_" + std::to_string(length));
    EXPECT_EQ(best(why)->delta, Rational(delta));
    ASSERT_EQ(why.totals.size(), 1U);
    EXPECT_EQ(why.totals.front().after, Rational(delta * 11));
  }
}

// No line over the lengths fits this count; the cell's other counts are per token.
TEST(CountsAtLengths, AreExplainedBesideCountsPerToken) {
  struct Case {
    test::Counts before, after;
    const char *kind, *metric;
  };
  const Case cases[] = {
      {{{"syncs_at_8", 8}, {"syncs_at_16", 20}},
       {{"syncs_at_8", 8}, {"syncs_at_16", 36}},
       "sync_added",
       "syncs_at_16"},
      {{{"copies_at_16", 20}}, {{"copies_at_16", 36}}, "extra_copies", "copies_at_16"},
      {{{"splits_at_16", 32}}, {{"splits_at_16", 48}}, "splits_changed", "splits_at_16"},
      {{{"submits_at_16", 32}}, {{"submits_at_16", 48}}, "submits_changed", "submits_at_16"},
      {{{"barriers_at_16", 32}}, {{"barriers_at_16", 48}}, "batching_lost", "barriers_at_16"}};
  for (const Case& entry : cases) {
    test::Counts before = entry.before, after = entry.after;
    before["dispatches"] = after["dispatches"] = 65;
    const auto why = explained(side(before), side(after));
    ASSERT_EQ(why.findings.size(), 1U) << entry.metric;
    EXPECT_EQ(why.findings[0].kind, entry.kind);
    EXPECT_EQ(why.findings[0].metric, entry.metric);
    EXPECT_THAT(why.findings[0].headline, Not(HasSubstr("a token"))) << "of 16 tokens";
    EXPECT_TRUE(why.sides_differ);
  }
}

// llama.cpp with a cache of q8_0 (tests/explain/recorded): 77 dispatches a token and at the start.
// No line over the lengths fits its barriers. At 12 tokens there are 12 and 1 times as many more.
TEST(CountsAtLengths, OfBarriersAreComparedWithTheDispatchesThatTheirLineGives) {
  const struct {
    const char* what;
    std::int64_t barriers, dispatches;
    const char* headline;  // "": none about barriers
  } cases[] = {
      {"the same dispatches", 753, 77, "Batching lost: +12 barriers between the same dispatches."},
      {"13 more dispatches", 753, 78, ""},
      {"more than 13 dispatches explain", 841, 78,
       "Batching lost: +100 barriers, more than dispatches explain."},
  };
  for (const auto& entry : cases) {
    const auto with = [](std::int64_t barriers, std::int64_t dispatches) {
      return side({{"dispatches", dispatches},
                   {"dispatches_fixed", dispatches},
                   {"barriers_at_8", 522},
                   {"barriers_at_12", barriers}});
    };
    const auto why = explained(with(741, 77), with(entry.barriers, entry.dispatches));
    std::string headline;
    for (const Finding& finding : why.findings) {
      if (finding.metric.starts_with("barriers")) headline = finding.headline;
    }
    EXPECT_EQ(headline, entry.headline) << entry.what;
  }
}

TEST(FixedCost, NamesNoUnitWhereThereIsNone) {
  Evidence evidence =
      test::evidence(side({{"dispatches_fixed", 500}}), side({{"dispatches_fixed", 520}}));
  evidence.scope = unit::Scope::at_length;
  EXPECT_EQ(best(explain(evidence, nullptr, {default_bands(), {}}))->headline,
            "Only what is done once changed: load, warm-up.");
  evidence.scope = unit::Scope::per_token;
  EXPECT_EQ(best(explain(evidence, nullptr, {default_bands(), {}}))->headline,
            "Only what is done once changed: load, warm-up, prompt; no count a token did.");
}

// llama.cpp b9842 to b10361 on simulated GPUs: 10 to 11 submissions a token, and nothing else.
TEST(Submissions, ArePartsThatTheGpuGetsItsWorkIn) {
  const auto why = explained(side({{"dispatches", 65}, {"submits", 10}}),
                             side({{"dispatches", 65}, {"submits", 11}}));
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "submits_changed");
  EXPECT_EQ(why.findings.front().headline, "The GPU gets its work in more parts a token.");
}

// llama.cpp b4435 to b4529: as many dispatches, 306 pipelines more when a model is loaded.
TEST(FixedCost, IsListedLastBesideOtherChanges) {
  Side before = side({{"dispatches", 97}, {"syncs", 2}}),
       after = side({{"dispatches", 97}, {"syncs", 3}});
  before.metrics["pipelines_fixed"] = after.metrics["pipelines_fixed"] = {Rational(501), {}};
  after.metrics["pipelines_fixed"].exact = Rational(807);
  const auto why = explained(before, after);
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings.front().kind, "sync_added");
  EXPECT_EQ(why.findings.back().kind, "fixed_cost_changed");
  EXPECT_EQ(why.findings.back().headline,
            "What is done once changed as well: load, warm-up, prompt.");
  after.metrics["pipelines_fixed"].exact = Rational(503);  // few
  EXPECT_EQ(explained(before, after).findings.size(), 1U);
}

}  // namespace said_test
}  // namespace weir::explain
