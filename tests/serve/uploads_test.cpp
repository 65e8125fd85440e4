// Tests uploads: kept once, answered when they are on the disk, refused where they should be.
#include "gate/serve/uploads.hpp"

#include <future>
#include <random>
#include <thread>

#include <gmock/gmock.h>

#include "gate/history/json_lines.hpp"

#include "tests/serve/support.hpp"
#include "tests/support/eventually.hpp"

namespace weir::serve {
namespace uploads_test {

class Uploads : public ServiceTest {
 protected:
  history::History stored(const std::string& project = "default") {
    history::Filter filter;
    filter.project = project;
    return value_of(store()->history().history(filter));
  }
};

std::string export_text(const std::vector<history::Run>& runs) {
  std::string text = history::first_line() + "\n";
  for (const history::Run& run : runs) text += history::line_of(run) + "\n";
  return text;
}

history::Run make_run(const std::string& project, const std::string& id) {
  history::Run run = history::run_at(id, 5, {history::count_point("a/m/b/p", 65)});
  run.facts.project = project;
  return run;
}

ClientRequest lines_upload(const std::string& token, const std::string& body,
                           const std::string& target = "/api/v1/runs") {
  return {Method::post, target, token, "application/x-ndjson", body};
}

TEST_F(Uploads, KeepProfilesWithWhatIsSaidOfThem) {
  const std::string key = token("engine", "upload");
  const auto service = start();
  const Reply reply =
      ask(*service, make_upload(key, profiles_text(65),
                                "/api/v1/runs?project=engine&commit=1a2b3c4&branch=main&"
                                "machine=lab&time=2026-11-20T09:30:15Z"));
  ASSERT_EQ(reply.status, 201) << reply.body;
  const Json json = reply.json();
  EXPECT_EQ(json["schema"], "weir.upload/1");
  EXPECT_EQ(json["points"], 2);
  EXPECT_EQ(json["runs"][0]["known"], false);
  const history::History history = stored("engine");
  ASSERT_EQ(history.runs.size(), 1U);
  EXPECT_EQ(history.runs[0].id, json["runs"][0]["id"].get<std::string>());
  EXPECT_EQ(history.runs[0].commit, "1a2b3c4");
  EXPECT_EQ(history.runs[0].branch, "main");
  EXPECT_EQ(history.runs[0].machine, "lab");
  EXPECT_EQ(history.runs[0].time, 1795167015);  // date -u -d 2026-11-20T09:30:15Z +%s
  EXPECT_EQ(history.series.size(), 2U);
}

TEST_F(Uploads, AreKnownTheSecondTime) {
  const std::string key = token("*", "upload");
  const auto service = start();
  const Reply first = ask(*service, make_upload(key, profiles_text(65)));
  const Reply second = ask(*service, make_upload(key, profiles_text(65)));
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.json()["runs"][0]["known"], true);
  EXPECT_EQ(second.json()["runs"][0]["id"], first.json()["runs"][0]["id"]);
  EXPECT_EQ(stored().runs.size(), 1U);
  // Another commit with the same numbers is a different run.
  EXPECT_EQ(
      ask(*service, make_upload(key, profiles_text(65), "/api/v1/runs?commit=1a2b3c4")).status,
      201);
}

TEST_F(Uploads, KeepLinesOfExportsWithTheirProjects) {
  const std::string key = token("engine-*", "upload");
  const auto service = start();
  const std::string both = export_text({make_run("engine-a", "r1"), make_run("engine-b", "r2")});
  const Reply reply = ask(*service, lines_upload(key, both));
  ASSERT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(reply.json()["runs"].size(), 2U);
  EXPECT_EQ(stored("engine-a").runs.size(), 1U);
  // All or nothing.
  const std::string foreign = export_text({make_run("engine-a", "r3"), make_run("other", "r4")});
  EXPECT_EQ(ask(*service, lines_upload(key, foreign)).status, 403);
  EXPECT_EQ(stored("engine-a").runs.size(), 1U);
  EXPECT_EQ(ask(*service, lines_upload(key, both, "/api/v1/runs?project=engine-a")).status, 422);
  EXPECT_EQ(ask(*service, lines_upload(key, both, "/api/v1/runs?commit=1a2b3c4")).status, 422);
}

TEST_F(Uploads, OfWhatOthersAreToThinkNeedAnAdministrator) {
  const std::string text = history::first_line() + "\n" +
                           history::line_of(history::acknowledged("a/m/b/p", "known")) + "\n";
  const std::string uploader = token("*", "upload"), admin = token("*", "admin");
  const auto service = start();
  EXPECT_EQ(ask(*service, lines_upload(uploader, text)).status, 403);
  EXPECT_TRUE(value_of(store()->history().acknowledgements({})).empty());
  EXPECT_EQ(ask(*service, lines_upload(admin, text)).status, 201);
  EXPECT_EQ(value_of(store()->history().acknowledgements({})).size(), 1U);
}

TEST_F(Uploads, KeepAVerdict) {
  verdict::GateVerdict gate;
  gate.verdict = verdict::Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  gate.commit = "1a2b3c4d";
  const std::string key = token("*", "upload");
  const auto service = start();
  const Reply reply = ask(*service, make_upload(key, dump_json(write_fields(gate))));
  ASSERT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(reply.json()["verdicts"], 1);
  const auto verdicts = value_of(store()->history().verdicts({}));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].outcome, "fail");
  EXPECT_EQ(verdicts[0].commit, "1a2b3c4d");
}

