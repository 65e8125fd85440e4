// Tests rights, queries, pages, badges and metrics on a real history, without sockets.
#include <atomic>
#include <future>
#include <set>

#include <gmock/gmock.h>

#include "gate/history/json_lines.hpp"
#include "gate/serve/pages.hpp"

#include "tests/serve/support.hpp"
#include "tests/support/eventually.hpp"

namespace weir::serve {
namespace service_test {

using testing::HasSubstr;
using testing::Not;

class ServiceReads : public ServiceTest {
 protected:
  // Fills two projects: `a` with three runs of two cells, `b` with one.
  void fill() {
    history::Batch batch;
    for (int i = 0; i < 3; ++i) {
      history::Run run =
          history::run_at("r" + std::to_string(i), 1000 + i,
                          {history::count_point("e/m/b/p", *Rational::make(131 + 2 * i, 2)),
                           history::time_point("e/m/b/p", 10 + i, {10.0 + i, 11.0 + i}),
                           history::count_point("e/m/b/q", 7)},
                          std::string(40, static_cast<char>('a' + i)));
      run.facts.project = "a";
      run.facts.branch = i == 2 ? "other" : "main";
      for (history::Point& point : run.points) point.place.device_name = "Device";
      batch.runs.push_back(run);
    }
    batch.runs.push_back(history::run_at("s", 5, {history::count_point("e/m/b/p", 1)}));
    batch.runs.back().facts.project = "b";
    for (int i = 0; i < 3; ++i) {
      batch.verdicts.push_back(
          history::verdict_at("r" + std::to_string(i), 1000 + i, i == 1 ? "fail" : "pass"));
      batch.verdicts.back().project = "a";
      batch.verdicts.back().branch = i == 2 ? "other" : "main";
    }
    value_of(store()->history().add(batch));
  }
  static Reply get(Service& service, const std::string& target, const std::string& token = "") {
    return ask(service, {Method::get, target, token});
  }
};

TEST_F(ServiceReads, AreForThoseWhoMay) {
  fill();
  const std::string project_reader = token("a", "read"), all = token("*", "read"),
                    up = token("*", "upload"), admin = token("*", "admin");
  const auto closed = start();
  ServiceOptions badges = options();
  badges.public_badges = true;
  const auto with_badges = start(std::move(badges));
  const auto open = start(true);
  struct Case {
    std::string target;
    int nobody, project_reader, all, up;  // statuses of the closed service, by token
    int in_public;
  };
  for (const Case& c : std::vector<Case>{
           {"/api/v1/series?project=a", 401, 200, 200, 403, 200},
           {"/api/v1/series?project=b", 401, 403, 200, 403, 200},
           {"/api/v1/series", 401, 403, 200, 403, 200},
           {"/api/v1/series?project=a&project=b", 401, 403, 400, 403, 400},
           {"/api/v1/changes?project=a", 401, 200, 200, 403, 200},
           {"/api/v1/changes", 401, 403, 200, 403, 200},
           {"/api/v1/verdicts?project=a", 401, 200, 200, 403, 200},
           {"/api/v1/projects", 401, 200, 200, 403, 200},
           {"/badge/a.svg", 401, 200, 200, 403, 200},
           {"/badge/b.svg", 401, 403, 200, 403, 200},
           {"/metrics", 401, 403, 200, 403, 200},
           {"/", 401, 403, 404, 403, 404},  // no pages are installed in this test
           {"/data/overview.js", 401, 403, 404, 403, 404},
           {"/healthz", 200, 200, 200, 200, 200},
           {"/api/v1/openapi.json", 200, 200, 200, 200, 200},
           {"/nowhere", 404, 404, 404, 404, 404},
       }) {
    EXPECT_EQ(get(*closed, c.target).status, c.nobody) << c.target;
    EXPECT_EQ(get(*closed, c.target, project_reader).status, c.project_reader) << c.target;
    EXPECT_EQ(get(*closed, c.target, all).status, c.all) << c.target;
    EXPECT_EQ(get(*closed, c.target, up).status, c.up) << c.target;
    EXPECT_EQ(get(*closed, c.target, admin).status, c.all) << c.target;
    EXPECT_EQ(get(*open, c.target).status, c.in_public) << c.target;
  }
  EXPECT_EQ(get(*with_badges, "/badge/a.svg").status, 200);
  EXPECT_EQ(get(*with_badges, "/api/v1/series?project=a").status, 401);
  EXPECT_THAT(get(*closed, "/api/v1/projects", project_reader).body, Not(HasSubstr("\"b\"")));
}

TEST_F(ServiceReads, AskABrowserForAPassword) {
  const auto service = start();
  EXPECT_THAT(get(*service, "/").header("WWW-Authenticate"), HasSubstr("Basic"));
  EXPECT_THAT(get(*service, "/api/v1/projects").header("WWW-Authenticate"), HasSubstr("Bearer"));
  const std::string key = token("*", "read");
  ClientRequest request{Method::get, "/api/v1/projects"};
  request.headers = {{"authorization", "Basic " + base64("anybody:" + key)}};
  EXPECT_EQ(ask(*service, request).status, 200);
}

TEST_F(ServiceReads, RefuseTokensThatAreNoneAndAtLengthTheirPeer) {
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.access.refusals = {.burst = 3, .a_second = 0.001};
  const auto service = start(std::move(wanted));
  ClientRequest bad{Method::get, "/api/v1/projects", "weir_wrong"};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(*service, bad).status, 401);
  EXPECT_EQ(ask(*service, bad).status, 429);
  bad.peer = "192.0.2.2";
  EXPECT_EQ(ask(*service, bad).status, 401);
  // A request without a token, or with a good one, is admitted.
  EXPECT_EQ(get(*service, "/api/v1/projects").status, 200);
  EXPECT_EQ(get(*service, "/api/v1/projects", token("*", "read")).status, 200);
}

// A browser sends such headers for a stranger's page whose name leads to this machine.
TEST_F(ServiceReads, AnswerToNamesOfThisMachineAloneWhereTheyAreOpenToItAlone) {
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.own_names_only = true;
  const auto service = start(std::move(wanted));
  const auto status = [&](const std::string& host) {
    ClientRequest request{Method::get, "/api/v1/projects"};
    if (!host.empty()) request.headers = {{"host", host}};
    return ask(*service, request).status;
  };
  for (const char* own :
       {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080", ""}) {
    EXPECT_EQ(status(own), 200) << own;
  }
  for (const char* foreign : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example",
                              "localhost.evil.example", "127.evil", "[::2]:8080"}) {
    EXPECT_EQ(status(foreign), 421) << foreign;
  }
}

TEST_F(ServiceReads, TakeTheirMethodsAlone) {
  const auto service = start(true);
  for (const Method method :
       {Method::post, Method::put, Method::remove, Method::options, Method::other}) {
    const Reply reply = ask(*service, {method, "/api/v1/series"});
    EXPECT_EQ(reply.status, 405);
    EXPECT_EQ(reply.header("Allow"), "GET, HEAD");
  }
  EXPECT_EQ(get(*service, "/api/v1/runs").status, 405);
  EXPECT_EQ(get(*service, "/api/v1/runs").header("Allow"), "POST");
  EXPECT_EQ(ask(*service, {Method::head, "/api/v1/projects"}).status, 200);
}

TEST_F(ServiceReads, GiveSeriesWithExactValues) {
  fill();
  const auto service = start(true);
  const Json json = get(*service, "/api/v1/series?project=a&cell=*/p&metric=dispatches*").json();
  EXPECT_EQ(json["schema"], "weir.series/1");
  ASSERT_EQ(json["series"].size(), 1U);
  const Json& series = json["series"][0];
  EXPECT_EQ(series["cell"], "e/m/b/p");
  EXPECT_EQ(series["metric"], "dispatches_per_token");
  EXPECT_EQ(series["better"], "lower");
  ASSERT_EQ(series["points"].size(), 3U);
  EXPECT_EQ(series["points"][0]["exact"], "131/2");
  EXPECT_EQ(series["points"][0]["value"], 65.5);
  EXPECT_EQ(series["points"][0]["commit"], std::string(40, 'a'));
  EXPECT_EQ(json["places"][series["points"][0]["place"].get<std::size_t>()]["device_name"],
            "Device");
  EXPECT_FALSE(json.contains("next"));
}

TEST_F(ServiceReads, GiveSamplesWhereTheyAreAskedFor) {
  fill();
  const auto service = start(true);
  const std::string target = "/api/v1/series?project=a&metric=decode_tokens_per_second";
  EXPECT_FALSE(get(*service, target).json()["series"][0]["points"][0].contains("samples"));
  EXPECT_EQ(get(*service, target + "&samples=1").json()["series"][0]["points"][0]["samples"],
            Json({10.0, 11.0}));
}

// Pages together are the whole, however small they are.
TEST_F(ServiceReads, FindSeriesAmongManyCells) {
  history::Batch batch;
  history::Run run = history::run_at("many", 1000, {});
  for (int i = 0; i < 200; ++i) {
    run.points.push_back(history::count_point(fmt::format("e/m{:03}/b/p", i), i));
  }
  batch.runs = {run, history::run_at("one", 2000, {history::count_point("e/z/b/p", 7)})};
  value_of(store()->history().add(batch));
  const auto service = start(true);
  std::set<std::string> cells;
  std::string target = "/api/v1/series?limit=70";
  for (int pages = 0; pages < 20 && !target.empty(); ++pages) {
    const Json json = get(*service, target).json();
    for (const Json& series : json["series"]) cells.insert(series["cell"].get<std::string>());
    target = json.value("next", "");
  }
  EXPECT_EQ(cells.size(), 201U);
  // The match comes after more cells than one query reads at a time.
  const Json late = get(*service, "/api/v1/series?since=1500").json();
  ASSERT_EQ(late["series"].size(), 1U);
  EXPECT_EQ(late["series"][0]["cell"], "e/z/b/p");
}

TEST_F(ServiceReads, GoOnWhereAPageEnds) {
  fill();
  const auto service = start(true);
  const auto read_points = [&](int limit) {
    std::vector<std::string> points;
    std::string target = "/api/v1/series?limit=" + std::to_string(limit);
    for (int pages = 0; pages < 20; ++pages) {
      const Json json = get(*service, target).json();
      int count = 0;
      for (const Json& series : json["series"]) {
        for (const Json& point : series["points"]) {
          ++count;
          points.push_back(
              series["project"].get<std::string>() + " " + series["cell"].get<std::string>() + " " +
              series["metric"].get<std::string>() + " " + point["run"].get<std::string>());
        }
      }
      EXPECT_LE(count, limit);
      if (!json.contains("next")) return points;
      target = json["next"];
    }
    ADD_FAILURE() << "pages without end";
    return points;
  };
  const auto unpaged = read_points(100);
  EXPECT_EQ(unpaged.size(), 10U);  // 3 runs of 3 points, and one more
  EXPECT_THAT(unpaged, testing::UnorderedElementsAreArray(
                           std::set<std::string>(unpaged.begin(), unpaged.end())));
  for (const int limit : {1, 2, 3, 4, 9, 10}) EXPECT_EQ(read_points(limit), unpaged) << limit;
}

TEST_F(ServiceReads, GiveVerdictsTheNewestFirst) {
  fill();
  const auto service = start(true);
  const Json first = get(*service, "/api/v1/verdicts?project=a&limit=2").json();
  EXPECT_EQ(first["schema"], "weir.verdicts/1");
  ASSERT_EQ(first["verdicts"].size(), 2U);
  EXPECT_EQ(first["verdicts"][0]["run"], "r2");
  EXPECT_EQ(first["verdicts"][1]["outcome"], "fail");
  EXPECT_FALSE(first["verdicts"][0].contains("verdict"));
  const Json second = get(*service, first["next"].get<std::string>()).json();
  ASSERT_EQ(second["verdicts"].size(), 1U);
  EXPECT_EQ(second["verdicts"][0]["run"], "r0");
  EXPECT_FALSE(second.contains("next"));
  const Json full = get(*service, "/api/v1/verdicts?project=a&branch=other&full=1").json();
  ASSERT_EQ(full["verdicts"].size(), 1U);
  EXPECT_EQ(full["verdicts"][0]["verdict"]["schema"], "weir.verdict/1");
}

TEST_F(ServiceReads, GiveChangesAsTheProgramDoes) {
  history::Batch batch;
  for (int i = 0; i < 6; ++i) {
    batch.runs.push_back(history::run_at("r" + std::to_string(i), i,
                                         {history::count_point("c", i < 3 ? 1 : 17)},
                                         std::string(40, static_cast<char>('a' + i))));
  }
  value_of(store()->history().add(batch));
  const auto service = start(true);
  const Json changes = get(*service, "/api/v1/changes?project=default").json();
  ASSERT_EQ(changes.size(), 1U);  // counts that agree change at once
  EXPECT_EQ(changes[0]["kind"], "step");
  EXPECT_EQ(changes[0]["index"], 3);
  EXPECT_EQ(changes[0]["size"], 16);
  EXPECT_EQ(changes[0]["commit"], std::string(40, 'd'));
}

TEST_F(ServiceReads, AreTheSameUntilSomethingComes) {
  fill();
  const auto service = start(true);
  ClientRequest request{Method::get, "/api/v1/series?project=a"};
  const Reply reply = ask(*service, request);
  EXPECT_EQ(reply.header("Cache-Control"), "no-cache");
  const std::string tag = reply.header("ETag");
  ASSERT_NE(tag, "");
  for (const std::string& cached_tag : {tag, "\"x\", W/" + tag, std::string("*")}) {
    request.headers = {{"if-none-match", cached_tag}};
    const Reply again = ask(*service, request);
    EXPECT_EQ(again.status, 304) << cached_tag;
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(again.header("ETag"), tag);
  }
  request.headers = {{"if-none-match", "\"other\""}};
  EXPECT_EQ(ask(*service, request).status, 200);
  history::Batch batch;
  batch.runs = {history::run_at("new", 2000, {history::count_point("e/m/b/p", 1)})};
  batch.runs[0].facts.project = "a";
  value_of(store()->history().add(batch));
  request.headers = {{"if-none-match", tag}};
  EXPECT_EQ(ask(*service, request).status, 200);
}

TEST_F(ServiceReads, OfAToldCallerAreNobodyElses) {
  const std::string key = token("*", "read");
  const auto service = start();
  const Reply reply = get(*service, "/api/v1/projects", key);
  EXPECT_EQ(reply.header("Cache-Control"), "private, no-cache");
  EXPECT_EQ(reply.header("Vary"), "Authorization");
}

TEST_F(ServiceReads, SayWhichParameterIsWrong) {
  const auto service = start(true);
  for (const auto& [target, words] : std::vector<std::pair<std::string, std::string>>{
           {"/api/v1/series?cel=a", "did you mean \\\"cell\\\""},
           {"/api/v1/series?since=yesterday", "since"},
           {"/api/v1/series?limit=0", "limit"},
           {"/api/v1/series?limit=10001", "limit"},
           {"/api/v1/series?limit=1e3", "limit"},
           {"/api/v1/series?samples=yes", "samples"},
           {"/api/v1/series?branch=a&branch=b", "branch"},
           {"/api/v1/series?cursor=nonsense", "cursor"},
           {"/api/v1/series?cursor=WzEsMl0=", "cursor"},  // [1,2]
           {"/api/v1/series?cell=" + std::string(3000, 'a'), "cell"},
           {"/api/v1/changes?cursor=-1", "cursor"},
           {"/api/v1/verdicts", "project"},
           {"/api/v1/verdicts?project=a&full=1&limit=21", "limit"},
           {"/api/v1/verdicts?project=a&cursor=W10=", "cursor"},
           {"/api/v1/projects?project=a", "project"},
           {"/badge/a.svg?colour=red", "badge"},
       }) {
    const Reply reply = get(*service, target);
    EXPECT_EQ(reply.status, 400) << target;
    EXPECT_THAT(reply.body, HasSubstr(words)) << target;
    EXPECT_EQ(reply.json()["error"]["code"], "bad_request") << target;
  }
}

TEST_F(ServiceReads, LetABrowserDoNothingWithThem) {
  const auto service = start(true);
  for (const char* target : {"/api/v1/projects", "/badge/a.svg", "/metrics", "/nowhere"}) {
    const Reply reply = get(*service, target);
    EXPECT_THAT(reply.header("Content-Security-Policy"), HasSubstr("default-src 'none'")) << target;
  }
}

TEST_F(ServiceReads, AreLoggedWithoutTokens) {
  const std::string key = token("*", "read");
  const auto service = start();
  (void)get(*service, "/api/v1/projects", key);
  (void)get(*service, "/api/v1/projects", "weir_wrong");
  const std::lock_guard lock(log_mutex_);
  ASSERT_EQ(log_.size(), 2U);
  EXPECT_EQ(log_[0].status, 200);
  EXPECT_EQ(log_[0].path, "/api/v1/projects");
  EXPECT_EQ(log_[0].token, key.substr(5, 12));
  EXPECT_EQ(log_[1].status, 401);
  EXPECT_EQ(log_[1].token, "");
}

TEST_F(ServiceReads, SayWhetherTheServiceIsWell) {
  const auto service = start();
  EXPECT_EQ(get(*service, "/healthz").body, "ok\n");
  service->announce_stop();
  EXPECT_EQ(get(*service, "/healthz").status, 503);
}

TEST_F(ServiceReads, EndAtOnceWhenTheServiceStopsButUploadsDoNot) {
  fill();
  const std::string up = token("*", "upload");
  const auto service = start(true);
  EXPECT_EQ(get(*service, "/api/v1/series").status, 200);
  service->announce_stop();
  const Reply reply = get(*service, "/api/v1/series");
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.header("Retry-After"), "");
  EXPECT_EQ(ask(*service, make_upload(up, profiles_text(65))).status, 201);
}

