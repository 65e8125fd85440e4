// Tests how the target of a request is split into path and query.
#include <random>

#include <gtest/gtest.h>

#include "gate/serve/http.hpp"

namespace weir::serve {
namespace target_test {

using Query = std::map<std::string, std::vector<std::string>, std::less<>>;

TEST(Target, IsTakenApart) {
  struct Case {
    std::string text, path;
    Query query;
  };
  const Case cases[] = {
      {"/", "/", {}},
      {"/?", "/", {}},
      {"/api/v1/series?project=a&cell=b%2Fc",
       "/api/v1/series",
       {{"project", {"a"}}, {"cell", {"b/c"}}}},
      {"/a%20b+c", "/a b+c", {}},
      {"/?q=a+b%2Bc", "/", {{"q", {"a b+c"}}}},
      {"/?a=1&b=2&a=3", "/", {{"a", {"1", "3"}}, {"b", {"2"}}}},
      {"/?a&b=&=c&&d==", "/", {{"a", {""}}, {"b", {""}}, {"", {"c"}}, {"d", {"="}}}},
      {"/?a=?/b", "/", {{"a", {"?/b"}}}},
      {"/runs/%E2%82%AC", "/runs/\xE2\x82\xAC", {}},
      {"/...", "/...", {}},
      {"/.well-known/x", "/.well-known/x", {}},
      {"/a/", "/a/", {}},
      {"/a//b", "/a//b", {}},
      {"/100%25", "/100%", {}},
      {"/a%2Fb", "/a/b", {}},
      {"/?path=../../etc", "/", {{"path", {"../../etc"}}}},  // a value is no path
  };
  for (const auto& [text, path, query] : cases) {
    const auto target = parse_target(text);
    ASSERT_TRUE(target) << text << ": " << target.error().message;
    EXPECT_EQ(target->path, path) << text;
    EXPECT_EQ(target->query, query) << text;
  }
}

TEST(Target, IsRefusedWhereItIsAmbiguousOrNoText) {
  const std::string cases[] = {
      "",
      "*",
      "a",
      "http://host/",
      "host:80",
      "?a=b",
      "/a b",
      "/#a",
      "/a#b?c",
      std::string("/\0", 2),
      "/\x7f",
      "/\xE2\x82\xAC",  // not encoded
      "/%",
      "/%4",
      "/%4g",
      "/?a=%zz",
      "/%00",
      "/%0a",
      "/%7f",
      "/%C2%80",     // a control character of the second set
      "/%ff",        // not UTF-8
      "/%C0%AE",     // '.' in an overlong encoding
      "/%ED%A0%80",  // a surrogate
      "/%F4%90%80%80",
      "/%E2%82",  // cut off
      "/?a=%00",
      "/?%0d%0aSet-Cookie:x",
      "/?a=%ff",
      "/..",
      "/../etc/passwd",
      "/a/../b",
      "/a/.",
      "/./a",
      "/%2e%2e/a",
      "/%2E./a",
      "/a%2f..%2fb",
      "/%252e%252e/a",      // after one more decoding
      "/%25252e%25252e/a",  // after two
      "/a%252f..%252fb",
      "/a%5c..%5cb",
      "/a\\b",
      "/%5Ca",
      "/%255c..%255c",
      "//evil.example/a",
      "/%2Fevil.example",
      "/%25252525252525",
  };
  for (const std::string& text : cases) {
    const auto target = parse_target(text);
    ASSERT_FALSE(target) << text << " as " << target->path;
    EXPECT_EQ(target.error().code, Code::data) << text;
    EXPECT_FALSE(target.error().message.empty()) << text;
  }
}

TEST(Target, HasAnEnd) {
  EXPECT_TRUE(parse_target("/" + std::string(k_longest_target - 1, 'a')));
  EXPECT_FALSE(parse_target("/" + std::string(k_longest_target, 'a')));
  std::string parameters = "/?a";
  for (std::size_t i = 1; i < k_max_parameters; ++i) parameters += "&a";
  EXPECT_TRUE(parse_target(parameters));
  EXPECT_FALSE(parse_target(parameters + "&a"));
}

TEST(Target, GivesTheOnlyValueOfAName) {
  const auto target = parse_target("/?a=1&b=2&b=3&c");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->value("a"), "1");
  EXPECT_EQ(target->value("b"), std::nullopt);
  EXPECT_EQ(target->value("c"), "");
  EXPECT_EQ(target->value("d"), std::nullopt);
}

TEST(Target, OfRandomBytesKeepsItsPromises) {
  std::mt19937 random(20261120);
  const std::string alphabet = "/.%2eEfF5cC0aA?&=+\\ab#\x80";
  int taken = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string text = "/";
    for (std::size_t size = random() % 24; size > 0; --size) {
      text += alphabet[random() % alphabet.size()];
    }
    const auto target = parse_target(text);
    if (!target) continue;
    ++taken;
    EXPECT_EQ(target->path.front(), '/') << text;
    EXPECT_EQ(("/" + target->path + "/").find("/../"), std::string::npos) << text;
    EXPECT_EQ(target->path.find('\\'), std::string::npos) << text;
  }
  EXPECT_GT(taken, 100);
}

}  // namespace target_test
}  // namespace weir::serve
