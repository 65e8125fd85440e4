// A history made of what weir measured: from runs, from verdicts, from git alone.
#include <gmock/gmock.h>

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace trend_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class Trend : public Rules {
 protected:
  void TearDown() override { check_nothing_in_git(); }
  // A history is nothing to commit.
  void check_nothing_in_git() {
    if (HasFailure()) return;
    EXPECT_THAT(git_output("status --porcelain"), Not(HasSubstr(".weir")));
  }
  Ended import(std::vector<std::string> arguments, int exit_code = 0,
               const std::map<std::string, std::string>& env = {}) {
    arguments.insert(arguments.begin(), {"trend", "import"});
    const Ended ended = here(arguments, env);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.out << ended.err;
    return ended;
  }
  std::string exported(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"trend", "export"});
    const Ended ended = here(arguments);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return ended.out;
  }
  // Lines of one type.
  std::vector<Json> lines(const std::string& type) {
    std::vector<Json> records;
    std::istringstream text(exported());
    for (std::string line; std::getline(text, line);) {
      const auto json = parse_json(line);
      if (json && json->value("type", "") == type) records.push_back(*json);
    }
    return records;
  }
  // Returns the values of a metric of k_cell, one per run.
  std::vector<std::string> values(const std::string& metric = "dispatches_per_token") {
    std::vector<std::string> texts;
    for (const Json& run : lines("run")) {
      for (const Json& point : run["points"]) {
        if (point["cell"] == k_cell && point["metric"] == metric) {
          texts.push_back(point["exact"].dump());
        }
      }
    }
    return texts;
  }
  std::string newest_run() {
    std::string newest;
    for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out")) {
      if (fs::exists(entry.path() / "run.jsonl")) newest = std::max(newest, entry.path().string());
    }
    return newest;
  }
  // All bytes of the store, with what SQLite has beside it.
  std::string store_bytes() {
    std::string bytes;
    for (const auto& entry : fs::directory_iterator(scratch_ / ".weir"))
      bytes += slurp(entry.path());
    return bytes;
  }
};

TEST_F(Trend, KeepsARunWithItsCommitAndVerdict) {
  gate({"--quiet"}, 0);
  EXPECT_THAT(import({newest_run()}).out, AllOf(HasSubstr("points kept"), HasSubstr("a verdict")));
  const auto runs = lines("run");
  ASSERT_EQ(runs.size(), 1U);
  const std::string head = git_output("rev-parse HEAD");
  EXPECT_EQ(runs[0]["commit"].get<std::string>() + "\n", head);
  EXPECT_EQ(runs[0]["branch"], "feature");
  EXPECT_FALSE(runs[0].contains("dirty"));
  EXPECT_THAT(values(), ElementsAre("65"));
  ASSERT_EQ(lines("verdict").size(), 1U);
  EXPECT_EQ(lines("verdict")[0]["outcome"], "pass");
  EXPECT_EQ(lines("verdict")[0]["run"], runs[0]["id"]);

  // Again, by its journal: nothing is new.
  const std::string before = exported();
  EXPECT_THAT(import({newest_run() + "/run.jsonl"}).out, HasSubstr("known already"));
  EXPECT_EQ(exported(), before);
}

TEST_F(Trend, SaysOfARunThatTheCheckoutDiffered) {
  write_engine(77);
  gate({"--quiet"}, 1);
  import({newest_run()});
  EXPECT_EQ(lines("run").at(0)["dirty"], true);
  EXPECT_EQ(lines("verdict").at(0)["outcome"], "fail");
}

TEST_F(Trend, TakesTheCommitBranchMachineAndTimeThatItIsGiven) {
  gate({"--quiet"}, 0);
  import({newest_run(), "--commit", "abc1234", "--branch", "nightly", "--machine", "runner 1",
          "--time", "2026-11-20T09:30:15Z", "--project", "engine"});
  const Json run = lines("run").at(0);
  EXPECT_EQ(run["commit"], "abc1234");
  EXPECT_EQ(run["branch"], "nightly");
  EXPECT_EQ(run["machine"], "runner 1");
  EXPECT_EQ(run["time"], 1795167015);
  EXPECT_EQ(run["project"], "engine");
  const Json list = json_of(here({"trend", "list", "--json", "--metric", "dispatches*"}));
  ASSERT_EQ(list.size(), 2U);  // two cells
  EXPECT_EQ(list[0]["machine"], "runner 1");
  EXPECT_EQ(list[0]["points"], 1);
}