// The only thread is kept busy.
TEST_F(ServiceReads, ThatWaitedTooLongAreToldSoAndFilesOfPagesNeverWait) {
  std::filesystem::create_directories(folder_ / "web/assets");
  value_of(sys::RealFiles().write_atomic(folder_ / "web/index.html", "<!doctype html>"));
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.readers = 1;
  wanted.longest_wait_seconds = 0;
  wanted.pages.folder = folder_ / "web";
  std::promise<void> go, busy;
  std::atomic<bool> first{true};
  wanted.log = [&](const RequestLine&) {  // called by the reader's thread before it answers
    if (!first.exchange(false)) return;
    busy.set_value();
    go.get_future().wait();
  };
  const auto service = start(std::move(wanted));
  Pending running, late;
  service->handle(make_request({Method::get, "/api/v1/series"}), running.answer());
  busy.get_future().wait();
  service->handle(make_request({Method::get, "/api/v1/series"}), late.answer());
  EXPECT_EQ(get(*service, "/").status, 200);  // the thread is still busy
  go.set_value();
  EXPECT_EQ(late.wait().status, 503);
}

// The only thread is kept busy.
TEST_F(ServiceReads, OfOnePeerLeavePlacesToOthersAndUploadsWaitForNone) {
  const std::string up = token("*", "upload");
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.readers = 1;
  wanted.readers_waiting = 4;
  std::promise<void> go, busy;
  std::atomic<bool> first{true};
  wanted.log = [&](const RequestLine&) {  // called by the reader's thread before it answers
    if (!first.exchange(false)) return;
    busy.set_value();
    go.get_future().wait();
  };
  const auto service = start(std::move(wanted));
  std::vector<std::unique_ptr<Pending>> pending;
  const auto begin = [&](const std::string& peer) -> Pending& {
    Request request = make_request({Method::get, "/api/v1/series"});
    request.head.peer = peer;
    pending.push_back(std::make_unique<Pending>());
    service->handle(std::move(request), pending.back()->answer());
    return *pending.back();
  };
  begin("192.0.2.1");
  busy.get_future().wait();
  begin("192.0.2.1");
  begin("192.0.2.1");
  EXPECT_EQ(begin("192.0.2.1").wait().status, 503);  // two wait, two places are free
  begin("192.0.2.2");
  EXPECT_EQ(ask(*service, make_upload(up, profiles_text(65))).status, 201);
  go.set_value();
  int good = 0;
  for (const auto& answer : pending) good += answer->wait().status == 200 ? 1 : 0;
  EXPECT_EQ(good, 4);
}

