// Tests that find some of the changes made to toy.cpp.
#include <gtest/gtest.h>

#include "toy.hpp"

TEST(Limit, IsNotOverItself) {
  EXPECT_FALSE(toy::is_over(10, 0));
  EXPECT_TRUE(toy::is_over(21, 1));
}
TEST(Sum, LeavesOutWhatIsNegative) { EXPECT_EQ(toy::sum_of_positive({1, -5, 2}), 19); }