TEST_F(Trend, IsMadeOfBaselinesInGitAlone) {
  git({"checkout", "-q", "main"});
  write_engine(66, 2);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0);
  git({"commit", "-q", "-a", "-m", "two more"});
  spill(scratch_ / "notes", "no baseline");
  git({"add", "notes"});
  git({"commit", "-q", "-m", "something else"});
  fs::remove_all(scratch_ / "weir-out");  // nothing but git is left
  EXPECT_THAT(import({"--from-dir", "baselines"}).out, HasSubstr("2 runs and 8 points are new"));
  // Both may have been made within one second.
  EXPECT_THAT(values(), UnorderedElementsAre("65", "66"));
  EXPECT_THAT(values("syncs_per_token"), UnorderedElementsAre("1", "2"));
  for (const Json& run : lines("run")) {
    const bool second = run["points"][0]["exact"] == 66;
    EXPECT_EQ(run["commit"].get<std::string>() + "\n",
              git_output(second ? "rev-parse HEAD~1" : "rev-parse HEAD~2"));
  }
  EXPECT_THAT(import({"--from-dir", "."}).out, HasSubstr("0 runs and 0 points are new"));
}

TEST_F(Trend, FindsRunsAndVerdictsBelowAFolder) {
  gate({"--quiet"}, 0);
  write_engine(66);
  gate({"--quiet"}, 1);
  fs::create_directories(scratch_ / "artefacts/pr-12");
  fs::copy_file(newest_run() + "/verdict.json", scratch_ / "artefacts/pr-12/weir.json");
  spill(scratch_ / "artefacts/pr-12/other.json", "{}");
  fs::remove_all(scratch_ / "weir-out/accept");  // a run, too
  fs::rename(scratch_ / "weir-out", scratch_ / "artefacts/runs");
  EXPECT_THAT(import({"--from-dir", "artefacts"}).out, HasSubstr("3 runs"));
  // The verdict came alone, too.
  EXPECT_THAT(values(), UnorderedElementsAre("65", "66", "66"));
}

TEST_F(Trend, NeverHoldsAPrivateName) {
  const std::string config = slurp(scratch_ / "weir.yaml");
  std::string hidden = config;
  hidden.replace(hidden.find("{m: model.bin}"), 14,
                 "{secretmodel: {path: model.bin, private: true}}");
  spill(scratch_ / "weir.yaml", hidden);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  git({"add", "-A"});
  git({"commit", "-q", "-m", "a private model"});
  gate({"--quiet"}, 0);
  import({newest_run()});
  import({"--from-dir", "baselines"});
  EXPECT_THAT(exported(), AllOf(HasSubstr("mine/model-"), Not(HasSubstr("secretmodel"))));
  EXPECT_THAT(store_bytes(), AllOf(HasSubstr("mine/model-"), Not(HasSubstr("secretmodel"))));

  // A name that was private in a commit stays private after the configuration has forgotten it.
  spill(scratch_ / "weir.yaml", config);
  git({"commit", "-q", "-a", "-m", "not any more"});
  fs::remove_all(scratch_ / ".weir");
  import({"--from-dir", "baselines"});
  EXPECT_THAT(exported(), AllOf(HasSubstr("mine/model-"), Not(HasSubstr("secretmodel"))));
}

TEST_F(Trend, TakesNoBaselinesWithoutAConfigurationThatSaysWhatIsPrivate) {
  git({"rm", "-q", "weir.yaml"});
  git({"commit", "-q", "-m", "no configuration"});
  const Ended ended = import({"--from-dir", "baselines"}, 2);
  EXPECT_THAT(ended.err, HasSubstr("-c FILE names the configuration"));
}

TEST_F(Trend, RefusesARunThatWasCutOffAndTakesTheOthers) {
  gate({"--quiet"}, 0);
  const std::string complete = newest_run();
  const std::string cut = (scratch_ / "weir-cut").string();
  fs::copy(complete, cut, fs::copy_options::recursive);
  const std::string journal = slurp(cut + "/run.jsonl");
  // Its header and the first of its records.
  const std::size_t first = journal.find('\n', journal.find('\n') + 1);
  spill(cut + "/run.jsonl", journal.substr(0, first + 1));
  EXPECT_THAT(import({cut}, 2).err, HasSubstr("--resume"));
  const Ended ended = import({cut, complete, "nothing-there"}, 3);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("weir-cut: left out"), HasSubstr("no such run")));
  EXPECT_EQ(lines("run").size(), 1U);
}

TEST_F(Trend, AnAcknowledgementIsOfWhoeverGitNamesWithoutUser) {
  git({"config", "user.name", "Ada of git"});
  std::string csv = "cell,metric,commit,time,value,machine\n";
  for (int i = 0; i < 60; ++i) {
    csv += fmt::format("a/b/cpu/decode,decode_tokens_per_second,{:040x},2026-{:02}-{:02},{},m\n",
                       i + 1, 1 + i / 28, 1 + i % 28, (i < 30 ? 100 : 80) + 0.1 * (i % 3));
  }
  spill(scratch_ / "weir-a.csv", csv);
  import({"--csv", "weir-a.csv"});
  const auto acknowledge = [&](const std::string& commit, const std::string& user) {
    const Ended ended =
        here({"trend", "ack", "--commit", commit, "--reason", "meant"}, {{"USER", user}});
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  };
  acknowledge(fmt::format("{:040x}", 31), "");
  EXPECT_THAT(exported(), HasSubstr("Ada of git"));
}