// A store that fails at times.
class Flaky final : public history::ServiceStore {
 public:
  Flaky(std::unique_ptr<history::ServiceStore> inner, const std::atomic<bool>& there)
      : inner_(std::move(inner)), there_(there) {}
  history::Store& history() override { return inner_->history(); }
  Result<void> add_token(const history::StoredToken& token) override {
    return when_there([&] { return inner_->add_token(token); });
  }
  Result<std::vector<history::StoredToken>> tokens() override {
    return when_there([&] { return inner_->tokens(); });
  }
  Result<bool> revoke_token(const std::string& id, double at) override {
    return when_there([&] { return inner_->revoke_token(id, at); });
  }
  Result<std::vector<history::UploadOutcome>> add_uploads(
      std::span<const history::Upload> uploads) override {
    return when_there([&] { return inner_->add_uploads(uploads); });
  }
  Result<std::vector<history::StoredVerdict>> newest_verdicts(
      const history::VerdictQuery& wanted) override {
    return when_there([&] { return inner_->newest_verdicts(wanted); });
  }
  Result<void> append_text(const history::StoredVerdict& verdict, std::string& to) override {
    return when_there([&] { return inner_->append_text(verdict, to); });
  }
  Result<std::string> revision() override {
    return when_there([&] { return inner_->revision(); });
  }

