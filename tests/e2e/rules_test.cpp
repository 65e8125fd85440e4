// weir gate --rules-from: the base's rules judge, and the pull request's edits to them are told.
#include <gmock/gmock.h>

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace rules_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(Rules, OfTheBaseJudgeThoughThePullRequestLoosensItsOwn) {
  write_engine(77);
  write_config("limits: [{metrics: dispatches_per_token, exact: false}]\n");
  EXPECT_EQ(here({"gate", "--counts-only"}).exit_code, 0) << last_.out;  // its own rules
  const Json verdict = gate({"--rules-from", "main"}, 1);
  EXPECT_EQ(metric_of(cell_of(verdict, k_cell), "dispatches_per_token")["verdict"], "fail");
  EXPECT_EQ(verdict["rules"]["ref"], "main");
  EXPECT_EQ(proposal_texts(verdict),
            std::vector<std::string>{
                "limit of dispatches_per_token: exact → not exact: looser, in 2 cells"});
  // First in every report.
  EXPECT_THAT(last_.err, HasSubstr("rules 1 edit to the rules, 1 of them looser; judged by those "
                                   "of main"));
  EXPECT_LT(last_.err.find("rules 1 edit"), last_.err.find("FAIL"));
}

TEST_F(Rules, OfTheBaseHoldItsBaselinesToo) {
  write_engine(77);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  EXPECT_EQ(here({"gate", "--counts-only"}).exit_code, 0);
  const Json verdict = gate({"--rules-from", "main"}, 1);
  ASSERT_EQ(proposal_texts(verdict).size(), 2U);  // one a cell
  EXPECT_THAT(proposal_texts(verdict)[0], StartsWith("baseline dispatches_per_token of " + k_cell));
  EXPECT_THAT(proposal_texts(verdict)[0], HasSubstr("65 → 77: looser"));
  EXPECT_THAT(verdict["base_source"].get<std::string>(), StartsWith("stored baselines of main, "));
  // Judged again from the run alone, whatever the repository holds by then.
  fs::remove_all(scratch_ / ".git");
  fs::remove_all(scratch_ / "baselines");
  fs::remove(scratch_ / "weir.yaml");
  Json again = gate({"--from"}, 1);
  Json before = verdict;
  for (Json* report : {&again, &before}) {
    (*report)["seconds"] = nullptr;
    report->erase("options");  // as given, each time
  }
  EXPECT_EQ(again, before);
  EXPECT_EQ(here({"gate", "--from", "--rules-from", "main"}).exit_code, 2);
}

TEST_F(Rules, KeepNamesHiddenThatEitherSideCallsPrivate) {
  const auto write_prompts = [&](const std::string& falcon, const std::string& heron) {
    write_config("", "{falcon-42: {tokens: 8, private: " + falcon +
                         "}, heron-7: {tokens: 9, private: " + heron + "}}");
  };
  git({"checkout", "-q", "main"});
  write_prompts("true", "false");
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  git({"add", "-A"});
  git({"commit", "-q", "-m", "a private prompt"});
  git({"checkout", "-q", "-b", "forgets"});
  write_prompts("false", "true");
  const std::vector<std::string> reports{"--markdown",    "weir-md",   "--html",  "weir-html",
                                         "--json",        "weir-json", "--junit", "weir-xml",
                                         "--openmetrics", "weir-om"};
  std::vector<std::string> options{"gate", "--counts-only", "--rules-from", "main"};
  options.insert(options.end(), reports.begin(), reports.end());
  const std::map<std::string, std::string> on_github{{"GITHUB_ACTIONS", "true"}};
  const auto expect_hidden = [&] {
    std::string shown = last_.out + last_.err;
    for (std::size_t i = 1; i < reports.size(); i += 2) shown += slurp(scratch_ / reports[i]);
    EXPECT_THAT(shown, HasSubstr("mine/m/metal/prompt-"));
    EXPECT_EQ(shown.find("falcon-42"), std::string::npos) << shown.substr(0, 2000);
    EXPECT_EQ(shown.find("heron-7"), std::string::npos) << shown.substr(0, 2000);
  };
  here(options, on_github);
  expect_hidden();
  // Judged again from the run alone.
  fs::remove_all(scratch_ / ".git");
  options = {"gate", "--from"};
  options.insert(options.end(), reports.begin(), reports.end());
  here(options, on_github);
  expect_hidden();
}

