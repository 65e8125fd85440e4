// weir gate --against with --rules-from: the base that a pull request's author may choose.
#include <gmock/gmock.h>

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace against_rules_test {

using ::testing::HasSubstr;

class AgainstRules : public Rules {
 protected:
  void commit(const std::string& subject, int dispatches) {
    write_engine(dispatches);
    git({"add", "-A"});
    git({"commit", "-q", "--allow-empty", "-m", subject});
  }
  Json against_main(int exit_code) {
    return gate({"--against", "main", "--rules-from", "main"}, exit_code);
  }
};

// main becomes faster. The branch repeats that, and is slower elsewhere: it counts as much as its
// merge-base, and more than main.
TEST_F(AgainstRules, ABranchBehindAGainOfTheBaselinesIsNotJudged) {
  commit("as slow as ever", 65);
  git({"checkout", "-q", "main"});
  write_engine(50);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  commit("faster", 50);
  git({"checkout", "-q", "feature"});
  const Json verdict = against_main(3);
  const Json judgement = metric_of(cell_of(verdict, k_cell), "cell");
  EXPECT_EQ(judgement["verdict"], "error");
  EXPECT_EQ(judgement["reason"],
            "not judged: main has 50 dispatches_per_token since, its merge-base 65: update the "
            "branch");
  EXPECT_THAT(verdict["unjudged"].get<std::string>(), HasSubstr("update the branch"));
  EXPECT_EQ(gate({"--from"}, 3)["unjudged"], verdict["unjudged"]) << "from the run alone";
  // Beside an older base of one's own choice there is nothing to update.
  git({"checkout", "-q", "-b", "updated", "main"});
  EXPECT_EQ(gate({"--against", "main~1", "--rules-from", "main"}, 1)["unjudged"], nullptr);
  git({"checkout", "-q", "feature"});
  // Updated, it is judged.
  git({"merge", "-q", "-m", "update", "main"});
  commit("slower elsewhere", 65);
  EXPECT_EQ(against_main(1)["verdict"], "fail");
}

// Where main became slower since, the branch is compared with less.
TEST_F(AgainstRules, ABranchBehindALossOfTheBaselinesIsJudged) {
  commit("as ever", 65);
  git({"checkout", "-q", "main"});
  write_engine(80);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  commit("slower", 80);
  git({"checkout", "-q", "feature"});
  EXPECT_EQ(against_main(0)["verdict"], "pass");
}

TEST_F(AgainstRules, WithoutBaselinesTheReportSaysHowFarTheBranchIsBehind) {
  git({"checkout", "-q", "main"});
  git({"rm", "-rq", "baselines"});
  git({"commit", "-qm", "no baselines"});
  git({"checkout", "-q", "-B", "feature"});
  commit("as slow as ever", 65);
  EXPECT_EQ(against_main(0)["notes"].dump().find("behind"), std::string::npos);
  git({"checkout", "-q", "main"});
  commit("faster", 50);
  git({"checkout", "-q", "feature"});
  EXPECT_THAT(against_main(0)["notes"].dump(), HasSubstr("the branch is 1 commit behind main"));
}

// main:    base ── one ──── merge
// side:      \\── two ──/
// feature: a merge of one and two, so both are merge-bases.
TEST_F(AgainstRules, ABranchWithSeveralMergeBasesIsNotJudged) {
  commit("two", 65);
  git({"branch", "side"});
  git({"checkout", "-q", "main"});
  git({"commit", "-q", "--allow-empty", "-m", "one"});
  git({"branch", "one"});
  git({"merge", "-q", "--no-ff", "-m", "merge", "side"});
  git({"checkout", "-q", "feature"});
  git({"merge", "-q", "--no-ff", "-m", "the other merge", "one"});
  const Json verdict = against_main(3);
  EXPECT_EQ(verdict["verdict"], "error");
  EXPECT_EQ(verdict["unjudged"],
            "2 merge-bases with main: merge it into the branch, or rebase the branch");
  EXPECT_EQ(gate({"--from"}, 3)["unjudged"], verdict["unjudged"]) << "from the run alone";
  EXPECT_EQ(gate({"--from", "--rules-from", "main", "--counts-only"}, 3)["unjudged"],
            verdict["unjudged"]);
  EXPECT_EQ(gate({"--against", "main"}, 0)["verdict"], "pass") << "by the author's own rules";
}

}  // namespace against_rules_test
}  // namespace weir::e2e