 private:
  template <class Ask>
  auto when_there(const Ask& ask) -> decltype(ask()) {
    if (!there_) return fail(Code::io, "secret/place: gone");
    return ask();
  }
  std::unique_ptr<history::ServiceStore> inner_;
  const std::atomic<bool>& there_;
};

TEST_F(ServiceReads, SurviveAStoreThatGoesAwayAndComesBack) {
  const std::string up = token("*", "upload");
  std::atomic<bool> there{true};
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.tokens_seconds = 0.02;
  std::atomic<bool> reported{false};
  wanted.trouble = [&](const std::string& words) {
    if (words.find("secret/place") != std::string::npos) reported = true;
  };
  wanted.open = [&there, open = wanted.open]() -> Result<std::unique_ptr<history::ServiceStore>> {
    if (!there) return fail(Code::io, "secret/place: gone");
    WEIR_TRY(auto inner, open());
    return std::make_unique<Flaky>(std::move(inner), there);
  };
  const auto service = start(std::move(wanted));
  const auto comes = [&](int status) {
    return tests::eventually([&] { return get(*service, "/healthz").status == status; });
  };
  EXPECT_TRUE(comes(200));
  there = false;
  EXPECT_TRUE(comes(503));
  for (const ClientRequest& request :
       {ClientRequest{Method::get, "/api/v1/verdicts?project=a"},
        ClientRequest{Method::get, "/badge/a.svg"}, make_upload(up, profiles_text(65))}) {
    const Reply reply = ask(*service, request);
    EXPECT_EQ(reply.status, 503) << request.target;
    EXPECT_NE(reply.header("Retry-After"), "");
    EXPECT_THAT(reply.body, Not(HasSubstr("secret")));  // the secret is for the log
  }
  EXPECT_TRUE(reported);
  there = true;
  EXPECT_TRUE(comes(200));
  EXPECT_EQ(get(*service, "/badge/a.svg").status, 200);
  EXPECT_EQ(ask(*service, make_upload(up, profiles_text(65))).status, 201);
}

