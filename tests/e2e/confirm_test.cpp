// weir gate --confirm: what is slower than stored samples is looked at in pairs before it fails.
// The machine's own speed is a file here that git does not know.
#include <gmock/gmock.h>

#include "tests/e2e/engine_under_git.hpp"

namespace weir::e2e {
namespace confirm_test {

using ::testing::HasSubstr;

class Confirm : public EngineUnderGit {
 protected:
  void SetUp() override {
    EngineUnderGit::SetUp();
    machine_takes(10'000'000);
    commit_engine("the accepted one", times(100));
    ASSERT_EQ(here({"run"}).exit_code, 0) << last_.err;
    ASSERT_EQ(here({"baseline", "accept"}).exit_code, 0) << last_.err;
  }

  // Nanoseconds a token.
  void machine_takes(long ns) { spill(scratch_ / "weir-speed", std::to_string(ns) + "\n"); }
  [[nodiscard]] std::string times(int percent) const {
    return "$(( $(cat '" + (scratch_ / "weir-speed").string() + "') * " + std::to_string(percent) +
           " / 100 ))";
  }
  Ended here(std::vector<std::string> arguments, std::map<std::string, std::string> env = {}) {
    return weir_here(std::move(arguments), std::move(env));
  }
  Json gate(std::vector<std::string> options, int exit_code,
            std::map<std::string, std::string> env = {}) {
    options.insert(options.begin(), {"gate", "--json", "-"});
    const Ended ended = here(std::move(options), std::move(env));
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended);
  }
};

TEST_F(Confirm, FailsAProgramThatGotSlowerAndSaysSoAgainFromTheRunAlone) {
  commit_engine("slower", times(150));
  const Json verdict = gate({"--confirm", "HEAD~1"}, 1);
  const Json rate = rate_of(verdict);
  EXPECT_EQ(rate["verdict"], "fail");
  EXPECT_GT(rate["pairs"].get<int>(), 5);
  EXPECT_NEAR(rate["change"].get<double>(), 1 / 1.5 - 1, 0.01);
  EXPECT_THAT(rate["reason"].get<std::string>(), HasSubstr("against stored samples"));
  EXPECT_THAT(dump_json(verdict["notes"]), HasSubstr("1 confirmed, 0 cleared, 0 inconclusive"));
  EXPECT_THAT(verdict["decision_rule"].get<std::string>(), HasSubstr("Pairs with the base program"));
  fs::remove_all(scratch_ / "cache");
  fs::remove(scratch_ / "engine");
  EXPECT_EQ(rate_of(gate({"--from"}, 1)), rate);
}

TEST_F(Confirm, ClearsAProgramWhoseMachineGotSlower) {
  commit_engine("a change that costs nothing", times(100));
  machine_takes(15'000'000);
  const Json alone = gate({}, 1);
  EXPECT_EQ(rate_of(alone)["verdict"], "fail");
  EXPECT_THAT(dump_json(alone["notes"]), HasSubstr("weir gate --confirm REF"));
  const Json verdict = gate({"--confirm", "HEAD~1"}, 0);
  EXPECT_EQ(rate_of(verdict)["verdict"], "pass");
  EXPECT_THAT(rate_of(verdict)["reason"].get<std::string>(), HasSubstr("not slower than"));
  EXPECT_THAT(dump_json(verdict["notes"]), HasSubstr("0 confirmed, 1 cleared"));
  EXPECT_EQ(rate_of(gate({"--from"}, 0)), rate_of(verdict));
}

TEST_F(Confirm, AsksNoPairsWhereNothingIsSlower) {
  const Json verdict = gate({"--confirm", "HEAD~1"}, 0);
  EXPECT_EQ(rate_of(verdict)["verdict"], "inconclusive");  // one session cannot do better
  EXPECT_FALSE(fs::exists(scratch_ / "cache"));
}

TEST_F(Confirm, LeavesAFailWherePairsCanNotBeRun) {
  machine_takes(15'000'000);
  const struct {
    const char* ref;
    const char* why;
  } cases[] = {{"HEAD", "nothing lies between"},
               {"no-such-branch", "neither a folder nor a commit"}};
  for (const auto& c : cases) {
    const Json verdict = gate({"--confirm", c.ref}, 1);
    EXPECT_EQ(rate_of(verdict)["verdict"], "fail") << c.ref;
    EXPECT_THAT(dump_json(verdict["notes"]), HasSubstr(c.why));
  }
}

TEST_F(Confirm, TakesItsBaseFromTheConfigOrThePullRequest) {
  write_config("10m", "", ", confirm: HEAD~1");
  commit_engine("a change that costs nothing", times(100));
  machine_takes(15'000'000);
  EXPECT_EQ(rate_of(gate({}, 0))["verdict"], "pass");
  EXPECT_EQ(rate_of(gate({"--no-confirm"}, 1))["verdict"], "fail");
  write_config("10m");
  git({"update-ref", "refs/remotes/origin/main", "HEAD~1"});
  const std::map<std::string, std::string> pull = {{"GITHUB_REF", "refs/pull/7/merge"},
                                                   {"GITHUB_BASE_REF", "main"}};
  EXPECT_EQ(rate_of(gate({}, 0, pull))["verdict"], "pass");
  write_config("10m", "", ", confirm: false");
  EXPECT_EQ(rate_of(gate({}, 1, pull))["verdict"], "fail");
}

// Cut off between two pairs: what is there has cleared nothing.
TEST_F(Confirm, LeavesAFailWhosePairsWereInterrupted) {
  commit_engine("a change that costs nothing", times(100));
  machine_takes(15'000'000);
  gate({"--confirm", "HEAD~1"}, 0);
  for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "weir-out")) {
    if (entry.path().filename() != "run.jsonl" ||
        entry.path().string().find("confirm") == std::string::npos) {
      continue;
    }
    std::string text = slurp(entry.path());
    ASSERT_THAT(text, testing::EndsWith("{\"steps\":[]}\n"));
    spill(entry.path(), text.substr(0, text.size() - 13));
  }
  const Json verdict = gate({"--from"}, 1);
  EXPECT_THAT(dump_json(verdict["notes"]), HasSubstr("their pairs were interrupted"));
}

TEST_F(Confirm, IsForStoredSamplesAlone) {
  const Ended ended = here({"gate", "--against", "HEAD~1", "--confirm", "HEAD~1"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("in pairs already"));
}

}  // namespace confirm_test
}  // namespace weir::e2e
