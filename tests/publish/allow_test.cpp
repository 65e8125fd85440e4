// `/weir accept REASON` and `/weir run` in a comment, against the tests' own GitHub. Its comments
// are all of 09:30:15; a verdict that was posted at 09:20 is what their authors saw.
#include "gate/publish/allow.hpp"

#include <gmock/gmock.h>

#include "gate/publish/post.hpp"
#include "gate/publish/target.hpp"

#include "store_api.hpp"

namespace weir::publish {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using tests::GithubStore;
using tests::StoreApi;
using Kind = Answer::Kind;

const std::string k_sha(40, 'a'), k_other(40, 'b');
constexpr const char* k_cell = "llama.cpp/tiny/vulkan/decode";
constexpr const char* k_file = "allowances/7.json";
constexpr const char* k_branch = "perf-baselines";

verdict::GateVerdict failing(const std::string& to = "77") {
  verdict::MetricVerdict metric;
  metric.metric = *unit::find_metric("dispatches_per_token");
  metric.verdict = verdict::Outcome::fail;
  metric.baseline_text = "65";
  metric.current_text = to;
  metric.baseline = 65;
  metric.current = Rational::parse(to)->value();
  metric.limit.exact = true;
  metric.reason = "must not change";
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse(k_cell);
  cell.device = "vulkan";
  cell.device_class = "vulkan-1";
  cell.verdict = verdict::Outcome::fail;
  cell.metrics = {metric};
  verdict::GateVerdict gate = verdict::judge_gate({cell}, {});
  gate.weir_version = "0.1.0";
  return gate;
}

class Comments : public testing::Test {
 protected:
  void SetUp() override {
    store_.add_pull(7, k_sha, {{"head", {{"sha", k_sha}, {"repo", {{"full_name", "fork/r"}}}}}});
    store_.set_permission("ada", "write");
    store_.set_permission("eve", "read");
    store_.set_pushed(k_sha, "2026-11-20T09:00:00Z");
    store_.set_file(k_branch, "README", "data");
  }
  void post(const verdict::GateVerdict& gate, const std::string& at = "2026-11-20T09:20:00Z",
            const std::string& sha = k_sha, std::int64_t run = 1) {
    PostOptions options;
    options.now = at;
    const auto parts = publish::post(api_, {"o/r", 7, sha, {run, 1}, ""}, texts_of(gate, {}, {}),
                                     options, [](double) {});
    for (const Part& part : parts) EXPECT_NE(part.outcome, Part::Outcome::failed) << part.reason;
  }
  CommentEvent says(const std::string& login, const std::string& body) {
    const std::int64_t id = store_.add_comment(7, login, body);
    Json event = {{"action", "created"},
                  {"repository", {{"full_name", "o/r"}}},
                  {"issue", {{"number", 7}, {"pull_request", {{"url", "u"}}}}},
                  {"comment",
                   {{"id", id},
                    {"body", body},
                    {"created_at", "2026-11-20T09:30:15Z"},
                    {"user", {{"login", login}, {"type", "User"}}}}}};
    const auto read = read_comment_event(dump_json(event), "o/r", "event");
    EXPECT_TRUE(read) << read.error().message;
    return *read;
  }
  Answer answer(const CommentEvent& event) {
    const auto answered = answer_comment(api_, event, options_);
    EXPECT_TRUE(answered) << answered.error().message;
    return answered.value_or(Answer{});
  }
  // Refused, and nothing was written nor turned green.
  void expect_refused(const CommentEvent& event, const std::string& why,
                      Kind kind = Kind::refused) {
    const int writes = api_.writes();
    const Answer answered = answer(event);
    EXPECT_EQ(answered.kind, kind) << answered.why;
    EXPECT_THAT(answered.why, HasSubstr(why));
    EXPECT_EQ(answered.sha, kind == Kind::refused ? "" : answered.sha);
    EXPECT_EQ(api_.writes(), writes);
    EXPECT_TRUE(store_.file(k_branch, k_file).is_null());
    for (const Json& check : store_.check_runs()) EXPECT_EQ(check["conclusion"], "failure");
  }

