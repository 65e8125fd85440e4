// weir plan, run --shard, merge: a matrix on several machines, judged as one.
#include <gmock/gmock.h>

#include "tests/e2e/engine_under_git.hpp"

namespace weir::e2e {
namespace shards_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* k_engine =
    "[./engine, -m, '{model}', -n, '{tokens}', -p, '{prompt_tokens}', -r, '{repeats}', -d, "
    "'{depth}']";

class Shards : public EngineUnderGit {
 protected:
  void SetUp() override {
    EngineUnderGit::SetUp();
    std::string prompts = "prompts:\n  long: {prompt_tokens: 0, tokens: 8, depth: [0, 64]}\n";
    for (int i = 0; i < 5; ++i) {
      prompts += "  p" + std::to_string(i) +
                 ": {prompt_tokens: 0, tokens: " + std::to_string(8 + 8 * i) + "}\n";
    }
    spill(scratch_ / "weir.yaml",
          std::string("version: 1\nengines:\n  fake:\n    command: ") + k_engine +
              "\n    output: llama-bench\n    timeout: 10m\nmodels: {m: model.bin}\n"
              "backends: {cpu: {runner: [big, cpu]}}\n" +
              prompts + "gate: {repeats: 1, runs: 2, budget: 6s}\n");
    commit_engine("with a matrix", "10000000");
  }

  std::string measure(const std::string& shard, std::vector<std::string> more = {}) {
    const std::string out = "weir-shard-" + shard.substr(0, shard.find('/'));
    std::vector<std::string> words{"run", "--shard", shard, "--out", out};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(weir_here(words).exit_code, 0) << last_.err;
    return newest(out);
  }
  std::string newest(const std::string& out) {
    std::string path;
    for (const auto& entry : fs::directory_iterator(scratch_ / out)) {
      if (fs::exists(entry.path() / "run.jsonl")) {
        path = std::max(path, out + "/" + entry.path().filename().string());
      }
    }
    return path;
  }
  std::string merged(std::vector<std::string> runs) {
    fs::remove_all(scratch_ / "weir-merged");
    runs.insert(runs.begin(), "merge");
    runs.insert(runs.end(), {"--out", "weir-merged"});
    EXPECT_EQ(weir_here(runs).exit_code, 0) << last_.err;
    return newest("weir-merged");
  }
};

TEST_F(Shards, JoinedInAnyOrderAreTheSameRun) {
  ASSERT_EQ(weir_here({"plan", "--shards", "3"}).exit_code, 0) << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("7 cells in 3 shards"));
  std::vector<std::string> runs;
  for (int i = 1; i <= 3; ++i) {
    runs.push_back(measure(std::to_string(i) + "/3", {"--plan", "weir-plan.json"}));
  }
  const std::string first = slurp(scratch_ / merged({runs[0], runs[1], runs[2]}) / "run.jsonl");
  EXPECT_EQ(slurp(scratch_ / merged({runs[2], runs[0], runs[1]}) / "run.jsonl"), first);
  EXPECT_EQ(slurp(scratch_ / merged({runs[1] + "/run.jsonl", runs[2], runs[0]}) / "run.jsonl"),
            first);
  // Judged, it is what one machine's run is: the same cells in the same order, new here.
  ASSERT_EQ(weir_here({"gate", "--out", "weir-merged", "--json", "-", "--from"}).exit_code, 0)
      << last_.err;
  const Json verdict = json_of(last_);
  ASSERT_EQ(verdict["cells"].size(), 8U) << "with the line over the depths";
  EXPECT_EQ(verdict["cells"][0]["cell"], "fake/m/cpu/long@d0");
  EXPECT_EQ(verdict["cells"][2]["cell"], "fake/m/cpu/long");
  EXPECT_EQ(verdict["cells"][7]["cell"], "fake/m/cpu/p4");
}

TEST_F(Shards, NameWhatIsMissingOrThereTwice) {
  const std::string first = measure("1/2"), second = measure("2/2"), other_plan = measure("1/3");
  const struct {
    std::vector<std::string> runs;
    const char* message;
  } cases[] = {{{first}, "shard 2/2 is missing: fake/m/cpu/"},
               {{first, second, first}, "are both shard 1/2"},
               {{other_plan, second}, "another plan"}};
  for (const auto& c : cases) {
    std::vector<std::string> words{"merge", "--out", "weir-merged"};
    words.insert(words.end(), c.runs.begin(), c.runs.end());
    EXPECT_EQ(weir_here(words).exit_code, 2);
    EXPECT_THAT(last_.err, HasSubstr(c.message));
  }
  ASSERT_EQ(weir_here({"merge", "--partial", "--out", "weir-merged", first}).exit_code, 0)
      << last_.err;
  EXPECT_EQ(weir_here({"gate", "--out", "weir-merged", "--json", "-", "--from"}).exit_code, 3);
  const Json partial = json_of(last_);
  EXPECT_THAT(dump_json(partial["cells"]), HasSubstr("its shard was not measured"));
  EXPECT_EQ(partial["cells"].size(), 8U);
}

