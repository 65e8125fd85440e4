// Tests `/weir waive CODE REASON` and `/weir run SHA` in a comment, on a GitHub in memory.
#include "gate/publish/waive.hpp"

#include <gmock/gmock.h>

#include "gate/publish/post.hpp"
#include "gate/publish/target.hpp"

#include "tests/publish/store_api.hpp"

namespace weir::publish {
namespace waive_test {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using tests::GithubStore;
using tests::StoreApi;
using Kind = Answer::Kind;

const std::string k_sha(40, 'a'), k_second_sha(40, 'b');
constexpr const char* k_cell = "llama.cpp/tiny/vulkan/decode";
constexpr const char* k_file = "waivers/7.json";
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
  return waiver_code(target_at(sha), "gate", verdict::needed_waivers(gate));
}
std::string waive_line(const verdict::GateVerdict& gate, const std::string& reason = "fine") {
  return "/weir waive " + make_code(gate) + " " + reason;
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
  WaiveOptions options_{.gate = "gate",
                        .branch = k_branch,
                        .until = "2026-12-20",
                        .app = "github-actions",
                        .claimed = {}};
};

TEST_F(Comments, WaiveExactlyWhatTheirAuthorSawAndTurnTheCheckGreen) {
  post(failing_gate());
  const Answer answered =
      answer(says("ada", waive_line(failing_gate(), "a new fusion, measured twice")));
  EXPECT_EQ(answered.kind, Kind::waived) << answered.why;
  EXPECT_TRUE(answered.green);
  EXPECT_TRUE(answered.fork);
  const auto waivers = verdict::parse_waivers(store_.file(k_branch, k_file).get<std::string>(), 7);
  ASSERT_TRUE(waivers) << waivers.error().message;
  ASSERT_THAT(*waivers, SizeIs(1));
  EXPECT_EQ((*waivers)[0].what.from, "65");
  EXPECT_EQ((*waivers)[0].what.to, "77");
  EXPECT_EQ((*waivers)[0].head, k_sha);
  EXPECT_EQ((*waivers)[0].base, "main");
  EXPECT_EQ((*waivers)[0].who, "ada");
  EXPECT_EQ((*waivers)[0].reason, "a new fusion, measured twice");
  ASSERT_THAT(store_.check_runs(), SizeIs(1));
  EXPECT_EQ(store_.check_runs()[0]["conclusion"], "success");
  EXPECT_THAT(store_.check_runs()[0]["output"]["title"].get<std::string>(),
              HasSubstr("waived by ada until 2026-12-20: a new fusion"));
  EXPECT_THAT(store_.check_runs()[0]["output"]["summary"].get<std::string>(),
              AllOf(HasSubstr("### \u2705 weir: waived: 1 of 1 cell broke a limit"),
                    Not(HasSubstr("\u274c weir"))));
  EXPECT_EQ(store_.statuses(k_sha)[0]["state"], "success");
  EXPECT_EQ(store_.statuses(k_sha)[0]["context"], "weir/gate (main #7)");
}

TEST_F(Comments, MakeTheBranchOfWaiversIfThereIsNone) {
  post(failing_gate());
  options_.branch = "waived-here";
  const Answer answered = answer(says("ada", waive_line(failing_gate())));
  EXPECT_EQ(answered.kind, Kind::waived) << answered.why;
  EXPECT_TRUE(answered.green);
  const auto waivers =
      verdict::parse_waivers(store_.file("waived-here", k_file).get<std::string>(), 7);
  ASSERT_TRUE(waivers) << waivers.error().message;
  EXPECT_THAT(*waivers, SizeIs(1));
}

// The job that measured this verdict ends red, like the verdict.
TEST_F(Comments, AreOfferedForAForksRunThatWasJudgedHere) {
  MeasuringRun fork{.conclusion = "failure", .fork = true, .judged_here = true};
  fork.of_pull_request = true;
  const std::string line = "/weir waive " + make_code(failing_gate()) + " REASON";
  EXPECT_THAT(texts_of(failing_gate(), {}, fork, target_at(k_sha)).comment, HasSubstr(line));
  fork.judged_here = false;
  EXPECT_THAT(texts_of(failing_gate(), {}, fork, target_at(k_sha)).comment,
              testing::Not(HasSubstr(line)));
}

TEST_F(Comments, AreOfferedReadyToCopyWhereTheVerdictIsShown) {
  post(failing_gate());
  const std::string line = "\n/weir waive " + make_code(failing_gate()) + " REASON\n";
  EXPECT_EQ(make_code(failing_gate()).size(), 40U);  // 160 bits: a collision takes 2^80 tries
  EXPECT_THAT(store_.comments(7)[0]["body"].get<std::string>(), HasSubstr(line));
  EXPECT_THAT(store_.check_runs()[0]["output"]["summary"].get<std::string>(), HasSubstr(line));
  EXPECT_THAT(store_.check_runs()[0]["output"]["text"].get<std::string>(),
              HasSubstr("except the pull request's author"));
}

TEST(WaiverCode, IsOfHeadBasePullRequestGateRulesAndChanges) {
  const verdict::NeededWaivers take = verdict::needed_waivers(failing_gate());
  std::set<std::string> codes{waiver_code(target_at(k_sha), "gate", take)};
  const auto differs = [&](const Target& target, const std::string& gate,
                           const verdict::NeededWaivers& what, const char* about) {
    EXPECT_TRUE(codes.insert(waiver_code(target, gate, what)).second) << about;
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
  verdict::NeededWaivers changed = take;
  changed.rules->commit.back() = 'e';
  differs(target_at(k_sha), "gate", changed, "rules of another commit");
  changed = take;
  changed.rules->text_hash.back() = 'f';
  differs(target_at(k_sha), "gate", changed, "another text of rules");
  changed = take;
  changed.rules->waive_own = true;
  differs(target_at(k_sha), "gate", changed, "others may waive");
  changed = take;
  changed.beyond = {"more"};
  differs(target_at(k_sha), "gate", changed, "more that is wrong");
  differs(target_at(k_sha), "gate", verdict::needed_waivers(failing_gate("78")), "another value");
  // The code does not depend on the run that measured it.
  EXPECT_FALSE(codes.insert(waiver_code(target_at(k_sha, 9), "gate", take)).second);
}

TEST_F(Comments, OfThePullRequestsAuthorAreRefusedUnlessTheBasesRulesSayOtherwise) {
  post(failing_gate());
  for (const char* login : {"contributor", "Contributor"}) store_.set_permission(login, "admin");
  expect_refused(
      says("Contributor", waive_line(failing_gate())),
      "somebody else has to waive its changes (gate.waive_own of main), by the comment: " +
          waiver_line(make_code(failing_gate())));
  verdict::GateVerdict own = failing_gate();
  own.rules->waive_own = true;
  post(own, k_sha, 2);
  expect_refused(says("contributor", waive_line(failing_gate())),
                 "no code of what stands there now");
  EXPECT_EQ(answer(says("contributor", waive_line(own))).kind, Kind::waived);
}

TEST_F(Comments, OfWhoMayNotWriteHereAreRefused) {
  post(failing_gate());
  expect_refused(says("eve", "/weir waive please"), "eve may not write here");
  expect_refused(says("nobody", "/weir waive please"), "nobody may not write here");
  store_.set_permission("mia", "maintain");
  EXPECT_EQ(answer(says("mia", waive_line(failing_gate()))).kind, Kind::waived);
}

TEST_F(Comments, ThatWereEditedOrAreByProgramsOrOnIssuesCountForNothing) {
  post(failing_gate());
  CommentEvent event = says("ada", waive_line(failing_gate()));
  event.created = false;
  expect_refused(event, "not one that was edited", Kind::nothing);
  event.created = true;
  event.bot = true;
  expect_refused(event, "written by a program", Kind::nothing);
  event.bot = false;
  event.on_pull_request = false;
  expect_refused(event, "on no pull request", Kind::nothing);
  expect_refused(says("ada", "looks good\n\n/weir waive quoted later"), "asks weir for nothing",
                 Kind::nothing);
}

TEST_F(Comments, ThatWereEditedSinceOrAreGoneAreRefused) {
  post(failing_gate());
  const CommentEvent event = says("ada", waive_line(failing_gate()));
  store_.login = "ada";
  (void)store_.answer({.method = "PATCH",
                       .path = fmt::format("/repos/o/r/issues/comments/{}", event.comment),
                       .body = R"({"body": "/weir waive something else"})"});
  expect_refused(event, "was edited since");
  (void)store_.answer(
      {.method = "DELETE", .path = fmt::format("/repos/o/r/issues/comments/{}", event.comment)});
  expect_refused(event, "there no more");
}

// Bad M is measured; harmless B is pushed; a maintainer waives B; M is pushed back before the
// comment's job begins.
TEST_F(Comments, AboutAHarmlessCommitDoNotWaiveTheBadOneThatWasPushedBack) {
  post(failing_gate("500"));
  store_.add_pull(7, k_second_sha);
  post(failing_gate(), k_second_sha, 2);
  const CommentEvent event =
      says("ada", "/weir waive " + make_code(failing_gate(), k_second_sha) + " fine");
  store_.add_pull(7, k_sha);
  // The answer has the line that would waive M, for those who have looked at it.
  expect_refused(event, "then comment: /weir waive " + make_code(failing_gate("500")) + " REASON");
  store_.add_pull(7, std::string(40, 'c'));
  expect_refused(event, "has posted no verdict of ccccccc");
  store_.add_pull(7, k_second_sha);
  EXPECT_EQ(answer(event).kind, Kind::waived) << "B is the head again";
}

TEST_F(Comments, BeforeAnotherMeasurementOfTheSameCommitAreVoidUnlessItSaysTheSame) {
  post(failing_gate());
  const CommentEvent event = says("ada", waive_line(failing_gate()));
  post(failing_gate("500"), k_sha, 2);
  expect_refused(event, "no code of what stands there now");
  post(failing_gate(), k_sha, 3);
  EXPECT_EQ(answer(event).kind, Kind::waived);
}

TEST_F(Comments, AreForTheBaseThatThePullRequestHadThen) {
  post(failing_gate());
  const CommentEvent event = says("ada", waive_line(failing_gate()));
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
  const Answer answered = answer(says("ada", waive_line(failing_gate())));
  EXPECT_EQ(answered.kind, Kind::waived);
  EXPECT_FALSE(answered.green);
  EXPECT_THAT(answered.notes.at(0), HasSubstr("waits for pull request 8"));
  for (const Json& check : store_.check_runs()) EXPECT_EQ(check["conclusion"], "failure");
}

TEST_F(Comments, DoNotWaiveWhatAForgedArtifactClaims) {
  post(failing_gate());
  options_.claimed = verdict::needed_waivers(failing_gate("500"));
  expect_refused(says("ada", waive_line(failing_gate())), "says other things than the check run");
  options_.claimed = verdict::needed_waivers(failing_gate());
  EXPECT_EQ(answer(says("ada", waive_line(failing_gate()))).kind, Kind::waived);
}

TEST_F(Comments, DoNotBelieveACheckRunOfAnotherAppOrName) {
  post(failing_gate());
  options_.app = "weir-of-ours";
  expect_refused(says("ada", waive_line(failing_gate())), "has posted no verdict");
  options_.app = "github-actions";
  options_.gate = "gpu";
  expect_refused(says("ada", waive_line(failing_gate())), "has posted no verdict");
}

TEST_F(Comments, NeedACodeAReasonAndAFail) {
  post(failing_gate());
  expect_refused(says("ada", waive_line(failing_gate(), "  ")), "say why");
  for (const char* without : {"/weir waive", "/weir waive fine", "/weir waive 0123 fine"}) {
    expect_refused(says("ada", without), "/weir waive " + make_code(failing_gate()) + " REASON");
  }
  EXPECT_EQ(answer(says("ada", waive_line(failing_gate()))).kind, Kind::waived);
  EXPECT_THAT(answer(says("ada", waive_line(failing_gate()))).why, HasSubstr("nothing to waive"));
}

TEST_F(Comments, LeaveTheCheckRedWhereMoreThanWaivedIsWrong) {
  verdict::GateVerdict gate = failing_gate();
  gate.cells[0].put("placement").verdict = verdict::Outcome::fail;
  gate.cells[0].put("placement").reason = "moved to the CPU: MUL_MAT";
  post(gate);
  const Answer answered = answer(says("ada", waive_line(gate)));
  EXPECT_EQ(answered.kind, Kind::waived);
  EXPECT_FALSE(answered.green);
  ASSERT_THAT(answered.notes, SizeIs(1));
  EXPECT_THAT(answered.notes[0], HasSubstr("ran elsewhere"));
  EXPECT_EQ(store_.check_runs()[0]["conclusion"], "failure");
}

TEST_F(Comments, OnTheBranchAreWrittenAgainWhereSomebodyWasFaster) {
  post(failing_gate());
  int rivals = 2;
  const auto make_waiver = [&](const std::string& cell) {
    return verdict::Waiver{
        {cell, "syncs_per_token", "1", "2"}, 7, {}, "other", "mia", "2026-12-31"};
  };
  api_.before = [&](const ApiRequest& request) {
    if (request.method != "PUT" || rivals == 0) return;
    --rivals;
    const Json there = store_.file(k_branch, k_file);
    std::vector<verdict::Waiver> all;
    if (there.is_string()) all = *verdict::parse_waivers(there.get<std::string>(), 7);
    all.push_back(make_waiver(fmt::format("e/m/b/p{}", rivals)));
    store_.set_file(k_branch, k_file, verdict::to_text(7, all));
  };
  EXPECT_EQ(answer(says("ada", waive_line(failing_gate()))).kind, Kind::waived);
  EXPECT_THAT(*verdict::parse_waivers(store_.file(k_branch, k_file).get<std::string>(), 7),
              SizeIs(3));
  // It gives up after some tries.
  rivals = 100;
  EXPECT_FALSE(write_waivers(api_, "o/r", k_branch, 7, {make_waiver("e/m/b/q")}, "m"));
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
      {"/weir waive C0DE because", Command::Kind::waive, "c0de", "because"},
      {"\r\n/weir  waive\tcode  because of @all \r\nmore", Command::Kind::waive, "code",
       "because of @all"},
      {"/weir waive", Command::Kind::waive, "", ""},
      {"/weir waive code", Command::Kind::waive, "code", ""},
      {"/weir accept C0DE because", Command::Kind::waive, "c0de", "because"},
      {"/weir run", Command::Kind::run, "", ""},
      {"/weir run ABC please", Command::Kind::run, "abc", ""},
      {"/weir", Command::Kind::none, "", ""},
      {"/weird waive x", Command::Kind::none, "", ""},
      {"/weir waivex", Command::Kind::none, "", ""},
      {"/weir acceptx", Command::Kind::none, "", ""},
      {"> /weir waive x", Command::Kind::none, "", ""},
      {"    /weir waive x", Command::Kind::none, "", ""},
      {"```\n/weir waive x\n```", Command::Kind::none, "", ""},
      {"", Command::Kind::none, "", ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_command(c.body).kind, c.kind) << c.body;
    EXPECT_EQ(parse_command(c.body).word, c.word) << c.body;
    EXPECT_EQ(parse_command(c.body).reason, c.reason) << c.body;
  }
  EXPECT_LE(parse_command("/weir waive c " + std::string(5000, 'x')).reason.size(), 500U);
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

}  // namespace waive_test
}  // namespace weir::publish
