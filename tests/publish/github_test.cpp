// Tests the client of GitHub's API: tokens, paths, back-off, errors.
#include "gate/publish/github.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/publish/fakes.hpp"

namespace weir::publish {
namespace github_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* k_token = "ghp_TheTokenOfThisTest";
constexpr const char* k_comments = "/repos/o/r/issues/7/comments";

sys::HttpResponse answer(int status, std::string body = "{}", sys::HttpHeaders headers = {}) {
  return {status, std::move(headers), std::move(body)};
}

struct Rig {
  tests::FakeHttp http;
  tests::FakeTime time;
  tests::FixedCoin coin;
  sys::Stop stop;
  GithubSettings settings;
  std::string written;  // all errors and notes

  Rig() {
    settings.token = Secret(k_token);
    settings.version = "1.2.3";
    settings.say = [this](const std::string& note) { written += note + "\n"; };
    http.time = &time;
  }
  GithubApi api() {
    auto result = GithubApi::make(settings, {http, time, time, coin, stop});
    EXPECT_TRUE(result) << result.error().message;
    return std::move(*result);
  }
  template <class T>
  std::string error_of(const Result<T>& result) {
    EXPECT_FALSE(result);
    if (result) return "";
    written += result.error().message + "\n";
    return result.error().message;
  }
  ~Rig() { EXPECT_THAT(written, Not(HasSubstr(k_token))); }
};

TEST(GithubApi, SaysWhoAsksAndInWhichVersion) {
  Rig rig;
  rig.http.answers = {answer(201, R"({"id": 1})")};
  const auto got = rig.api().call({.method = "POST", .path = k_comments, .body = {{"body", "x"}}});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 201);
  EXPECT_EQ(got->body["id"], 1);
  const sys::HttpRequest& sent = rig.http.requests.at(0);
  EXPECT_EQ(sent.url, "https://api.github.com/repos/o/r/issues/7/comments");
  EXPECT_EQ(sent.authorization.reveal(), std::string("Bearer ") + k_token);
  EXPECT_EQ(sent.body, R"({"body":"x"})");
  EXPECT_THAT(sent.headers, ElementsAre(std::pair("Accept", "application/vnd.github+json"),
                                        std::pair("X-GitHub-Api-Version", "2022-11-28"),
                                        std::pair("User-Agent", "weir/1.2.3"),
                                        std::pair("Content-Type", "application/json")));
}

TEST(GithubApi, TakesBaseUrlsThatKeepATokenSafe) {
  const std::pair<const char*, bool> cases[] = {
      {"https://api.github.com", true},
      {"https://ghe.example/api/v3/", true},
      {"http://127.0.0.1:8080", true},
      {"http://localhost:1/api", true},
      {"http://[::1]:1", true},
      {"http://api.github.com", false},
      {"http://127.0.0.1.evil.example", false},
      {"https://user:word@h", false},
      {"https://h/?x", false},
      {"api.github.com", false},
      {"", false},
      {"file:///etc", false},
  };
  for (const auto& [url, good] : cases) {
    Rig rig;
    rig.settings.base_url = url;
    const auto api =
        GithubApi::make(rig.settings, {rig.http, rig.time, rig.time, rig.coin, rig.stop});
    EXPECT_EQ(api.has_value(), good) << url;
    if (!api) {
      EXPECT_EQ(api.error().code, Code::usage);
    }
  }
}

TEST(GithubApi, RefusesATokenThatWouldEndItsHeader) {
  for (const char* token :
       {"abcdefgh\n", "abc defgh", "abcdefgh\r\nX-Evil: 1", "abcdefgh\xC3\xA9"}) {
    Rig rig;
    rig.settings.token = Secret(token);
    const auto api =
        GithubApi::make(rig.settings, {rig.http, rig.time, rig.time, rig.coin, rig.stop});
    EXPECT_THAT(rig.error_of(api), Not(HasSubstr("abc")));
  }
}

TEST(GithubApi, KeepsToPathsBelowItsBase) {
  Rig rig;
  rig.settings.base_url = "https://ghe.example/api/v3";
  rig.http.answers = {answer(200)};
  GithubApi api = rig.api();
  EXPECT_TRUE(api.call({.method = "GET", .path = "/repos/o/r"}));
  EXPECT_EQ(rig.http.requests.at(0).url, "https://ghe.example/api/v3/repos/o/r");
  for (const char* path : {"", "repos", "/repos/../../admin", "/repos/%2e%2e/x", "/a b", "/a\nb",
                           "@evil.example/", ".evil.example/", "/a\\b"}) {
    rig.error_of(api.call({.method = "GET", .path = path}));
  }
  EXPECT_EQ(rig.http.requests.size(), 1U);
}

TEST(GithubApi, BacksOffAndComesBack) {
  Rig rig;
  rig.http.answers = {answer(502, "<html>"), answer(500),
                      tl::unexpected(sys::HttpFailure{sys::HttpFailure::What::cut, true, "cut"}),
                      answer(200)};
  EXPECT_TRUE(rig.api().call({.method = "GET", .path = "/x"}));
  EXPECT_THAT(rig.time.waits, ElementsAre(1, 2, 4));
  EXPECT_THAT(rig.written, HasSubstr("trying again in 2.0 s: 500 Server Error"));
}