TEST_F(ServiceReads, CountWhatWasDone) {
  const std::string up = token("*", "upload");
  const auto service = start(true);
  EXPECT_EQ(ask(*service, make_upload(up, profiles_text(65))).status, 201);
  EXPECT_EQ(ask(*service, make_upload(up, profiles_text(65))).status, 200);
  EXPECT_EQ(ask(*service, make_upload(up, "{}")).status, 422);
  service->set_traffic([]() -> const Traffic& {
    static Traffic traffic;
    traffic.connections = 42;
    return traffic;
  });
  const Reply reply = get(*service, "/metrics");
  EXPECT_THAT(reply.type, HasSubstr("version=0.0.4"));
  for (const char* line :
       {"weir_build_info{version=\"0.0.0\"} 1\n", "weir_connections_total 42\n",
        "weir_uploads_total{result=\"kept\"} 1\n", "weir_uploads_total{result=\"known\"} 1\n",
        "weir_uploads_total{result=\"refused\"} 1\n", "weir_store_seconds_count 2\n",
        "weir_store_seconds_bucket{le=\"+Inf\"} 2\n", "weir_uploads_waiting 0\n"}) {
    EXPECT_THAT(reply.body, HasSubstr(line));
  }
}

// Names that have a meaning to a database, a browser, a header, a log or a file system.
TEST_F(ServiceReads, TakeNoNameForAnythingButAName) {
  const std::vector<std::string> names{"'; DROP TABLE weir_run; --",
                                       "\" OR 1=1 --",
                                       "<script>alert(1)</script>",
                                       "\"><img src=x onerror=alert(1)>",
                                       "]]><!--",
                                       "..",
                                       "../../../../etc/passwd",
                                       "%2e%2e/%00",
                                       "{{7*7}}${7*7}",
                                       "a\xE2\x80\xAE"
                                       "b",
                                       "weir\xF0\x9F\x92\xA9"};
  const std::string up = token("*", "upload");
  const auto service = start(true);
  for (const std::string& name : names) {
    const std::string encoded = percent_encode(name);
    const Reply uploaded =
        ask(*service, make_upload(up, profiles_text(65),
                                  "/api/v1/runs?project=" + encoded + "&branch=" + encoded +
                                      "&machine=" + encoded));
    ASSERT_TRUE(uploaded.status == 201 || uploaded.status == 422) << name << uploaded.body;
    for (const char* query :
         {"/api/v1/series?project=", "/api/v1/changes?project=", "/api/v1/verdicts?project=",
          "/api/v1/series?cell=", "/api/v1/series?metric=", "/api/v1/series?machine=",
          "/api/v1/series?branch=", "/badge/a.svg?cell=", "/badge/a.svg?metric=",
          "/badge/a.svg?branch="}) {
      const Reply reply = get(*service, query + encoded);
      EXPECT_EQ(reply.status, 200) << query << name << reply.body;
      EXPECT_NE(reply.type, "text/html; charset=utf-8");
      if (reply.type == "image/svg+xml") {
        EXPECT_THAT(reply.body, Not(HasSubstr("<script"))) << name;
        EXPECT_THAT(reply.body, Not(HasSubstr("<img"))) << name;
        EXPECT_THAT(reply.body, Not(HasSubstr("<!--"))) << name;
      } else {
        EXPECT_TRUE(Json::accept(reply.body)) << query << name;
      }
      for (const auto& [header, value] : reply.headers) {
        EXPECT_EQ(value.find_first_of("\r\n"), std::string::npos) << header;
      }
    }
  }
  EXPECT_FALSE(value_of(store()->history().history({})).runs.empty());
}

