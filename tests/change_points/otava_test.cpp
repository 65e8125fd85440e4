// Tests of Otava's method.
#include "benchmarks/change_points/otava.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/decision_quality/random.hpp"

namespace weir::changes {
namespace otava_test {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Otava, SplitsWhereTheSidesAreLeastAlike) {
  EXPECT_THAT(otava(std::vector<double>{1, 2, 1, 2, 1, 2, 9, 8, 9, 8, 9, 8}), ElementsAre(6));
}

TEST(Otava, SeesAStepAndTheOneBack) {
  quality::Random random(1);
  std::vector<double> values;
  for (int i = 0; i < 150; ++i) {
    values.push_back(100 + random.normal() + (i >= 60 && i < 110 ? 10 : 0));
  }
  EXPECT_THAT(otava(values), ElementsAre(60, 110));
}

TEST(Otava, SeesNothingWhereNothingVariesOrIsTooShort) {
  EXPECT_THAT(otava({}), IsEmpty());
  EXPECT_THAT(otava(std::vector<double>{1}), IsEmpty());
  EXPECT_THAT(otava(std::vector<double>{1, 2}), IsEmpty());
  EXPECT_THAT(otava(std::vector<double>(200, 3.0)), IsEmpty());
}

// 4 and 4 points, 5 between their means, variance 5 / 3: t = 5 / sqrt(5 / 6) = 5.477, 6 degrees of
// freedom, p = 0.0015474 (integrated numerically).
TEST(Otava, KeepsASplitBelowItsLevelAlone) {
  const std::vector<double> values{0, 1, 2, 3, 5, 6, 7, 8};
  EXPECT_THAT(otava(values, 0.00154), IsEmpty());
  EXPECT_THAT(otava(values, 0.00155), ElementsAre(4));
}

}  // namespace otava_test
}  // namespace weir::changes