TEST(GithubApi, WaitsAsLongAsItIsAskedTo) {
  struct Case {
    const char* what;
    sys::HttpResponse response;
    double wait;
  };
  const Case cases[] = {
      {"Retry-After", answer(429, "", {{"retry-after", "17"}}), 17},
      {"a reset",
       answer(403, "", {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1800000041"}}), 42},
      {"a secondary limit without a header: a minute",
       answer(403, R"({"message": "secondary rate limit"})"), 60},
  };
  for (const Case& c : cases) {
    Rig rig;
    rig.http.answers = {c.response, answer(201)};
    EXPECT_TRUE(rig.api().call({.method = "POST", .path = k_comments, .body = {{"body", "x"}}}))
        << c.what;
    EXPECT_THAT(rig.time.waits, ElementsAre(c.wait)) << c.what;
  }
}

TEST(GithubApi, ComesBackAtSomeMomentOfItsOwn) {
  Rig rig;
  rig.coin.side = true;
  rig.http.answers = {answer(502, ""), answer(429, "", {{"retry-after", "10"}}), answer(200)};
  EXPECT_TRUE(rig.api().call({.method = "GET", .path = "/x"}));
  ASSERT_EQ(rig.time.waits.size(), 2U);
  EXPECT_LT(rig.time.waits[0], 0.6);  // half of the back-off's one second
  EXPECT_GT(rig.time.waits[1], 10);   // later than asked, never earlier
}

TEST(GithubApi, SaysWhatItWaitedForWhenTimeIsUp) {
  Rig rig;
  rig.settings.total_seconds = 300;
  rig.http.answers = {
      answer(403, R"({"message": "API rate limit exceeded"})",
             {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1800003000"}})};
  const std::string error = rig.error_of(rig.api().call({.method = "GET", .path = "/x"}));
  EXPECT_THAT(error, HasSubstr("API rate limit exceeded"));
  EXPECT_THAT(error, HasSubstr("waiting 3001 s for it would go over the limit of 300 s in all"));
  EXPECT_TRUE(rig.time.waits.empty());
}

TEST(GithubApi, EndsWithinItsTimeWhateverHappens) {
  Rig rig;
  rig.settings.total_seconds = 100;
  rig.settings.max_attempts = 1000;
  rig.http.seconds_each = 7;
  rig.http.answers = {answer(503, "")};
  GithubApi api = rig.api();
  const double begin = rig.time.time;
  rig.error_of(api.call({.method = "GET", .path = "/x"}));
  EXPECT_LE(rig.time.time - begin,
            107);  // an attempt under way ends by its own limit
  EXPECT_LE(rig.http.limits.back().total_seconds, 100 - 7);
  rig.time.time += 100;
  EXPECT_THAT(rig.error_of(api.call({.method = "GET", .path = "/x"})),
              HasSubstr("the 100 s that all requests may take are over"));
}

TEST(GithubApi, GivesUpAfterItsAttempts) {
  Rig rig;
  rig.settings.max_attempts = 3;
  rig.http.answers = {answer(502, "")};
  EXPECT_THAT(rig.error_of(rig.api().call({.method = "GET", .path = "/x"})),
              HasSubstr("gave up after 3 attempts: 502 Bad Gateway"));
  EXPECT_EQ(rig.http.requests.size(), 3U);
}

TEST(GithubApi, SendsNothingTwiceThatMayHaveBeenDone) {
  const sys::HttpFailure lost{sys::HttpFailure::What::timed_out, true, "timed out"};
  struct Case {
    ApiRequest request;
    std::size_t sent;
  };
  const Case cases[] = {
      {{.method = "POST", .path = "/x", .body = Json::object()}, 1},
      {{.method = "PATCH", .path = "/x", .body = Json::object(), .once = true}, 1},
      {{.method = "PATCH", .path = "/x", .body = Json::object()}, 2},
      {{.method = "PUT", .path = "/x", .body = Json::object()}, 2},
      {{.method = "DELETE", .path = "/x"}, 2},
  };
  for (const Case& c : cases) {
    Rig rig;
    rig.http.answers = {tl::unexpected(lost), answer(200)};
    GithubApi api = rig.api();
    const auto got = api.call(c.request);
    EXPECT_EQ(rig.http.requests.size(), c.sent) << c.request.method;
    EXPECT_EQ(got.has_value(), c.sent == 2);
    if (!got) {
      EXPECT_TRUE(api.maybe_done());
      EXPECT_THAT(rig.error_of(got), HasSubstr("it may have been carried out"));
    }
  }
}

TEST(GithubApi, StopsWhenAskedTo) {
  Rig rig;
  rig.time.stopped_amid = &rig.stop;
  rig.http.answers = {answer(502, "")};
  const auto got = rig.api().call({.method = "GET", .path = "/x"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::interrupted);
}

TEST(GithubApi, AsksOnlyForWhatHasChanged) {
  Rig rig;
  rig.http.answers = {answer(200, R"([{"id": 1}])", {{"etag", "W/\"a\""}}), answer(304, "")};
  GithubApi api = rig.api();
  EXPECT_EQ(api.call({.method = "GET", .path = "/x"})->body, Json::parse(R"([{"id": 1}])"));
  const auto again = api.call({.method = "GET", .path = "/x"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, 200);
  EXPECT_EQ(again->body, Json::parse(R"([{"id": 1}])"));
  EXPECT_THAT(rig.http.requests.at(1).headers,
              ::testing::Contains(std::pair("If-None-Match", "W/\"a\"")));
  // The other address has no stored answer yet.
  rig.error_of(api.call({.method = "GET", .path = "/y"}));
}

TEST(GithubApi, FollowsRedirectsWithinTheApiAlone) {
  struct Case {
    const char *method, *location;
    int status;
    bool followed;
    const char* message;
  };
  const Case cases[] = {
      {"GET", "https://ghe.example/api/v3/repositories/1", 301, true, ""},
      {"GET", "/api/v3/repositories/1", 302, true, ""},
      {"GET", "/api/v3/repositories/1", 307, true, ""},
      {"PATCH", "/api/v3/repositories/1", 308, true, ""},
      {"POST", "/api/v3/repositories/1", 307, true, ""},
      {"POST", "/api/v3/repositories/1", 302, false, "only a GET follows that"},
      {"GET", "https://evil.example/api/v3/x", 302, false, "evil.example"},
      {"GET", "//evil.example/api/v3/x", 301, false, "evil.example"},
      {"GET", "https://ghe.example:8443/api/v3/x", 301, false, "ghe.example:8443"},
      {"GET", "http://ghe.example/api/v3/x", 301, false, "http://ghe.example"},
      {"GET", "/login", 302, false, "/login"},
      {"GET", "", 302, false, "no address"},
      {"GET", "javascript:alert(1)", 302, false, "no address"},
  };
  for (const Case& c : cases) {
    Rig rig;
    rig.settings.base_url = "https://ghe.example/api/v3";
    rig.http.answers = {answer(c.status, "", {{"location", c.location}}), answer(200)};
    const auto got = rig.api().call({.method = c.method, .path = "/x"});
    EXPECT_EQ(got.has_value(), c.followed) << c.method << " " << c.location;
    EXPECT_EQ(rig.http.requests.size(), c.followed ? 2U : 1U) << c.location;
    if (!c.followed) {
      EXPECT_THAT(rig.error_of(got), HasSubstr(c.message));
    }
  }
}

TEST(GithubApi, FollowsThreeRedirectsAndNoMore) {
  Rig rig;
  rig.http.answers = {answer(302, "", {{"location", "/x"}})};
  EXPECT_THAT(rig.error_of(rig.api().call({.method = "GET", .path = "/x"})),
              HasSubstr("too often"));
  EXPECT_EQ(rig.http.requests.size(), 4U);
}

TEST(GithubApi, SaysWhatCameInPlaceOfJson) {
  struct Case {
    const char* what;
    sys::HttpResponse response;
    const char* message;
  };
  const Case cases[] = {
      {"a page", answer(200, "<!DOCTYPE html>\n<p>log in", {{"content-type", "text/html"}}),
       "200 text/html \"<!DOCTYPE html> <p>log in\""},
      {"half of it", answer(200, R"({"id": 1, "bo)"), "not valid JSON at byte 14 of 13"},
      {"too deep", answer(200, std::string(100, '[') + std::string(100, ']')),
       "nests deeper than 32"},
      {"a page that names the token", answer(200, std::string("<p>") + k_token), "<p>***"},
      {"a wrong place", answer(404, "<html>no API here"), "404 Not Found \"<html>no API here\""},
  };
  for (const Case& c : cases) {
    Rig rig;
    rig.http.answers = {c.response};
    GithubApi api = rig.api();
    const auto got = api.call({.method = "POST", .path = k_comments, .body = Json::object()});
    EXPECT_THAT(rig.error_of(got), HasSubstr(c.message)) << c.what;
    EXPECT_EQ(api.maybe_done(), c.response.status == 200) << c.what;
  }
}

TEST(GithubApi, AnswersWithRefusalsThatTheCallerCanUse) {
  for (const int status : {403, 404, 409, 422}) {
    Rig rig;
    rig.http.answers = {answer(status, R"({"message": "no"})")};
    const auto got = rig.api().call({.method = "POST", .path = k_comments, .body = Json::object()});
    ASSERT_TRUE(got) << status;
    EXPECT_EQ(got->status, status);
    EXPECT_EQ(rig.http.requests.size(), 1U);
  }
  Rig rig;
  rig.http.answers = {answer(401, R"({"message": "Bad credentials"})")};
  EXPECT_THAT(rig.error_of(rig.api().call({.method = "GET", .path = "/x"})),
              HasSubstr("401 Unauthorized: Bad credentials"));
  EXPECT_EQ(rig.http.requests.size(), 1U);
}

}  // namespace github_test
}  // namespace weir::publish