// The server refuses other targets earlier (target_test.cpp).
TEST_F(ServiceReads, KnowNoFilesBesideTheirOwn) {
  std::filesystem::create_directories(folder_ / "web/assets");
  sys::RealFiles files;
  value_of(files.write_atomic(folder_ / "web/index.html", "<!doctype html>"));
  value_of(files.write_atomic(folder_ / "web/assets/weir.js", "one"));
  value_of(files.write_atomic(folder_ / "web/secret", "secret"));
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.pages.folder = folder_ / "web";
  const auto service = start(std::move(wanted));
  EXPECT_EQ(get(*service, "/assets/weir.js").body, "one");
  EXPECT_EQ(get(*service, "/").type, "text/html; charset=utf-8");
  // Documents are generated after the start.
  EXPECT_TRUE(tests::eventually([&] { return get(*service, "/data/overview.js").status != 503; }));
  for (const char* target : {"/assets/", "/assets/secret", "/secret", "/assets/%2E./secret2",
                             "/web/secret", "/data/", "/data/..%5c", "/history.db"}) {
    const auto parsed = parse_target(target);
    if (parsed) {
      EXPECT_EQ(get(*service, target).status, 404) << target;
    }
  }
  // A file that came after the start is not there.
  value_of(files.write_atomic(folder_ / "web/assets/late.js", "late"));
  EXPECT_EQ(get(*service, "/assets/late.js").status, 404);
}

