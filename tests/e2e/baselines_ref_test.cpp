// Baselines on a branch: read there, and written there without touching the work tree.
#include <gmock/gmock.h>

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace baselines_ref_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class BaselinesOnABranch : public Rules {
 protected:
  void SetUp() override {
    Rules::SetUp();
    git({"rm", "-q", "-r", "baselines"});
    git({"commit", "-q", "-m", "no baselines in the tree"});
  }
};

TEST_F(BaselinesOnABranch, AreWrittenAsACommitAndJudge) {
  const std::string before = git_output("status --porcelain --ignored=no");
  const std::string head = git_output("rev-parse HEAD");
  ASSERT_EQ(
      here({"baseline", "accept", "--counts-only", "--baselines-ref", "perf-baselines"}).exit_code,
      0)
      << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("git push origin perf-baselines"));
  EXPECT_EQ(git_output("status --porcelain --ignored=no"), before);
  EXPECT_EQ(git_output("rev-parse HEAD"), head);
  EXPECT_FALSE(fs::exists(scratch_ / "baselines"));
  EXPECT_THAT(git_output("ls-tree -r --name-only perf-baselines"),
              HasSubstr("baselines/mine/m/metal/decode/metal-unseen.json"));
  // A history of its own: the first commit of that branch.
  EXPECT_EQ(git_output("rev-list --count perf-baselines"), "1\n");

  EXPECT_EQ(gate({"--baselines-ref", "perf-baselines"}, 0)["verdict"], "pass");
  EXPECT_EQ(gate({"--baselines-ref", "perf-baselines:baselines"}, 0)["verdict"], "pass");
  EXPECT_EQ(gate({"--baselines-ref", "perf-baselines:elsewhere"}, 0)["verdict"], "new");
  EXPECT_EQ(here({"gate", "--baselines-ref", "perf-baselines:../x"}).exit_code, 2);
  write_engine(77);
  const Json verdict = gate({"--baselines-ref", "perf-baselines"}, 1);
  EXPECT_THAT(verdict["base_source"].get<std::string>(),
              StartsWith("stored baselines of perf-baselines, "));
  EXPECT_EQ(gate({"--from"}, 1)["verdict"], "fail");

  // On top of what is there; what has not changed makes no commit.
  ASSERT_EQ(here({"baseline", "accept", "--counts-only", "--baselines-ref", "perf-baselines",
                  "--reason", "two\nlines"})
                .exit_code,
            2);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only", "--baselines-ref", "perf-baselines",
                  "--reason", "the new sampler"})
                .exit_code,
            0);
  EXPECT_EQ(git_output("rev-list --count perf-baselines"), "2\n");
  EXPECT_THAT(git_output("log -1 --format=%b perf-baselines"), StartsWith("the new sampler"));
  write_engine(78);
  EXPECT_THAT(
      gate({"--baselines-ref", "perf-baselines"}, 1).dump(),
      HasSubstr("the stored counts were accepted earlier, with the reason: the new sampler"));
  write_engine(77);
  ASSERT_EQ(
      here({"baseline", "accept", "--counts-only", "--baselines-ref", "perf-baselines"}).exit_code,
      0);
  EXPECT_EQ(git_output("rev-list --count perf-baselines"), "2\n");
  EXPECT_THAT(last_.out, HasSubstr("nothing changed on perf-baselines"));
}

TEST_F(BaselinesOnABranch, HaveCommitsThatNameTheLargestChange) {
  const auto accept = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"baseline", "accept", "--counts-only", "--baselines-ref",
                                   "perf-baselines"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(here(words).exit_code, 0) << last_.err;
    return git_output("log -1 --format=%s perf-baselines");
  };
  EXPECT_EQ(accept({}), "Accept mine/m/metal/decode and 1 more: 2 counts\n");
  write_engine(67, 2);
  EXPECT_EQ(accept({"--cell", "*/decode"}),
            "Accept mine/m/metal/decode: syncs/token 1 → 2 (+100 %)\n");
  EXPECT_THAT(last_.out, HasSubstr("    syncs/token 1 → 2 (+100 %)\n"
                                   "    dispatches/token 65 → 67 (+3.08 %)\n"));
  EXPECT_EQ(accept({"--cell", "*/decode", "--reason", "meant"}),
            "Accept mine/m/metal/decode: a reason\n");
}

TEST_F(BaselinesOnABranch, AreNamedWhereAGateFindsNoFolder) {
  ASSERT_EQ(
      here({"baseline", "accept", "--counts-only", "--baselines-ref", "perf-baselines"}).exit_code,
      0);
  const Ended ended = here({"gate", "--counts-only"});
  EXPECT_THAT(ended.out, HasSubstr("--baselines-ref perf-baselines")) << ended.out;
}

