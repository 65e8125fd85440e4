// weir gate --against, with an engine under git whose speed is its source: real git, real
// processes, no stored baseline anywhere.
#include <gmock/gmock.h>

#include "gate/base/text.hpp"

#include "tests/e2e/engine_under_git.hpp"

namespace weir::e2e {
namespace against_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AgainstBase : public EngineUnderGit {
 protected:
  Ended run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "gate");
    return weir_here(std::move(arguments));
  }
  void replace_in_config(const std::string& from, const std::string& to) {
    std::string text = slurp(scratch_ / "weir.yaml");
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    spill(scratch_ / "weir.yaml", text.replace(at, from.size(), to));
  }
  Json against(const std::string& spec, int exit_code) {
    const Ended ended = run({"--json", "-", "--against", spec});
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended);
  }
  // Returns each line that the shell command prints at the start of an engine, of a base and a
  // candidate that are one commit, and how many starts printed it.
  std::map<std::string, int> told_by_each_start(const std::string& command) {
    write_engine("10000000");
    std::string script = slurp(scratch_ / "engine");
    script.replace(script.find("FAKE"), 0,
                   command + " >> '" + (scratch_ / "weir-told").string() + "'\n");
    spill_program(scratch_ / "engine", script);
    git({"add", "-A"});
    git({"commit", "-q", "-m", "tells of its start"});
    (void)against("HEAD", 0);
    std::map<std::string, int> told;
    for (const std::string& line : text::lines(slurp(scratch_ / "weir-told"))) ++told[line];
    return told;
  }
};

TEST_F(AgainstBase, PassesAnEngineThatDidNotChange) {
  commit_engine("a change that costs nothing", "10000000");
  const Json verdict = against("HEAD~1", 0);
  EXPECT_EQ(verdict["verdict"], "pass");
  EXPECT_EQ(rate_of(verdict)["verdict"], "pass");
  EXPECT_EQ(rate_of(verdict)["pairs"], 8);
  EXPECT_EQ(verdict["base_commit"].get<std::string>().size(), 40U);
  EXPECT_NE(verdict["base_commit"], verdict["commit"]);
  EXPECT_THAT(verdict["base_source"].get<std::string>(), HasSubstr("base"));
}

TEST_F(AgainstBase, FailsASlowerEngineAndSaysSoAgainFromTheRunAlone) {
  commit_engine("slower", "11500000");
  const Json verdict = against("HEAD~1", 1);
  const Json rate = rate_of(verdict);
  EXPECT_EQ(rate["verdict"], "fail");
  EXPECT_NEAR(rate["change"].get<double>(), 10.0 / 11.5 - 1, 0.01);
  EXPECT_LT(rate["high"].get<double>(), 0);
  EXPECT_EQ(rate["ratios"].size(), rate["pairs"].get<std::size_t>());
  // Neither the base nor the candidate is needed any more.
  fs::remove_all(scratch_ / "cache");
  fs::remove(scratch_ / "engine");
  const Ended again = run({"--json", "-", "--from"});
  EXPECT_EQ(again.exit_code, 1) << again.err;
  EXPECT_EQ(rate_of(json_of(again)), rate);
}