// With a link the pull request would choose what is read in the base, or that nothing is.
TEST_F(Rules, AreNotLedElsewhereByALink) {
  write_engine(77);
  fs::create_directories(scratch_ / "weir-outside");
  const std::string outside = (scratch_ / "weir-outside").string();
  for (const std::string& to : {std::string("other"), outside}) {
    fs::remove_all(scratch_ / "baselines");
    fs::create_directories(scratch_ / "other");
    fs::create_symlink(to, scratch_ / "baselines");
    const Ended ended = here({"gate", "--counts-only", "--rules-from", "main"});
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_THAT(ended.err, HasSubstr("is a link or a repository of its own"));
  }
  fs::remove(scratch_ / "baselines");
  fs::create_directories(scratch_ / "baselines" / ".git");
  EXPECT_EQ(here({"gate", "--counts-only", "--rules-from", "main"}).exit_code, 2) << last_.out;
  fs::remove_all(scratch_ / "baselines");
  EXPECT_EQ(here({"gate", "--counts-only", "--rules-from", "main"}).exit_code, 1) << last_.err;
}

// A job that begins with "cd perf" would be led to a configuration that the base does not have, or
// to another one of the base.
TEST_F(Rules, AreNotLedElsewhereByALinkInPlaceOfTheFolder) {
  git({"checkout", "-q", "main"});
  for (const char* folder : {"perf", "lenient"}) {
    fs::create_directories(scratch_ / folder);
    fs::copy_file(scratch_ / "weir.yaml", scratch_ / folder / "weir.yaml");
  }
  git({"add", "perf", "lenient"});
  git({"commit", "-q", "-m", "folders"});
  git({"checkout", "-q", "-b", "leads"});
  fs::rename(scratch_ / "perf", scratch_ / "perf2");
  for (const char* to : {"perf2", "lenient"}) {
    fs::create_symlink(to, scratch_ / "perf");
    const std::string gate = WEIR_BINARY_DIR "/weir gate --counts-only --rules-from main";
    const Ended ended = Weir(scratch_, {"-c", "cd perf && exec " + gate}, {}, "/bin/sh").wait();
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_THAT(ended.err, HasSubstr("/perf is a link to "));
    EXPECT_THAT(ended.err, HasSubstr("the base has perf/weir.yaml: make it a folder again"));
    fs::remove(scratch_ / "perf");
  }
}

TEST_F(Rules, TellCellsThatArePutAwayBeforeAnythingElse) {
  write_config("", "{decode: {tokens: 8}}");
  const Json verdict = gate({"--rules-from", "main"}, 1);
  EXPECT_EQ(verdict["not_judged"][0], "1 cell of the base's matrix not measured");
  EXPECT_EQ(proposal_texts(verdict)[0],
            "cells that are not measured any more: 1 of 2 → removed: looser, and holds already");
  EXPECT_EQ(verdict["proposals"][0]["cells"][0], "mine/m/metal/other");
}

TEST_F(Rules, LetANewCellIn) {
  write_config("", "{decode: {tokens: 8}, other: {tokens: 9}, third: {tokens: 10}}");
  const Json verdict = gate({"--rules-from", "main"}, 0);
  EXPECT_EQ(cell_of(verdict, "mine/m/metal/third")["verdict"], "new");
  EXPECT_TRUE(verdict["proposals"].empty()) << verdict["proposals"].dump(1);
}