// Every second run counts one sync less.
TEST_F(BaselinesOnABranch, SayWhichCountsVaryAndJudgeByTheirRange) {
  const auto write_racy = [&](int syncs) {
    spill_program(scratch_ / "engine",
                  "#!/bin/sh\nif [ -e odd ]; then rm odd; echo '65 dispatches, " +
                      std::to_string(syncs) + " syncs'; else touch odd; echo '65 dispatches, " +
                      std::to_string(syncs - 1) + " syncs'; fi\n");
  };
  write_racy(64);
  const std::vector<std::string> accept{
      "baseline", "accept", "--counts-only", "--cell", "*/decode", "--processes", "6"};
  ASSERT_EQ(here(accept).exit_code, 0) << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("varies  syncs/token: 63 to 64, 3 of 6 runs\n"));
  EXPECT_THAT(last_.out, HasSubstr("--processes 10"));
  std::vector<std::string> gate{"gate", "--counts-only", "--cell", "*/decode"};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(here(gate).exit_code, 0) << last_.out;
    EXPECT_THAT(last_.out, HasSubstr("counts exact (1 varies)"));
  }
  write_engine(65, 65);
  EXPECT_EQ(here(gate).exit_code, 1);
  EXPECT_THAT(last_.out, HasSubstr("in the baseline it is 63 to 64, 3 of 6 runs"));
}

TEST_F(BaselinesOnABranch, JudgeTheCountsOfABaseThatCrashesAndTheFirstLineSaysSo) {
  const std::vector<std::string> accept{"baseline", "accept", "--counts-only", "--baselines-ref",
                                        "perf-baselines"};
  ASSERT_EQ(here(accept).exit_code, 0) << last_.err;
  spill_program(scratch_ / "engine", "#!/bin/sh\nexit 7\n");
  git({"add", "-A"});
  git({"commit", "-q", "-m", "broken"});
  write_engine(65);
  std::vector<std::string> gate{"gate", "--counts-only", "--against", "HEAD"};
  EXPECT_EQ(here(gate).exit_code, 3) << "nothing is stored";
  gate.insert(gate.end(), {"--baselines-ref", "perf-baselines"});
  EXPECT_EQ(here(gate).exit_code, 0) << last_.out;
  const std::string head = last_.out.substr(0, last_.out.find("\n\n"));
  EXPECT_THAT(head, HasSubstr("the base could not be measured in 2 of 2 cells"));
  write_engine(66);
  EXPECT_EQ(here(gate).exit_code, 1);
}

TEST_F(BaselinesOnABranch, AreNotWrittenOntoWhatIsCheckedOutOrIsNoBranch) {
  EXPECT_EQ(here({"baseline", "accept", "--counts-only", "--baselines-ref", "feature"}).exit_code,
            2);
  EXPECT_THAT(last_.err, HasSubstr("is checked out"));
  for (const char* name : {"-x", "a..b", "@{-1}", "a b"}) {
    EXPECT_EQ(here({"baseline", "accept", "--counts-only", std::string("--baselines-ref=") + name})
                  .exit_code,
              2)
        << name << last_.err;
  }
}

TEST_F(BaselinesOnABranch, AllArriveWhereTwoAreWrittenAtOnce) {
  for (int i = 0; i < 4; ++i) {
    const std::string a = std::to_string(2 * i), b = std::to_string(2 * i + 1);
    write_config("", "{p" + a + ": {tokens: 8}, p" + b + ": {tokens: 9}}");
    std::map<std::string, std::string> env{{"WEIR_CACHE", (scratch_ / "cache").string()}};
    for (const char* who : {"AUTHOR", "COMMITTER"}) {
      env.emplace("GIT_" + std::string(who) + "_NAME", "A");
      env.emplace("GIT_" + std::string(who) + "_EMAIL", "a@example.org");
    }
    const auto accept = [&](const std::string& prompt) {
      return std::vector<std::string>{"baseline",        "accept",         "--counts-only",
                                      "--baselines-ref", "perf-baselines", "--cell",
                                      "*/" + prompt,     "--out",          "weir-out-" + prompt};
    };
    Weir first(scratch_, accept("p" + a), env), second(scratch_, accept("p" + b), env);
    EXPECT_EQ(first.wait().exit_code, 0);
    EXPECT_EQ(second.wait().exit_code, 0);
  }
  EXPECT_EQ(git_output("ls-tree -r --name-only perf-baselines | wc -l"), "8\n");
  EXPECT_EQ(git_output("rev-list --count perf-baselines"), "8\n");
}

}  // namespace baselines_ref_test
}  // namespace weir::e2e
