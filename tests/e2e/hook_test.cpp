// weir hook with real pushes: of several commits, new branches, deletions, tags, force pushes, from
// work trees, and beside a hook that was there before.
#include <gmock/gmock.h>

#include "tests/e2e/engine_project.hpp"

namespace weir::e2e {
namespace hook_test {

using ::testing::HasSubstr;
using ::testing::Not;

class Hook : public EngineProject {
 protected:
  // Commits 1 to 6, of which 4 brings one dispatch more; the remote has 1.
  void SetUp() override {
    make(line(6, 4, 99, {}));
    git("reset -q --hard");
    spill(repo() / ".git/info/exclude", "weir-out\nengine\nmodel.bin\nweir.yaml\nnew\n");
    git("init -q --bare -b main ../remote");
    git("remote add origin ../remote");
    git("push -q origin " + sha(1) + ":refs/heads/main");
    git("fetch -q origin");
  }
  Ended hook(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "hook");
    arguments.insert(arguments.begin() + 2, {"-c", "repo/weir.yaml"});
    const Ended ended = weir(scratch_, arguments, env());
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return ended;
  }
  // `git push ARGUMENTS` in `folder`, which may fail.
  Ended push(const std::string& arguments, const std::string& variables = "",
             const std::string& folder = "repo") {
    const std::string out = (scratch_ / "push.out").string();
    const std::string command = "cd '" + (scratch_ / folder).string() +
                                "' && env -u GIT_DIR HOME=/nonexistent WEIR_CACHE='" +
                                (scratch_ / "cache").string() + "' WEIR_LOCK_DIR='" +
                                (scratch_ / "locks").string() + "' " + variables + " git push " +
                                arguments + " > '" + out + "' 2>&1";
    Ended ended;
    ended.exit_code = WEXITSTATUS(std::system(command.c_str()));
    ended.out = slurp(out);
    return ended;
  }
  [[nodiscard]] std::string remote(const std::string& ref) const {
    const std::string command = "git -C '" + (scratch_ / "remote").string() +
                                "' rev-parse --verify -q " + ref + " > '" +
                                (scratch_ / "ref").string() + "'";
    [[maybe_unused]] const int ended = std::system(command.c_str());
    const std::string text = slurp(scratch_ / "ref");
    return text.substr(0, text.find('\n'));
  }
};

TEST_F(Hook, BuildsWhatIsNotBuiltAndKeepsTheFirstPushOfARegressionBack) {
  const Ended installed = hook({"install"});
  EXPECT_THAT(installed.out,
              HasSubstr("What is not built is built within the push, for up to 60s."));
  const Ended pushed = push("origin " + sha(6) + ":main");
  EXPECT_NE(pushed.exit_code, 0) << pushed.out;
  EXPECT_THAT(pushed.out, HasSubstr("1 FAILED; times: not judged"));
  EXPECT_EQ(remote("main"), sha(1));
  const std::string why = "weir explain ";
  const std::size_t begin = pushed.out.find(why + "weir-out/hook/");
  ASSERT_NE(begin, std::string::npos) << pushed.out;
  const std::string run =
      pushed.out.substr(begin + why.size(), pushed.out.find('\n', begin) - begin - why.size());
  for (const std::string& named : {run, std::string()}) {
    std::vector<std::string> words{"-C", "repo", WEIR_BINARY_DIR "/weir", "explain"};
    if (!named.empty()) words.push_back(named);
    const Ended explained = Weir(scratch_, words, env(), "/usr/bin/env").wait();
    EXPECT_EQ(explained.exit_code, 0) << explained.err;
    EXPECT_THAT(explained.out, HasSubstr("dispatch")) << run;
    EXPECT_THAT(explained.err, Not(HasSubstr("not judged")));
  }
}

// A base of such an engine is its checkout.
TEST_F(Hook, JudgesAnEngineThatNeedsNoBuild) {
  std::string config = slurp(repo() / "weir.yaml");
  const std::string build = "    build: [./build.sh]\n", engine = "./engine";
  config.erase(config.find(build), build.size());
  config.replace(config.find(engine), engine.size(), "./script");
  spill(repo() / "weir.yaml", config);
  const auto commit_with = [&](int dispatches) {
    spill_program(repo() / "script", fmt::format("#!/bin/sh\necho '{} dispatches, 1 syncs'\n"
                                                 "echo '(100.0 tok/s)'\n",
                                                 dispatches));
    git("add script");
    git("commit -q -m script");
  };
  commit_with(65);
  EXPECT_EQ(push("origin HEAD:main").exit_code, 0) << "before there is a hook";
  hook({"install", "--no-build"});
  commit_with(66);
  const Ended bad = push("origin HEAD:main");
  EXPECT_NE(bad.exit_code, 0) << bad.out;
  EXPECT_THAT(bad.out, HasSubstr("65 → 66"));
  commit_with(65);
  EXPECT_EQ(push("origin HEAD:main").exit_code, 0);
}

TEST_F(Hook, KeepsBackWhatWasNotJudgedIfStrict) {
  hook({"install", "--no-build", "--strict"});
  const Ended pushed = push("origin " + sha(3) + ":main");
  EXPECT_NE(pushed.exit_code, 0) << pushed.out;
  EXPECT_THAT(pushed.out, HasSubstr("is not built, not judged"));
  EXPECT_THAT(pushed.out, HasSubstr("kept back, for not all of it was judged (--strict)"));
  hook({"install", "--strict", "--time-limit", "1ms"});
  const Ended short_of_time = push("origin " + sha(3) + ":main");
  EXPECT_NE(short_of_time.exit_code, 0) << short_of_time.out;
  EXPECT_EQ(remote("main"), sha(1));
  EXPECT_EQ(push("origin " + sha(3) + ":main", "WEIR_SKIP=1").exit_code, 0);
  hook({"install", "--strict"});
  const Ended good = push("origin " + sha(3) + ":refs/heads/good");
  EXPECT_EQ(good.exit_code, 0) << good.out;
}

TEST_F(Hook, SaysWhatIsNotBuiltAndLetsItPass) {
  hook({"install", "--no-build"});
  const Ended pushed = push("origin " + sha(6) + ":main");
  EXPECT_EQ(pushed.exit_code, 0) << pushed.out;
  EXPECT_THAT(pushed.out, HasSubstr("is not built, not judged"));
  EXPECT_TRUE(built().empty());
  EXPECT_EQ(remote("main"), sha(6));
}

TEST_F(Hook, KeepsBackWhatBreaksALimitAndNothingElse) {
  hook({"install", "--build"});
  const Ended good = push("origin " + sha(3) + ":main");
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_THAT(good.out, HasSubstr("1 of 1 cells judged by counts, none broke a limit"));
  const Ended bad = push("origin " + sha(6) + ":main");
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_THAT(bad.out, HasSubstr("65 → 66"));
  EXPECT_THAT(bad.out, HasSubstr("1 FAILED"));
  EXPECT_EQ(remote("main"), sha(3));
  // A new branch is held to the merge-base with main.
  EXPECT_NE(push("origin " + sha(5) + ":refs/heads/topic").exit_code, 0);
  EXPECT_EQ(remote("topic"), "");
  const std::size_t builds = built().size();
  EXPECT_EQ(push("origin " + sha(6) + ":main", "WEIR_SKIP=1").exit_code, 0);
  EXPECT_EQ(remote("main"), sha(6));
  EXPECT_EQ(push("--no-verify origin " + sha(5) + ":refs/heads/topic").exit_code, 0);
  EXPECT_EQ(built().size(), builds);
}

TEST_F(Hook, TakesTheCheckoutsOwnBuildWhereItIsOfThatCommit) {
  hook({"install", "--build"});
  EXPECT_EQ(push("origin " + sha(2) + ":main").exit_code, 0);  // base and 2 are built and known
  hook({"install", "--no-build"});
  git("checkout -q " + sha(5));
  EXPECT_THAT(push("origin HEAD:main").out, HasSubstr("not built, not judged"));
  EXPECT_EQ(push("-f --no-verify origin " + sha(2) + ":main").exit_code, 0);
  ASSERT_EQ(std::system(("'" + (repo() / "build.sh").string() + "'").c_str()), 0);
  const Ended bad = push("origin HEAD:main");
  EXPECT_NE(bad.exit_code, 0) << bad.out;
  EXPECT_THAT(bad.out, HasSubstr("1 FAILED"));
  // A file that changed after the build: that program is of something else.
  ASSERT_EQ(std::system(("touch -d '1 hour' '" + (repo() / "version.h").string() + "'").c_str()),
            0);
  EXPECT_THAT(push("origin HEAD:main").out, HasSubstr("not built, not judged"));
}

TEST_F(Hook, JudgesNothingOfDeletionsAndOfTagsOnWhatIsThere) {
  git("push -q origin " + sha(1) + ":refs/heads/topic");
  git("tag -a -m tagged v1 " + sha(1));
  hook({"install", "--build"});
  for (const char* arguments : {"origin :topic", "origin v1"}) {
    const Ended pushed = push(arguments);
    EXPECT_EQ(pushed.exit_code, 0) << pushed.out;
    EXPECT_THAT(pushed.out, Not(HasSubstr("judged")));
  }
  EXPECT_TRUE(built().empty());
  EXPECT_EQ(remote("topic"), "");
  // A tag on new commits is judged as they are.
  git("tag -a -m tagged v2 " + sha(6));
  EXPECT_NE(push("origin v2").exit_code, 0);
  EXPECT_EQ(remote("v2"), "");
}

TEST_F(Hook, HoldsAForcePushToTheMergeBase) {
  git("push -q origin " + sha(6) + ":main");
  git("fetch -q origin");
  git("checkout -q -b other " + sha(2));
  spill(repo() / "notes", "nothing that runs\n");
  git("add notes");
  git("commit -q -m notes");
  hook({"install", "--build"});
  const Ended pushed = push("--force origin other:main");
  EXPECT_EQ(pushed.exit_code, 0) << pushed.out;
  EXPECT_THAT(pushed.out, HasSubstr("beside merge-base " + sha(2).substr(0, 7)));
}

TEST_F(Hook, WorksInAWorkTreeAndWithAHooksFolderOfItsOwn) {
  git("config core.hooksPath ../shared-hooks");
  hook({"install", "--build"});
  EXPECT_TRUE(fs::exists(scratch_ / "shared-hooks/pre-push"));
  EXPECT_FALSE(fs::exists(repo() / ".git/hooks/pre-push"));
  git("worktree add -q -b topic ../beside " + sha(6));
  fs::copy(repo() / "weir.yaml", scratch_ / "beside/weir.yaml");
  fs::copy(repo() / "model.bin", scratch_ / "beside/model.bin");
  const Ended pushed = push("origin topic", "", "beside");
  EXPECT_NE(pushed.exit_code, 0) << pushed.out;
  EXPECT_THAT(pushed.out, HasSubstr("1 FAILED"));
}

TEST_F(Hook, SaysWhereItCanCountNothing) {
  EXPECT_THAT(hook({"install"}).out, Not(HasSubstr("can be counted")));
  spill(repo() / "weir.yaml",
        "version: 1\nengines: {mine: {command: [./engine, '{prompt}'], output: generic, metrics: "
        "{decode_tokens_per_second: {regex: '([0-9.]+) tok'}}}}\n"
        "backends: {cpu: }\nprompts: {run: {text: once}}\n");
  EXPECT_THAT(hook({"install"}).out,
              HasSubstr("No cell of repo/weir.yaml can be counted, and the hook takes no times: it "
                        "judges nothing here."));
}

TEST_F(Hook, RunsTheHookThatWasThereFirstAndGivesItBack) {
  const fs::path place = repo() / ".git/hooks/pre-push";
  const std::string before = "#!/bin/sh\ncat > '" + (scratch_ / "stdin").string() +
                             "'\necho \"$@\" > '" + (scratch_ / "arguments").string() +
                             "'\nexit ${FIRST:-0}\n";
  spill_program(place, before);
  EXPECT_THAT(hook({"install"}).out, HasSubstr("runs first"));
  hook({"install"});  // again: nothing is lost
  const Ended refused = push("origin " + sha(2) + ":main", "FIRST=7");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.out, Not(HasSubstr("judged"))) << "it has the first word";
  EXPECT_EQ(push("origin " + sha(2) + ":main").exit_code, 0);
  EXPECT_EQ(slurp(scratch_ / "stdin"), sha(2) + " " + sha(2) + " refs/heads/main " + sha(1) + "\n");
  EXPECT_THAT(slurp(scratch_ / "arguments"), HasSubstr("origin ../remote"));
  hook({"uninstall"});
  EXPECT_EQ(slurp(place), before);
  EXPECT_FALSE(fs::exists(repo() / ".git/hooks/pre-push.before-weir"));
  hook({"uninstall"});
  EXPECT_EQ(slurp(place), before) << "it is not weir's";
  fs::remove(place);
  hook({"install"});
  hook({"uninstall"});
  EXPECT_FALSE(fs::exists(place));
}