  GithubStore store_;
  StoreApi api_{store_};
  AllowOptions options_{.gate = "gate",
                        .branch = k_branch,
                        .until = "2026-12-20",
                        .app = "github-actions",
                        .now = "2026-11-20T09:31:00Z",
                        .claimed = {}};
};

TEST_F(Comments, AcceptExactlyWhatTheirAuthorSawAndTurnTheCheckGreen) {
  post(failing());
  const Answer answered = answer(says("ada", "/weir accept a new fusion, measured twice"));
  EXPECT_EQ(answered.kind, Kind::accepted) << answered.why;
  EXPECT_TRUE(answered.green);
  EXPECT_TRUE(answered.fork);
  const auto kept = verdict::parse_allowances(store_.file(k_branch, k_file).get<std::string>(), 7);
  ASSERT_TRUE(kept) << kept.error().message;
  ASSERT_THAT(*kept, SizeIs(1));
  EXPECT_EQ((*kept)[0].what.from, "65");
  EXPECT_EQ((*kept)[0].what.to, "77");
  EXPECT_EQ((*kept)[0].head, k_sha);
  EXPECT_EQ((*kept)[0].who, "ada");
  EXPECT_EQ((*kept)[0].reason, "a new fusion, measured twice");
  ASSERT_THAT(store_.check_runs(), SizeIs(1));
  EXPECT_EQ(store_.check_runs()[0]["conclusion"], "success");
  EXPECT_THAT(store_.check_runs()[0]["output"]["title"].get<std::string>(),
              HasSubstr("accepted by ada until 2026-12-20: a new fusion"));
  EXPECT_EQ(store_.statuses(k_sha)[0]["state"], "success");
  EXPECT_EQ(store_.statuses(k_sha)[0]["context"], "weir/gate");
}

TEST_F(Comments, OfWhoMayNotWriteHereAreRefused) {
  post(failing());
  expect_refused(says("eve", "/weir accept please"), "eve may not write here");
  expect_refused(says("nobody", "/weir accept please"), "nobody may not write here");
  store_.set_permission("mia", "maintain");
  EXPECT_EQ(answer(says("mia", "/weir accept fine")).kind, Kind::accepted);
}

TEST_F(Comments, ThatWereEditedOrAreByProgramsOrOnIssuesCountForNothing) {
  post(failing());
  CommentEvent event = says("ada", "/weir accept fine");
  event.created = false;
  expect_refused(event, "not one that was edited", Kind::nothing);
  event.created = true;
  event.bot = true;
  expect_refused(event, "written by a program", Kind::nothing);
  event.bot = false;
  event.on_pull_request = false;
  expect_refused(event, "on no pull request", Kind::nothing);
  expect_refused(says("ada", "looks good\n\n/weir accept quoted later"), "asks weir for nothing",
                 Kind::nothing);
}

TEST_F(Comments, ThatWereEditedSinceOrAreGoneAreRefused) {
  post(failing());
  const CommentEvent event = says("ada", "/weir accept fine");
  store_.login = "ada";
  (void)store_.answer({.method = "PATCH",
                       .path = fmt::format("/repos/o/r/issues/comments/{}", event.comment),
                       .body = R"({"body": "/weir accept something else"})"});
  expect_refused(event, "was edited since");
  (void)store_.answer(
      {.method = "DELETE", .path = fmt::format("/repos/o/r/issues/comments/{}", event.comment)});
  expect_refused(event, "there no more");
}

TEST_F(Comments, BeforeAPushAreVoid) {
  post(failing());
  const CommentEvent event = says("ada", "/weir accept fine");
  store_.add_pull(7, k_other);
  expect_refused(event, "pushed or measured after it");
  // Also once the new head has its verdict.
  post(failing("500"), "2026-11-20T09:40:00Z", k_other, 2);
  expect_refused(event, "pushed or measured after it");
}

TEST_F(Comments, BeforeAnotherMeasurementOfTheSameCommitAreVoid) {
  post(failing());
  const CommentEvent event = says("ada", "/weir accept fine");
  post(failing("500"), "2026-11-20T09:30:20Z", k_sha, 2);
  expect_refused(event, "pushed or measured after it");
}

TEST_F(Comments, DoNotAcceptWhatAForgedArtifactClaims) {
  post(failing());
  options_.claimed = verdict::would_take(failing("500"));
  expect_refused(says("ada", "/weir accept fine"), "says other things than the check run");
  options_.claimed = verdict::would_take(failing());
  EXPECT_EQ(answer(says("ada", "/weir accept fine")).kind, Kind::accepted);
}

TEST_F(Comments, DoNotBelieveACheckRunOfAnotherAppOrName) {
  post(failing());
  options_.app = "weir-of-ours";
  expect_refused(says("ada", "/weir accept fine"), "before there was a verdict");
  options_.app = "github-actions";
  options_.gate = "gpu";
  expect_refused(says("ada", "/weir accept fine"), "before there was a verdict");
}

TEST_F(Comments, NeedAReasonAndAFail) {
  post(failing());
  expect_refused(says("ada", "/weir accept   "), "say why");
  EXPECT_EQ(answer(says("ada", "/weir accept yes")).kind, Kind::accepted);
  EXPECT_THAT(answer(says("ada", "/weir accept yes")).why,
              HasSubstr("before there was a verdict"));  // turned green at 09:31, after it
}

TEST_F(Comments, LeaveTheCheckRedWhereMoreThanAllowedIsWrong) {
  verdict::GateVerdict gate = failing();
  gate.cells[0].placement_verdict = verdict::Outcome::fail;
  gate.cells[0].placement_reason = "moved to the CPU: MUL_MAT";
  post(gate);
  const Answer answered = answer(says("ada", "/weir accept fine"));
  EXPECT_EQ(answered.kind, Kind::accepted);
  EXPECT_FALSE(answered.green);
  ASSERT_THAT(answered.notes, SizeIs(1));
  EXPECT_THAT(answered.notes[0], HasSubstr("ran elsewhere"));
  EXPECT_EQ(store_.check_runs()[0]["conclusion"], "failure");
}

TEST_F(Comments, OnTheBranchAreWrittenAgainWhereSomebodyWasFaster) {
  post(failing());
  int others = 2;
  const auto other = [&](const std::string& cell) {
    return verdict::Allowance{
        {cell, "syncs_per_token", "1", "2"}, 7, {}, "other", "mia", "2026-12-31"};
  };
  api_.before = [&](const ApiRequest& request) {
    if (request.method != "PUT" || others == 0) return;
    --others;
    const Json there = store_.file(k_branch, k_file);
    std::vector<verdict::Allowance> all;
    if (there.is_string()) all = *verdict::parse_allowances(there.get<std::string>(), 7);
    all.push_back(other(fmt::format("e/m/b/p{}", others)));
    store_.set_file(k_branch, k_file, verdict::to_text(7, all));
  };
  EXPECT_EQ(answer(says("ada", "/weir accept fine")).kind, Kind::accepted);
  EXPECT_THAT(*verdict::parse_allowances(store_.file(k_branch, k_file).get<std::string>(), 7),
              SizeIs(3));
  // And not for ever.
  others = 100;
  EXPECT_FALSE(write_allowances(api_, "o/r", k_branch, 7, {other("e/m/b/q")}, "m"));
}

TEST_F(Comments, OfARunAnswerTheCommitAsItWasThen) {
  const Answer answered = answer(says("ada", "/weir run"));
  EXPECT_EQ(answered.kind, Kind::run) << answered.why;
  EXPECT_EQ(answered.sha, k_sha);
  EXPECT_TRUE(answered.fork);
  expect_refused(says("eve", "/weir run"), "may not write here");
  const CommentEvent event = says("ada", "/weir run");
  store_.add_pull(7, k_other);
  expect_refused(event, "was pushed after the comment");
  store_.set_pushed(k_other, "2026-11-20T09:30:15Z");  // in the same second: too late
  expect_refused(event, "was pushed after the comment");
}

TEST(ParseCommand, TakesTheFirstLineAlone) {
  const struct {
    const char* body;
    Command::Kind kind;
    const char* reason;
  } cases[] = {
      {"/weir accept because", Command::Kind::accept, "because"},
      {"\r\n/weir  accept\tbecause of @all \r\nmore", Command::Kind::accept, "because of @all"},
      {"/weir accept", Command::Kind::accept, ""},
      {"/weir run", Command::Kind::run, ""},
      {"/weir", Command::Kind::none, ""},
      {"/weird accept x", Command::Kind::none, ""},
      {"/weir acceptx", Command::Kind::none, ""},
      {"> /weir accept x", Command::Kind::none, ""},
      {"    /weir accept x", Command::Kind::none, ""},
      {"```\n/weir accept x\n```", Command::Kind::none, ""},
      {"", Command::Kind::none, ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_command(c.body).kind, c.kind) << c.body;
    EXPECT_EQ(parse_command(c.body).reason, c.reason) << c.body;
  }
  EXPECT_LE(parse_command("/weir accept " + std::string(5000, 'x')).reason.size(), 500U);
}

TEST(ReadCommentEvent, RefusesWhatIsNoSuchEvent) {
  for (const char* text : {"", "[]", "{}", R"({"comment": 1, "issue": []})"}) {
    EXPECT_FALSE(read_comment_event(text, "", "event")) << text;
  }
  const std::string good =
      R"({"action": "created", "repository": {"full_name": "o/r"}, "issue": {"number": 3},)"
      R"( "comment": {"id": 5, "created_at": "2026-11-20T09:30:15Z", "user": {"login": "a"}}})";
  const auto read = read_comment_event(good, "O/R", "event");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->on_pull_request);
  EXPECT_TRUE(read->bot);  // nobody says that it is a person
  EXPECT_FALSE(read_comment_event(good, "o/other", "event"));
}

}  // namespace
}  // namespace weir::publish