TEST_F(ServiceReads, ShowPagesOfWhatIsKept) {
  fill();
  std::filesystem::create_directories(folder_ / "web/assets");
  sys::RealFiles files;
  value_of(files.write_atomic(folder_ / "web/index.html", "<!doctype html>"));
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.pages.folder = folder_ / "web";
  wanted.pages.title = "Engine";
  wanted.pages_seconds = 0.05;
  const auto service = start(std::move(wanted));
  const Reply page = get(*service, "/");
  EXPECT_THAT(page.header("Content-Security-Policy"), HasSubstr("script-src 'self'"));
  EXPECT_THAT(page.header("Content-Security-Policy"), Not(HasSubstr("unsafe")));
  Reply overview;
  EXPECT_TRUE(tests::eventually([&] {  // generated after the start
    overview = get(*service, "/data/overview.js");
    return overview.status != 503;
  }));
  EXPECT_EQ(overview.status, 200);
  EXPECT_THAT(overview.body, HasSubstr("Engine"));
  EXPECT_THAT(overview.body, Not(HasSubstr("fresh/m/b/p")));
  history::Batch batch;
  batch.runs = {history::run_at("new", 2000, {history::count_point("fresh/m/b/p", 1)})};
  value_of(store()->history().add(batch));
  EXPECT_TRUE(tests::eventually([&] {
    return get(*service, "/data/overview.js").body.find("fresh/m/b/p") != std::string::npos;
  })) << "what came is not shown";
}

