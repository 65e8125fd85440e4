// weir waive by hand, what gates make of it, and how it becomes the baseline.
#include <gmock/gmock.h>

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace waive_test {

using ::testing::HasSubstr;

class Waive : public Rules {
 protected:
  Ended waive(std::vector<std::string> more) {
    std::vector<std::string> all{"waive", "--pr", "12", "--who", "ada", "--reason", "a new fusion"};
    all.insert(all.end(), more.begin(), more.end());
    return here(all);
  }
  Ended waive_dispatches(const std::string& from, const std::string& to,
                         std::vector<std::string> more = {}) {
    std::vector<std::string> all{"--cell",       k_cell, "--metric",       "dispatches_per_token",
                                 "--base-value", from,   "--waived-value", to};
    all.insert(all.end(), more.begin(), more.end());
    return waive(all);
  }
  Json with_waivers(int exit_code, const std::string& number = "12") {
    return gate({"--cell", k_cell, "--waivers-ref", "perf-baselines", "--pr", number}, exit_code);
  }
  // Returns the metric that every verdict of this run has, wherever it was judged.
  static Json metric(const Json& verdict) {
    return metric_of(verdict["cells"][0], "dispatches_per_token");
  }
};

TEST_F(Waive, TheExactValueForThatPullRequestAlone) {
  write_engine(77);
  EXPECT_THAT(with_waivers(1)["notes"].dump(),
              HasSubstr("nothing is waived here: perf-baselines is not known"));
  ASSERT_EQ(waive_dispatches("65", "77").exit_code, 0) << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("git push origin perf-baselines"));
  EXPECT_THAT(last_.out, HasSubstr("with\n    --waivers-ref perf-baselines --pr 12\n"));
  const Json verdict = with_waivers(0);
  EXPECT_EQ(verdict["verdict"], "waived");
  EXPECT_THAT(metric(verdict)["reason"].get<std::string>(), HasSubstr("waived by ada until "));
  // Its journal has it.
  EXPECT_EQ(metric(gate({"--from"}, 0)), metric(verdict));
  EXPECT_EQ(with_waivers(1, "13")["verdict"], "fail");
  write_engine(78);
  EXPECT_THAT(with_waivers(1)["notes"].dump(), HasSubstr("is void: it is 65 → 78 now"));
}

TEST_F(Waive, ForOneCommitIsVoidAfterAnother) {
  write_engine(77);
  git({"commit", "-qam", "more dispatches"});
  ASSERT_EQ(
      waive_dispatches("65", "77", {"--sha", git_output("rev-parse HEAD").substr(0, 40)}).exit_code,
      0)
      << last_.err;
  EXPECT_EQ(with_waivers(0)["verdict"], "waived");
  git({"commit", "-q", "--allow-empty", "-m", "another push"});
  EXPECT_THAT(with_waivers(1)["notes"].dump(), HasSubstr("another was pushed since"));
}

TEST_F(Waive, ForOneBranchIsVoidForAnother) {
  write_engine(77);
  ASSERT_EQ(waive_dispatches("65", "77", {"--base", "main"}).exit_code, 0) << last_.err;
  const auto gate_for = [&](const std::string& base, int exit_code) {
    return gate({"--cell", k_cell, "--waivers-ref", "perf-baselines", "--pr", "12", "--base", base},
                exit_code);
  };
  EXPECT_EQ(gate_for("main", 0)["verdict"], "waived");
  EXPECT_EQ(gate_for("release", 1)["verdict"], "fail");
}

TEST_F(Waive, TakesThePullRequestFromTheEvent) {
  write_engine(77);
  const std::string head = git_output("rev-parse HEAD").substr(0, 40);
  ASSERT_EQ(waive_dispatches("65", "77", {"--sha", head}).exit_code, 0) << last_.err;
  spill(scratch_ / "weir-event.json",
        R"({"repository": {"full_name": "o/r"}, "pull_request": {"number": 12, "head": {"sha": ")" +
            head + R"(", "repo": {"full_name": "o/r"}}, "base": {"ref": "main", "sha": ")" + head +
            R"("}}})");
  const std::map<std::string, std::string> env{
      {"GITHUB_EVENT_PATH", (scratch_ / "weir-event.json").string()},
      {"GITHUB_EVENT_NAME", "pull_request"},
      {"GITHUB_REPOSITORY", "o/r"}};
  EXPECT_EQ(
      here({"gate", "--counts-only", "--waivers-ref", "perf-baselines", "--cell", k_cell}, env)
          .exit_code,
      0)
      << last_.out << last_.err;
}

