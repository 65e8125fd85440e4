// Counts as multiples of a model's layers.
#include "gate/explain/fit.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/explain/patterns.hpp"

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace fit_test {

TEST(Fit, PutsTheSetThatExplainsMostAmountsFirst) {
  const auto results = fits({{"syncs", 16}, {"dispatches", 16}, {"barriers", 240}}, test::qwen());
  ASSERT_FALSE(results.empty());
  EXPECT_EQ(results.front().set.tensors, "blk.*.ssm_*");
  ASSERT_EQ(results.front().terms.size(), 3U);
  EXPECT_EQ(results.front().terms[0].per_layer, 1);
  EXPECT_EQ(results.front().terms[2].per_layer, 15) << "240 = 15 x 16";
}

TEST(Fit, TakesTheSimplestWhereSeveralSetsExplainAsMuch) {
  // 48 = 2 x 24 = 3 x 16 = 6 x 8.
  const auto results = fits({{"dispatches", -48}, {"barriers", -48}}, test::qwen());
  ASSERT_GE(results.size(), 2U);
  EXPECT_EQ(results[0].set.size(), 24);
  EXPECT_EQ(results[0].terms[0].per_layer, -2);
  EXPECT_EQ(results[1].set.size(), 16);
  EXPECT_EQ(results[1].terms[0].per_layer, -3);
}

TEST(Fit, FindsNothingInANumberThatIsNoMultiple) {
  EXPECT_TRUE(fits({{"syncs", 7}}, test::qwen()).empty());
  EXPECT_TRUE(fits({{"syncs", *Rational::make(33, 2)}}, test::qwen()).empty());
  EXPECT_TRUE(fits({{"syncs", 0}}, test::qwen()).empty());
}

TEST(Fit, TakesAnyNumber) {
  constexpr auto k_min_amount = std::numeric_limits<std::int64_t>::min();  // has no absolute value
  constexpr auto k_max_amount = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t amount : {k_min_amount, k_min_amount + 1, k_max_amount}) {
    EXPECT_TRUE(fits({{"syncs", amount}}, test::qwen()).empty()) << amount;
  }
}

TEST(Fit, IsLessSurprisingTheSmallerTheSet) {
  // Among random numbers one in four is a multiple of 4, one in 32 of 32.
  const auto small = fits({{"syncs", 8}}, test::plain_model(4));
  const auto large = fits({{"syncs", 32}}, test::plain_model(32));
  ASSERT_EQ(small.size(), 1U);
  ASSERT_EQ(large.size(), 1U);
  EXPECT_DOUBLE_EQ(small.front().chance, 1.0 / 4);
  EXPECT_DOUBLE_EQ(large.front().chance, 1.0 / 32);
  EXPECT_TRUE(fits({{"syncs", 8}}, test::plain_model(2)).empty()) << "every second number fits";
}

TEST(Fit, AllowsASmallRestOnlyBesideManyLayers) {
  const auto results = fits({{"dispatches", 65}}, test::plain_model(32));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results.front().terms.front().per_layer, 2);
  EXPECT_EQ(results.front().terms.front().rest, 1);
  EXPECT_EQ(term_text(results.front().terms.front(), "32 layers"), "2 × 32 layers + 1");
  EXPECT_TRUE(fits({{"dispatches", 9}}, test::plain_model(4)).empty());
}

TEST(Fit, CountsExpertsInUse) {
  ModelFacts model = test::plain_model(6);
  model.experts_used = 8;
  const auto results = fits({{"dispatches", 48}, {"syncs", 48}}, model);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].set.experts * results[1].set.experts, 8) << "8 x 6, and 8 experts x 6";
}

TEST(Fit, SaysChanceInWords) {
  EXPECT_EQ(chance_text(0.5), "") << "it says nothing";
  EXPECT_EQ(chance_text(0.125), "by chance about 1 in 8");
  EXPECT_EQ(chance_text(1.0 / 1365), "by chance about 1 in 1400");
  EXPECT_EQ(chance_text(1e-9), "by chance less than once in a million");
}

// An engine may have thousands of counters of its own, and each set of layers is tried with each.
TEST(Fit, ListsSoManyAmountsAndTheNumberOfTheRest) {
  const Evidence evidence = test::evidence({}, {});
  const Differences differences = find_differences(evidence);
  const ModelFacts model = test::qwen();
  const ExplainState state{evidence, differences, &model};
  std::vector<Amount> amounts;
  for (int i = 0; i < 3000; ++i) amounts.push_back({fmt::format("own{}", i), i + 1});
  Finding finding;
  add_amounts(state, amounts, finding);
  EXPECT_THAT(finding.lines, testing::Contains("and 2936 more"));
  EXPECT_LE(finding.lines.size(), 70U);
}

}  // namespace fit_test
}  // namespace weir::explain
