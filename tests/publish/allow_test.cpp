// Tests `/weir accept CODE REASON` and `/weir run SHA` in a comment, on a GitHub in memory.
#include "gate/publish/allow.hpp"

#include <gmock/gmock.h>

#include "gate/publish/post.hpp"
#include "gate/publish/target.hpp"

#include "tests/publish/store_api.hpp"

namespace weir::publish {
namespace allow_test {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using tests::GithubStore;
using tests::StoreApi;
using Kind = Answer::Kind;

const std::string k_sha(40, 'a'), k_second_sha(40, 'b');
constexpr const char* k_cell = "llama.cpp/tiny/vulkan/decode";
constexpr const char* k_file = "allowances/7.json";
constexpr const char* k_branch = "perf-baselines";

verdict::GateVerdict failing_gate(const std::string& to = "77") {
  verdict::Judgement metric;
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
  cell.judgements = {metric};
  verdict::GateVerdict gate = verdict::judge_gate({cell}, {});
  gate.weir_version = "0.1.0";
  gate.rules = verdict::RulesFrom{"origin/main", std::string(40, 'd'), std::string(64, 'e')};
  return gate;
}

Target target_at(const std::string& sha, std::int64_t run = 1) {
  return {.repository = "o/r", .pull_request = 7, .sha = sha, .run = {run, 1}, .base = "main"};
}
std::string make_code(const verdict::GateVerdict& gate, const std::string& sha = k_sha) {
  return acceptance_code(target_at(sha), "gate", verdict::needed_allowances(gate));
}
std::string accepts(const verdict::GateVerdict& gate, const std::string& reason = "fine") {
  return "/weir accept " + make_code(gate) + " " + reason;
}

class Comments : public testing::Test {
 protected:
  void SetUp() override {
    store_.add_pull(7, k_sha, {{"head", {{"sha", k_sha}, {"repo", {{"full_name", "fork/r"}}}}}});
    store_.set_permission("ada", "write");
    store_.set_permission("eve", "read");
    store_.set_file(k_branch, "README", "data");
  }
  void post(const verdict::GateVerdict& gate, const std::string& sha = k_sha,
            std::int64_t run = 1) {
    const Target target = target_at(sha, run);
    const auto parts =
        publish::post(api_, target, texts_of(gate, {}, {}, target), {}, [](double) {});
    for (const Part& part : parts) EXPECT_NE(part.outcome, Part::Outcome::failed) << part.reason;
  }
  CommentEvent says(const std::string& login, const std::string& body) {
    const std::int64_t id = store_.add_comment(7, login, body);
    Json event = {
        {"action", "created"},
        {"repository", {{"full_name", "o/r"}}},
        {"issue", {{"number", 7}, {"pull_request", {{"url", "u"}}}}},
        {"comment", {{"id", id}, {"body", body}, {"user", {{"login", login}, {"type", "User"}}}}}};
    const auto read = read_comment_event(dump_json(event), "o/r", "event");
    EXPECT_TRUE(read) << read.error().message;
    return *read;
  }
  Answer answer(const CommentEvent& event) {
    const auto answered = answer_comment(api_, event, options_);
    EXPECT_TRUE(answered) << answered.error().message;
    return answered.value_or(Answer{});
  }
  // Checks that the comment was refused, nothing was written and no check turned green.
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
                        .claimed = {}};
};

TEST_F(Comments, AcceptExactlyWhatTheirAuthorSawAndTurnTheCheckGreen) {
  post(failing_gate());
  const Answer answered =
      answer(says("ada", accepts(failing_gate(), "a new fusion, measured twice")));
  EXPECT_EQ(answered.kind, Kind::accepted) << answered.why;
  EXPECT_TRUE(answered.green);
  EXPECT_TRUE(answered.fork);
  const auto allowances =
      verdict::parse_allowances(store_.file(k_branch, k_file).get<std::string>(), 7);
  ASSERT_TRUE(allowances) << allowances.error().message;
  ASSERT_THAT(*allowances, SizeIs(1));
  EXPECT_EQ((*allowances)[0].what.from, "65");
  EXPECT_EQ((*allowances)[0].what.to, "77");
  EXPECT_EQ((*allowances)[0].head, k_sha);
  EXPECT_EQ((*allowances)[0].base, "main");
  EXPECT_EQ((*allowances)[0].who, "ada");
  EXPECT_EQ((*allowances)[0].reason, "a new fusion, measured twice");
  ASSERT_THAT(store_.check_runs(), SizeIs(1));
  EXPECT_EQ(store_.check_runs()[0]["conclusion"], "success");
  EXPECT_THAT(store_.check_runs()[0]["output"]["title"].get<std::string>(),
              HasSubstr("accepted by ada until 2026-12-20: a new fusion"));
  EXPECT_EQ(store_.statuses(k_sha)[0]["state"], "success");
  EXPECT_EQ(store_.statuses(k_sha)[0]["context"], "weir/gate (main #7)");
}

// The job that measured this verdict ends red, like the verdict.
TEST_F(Comments, AreOfferedForAForksRunThatWasJudgedHere) {
  MeasuringRun fork{.conclusion = "failure", .fork = true, .judged_here = true};
  fork.of_pull_request = true;
  const std::string line = "/weir accept " + make_code(failing_gate()) + " REASON";
  EXPECT_THAT(texts_of(failing_gate(), {}, fork, target_at(k_sha)).comment, HasSubstr(line));
  fork.judged_here = false;
  EXPECT_THAT(texts_of(failing_gate(), {}, fork, target_at(k_sha)).comment,
              testing::Not(HasSubstr(line)));
}

TEST_F(Comments, AreOfferedReadyToCopyWhereTheVerdictIsShown) {
  post(failing_gate());
  const std::string line = "\n/weir accept " + make_code(failing_gate()) + " REASON\n";
  EXPECT_EQ(make_code(failing_gate()).size(), 40U);  // 160 bits: a collision takes 2^80 tries
  EXPECT_THAT(store_.comments(7)[0]["body"].get<std::string>(), HasSubstr(line));
  EXPECT_THAT(store_.check_runs()[0]["output"]["summary"].get<std::string>(), HasSubstr(line));
  EXPECT_THAT(store_.check_runs()[0]["output"]["text"].get<std::string>(),
              HasSubstr("except the pull request's author"));
}

TEST(AcceptanceCode, IsOfHeadBasePullRequestGateRulesAndChanges) {
  const verdict::NeededAllowances take = verdict::needed_allowances(failing_gate());
  std::set<std::string> codes{acceptance_code(target_at(k_sha), "gate", take)};
  const auto differs = [&](const Target& target, const std::string& gate,
                           const verdict::NeededAllowances& what, const char* about) {
    EXPECT_TRUE(codes.insert(acceptance_code(target, gate, what)).second) << about;
  };
  Target target = target_at(k_sha);
  target.sha.back() = 'b';  // one of forty digits
  differs(target, "gate", take, "another head");
  target = target_at(k_sha);
  target.base = "Main";
  differs(target, "gate", take, "another base");
  target.base = "main";
  target.pull_request = 8;
  differs(target, "gate", take, "another pull request");
  differs(target_at(k_sha), "gpu", take, "another gate");
  verdict::NeededAllowances changed = take;
  changed.rules->commit.back() = 'e';
  differs(target_at(k_sha), "gate", changed, "rules of another commit");
  changed = take;
  changed.rules->text_hash.back() = 'f';
  differs(target_at(k_sha), "gate", changed, "another text of rules");
  changed = take;
  changed.rules->accept_own = true;
  differs(target_at(k_sha), "gate", changed, "others may accept");
  changed = take;
  changed.beyond = {"more"};
  differs(target_at(k_sha), "gate", changed, "more that is wrong");
  differs(target_at(k_sha), "gate", verdict::needed_allowances(failing_gate("78")),
          "another value");
  // The code does not depend on the run that measured it.
  EXPECT_FALSE(codes.insert(acceptance_code(target_at(k_sha, 9), "gate", take)).second);
}

TEST_F(Comments, OfThePullRequestsAuthorAreRefusedUnlessTheBasesRulesSayOtherwise) {
  post(failing_gate());
  for (const char* login : {"contributor", "Contributor"}) store_.set_permission(login, "admin");
  expect_refused(says("Contributor", accepts(failing_gate())), "somebody else has to accept it");
  verdict::GateVerdict own = failing_gate();
  own.rules->accept_own = true;
  post(own, k_sha, 2);
  expect_refused(says("contributor", accepts(failing_gate())), "no code of what stands there now");
  EXPECT_EQ(answer(says("contributor", accepts(own))).kind, Kind::accepted);
}

TEST_F(Comments, OfWhoMayNotWriteHereAreRefused) {
  post(failing_gate());
  expect_refused(says("eve", "/weir accept please"), "eve may not write here");
  expect_refused(says("nobody", "/weir accept please"), "nobody may not write here");
  store_.set_permission("mia", "maintain");
  EXPECT_EQ(answer(says("mia", accepts(failing_gate()))).kind, Kind::accepted);
}

TEST_F(Comments, ThatWereEditedOrAreByProgramsOrOnIssuesCountForNothing) {
  post(failing_gate());
  CommentEvent event = says("ada", accepts(failing_gate()));
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
  post(failing_gate());
  const CommentEvent event = says("ada", accepts(failing_gate()));
  store_.login = "ada";
  (void)store_.answer({.method = "PATCH",
                       .path = fmt::format("/repos/o/r/issues/comments/{}", event.comment),
                       .body = R"({"body": "/weir accept something else"})"});
  expect_refused(event, "was edited since");
  (void)store_.answer(
      {.method = "DELETE", .path = fmt::format("/repos/o/r/issues/comments/{}", event.comment)});
  expect_refused(event, "there no more");
}

// Bad M is measured; harmless B is pushed; a maintainer accepts B; M is pushed back before the
// comment's job begins.
TEST_F(Comments, AboutAHarmlessCommitDoNotAcceptTheBadOneThatWasPushedBack) {
  post(failing_gate("500"));
  store_.add_pull(7, k_second_sha);
  post(failing_gate(), k_second_sha, 2);
  const CommentEvent event =
      says("ada", "/weir accept " + make_code(failing_gate(), k_second_sha) + " fine");
  store_.add_pull(7, k_sha);
  // The answer has the line that would accept M, for those who have looked at it.
  expect_refused(event, "then comment: /weir accept " + make_code(failing_gate("500")) + " REASON");
  store_.add_pull(7, std::string(40, 'c'));
  expect_refused(event, "has posted no verdict of ccccccc");
  store_.add_pull(7, k_second_sha);
  EXPECT_EQ(answer(event).kind, Kind::accepted) << "B is the head again";
}

TEST_F(Comments, BeforeAnotherMeasurementOfTheSameCommitAreVoidUnlessItSaysTheSame) {
  post(failing_gate());
  const CommentEvent event = says("ada", accepts(failing_gate()));
  post(failing_gate("500"), k_sha, 2);
  expect_refused(event, "no code of what stands there now");
  post(failing_gate(), k_sha, 3);
  EXPECT_EQ(answer(event).kind, Kind::accepted);
}

TEST_F(Comments, AreForTheBaseThatThePullRequestHadThen) {
  post(failing_gate());
  const CommentEvent event = says("ada", accepts(failing_gate()));
  store_.add_pull(7, k_sha, {{"base", {{"ref", "lax"}}}});
  expect_refused(event,
                 "has posted no verdict of aaaaaaa, the head of the pull request now, for lax");
}

// Two pull requests of one head into one branch share the name of their check.
TEST_F(Comments, TurnNoCheckGreenThatStandsForAnotherPullRequestWhichIsRed) {
  store_.add_pull(8, k_sha, {{"user", {{"login", "ada"}}}});
  post(failing_gate());
  Target second = target_at(k_sha, 2);
  second.pull_request = 8;
  (void)publish::post(api_, second, texts_of(failing_gate(), {}, {}, second), {}, [](double) {});
  const Answer answered = answer(says("ada", accepts(failing_gate())));
  EXPECT_EQ(answered.kind, Kind::accepted);
  EXPECT_FALSE(answered.green);
  EXPECT_THAT(answered.notes.at(0), HasSubstr("waits for pull request 8"));
  for (const Json& check : store_.check_runs()) EXPECT_EQ(check["conclusion"], "failure");
}

TEST_F(Comments, DoNotAcceptWhatAForgedArtifactClaims) {
  post(failing_gate());
  options_.claimed = verdict::needed_allowances(failing_gate("500"));
  expect_refused(says("ada", accepts(failing_gate())), "says other things than the check run");
  options_.claimed = verdict::needed_allowances(failing_gate());
  EXPECT_EQ(answer(says("ada", accepts(failing_gate()))).kind, Kind::accepted);
}

TEST_F(Comments, DoNotBelieveACheckRunOfAnotherAppOrName) {
  post(failing_gate());
  options_.app = "weir-of-ours";
  expect_refused(says("ada", accepts(failing_gate())), "has posted no verdict");
  options_.app = "github-actions";
  options_.gate = "gpu";
  expect_refused(says("ada", accepts(failing_gate())), "has posted no verdict");
}

TEST_F(Comments, NeedACodeAReasonAndAFail) {
  post(failing_gate());
  expect_refused(says("ada", accepts(failing_gate(), "  ")), "say why");
  for (const char* without : {"/weir accept", "/weir accept fine", "/weir accept 0123 fine"}) {
    expect_refused(says("ada", without), "/weir accept " + make_code(failing_gate()) + " REASON");
  }
  EXPECT_EQ(answer(says("ada", accepts(failing_gate()))).kind, Kind::accepted);
  EXPECT_THAT(answer(says("ada", accepts(failing_gate()))).why, HasSubstr("nothing to accept"));
}

TEST_F(Comments, LeaveTheCheckRedWhereMoreThanAllowedIsWrong) {
  verdict::GateVerdict gate = failing_gate();
  gate.cells[0].put("placement").verdict = verdict::Outcome::fail;
  gate.cells[0].put("placement").reason = "moved to the CPU: MUL_MAT";
  post(gate);
  const Answer answered = answer(says("ada", accepts(gate)));
  EXPECT_EQ(answered.kind, Kind::accepted);
  EXPECT_FALSE(answered.green);
  ASSERT_THAT(answered.notes, SizeIs(1));
  EXPECT_THAT(answered.notes[0], HasSubstr("ran elsewhere"));
  EXPECT_EQ(store_.check_runs()[0]["conclusion"], "failure");
}

TEST_F(Comments, OnTheBranchAreWrittenAgainWhereSomebodyWasFaster) {
  post(failing_gate());
  int rivals = 2;
  const auto make_allowance = [&](const std::string& cell) {
    return verdict::Allowance{
        {cell, "syncs_per_token", "1", "2"}, 7, {}, "other", "mia", "2026-12-31"};
  };
  api_.before = [&](const ApiRequest& request) {
    if (request.method != "PUT" || rivals == 0) return;
    --rivals;
    const Json there = store_.file(k_branch, k_file);
    std::vector<verdict::Allowance> all;
    if (there.is_string()) all = *verdict::parse_allowances(there.get<std::string>(), 7);
    all.push_back(make_allowance(fmt::format("e/m/b/p{}", rivals)));
    store_.set_file(k_branch, k_file, verdict::to_text(7, all));
  };
  EXPECT_EQ(answer(says("ada", accepts(failing_gate()))).kind, Kind::accepted);
  EXPECT_THAT(*verdict::parse_allowances(store_.file(k_branch, k_file).get<std::string>(), 7),
              SizeIs(3));
  // It gives up after some tries.
  rivals = 100;
  EXPECT_FALSE(write_allowances(api_, "o/r", k_branch, 7, {make_allowance("e/m/b/q")}, "m"));
}

TEST_F(Comments, OfARunNameTheWholeHeadThatWasRead) {
  const Answer answered = answer(says("ada", "/weir run " + k_sha));
  EXPECT_EQ(answered.kind, Kind::run) << answered.why;
  EXPECT_EQ(answered.sha, k_sha);
  EXPECT_TRUE(answered.fork);
  expect_refused(says("eve", "/weir run " + k_sha), "may not write here");
  const std::string line = "/weir run " + k_sha;
  expect_refused(says("ada", "/weir run"), line);
  expect_refused(says("ada", "/weir run aaaaaaa"), line);  // seven digits can be forged
  expect_refused(says("ada", "/weir run " + k_sha.substr(1)), line);
  const CommentEvent event = says("ada", "/weir run " + k_sha);
  store_.add_pull(7, k_second_sha);
  expect_refused(event, "another head by now");
}

TEST(ParseCommand, TakesTheFirstLineAlone) {
  const struct {
    const char* body;
    Command::Kind kind;
    const char *word, *reason;
  } cases[] = {
      {"/weir accept C0DE because", Command::Kind::accept, "c0de", "because"},
      {"\r\n/weir  accept\tcode  because of @all \r\nmore", Command::Kind::accept, "code",
       "because of @all"},
      {"/weir accept", Command::Kind::accept, "", ""},
      {"/weir accept code", Command::Kind::accept, "code", ""},
      {"/weir run", Command::Kind::run, "", ""},
      {"/weir run ABC please", Command::Kind::run, "abc", ""},
      {"/weir", Command::Kind::none, "", ""},
      {"/weird accept x", Command::Kind::none, "", ""},
      {"/weir acceptx", Command::Kind::none, "", ""},
      {"> /weir accept x", Command::Kind::none, "", ""},
      {"    /weir accept x", Command::Kind::none, "", ""},
      {"```\n/weir accept x\n```", Command::Kind::none, "", ""},
      {"", Command::Kind::none, "", ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_command(c.body).kind, c.kind) << c.body;
    EXPECT_EQ(parse_command(c.body).word, c.word) << c.body;
    EXPECT_EQ(parse_command(c.body).reason, c.reason) << c.body;
  }
  EXPECT_LE(parse_command("/weir accept c " + std::string(5000, 'x')).reason.size(), 500U);
}

TEST(ReadCommentEvent, RefusesWhatIsNoSuchEvent) {
  for (const char* text : {"", "[]", "{}", R"({"comment": 1, "issue": []})"}) {
    EXPECT_FALSE(read_comment_event(text, "", "event")) << text;
  }
  const std::string good =
      R"({"action": "created", "repository": {"full_name": "o/r"}, "issue": {"number": 3},)"
      R"( "comment": {"id": 5, "user": {"login": "a"}}})";
  const auto read = read_comment_event(good, "O/R", "event");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->on_pull_request);
  EXPECT_TRUE(read->bot);  // the event does not prove a person
  EXPECT_FALSE(read_comment_event(good, "o/other", "event"));
}

}  // namespace allow_test
}  // namespace weir::publish