// What the candidate writes to is put back, as none of it will be seen after.
TEST_F(AgainstBase, ACandidateThatWritesToWhatTheComparisonRestsOnIsNotComparedWithIt) {
  const std::string cache = (scratch_ / "cache").string(),
                    model = (scratch_ / "model.bin").string();
  const std::string input = (scratch_ / "weir-input").string();  // which git ignores
  spill(input, "for both sides");
  replace_in_config("[./engine, ", "[./engine, -c, weir-input, ");
  git({"commit", "-qam", "takes an input"});
  const Scratch elsewhere;
  const std::string old = elsewhere.path().string() + "/old",
                    ran = elsewhere.path().string() + "/ran";
  fs::create_directory(old);
  fs::copy_file(scratch_ / "engine", old + "/engine");
  const std::string overwrite = "cp -p $f $f.was; cp \"$0\" $f; ", put_back = "mv $f.was $f; ";
  const std::vector<std::string> commit{"HEAD~1"}, folder{old},
      command{"--", old + "/engine",   "-m", "{model}",  "-n", "{tokens}",
              "-p", "{prompt_tokens}", "-r", "{repeats}"};
  const struct {
    std::string script;
    std::vector<std::string> against;
    std::string told;
  } cases[] = {
      {"for f in " + cache + "/trees/*/engine; do " + overwrite + "done", commit,
       "engine: it was written to in the base's checkout"},
      {"for f in " + cache + "/trees/*/engine; do " + overwrite + put_back + "done", commit,
       "engine: it was written to in the base's checkout"},
      // A copy whose engine puts the checkout back as it starts.
      {"for f in " + cache +
           "/trees/*; do case $f in *.*) continue ;; esac; [ ! -e $f.was ] || continue; "
           "cp -r $f $f.new; { echo '#!/bin/sh'; echo \"echo > " +
           ran + "; mv $f $f.new; mv $f.was $f\"; tail -n 1 \"$0\"; } > $f.new/engine; " +
           "mv $f $f.was; mv $f.new $f; done",
       commit, "it was written to in the base's checkout"},
      {"f=" + old + "/engine; " + overwrite + put_back, folder,
       "engine: it was written to in the base's folder"},
      {"mv " + old + " " + old + ".was; cp -r " + old + ".was " + old, folder,
       "engine: it was written to in the base's folder"},
      {"f=" + old + "/engine; " + overwrite + put_back, command,
       "engine: it was written to in the base's folder"},
      {"f=" + model + "; " + overwrite + put_back, commit, "model.bin: it was written to while"},
      {"f=" + model + "; " + overwrite + put_back, command, "model.bin: it was written to while"},
      {"rm -f " + model, folder, "model.bin: it was removed while"},
      {"f=" + input + "; " + overwrite + put_back, commit, "weir-input: it was written to while"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.script);
    write_engine("20000000");
    std::string script = slurp(scratch_ / "engine");
    script.replace(script.find("FAKE"), 0, c.script + "\n");
    spill_program(scratch_ / "engine", script);
    git({"commit", "-qam", "writes"});
    std::vector<std::string> words{"gate", "--against"};
    words.insert(words.end(), c.against.begin(), c.against.end());
    const Ended ended = weir_here(words, {{"CI", "true"}});
    EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(c.told));
    EXPECT_FALSE(fs::exists(ran)) << "as the base";
    git({"reset", "-q", "--hard", "HEAD~1"});
    spill(model, "no model at all");
    fs::remove_all(old + ".was");
    fs::remove_all(cache);
  }
}

// An engine may leave what shells, interpreters, linkers and drivers load before the base's own
// code.
TEST_F(AgainstBase, ACandidateThatLeavesFilesForOtherProgramsToLoadIsNotCompared) {
  const Scratch home;
  const std::string path = home.path().string();
  const std::string packages = path + "/.local/lib/python3.11/site-packages";
  fs::create_directories(packages + "/numpy/__pycache__");
  spill(packages + "/numpy/__init__.py", "pi = 3");
  const std::string compiled = "/numpy/__pycache__/__init__.cpython-311.pyc",
                    not_used_yet = "/numpy/__pycache__/more.cpython-311.pyc";
  spill(packages + compiled, "compiled");
  // The checkout lies in trees, and a link to it in sides.
  const std::string cache = (scratch_ / "cache").string();
  fs::create_directories(path + "/bin");
  const std::map<std::string, std::string> env{
      {"CI", "true"}, {"HOME", path}, {"PATH", path + "/bin:/usr/bin:/bin"}};
  const struct {
    std::string file, named;
  } cases[] = {
      {packages + "/usercustomize.py", "site-packages/usercustomize.py: it was written to"},
      {packages + "/a.pth", "site-packages/a.pth: it was written to"},
      {packages + "/numpy/__init__.py", "numpy/__init__.py: it was written to"},
      {path + "/.local/lib/python3.12/site-packages/x.py", "python3.12/site-packages/x.py: it was"},
      {path + "/.zshenv", "~/.zshenv: it was written to"},
      {path + "/.julia/config/startup.jl", "~/.julia/config/startup.jl: it was written to"},
      {path + "/.config/vulkan/implicit_layer.d/slow.json", "implicit_layer.d/slow.json: it was"},
      {path + "/.local/share/vulkan/implicit_layer.d/slow.json", "implicit_layer.d/slow.json: it"},
      {path + "/.drirc", "~/.drirc: it was written to"},
      {path + "/bin/awk", "/bin/awk: it was written to"},
      {packages + compiled, compiled + ": it was written to"},
      {packages + not_used_yet, not_used_yet + ": it was written to"},
      {cache + "/trees/node_modules/index.js", "/trees/node_modules/index.js: it was written to"},
      {cache + "/sides/tsconfig.json", "/sides/tsconfig.json: it was written to"},
      {cache + "/package.json", "/cache/package.json: it was written to"},
      {cache + "/pyvenv.cfg", "/cache/pyvenv.cfg: it was written to"},
      // Caches.
      {cache + "/trees/node_modules/.vite/index.js", ""},
      {cache + "/.cache/node_modules/index.js", ""},
      {path + "/.cache/huggingface/hub/model", ""},
      {path + "/.config/vllm/usage_stats.json", ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.file);
    write_engine("10000000");
    std::string script = slurp(scratch_ / "engine");
    script.replace(
        script.find("FAKE"), 0,
        "mkdir -p '" + fs::path(c.file).parent_path().string() + "'; echo >> '" + c.file + "'\n");
    spill_program(scratch_ / "engine", script);
    git({"commit", "-qam", "leaves a file"});
    const Ended ended = weir_here({"gate", "--against", "HEAD~1"}, env);
    EXPECT_EQ(ended.exit_code, c.named.empty() ? 0 : 3) << ended.out << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(c.named));
    git({"reset", "-q", "--hard", "HEAD~1"});
    if (c.file.find("/__init__.") == std::string::npos) fs::remove(c.file);
  }
}