TEST_F(Waive, AllFailsOfAVerdictAndThenTheyBecomeTheBaseline) {
  write_engine(77, 2);
  (void)gate({"--cell", k_cell}, 1);
  std::string run;
  for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out")) {
    if (fs::exists(entry.path() / "verdict.json")) run = entry.path().string();
  }
  ASSERT_EQ(waive({run}).exit_code, 0) << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("syncs_per_token of mine/m/metal/decode: 1 → 2"));
  EXPECT_EQ(with_waivers(0)["verdict"], "waived");
  // At merge.
  ASSERT_EQ(here({"baseline", "accept", "--waivers", "12"}).exit_code, 0) << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("2 of 2 waivers are the baseline now"));
  ASSERT_EQ(here({"baseline", "list", k_cell}).exit_code, 0);
  EXPECT_THAT(last_.out, HasSubstr("reason: a new fusion"));
  EXPECT_EQ(gate({"--cell", k_cell}, 0)["verdict"], "pass");
  // A waiver is not written twice if the stored value has changed since.
  EXPECT_EQ(here({"baseline", "accept", "--waivers", "12"}).exit_code, 3);
  EXPECT_EQ(here({"baseline", "accept", "--waivers", "13"}).exit_code, 2);
}

TEST_F(Waive, OnTheBranchOfBaselinesTheFileGoesWithIt) {
  ASSERT_EQ(
      here({"baseline", "accept", "--counts-only", "--baselines-ref", "perf-baselines"}).exit_code,
      0);
  ASSERT_EQ(waive_dispatches("65", "77").exit_code, 0) << last_.err;
  EXPECT_THAT(git_output("ls-tree -r --name-only perf-baselines"), HasSubstr("waivers/12.json"));
  write_engine(77);
  const Json waived = gate({"--baselines-ref", "perf-baselines", "--waivers-ref", "perf-baselines",
                            "--pr", "12", "--cell", k_cell},
                           0);
  EXPECT_EQ(waived["verdict"], "waived");
  const std::string stored_in = git_output("rev-parse --short=7 perf-baselines~1").substr(0, 7);
  EXPECT_THAT(waived["base_source"].get<std::string>(),
              HasSubstr("stored baselines of perf-baselines, " + stored_in))
      << "the waiver's own commit stored no baseline";
  ASSERT_EQ(here({"baseline", "accept", "--waivers", "12", "--baselines-ref", "perf-baselines"})
                .exit_code,
            0)
      << last_.err;
  EXPECT_EQ(git_output("ls-tree -r --name-only perf-baselines").find("waivers"), std::string::npos);
  EXPECT_EQ(gate({"--baselines-ref", "perf-baselines", "--cell", k_cell}, 0)["verdict"], "pass");
}

// In a merge queue and on a push.
TEST_F(Waive, OfAMergedPullRequestHoldsForWhatContainsIt) {
  const std::string head = git_output("rev-parse HEAD").substr(0, 40), other(40, 'b');
  ASSERT_EQ(waive_dispatches("65", "77", {"--sha", head}).exit_code, 0) << last_.err;
  write_engine(77);
  const auto gate_with = [&](const std::string& merged, int exit_code) {
    return gate({"--cell", k_cell, "--waivers-ref", "perf-baselines", "--merged-pr", merged},
                exit_code);
  };
  EXPECT_THAT(metric(gate_with("12@" + head, 0))["reason"].get<std::string>(),
              HasSubstr("waived for pull request 12 by ada until "));
  EXPECT_THAT(gate_with("12@" + other, 1)["notes"].dump(), HasSubstr("another was pushed since"));
  EXPECT_EQ(here({"gate", "--waivers-ref", "perf-baselines", "--merged-pr", "12"}).exit_code, 2);
  EXPECT_THAT(last_.err,
              HasSubstr("--merged-pr 12: expected N@COMMIT, the number of a pull request"));
}