TEST_F(Hook, KeepsAPushBackWhoseEngineEndsWithAnErrorAndShowsItsWords) {
  hook({"install", "--build"});
  const Ended pushed = push("origin " + sha(6) + ":main", "BREAK=1");
  EXPECT_NE(pushed.exit_code, 0) << pushed.out;
  EXPECT_THAT(pushed.out, HasSubstr("exited with code 9"));
  EXPECT_THAT(pushed.out, HasSubstr("out of registers"));
  EXPECT_EQ(remote("main"), sha(1));
}

TEST_F(Hook, EndsAnEngineThatHangsWhenTheTimeIsOver) {
  hook({"install", "--build", "--time-limit", "20s"});  // in which any machine comes to the engine
  const Ended pushed = push("origin " + sha(6) + ":main", "HANG=1");
  EXPECT_EQ(pushed.exit_code, 0) << pushed.out;
  EXPECT_THAT(pushed.out, HasSubstr("not judged: mine/m/metal/decode: it was not done within what "
                                    "was left of the time"));
}

// Both ask for the tree of a commit by what builds it.
TEST_F(Hook, FindsWhatAGateBuiltForTwoEnginesOfOneBuild) {
  std::string config = slurp(repo() / "weir.yaml");
  const std::size_t engine = config.find("  mine:"), models = config.find("models:");
  std::string copy = config.substr(engine, models - engine);
  copy.replace(0, 7, "  other:");
  spill(repo() / "weir.yaml", config.insert(models, copy));
  git("checkout -q -f " + sha(6));
  ASSERT_EQ(std::system(("'" + (repo() / "build.sh").string() + "'").c_str()), 0);
  const Ended gate =
      weir(scratch_, {"gate", "-c", "repo/weir.yaml", "--counts-only", "--against", sha(1)}, env());
  EXPECT_EQ(gate.exit_code, 1) << gate.out << gate.err;
  hook({"install"});
  const Ended pushed = push("origin HEAD:main");
  EXPECT_NE(pushed.exit_code, 0);
  EXPECT_THAT(pushed.out, HasSubstr("2 of 2 cells judged by counts, 2 FAILED"));
}

