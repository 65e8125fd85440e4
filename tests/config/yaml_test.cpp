// Tests of parsing hostile YAML.
#include <gmock/gmock.h>

#include "gate/config/parse.hpp"

namespace weir::config {
namespace yaml_test {

using testing::HasSubstr;
using testing::StartsWith;

std::string repeated(std::string_view text, std::size_t n) {
  std::string all;
  for (; n > 0; --n) all += text;
  return all;
}

TEST(Yaml, KeepsPlacesOrderAndWhetherTextWasQuoted) {
  const auto root = parse_yaml("b: [1, '2']\na:\n  - x: ~\n", "f");
  ASSERT_TRUE(root) << root.error().message;
  ASSERT_EQ(root->entries.size(), 2U);
  EXPECT_EQ(root->entries[0].key, "b");
  EXPECT_EQ(root->entries[1].key_position, (TextPosition{2, 1}));
  const Node* list = root->find("b");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->position, (TextPosition{1, 4}));
  EXPECT_FALSE(list->items[0].quoted);
  EXPECT_TRUE(list->items[1].quoted);
  EXPECT_EQ(list->items[1].text, "2");
  EXPECT_EQ(root->find("a")->items[0].find("x")->kind, Node::Kind::null);
  EXPECT_EQ(root->find("c"), nullptr);
}

TEST(Yaml, RefusesHostileTextWhereItBegins) {
  // Nine anchors, each nine times the one before: 9^9 values once expanded.
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{}: &a{} [{}]\n", i, i, repeated(fmt::format("*a{},", i - 1), 9));
  }
  const std::string wide =
      "a: &a " + std::string(1000, 'x') + "\nb: [" + repeated("*a,", 90'000) + "]";
  struct Case {
    std::string text;
    const char* place;
    const char* says;
  };
  const Case cases[] = {
      {std::string((1 << 20) + 1, ' '), "f: ", "larger than 1048576 bytes"},
      {repeated("[", 1 << 20), "f:1:", "nested deeper than 32"},
      {repeated("{a: ", 1 << 18), "f:", "nested deeper than 32"},
      {repeated("- ", 1 << 19), "f:1:65: ", "nested deeper than 32"},
      {repeated("? ", 1 << 19), "f:", "nested deeper than 32"},
      {bomb, "f:", "too large once its aliases are expanded"},
      {wide, "f:2:", "too large once its aliases are expanded"},
      {repeated("- a\n", 110'000), "f:", "too large"},
      {"a: &a [*a]", "f:1:8: ", "inside what it names"},
      {"a: *b", "f:1:", "not YAML"},
      {"a: 1\nb: 2\na: 3\n", "f:3:1: ", "\"a\" stands here twice"},
      {"{a: 1, 'a': 3}", "f:1:8: ", "\"a\" stands here twice"},
      {"a: 1\n---\nb: 1\n", "f:", "a second YAML document"},
      {"[a, b]: 1", "f:1:1: ", "a key must be a text"},
      {"~: 1", "f:1:1: ", "a key must be a text"},
      {"a: !!python/object:os.system x", "f:1:4: ", "tags are not used here"},
      {"a: !x [b]", "f:1:4: ", "tags are not used here"},
      {"a: b\xFF", "f:1:5: ", "not UTF-8"},
      {"a: \xC0\xAF", "f:1:4: ", "not UTF-8"},
      {"a: \xED\xA0\x80", "f:1:4: ", "not UTF-8"},
      {"\xE2\x82", "f:1:1: ", "not UTF-8"},
      {std::string("a: b\0c", 6), "f:1:5: ", "not UTF-8"},
      {"a: \"b\\0c\"", "f:1:4: ", "NUL"},
      {"a: b\n\x1B[31m", "f:2:1: ", "control character"},
      {"a: [", "f:1:", "not YAML"},
      {"\t- a\n\t b: c", "f:1:1: ", "a tab indents this line"},
      {"a:\n \tb: 1\nc: \td", "f:2:2: ", "a tab indents this line"},
      {"a:\n  b:\n    c: 1\n  \t  d: 1", "f:4:3: ", "a tab indents this line"},
      {"%YAML 9.9\n--- a", "f:", "not YAML"},
      {"a: \"b", "f:", "not YAML"},
  };
  for (const Case& c : cases) {
    const auto root = parse_yaml(c.text, "f");
    ASSERT_FALSE(root) << c.text.substr(0, 60);
    EXPECT_EQ(root.error().code, Code::config);
    EXPECT_THAT(root.error().message, StartsWith(c.place)) << c.text.substr(0, 60);
    EXPECT_THAT(root.error().message, HasSubstr(c.says)) << c.text.substr(0, 60);
  }
}

TEST(Yaml, TakesOrdinaryTextOfAnySort) {
  for (const char* text : {"", "# nothing\n",
                           "\xEF\xBB\xBF"
                           "a: 1",
                           "a: |\n  b\n  c\n", "a: ä€😀", "a: &x 1\nb: *x", "a: !!str 1",
                           "---\na: 1\n...\n", "a: 1\r\nb: 2\r\n"}) {
    EXPECT_TRUE(parse_yaml(text, "f")) << text;
  }
}

}  // namespace yaml_test
}  // namespace weir::config