TEST_F(Trend, AnAcknowledgementNamesAllThatItLacksAtOnce) {
  const Ended ended = here({"trend", "ack"});
  EXPECT_EQ(ended.exit_code, 2);
  for (const char* option : {"--commit SHA", "--reason TEXT"})
    EXPECT_THAT(ended.err, HasSubstr(option));
}

TEST_F(Trend, ComesBackFromItsExport) {
  gate({"--quiet"}, 0);
  import({newest_run()});
  spill(scratch_ / "weir-a.csv",
        "cell,metric,commit,time,value,machine\nx,load_seconds,,0,1,\nx,load_seconds,,1,2,\n");
  EXPECT_THAT(import({"--csv", "weir-a.csv"}).out, HasSubstr("2 runs and 2 points are new"));
  ASSERT_EQ(here({"trend", "export", "--output", "weir-all.jsonl"}).exit_code, 0);
  import({"--jsonl", "weir-all.jsonl", "--db", "weir-copy.db"});
  EXPECT_EQ(exported({"--db", "weir-copy.db"}), slurp(scratch_ / "weir-all.jsonl"));
  EXPECT_EQ(exported(), slurp(scratch_ / "weir-all.jsonl"));
  // A part is without verdicts.
  EXPECT_THAT(exported({"--cell", "x"}), Not(HasSubstr("verdict")));
  EXPECT_THAT(import({"--jsonl", "weir-all.jsonl", "--project", "p"}, 2).err,
              HasSubstr("leave --project out"));
}

TEST_F(Trend, KeepsNothingOfACsvWithAWrongRow) {
  spill(scratch_ / "weir-a.csv",
        "cell,metric,commit,time,value,machine,note\nx,y,,0,1,,\nx,y,,1,nan,,\n");
  EXPECT_THAT(import({"--csv", "weir-a.csv"}, 3).err, HasSubstr("weir-a.csv: line 3: \"nan\""));
  EXPECT_EQ(lines("run").size(), 0U);
}

TEST_F(Trend, SaysFromWhichRunOnAChangeIsLookedFor) {
  std::string csv = "cell,metric,commit,time,value,machine,note\n";
  for (int i = 0; i < 10; ++i) csv += "c,decode_tokens_per_second,," + std::to_string(i) + ",9,,\n";
  spill(scratch_ / "weir-short.csv", csv);
  import({"--csv", "weir-short.csv"});
  EXPECT_THAT(here({"trend", "changes"}).out,
              AllOf(HasSubstr(": too few runs\n"),
                    HasSubstr("1 series has 10 of 12 runs: weir looks for a change of a time from "
                              "the 12th run on\n")));
}

TEST_F(Trend, NamesTheCommitOfAChangeAndItsBisection) {
  std::string csv = "cell,metric,commit,time,value,machine\n";
  for (int i = 0; i < 4; ++i) {
    git({"commit", "-q", "--allow-empty", "-m", fmt::format("change {}", i)});
    csv += fmt::format("a/b/cpu/decode,syncs_per_token,{:.40},2026-01-0{},{},m\n",
                       git_output("rev-parse HEAD"), 1 + i, i < 2 ? 1 : 17);
  }
  spill(scratch_ / "weir-a.csv", csv);
  import({"--csv", "weir-a.csv"});
  EXPECT_THAT(here({"trend", "changes"}).out,
              AllOf(HasSubstr("\"change 2\"\n  weir bisect "),
                    HasSubstr(" --cell a/b/cpu/decode\nweir bisect needs ")));
}

TEST_F(Trend, ShowsNoPasswordAndTakesNoneFromTheCommandLine) {
  const std::string url = "postgres://weir:hidden-word@127.0.0.1:1/d?connect_timeout=2";
  const Ended given = import({"--csv", "none.csv", "--db", url}, 2);
  EXPECT_THAT(given.err, AllOf(HasSubstr("WEIR_DB"), Not(HasSubstr("hidden-word"))));
  const Ended inherited = import({"--csv", "none.csv"}, 2, {{"WEIR_DB", url}});
  EXPECT_THAT(inherited.err,
              AllOf(HasSubstr("postgres://weir@127.0.0.1:1/d"), Not(HasSubstr("hidden-word"))));
  EXPECT_EQ(here({"trend", "list", "--db", "none.db"}).exit_code, 2);
  EXPECT_EQ(import({}, 2).out, "");
}

}  // namespace trend_test
}  // namespace weir::e2e
