// Tests the rule that raises alerts on a trend.
#include "gate/stats/trend_rule.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace weir::stats {
namespace trend_rule_test {

// Numbers by an independent program that shares no code with this one
// (docs/evidence/change-points.md).
TEST(TrendRule, GivesTheNumbersOfItsTestVector) {
  TrendRule rule;
  const auto value = [](std::size_t i) {
    const double noise = static_cast<double>((37 * i) % 11) - 5;
    return std::log(100 + 0.1 * noise - (i >= 34 ? 3 : 0));
  };
  for (std::size_t i = 0; i < 36; ++i) rule.add(value(i));
  const struct {
    std::size_t night;
    double line, memory, noise, reach;
  } fits[] = {{20, 4.605927, 0.4425, 0.004182, 3.1780}, {33, 4.605267, 0.3450, 0.003940, 3.2858}};
  for (const auto& expected : fits) {
    const NightFit* fit = rule.fit_of(expected.night);
    ASSERT_NE(fit, nullptr);
    EXPECT_NEAR(fit->line_at(expected.night), expected.line, 5e-7);
    EXPECT_NEAR(fit->memory, expected.memory, 5e-5);
    EXPECT_NEAR(fit->noise, expected.noise, 5e-7);
    EXPECT_NEAR(fit->reach, expected.reach, 5e-5);
  }
  const auto expect = [&](std::size_t points, double evidence, double evidence_needed,
                          double clearness, double clearness_needed) {
    const auto far = rule.distance(Alert::Kind::step, points);
    ASSERT_TRUE(far.has_value());
    EXPECT_NEAR(far->evidence, evidence, 5e-4);
    EXPECT_NEAR(far->evidence_needed, evidence_needed, 5e-4);
    EXPECT_NEAR(far->clearness, clearness, 5e-4);
    EXPECT_NEAR(far->clearness_needed, clearness_needed, 5e-4);
  };
  expect(2, 4.647, 5.639, 5.740, 6.669);
  EXPECT_TRUE(rule.alerts().empty());
  rule.add(value(36));
  ASSERT_EQ(rule.alerts().size(), 1U);
  EXPECT_EQ(rule.alerts()[0].night, 36U);
  EXPECT_EQ(rule.alerts()[0].kind, Alert::Kind::step);
  EXPECT_EQ(rule.alerts()[0].place, 34U);
  EXPECT_NEAR(rule.alerts()[0].size, -0.03162, 5e-6);
}

// The first nights of a drift may look like a step: one alert is raised, and then corrected.
TEST(TrendRule, CorrectsKindAndPlaceForSixteenNightsWithoutASecondAlert) {
  int corrected = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    TrendRule rule;
    unsigned state = seed;
    const auto noise = [&state] {  // roughly normal: sum of twelve uniform numbers
      double sum = -6;
      for (int i = 0; i < 12; ++i) {
        state = state * 1664525U + 1013904223U;
        sum += (state >> 8) * 0x1p-24;
      }
      return sum;
    };
    std::optional<Alert::Kind> first;
    for (int i = 0; i < 130; ++i) {
      rule.add(0.004 * noise() - (i < 60 ? 0 : 0.001 * (i - 60)));
      if (!first && !rule.alerts().empty()) first = rule.alerts()[0].kind;
    }
    if (!first || rule.alerts()[0].place < 50) continue;
    corrected += *first == Alert::Kind::step && rule.alerts()[0].kind == Alert::Kind::bend;
    EXPECT_TRUE(rule.alerts()[0].settled);
  }
  EXPECT_GT(corrected, 20);
}

}  // namespace trend_rule_test
}  // namespace weir::stats