TEST_F(ServiceReads, AndUploadsAreThereWithoutPagesWhereThoseCanNotBeMade) {
  std::filesystem::create_directories(folder_ / "web/assets");
  value_of(sys::RealFiles().write_atomic(folder_ / "web/index.html", "<!doctype html>"));
  const std::string up = token("*", "upload");
  ServiceOptions wanted = options();
  wanted.is_public = true;
  wanted.pages.folder = folder_ / "web";
  wanted.pages.subjects = [](const history::History&) -> std::map<std::string, std::string> {
    throw std::runtime_error("no subjects");
  };
  std::promise<std::string> trouble;
  wanted.trouble = [&](const std::string& words) { trouble.set_value(words); };
  const auto service = start(std::move(wanted));
  EXPECT_EQ(trouble.get_future().get(), "pages: no subjects");
  const Reply reply = get(*service, "/data/overview.js");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("Retry-After"), "1");
  EXPECT_EQ(get(*service, "/").status, 200);
  EXPECT_EQ(ask(*service, make_upload(up, profiles_text(65))).status, 201);
}

TEST(Badge, SaysWhatTheWorstOfItsPartSays) {
  verdict::GateVerdict gate;
  gate.verdict = verdict::Outcome::fail;
  for (const auto& [name, outcome] : std::vector<std::pair<const char*, verdict::Outcome>>{
           {"e/m/cpu/p", verdict::Outcome::pass},
           {"e/m/vulkan/p", verdict::Outcome::fail},
           {"e/m/metal/p", verdict::Outcome::inconclusive},
           {"e/m/cuda/p", verdict::Outcome::error},
           {"e/m/cuda/q", verdict::Outcome::skipped}}) {
    verdict::CellVerdict cell;
    cell.cell = value_of(profile::CellKey::parse(name));
    cell.verdict = outcome;
    gate.cells.push_back(cell);
  }
  struct Case {
    const char* cell;
    std::optional<BadgeState> state;
  };
  for (const Case& c : std::vector<Case>{{"", BadgeState::failing},
                                         {"*", BadgeState::failing},
                                         {"*/cpu/*", BadgeState::passing},
                                         {"*/metal/*", BadgeState::undecided},
                                         {"*/cuda/*", BadgeState::unmeasured},
                                         {"*/q", BadgeState::unknown},
                                         {"nothing", std::nullopt}}) {
    EXPECT_EQ(state_of(gate, {c.cell, ""}), c.state) << c.cell;
  }
}

TEST(Badge, IsAnImageThatReadsItselfOut) {
  const std::string svg = badge_svg("a<b>&\"'c", BadgeState::failing);
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("role=\"img\" aria-label=\"a&lt;b&gt;&amp;&quot;&#39;c: failing\""));
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b&gt;&amp;&quot;&#39;c: failing</title>"));
  const std::string lengthy = badge_svg(std::string(5000, 'a'), BadgeState::passing);
  EXPECT_LT(lengthy.size(), 2000U);
}

}  // namespace service_test
}  // namespace weir::serve
