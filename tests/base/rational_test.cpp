// Tests exact fractions: their lowest terms, their text, overflow and comparison.
#include "gate/base/rational.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace weir {
namespace rational_test {

constexpr std::int64_t k_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t k_min = std::numeric_limits<std::int64_t>::min();

TEST(Rational, IsKeptInLowestTermsWithAPositiveDenominator) {
  EXPECT_EQ(Rational::make(266, 4)->str(), "133/2");
  EXPECT_EQ(Rational::make(3, -6)->str(), "-1/2");
  EXPECT_EQ(Rational::make(0, -5)->str(), "0");
  EXPECT_EQ(Rational::make(130, 2)->str(), "65");
}

TEST(Rational, ReadsItsOwnTextAndNothingElse) {
  for (const char* text : {"65", "-3", "133/2", "0", "-9223372036854775808"}) {
    ASSERT_TRUE(Rational::parse(text)) << text;
    EXPECT_EQ(Rational::parse(text)->str(), text);
  }
  for (const char* text :
       {"", "/", "1/", "/2", "1/0", "1/-2", "1.5", " 1", "1 ", "9223372036854775808"}) {
    EXPECT_FALSE(Rational::parse(text)) << text;
  }
}

TEST(Rational, AnswersNothingRatherThanAWrongNumberOnOverflow) {
  EXPECT_FALSE(Rational(k_max).plus(1));
  EXPECT_FALSE(Rational(k_min).minus(1));
  EXPECT_FALSE(Rational(k_max).times(2));
  EXPECT_FALSE(Rational::make(k_min, -1));
  EXPECT_EQ(Rational(k_max).times(*Rational::make(1, k_max)), Rational(1));
}

TEST(Rational, ComparesExactlyWhereDoublesCannot) {
  const auto a = *Rational::make(k_max, k_max - 1);
  const auto b = *Rational::make(k_max - 1, k_max - 2);
  EXPECT_EQ(a.value(), b.value());  // the same double
  EXPECT_LT(a, b);
}

}  // namespace rational_test
}  // namespace weir
