// Tests reading, resolving and comparing URLs, and links to the next page.
#include "gate/publish/url.hpp"

#include <gtest/gtest.h>

namespace weir::publish {
namespace url_test {

TEST(Url, ReadsPlainAddresses) {
  struct Case {
    const char *text, *origin, *target;
  };
  const Case cases[] = {
      {"https://api.github.com", "https://api.github.com", "/"},
      {"HTTPS://API.GitHub.com:443/x", "https://api.github.com", "/x"},
      {"https://ghe.example/api/v3?a=b#c", "https://ghe.example", "/api/v3?a=b"},
      {"http://127.0.0.1:8080/x", "http://127.0.0.1:8080", "/x"},
      {"http://[::1]:81/", "http://[::1]:81", "/"},
      {"http://h?q", "http://h", "/?q"},
  };
  for (const Case& c : cases) {
    const auto url = parse_url(c.text);
    ASSERT_TRUE(url) << c.text;
    EXPECT_EQ(url->origin(), c.origin) << c.text;
    EXPECT_EQ(url->target, c.target) << c.text;
  }
}

TEST(Url, RefusesWhatIsNoPlainAddress) {
  for (const char* text : {"",
                           "api.github.com",
                           "/path",
                           "ftp://h/",
                           "file:///etc/passwd",
                           "https://",
                           "https:///x",
                           "https://user:word@h/",
                           "https://api.github.com@evil.example/",
                           "https://h:0/",
                           "https://h:65536/",
                           "https://h:8x/",
                           "https://h: 80/",
                           "https://h:+80/",
                           "https://h/a b",
                           "https://h/\n",
                           "https://h\\@evil/",
                           "https://\xC3\xA9/",
                           "http://[::1/",
                           "http://[zz]/",
                           "http://[::1]x/",
                           "https://h/<b>"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
}

TEST(Url, ResolvesLocationsOfAServer) {
  const Url from = *parse_url("https://h/api/v3/x?page=2");
  EXPECT_EQ(resolve(from, "/y?z")->text(), "https://h/y?z");
  EXPECT_EQ(resolve(from, "https://other/y")->text(), "https://other/y");
  EXPECT_EQ(resolve(from, "//other/y")->text(), "https://other/y");
  EXPECT_FALSE(resolve(from, "y"));
  EXPECT_FALSE(resolve(from, "javascript:alert(1)"));
}

TEST(Url, KnowsWhatLiesBelowTheBase) {
  const Url base = *parse_url("https://h/api/v3");
  struct Case {
    const char* text;
    bool below;
  };
  const Case cases[] = {
      {"https://h/api/v3/repos", true},     {"https://h/api/v3", true},
      {"https://h/api/v3?page=2", true},    {"https://h:443/api/v3/x", true},
      {"https://h/api/v33/repos", false},   {"https://h/", false},
      {"http://h/api/v3/repos", false},     {"https://h:444/api/v3/repos", false},
      {"https://g/api/v3/repos", false},    {"https://h/api/v3/../admin", false},
      {"https://h/api/v3/%2e%2E/x", false}, {"https://h/api/v3/.%2e/x", false},
  };
  for (const Case& c : cases) EXPECT_EQ(is_below(base, *parse_url(c.text)), c.below) << c.text;
  EXPECT_TRUE(is_below(*parse_url("https://h"), *parse_url("https://h/x")));
}

TEST(Url, FindsTheNextPageInALinkHeader) {
  struct Case {
    const char *header, *next;
  };
  const Case cases[] = {
      // Header as api.github.com sends it.
      {R"(<https://h/x?page=2>; rel="next", <https://h/x?page=9>; rel="last")",
       "https://h/x?page=2"},
      {R"(<https://h/x?page=1>; rel="prev", <https://h/x?page=3>; rel="next")",
       "https://h/x?page=3"},
      {R"(<https://h/x?a=1,2;3>; title="a"; rel=next)", "https://h/x?a=1,2;3"},
      {R"(<https://h/x?page=1>; rel="prev")", nullptr},
      {R"(<https://h/x)", nullptr},
      {"", nullptr},
  };
  for (const Case& c : cases) {
    const auto next = next_link(c.header);
    EXPECT_EQ(next.value_or("none"), c.next == nullptr ? "none" : c.next) << c.header;
  }
}

}  // namespace url_test
}  // namespace weir::publish
