// Tests which changes of a history need a look.
#include "gate/flow/trend.hpp"

#include <gtest/gtest.h>

namespace weir::flow {
namespace trend_test {

history::SeriesChange fall(double low, double high) {
  history::SeriesChange change;
  change.low = low;
  change.high = high;
  change.worse = true;
  return change;
}

TEST(NeedsReport, AChangeThatMayBeNoneIsNoAlarm) {
  EXPECT_TRUE(needs_report(fall(-0.03, -0.01)));
  EXPECT_FALSE(needs_report(fall(-0.011, 0.009)));
}

TEST(NeedsReport, WhatIsBetterOrKnownOrAnotherMachineIsNoAlarm) {
  history::SeriesChange better = fall(-0.03, -0.01), known = better, machine = better;
  better.worse = false;
  known.acknowledgement.emplace();
  machine.class_alone = true;
  for (const auto& change : {better, known, machine}) EXPECT_FALSE(needs_report(change));
}

TEST(NeedsReport, AChangeOfUnknownDirectionIsAnAlarm) {
  history::SeriesChange change = fall(-0.03, -0.01);
  change.worse.reset();
  EXPECT_TRUE(needs_report(change));
}

}  // namespace trend_test
}  // namespace weir::flow