// Both sides are given a folder that the base lacks. They may keep files there, but the base must
// not get other ones than the candidate had.
TEST_F(AgainstBase, ACandidateThatChangesASharedFoldersInputsOrCodeIsNotCompared) {
  replace_in_config("[./engine, ", "[./engine, -c, ./shared, ");
  git({"commit", "-qam", "takes a folder"});
  fs::create_directories(scratch_ / "shared");
  spill(scratch_ / "shared/input.json", "{}");
  spill(scratch_ / "shared/code.py", "pass");
  spill(scratch_ / "shared/cache.db", "old");
  git({"add", "-f", "shared/input.json"});
  git({"commit", "-q", "-m", "brings an input"});
  const struct {
    std::string file;
    int exit_code;
  } cases[] = {{"shared/input.json", 3},   {"shared/code.py", 3},
               {"shared/new.so", 3},       {"shared/cache.db", 0},
               {"shared/new-cache.db", 0}, {"shared/__pycache__/x.pyc", 0}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.file);
    write_engine("10000000");
    std::string script = slurp(scratch_ / "engine");
    const std::string file = (scratch_ / c.file).string();
    script.replace(
        script.find("FAKE"), 0,
        "mkdir -p " + fs::path(file).parent_path().string() + "; echo >> " + file + "\n");
    spill_program(scratch_ / "engine", script);
    git({"commit", "-qam", "writes"});
    const Ended ended = weir_here({"gate", "--against", "HEAD~2"}, {{"CI", "true"}});
    EXPECT_EQ(ended.exit_code, c.exit_code) << ended.out << ended.err;
    if (c.exit_code != 0) EXPECT_THAT(ended.err, HasSubstr(c.file + ": it was written to"));
    git({"reset", "-q", "--hard", "HEAD~1"});
  }
}

// A file that the base makes, and one that git does not know, are its own.
TEST_F(AgainstBase, ABaseMayWriteFilesThatGitDoesNotKnow) {
  std::string script = slurp(scratch_ / "engine");
  script.replace(script.find("FAKE"), 0, "echo told >> weir-log\n");
  spill_program(scratch_ / "engine", script);
  git({"commit", "-qam", "keeps a log"});
  git({"commit", "-q", "--allow-empty", "-m", "nothing else"});
  const Ended ended = weir_here({"gate", "--against", "HEAD~1"}, {{"CI", "true"}});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
}

