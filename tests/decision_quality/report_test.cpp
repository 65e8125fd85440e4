// Tests of results as JSON, Markdown and SVG.
#include "benchmarks/decision_quality/report.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

#include "benchmarks/decision_quality/picture.hpp"

namespace weir::quality {
namespace report_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Limits k_limits{0.05, 0.1, 10'000};

Tally make_tally(int fail, int pass, int open) {
  Tally tally;
  for (int i = 0; i < fail; ++i) tally.add({Verdict::fail, 20});
  for (int i = 0; i < pass; ++i) tally.add({Verdict::pass, 8});
  for (int i = 0; i < open; ++i) tally.add({Verdict::inconclusive, 40});
  return tally;
}

TEST(Json, HasAllFieldsOfARow) {
  const Row row{"weir", "floor", 0.1, make_tally(6, 2, 2), make_tally(1, 999, 0), {}};
  const Json json = *parse_json(to_json(row, k_limits));
  EXPECT_EQ(json["rule"], "weir");
  EXPECT_EQ(json["noise"], "floor");
  EXPECT_EQ(json["effect"], 0.1);
  EXPECT_EQ(json["tolerate"], 0.05);
  EXPECT_EQ(json["limit"], 0.1);
  EXPECT_EQ(json["trials"], 10);
  EXPECT_EQ(json["fail"], 0.6);
  EXPECT_EQ(json["pass"], 0.2);
  EXPECT_EQ(json["inconclusive"], 0.2);
  EXPECT_EQ(json["pairs_mean"], 21.6);
  EXPECT_EQ(json["pairs_p95"], 40);
  EXPECT_NEAR(json["gate_false_fail"].get<double>(), 1 - std::pow(0.999, 200), 1e-12);
  EXPECT_GT(json["gate_false_fail_upper"].get<double>(), json["gate_false_fail"].get<double>());
  EXPECT_EQ(json["decided_within"]["10"], 0.2);
}

TEST(Json, HasNullForWhatIsNotKnown) {
  const Row row{"weir", "ab", {}, make_tally(1, 0, 0), {}, {}};
  const Json json = *parse_json(to_json(row, k_limits));
  EXPECT_TRUE(json["effect"].is_null());
  EXPECT_TRUE(json["gate_false_fail"].is_null());
}

TEST(Pooled, SumsWhatDidNotChangeOfOneProgram) {
  const std::vector<Row> rows = {{"weir", "floor", 0.0, make_tally(1, 9, 0), {}, {}},
                                 {"weir", "floor", 0.1, make_tally(9, 1, 0), {}, {}},
                                 {"mean", "floor", 0.0, make_tally(5, 5, 0), {}, {}},
                                 {"weir", "drift", 0.0, make_tally(0, 10, 0), {}, {}},
                                 {"weir", "noisier", 0.0, make_tally(10, 0, 0), {}, {}}};
  const std::vector<std::string> same_program = {"floor", "drift"};
  const std::vector<Row> sums = pool_unchanged_rows(rows, same_program);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].rule, "weir");
  EXPECT_EQ(sums[0].tally.trials, 20U);
  EXPECT_EQ(sums[0].tally.fail, 1U);
  EXPECT_EQ(sums[1].rule, "mean");
  EXPECT_EQ(sums[1].tally.trials, 10U);
}

TEST(Markdown, PutsEffectsSideBySide) {
  const std::vector<Row> rows = {
      {"weir", "floor", 0.0, make_tally(0, 10, 0), make_tally(0, 10, 0), {}},
      {"weir", "floor", 0.1, make_tally(9, 1, 0), make_tally(0, 10, 0), {}}};
  EXPECT_THAT(
      to_markdown(rows),
      HasSubstr("| floor | weir | 0 · 10.0 | 0 · 90.0 | 100 · 10.0 | 0 · 0 | 8.0 · 18.8 |"));
}

TEST(Picture, ShowsBothRulesForNoisesOfWeir) {
  const std::vector<Row> rows = {{"weir", "a<b", 0.0, make_tally(0, 10, 0), {}, {}},
                                 {"weir", "a<b", 0.1, make_tally(10, 0, 0), {}, {}},
                                 {"fixed-n", "a<b", 0.1, make_tally(10, 0, 0), {}, {}},
                                 {"fixed-n", "other", 0.1, make_tally(10, 0, 0), {}, {}}};
  const std::string svg = to_svg(rows, k_limits);
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, Not(HasSubstr("other")));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
}

}  // namespace report_test
}  // namespace weir::quality
