// Tests of printed text and of scanning lines.
#include "gate/adapters/printed.hpp"

#include <gmock/gmock.h>

namespace weir::adapters {
namespace printed_test {

using testing::ElementsAre;

TEST(Printed, HasLinesWithoutWhatATerminalOrALoggerAdds) {
  struct Case {
    const char* text;
    std::vector<std::string_view> lines;
  };
  const Case cases[] = {
      {"a\nb\n", {"a", "b"}},
      {"a\r\nb\r\n", {"a", "b"}},
      {"10 %\r20 %\rdone\n", {"10 %", "20 %", "done"}},
      {"\x1B[1mbold\x1B[0m plain", {"bold plain"}},
      {"0.03.330.279 I one\n0.03.330.280 W two\n", {"one", "two"}},
      // A line built of several log calls has the prefix in its middle as well.
      {"## SPLIT #1: Vulkan0 # 7 inputs0.00.136.271 D : 0.00.136.273 D [x]\n",
       {"## SPLIT #1: Vulkan0 # 7 inputs: [x]"}},
      {"version 0.00.136.273 is no prefix\n", {"version 0.00.136.273 is no prefix"}},
      {"cut \x1B[31", {"cut "}},
      {"\x1B", {}},
  };
  for (const Case& c : cases) {
    const Printed printed(Document{c.text});
    EXPECT_EQ(printed.out(), c.lines) << c.text;
  }
}

TEST(Printed, KnowsWhetherItsLastLineHasAnEnd) {
  EXPECT_FALSE(Printed(Document{"a\n"}).lacks_final_newline());
  EXPECT_TRUE(Printed(Document{"a"}).lacks_final_newline());
  EXPECT_TRUE(Printed(Document{"", "a"}).lacks_final_newline());
  EXPECT_FALSE(Printed(Document{"a\n", "a"}).lacks_final_newline());
}

TEST(PrintedNumber, TakesEitherDecimalMark) {
  struct Case {
    const char* text;
    std::optional<double> value;
  };
  const Case cases[] = {
      {"1234.5", 1234.5},
      {"1234,5", 1234.5},
      {"1,234.5", 1234.5},
      {"1.234,5", 1234.5},
      {"12", 12},
      {"1,234,567", 1234567},
      {"2.42712e+06", 2.42712e6},
      {"-3.5", -3.5},
      {"0,5", 0.5},
      {"", {}},
      {"nan", {}},
      {"inf", {}},
      {"1.2.3", {}},
      {"1,23.5", {}},
      {"1e999", {}},
      {"abc", {}},
      {"1.5 ", {}},
  };
  for (const Case& c : cases) EXPECT_EQ(printed_number(c.text), c.value) << c.text;
}

TEST(LineScanner, StaysWhereItIsAtAStepThatDoesNotFit) {
  LineScanner scan("  count=40 x 2.5 us, rest of it");
  EXPECT_FALSE(scan.skip_prefix("calls="));
  EXPECT_TRUE(scan.skip_prefix("count="));
  EXPECT_EQ(scan.integer(), 40);
  EXPECT_EQ(scan.integer(), std::nullopt);
  EXPECT_TRUE(scan.skip_prefix("x"));
  EXPECT_EQ(scan.number(), 2.5);
  EXPECT_EQ(scan.read_until(";"), std::nullopt);
  EXPECT_EQ(scan.read_until(", "), "us");
  EXPECT_EQ(scan.word(), "rest");
  EXPECT_EQ(scan.rest(), "of it");
  EXPECT_FALSE(scan.done());
  EXPECT_EQ(LineScanner("99999999999999999999").integer(), std::nullopt);
}

}  // namespace printed_test
}  // namespace weir::adapters