// "python3 bench.py": the program lies outside of the repository, the script in it.
TEST_F(AgainstBase, AnInterpreterOfTheSystemRunsEachSidesOwnScript) {
  const auto start_by = [&](const std::string& words) {
    std::string config = slurp(scratch_ / "weir.yaml");
    spill(scratch_ / "weir.yaml", config.replace(config.find("[./engine"), 9, "[" + words));
  };
  start_by("sh, ./engine");
  commit_engine("by a shell", "10000000");
  commit_engine("slower", "20000000");
  EXPECT_EQ(rate_of(against("HEAD~1", 1))["verdict"], "fail");
  write_config("2h");
  start_by("sh, -c, 'echo nothing'");
  const Ended ended = run({"--against", "HEAD~1"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("it lies outside of the repository, and the command of"));
}

TEST_F(AgainstBase, TellsAnImprovementAndDoesNotBlock) {
  commit_engine("faster", "8000000");
  EXPECT_EQ(rate_of(against("HEAD~1", 0))["verdict"], "improved");
}

TEST_F(AgainstBase, HoldsTheWorkingTreeToTheMergeBase) {
  commit_engine("slower, on main, after the branch began", "20000000");
  git({"checkout", "-q", "-b", "topic", "HEAD~1"});
  write_engine("10000001");  // not committed
  const Json verdict = against("main", 0);
  EXPECT_EQ(rate_of(verdict)["verdict"], "pass");
  EXPECT_THAT(dump_json(verdict["notes"]), HasSubstr("the working tree differs from"));
}

TEST_F(AgainstBase, TakesAFolderOrACommandForABase) {
  fs::create_directories(scratch_ / "weir-old");
  write_engine("5000000");
  fs::rename(scratch_ / "engine", scratch_ / "weir-old/engine");
  write_engine("10000000");
  EXPECT_EQ(rate_of(against("weir-old", 1))["verdict"], "fail");
  const Ended ended = run({"--json", "-", "--against", "--", "./weir-old/engine", "-n", "{tokens}",
                           "-p", "{prompt_tokens}", "-r", "{repeats}", "-m", "{model}"});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_EQ(rate_of(json_of(ended))["verdict"], "fail");
}

TEST_F(AgainstBase, NamesTheSideThatHangs) {
  write_config("2h", "", "", "1s");
  write_engine("10000000", "hang");
  const Json verdict = against("HEAD", 3);
  EXPECT_THAT(cell_of(verdict, "fake/m/cpu/decode")["reason"].get<std::string>(),
              HasSubstr("the candidate failed in its warm-up, twice: did not end within 1 s"));
}

TEST_F(AgainstBase, ABaseThatCrashesIsAnErrorThatSaysWhichSide) {
  write_engine("10000000", "crash");
  git({"add", "-A"});
  git({"commit", "-q", "-m", "broken"});
  write_engine("10000000");
  const Json verdict = against("HEAD", 3);
  EXPECT_THAT(cell_of(verdict, "fake/m/cpu/decode")["reason"].get<std::string>(),
              HasSubstr("the base program"));
}

TEST_F(AgainstBase, ABudgetThatCanDecideNothingIsAUsageErrorThatNamesOneThatCan) {
  write_config("1ms");
  const Ended ended = run({"--against", "HEAD"});
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("gate.budget: "));
  EXPECT_THAT(ended.err, HasSubstr("can decide none of 1 cell:"));
}

TEST_F(AgainstBase, MeasuresWhatIsOnlyReportedAndFailsNothing) {
  write_config("2h", "limits: [{metrics: \"*\", mode: report}]\n");
  git({"add", "-A"});
  git({"commit", "-q", "-m", "reports only"});
  write_engine("11500000");
  const Json verdict = against("HEAD", 0);
  EXPECT_EQ(rate_of(verdict)["verdict"], "info");
  EXPECT_GE(rate_of(verdict)["pairs"].get<int>(), 8);
  EXPECT_NEAR(rate_of(verdict)["change"].get<double>(), 10.0 / 11.5 - 1, 0.01);
}

TEST_F(AgainstBase, LeavesNoWayIntoTheRepositoryInTheRunsFolder) {
  (void)against("HEAD", 0);
  for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "weir-out")) {
    EXPECT_FALSE(entry.is_symlink()) << entry.path();
  }
}

TEST_F(AgainstBase, LosesNothingByACacheThatCanNotBeWritten) {
  write_engine("11500000");
  fs::create_directories(scratch_ / "cache");
  spill(scratch_ / "cache/counts", "in the way");
  EXPECT_EQ(rate_of(against("HEAD", 1))["verdict"], "fail");
}

