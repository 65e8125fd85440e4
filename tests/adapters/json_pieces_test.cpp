// Tests of reading JSON by pieces.
#include "gate/adapters/json_pieces.hpp"

#include <gmock/gmock.h>

namespace weir::adapters {
namespace json_pieces_test {

using testing::ElementsAre;

struct Pieces {
  std::vector<std::string> elements, members;
  JsonPieceLosses losses;
};

Pieces take(std::string_view text, std::size_t chunk = std::string_view::npos,
            JsonPieceLimits limits = {}) {
  Pieces result;
  JsonPieces pieces({"list"},
                    {[&](std::string_view list, const Json& element) {
                       result.elements.push_back(std::string(list) + ":" + dump_json(element));
                     },
                     [&](const Json& members) { result.members.push_back(dump_json(members)); }},
                    limits);
  while (!text.empty()) {
    pieces.feed(text.substr(0, chunk));
    text.remove_prefix(std::min(chunk, text.size()));
  }
  pieces.finish();
  result.losses = pieces.losses();
  return result;
}

constexpr std::string_view k_text =
    "[info] a log line {x}\n"
    "{\"a\": 1, \"list\": [{\"x\": \"]}\\\"\"}, 2, [3]], \"b\": {\"list\": [4]}}\n"
    "{model} loaded\n"
    "[{\"c\": null}, {\"d\": -1.5e3}]\n";

TEST(JsonPieces, AreElementsOfListsAndMembersOfObjects) {
  const Pieces pieces = take(k_text);
  EXPECT_THAT(pieces.elements, ElementsAre(R"(list:{"x":"]}\""})", "list:2", "list:[3]",
                                           R"(:{"c":null})", ":{\"d\":-1500.0}"));
  EXPECT_THAT(pieces.members, ElementsAre(R"({"a":1,"b":{"list":[4]}})"));
  EXPECT_FALSE(pieces.losses.cut);
  EXPECT_EQ(pieces.losses.documents, 2U);
}

TEST(JsonPieces, AreTheSameInChunksOfAnySize) {
  const Pieces unchunked = take(k_text);
  for (std::size_t chunk = 1; chunk < 40; ++chunk) {
    const Pieces pieces = take(k_text, chunk);
    EXPECT_EQ(pieces.elements, unchunked.elements) << chunk;
    EXPECT_EQ(pieces.members, unchunked.members) << chunk;
  }
}

TEST(JsonPieces, AreOfAllDocumentsOfALine) {
  for (std::size_t chunk = 1; chunk < 9; ++chunk) {
    const Pieces pieces =
        take("{\"a\": 1}{\"b\": 2} [{\"c\": 3}]{\"d\": 4} done {\"e\": 5}\n", chunk);
    EXPECT_THAT(pieces.members, ElementsAre(R"({"a":1})", R"({"b":2})", R"({"d":4})")) << chunk;
    EXPECT_THAT(pieces.elements, ElementsAre(R"(:{"c":3})")) << chunk;
  }
}

TEST(JsonPieces, AreThoseThatWereWholeWhereTheTextIsCut) {
  const Pieces pieces = take(R"({"a": 1, "list": [{"x": 1}, {"x": 2}, {"x": 12)");
  EXPECT_THAT(pieces.elements, ElementsAre(R"(list:{"x":1})", R"(list:{"x":2})"));
  EXPECT_THAT(pieces.members, ElementsAre(R"({"a":1})"));
  EXPECT_TRUE(pieces.losses.cut);
  // A number at the end may go on.
  EXPECT_THAT(take(R"({"a": 12)").members, ElementsAre("{}"));
}

TEST(JsonPieces, PassOverWhatIsBrokenTooLongOrTooDeep) {
  const Pieces broken = take("[{\"a\": 1}, {\"b\": oh}, {\"c\": NaN}, {\"d\": -Infinity}]");
  EXPECT_THAT(broken.elements, ElementsAre(R"(:{"a":1})", R"(:{"c":null})", R"(:{"d":null})"));
  EXPECT_EQ(broken.losses.broken, 1U);
  const Pieces overlong =
      take("[{\"a\": \"" + std::string(200, 'x') + "\"}, {\"b\": 1}]", 16, {100, 1000, 8});
  EXPECT_THAT(overlong.elements, ElementsAre(R"(:{"b":1})"));
  EXPECT_EQ(overlong.losses.too_long, 1U);
  const Pieces deep =
      take("[{\"a\": " + std::string(50, '[') + std::string(50, ']') + "}, {\"b\": 1}]", 16,
           {100'000, 1000, 8});
  EXPECT_THAT(deep.elements, ElementsAre(R"(:{"b":1})"));
  EXPECT_EQ(deep.losses.too_long, 1U);
}

TEST(JsonPieces, EndWhereBracketsDoNotGoTogether) {
  for (const char* text : {"{\"list\": [}", "[]]]", "{}}}{", "{\"a\" 1}", "{\"a\":}", "[{\"a\":1]}",
                           "{\"list\":[1,2}\n{\"b\":2}\n"}) {
    take(text);
    take(text, 1);
  }
}

}  // namespace json_pieces_test
}  // namespace weir::adapters
