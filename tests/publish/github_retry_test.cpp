// Tests when a request to GitHub is sent again, and how long we wait before.
#include "gate/publish/github_retry.hpp"

#include <gtest/gtest.h>

namespace weir::publish {
namespace github_retry_test {

using What = Next::What;

constexpr double k_now = 1'800'000'000;  // some time in 2027

sys::HttpResponse answer(int status, sys::HttpHeaders headers = {}, std::string body = "") {
  return {status, std::move(headers), std::move(body)};
}

TEST(AfterAnswer, DecidesByStatusHeadersAndWhetherItMayBeSentTwice) {
  const std::string secondary = R"({"message": "You have exceeded a secondary rate limit."})";
  const std::string forbidden = R"({"message": "Resource not accessible by integration"})";
  struct Case {
    const char* what;
    sys::HttpResponse response;
    bool once;
    What expected;
    double wait_seconds;  // seconds to wait; -1: none
    bool maybe_done;
  };
  const Case cases[] = {
      {"200", answer(200), true, What::answer, -1, false},
      {"201", answer(201), true, What::answer, -1, false},
      {"204", answer(204), true, What::answer, -1, false},
      {"401", answer(401), false, What::refused, -1, false},
      {"403", answer(403, {}, forbidden), false, What::answer, -1, false},
      {"404", answer(404), false, What::answer, -1, false},
      {"409", answer(409), false, What::answer, -1, false},
      {"422", answer(422), true, What::answer, -1, false},
      {"410", answer(410), false, What::refused, -1, false},
      {"413", answer(413), true, What::refused, -1, false},
      {"429", answer(429), true, What::again, -1, false},
      {"429 in 7 s", answer(429, {{"retry-after", "7"}}), true, What::again, 7, false},
      {"403 used up, reset in 90 s",
       answer(403, {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1800000090"}}), true,
       What::again, 91, false},
      {"403 used up, reset in the past",
       answer(403, {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1700000000"}}), true,
       What::again, 1, false},
      {"403 used up by the server's clock, which is 60 s ahead",  // 2027-01-15 08:00:00 is k_now
       answer(403, {{"x-ratelimit-remaining", "0"},
                    {"x-ratelimit-reset", "1800000090"},
                    {"date", "Fri, 15 Jan 2027 08:01:00 GMT"}}),
       true, What::again, 31, false},
      {"403 used up, no reset", answer(403, {{"x-ratelimit-remaining", "0"}}), true, What::again,
       -1, false},
      {"403 secondary by words", answer(403, {}, secondary), true, What::again, -1, false},
      {"403 secondary by header", answer(403, {{"retry-after", "60"}}, forbidden), true,
       What::again, 60, false},
      {"500 read", answer(500), false, What::again, -1, true},
      {"500 created", answer(500), true, What::refused, -1, true},
      {"502 created", answer(502), true, What::refused, -1, true},
      {"504 read", answer(504), false, What::again, -1, true},
      {"503 created", answer(503), true, What::refused, -1, true},
      {"503 created, come again", answer(503, {{"retry-after", "3"}}), true, What::again, 3, false},
      {"503 at a date", answer(503, {{"retry-after", "Fri, 15 Jan 2027 08:00:20 GMT"}}), true,
       What::again, 20, false},
      {"503 with nonsense", answer(503, {{"retry-after", "-5"}}), false, What::again, -1, true},
      {"501", answer(501), false, What::refused, -1, false},
  };
  for (const Case& c : cases) {
    const Next next = after_answer(c.response, c.once, k_now, {});
    EXPECT_EQ(next.what, c.expected) << c.what;
    EXPECT_EQ(next.requested_seconds.value_or(-1), c.wait_seconds) << c.what;
    EXPECT_EQ(next.maybe_done, c.maybe_done) << c.what;
    EXPECT_EQ(next.why.empty(), c.expected == What::answer) << c.what;
  }
}

TEST(AfterFailure, SendsACreationAgainOnlyWhenItNeverLeft) {
  using Failed = sys::HttpFailure::What;
  struct Case {
    Failed what;
    bool sent, once;
    What expected;
  };
  const Case cases[] = {
      {Failed::no_connection, false, true, What::again},
      {Failed::timed_out, true, false, What::again},
      {Failed::timed_out, true, true, What::refused},
      {Failed::cut, true, true, What::refused},
      {Failed::cut, true, false, What::again},
      {Failed::cut, false, true, What::again},
      {Failed::tls, false, false, What::refused},
      {Failed::invalid, false, false, What::refused},
      {Failed::too_large, true, false, What::refused},
      {Failed::other, true, false, What::refused},
  };
  for (const Case& c : cases) {
    const Next next = after_failure({c.what, c.sent, "words"}, c.once, {});
    EXPECT_EQ(next.what, c.expected) << static_cast<int>(c.what) << c.sent << c.once;
    EXPECT_EQ(next.maybe_done, c.sent);
    EXPECT_EQ(next.why, "words");
  }
}

TEST(BackOff, DoublesUpToTheLongestLessUpToHalf) {
  EXPECT_EQ(back_off(1, 1, 60, 0), 1);
  EXPECT_EQ(back_off(4, 1, 60, 0), 8);
  EXPECT_EQ(back_off(4, 1, 60, 1), 4);
  EXPECT_EQ(back_off(9, 1, 60, 0), 60);
  EXPECT_EQ(back_off(1'000'000, 1, 60, 0), 60);
}

TEST(HttpDate, ReadsWhatServersSend) {
  struct Case {
    const char* text;
    double seconds;  // by `date -d TEXT +%s`
  };
  const Case cases[] = {
      {"Sun, 06 Nov 1994 08:49:37 GMT", 784'111'777},
      {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
      {"Thu, 29 Feb 2024 23:59:59 GMT", 1'709'251'199},
      {"Fri, 01 Mar 2024 00:00:00 GMT", 1'709'251'200},
      {"Fri, 15 Jan 2027 08:00:00 GMT", 1'800'000'000},
  };
  for (const Case& c : cases) EXPECT_EQ(http_date(c.text).value_or(-1), c.seconds) << c.text;
  for (const char* text :
       {"", "60", "Sun, 06 Nov 1994 08:49:37 UTC", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Xxx 1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT"}) {
    EXPECT_FALSE(http_date(text)) << text;
  }
}

TEST(GithubWords, TellWhatCameSafely) {
  Masker masker;
  masker.add(Secret("ghp_secret_token"));
  struct Case {
    const char* what;
    sys::HttpResponse response;
    const char* expected;
  };
  const Case cases[] = {
      {"nothing", answer(502), "502 Bad Gateway"},
      {"a reason", answer(404, {}, R"({"message": "Not Found"})"), "404 Not Found: Not Found"},
      {"reasons", answer(422, {}, R"({"message": "Validation Failed", "errors":
         [{"message": "body is too long"}, {"field": "state", "code": "missing"}, "and more"]})"),
       "422 Unprocessable: Validation Failed: body is too long: state missing: and more"},
      {"a page", answer(200, {{"content-type", "text/html"}}, "<html>\n\n <p>log in</p>\n"),
       "200 text/html \"<html> <p>log in</p>\""},
      {"a command for a CI system", answer(400, {}, "::error::x\x1b[31m"), nullptr},
      {"the token itself", answer(400, {}, R"({"message": "token ghp_secret_token is wrong"})"),
       "400 Bad Request: token *** is wrong"},
      {"the token torn by a control character", answer(400, {}, "ghp_sec\x01ret_token"),
       "400 Bad Request \"***\""},
  };
  for (const Case& c : cases) {
    const std::string text = describe_answer(c.response, masker);
    if (c.expected != nullptr) {
      EXPECT_EQ(text, c.expected) << c.what;
    }
    EXPECT_EQ(text.find("::error"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  }
}

TEST(GithubWords, MaskBeforeTheyCut) {
  Masker masker;
  masker.add(Secret("ghp_secret_token"));
  const std::string text = safe_text(std::string(195, 'x') + " ghp_secret_token", masker);
  EXPECT_EQ(text, std::string(195, 'x') + " ***");
  EXPECT_EQ(safe_text("\xC3\xA9\xC3\xA9\xC3\xA9", masker, 2), "\xC3\xA9\xC3\xA9...");
}

}  // namespace github_retry_test
}  // namespace weir::publish