TEST_F(AgainstBase, RefusesToJudgeARunWhoseBaseIsNotDescribed) {
  (void)against("HEAD", 0);
  const auto run = fs::directory_iterator(scratch_ / "weir-out")->path();
  std::string journal = slurp(run / "run.jsonl");
  journal.replace(journal.find("\"against\":{"), 11, "\"other\":{");
  spill(run / "run.jsonl", journal);
  const Ended ended = this->run({"--from"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("beside a base that its journal does not describe"));
}

TEST_F(AgainstBase, RefusesWhatNamesNoBase) {
  for (const auto& [arguments, message] :
       {std::pair{std::vector<std::string>{"--against"}, "--against needs"},
        std::pair{std::vector<std::string>{"--against", "nothing-like-this"}, "nothing-like-this"},
        std::pair{std::vector<std::string>{"--against", "HEAD", "--", "./engine"}, "one base"},
        std::pair{std::vector<std::string>{"--", "./engine"}, "--against -- COMMAND"},
        std::pair{std::vector<std::string>{"--against", "HEAD", "--runs", "3"}, "--runs"}}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
  }
}

// A wrapper of both commits, which starts what lies beside it in its checkout.
TEST_F(AgainstBase, OpensItsOwnFilesHoweverTheyAreNamed) {
  const std::string here = scratch_.path().string();
  const struct {
    std::string words, script;
  } cases[] = {
      {"", "exec ./engine \"$@\""},
      {"", "exec \"$CHECKOUT/engine\" \"$@\""},
      {"", "exec \"$OWN\" \"$@\""},
      {"", "exec \"$(env | sed -n s/^PWD=//p)/engine\" \"$@\""},
      {"./engine, ", "exec \"$@\""},
      {here + "/engine, ", "exec \"$@\""},
      {"--run=./engine, ", "run=${1#*=}; shift; exec \"$run\" \"$@\""},
      {"--run=" + here + "/engine, ", "run=${1#*=}; shift; exec \"$run\" \"$@\""},
      {"'engine --quick', ", "run=${1% *}; shift; exec \"./$run\" \"$@\""},
  };
  for (const auto& [words, script] : cases) {
    write_config("2h");
    replace_in_config("[./engine, ", "[./bench, " + words);
    replace_in_config("    timeout:", "    env: {OWN: ./engine}\n    timeout:");
    spill_program(scratch_ / "bench", "#!/bin/sh\n" + script + "\n");
    commit_engine("the base", "10000000");
    write_engine("11500000");
    const Ended ended =
        weir_here({"gate", "--json", "-", "--against", "HEAD"}, {{"CHECKOUT", here}});
    EXPECT_EQ(ended.exit_code, 1) << words << script << ended.err;
    EXPECT_EQ(rate_of(json_of(ended))["verdict"], "fail") << words << script;
  }
}

// A wrapper of both commits, which starts what the job's PATH leads to.
class AgainstBaseByPath : public AgainstBase {
 protected:
  void SetUp() override {
    AgainstBase::SetUp();
    replace_in_config("[./engine, ", "[./bench, ");
    spill_program(scratch_ / "bench", "#!/bin/sh\nexec engine \"$@\"\n");
    commit_engine("the base", "10000000");
    write_engine("11500000");
  }
  Ended gate_with(const fs::path& folder) {
    return weir_here({"gate", "--json", "-", "--against", "HEAD"},
                     {{"PATH", folder.string() + ":" + std::getenv("PATH")}});
  }

  Scratch outside_;
};

TEST_F(AgainstBaseByPath, RunsItsOwnProgramOverALinkToTheWorkTree) {
  fs::create_directory_symlink(scratch_.path(), outside_ / "link");
  const Ended ended = gate_with(outside_ / "link");
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_EQ(rate_of(json_of(ended))["verdict"], "fail");
}

TEST_F(AgainstBaseByPath, IsAnErrorWhereAnInstalledProgramLeadsToTheCandidates) {
  spill_program(outside_ / "engine",
                "#!/bin/sh\nexec '" + (scratch_ / "engine").string() + "' \"$@\"\n");
  const Ended ended = gate_with(outside_.path());
  const std::string text = dump_json(json_of(ended));
  if (text.find("does not tell which files") != std::string::npos) GTEST_SKIP() << "no ptrace";
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(text, HasSubstr("opened code of the work tree, where the candidate's is: engine"));
}

TEST_F(AgainstBase, IsGivenFilesThatOnlyTheWorkTreeHas) {
  const struct {
    std::string words, script;
  } cases[] = {
      {"model.bin, ", "cat \"$1\" && shift"},
      {"./data, ", "cat \"$1/x\" && shift"},
      {"--data=data/x, ", "cat \"${1#*=}\" && shift"},
      {"", "cat \"$DATA\""},
  };
  spill(scratch_ / "data/x", "of no commit");
  spill(scratch_ / ".gitignore", slurp(scratch_ / ".gitignore") + "data\n");
  for (const auto& [words, script] : cases) {
    write_config("2h");
    replace_in_config("[./engine, ", "[./bench, " + words);
    replace_in_config("    timeout:", "    env: {DATA: data/x}\n    timeout:");
    spill_program(scratch_ / "bench",
                  "#!/bin/sh\n{ " + script + "; } > /dev/null || exit 9\nexec ./engine \"$@\"\n");
    commit_engine("the base", "10000000");
    const Json verdict = against("HEAD", 0);
    EXPECT_EQ(rate_of(verdict)["verdict"], "pass") << words << script;
    EXPECT_THAT(dump_json(verdict["notes"]), HasSubstr("data")) << words << script;
  }
}

TEST_F(AgainstBase, IsNotGivenTheCandidatesCode) {
  spill_program(scratch_ / "weir-built/engine", slurp(scratch_ / "engine"));
  replace_in_config("[./engine, ", "[./bench, weir-built/engine, ");
  spill_program(scratch_ / "bench", "#!/bin/sh\nexec \"$@\"\n");
  commit_engine("starts what the build makes", "10000000");
  const Ended ended = run({"--against", "HEAD"});
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("/weir-built/engine: the command names it, and "));
  EXPECT_THAT(ended.err, HasSubstr("`build:` has to make it there"));
  replace_in_config("    output:",
                    "    build: [sh, -c, 'mkdir weir-built && cp engine weir-built']\n"
                    "    output:");
  EXPECT_EQ(rate_of(against("HEAD", 0))["verdict"], "pass");
}