// Returns a gate's verdict on these cells: each passes or fails in one metric.
std::string gate_text(const std::vector<std::pair<std::string, verdict::Outcome>>& cells,
                      const char* metric = "dispatches_per_token") {
  std::vector<verdict::CellVerdict> verdicts;
  for (const auto& [name, outcome] : cells) {
    verdict::CellVerdict& cell = verdicts.emplace_back();
    cell.cell = value_of(profile::CellKey::parse(name));
    cell.verdict = outcome;
    verdict::Judgement& judgement = cell.judgements.emplace_back();
    judgement.metric = *unit::find_metric(metric);
    judgement.verdict = outcome;
    judgement.nature = profile::Nature::exact;
    judgement.current = 65;
  }
  verdict::GateVerdict gate = verdict::judge_gate(std::move(verdicts), {});
  static int count = 0;  // otherwise the same document is the same run
  gate.commit = fmt::format("{:040x}", ++count);
  return dump_json(write_fields(gate));
}

const auto k_pass = verdict::Outcome::pass, k_fail = verdict::Outcome::fail;

TEST_F(Uploads, ThatCallAFailureAPassAreRefused) {
  const std::string key = token("*", "upload");
  const auto service = start(true);
  Json json = value_of(parse_json(gate_text({{"a/m/b/p", k_pass}, {"a/m/b/q", k_fail}})));
  json["verdict"] = "pass";
  json["exit_code"] = 0;
  const Reply reply = ask(*service, make_upload(key, dump_json(json)));
  EXPECT_EQ(reply.status, 422);
  EXPECT_THAT(reply.body, testing::HasSubstr("better than that of one of its cells"));
  EXPECT_TRUE(value_of(store()->history().verdicts({})).empty());
}

TEST_F(Uploads, WithTheGoodCellsAloneTurnNoGateGreen) {
  const std::string key = token("*", "upload");
  const auto service = start(true);
  const auto newest = [&](const std::string& body, const std::string& query) {
    const Reply reply = ask(*service, make_upload(key, body, "/api/v1/runs?" + query));
    EXPECT_EQ(reply.status, 201) << reply.body;
    return reply.body;
  };
  const auto badge = [&](const std::string& query = "") {
    const std::string svg = ask(*service, {Method::get, "/badge/default.svg" + query}).body;
    for (const char* word : {"passing", "failing", "undecided", "not measured", "unknown"}) {
      if (svg.find(word) != std::string::npos) return std::string(word);
    }
    return svg;
  };
  const auto full_gate = [] { return gate_text({{"e/m/b/good", k_pass}, {"e/m/b/bad", k_pass}}); };
  const auto part = [] { return gate_text({{"e/m/b/good", k_pass}}); };
  newest(full_gate(), "branch=main&machine=a&time=100");
  EXPECT_EQ(badge(), "passing");
  newest(gate_text({{"e/m/b/good", k_pass}, {"e/m/b/bad", k_fail}}),
         "branch=main&machine=a&time=200");
  EXPECT_EQ(badge(), "failing");
  EXPECT_THAT(newest(part(), "branch=main&machine=a&time=300"), testing::HasSubstr("e/m/b/bad"));
  EXPECT_EQ(badge(), "not measured");
  EXPECT_EQ(badge("?cell=*/bad"), "not measured");
  // Repeats with any branch and machine, and with only a metric missing.
  int time = 400;
  for (const char* parameters :
       {"branch=main&machine=a", "branch=main&machine=b", "branch=other", ""}) {
    newest(part(), fmt::format("{}&time={}", parameters, time += 100));
    EXPECT_EQ(badge(), "not measured") << parameters;
  }
  newest(gate_text({{"e/m/b/good", k_pass}, {"e/m/b/bad", k_pass}}, "syncs_per_token"),
         fmt::format("branch=main&machine=a&time={}", time += 100));
  EXPECT_EQ(badge(), "not measured");
  const Json newest_verdict =
      ask(*service, {Method::get, "/api/v1/verdicts?project=default&full=1"}).json()["verdicts"][0];
  EXPECT_EQ(newest_verdict["outcome"], "error");
  EXPECT_THAT(newest_verdict["verdict"]["unjudged"].get<std::string>(),
              testing::HasSubstr("dispatches_per_token"));
  // A complete upload passes again. A failing one that lacks cells still fails.
  newest(full_gate(), fmt::format("branch=main&machine=a&time={}", time += 100));
  EXPECT_EQ(badge(), "passing");
  newest(gate_text({{"e/m/b/good", k_fail}}), fmt::format("branch=main&time={}", time += 100));
  EXPECT_EQ(badge(), "failing");
}

