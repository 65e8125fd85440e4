// Tests the whole client against a faulty server. Waits are short because the first delay is a
// setting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/encode.hpp"
#include "gate/publish/github.hpp"

#include "tests/publish/fault_server.hpp"

namespace weir::publish {
namespace github_faults_test {

using ::testing::HasSubstr;
namespace faults = tests::faults;

constexpr const char* k_token = "ghp_TheTokenOfThisTest";
constexpr const char* k_comments = "/repos/o/r/issues/7/comments";

// Server and settings of a test. `written` collects all notes, which must not contain the token.
struct Rig {
  tests::FaultServer server{k_token};
  sys::RealHttp http;
  sys::RealClock clock;
  sys::RealPause pause;
  sys::RealCoin coin;
  sys::Stop stop;
  GithubSettings settings;
  std::string written;

  Rig() {
    server.store([](tests::GithubStore& store) { store.add_pull(7, "abc"); });
    settings.base_url = server.url();
    settings.token = Secret(k_token);
    settings.version = "test";
    settings.base_delay_seconds = settings.limit_delay_seconds = 0.01;
    settings.longest_delay_seconds = 0.02;
    settings.total_seconds = 600;
    settings.each.total_seconds = 120;
    settings.say = [this](const std::string& note) { written += note + "\n"; };
  }
  // Sets a short limit and returns true if nothing else ends the fault. Other requests may need
  // longer on a busy machine.
  bool ends_by_limit(const tests::Fault& fault) {
    const bool silent =
        fault.how == tests::Fault::How::never || fault.how == tests::Fault::How::drip;
    if (silent) settings.each.total_seconds = 1;
    return silent;
  }
  GithubApi api() {
    auto result = GithubApi::make(settings, {http, clock, pause, coin, stop});
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
  std::size_t comments() {
    std::size_t count = 0;
    server.store([&](tests::GithubStore& store) { count = store.comments(7).size(); });
    return count;
  }
  ~Rig() {
    for (const std::string& form : {std::string(k_token), base64(k_token).substr(0, 27)}) {
      EXPECT_EQ(written.find(form), std::string::npos) << written;
    }
  }
};

ApiRequest creation() {
  return {.method = "POST", .path = k_comments, .body = {{"body", "hello"}}};
}

TEST(GithubApiOnAServer, CreatesChangesListsAndRemoves) {
  Rig rig;
  GithubApi api = rig.api();
  const auto created = api.call(creation());
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(created->status, 201);
  const std::string comment_path = "/repos/o/r/issues/comments/" + dump_json(created->body["id"]);
  EXPECT_EQ(
      api.call({.method = "PATCH", .path = comment_path, .body = {{"body", "changed"}}})->status,
      200);
  const auto list = api.list(k_comments, 100);
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ((*list)[0]["body"], "changed");
  EXPECT_EQ(api.call({.method = "DELETE", .path = comment_path})->status, 204);
  EXPECT_EQ(api.list(k_comments, 100)->size(), 0U);
}

TEST(GithubApiOnAServer, ReadsListsOfManyPagesAndWrappedOnes) {
  Rig rig;
  rig.server.store([](tests::GithubStore& store) {
    for (int i = 0; i < 250; ++i) store.add_comment(7, "somebody", std::to_string(i));
  });
  GithubApi api = rig.api();
  const auto list = api.list(k_comments, 1000);
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->size(), 250U);
  EXPECT_EQ((*list)[249]["body"], "249");
  EXPECT_EQ(rig.server.count("GET", k_comments), 3);
  EXPECT_THAT(rig.error_of(api.list(k_comments, 249)), HasSubstr("more than 249 items"));
  ASSERT_TRUE(api.call({.method = "POST",
                        .path = "/repos/o/r/check-runs",
                        .body = {{"name", "weir"}, {"head_sha", "abc"}}}));
  const auto checks = api.list("/repos/o/r/commits/abc/check-runs?check_name=weir", 10);
  ASSERT_TRUE(checks) << checks.error().message;
  EXPECT_EQ(checks->size(), 1U);
}

TEST(GithubApiOnAServer, AsksOnlyForWhatHasChanged) {
  Rig rig;
  GithubApi api = rig.api();
  const auto first = api.list(k_comments, 10);
  const auto second = api.list(k_comments, 10);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(rig.server.requests().at(1).headers.count("if-none-match"), 1U);
  EXPECT_EQ(*first, *second);
  ASSERT_TRUE(api.call(creation()));
  EXPECT_EQ(api.list(k_comments, 10)->size(), 1U);
}

// Each fault hits the first requests; afterwards the server works. Each case has the expected
// outcome of a creation and its number of requests.
TEST(GithubApiOnAServer, CreatesOnceOrSaysThatItMayHave) {
  const double soon = sys::RealClock().now() - 5;
  struct Case {
    const char* what;
    tests::Fault fault;
    bool works;
    bool maybe_done;
    std::size_t comments;
    const char* message;
  };
  const Case cases[] = {
      {"401", faults::unauthorized(), false, false, 0, "401 Unauthorized: Bad credentials"},
      {"403, a limit that is over", faults::rate_limit(soon), true, false, 1, ""},
      {"403, a secondary limit", faults::secondary_limit("0"), true, false, 1, ""},
      {"403, one without a header", faults::secondary_limit(), true, false, 1, ""},
      {"429", faults::too_many("0"), true, false, 1, ""},
      {"429 without a header", faults::too_many(""), true, false, 1, ""},
      {"429 in an hour", faults::too_many("3600"), false, false, 0,
       "go over the limit of 600 s in all"},
      {"500", faults::server_error(), false, true, 0, "500 Server Error"},
      {"500, done", faults::server_error(true), false, true, 1, "it may have been carried out"},
      {"502, done", faults::bad_gateway(true), false, true, 1, "502 Bad Gateway text/html"},
      {"503 with a time", faults::unavailable("0"), true, false, 1, ""},
      {"no answer", faults::never(false), false, true, 0, "it may have been carried out"},
      {"no answer, done", faults::never(true), false, true, 1, "it may have been carried out"},
      {"cut", faults::cut(false), false, true, 0, "it may have been carried out"},
      {"cut, done", faults::cut(true), false, true, 1, "it may have been carried out"},
      {"half an answer", faults::half(), false, true, 1, "it may have been carried out"},
      {"a slow answer", faults::drip(0.05), false, true, 1, "it may have been carried out"},
      {"a page for JSON", faults::html(), false, true, 0, "text/html"},
      {"half of the JSON", faults::body(R"({"id": 10)"), false, true, 0, "not valid JSON"},
      {"JSON too deep", faults::body(std::string(10'000, '[')), false, true, 0, "nests deeper"},
  };
  for (const Case& c : cases) {
    Rig rig;
    rig.server.fault({.method = "POST", .path = k_comments}, c.fault);
    rig.ends_by_limit(c.fault);
    GithubApi api = rig.api();
    ASSERT_TRUE(api.call({.method = "GET", .path = "/repos/o/r"}));  // leaves a connection behind
    const auto got = api.call(creation());
    EXPECT_EQ(got.has_value(), c.works) << c.what << ": " << (got ? "" : got.error().message);
    if (!got) {
      EXPECT_THAT(rig.error_of(got), HasSubstr(c.message)) << c.what;
      EXPECT_EQ(rig.written.find("\n::"), std::string::npos) << c.what;
    }
    EXPECT_EQ(api.maybe_done(), c.maybe_done) << c.what;
    EXPECT_EQ(rig.comments(), c.comments) << c.what;
  }
}

TEST(GithubApiOnAServer, ReadsInSpiteOfFaultsThatPass) {
  const std::pair<const char*, tests::Fault> cases[] = {
      {"500", faults::server_error()}, {"502", faults::bad_gateway()},
      {"503", faults::unavailable()},  {"cut", faults::cut(false)},
      {"half", faults::half()},        {"never", faults::never(true)},
      {"429", faults::too_many("0")},  {"secondary", faults::secondary_limit()},
      {"slow", faults::drip(0.05)},
  };
  for (const auto& [what, fault] : cases) {
    Rig rig;
    rig.server.store([](tests::GithubStore& store) { store.add_comment(7, "x", "y"); });
    rig.server.fault({.method = "GET", .times = 2}, fault);
    const bool limited = rig.ends_by_limit(fault);
    const auto list = rig.api().list(k_comments, 10);
    ASSERT_TRUE(list) << what << ": " << list.error().message;
    EXPECT_EQ(list->size(), 1U) << what;
    EXPECT_GE(rig.server.count("GET", ""), 3) << what;
    if (!limited) {
      EXPECT_EQ(rig.server.count("GET", ""), 3) << what;
    }
  }
}

TEST(GithubApiOnAServer, AnswersWithRefusalsAndTriesThemOnce) {
  const std::pair<tests::Fault, int> cases[] = {
      {faults::not_found(), 404},
      {faults::conflict(), 409},
      {faults::unprocessable(), 422},
      {faults::status(403, "Resource not accessible by integration"), 403},
  };
  for (const auto& [fault, status] : cases) {
    Rig rig;
    rig.server.fault({.times = 0}, fault);
    const auto got = rig.api().call(creation());
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->status, status);
    EXPECT_EQ(rig.server.requests().size(), 1U);
  }
}

TEST(GithubApiOnAServer, ComesToAnEndWithListsThatDoNot) {
  struct Case {
    tests::Fault fault;
    const char* message;
  };
  const Case cases[] = {
      {faults::endless_pages(), "more than 20 pages"},
      {faults::same_page(), "comes twice"},
      {faults::body("{}"), "not a list"},
      {faults::body(R"({"total_count": 1, "a": [], "b": []})"), "not a list"},
  };
  for (const Case& c : cases) {
    Rig rig;
    rig.settings.max_pages = 20;
    rig.server.fault({.times = 0}, c.fault);
    EXPECT_THAT(rig.error_of(rig.api().list(k_comments, 1000)), HasSubstr(c.message));
    EXPECT_LE(rig.server.requests().size(), 20U);
  }
}

TEST(GithubApiOnAServer, GivesTheTokenToNoOtherServer) {
  Rig rig;
  tests::FaultServer foreign_server;
  rig.server.fault({.method = "GET", .path = "/redirected"},
                   faults::redirect(foreign_server.url() + "/x", 307));
  rig.server.fault({.method = "POST", .path = "/redirected"},
                   faults::redirect(foreign_server.url() + "/x", 308));
  tests::Fault elsewhere = faults::body("[]");
  elsewhere.headers = {{"Link", "<" + foreign_server.url() + "/repos/o/r?page=2>; rel=\"next\""}};
  rig.server.fault({.path = "/elsewhere"}, elsewhere);
  GithubApi api = rig.api();
  const std::string host = foreign_server.url();
  EXPECT_THAT(rig.error_of(api.call({.method = "GET", .path = "/redirected"})), HasSubstr(host));
  EXPECT_THAT(rig.error_of(api.call({.method = "POST", .path = "/redirected", .body = {{"a", 1}}})),
              HasSubstr(host));
  EXPECT_THAT(rig.error_of(api.list("/elsewhere", 10)), HasSubstr("not followed"));
  EXPECT_FALSE(foreign_server.saw(k_token));
  EXPECT_TRUE(foreign_server.requests().empty());
  EXPECT_TRUE(rig.server.saw(k_token));  // proves that the check works
}

TEST(GithubApiOnAServer, FollowsARenamedRepository) {
  Rig rig;
  rig.server.fault({.path = "/repos/o/old"},
                   faults::redirect(rig.server.url() + "/repos/o/r", 301));
  const auto got = rig.api().call({.method = "GET", .path = "/repos/o/old"});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body["full_name"], "o/r");
}

TEST(GithubApiOnAServer, SendsACreationAgainWhereNobodyListened) {
  Rig rig;
  rig.settings.base_url = "http://127.0.0.1:" + std::to_string(tests::closed_port());
  rig.settings.max_attempts = 3;
  GithubApi api = rig.api();
  EXPECT_THAT(rig.error_of(api.call(creation())), HasSubstr("gave up after 3 attempts"));
  EXPECT_FALSE(api.maybe_done());
}

TEST(GithubApiOnAServer, TakesNoMoreThanItsLimitOfABody) {
  Rig rig;
  rig.settings.each.body_bytes = 1000;
  rig.server.fault({}, faults::body("[\"" + std::string(2000, 'x') + "\"]"));
  EXPECT_THAT(rig.error_of(rig.api().list(k_comments, 10)),
              HasSubstr("larger than the 1000 bytes"));
}

TEST(GithubApiOnAServer, HidesATokenThatTheServerSendsBack) {
  Rig rig;
  const std::string echo = std::string("no good: ") + k_token + " " + base64(k_token);
  rig.server.fault({.path = "/a"}, faults::status(401, echo));
  rig.server.fault({.path = "/b"}, faults::body(echo, "text/" + std::string(k_token)));
  rig.server.fault({.path = "/c"},
                   faults::redirect("https://elsewhere.example/?t=" + std::string(k_token)));
  rig.server.fault({.path = "/d", .times = 2}, faults::status(500, echo));
  rig.settings.max_attempts = 2;
  GithubApi api = rig.api();
  for (const char* path : {"/a", "/b", "/c", "/d"}) {
    rig.error_of(api.call({.method = "GET", .path = path}));
  }
  EXPECT_THAT(rig.written, HasSubstr("***"));
}

}  // namespace github_faults_test
}  // namespace weir::publish