class AgainstBaseInEnvironment : public AgainstBase {
 protected:
  void SetUp() override {
    AgainstBase::SetUp();
    spill(scratch_ / ".gitignore", slurp(scratch_ / ".gitignore") + ".venv\n");
    spill(environment_ / "pyvenv.cfg", "home = /usr/bin\n");
    spill_program(environment_ / "bin/run", "#!/bin/sh\nexec \"$@\"\n");
    spill_program(scratch_ / "bench", "#!/bin/sh\nexec run ./engine \"$@\"\n");
  }
  // Compares a slower engine, which `words` start, with its base. `is_active` is the environment.
  Ended gate_slower(const std::string& words, bool is_active) {
    write_config("2h");
    replace_in_config("[./engine, ", "[" + words);
    commit_engine("the base", "10000000");
    write_engine("11500000");
    std::map<std::string, std::string> active{
        {"VIRTUAL_ENV", environment_.string()},
        {"PATH", (environment_ / "bin").string() + ":" + std::getenv("PATH")}};
    if (!is_active) active.clear();
    return weir_here({"gate", "--json", "-", "--against", "HEAD"}, active);
  }

  const fs::path environment_ = scratch_ / ".venv";
};

TEST_F(AgainstBaseInEnvironment, SharesItWhetherItIsNamedOrActive) {
  const std::pair<const char*, bool> cases[] = {
      {"./.venv/bin/run, ./engine, ", false}, {"run, ./engine, ", true}, {"./bench, ", true}};
  for (const auto& [words, is_active] : cases) {
    const Ended ended = gate_slower(words, is_active);
    ASSERT_EQ(ended.exit_code, 1) << words << ended.err;
    const Json verdict = json_of(ended);
    EXPECT_EQ(rate_of(verdict)["verdict"], "fail") << words;
    EXPECT_THAT(dump_json(verdict["notes"]),
                HasSubstr("both programs are given the file here: .venv"))
        << words;
  }
}

