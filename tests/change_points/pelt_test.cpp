// Tests of PELT.
#include "benchmarks/change_points/pelt.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/decision_quality/random.hpp"

namespace weir::changes {
namespace pelt_test {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Pelt, SeesAStepAndTheOneBack) {
  quality::Random random(1);
  std::vector<double> values;
  for (int i = 0; i < 150; ++i) {
    values.push_back(100 + random.normal() + (i >= 60 && i < 110 ? 10 : 0));
  }
  EXPECT_THAT(pelt(values), ElementsAre(60, 110));
}

TEST(Pelt, SeesNothingInWhatIsTooShortOrDoesNotVary) {
  EXPECT_THAT(pelt({}), IsEmpty());
  EXPECT_THAT(pelt(std::vector<double>{1, 2, 3}), IsEmpty());
  EXPECT_THAT(pelt(std::vector<double>(100, 3.0)), IsEmpty());
}

// Spread and penalty by hand: neighbours differ by 1 in the median, so the spread is 1 / 0.9539 =
// 1.0484; a step of 4 between two tens saves 4^2 * 5 / 1.0484^2 = 72.8 of squares, the penalty is
// 3 ln 20 = 8.99; a step of 1 saves 4.55, less than it.
TEST(Pelt, AChangeHasToSaveMoreThanItsPenalty) {
  const auto step = [](double by) {
    std::vector<double> values;
    for (int i = 0; i < 20; ++i) values.push_back(i % 2 + (i >= 10 ? by : 0));
    return pelt(values);
  };
  EXPECT_THAT(step(4), ElementsAre(10));
  EXPECT_THAT(step(1), IsEmpty());
}

}  // namespace pelt_test
}  // namespace weir::changes