// The count is in a repository of its own, of which a commit names another commit.
TEST_F(Hook, BuildsTheSubmodulesOfEachCommit) {
  const std::string allowed =
      "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always";
  const auto in_library = [&](const std::string& arguments) { git("-C ../library " + arguments); };
  git("init -q -b main ../library");
  for (const char* dispatches : {"65", "66"}) {
    spill(scratch_ / "library/version.h",
          std::string("#define DISPATCHES ") + dispatches + "\n#define MICROSECONDS 10000\n");
    in_library("add version.h");
    in_library(std::string("commit -q -m with-") + dispatches);
    in_library(std::string("tag v") + dispatches);
  }
  git("checkout -q -f -b submodules " + sha(1));
  spill(repo() / "build.sh",
        "#!/bin/sh\ncd \"$(dirname \"$0\")\" && cc -Ilibrary -o engine engine.c\n");
  git("rm -q --cached version.h");
  fs::remove(repo() / "version.h");
  git("-c protocol.file.allow=always submodule --quiet add '" + (scratch_ / "library").string() +
      "' library");
  const auto commit_with = [&](const std::string& tag) {
    git("-C library checkout -q " + tag);
    git("add build.sh library");
    git("commit -q --allow-empty -m library-" + tag);
  };
  commit_with("v65");
  git("tag base");
  hook({"install", "--build", "--against", "base"});
  commit_with("v65");
  const Ended good = push("origin HEAD:refs/heads/topic", allowed);
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_THAT(good.out, HasSubstr("1 of 1 cells judged by counts, none broke a limit"));
  commit_with("v66");
  const Ended bad = push("origin HEAD:refs/heads/topic", allowed);
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_THAT(bad.out, HasSubstr("65 → 66"));

  auto variables = env();
  variables["GIT_CONFIG_COUNT"] = "1";
  variables["GIT_CONFIG_KEY_0"] = "protocol.file.allow";
  variables["GIT_CONFIG_VALUE_0"] = "always";
  commit_with("v66");
  git("rev-parse HEAD~1 > '" + (scratch_ / "culprit").string() + "'");
  const Ended bisected = weir(scratch_, words({"base", "HEAD"}), variables);
  ASSERT_EQ(bisected.exit_code, 0) << bisected.err;
  EXPECT_EQ(json_of(bisected)["first_bad"].get<std::string>() + "\n", slurp(scratch_ / "culprit"));
}

TEST_F(Hook, LetsAPushPassWhereWeirIsBrokenOrTimeIsShort) {
  hook({"install", "--build"});
  EXPECT_EQ(push("origin " + sha(2) + ":main").exit_code, 0);  // now it knows how long that takes
  hook({"install", "--build", "--time-limit", "1ms"});
  const Ended brief = push("origin " + sha(6) + ":main");
  EXPECT_EQ(brief.exit_code, 0) << brief.out;
  EXPECT_THAT(brief.out, HasSubstr("not judged: mine/m/metal/decode: takes about"));
  spill(repo() / "weir.yaml", "no: [yaml");
  const Ended broken = push("-f origin " + sha(5) + ":main");
  EXPECT_EQ(broken.exit_code, 0) << broken.out;
  EXPECT_THAT(broken.out, HasSubstr("nothing was judged"));
}

}  // namespace hook_test
}  // namespace weir::e2e
