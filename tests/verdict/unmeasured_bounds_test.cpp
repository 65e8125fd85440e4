// Tests absolute limits on metrics that no cell has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace unmeasured_bounds_test {

using testing::ElementsAre;
using testing::HasSubstr;

LimitEntry at_most(std::vector<std::string> metrics, double value) {
  LimitEntry limit = test::entry(std::move(metrics));
  limit.max = Amount{value, false};
  limit.source = "weir.yaml:8:5";
  return limit;
}

// The reference cell has dispatches_per_token and decode_tokens_per_second, and no latency.
TEST(UnmeasuredBounds, AreErrorsUnlessACellHasAMetricOfTheLimit) {
  auto timed = test::reference();
  test::add_time(timed, "decode_tokens_per_second", test::around(100));
  const CellVerdict cell = test::judge(timed, {test::stored(timed)});
  CellVerdict broken = cell;
  broken.verdict = Outcome::error;
  Policy counts_only;
  counts_only.counts_only = true;
  LimitEntry reported = at_most({"end_to_end_latency_p99_seconds"}, 1);
  reported.mode = Mode::report;
  LimitEntry elsewhere = at_most({"end_to_end_latency_p99_seconds"}, 1);
  elsewhere.match.engine = "other";
  LimitEntry change = test::entry({"end_to_end_latency_p99_seconds"});
  change.max_increase = Amount{0.1, true};
  struct Case {
    const char* what;
    LimitEntry limit;
    std::vector<CellVerdict> cells;
    Policy policy;
    std::size_t errors;
  };
  const std::vector<Case> cases{
      {"a latency", at_most({"end_to_end_latency_p99_seconds"}, 1), {cell}, {}, 1},
      {"two of them", at_most({"end_to_end_latency_seconds", "no_such"}, 1), {cell}, {}, 2},
      {"a count", at_most({"queue_submits_per_token"}, 1), {cell}, {}, 1},
      {"a pattern", at_most({"end_to_end_*"}, 1), {cell}, {}, 1},
      {"a measured metric", at_most({"dispatches_per_token"}, 1000), {cell}, {}, 0},
      {"one of two measured", at_most({"dispatches_per_token", "no_such"}, 1), {cell}, {}, 0},
      {"a time, in counts alone",
       at_most({"end_to_end_latency_seconds"}, 1),
       {cell},
       counts_only,
       0},
      {"failed requests", at_most({"failed_requests"}, 1), {cell}, {}, 1},
      {"failed requests, in counts alone", at_most({"failed_requests"}, 1), {cell}, counts_only, 0},
      {"a cell with an error", at_most({"end_to_end_latency_seconds"}, 1), {cell, broken}, {}, 0},
      {"a limit that only reports", reported, {cell}, {}, 0},
      {"a limit for other cells", elsewhere, {cell}, {}, 0},
      {"a limit on a change", change, {cell}, {}, 0}};
  for (const Case& c : cases) {
    EXPECT_EQ(unmeasured_bounds(c.cells, std::vector{c.limit}, c.policy).size(), c.errors)
        << c.what;
  }
}

TEST(UnmeasuredBounds, NameTheLimitTheMetricAndWhereItCouldComeFrom) {
  const auto base = test::reference();
  const std::vector<CellVerdict> cells{test::judge(base, {test::stored(base)})};
  const auto lines = unmeasured_bounds(
      cells, std::vector{at_most({"end_to_end_latency_p99_seconds"}, 1)}, Policy());
  EXPECT_THAT(lines,
              ElementsAre(testing::AllOf(HasSubstr("weir.yaml:8:5"),
                                         HasSubstr("no cell has end_to_end_latency_p99_seconds"),
                                         HasSubstr("--percentile-metrics"))));
}

}  // namespace unmeasured_bounds_test
}  // namespace weir::verdict
