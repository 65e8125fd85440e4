// docs/how-to/any-program.md, command by command, with a script that prints its speed.
#include <gmock/gmock.h>

#include "gate/base/text.hpp"

#include "tests/e2e/engine_under_git.hpp"
#include "tests/support/code_blocks.hpp"

namespace weir::e2e {
namespace any_program_test {

class AnyProgram : public EngineUnderGit {
 protected:
  void SetUp() override {
    spill(scratch_ / ".gitignore", "weir-out\ncache\n");
    git({"init", "-q", "-b", "main"});
  }
  void write_script(const std::string& name, const std::string& tokens_per_second) {
    spill_program(scratch_ / name, "#!/bin/sh\necho loaded in 3.1 s\necho \"generated $2 tokens: " +
                                       tokens_per_second + " tokens/s\"\n");
  }
  void commit(const std::string& subject) {
    git({"add", "-A"});
    git({"commit", "-q", "-m", subject});
  }
};

TEST_F(AnyProgram, ThatPrintsANumberIsGatedAsThePageSays) {
  write_script("old", "41.2");
  write_script("engine", "41.2");
  commit("as fast as ever");
  write_script("engine", "30.9");
  commit("slower");
  const std::string page = slurp(std::string(WEIR_SOURCE_DIR) + "/docs/how-to/any-program.md");
  int commands = 0;
  for (const std::string& line : text::lines(tests::code_blocks(page, "sh"))) {
    if (line.empty()) continue;
    std::vector<std::string> words = tests::split_command(line.substr(0, line.find("    #")));
    ASSERT_EQ(words.front(), "weir") << line;
    words.erase(words.begin());
    const Ended& ended = weir_here(words);
    const bool is_red = line.find("# exit code 1") != std::string::npos;
    EXPECT_EQ(ended.exit_code, is_red ? 1 : 0) << line << "\n" << ended.out << ended.err;
    if (is_red) {
      EXPECT_THAT(ended.out, testing::HasSubstr("decode tok/s  41.2 → 30.9   −2"));
      EXPECT_THAT(ended.out, testing::Not(testing::HasSubstr("why: "))) << "the row says it";
    }
    ++commands;
  }
  EXPECT_EQ(commands, 3);
}

TEST_F(AnyProgram, InPythonHasTheEngineThatThePageShows) {
  const std::string page = slurp(std::string(WEIR_SOURCE_DIR) + "/docs/how-to/any-program.md");
  spill(scratch_ / "weir.yaml", "version: 1\n" + tests::code_blocks(page, "yaml") +
                                    "models: {none: none.bin}\nbackends: {cpu: {}}\n"
                                    "prompts: {run: {tokens: 32}}\n");
  const Ended shown = weir_here({"config", "show"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, testing::HasSubstr("pip install -e ."));
}

TEST_F(AnyProgram, IsWrittenDownByInitWithTheMetricThatIsNamed) {
  write_script("engine", "41.2");
  const Ended init =
      weir_here({"init", "--metric", "load_seconds=loaded in ([0-9.]+) s", "--metric",
                 "dispatches_per_token=loaded in ([0-9]+)", "--", "./engine", "-n", "32"});
  EXPECT_EQ(init.exit_code, 0) << init.err;
  commit("with weir.yaml");
  const std::string config = slurp(scratch_ / "weir.yaml");
  for (const char* metric :
       {"load_seconds:", "dispatches_per_token:", "decode_tokens_per_second:"}) {
    EXPECT_THAT(config, testing::HasSubstr(metric));
  }
  EXPECT_THAT(config, testing::Not(testing::HasSubstr("limits:"))) << "each has a limit by itself";
  EXPECT_EQ(weir_here({"config", "show"}).exit_code, 0);
  EXPECT_EQ(weir_here({"init", "--metric", "load_seconds=([0-9.]+)"}).exit_code, 2);
  EXPECT_EQ(weir_here({"init", "--", "./engine"}).exit_code, 2) << "weir.yaml is there already";
  EXPECT_EQ(weir_here({"init", "--force", "--", "./engine", "-n", "32"}).exit_code, 0);
  EXPECT_THAT(slurp(scratch_ / "weir.yaml"), testing::HasSubstr("decode_tokens_per_second"));
}

TEST_F(AnyProgram, IsNamedByItsScriptAndNumbersThatAreNotReadAreNamed) {
  spill(scratch_ / "bench.sh", "echo loss: 0.31\necho hits: 12\necho 41.2 tok/s\n");
  const Ended init = weir_here({"init", "--", "sh", "bench.sh"});
  EXPECT_EQ(init.exit_code, 0) << init.err;
  EXPECT_THAT(slurp(scratch_ / "weir.yaml"), testing::HasSubstr("\n  bench.sh:\n"));
  EXPECT_THAT(init.out, testing::HasSubstr("note: not read: loss: 0.31, hits: 12. "));
  EXPECT_THAT(init.out, testing::HasSubstr("weir gate --against HEAD\n"))
      << "a repository without an earlier commit";
  commit("one");
  commit_engine("two", "10000000");
  EXPECT_THAT(weir_here({"init", "--force", "--", "sh", "bench.sh"}).out,
              testing::HasSubstr("weir gate --against HEAD~1\n"));
  const Ended wrong =
      weir_here({"init", "--force", "--metric", "hits=hits: ([0-9]+)", "--", "sh", "bench.sh"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, testing::HasSubstr("such as hits_count: "));
  EXPECT_THAT(wrong.err, testing::Not(testing::HasSubstr("did you mean")));
  for (const char* verb : {"ab", "init"}) {
    std::string help = weir_here({verb, "--help"}).out;
    for (const char* end : {"_rate", "_share", "_gib", "_count"}) {
      EXPECT_THAT(help, testing::HasSubstr(end)) << verb;
      EXPECT_THAT(wrong.err, testing::HasSubstr(end));
    }
  }
}

TEST_F(AnyProgram, ComparedWithoutProbesSaysNothingOfCountsAndWhatIsNext) {
  write_script("engine", "41.2");
  const Ended ab =
      weir_here({"ab", "./engine", "./engine", "--write", "kept.yaml", "--", "-n", "32"});
  EXPECT_EQ(ab.exit_code, 0) << ab.err;
  EXPECT_THAT(ab.out, testing::Not(testing::HasSubstr("counts not taken")));
  EXPECT_THAT(ab.out, testing::HasSubstr("weir gate -c kept.yaml --against -- ./engine -n 32\n"));
  EXPECT_THAT(ab.out, testing::HasSubstr("may drop 5 %")) << "also where it passed";
}

TEST_F(AnyProgram, IsComparedWithItselfUnderOtherArguments) {
  spill_program(scratch_ / "engine", "#!/bin/sh\necho \"$2.5 tokens/s\"\necho hits: $2\n");
  const std::vector<std::string> words{"ab",
                                       "./engine",
                                       "--metric",
                                       "hits_count=hits: ([0-9]+)",
                                       "--base-args=--rate 41",
                                       "--candidate-args=--rate 30"};
  const Ended ab = weir_here(words);
  EXPECT_EQ(ab.exit_code, 1) << ab.err;
  EXPECT_THAT(ab.out, testing::HasSubstr("41.5 → 30.5"));
  EXPECT_THAT(ab.out, testing::HasSubstr("'--base-args=--rate 41' '--candidate-args=--rate 30'"));
  EXPECT_EQ(weir_here({"ab", "./engine", "--base-args=-x", "--candidate-args=-x"}).exit_code, 2);
}

TEST_F(AnyProgram, OfAnEnvironmentThatHasTheRepositoryInstalledIsToldToMakeItInEachCheckout) {
  spill_program(scratch_ / ".venv/bin/python", "#!/bin/sh\necho 41.2 tok/s\n");
  spill(scratch_ / ".venv/pyvenv.cfg", "");
  EXPECT_THAT(weir_here({"init", "--", ".venv/bin/python"}).out,
              testing::HasSubstr("commit it; then, after a change, weir gate --against HEAD"));
  spill(scratch_ / ".venv/lib/python3/site-packages/mine.pth", (scratch_ / "").string());
  EXPECT_THAT(weir_here({"init", "--force", "--", ".venv/bin/python"}).out,
              testing::HasSubstr("say under build: how each checkout"));
}

TEST_F(AnyProgram, TakesThePlaceOfTheExampleThatNobodyEdited) {
  write_script("engine", "41.2");
  ASSERT_LE(weir_here({"init"}).exit_code, 1);
  ASSERT_THAT(slurp(scratch_ / "weir.yaml"), testing::HasSubstr("my-engine"));
  EXPECT_EQ(weir_here({"init", "--", "./engine", "-n", "32"}).exit_code, 0);
  EXPECT_THAT(slurp(scratch_ / "weir.yaml"), testing::Not(testing::HasSubstr("my-engine")));
  spill(scratch_ / "weir.yaml", "version: 1  # mine, with my-engine\n");
  EXPECT_EQ(weir_here({"init", "--", "./engine", "-n", "32"}).exit_code, 2);
}

TEST_F(AnyProgram, IsAskedForAPatternThatMatchesWhatItPrints) {
  write_script("engine", "41.2");
  const Ended init =
      weir_here({"init", "--metric", "load_seconds=load: ([0-9.]+)", "--", "./engine"});
  EXPECT_EQ(init.exit_code, 2);
  EXPECT_THAT(init.err, testing::HasSubstr("matches nothing that ./engine printed"));
  EXPECT_THAT(init.err, testing::HasSubstr("'loaded in ([0-9.]+)' would match"));
  EXPECT_FALSE(fs::exists(scratch_ / "weir.yaml"));
}

TEST_F(AnyProgram, IsJudgedByANumberOfItsOwnWithoutALimit) {
  const auto print_hits = [&](const char* line) {
    spill_program(scratch_ / "engine", fmt::format("#!/bin/sh\necho {}\n", line));
  };
  print_hits("hits 0.81");
  spill(scratch_ / "weir.yaml",
        "version: 1\nengines: {mine: {command: [./engine, \"{model}\", \"{prompt}\"],\n"
        "  output: generic, metrics: {cache_hit_rate: {regex: 'hits ([0-9.]+)'}}}}\n"
        "models: {none: /dev/null}\nbackends: {cpu: {}}\nprompts: {run: {text: once}}\n");
  commit("one");
  print_hits("hits 0.50");
  commit("two");
  const Ended gate = weir_here({"gate", "--budget", "20s", "--against", "HEAD~1"});
  EXPECT_EQ(gate.exit_code, 1) << gate.err;
  EXPECT_THAT(gate.out, testing::HasSubstr("cache hit rate  0.81"));
  EXPECT_THAT(gate.out, testing::HasSubstr("may drop 5 %"));
}

// Its second line is also one of Agave's.
TEST_F(AnyProgram, IsNotTakenForAnEngineThatPrintsASimilarLine) {
  spill_program(scratch_ / "engine",
                "#!/bin/sh\necho 'generated 32 tokens: 41.2 tokens/s'\n"
                "echo 'Metal: 640 dispatches'\n");
  const Ended init = weir_here({"init", "--", "./engine", "-n", "32"});
  EXPECT_EQ(init.exit_code, 0) << init.err;
  const std::string config = slurp(scratch_ / "weir.yaml");
  EXPECT_THAT(config, testing::Not(testing::HasSubstr("preset:")));
  EXPECT_THAT(config, testing::HasSubstr("decode_tokens_per_second"));
}

TEST_F(AnyProgram, KeepsItsArgumentsWhereItsOutputNamesAPreset) {
  spill_program(scratch_ / "engine",
                "#!/bin/sh\necho 'tok/s \xC2\xB7'\necho 'Metal stats: 9 dispatches'\n");
  const Ended init = weir_here({"init", "--", "./engine", "-n", "32"});
  EXPECT_EQ(init.exit_code, 0) << init.err;
  EXPECT_THAT(init.err, testing::HasSubstr("its output looks like agave's: preset agave"));
  const std::string config = slurp(scratch_ / "weir.yaml");
  EXPECT_THAT(config, testing::HasSubstr("preset: agave"));
  EXPECT_THAT(config, testing::Not(testing::HasSubstr("--json")));
}

// The page names these ends, and the message of a name without one.
TEST_F(AnyProgram, MayHaveAMetricOfEachEndThatSaysItsUnit) {
  spill_program(scratch_ / "engine", "#!/bin/sh\necho value 41.5\n");
  std::vector<std::string> init = {"init"};
  for (const char* name : {"gen_tokens_per_second", "chat_requests_per_second", "steps_per_second",
                           "load_seconds", "start_ms", "step_us", "cache_bytes", "cache_mib",
                           "hit_ratio", "hit_rate", "hit_share", "decode_tokens_per_second"})
    init.insert(init.end(), {"--metric", std::string(name) + "=value ([0-9.]+)"});
  init.insert(init.end(), {"--", "./engine"});
  const Ended made = weir_here(init);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const Ended planned = weir_here({"run", "--dry-run"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err << slurp(scratch_ / "weir.yaml");
}

TEST_F(AnyProgram, IsNamedInOneWordThatCanBeRun) {
  spill(scratch_ / "mine.py", "print(1)\n");
  const struct {
    std::vector<std::string> programs;
    const char* message;
  } cases[] = {
      {{"mine.py", "./mine.py"}, "no such program: mine.py; mine.py is here: write ./mine.py"},
      {{"./mine.py", "./mine.py"}, "./mine.py is not executable: chmod +x ./mine.py"},
      {{"python3 mine.py", "true"}, "these are several words, and a program is one"},
      {{"python3", "mine.py", "mine.py"}, "3 programs: base and candidate are one word each"},
      {{"nowhere/mine", "true"}, "no such program: nowhere/mine\n"},
  };
  for (const auto& test_case : cases) {
    std::vector<std::string> words = test_case.programs;
    words.insert(words.begin(), "ab");
    const Ended ended = weir_here(words);
    EXPECT_EQ(ended.exit_code, 2) << test_case.message;
    EXPECT_THAT(ended.err, testing::HasSubstr(test_case.message));
  }
}

}  // namespace any_program_test
}  // namespace weir::e2e
