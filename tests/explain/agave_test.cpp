// Tests explain with the two worked examples of Agave's handbook on profiling ("Example:
// Identifying a Regression" and "Megakernel Profiling"). The model has 24 layers, 16 of them
// DeltaNet.
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace agave_test {

using test::best;
using test::counts;
using test::explained;

TEST(AgavesRegression, IsASyncInEachDeltaNetLayer) {
  const ModelFacts model = test::qwen();
  const auto why = explained(counts(690, 690, 1), counts(706, 930, 17), &model);
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "sync_per_layer");
  EXPECT_EQ(best(why)->metric, "syncs_per_token");
  EXPECT_EQ(best(why)->delta, Rational(16));
  EXPECT_EQ(best(why)->per_layer, 1);
  EXPECT_EQ(best(why)->layers.size(), 16U);
  EXPECT_EQ(best(why)->tensors, std::vector<std::string>{"blk.*.ssm_*"});
  EXPECT_EQ(best(why)->text(),
            "A CPU step came in between GPU steps, once in each layer that has blk.*.ssm_*.\n"
            "+16 syncs = 1 × 16 layers with blk.*.ssm_* tensors (of 24 layers)\n"
            "+16 dispatches = 1 × the same 16 layers\n"
            "+240 barriers = 15 × the same 16 layers\n"
            "3 of 3 numbers fit these layers: by chance about 1 in 95.");
  const std::vector<verdict::FindingNumber>& numbers = best(why)->numbers;
  ASSERT_EQ(numbers.size(), 3U) << "the same as data";
  EXPECT_EQ(numbers[2].name, "barriers");
  EXPECT_EQ(numbers[2].delta, Rational(240));
  EXPECT_EQ(numbers[2].per_layer, 15);
  EXPECT_EQ(numbers[2].layers, best(why)->layers);
  EXPECT_EQ(best(why)->look_at, "what those layers do that the other 8 do not.");
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_TRUE(why.findings[1].also);
  EXPECT_EQ(
      why.findings[1].headline,
      "Also possible: +240 barriers = 10 × 24 layers (batching off), but syncs and dispatches "
      "would not fit these layers.");
}

TEST(AgavesMegakernel, SavesTwoDispatchesInEachLayer) {
  const ModelFacts model = test::qwen();
  const auto why = explained(counts(994, 690, 1), counts(946, 642, 1), &model);
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "op_removed") << "no probe saw ops: the CPU may do it";
  EXPECT_EQ(best(why)->per_layer, -2);
  EXPECT_EQ(best(why)->layers.size(), 24U);
  EXPECT_EQ(best(why)->headline, "2 fewer dispatches in each layer: fused, or done elsewhere.");
  EXPECT_EQ(best(why)->lines.front(), "−48 dispatches = 2 × 24 layers");
  EXPECT_FALSE(best(why)->look_at.empty());
}

TEST(AgavesMegakernel, IsAFusionWhereOpsAreKnown) {
  const ModelFacts model = test::qwen();
  Evidence evidence = test::evidence(counts(994, 690, 1), counts(946, 642, 1));
  evidence.cpu_ops_known = true;
  const auto why = explain(evidence, &model, {default_bands(), {}});
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "fusion_gained");
  EXPECT_EQ(best(why)->headline, "2 fewer dispatches in each layer: they are fused.");
}

TEST(AgavesMegakernel, RunsWholeLayersAsOneDispatch) {
  const ModelFacts model = test::qwen();
  const auto why = explained(counts(946, 642, 1), counts(30, 30, 1), &model);
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "fusion_gained");
  EXPECT_EQ(best(why)->headline,
            "Whole layers seem to run as one dispatch each: 30 = 24 layers + 6.");
}

TEST(AgavesRegression, IsToldWithoutAModelToo) {
  const auto why = explained(counts(690, 690, 1), counts(706, 930, 17));
  ASSERT_NE(best(why), nullptr);
  EXPECT_EQ(best(why)->kind, "sync_added");
  EXPECT_TRUE(best(why)->layers.empty());
  ASSERT_EQ(why.findings.size(), 3U) << "waits, barriers, dispatches";
  EXPECT_EQ(why.findings[1].kind, "batching_lost");
  EXPECT_EQ(why.findings[1].headline,
            "Batching lost: 15 more barriers beside each of 16 more dispatches.");
  EXPECT_EQ(why.findings[2].metric, "dispatches_per_token");
}

TEST(AgavesRegression, UndoneNamesTheStepOfTheCpuThatIsGoneFirst) {
  const ModelFacts model = test::qwen();
  const auto with = explained(counts(706, 930, 17), counts(690, 690, 1), &model);
  ASSERT_NE(best(with), nullptr);
  EXPECT_EQ(best(with)->headline,
            "A CPU step between GPU steps is gone, once in each layer that has blk.*.ssm_*.");
  EXPECT_EQ(best(with)->kind, "sync_removed");
  const auto without = explained(counts(706, 930, 17), counts(690, 690, 1));
  ASSERT_EQ(without.findings.size(), 3U);
  EXPECT_EQ(without.findings[0].kind, "sync_removed");
  EXPECT_EQ(without.findings[1].headline,
            "Batching gained: 15 fewer barriers beside each of 16 fewer dispatches.");
}

}  // namespace agave_test
}  // namespace weir::explain
