// gate.on_removed: a pull request does not pass by dropping what fails.
#include <gmock/gmock.h>

#include "gate/base/text.hpp"

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace removed_test {

using ::testing::HasSubstr;
using ::testing::Not;

class Removed : public Rules {
 protected:
  const std::string k_other_cell = "mine/m/metal/other";

  // Writes the base's configuration of it.
  void commit_base_config(const std::string& more) {
    git({"checkout", "-q", "-f", "main"});
    write_config(more);
    git({"commit", "-qam", "of the base"});
    git({"checkout", "-q", "-B", "feature"});
  }
  void replace_in_config(const std::string& from, const std::string& to) {
    std::string text = slurp(scratch_ / "weir.yaml");
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    spill(scratch_ / "weir.yaml", text.replace(at, from.size(), to));
  }
};

TEST_F(Removed, ACellThatIsDroppedFails) {
  write_config("", "{decode: {tokens: 8}}");
  const Json verdict = gate({"--rules-from", "main"}, 1);
  const Json gone = cell_of(verdict, k_other_cell);
  EXPECT_EQ(gone["verdict"], "fail");
  EXPECT_EQ(metric_of(gone, "cell")["reason"],
            "not measured any more: the pull request's matrix does not have it");
  EXPECT_THAT(last_.err, HasSubstr("the pull request's matrix does not have it"));
  // Judged again from its journal, without the repository.
  fs::remove_all(scratch_ / ".git");
  fs::remove_all(scratch_ / "baselines");
  EXPECT_EQ(cell_of(gate({"--from"}, 1), k_other_cell), gone);
}

TEST_F(Removed, CellsThatNobodyAskedForAreNotMissed) {
  write_config("", "{decode: {tokens: 8}}");
  EXPECT_EQ(gate({"--rules-from", "main", "--cell", k_cell}, 0)["verdict"], "pass");
  write_config();
  EXPECT_EQ(gate({"--rules-from", "main", "--cell", k_cell}, 0)["verdict"], "pass");
  EXPECT_EQ(gate({"--rules-from", "main", "--shard", "1/2"}, 0)["verdict"], "pass");
}

TEST_F(Removed, TheBaseMayWarnInstead) {
  commit_base_config("gate: {on_removed: warn}\n");
  write_config("", "{decode: {tokens: 8}}");
  const Json verdict = gate({"--rules-from", "main"}, 0);
  EXPECT_EQ(verdict["not_judged"][0], "1 cell of the base's matrix not measured");
  // The pull request's own word for it counts for nothing.
  commit_base_config("");
  write_config("gate: {on_removed: warn}\n", "{decode: {tokens: 8}}");
  EXPECT_THAT(proposal_texts(gate({"--rules-from", "main"}, 1)),
              testing::Contains("gate.on_removed: fail → warn: looser"));
}

TEST_F(Removed, ARenamedCellIsJudgedAsTheOneThatItWas) {
  commit_base_config("limits: [{match: {prompt: other}, metrics: syncs_per_token, max: 1}]\n");
  write_config("", "{decode: {tokens: 8}, another: {tokens: 9}}");
  Json verdict = gate({"--rules-from", "main"}, 0);
  EXPECT_EQ(cell_of(verdict, "mine/m/metal/another")["verdict"], "pass");
  EXPECT_THAT(verdict["notes"].dump(),
              HasSubstr("mine/m/metal/another is the base's " + k_other_cell));
  EXPECT_THAT(verdict["not_judged"].dump(), Not(HasSubstr("new")));
  // A new name makes a regression no better, nor does it lift a limit on the old one.
  write_engine(77, 2);
  verdict = gate({"--rules-from", "main"}, 1);
  const Json renamed = cell_of(verdict, "mine/m/metal/another");
  EXPECT_EQ(metric_of(renamed, "dispatches_per_token")["verdict"], "fail");
  EXPECT_THAT(metric_of(renamed, "syncs_per_token")["limit_words"].get<std::string>(),
              HasSubstr("1"));
  EXPECT_EQ(cell_of(gate({"--from"}, 1), "mine/m/metal/another"), renamed);
  // A model that lies elsewhere is another one, whatever its name.
  write_engine(65);
  spill(scratch_ / "moved.bin", "no model at all");
  replace_in_config("{m: model.bin}", "{m2: moved.bin}");
  verdict = gate({"--rules-from", "main"}, 1);
  EXPECT_EQ(cell_of(verdict, k_cell)["verdict"], "fail");
}

TEST_F(Removed, ANewNameTakesNoCellOutOfASelection) {
  const std::vector<std::string> selection{"--cell", "*/other"};
  const auto with_selection = [&](std::vector<std::string> options) {
    options.insert(options.end(), selection.begin(), selection.end());
    return options;
  };
  const std::string renamed = "mine/m/metal/another";
  write_engine(77);
  // A new cell lies in the selection; without one there is nothing else that it selects.
  for (const char* more : {", third: {tokens: 10}, more-other: {tokens: 11}", ""}) {
    write_config("", std::string("{decode: {tokens: 8}, another: {tokens: 9}") + more + "}");
    for (const auto& options : {std::vector<std::string>{"--rules-from", "main"},
                                {"--from"},
                                {"--from", "--rules-from", "main", "--counts-only"},
                                {"--rules-from", "main", "--against", "main"}}) {
      const Json verdict = gate(with_selection(options), 1);
      EXPECT_EQ(cell_of(verdict, renamed)["verdict"], "fail") << text::join(options);
      EXPECT_EQ(verdict["cells"].size(), 1U) << text::join(options);
    }
  }
  // All cells are measured, and some are judged.
  (void)gate({"--rules-from", "main"}, 1);
  EXPECT_EQ(cell_of(gate(with_selection({"--from"}), 1), renamed)["verdict"], "fail");
}

TEST_F(Removed, ADepthIsMissedInASelectionByTheNameOfItsLine) {
  replace_in_config("'{tokens}']", "'{tokens}', '{depth}']");
  replace_in_config("other: {tokens: 9}", "other: {tokens: 9, depth: [0, 256]}");
  git({"commit", "-qam", "of the base"});
  git({"branch", "-qf", "main"});
  replace_in_config("[0, 256]", "[0]");
  const Json verdict = gate({"--rules-from", "main", "--cell", k_other_cell}, 1);
  EXPECT_EQ(cell_of(verdict, k_other_cell + "@d256")["verdict"], "fail");
}

TEST_F(Removed, AnotherCellUnderTheOldNameIsNoRename) {
  write_config("", "{decode: {tokens: 8}, other: {tokens: 10}}");
  const Json verdict = gate({"--rules-from", "main"}, 3);
  EXPECT_THAT(metric_of(cell_of(verdict, k_other_cell), "cell")["reason"].get<std::string>(),
              HasSubstr("prompts.other.tokens"));
}

TEST_F(Removed, AMetricThatNothingReadsAnyMoreFails) {
  replace_in_config("      syncs_per_token: {regex: '(\\d+) syncs'}\n", "");
  const Json verdict = gate({"--rules-from", "main"}, 1);
  const Json metric = metric_of(cell_of(verdict, k_cell), "syncs_per_token");
  EXPECT_EQ(metric["verdict"], "fail");
  EXPECT_EQ(metric["reason"], "not measured any more: the baseline holds 1");
}

TEST_F(Removed, BesideABaseThatTheSameEditsMeasureTheyAreSeenToo) {
  const std::vector<std::string> options{"--rules-from", "main", "--against", "main"};
  const auto reason = [&](const Json& verdict) {
    return metric_of(cell_of(verdict, k_other_cell), "cell")["reason"].get<std::string>();
  };
  write_config("", "{decode: {tokens: 8}, other: {tokens: 10}}");
  EXPECT_THAT(reason(gate(options, 3)), HasSubstr("prompts.other.tokens"));
  write_config();
  replace_in_config("      syncs_per_token: {regex: '(\\d+) syncs'}\n", "");
  EXPECT_THAT(reason(gate(options, 3)), HasSubstr("engines.mine.metrics.syncs_per_token"));
  // Without stored baselines the base's matrix still shows what the cell was.
  write_config();
  git({"rm", "-rqf", "baselines"});
  git({"commit", "-qm", "nothing stored"});
  git({"branch", "-qf", "main"});
  EXPECT_EQ(gate(options, 0)["verdict"], "pass");
  write_config("", "{decode: {tokens: 8}, other: {tokens: 10}}");
  EXPECT_THAT(reason(gate(options, 3)), HasSubstr("prompts.other.tokens"));
}

TEST_F(Removed, WhoMayMergeCanAcceptIt) {
  write_config("", "{decode: {tokens: 8}}");
  replace_in_config("      syncs_per_token: {regex: '(\\d+) syncs'}\n", "");
  (void)gate({"--rules-from", "main"}, 1);
  std::string run;
  for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out")) {
    if (fs::exists(entry.path() / "verdict.json")) run = entry.path().string();
  }
  ASSERT_EQ(
      here({"waive", "--pr", "12", "--who", "ada", "--reason", "too slow to keep", run}).exit_code,
      0)
      << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("cell of " + k_other_cell + ": 1 → 0"));
  EXPECT_THAT(last_.out, HasSubstr("syncs_per_token of " + k_cell + ": 1 → not measured"));
  EXPECT_THAT(last_.out, Not(HasSubstr("not waived")));
  const std::vector<std::string> options{"--rules-from",   "main", "--waivers-ref",
                                         "perf-baselines", "--pr", "12"};
  EXPECT_EQ(gate(options, 0)["verdict"], "waived");
  // At merge nothing of it stays in the baselines.
  ASSERT_EQ(here({"baseline", "accept", "--waivers", "12"}).exit_code, 0) << last_.err;
  EXPECT_EQ(gate({"--cell", k_cell}, 0)["verdict"], "pass");
}

}  // namespace removed_test
}  // namespace weir::e2e