// Python compiles packages as it imports them first; weir has it do so before anything is held.
TEST_F(AgainstBaseInEnvironment, HoldsWhatPythonCompiledThere) {
  const fs::path python = "/usr/bin/python3";
  if (!fs::exists(python)) GTEST_SKIP() << "no Python";
  const std::string version = fs::canonical(python).filename();  // "python3.11"
  const fs::path packages = environment_ / "lib" / version / "site-packages";
  fs::create_directories(environment_ / "bin");
  fs::create_symlink(python, environment_ / "bin/python");
  const auto gate_script = [&](const std::string& attack) {
    fs::remove_all(packages);
    spill(packages / "pkg/__init__.py", "number = 3\n");
    spill(packages / "pkg/later.py", "number = 4\n");
    const std::string script = "exec run ./engine \"$@\"\n";
    spill_program(scratch_ / "bench", "#!/bin/sh\npython -c 'import pkg'\n" + script);
    write_config("2h");
    replace_in_config("[./engine, ", "[./bench, ");
    commit_engine("the base", "10000000");
    spill_program(scratch_ / "bench",
                  "#!/bin/sh\npython -c 'import pkg'\n" + attack + "\n" + script);
    return weir_here({"gate", "--json", "-", "--against", "HEAD"},
                     {{"CI", "true"},
                      {"VIRTUAL_ENV", environment_.string()},
                      {"PATH", (environment_ / "bin").string() + ":" + std::getenv("PATH")}});
  };
  const Ended ended = gate_script("python -c 'import pkg.later'");
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  const std::string cache = (packages / "pkg/__pycache__").string();
  for (const std::string& attack :
       {"for f in " + cache + "/__init__.*.pyc; do echo >> $f; done",
        "for f in " + cache + "/later.*.pyc; do rm $f; done", "echo > " + cache + "/x.py.pyc"}) {
    const Ended refused = gate_script(attack);
    EXPECT_EQ(refused.exit_code, 3) << attack << refused.out << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("it was written to or removed while both sides ran"));
  }
}

// pyenv makes a hidden file in a folder of PATH with each shell that starts, and removes it.
TEST_F(AgainstBaseInEnvironment, HoldsTheProgramsOfPathAndNoHiddenFile) {
  const Scratch shims;
  const auto gate_script = [&](const std::string& name) {
    fs::remove(shims / name);
    spill_program(scratch_ / "bench", "#!/bin/sh\nexec ./engine \"$@\"\n");
    write_config("2h");
    replace_in_config("[./engine, ", "[./bench, ");
    commit_engine("the base", "10000000");
    spill_program(scratch_ / "bench",
                  "#!/bin/sh\necho > " + (shims / name).string() + "\nexec ./engine \"$@\"\n");
    return weir_here({"gate", "--json", "-", "--against", "HEAD"},
                     {{"CI", "true"}, {"PATH", shims.path().string() + ":" + std::getenv("PATH")}});
  };
  const Ended hidden = gate_script(".pyenv-shim");
  EXPECT_EQ(hidden.exit_code, 0) << hidden.out << hidden.err;
  const Ended program = gate_script("tool");
  EXPECT_EQ(program.exit_code, 3) << program.out << program.err;
  EXPECT_THAT(program.err, HasSubstr("/tool: it was written to or removed while both sides ran"));
}

TEST_F(AgainstBaseInEnvironment, RefusesOneWithTheCandidatesCode) {
  spill(environment_ / "lib/python3.11/site-packages/__editable__.engine-1.pth",
        scratch_.path().string() + "\n");
  const Ended ended = gate_slower("./.venv/bin/run, ./engine, ", false);
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("/site-packages/__editable__.engine-1.pth: by this file the"));
  fs::remove_all(environment_ / "lib");
  git({"add", "-f", ".venv"});
  const Ended tracked = gate_slower("./.venv/bin/run, ./engine, ", false);
  EXPECT_EQ(tracked.exit_code, 1) << "the base has its own now" << tracked.err;
  EXPECT_THAT(dump_json(json_of(tracked)["notes"]), Not(HasSubstr(".venv")));
}

