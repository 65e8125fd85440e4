// Tests the posted texts: a gate that measured nothing, or not all, is not green.
#include <gmock/gmock.h>

#include "gate/publish/api.hpp"
#include "gate/publish/post.hpp"

namespace weir::publish {
namespace texts_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using verdict::ExitCode;
using verdict::Outcome;

verdict::GateVerdict make_gate(Outcome outcome, ExitCode exit_code, std::size_t cells = 1) {
  verdict::GateVerdict gate;
  gate.verdict = outcome;
  gate.exit_code = exit_code;
  gate.config = "weir.yaml";
  for (std::size_t i = 0; i < cells; ++i) {
    verdict::CellVerdict cell;
    cell.cell.engine = "e";
    cell.cell.model = "m";
    cell.cell.backend = "b";
    cell.cell.prompt = fmt::format("p{}", i);
    cell.verdict = outcome;
    gate.cells.push_back(cell);
    ++gate.totals[std::string(verdict::to_string(outcome))];
  }
  return gate;
}

TEST(Texts, OfAPassAreGreenAndOfAFailRed) {
  const Texts pass = texts_of(make_gate(Outcome::pass, ExitCode::pass), {}, {"success"});
  EXPECT_EQ(pass.check.conclusion, "success");
  EXPECT_EQ(pass.status.state, "success");
  const Texts unknown = texts_of(make_gate(Outcome::pass, ExitCode::pass), {}, {});
  EXPECT_EQ(unknown.check.conclusion, "success");
  const Texts fails = texts_of(make_gate(Outcome::fail, ExitCode::fail), {}, {"failure"});
  EXPECT_EQ(fails.check.conclusion, "failure");
  EXPECT_EQ(fails.status.state, "failure");
  EXPECT_THAT(fails.comment, Not(HasSubstr("not counted"))) << "a red gate makes its run fail";
}

TEST(Texts, OfARunThatDidNotEndWellAreNoPass) {
  for (const char* conclusion : {"failure", "cancelled", "timed_out", "skipped", "", "new`word"}) {
    const Texts texts = texts_of(make_gate(Outcome::pass, ExitCode::pass), {}, {conclusion});
    EXPECT_EQ(texts.check.conclusion, "failure") << conclusion;
    EXPECT_EQ(texts.status.state, "error") << conclusion;
    EXPECT_THAT(texts.comment, HasSubstr("not counted as a pass")) << conclusion;
    EXPECT_THAT(texts.status.description, StartsWith("not judged: ")) << conclusion;
    EXPECT_LE(texts.status.description.size(), 160U);
  }
}

TEST(Texts, OfAForksRunAreNoPassAndStayAFail) {
  const MeasuringRun fork{.conclusion = "success", .fork = true};
  const Texts pass = texts_of(make_gate(Outcome::pass, ExitCode::pass), {}, fork);
  EXPECT_EQ(pass.check.conclusion, "failure");
  EXPECT_EQ(pass.status.state, "error");
  EXPECT_THAT(pass.check.title, StartsWith("not judged: a fork's own run"));
  EXPECT_THAT(pass.comment, HasSubstr("**Not judged:** a fork"));
  const Texts fails = texts_of(make_gate(Outcome::fail, ExitCode::fail), {}, fork);
  EXPECT_EQ(fails.status.state, "failure");
  EXPECT_THAT(fails.check.title, Not(HasSubstr("not judged")));
}

verdict::GateVerdict by_rules(verdict::GateVerdict gate) {
  gate.rules = verdict::RulesFrom{"origin/main", std::string(40, 'b'), std::string(64, 'e')};
  return gate;
}
const Target k_target{.repository = "o/r",
                      .pull_request = 7,
                      .sha = std::string(40, 'a'),
                      .base = "main",
                      .base_sha = std::string(40, 'b')};

TEST(Texts, OfAForksRunThatWasJudgedHereArePassesThatSayWhatNobodyCanVouchFor) {
  MeasuringRun fork{.conclusion = "success", .fork = true, .judged_here = true};
  fork.of_pull_request = true;
  const auto pass = by_rules(make_gate(Outcome::pass, ExitCode::pass));
  const Texts green = texts_of(pass, {}, fork, k_target);
  EXPECT_EQ(green.check.conclusion, "success");
  EXPECT_EQ(green.status.state, "success");
  for (const std::string& text : {green.check.summary, green.comment}) {
    EXPECT_THAT(text, StartsWith("**Judged here by the rules of main, from the records of a fork"));
    EXPECT_THAT(text, HasSubstr("on a machine that ran the fork's code"));
  }
  const Texts red =
      texts_of(by_rules(make_gate(Outcome::fail, ExitCode::fail)), {}, fork, k_target);
  EXPECT_THAT(red.check.summary, StartsWith("**Judged here"));
  EXPECT_EQ(red.check.conclusion, "failure");
  // The measuring job ends like this if its verdict is red.
  fork.conclusion = "failure";
  EXPECT_EQ(texts_of(pass, {}, fork, k_target).check.conclusion, "failure");
  fork.conclusion = "success";
  fork.judged_here = false;
  EXPECT_EQ(texts_of(pass, {}, fork, k_target).check.conclusion, "failure");
}

TEST(Texts, OfAPullRequestAreNoPassUnlessItsBasesRulesJudgedIt) {
  const auto pass = by_rules(make_gate(Outcome::pass, ExitCode::pass));
  const MeasuringRun fine{.conclusion = "success", .of_pull_request = true};
  EXPECT_EQ(texts_of(pass, {}, fine, k_target).check.conclusion, "success");
  const auto not_judged = [&](const verdict::GateVerdict& gate, const MeasuringRun& run,
                              const Target& target, const char* why) {
    const Texts texts = texts_of(gate, {}, run, target);
    EXPECT_EQ(texts.check.conclusion, "failure") << why;
    EXPECT_EQ(texts.status.state, "error") << why;
    EXPECT_THAT(texts.check.title, StartsWith(std::string("not judged: ") + why));
  };
  not_judged(make_gate(Outcome::pass, ExitCode::pass), fine, k_target,
             "judged by the pull request's own rules");
  MeasuringRun wrong = fine;
  wrong.wrong_rules = "judged by the rules of 1234567, which are not those of main now";
  not_judged(pass, wrong, k_target, "judged by the rules of 1234567");
  Target target = k_target;
  target.pull_request.reset();
  not_judged(pass, fine, target, "the pull request of this run, and so its base, is not certain");
  target = k_target;
  target.base.clear();
  not_judged(pass, fine, target, "the pull request of this run, and so its base, is not certain");
  // A merge group has a base and no pull request; a push has neither.
  target = k_target;
  target.pull_request.reset();
  not_judged(make_gate(Outcome::pass, ExitCode::pass), {"success"}, target, "judged by the pull");
  EXPECT_EQ(texts_of(pass, {}, {"success"}, target).check.conclusion, "success");
}

TEST(Texts, OfARunWithoutCellsOrInterruptedAreNoPass) {
  const Texts empty = texts_of(make_gate(Outcome::pass, ExitCode::pass, 0), {}, {"success"});
  EXPECT_EQ(empty.check.conclusion, "failure");
  EXPECT_EQ(empty.status.state, "error");
  EXPECT_EQ(empty.check.title, "not judged: no cell was measured");
  const Texts stopped = texts_of(make_gate(Outcome::pass, ExitCode::interrupted), {}, {});
  EXPECT_EQ(stopped.check.conclusion, "cancelled");
  EXPECT_EQ(stopped.status.state, "error");
}

TEST(Texts, WithoutAVerdictSayWhyNothingWasMeasured) {
  const std::pair<std::optional<std::string>, const char*> k_cases[] = {
      {"success", "failure"},    {"failure", "failure"},
      {"timed_out", "failure"},  {"cancelled", "cancelled"},
      {"skipped", "failure"},    {"action_required", "failure"},
      {"", "failure"},           {"what", "failure"},
      {std::nullopt, "failure"},
  };
  for (const auto& [conclusion, check] : k_cases) {
    const Texts texts = missing_verdict_texts({.why = "", .conclusion = conclusion, .sha = ""}, {});
    EXPECT_EQ(texts.check.conclusion, check) << conclusion.value_or("none");
    EXPECT_EQ(texts.status.state, "error");
    EXPECT_THAT(texts.comment, HasSubstr("not judged"));
    EXPECT_THAT(texts.check.title, StartsWith("not judged: "));
    const std::set<std::string> loud{"none", "success", "failure", "timed_out"};
    EXPECT_EQ(texts.reach == Texts::Reach::create, loud.contains(conclusion.value_or("none")));
  }
}

// --- gate.comment

using Reach = Texts::Reach;
using verdict::Comment;
const MeasuringRun k_fine{.conclusion = "success", .of_pull_request = true};

Reach reach_of(const verdict::GateVerdict& gate, const MeasuringRun& run = k_fine) {
  return texts_of(gate, {}, run, k_target).reach;
}
verdict::GateVerdict with(Comment comment, Outcome outcome, ExitCode code = ExitCode::pass) {
  verdict::GateVerdict gate = by_rules(make_gate(outcome, code));
  gate.comment = comment;
  return gate;
}

TEST(NewComments, AreMadeOfAllButAPassUnlessTheRulesSayOtherwise) {
  const struct {
    Outcome outcome;
    ExitCode code;
    Reach changed;
  } cases[] = {
      {Outcome::pass, ExitCode::pass, Reach::edit},
      {Outcome::pass, ExitCode::interrupted, Reach::create},
      {Outcome::fail, ExitCode::fail, Reach::create},
      {Outcome::error, ExitCode::unmeasured, Reach::create},
      {Outcome::inconclusive, ExitCode::pass, Reach::create},
      {Outcome::inconclusive, ExitCode::inconclusive, Reach::create},
      {Outcome::new_, ExitCode::pass, Reach::create},
      {Outcome::improved, ExitCode::pass, Reach::create},
      {Outcome::waived, ExitCode::pass, Reach::create},
      {Outcome::skipped, ExitCode::usage, Reach::create},
  };
  for (const auto& c : cases) {
    const std::string about(verdict::to_string(c.outcome));
    EXPECT_EQ(reach_of(with(Comment::changed, c.outcome, c.code)), c.changed) << about;
    EXPECT_EQ(reach_of(with(Comment::always, c.outcome, c.code)), Reach::create) << about;
    EXPECT_EQ(reach_of(with(Comment::never, c.outcome, c.code)), Reach::nothing) << about;
  }
}

TEST(NewComments, AreMadeOfAPassThatEditsTheRulesOrDoesNotCount) {
  verdict::GateVerdict edits = with(Comment::changed, Outcome::pass);
  edits.proposals.push_back({.what = "max_drop", .from = "5 %", .to = "20 %"});
  EXPECT_EQ(reach_of(edits), Reach::create);
  EXPECT_EQ(reach_of(with(Comment::changed, Outcome::pass), {"failure"}), Reach::create);
  EXPECT_EQ(reach_of(by_rules(make_gate(Outcome::pass, ExitCode::pass, 0))), Reach::create);
}

TEST(NewComments, AreMadeByTheDefaultWhereAnybodyMayHaveWrittenTheVerdict) {
  MeasuringRun fork = k_fine;
  fork.fork = true;
  const auto silent = with(Comment::never, Outcome::fail, ExitCode::fail);
  EXPECT_EQ(reach_of(silent, fork), Reach::create);
  fork.judged_here = true;
  fork.conclusion = "failure";  // a red verdict ends its run like this
  EXPECT_EQ(reach_of(silent, fork), Reach::nothing);
  MeasuringRun wrong = k_fine;
  wrong.wrong_rules = "judged by the rules of 1234567";
  EXPECT_EQ(reach_of(silent, wrong), Reach::create);
  auto own_rules = silent;
  own_rules.rules.reset();
  EXPECT_EQ(reach_of(own_rules), Reach::create);
}

TEST(NewComments, AreMadeAsWhoPostsAsksForWhateverTheRulesSay) {
  MeasuringRun run = k_fine;
  run.comment = Comment::always;
  EXPECT_EQ(reach_of(with(Comment::never, Outcome::pass), run), Reach::create);
  run.comment = Comment::never;
  run.wrong_rules = "judged by the rules of 1234567";
  EXPECT_EQ(reach_of(with(Comment::always, Outcome::fail, ExitCode::fail), run), Reach::nothing);
  const auto without = [](std::optional<Comment> comment, const char* conclusion) {
    return missing_verdict_texts({"", conclusion, "", comment}, {}).reach;
  };
  EXPECT_EQ(without(std::nullopt, "failure"), Reach::create);
  EXPECT_EQ(without(Comment::always, "failure"), Reach::create);
  EXPECT_EQ(without(Comment::never, "failure"), Reach::nothing);
  EXPECT_EQ(without(Comment::always, "skipped"), Reach::edit) << "nobody waits for it";
  EXPECT_EQ(without(Comment::never, "skipped"), Reach::nothing);
}

TEST(Texts, WithoutAVerdictKeepWhatIsSaidInert) {
  const Texts texts = missing_verdict_texts(
      {.why = "<img src=x> @all #1\n::error::x", .conclusion = "failure", .sha = ""}, {});
  EXPECT_THAT(texts.comment, Not(HasSubstr("<img")));
  EXPECT_THAT(texts.comment, Not(HasSubstr("@all")));
  EXPECT_THAT(texts.comment, Not(HasSubstr("\n::error")));
  EXPECT_THAT(texts.status.description, Not(HasSubstr("\n")));
}

TEST(Texts, OfTenThousandCellsStayWithinGitHubsLimits) {
  for (const Outcome outcome : {Outcome::fail, Outcome::pass}) {
    const Texts texts = texts_of(
        make_gate(outcome, outcome == Outcome::fail ? ExitCode::fail : ExitCode::pass, 10'000), {},
        {"failure"});
    EXPECT_LT(texts.comment.size(), 65'300U);
    EXPECT_LE(texts.check.summary.size(), report::k_check_summary_limit);
    EXPECT_LE(texts.check.annotations.size(), 200U);
  }
}

TEST(Rehearsal, RemembersWhatWouldBeSentAndSupposesThatNothingIsThere) {
  Rehearsal rehearsal;
  Texts texts = texts_of(make_gate(Outcome::fail, ExitCode::fail), {}, {});
  texts.check.annotations.resize(60, {"weir.yaml", 1, "failure", "t", "m"});
  const Target target{.repository = "o/r",
                      .pull_request = 7,
                      .sha = std::string(40, 'a'),
                      .run = {},
                      .run_url = ""};
  for (const Part& part : post(rehearsal, target, texts, {}, [](double) {})) {
    EXPECT_EQ(part.outcome, Part::Outcome::created) << part.name << part.reason;
  }
  const Json sent = to_json(rehearsal.sent(), "https://api.github.com");
  ASSERT_THAT(sent, SizeIs(4)) << sent.dump(1);
  EXPECT_EQ(sent[0]["method"], "POST");
  EXPECT_EQ(sent[0]["url"], "https://api.github.com/repos/o/r/issues/7/comments");
  EXPECT_EQ(sent[1]["url"], "https://api.github.com/repos/o/r/check-runs");
  EXPECT_EQ(sent[2]["method"], "PATCH");  // sends the other ten annotations
  EXPECT_EQ(sent[3]["body"]["context"], "weir/gate");
}

}  // namespace texts_test
}  // namespace weir::publish