TEST_F(Waive, EndsAtTheMergeWhereNoBaselineIsStored) {
  ASSERT_EQ(waive_dispatches("65", "77").exit_code, 0) << last_.err;
  ASSERT_EQ(here({"baseline", "accept", "--waivers", "12", "--baselines-ref", "perf-baselines"})
                .exit_code,
            0)
      << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("not stored  dispatches_per_token of mine/m/metal/decode"));
  EXPECT_THAT(last_.out, HasSubstr("nothing is stored of it: nothing to do; the waiver has ended"));
  EXPECT_EQ(git_output("ls-tree -r --name-only perf-baselines"), "");
}

TEST_F(Waive, AtTheMergeTellsOfBaselinesInTheTreeThatKeepTheLevelFromBefore) {
  const auto merged = [&] {
    EXPECT_EQ(waive_dispatches("65", "77").exit_code, 0) << last_.err;
    return here({"baseline", "accept", "--waivers", "12", "--baselines-ref", "perf-baselines"}).out;
  };
  EXPECT_THAT(merged(), HasSubstr("note: baselines in the tree keep the level from before"));
  EXPECT_THAT(last_.out, HasSubstr("(baselines/mine/m/metal/decode/metal-unseen.json)"));
  write_engine(77);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  EXPECT_THAT(merged(), testing::Not(HasSubstr("note:")));
}

TEST_F(Waive, RefusesWhatCanNotBeWaived) {
  EXPECT_EQ(waive_dispatches("65", "65").exit_code, 2);
  EXPECT_EQ(waive_dispatches("65", "77", {"--until", "soon"}).exit_code, 2);
  EXPECT_EQ(here({"waive", "--pr", "12", "--reason", "meant", "--cell", k_cell, "--metric",
                  "dispatches_per_token", "--base-value", "65", "--waived-value", "77"})
                .exit_code,
            2);
  EXPECT_THAT(last_.err, HasSubstr("--who LOGIN"));
  EXPECT_EQ(waive({}).exit_code, 2);
  EXPECT_EQ(
      waive({"--cell", k_cell, "--metric", "placement", "--base-value", "a", "--waived-value", "b"})
          .exit_code,
      2);
  EXPECT_EQ(here({"gate", "--counts-only", "--pr", "12"}).exit_code, 2);
}

TEST_F(Waive, ACommentThatAsksForNothingNeedsNoToken) {
  spill(scratch_ / "weir-event.json",
        R"({"action": "created", "repository": {"full_name": "o/r"}, "issue": {"number": 12},)"
        R"( "comment": {"id": 1, "body": "nice", "user": {"login": "eve", "type": "User"}}})");
  EXPECT_EQ(
      here({"waive", "--event", "weir-event.json"},
           {{"GITHUB_OUTPUT", (scratch_ / "weir-output").string()}, {"GITHUB_REPOSITORY", "o/r"}})
          .exit_code,
      0)
      << last_.err;
  EXPECT_EQ(slurp(scratch_ / "weir-output"),
            "command=nothing\nsha=\nbase=\nfork=false\npull-request=12\ngreen=false\n");
}

TEST_F(Waive, TheCountsOfADownloadedRunAreStoredAsItsJournalHasThem) {
  write_engine(77);
  (void)gate({"--cell", k_cell}, 1);
  std::string run;
  for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out")) {
    if (fs::exists(entry.path() / "verdict.json")) run = entry.path().string();
  }
  fs::rename(run, scratch_ / "weir-artifact");
  fs::remove(scratch_ / "engine");  // nothing is counted here
  ASSERT_EQ(here({"baseline", "accept", "--from-artifact", "weir-artifact"}).exit_code, 0)
      << last_.out << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("65 → 77"));
  EXPECT_THAT(last_.out, HasSubstr("counted on "));
  write_engine(77);
  EXPECT_EQ(gate({"--cell", k_cell}, 0)["verdict"], "pass");
  spill(scratch_ / "weir-artifact/run.jsonl", "{\"schema\": \"no\"}\n");
  EXPECT_NE(here({"baseline", "accept", "--from-artifact", "weir-artifact"}).exit_code, 0);
}

}  // namespace waive_test
}  // namespace weir::e2e