TEST_F(Shards, OfAnotherConfigurationAreRefused) {
  ASSERT_EQ(weir_here({"plan", "--shards", "2"}).exit_code, 0);
  spill(scratch_ / "weir.yaml", slurp(scratch_ / "weir.yaml") + "# edited\n");
  EXPECT_EQ(weir_here({"run", "--shard", "1/2", "--plan", "weir-plan.json"}).exit_code, 2);
  EXPECT_THAT(last_.err, HasSubstr("made from another configuration"));
  EXPECT_EQ(weir_here({"run", "--shard", "3/2"}).exit_code, 2);
  EXPECT_THAT(last_.err, HasSubstr("--shard 3/16"));
}

TEST_F(Shards, AreAMatrixForGitHubAndAnArrayForSlurm) {
  ASSERT_EQ(weir_here({"plan", "--shards", "2", "--format", "github"}).exit_code, 0) << last_.err;
  const Json github = json_of(last_);
  ASSERT_EQ(github["include"].size(), 2U);
  EXPECT_EQ(github["include"][0]["shard"], "1/2");
  EXPECT_THAT(github["include"][0]["runner"], ElementsAre("big", "cpu"));
  EXPECT_EQ(std::count(last_.out.begin(), last_.out.end(), '\n'), 1) << "one line of an output";
  ASSERT_EQ(weir_here({"plan", "--shards", "2", "--format", "slurm"}).exit_code, 0) << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("#SBATCH --array=1-2\n"));
  EXPECT_THAT(last_.out, HasSubstr("#SBATCH --constraint='big&cpu'\n"));
}

TEST_F(Shards, BesideABaseAreJudgedAsOneGate) {
  commit_engine("slower", "13000000");
  std::vector<std::string> runs;
  for (const char* shard : {"1/2", "2/2"}) {
    runs.push_back(measure(shard, {"--against", "HEAD~1"}));
  }
  merged(runs);
  EXPECT_EQ(weir_here({"gate", "--out", "weir-merged", "--json", "-", "--from"}).exit_code, 1)
      << last_.err;
  const Json verdict = json_of(last_);
  EXPECT_EQ(verdict["verdict"], "fail");
  for (const Json& cell : verdict["cells"]) {
    if (cell["cell"] == "fake/m/cpu/long") continue;
    EXPECT_EQ(cell["verdict"], "fail") << cell["cell"];
    EXPECT_GT(metric_of(cell, k_rate)["pairs"].get<int>(), 7);
  }
}

TEST_F(Shards, BesideABaseAreWholeAndAllBesideIt) {
  commit_engine("the same", "10000000");
  const std::string first = measure("1/2", {"--against", "HEAD~1"});
  const std::string second = measure("2/2", {"--against", "HEAD~1"}), alone = measure("2/2");
  const std::string journal = (scratch_ / second / "run.jsonl").string();
  EXPECT_EQ(weir_here({"merge", "--out", "weir-merged", first, alone}).exit_code, 2);
  EXPECT_THAT(last_.err, HasSubstr("measured with another"));
  const std::string text = slurp(journal);
  ASSERT_THAT(text, testing::EndsWith("{\"steps\":[]}\n"));
  spill(journal, text.substr(0, text.size() - 13));
  EXPECT_EQ(weir_here({"merge", "--out", "weir-merged", first, second}).exit_code, 2);
  EXPECT_THAT(last_.err, HasSubstr("was interrupted in shard 2/2"));
  const std::string resume = "weir run --resume " + second + " --shard 2/2";
  EXPECT_THAT(last_.err, HasSubstr(resume));
  EXPECT_EQ(
      weir_here({"run", "--resume", second, "--shard", "2/2", "--against", "HEAD~1"}).exit_code, 0)
      << last_.err;
  EXPECT_EQ(weir_here({"merge", "--out", "weir-merged", first, second}).exit_code, 0) << last_.err;
}

TEST_F(Shards, KeepPrivateNamesAtHomeInErrors) {
  std::string config = slurp(scratch_ / "weir.yaml");
  config.replace(config.find("{m: model.bin}"), 14, "{m: {path: model.bin, private: true}}");
  spill(scratch_ / "weir.yaml", config);
  EXPECT_EQ(weir_here({"merge", "--out", "weir-merged", measure("1/2")}).exit_code, 2);
  EXPECT_THAT(last_.err, HasSubstr("fake/model-"));
  EXPECT_THAT(last_.err, Not(HasSubstr("fake/m/")));
}

// A pull request that drops the mark does not show the name.
TEST_F(Shards, KeepNamesPrivateThatTheBaseHides) {
  const std::string config = slurp(scratch_ / "weir.yaml");
  std::string hidden = config;
  hidden.replace(hidden.find("{m: model.bin}"), 14, "{m: {path: model.bin, private: true}}");
  spill(scratch_ / "weir.yaml", hidden);
  git({"commit", "-qam", "hides its model"});
  spill(scratch_ / "weir.yaml", config);
  EXPECT_EQ(weir_here({"plan", "--guess", "--shards", "2", "--rules-from", "HEAD"}).exit_code, 0)
      << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("fake/model-"));
  EXPECT_THAT(last_.out, Not(HasSubstr("fake/m/")));
}

}  // namespace shards_test
}  // namespace weir::e2e