TEST_F(AgainstBaseInEnvironment, RefusesAnInstalledCopyOfWhatTheChangeEdits) {
  const fs::path packages = environment_ / "lib/python3.11/site-packages";
  spill(packages / "engine/__init__.py", "the copy\n");
  spill(packages / "other/__init__.py", "another package\n");
  const auto gate_script = [&](const std::string& package, const std::string& edited) {
    spill_program(scratch_ / "bench",
                  fmt::format("#!/bin/sh\nread line < {}\nexec run ./engine \"$@\"\n",
                              (packages / package / "__init__.py").string()));
    spill(scratch_ / "src/engine/__init__.py", "as committed\n");
    spill(scratch_ / "src/other.txt", "as committed\n");
    git({"add", "src"});
    write_config("2h");
    replace_in_config("[./engine, ", "[./bench, ");
    commit_engine("the base", "10000000");
    spill(scratch_ / "src" / edited, "edited\n");
    return weir_here({"gate", "--json", "-", "--against", "HEAD"},
                     {{"VIRTUAL_ENV", environment_.string()},
                      {"PATH", (environment_ / "bin").string() + ":" + std::getenv("PATH")}});
  };
  const Ended ended = gate_script("engine", "engine/__init__.py");
  EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
  EXPECT_THAT(ended.out,
              HasSubstr("opened an installed copy of what the change edits, in the virtual "
                        "environment that both sides share: "
                        ".venv/lib/python3.11/site-packages/engine/__init__.py"));
  EXPECT_EQ(gate_script("other", "engine/__init__.py").exit_code, 0) << "another package";
  EXPECT_EQ(gate_script("engine", "other.txt").exit_code, 0) << "not edited";
}

// The build of each side installs the package; the candidate's was not run again after the edit.
TEST_F(AgainstBaseInEnvironment, RefusesAStaleOrAnOuterCopyThatTheCandidateRuns) {
  const Scratch outside;
  spill(outside / "pyvenv.cfg", "home = /usr/bin\n");
  const std::string copy = "lib/python3.11/site-packages/pkg/__init__.py";
  const auto gate_copy = [&](const fs::path& environment, const std::string& installed) {
    spill(environment / copy, installed);
    spill_program(environment / "bin/run", fmt::format("#!/bin/sh\nread line < {}\nexec \"$@\"\n",
                                                       (environment / copy).string()));
    spill(scratch_ / "pkg/__init__.py", "as committed\n");
    write_config("2h");
    const std::string run =
        environment == environment_ ? ".venv/bin/run" : (environment / "bin/run").string();
    replace_in_config("[./engine, ", "[" + run + ", ./engine, ");
    replace_in_config("    output:", "    build: [sh, ./make-environment]\n    output:");
    spill(scratch_ / "make-environment",
          "mkdir -p .venv/bin\ntouch .venv/pyvenv.cfg\n"
          "printf '#!/bin/sh\\nexec \"$@\"\\n' > .venv/bin/run\nchmod +x .venv/bin/run\n");
    commit_engine("the base", "10000000");
    spill(scratch_ / "pkg/__init__.py", "edited\n");
    return weir_here({"gate", "--json", "-", "--against", "HEAD"});
  };
  const struct {
    fs::path environment;
    std::string installed;
    int exit_code;
  } cases[] = {{environment_, "as committed\n", 3},
               {environment_, "edited\n", 0},
               {outside.path(), "edited\n", 3}};
  for (const auto& [environment, installed, exit_code] : cases) {
    const Ended ended = gate_copy(environment, installed);
    EXPECT_EQ(ended.exit_code, exit_code) << environment << ended.out << ended.err;
    const std::string said = "opened an installed copy of what the change edits, not the files of";
    EXPECT_EQ(ended.out.find(said) != std::string::npos, exit_code == 3) << ended.out;
  }
}

TEST_F(AgainstBaseInEnvironment, RefusesToCompareAProgramWithItself) {
  spill_program(environment_ / "bin/own", slurp(scratch_ / "engine"));
  const Ended ended = gate_slower("./.venv/bin/own, ", false);
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("so that it would be compared with itself"));
}

TEST_F(AgainstBase, BothSidesStartInFoldersOfEqualLengthAndSayItInPwd) {
  const std::map<std::string, int> folders = told_by_each_start("env | sed -n s/^PWD=//p");
  ASSERT_EQ(folders.size(), 2U);
  EXPECT_EQ(folders.begin()->first.size(), folders.rbegin()->first.size());
}

TEST_F(AgainstBase, BothSidesRunFromPathsOfEqualLength) {
  const std::map<std::string, int> names = told_by_each_start("printf '%s\\n' \"$0\"");
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names.begin()->first.size(), names.rbegin()->first.size());
  EXPECT_EQ(names.begin()->second, names.rbegin()->second);  // 8 pairs and a warm-up each
}

}  // namespace against_test
}  // namespace weir::e2e
