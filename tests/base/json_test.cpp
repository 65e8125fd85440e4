// Tests the JSON parser and its limits, and the reader that keeps the first complaint.
#include "gate/base/json.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir {
namespace json_test {

TEST(ParseJson, RefusesWhatIsTooDeepTooLongOrNotJson) {
  EXPECT_TRUE(parse_json("[[1]]", {.depth = 2}));
  EXPECT_FALSE(parse_json("[[[1]]]", {.depth = 2}));
  EXPECT_FALSE(parse_json("[1,2,3]", {.bytes = 4}));
  EXPECT_TRUE(parse_json(R"(["[[[[\"[["])", {.depth = 1})) << "brackets in a string nest nothing";
  for (const char* bad :
       {"", "[", "{\"a\":}", "[NaN]", "[Infinity]", "[1,]", "{\"a\":1}x", "\xFF", "[1e999]"}) {
    const auto parsed = parse_json(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, Code::data);
  }
}

TEST(ParseJson, SurvivesAMillionOpenBrackets) {
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
}

TEST(ParseJson, NeverThrowsOnRandomBytes) {
  std::mt19937 random(1);
  const std::string alphabet = "[]{}:,\"\\u0aeE+-.1tfn \xC3\xFF";
  int accepted = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    if (const auto parsed = parse_json(text)) {
      ++accepted;
      EXPECT_TRUE(parse_json(dump_json(*parsed))) << text;
    }
  }
  EXPECT_GT(accepted, 10);  // the alphabet does make some valid JSON
}

TEST(DumpJson, ReplacesInvalidUtf8InsteadOfThrowing) {
  EXPECT_EQ(dump_json(Json{{"a", "x\xFF"}}), "{\"a\":\"x\xEF\xBF\xBD\"}");
}

TEST(JsonReader, KeepsTheFirstComplaintWithItsPlace) {
  const Json json = {{"name", "x"}, {"count", 3}, {"rate", 1.5}, {"none", nullptr}};
  JsonReader read(json, "cells[3]");
  EXPECT_EQ(read.string("name"), "x");
  EXPECT_EQ(read.integer("count"), 3);
  EXPECT_EQ(read.optional_number("none"), std::nullopt);
  EXPECT_FALSE(read.problem());
  EXPECT_EQ(read.integer("rate"), 0);
  EXPECT_EQ(read.string("absent"), "");
  ASSERT_TRUE(read.problem());
  EXPECT_EQ(read.problem()->message, "cells[3] \"rate\" should be a whole number");
}

TEST(JsonReader, RefusesAWholeNumberThatDoesNotFit) {
  const Json json = {{"count", 18446744073709551615ULL}};
  JsonReader read(json, "here");
  EXPECT_EQ(read.integer("count"), 0);
  EXPECT_TRUE(read.problem());
}

}  // namespace json_test
}  // namespace weir
