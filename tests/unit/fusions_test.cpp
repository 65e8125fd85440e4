// Tests of the table of fusions.
#include "gate/unit/fusions.hpp"

#include <set>

#include <gtest/gtest.h>

namespace weir::unit {
namespace fusions_test {

TEST(Fusions, HaveNamesOfTheirOwnAndAtLeastTwoOps) {
  std::set<std::string> names;
  for (const Fusion& fusion : fusions()) {
    EXPECT_GE(fusion.ops.size(), 2U) << fusion.name();
    EXPECT_TRUE(names.insert(fusion.name()).second) << fusion.name();
  }
}

TEST(FusibleRows, AreTheLongestInTheOrderOfTheGraph) {
  using Rows = std::map<std::string, std::int64_t>;
  const struct {
    const char* what;
    std::vector<OpInRow> ops;
    bool single_row = true;
    Rows expected;
  } cases[] = {
      {"nothing", {}, true, {}},
      {"each time",
       {{"RMS_NORM"}, {"MUL", true}, {"MUL_MAT", true}, {"RMS_NORM", true}, {"MUL", true}},
       true,
       {{"RMS_NORM+MUL", 2}}},
      {"the longest",
       {{"RMS_NORM"}, {"MUL", true}, {"ADD", true}},
       true,
       {{"RMS_NORM+MUL+ADD", 1}}},
      {"no op twice: the ADD belongs to the product before it",
       {{"MUL_MAT"}, {"ADD", true}, {"RMS_NORM", true}, {"MUL", true}},
       true,
       {{"MUL_MAT+ADD", 1}, {"RMS_NORM+MUL", 1}}},
      {"an op that takes another's result is in no row",
       {{"RMS_NORM"}, {"MUL"}, {"ROPE"}, {"SET_ROWS", true}},
       true,
       {{"ROPE+SET_ROWS", 1}}},
      {"products by more than a vector are not fused",
       {{"MUL_MAT"}, {"ADD", true}, {"SILU", true}, {"MUL", true}},
       false,
       {{"SILU+MUL", 1}}},
      {"the choice of experts",
       {{"SOFT_MAX"},
        {"ARGSORT", true},
        {"GET_ROWS", true},
        {"SUM_ROWS", true},
        {"CLAMP", true},
        {"DIV", true}},
       true,
       {{"SOFT_MAX+ARGSORT+GET_ROWS+SUM_ROWS+CLAMP+DIV", 1}}},
      {"and its sum", {{"ADD"}, {"ADD", true}, {"ADD", true}}, true, {{"ADD+ADD+ADD", 1}}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(count_fusible_rows(c.ops, c.single_row), c.expected) << c.what;
}

}  // namespace fusions_test
}  // namespace weir::unit