TEST_F(Rules, AreRefusedWhereTheyCanNotBeReadSafely) {
  EXPECT_EQ(here({"gate", "--counts-only", "--rules-from", "nowhere"}).exit_code, 2);
  EXPECT_THAT(last_.err, HasSubstr("no commit that is known here"));
  EXPECT_EQ(here({"gate", "--counts-only", "--rules-from=--all"}).exit_code, 2);
  fs::rename(scratch_ / "weir.yaml", scratch_ / "real.yaml");
  fs::create_symlink("real.yaml", scratch_ / "weir.yaml");
  git({"add", "-A"});
  git({"commit", "-q", "-m", "a link"});
  EXPECT_EQ(here({"gate", "--counts-only", "--rules-from", "HEAD"}).exit_code, 2);
  EXPECT_THAT(last_.err, testing::AnyOf(HasSubstr("symbolic link"), HasSubstr("is a link")));
}

TEST_F(Rules, AreThePullRequestsOwnIfItBringsWeirAlongWhichIsNoError) {
  git({"rm", "-q", "--cached", "weir.yaml"});
  git({"commit", "-q", "-m", "without"});
  for (const char* required : {"", "--require-baseline"}) {
    std::vector<std::string> words{"--rules-from", "HEAD"};
    if (*required != '\0') words.emplace_back(required);
    const Json verdict = gate(words, 0);
    EXPECT_THAT(proposal_texts(verdict), testing::IsEmpty());
    EXPECT_EQ(verdict["verdict"], "new");
    EXPECT_EQ(verdict["unjudged"],
              "this pull request brings weir along; merge it, and the next one is judged by stored "
              "baselines, or with --against");
  }
  write_config("limits: [{metrics: dispatches_per_token, max: 60}]\n");
  const Json broken = gate({"--rules-from", "HEAD"}, 1);
  EXPECT_EQ(broken["unjudged"],
            "this pull request brings weir along, and breaks a limit that it brings");
  EXPECT_EQ(last_.out.find("merge it"), std::string::npos) << last_.out;
}

TEST_F(Rules, AVerdictOnStoredBaselinesNamesTheCommitThatWasMeasured) {
  const std::string head = git_output("rev-parse HEAD").substr(0, 40);
  EXPECT_EQ(gate({"--cell", k_cell}, 0)["commit"], head);
  EXPECT_EQ(gate({"--from"}, 0)["commit"], head) << "as its journal has it";
  write_engine(65, 1);
  spill(scratch_ / "weir.yaml", slurp(scratch_ / "weir.yaml") + "# an edit\n");
  const Json edited = gate({"--cell", k_cell}, 0);
  EXPECT_TRUE(!edited.contains("commit") || edited["commit"].is_null()) << "it was none";
}

// A link in the pull request would choose where files are written.
TEST_F(Rules, RunsAreNotWrittenThroughALinkThatGitTracks) {
  const Scratch outside;
  const std::string target = outside.path().string();
  fs::remove_all(scratch_ / "weir-out");
  fs::create_symlink(target, scratch_ / "weir-out");
  EXPECT_EQ(here({"gate", "--counts-only"}).exit_code, 0) << "the user's own: " << last_.err;
  EXPECT_FALSE(fs::is_empty(outside.path()));
  fs::remove_all(outside.path());
  fs::create_directories(outside.path());
  fs::create_symlink(target, scratch_ / "runs");
  git({"add", "-f", "weir-out", "runs"});
  for (const char* out : {"weir-out", "runs/below", "./runs"}) {
    EXPECT_EQ(here({"gate", "--counts-only", "--out", out}).exit_code, 2) << out;
    EXPECT_THAT(last_.err, HasSubstr("is a link that git tracks"));
  }
  EXPECT_EQ(here({"run", "--counts-only"}).exit_code, 2) << last_.err;
  EXPECT_TRUE(fs::is_empty(outside.path()));
}

}  // namespace rules_test
}  // namespace weir::e2e