TEST_F(Uploads, OfLinesTurnNoGateGreenEither) {
  const std::string key = token("*", "upload");
  const auto service = start(true);
  const auto line = [](const std::string& text, double time) {
    history::StoredVerdict verdict;
    verdict.text = text;
    verdict.id = hash_hex(text);
    verdict.branch = "main";
    verdict.time = time;
    verdict.outcome = "pass";
    return history::line_of(verdict) + "\n";
  };
  const std::string full_gate = gate_text({{"e/m/b/good", k_pass}, {"e/m/b/bad", k_pass}});
  const std::string part = gate_text({{"e/m/b/good", k_pass}});
  ASSERT_EQ(
      ask(*service,
          lines_upload(key, history::first_line() + "\n" + line(full_gate, 1) + line(part, 2) +
                                line(R"({"schema":"weir.verdict/1","verdict":"pass"})", 3)))
          .status,
      201);
  const Json json = ask(*service, {Method::get, "/api/v1/verdicts?project=default"}).json();
  std::vector<std::string> outcomes;
  for (const Json& verdict : json["verdicts"]) outcomes.push_back(verdict["outcome"]);
  EXPECT_THAT(outcomes, testing::ElementsAre("error", "error", "pass"));
}

TEST_F(Uploads, OfATimeToComeAreRefused) {
  const std::string key = token("*", "upload");
  SetClock clock;
  ServiceOptions wanted = options();
  wanted.clock = &clock;
  const auto service = start(std::move(wanted));
  const auto status = [&](int seconds) {
    const Reply reply =
        ask(*service, make_upload(key, profiles_text(65),
                                  fmt::format("/api/v1/runs?time={:.0f}", clock.now() + seconds)));
    if (reply.status == 422) {
      EXPECT_THAT(reply.body, testing::HasSubstr("2026-11-20T09:30:15Z"));
    }
    return reply.status;
  };
  EXPECT_EQ(status(301), 422);
  EXPECT_EQ(status(2'000'000'000), 422);
  EXPECT_EQ(status(300), 201);
  // Lines name several times themselves, which must not put them before others.
  history::Run run = make_run("default", "late");
  run.facts.time = clock.now() + 1000;
  EXPECT_EQ(ask(*service, lines_upload(key, export_text({run}))).status, 422);
  history::StoredVerdict verdict = history::verdict_at("", 5, "pass");
  verdict.kept_at = clock.now() + 1000;
  EXPECT_EQ(ask(*service,
                lines_upload(key, history::first_line() + "\n" + history::line_of(verdict) + "\n"))
                .status,
            422);
  EXPECT_EQ(stored().runs.size(), 1U);
}

TEST_F(Uploads, AreRemovedByThoseWhoMayAndNotedWithWho) {
  const std::string key = token("engine", "upload"), remover = token("engine", "delete");
  const auto service = start(true);
  const std::string runs = "/api/v1/runs";
  const Reply first = ask(*service, make_upload(key, gate_text({{"e/m/b/p", k_fail}}),
                                                runs + "?project=engine&time=100"));
  const std::string id = first.json()["runs"][0]["id"];
  const std::string target = runs + "/" + id + "?project=engine";
  const auto remove = [&](const std::string& token, const std::string& from) {
    return ask(*service, {Method::remove, from, token});
  };
  EXPECT_EQ(remove("", target).status, 401);
  EXPECT_EQ(remove(key, target).status, 403);
  EXPECT_EQ(remove(remover, runs + "/" + id + "?project=other").status, 403);
  EXPECT_EQ(stored("engine").runs.size(), 1U);
  const std::string before = value_of(store()->revision());
  EXPECT_EQ(remove(remover, target).json()["removed"], true);
  EXPECT_NE(value_of(store()->revision()), before);  // pages are generated again
  EXPECT_TRUE(stored("engine").runs.empty());
  EXPECT_TRUE(value_of(store()->history().verdicts({})).empty());
  const Reply again = remove(remover, target);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.json()["removed"], false);
  EXPECT_EQ(stored("engine").series.size(), 0U);
  {
    const std::lock_guard lock(log_mutex_);
    EXPECT_THAT(log_,
                testing::Contains(testing::Field(&RequestLine::note, "removes engine/" + id)));
  }
  // Another upload restores it.
  EXPECT_EQ(ask(*service, make_upload(key, gate_text({{"e/m/b/p", k_fail}}),
                                      runs + "?project=engine&time=100"))
                .status,
            201);
  EXPECT_EQ(stored("engine").runs.size(), 1U);
}

TEST_F(Uploads, ThatSupersedeARunAreMissingNothingOfIt) {
  const std::string key = token("*", "upload"), both = token("*", "upload delete");
  const auto service = start(true);
  const std::string full_gate = gate_text({{"e/m/b/good", k_pass}, {"e/m/b/old", k_pass}});
  const std::string part = gate_text({{"e/m/b/good", k_pass}});
  const auto send = [&](const std::string& token, const std::string& body,
                        const std::string& query) {
    return ask(*service, make_upload(token, body, "/api/v1/runs?branch=main&" + query));
  };
  const auto outcome = [&] {
    return ask(*service, {Method::get, "/api/v1/verdicts?project=default"})
        .json()["verdicts"][0]["outcome"]
        .get<std::string>();
  };
  ASSERT_EQ(send(key, full_gate, "time=100").status, 201);
  const Reply partial = send(key, part, "time=200");
  const std::string id = partial.json()["runs"][0]["id"];
  EXPECT_EQ(outcome(), "error");
  EXPECT_EQ(send(key, part, "time=200&supersedes=" + id).status, 403);
  EXPECT_EQ(ask(*service, lines_upload(both, export_text({make_run("default", "r")}),
                                       "/api/v1/runs?supersedes=" + id))
                .status,
            400);
  EXPECT_EQ(outcome(), "error");
  const Reply superseding = send(both, part, "time=200&supersedes=" + id);
  EXPECT_EQ(superseding.status, 201) << superseding.body;
  EXPECT_EQ(superseding.json()["superseded"], true);
  EXPECT_EQ(outcome(), "pass");
  EXPECT_EQ(stored().runs.size(), 2U);
  ASSERT_EQ(send(key, gate_text({{"e/m/b/good", k_pass}}), "time=300").status,
            201);  // and is still compared with
  EXPECT_EQ(outcome(), "pass");
}

TEST_F(Uploads, OfOneDayAreBoundedByProjectAndByTokenAlsoAfterARestart) {
  const std::string key = token("*", "upload"), second_key = token("*", "upload");
  SetClock clock;
  const auto begin = [&] {
    ServiceOptions wanted = options();
    wanted.clock = &clock;
    wanted.quota.day_runs = 3;
    return start(std::move(wanted));
  };
  auto service = begin();
  int count = 0;
  const auto send = [&](const std::string& token, const std::string& project) {
    return ask(*service,
               make_upload(token, profiles_text(++count), "/api/v1/runs?project=" + project));
  };
  EXPECT_EQ(send(key, "a").status, 201);
  EXPECT_EQ(send(key, "a").status, 201);
  service.reset();
  service = begin();
  EXPECT_EQ(send(key, "b").status, 201);
  // The token has sent its three; project a has room for one more.
  const Reply full = send(key, "a");
  EXPECT_EQ(full.status, 429);
  EXPECT_THAT(full.body, testing::HasSubstr("2026-11-21T00:00:00Z"));
  EXPECT_EQ(full.header("Retry-After"), "52185");  // 14 h 29 min 45 s
  EXPECT_EQ(send(second_key, "a").status, 201);
  EXPECT_EQ(send(second_key, "a").status, 429);
  clock.seconds = 52'185;
  EXPECT_EQ(send(key, "a").status, 201);
}

TEST_F(Uploads, OfAProjectAreBoundedInAllUntilSomeAreRemoved) {
  const std::string key = token("*", "upload"), remover = token("*", "delete");
  const std::string body = profiles_text(65);
  ServiceOptions wanted = options();
  wanted.quota.bytes = 4'400;  // two runs and their names, in the store
  const auto service = start(std::move(wanted));
  const auto send = [&](const std::string& query) {
    return ask(*service, make_upload(key, body, "/api/v1/runs?" + query));
  };
  const Reply first = send("time=100");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(send("time=200").status, 201);
  const Reply full = send("time=300");
  EXPECT_EQ(full.status, 507);
  EXPECT_EQ(full.json()["error"]["code"], "insufficient_storage");
  EXPECT_EQ(send("time=300&project=other").status, 201);
  const std::string id = first.json()["runs"][0]["id"];
  EXPECT_EQ(ask(*service, {Method::remove, "/api/v1/runs/" + id, remover}).status, 200);
  EXPECT_EQ(send("time=300").status, 201);
  EXPECT_EQ(send("time=400").status, 507);
}

// Keeps the only thread busy with the first upload.
class Busy final : public Judge {
 public:
  Result<std::optional<verdict::GateVerdict>> judge(const Arrival& arrival,
                                                    std::span<const profile::Profile>) override {
    order += arrival.project;  // appended by one thread
    if (order.size() > 1) return std::nullopt;
    began.set_value();
    go.get_future().wait();
    return std::nullopt;
  }
  std::string order;
  std::promise<void> began, go;
};

TEST_F(Uploads, OfATokenWithMuchWaitingKeepNoOtherWaiting) {
  const std::string many = token("*", "upload"), few = token("*", "upload");
  Busy judge;
  ServiceOptions wanted = options();
  wanted.judge = &judge;
  wanted.intake.waiting = 10;
  const auto service = start(std::move(wanted));
  std::vector<std::unique_ptr<Pending>> waiting;
  const auto send = [&](const std::string& token, const std::string& project) {
    service->handle(make_request(make_upload(token, profiles_text(static_cast<int>(waiting.size())),
                                             "/api/v1/runs?project=" + project)),
                    waiting.emplace_back(std::make_unique<Pending>())->answer());
  };
  send(many, "m");
  judge.began.get_future().wait();
  for (int i = 0; i < 6; ++i) send(many, "m");
  send(few, "f");
  send(few, "f");
  judge.go.set_value();
  std::vector<int> statuses;
  for (const auto& answer : waiting) statuses.push_back(answer->wait().status);
  EXPECT_EQ(judge.order, "mmfmfmmm");  // `many` had one too many: at most half of the places
  EXPECT_THAT(statuses, testing::ElementsAre(201, 201, 201, 201, 201, 201, 503, 201, 201));
}

TEST_F(Uploads, WithAKeyAreAnsweredAsTheFirstTime) {
  const std::string key = token("*", "upload");
  const auto service = start();
  ClientRequest request = make_upload(key, profiles_text(65));
  request.headers = {{"idempotency-key", "job-1/attempt"}};
  const Reply first = ask(*service, request);
  ASSERT_EQ(first.status, 201) << first.body;
  const Reply again = ask(*service, request);
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(first.header("Idempotency-Replayed"), "");
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  ClientRequest changed = request;
  changed.body = profiles_text(66);
  EXPECT_EQ(ask(*service, changed).status, 422);
  changed = request;
  changed.target += "?commit=1a2b3c4";
  EXPECT_EQ(ask(*service, changed).status, 422);
  for (const std::string& wrong :
       {std::string(), std::string(256, 'a'), std::string("a\xC3\xA4")}) {
    request.headers = {{"idempotency-key", wrong}};
    EXPECT_EQ(ask(*service, request).status, 400) << wrong;
  }
}

// Lines name their project themselves; projects do not share keys.
TEST_F(Uploads, OfTwoProjectsMayHaveTheSameKey) {
  const std::string key = token("*", "upload");
  const auto service = start();
  const auto status = [&](const std::string& project) {
    ClientRequest request = lines_upload(key, export_text({make_run(project, "r1")}));
    request.headers = {{"idempotency-key", "4711"}};
    return ask(*service, request).status;
  };
  EXPECT_EQ(status("one"), 201);
  EXPECT_EQ(status("two"), 201);
}

TEST_F(Uploads, ThatAreNoneAreRefusedAndSaidWhy) {
  const std::string key = token("*", "upload");
  const auto service = start();
  struct Case {
    std::string what, target, body;
    int status;
    std::string words;
  };
  const std::string good = profiles_text(65), runs = "/api/v1/runs";
  for (const Case& c : std::vector<Case>{
           {"no JSON", runs, "{", 422, "JSON"},
           {"nothing", runs, "", 422, "JSON"},
           {"an array", runs, "[]", 422, "object"},
           {"deep", runs, std::string(100'000, '['), 422, "deeper"},
           {"many values", runs, "[" + std::string(3'000'000, ',') + "]", 422, "values"},
           {"another schema", runs, R"({"schema": "weir.other/1"})", 422, "weir.profiles/1"},
           {"no profiles", runs, R"({"schema": "weir.profiles/1"})", 422, "profiles"},
           {"an empty list", runs, R"({"schema": "weir.profiles/1", "profiles": []})", 422,
            "nothing was measured"},
           {"a wrong profile", runs, R"({"schema": "weir.profiles/1", "profiles": [7]})", 422,
            "profiles[0]"},
           {"an unknown parameter", runs + "?comit=1a2b3c4", good, 400,
            "did you mean \\\"commit\\\""},
           {"a parameter twice", runs + "?branch=a&branch=b", good, 400, "branch"},
           {"an empty parameter", runs + "?branch=", good, 400, "branch"},
           {"a long parameter", runs + "?branch=" + std::string(600, 'a'), good, 400, "too long"},
           {"no commit", runs + "?commit=main", good, 400, "commit"},
           {"no time", runs + "?time=yesterday", good, 400, "time"},
           {"no pull request", runs + "?pull=-1", good, 400, "pull"},
       }) {
    const Reply reply = ask(*service, make_upload(key, c.body, c.target));
    EXPECT_EQ(reply.status, c.status) << c.what << ": " << reply.body;
    EXPECT_THAT(reply.body, testing::HasSubstr(c.words)) << c.what;
  }
  EXPECT_EQ(ask(*service, lines_upload(key, "")).status, 422);
  EXPECT_EQ(ask(*service, lines_upload(key, "{}\n")).status, 422);
  EXPECT_TRUE(stored().runs.empty());
}

// Checks identity, declared type and size before the body is read.
TEST_F(Uploads, AreRefusedByTheirHeadersAlone) {
  const std::string good = token("a", "upload"), reader = token("*", "read");
  const auto service = start(true);
  const auto status = [&](ClientRequest sent, std::optional<std::uint64_t> length = {}) {
    Request request = make_request(sent);
    if (length) request.head.length = length;
    const Admission admission = service->admit(request.head);
    return admission.refused ? admission.refused->status : 0;
  };
  const ClientRequest fine = make_upload(good, "{}", "/api/v1/runs?project=a");
  EXPECT_EQ(status(fine), 0);
  EXPECT_EQ(status(fine, k_max_upload_bytes), 0);
  EXPECT_EQ(status(fine, k_max_upload_bytes + 1), 413);
  ClientRequest changed = fine;
  changed.type = "text/plain";
  EXPECT_EQ(status(changed), 415);
  changed.type = "";
  EXPECT_EQ(status(changed), 415);
  changed.type = "Application/JSON; charset=utf-8";
  EXPECT_EQ(status(changed), 0);
  changed = fine;
  changed.token = "";
  EXPECT_EQ(status(changed), 401);
  changed.token = reader;
  EXPECT_EQ(status(changed), 403);
  changed = fine;
  changed.target = "/api/v1/runs?project=b";
  EXPECT_EQ(status(changed), 403);
  changed.target = "/api/v1/runs?project=a&project=b";
  EXPECT_EQ(status(changed), 403);
  changed.target = "/api/v1/runs";  // could be lines of project a
  EXPECT_EQ(status(changed), 0);
  // A document, however, belongs to the default project.
  changed.body = profiles_text(65);
  EXPECT_EQ(ask(*service, changed).status, 403);
}

// A browser sends a stored password by itself, even if another site caused the request.
TEST_F(Uploads, TakeNoPassword) {
  const std::string key = token("*", "admin");
  const auto service = start();
  ClientRequest request = make_upload("", profiles_text(65));
  request.headers = {{"authorization", "Basic " + base64("me:" + key)}};
  EXPECT_EQ(ask(*service, request).status, 401);
}

TEST_F(Uploads, WithANewTokenAreTakenAtOnceAndWithARevokedOneSoon) {
  const auto service = start();
  const std::string key = token("*", "upload");  // the service has read no token yet
  EXPECT_EQ(ask(*service, make_upload(key, profiles_text(65))).status, 201);
  // An invalid token is looked up once in a while, and then refused.
  std::string wrong = key;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_EQ(ask(*service, make_upload(wrong, profiles_text(66))).status, 401);
  EXPECT_EQ(ask(*service, make_upload("weir_" + std::string(12, 'a') + "_" + std::string(48, 'a'),
                                      profiles_text(66)))
                .status,
            401);
}

// A client without a token cannot fill the room for bodies.
TEST_F(Uploads, OfAStrangerAreNotReadWhereTheyAreLarge) {
  ServiceOptions wanted = options();
  wanted.access.look_again_seconds = 0;  // looks each of them up
  const auto service = start(std::move(wanted));
  const std::string nobodys = "weir_" + std::string(12, 'a') + "_" + std::string(48, 'a');
  Request request = make_request(make_upload(nobodys, ""));
  const auto body_limit = [&](std::optional<std::uint64_t> length) {
    request.head.length = length;
    const Admission admission = service->admit(request.head);
    if (admission.refused) {
      EXPECT_EQ(admission.refused->status, 503);
      EXPECT_EQ(make_reply(*admission.refused).header("Retry-After"), "1");
    }
    return admission.refused ? 0 : admission.max_body_bytes;
  };
  EXPECT_EQ(body_limit(64 << 10), 64U << 10);
  EXPECT_EQ(body_limit((64 << 10) + 1), 0U);
  EXPECT_EQ(body_limit(std::nullopt), 0U);  // sent in chunks
}

TEST_F(Uploads, ThatAreLargeAreTakenWithANewTokenWhenTheyAreSentAgain) {
  ServiceOptions wanted = options();
  wanted.access.look_again_seconds = 0;
  const auto service = start(std::move(wanted));
  const std::string key = token("*", "upload");  // the service has read no token yet
  const ClientRequest large = make_upload(key, profiles_text(65) + std::string(70'000, ' '));
  Reply reply = ask(*service, large);
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(tests::eventually([&] {
    reply = ask(*service, large);
    return reply.status != 503;
  }));
  EXPECT_EQ(reply.status, 201) << reply.body;
}

TEST_F(Uploads, TooOftenAreToldWhenToComeAgain) {
  const std::string key = token("*", "upload"), second_key = token("*", "upload");
  ServiceOptions wanted = options();
  wanted.access.uploads = {.burst = 2, .a_second = 0.001};
  const auto service = start(std::move(wanted));
  EXPECT_EQ(ask(*service, make_upload(key, profiles_text(1))).status, 201);
  EXPECT_EQ(ask(*service, make_upload(key, profiles_text(2))).status, 201);
  const Reply reply = ask(*service, make_upload(key, profiles_text(3)));
  EXPECT_EQ(reply.status, 429);
  EXPECT_GT(std::stoi(reply.header("Retry-After")), 900);  // one in a thousand seconds
  EXPECT_EQ(ask(*service, make_upload(second_key, profiles_text(3))).status, 201);
}

TEST_F(Uploads, CountWithRemovals) {
  const std::string key = token("*", "upload"), remover = token("*", "delete");
  ServiceOptions wanted = options();
  wanted.access.uploads = {.burst = 2, .a_second = 0.001};
  const auto service = start(std::move(wanted));
  const auto remove = [&](const std::string& whose) {
    return ask(*service, {Method::remove, "/api/v1/runs/r", whose}).status;
  };
  EXPECT_EQ(remove(remover), 200);
  EXPECT_EQ(remove(remover), 200);
  EXPECT_EQ(remove(remover), 429);
  EXPECT_EQ(ask(*service, make_upload(key, profiles_text(1))).status, 201);
}

TEST_F(Uploads, OfManyAtOnceAreEachKeptOnceAndEachAnswered) {
  const std::string key = token("*", "upload");
  ServiceOptions wanted = options();
  wanted.access.uploads = {.burst = 1000, .a_second = 1};
  const auto service = start(std::move(wanted));
  constexpr int k_threads = 8, k_each = 10;
  std::atomic<int> fresh{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < k_threads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < k_each; ++i) {
        // Two threads each bring the same, and one in five is invalid.
        const int number = (t / 2) * k_each + i;
        const bool wrong = i % 5 == 4;
        const Reply reply = ask(*service, make_upload(key, wrong ? "{}" : profiles_text(number)));
        fresh += reply.status == 201 ? 1 : 0;
        refused += reply.status == 422 ? 1 : 0;
        EXPECT_EQ(reply.status == 422, wrong);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fresh, 4 * 8);    // four pairs of threads, eight good ones each
  EXPECT_EQ(refused, 8 * 2);  // each thread's two
  EXPECT_EQ(stored().runs.size(), 32U);
}

// An upload that was taken is answered and kept, whatever comes behind it.
TEST_F(Uploads, ThatWereTakenAreKeptWhenTheServiceStops) {
  const std::string key = token("*", "upload");
  auto service = start();
  std::vector<std::unique_ptr<Pending>> pending;
  for (int i = 0; i < 20; ++i) {
    Request request = make_request(make_upload(key, profiles_text(i)));
    ASSERT_FALSE(service->admit(request.head).refused);
    pending.push_back(std::make_unique<Pending>());
    service->handle(std::move(request), pending.back()->answer());
  }
  service->stop();
  std::size_t good = 0;
  for (const auto& answer : pending) good += answer->wait().status == 201 ? 1U : 0U;
  EXPECT_EQ(good, 20U);
  EXPECT_EQ(stored().runs.size(), 20U);
  EXPECT_EQ(ask(*service, make_upload(key, profiles_text(99))).status, 503);
  EXPECT_EQ(stored().runs.size(), 20U);
}

// Passes every cell.
class Passing final : public Judge, public Announcer {
 public:
  Result<std::optional<verdict::GateVerdict>> judge(
      const Arrival&, std::span<const profile::Profile> profiles) override {
    std::vector<verdict::CellVerdict> cells;
    for (const profile::Profile& profile : profiles) cells.emplace_back().cell = profile.cell;
    return verdict::judge_gate(std::move(cells), {});
  }
  void announce(const Arrival&, verdict::GateVerdict verdict) override {
    announced += verdict::to_string(verdict.verdict);  // only the writer changes it
    announced += verdict.nothing_judged_reason ? " not judged\n" : "\n";
  }
  std::string announced;
};

// Uploads may name any time and key: the commit decides what is posted.
TEST_F(Uploads, ThatLackCellsAreAnnouncedAsNotJudgedEachTime) {
  const std::string key = token("*", "upload");
  Passing gate;
  ServiceOptions wanted = options();
  wanted.judge = &gate;
  wanted.announcer = &gate;
  auto service = start(std::move(wanted));
  Json both = Json::parse(profiles_text(65, "e/m/b/good"));
  both["profiles"].push_back(Json::parse(profiles_text(65, "e/m/b/bad"))["profiles"][0]);
  EXPECT_EQ(ask(*service, make_upload(key, dump_json(both), "/api/v1/runs?time=1000")).status, 201);
  ClientRequest part =
      make_upload(key, profiles_text(65, "e/m/b/good"), "/api/v1/runs?time=5&machine=new");
  part.headers = {{"idempotency-key", "k"}};
  for (int i = 0; i < 2; ++i) {
    const Reply reply = ask(*service, part);
    EXPECT_EQ(reply.json()["verdict"]["outcome"], "error") << reply.body;
  }
  service.reset();
  EXPECT_EQ(gate.announced, "pass\nerror not judged\nerror not judged\n");
}

// Judges by a word in the project's name, and records announcements.
class Gate final : public Judge, public Announcer {
 public:
  Result<std::optional<verdict::GateVerdict>> judge(
      const Arrival& arrival, std::span<const profile::Profile> profiles) override {
    if (arrival.project == "free") return std::nullopt;
    if (arrival.project == "broken") return fail(Code::config, "no baseline");
    verdict::GateVerdict gate;
    gate.verdict = profiles.size() == 1 ? verdict::Outcome::fail : verdict::Outcome::pass;
    gate.exit_code = profiles.size() == 1 ? verdict::ExitCode::fail : verdict::ExitCode::pass;
    return gate;
  }
  void announce(const Arrival& arrival, verdict::GateVerdict verdict) override {
    const std::lock_guard lock(mutex_);
    announced_.push_back(fmt::format("{} {} {} {}", arrival.project, arrival.commit.value_or("-"),
                                     arrival.pull_request.value_or(0),
                                     verdict::to_string(verdict.verdict)));
  }
  std::vector<std::string> announced() {
    const std::lock_guard lock(mutex_);
    return announced_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> announced_;
};

TEST_F(Uploads, AreJudgedKeptWithTheirVerdictAndThenAnnounced) {
  const std::string key = token("*", "upload");
  Gate gate;
  ServiceOptions wanted = options();
  wanted.judge = &gate;
  wanted.announcer = &gate;
  const auto service = start(std::move(wanted));
  ClientRequest request =
      make_upload(key, profiles_text(65), "/api/v1/runs?project=a&commit=1a2b3c4&pull=7");
  request.headers = {{"idempotency-key", "one"}};
  const Reply reply = ask(*service, request);
  ASSERT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(reply.json()["verdict"]["outcome"], "fail");
  EXPECT_EQ(reply.json()["verdicts"], 1);
  const auto verdicts = value_of(store()->history().verdicts({}));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].run, reply.json()["runs"][0]["id"].get<std::string>());
  EXPECT_EQ(verdicts[0].outcome, "fail");
  (void)ask(*service, request);  // announced again, in case the first time failed
  // Without a gate, or with one that cannot judge, the upload is stored all the same.
  const Reply nothing_judged_reason =
      ask(*service, make_upload(key, profiles_text(65), "/api/v1/runs?project=free"));
  EXPECT_EQ(nothing_judged_reason.status, 201);
  EXPECT_FALSE(nothing_judged_reason.json().contains("verdict"));
  const Reply broken =
      ask(*service, make_upload(key, profiles_text(65), "/api/v1/runs?project=broken"));
  EXPECT_EQ(broken.status, 201);
  EXPECT_EQ(broken.json()["warnings"][0], "not judged: no baseline");
  service->stop();
  EXPECT_THAT(gate.announced(), testing::ElementsAre("a 1a2b3c4 7 fail", "a 1a2b3c4 7 fail"));
}

// Random bytes: nothing that is accepted is unfit to be stored.
TEST(UploadBodies, OfAnyBytesAreTakenOrRefused) {
  std::mt19937 random(1);  // the same each time
  const std::string lines = export_text({make_run("a", "r1"), make_run("b", "r2")});
  const std::string document = profiles_text(65);
  history::TimeContext around;
  around.default_time = 1;
  int taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool as_lines = i % 2 == 0;
    std::string body = as_lines ? lines : document;
    for (unsigned edits = random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % body.size();
      if (random() % 2 == 0) {
        body[at] = static_cast<char>(random() % 256);
      } else {
        body.erase(at, 1 + random() % 8);
      }
    }
    const auto parsed =
        parse_upload(as_lines ? UploadType::lines : UploadType::document, body, {}, false, around);
    if (!parsed) {
      EXPECT_NE(parsed.error().message, "");
      continue;
    }
    ++taken;
    for (const history::Run& run : parsed->batch.runs) EXPECT_TRUE(history::check(run)) << body;
  }
  EXPECT_GT(taken, 1000);  // a quarter has no edit at all
}

// An upload that the store refuses fails alone.
TEST(Intake, LetsAWrongUploadFailAlone) {
  const Folder folder;
  Meters meters;
  Intake intake(
      [&] { return history::open_service_store(history::parse_address(folder / "history.db")); },
      {}, meters);
  std::mutex mutex;
  std::vector<std::string> answers(20);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    history::Upload upload;
    upload.batch.runs = {
        history::run_at(i == 7 ? "" : "r" + std::to_string(i), 1, {history::count_point("a", 1)})};
    upload.answer = [](const history::UploadResult& done) {
      return std::to_string(done.added.points);
    };
    ASSERT_TRUE(intake.put(std::move(upload), 1, [&, i](Result<history::UploadOutcome> outcome) {
      const std::lock_guard lock(mutex);
      answers[i] = outcome ? outcome->text : "failed";
    }));
  }
  intake.stop();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i], i == 7 ? "failed" : "1") << i;
  }
}

TEST(Intake, TakesNoMoreThanItMayHold) {
  Meters meters;
  std::mutex gate;
  gate.lock();
  const Folder folder;
  // The writer waits for its store, so everything else waits for the writer.
  Intake intake(
      [&] {
        const std::lock_guard lock(gate);
        return history::open_service_store(history::parse_address(folder / "history.db"));
      },
      {.waiting = 3, .bytes = 100}, meters);
  std::atomic<int> answered{0};
  const auto put = [&](std::uint64_t bytes) {
    return intake.put({}, bytes, [&](const Result<history::UploadOutcome>&) { ++answered; });
  };
  ASSERT_TRUE(put(1));
  EXPECT_TRUE(tests::eventually([&] { return intake.waiting() == 0; })) << "the writer has it";
  EXPECT_TRUE(put(1000));  // a single one may have any size
  EXPECT_FALSE(put(1));
  gate.unlock();
  intake.stop();
  EXPECT_EQ(answered, 2);
  EXPECT_FALSE(put(1));
}

}  // namespace uploads_test
}  // namespace weir::serve
