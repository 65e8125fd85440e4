// Tests which commit of a real repository is chosen as the base.
#include "gate/source/base.hpp"

#include "scene.hpp"

namespace weir::source {
namespace choose_test {

class Bases : public Scene {
 protected:
  // main:    first - second - third
  // feature:     \- own            (HEAD)
  void part() {
    first_ = commit("first");
    git({"checkout", "--quiet", "-b", "feature"});
    write(in("own"), "own");
    own_ = commit("own");
    git({"checkout", "--quiet", "main"});
    write(in("second"), "second");
    second_ = commit("second");
    write(in("third"), "third");
    third_ = commit("third");
    git({"checkout", "--quiet", "feature"});
  }
  // Merges feature into `onto` as GitHub does, and detaches HEAD there.
  std::string merge(const std::string& onto) {
    git({"checkout", "--quiet", "--detach", onto});
    git({"merge", "--quiet", "--no-ff", "-m", "Merge feature into main", "feature"});
    return git({"rev-parse", "HEAD"});
  }
  std::string first_, own_, second_, third_;
};

TEST_F(Bases, AreTheMergeBaseWhereBranchesHaveParted) {
  part();
  git({"tag", "-a", "v1", "-m", "a tag of its own", third_});
  for (const std::string& spec : {std::string("main"), std::string("refs/heads/main"), third_,
                                  third_.substr(0, 10), std::string("v1"), std::string("main~1")}) {
    const auto base = prepare(spec);
    ASSERT_TRUE(base) << base.error().message;
    EXPECT_EQ(base->commit, first_) << spec;
    EXPECT_EQ(base->words,
              "merge-base of HEAD and " + spec + ", " + first_.substr(0, 7) + " \"first\"");
    EXPECT_EQ(base->candidate_commit, own_);
    EXPECT_EQ(base->candidate_root, repository_);
    EXPECT_FALSE(base->candidate_dirty);
    EXPECT_FALSE(files_.exists(base->root + "/own"));
  }
  EXPECT_EQ(base_text("HEAD~1"), first_);
  git({"checkout", "--quiet", "--detach", "HEAD"});
  EXPECT_EQ(base_text("main"), first_) << "a detached HEAD";
}

TEST_F(Bases, AreHeadItselfForChangesThatAreNotCommitted) {
  write(in("file"), "one");
  const std::string head = commit("first");
  auto base = prepare("HEAD");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->commit, head);
  EXPECT_EQ(base->words, "HEAD, " + head.substr(0, 7) + " \"first\"");
  ASSERT_FALSE(base->notes.empty());
  expect_holds(base->notes.front(), "compared with itself (A/A)");

  write(in("new"), "not known to git");
  EXPECT_FALSE(prepare("HEAD")->candidate_dirty) << "as weir-out/ is";
  write(in("file"), "two");
  base = prepare("main");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->commit, head);
  EXPECT_TRUE(base->candidate_dirty);
  EXPECT_EQ(*files_.read(base->root + "/file", 10), "one");
  for (const std::string& note : base->notes) EXPECT_EQ(note.find("A/A"), std::string::npos);
}

TEST_F(Bases, SayWhenHeadHasNothingThatTheRefHasNot) {
  part();
  git({"checkout", "--quiet", "--detach", first_});
  const auto base = prepare("main");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->commit, first_);
  ASSERT_FALSE(base->notes.empty());
  expect_holds(base->notes.front(), "HEAD is contained in main");
}

TEST_F(Bases, AreTheFirstParentOfGitHubsMergeCommit) {
  part();
  git({"tag", "old", first_});
  const std::string merged = merge(second_);  // main has moved on to third_
  const auto event = [&](const std::string& sha) {
    write(at("event.json"), R"({"pull_request": {"base": {"sha": ")" + sha + R"("}}})");
  };
  event(first_);  // as in GitHub's event: where the branch began
  struct Case {
    const char* why;
    std::string ref, sha, spec, base;
  };
  const Case cases[] = {
      {"the branch by name", "refs/pull/7/merge", merged, "main", second_},
      {"not fetched, and not needed", "refs/pull/7/merge", merged, "origin/main", second_},
      {"the event's base.sha is never believed", "refs/pull/7/merge", merged, first_, second_},
      {"the same, by another name", "refs/pull/7/merge", merged, "old", second_},
      {"an own choice stays", "refs/pull/7/merge", merged, own_, own_},
      {"the merge-base is the same here", "", "", "main", second_},
      {"not a pull request", "refs/heads/main", merged, "old", first_},
      {"something else was checked out", "refs/pull/7/merge", own_, "old", first_},
  };
  for (const Case& c : cases) {
    const Variable ref("GITHUB_REF", c.ref), sha("GITHUB_SHA", c.sha);
    const Variable branch("GITHUB_BASE_REF", "main"), path("GITHUB_EVENT_PATH", at("event.json"));
    EXPECT_EQ(base_text(c.spec), c.base) << c.why;
  }
  const Variable ref("GITHUB_REF", "refs/pull/7/merge"), branch("GITHUB_BASE_REF", "main");
  const auto base = prepare("main");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->words,
            "first parent of GitHub's merge commit, " + second_.substr(0, 7) + " \"second\"");
  ASSERT_FALSE(base->notes.empty());
  EXPECT_EQ(base->notes.front(), "main is " + third_.substr(0, 7) +
                                     " here; the merge commit was made onto " +
                                     second_.substr(0, 7));
}

TEST_F(Bases, AreNotTheFirstParentOfAMergeThatTheBranchItselfMade) {
  part();
  git({"merge", "--quiet", "--no-ff", "-m", "Merge main into feature", second_});
  const std::string head = git({"rev-parse", "HEAD"});
  // The job has checked out the head of the branch; GITHUB_SHA is the merge commit.
  const Variable ref("GITHUB_REF", "refs/pull/7/merge"), branch("GITHUB_BASE_REF", "main");
  const Variable sha("GITHUB_SHA", third_);
  EXPECT_EQ(base_text("main"), second_);
}

// GITHUB_SHA is the author's own merge, as where a workflow names it so.
TEST_F(Bases, AreNoParentThatIsNotOfTheBranch) {
  part();
  git({"merge", "--quiet", "--no-ff", "-m", "Merge main into feature", second_});
  const Variable ref("GITHUB_REF", "refs/pull/7/merge"), branch("GITHUB_BASE_REF", "main");
  const Variable sha("GITHUB_SHA", git({"rev-parse", "HEAD"}));
  EXPECT_EQ(base_text("main"), second_);
}

TEST_F(Bases, AskForHistoryWhereItIsCutOff) {
  part();
  const std::string merged = merge(third_);
  git({"branch", "merged", merged});
  const std::string url = "file://" + repository_;
  git({"clone", "--quiet", "--depth", "1", "--branch", "merged", url, at("clone")}, root_);
  const std::string clone = at("clone");
  for (const char* spec : {"main", "origin/main"}) {
    const auto base = prepare(spec, {}, clone);
    ASSERT_FALSE(base);
    EXPECT_EQ(base.error().code, Code::config);
    expect_holds(base.error().message, "fetch-depth: 0");
    expect_holds(base.error().message, "git fetch --unshallow");
  }
  git({"fetch", "--quiet", "--depth", "1", "origin", "main:refs/remotes/origin/main"}, clone);
  {
    // Both ends are there, but not the commits between them.
    const Variable ref("GITHUB_REF", "refs/pull/7/merge"), branch("GITHUB_BASE_REF", "main");
    const auto base = prepare("origin/main", {}, clone);
    ASSERT_FALSE(base);
    expect_holds(base.error().message, "no common ancestor of it and HEAD is known");
    expect_holds(base.error().message, "fetch-depth: 0");
  }
  git({"fetch", "--quiet", "--unshallow", "origin"}, clone);
  EXPECT_EQ(base_text("origin/main", clone), third_);
}

TEST_F(Bases, RefuseWhatNamesNoBase) {
  part();
  git({"checkout", "--quiet", "--orphan", "other"});
  const std::string stranger = commit("unrelated");
  git({"update-ref", "refs/remotes/origin/topic", first_});
  make(at("empty"));
  ASSERT_TRUE(files_.make_dirs(at("plain")).has_value());
  struct Case {
    std::string spec, folder;
    Code code;
    const char* says;
  };
  const Case cases[] = {
      {"main", "", Code::config, "HEAD and it have no common ancestor"},
      {"nothing", "", Code::config, "neither a folder nor a commit"},
      {"topic", "", Code::config, "did you mean origin/topic?"},
      {"main:second", "", Code::config, "neither a folder nor a commit"},
      {"main..other", "", Code::config, "neither a folder nor a commit"},
      {"main\nother", "", Code::config, "neither a folder nor a commit"},
      {"", "", Code::usage, "empty"},
      {"-x", "", Code::usage, "cannot begin with '-'"},
      {"--all", "", Code::usage, "cannot begin with '-'"},
      {"--output=/tmp/x", "", Code::usage, "cannot begin with '-'"},
      {"main", at("empty"), Code::config, "has no commit yet"},
      {"main", at("plain"), Code::config, "no git repository"},
  };
  for (const Case& c : cases) {
    const auto base = prepare(c.spec, {}, c.folder);
    ASSERT_FALSE(base) << c.spec;
    EXPECT_EQ(base.error().code, c.code) << c.spec;
    expect_holds(base.error().message, c.says);
  }
  EXPECT_FALSE(files_.exists(at("cache/trees"))) << "nothing was checked out";
}

TEST_F(Bases, TellOfMoreThanOneMergeBase) {
  part();
  git({"branch", "a", own_});
  git({"branch", "b", third_});
  git({"checkout", "--quiet", "a"});
  git({"merge", "--quiet", "--no-ff", "-m", "b into a", third_});
  git({"checkout", "--quiet", "b"});
  git({"merge", "--quiet", "--no-ff", "-m", "a into b", own_});
  const auto base = prepare("a");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_TRUE(base->commit == own_ || base->commit == third_);
  expect_holds(base->notes.front(), "there are 2 merge-bases");
  EXPECT_EQ(base->merge_bases, 2U);
}

TEST_F(Bases, ShowSubjectsWithoutWhatATerminalWouldObey) {
  commit("red \x1b[31m text \xff and " + std::string(100, 'x'));
  const auto base = prepare("HEAD");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->words.find('\x1b'), std::string::npos);
  expect_holds(base->words, "\"red  text ");
  expect_holds(base->words, "xxx…\"");
}

TEST_F(Bases, AreFoundWhateverTheNamesOfFoldersAndFilesAre) {
  repository_ = at("a folder\nof \"two\" lines");
  make(repository_);
  write(in("a file\nname"), "x");
  const std::string head = commit("first");
  const auto base = prepare("HEAD");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->commit, head);
  EXPECT_EQ(base->candidate_root, repository_);
  EXPECT_TRUE(files_.exists(base->root + "/a file\nname"));
}

TEST_F(Bases, AreThoseOfTheConfigsRepositoryAlsoInsideAHookOfAnother) {
  part();
  const std::string foreign = at("other");
  make(foreign);
  commit("elsewhere", foreign);
  const Variable folder("GIT_DIR", foreign + "/.git"), tree("GIT_WORK_TREE", foreign),
      index("GIT_INDEX_FILE", foreign + "/.git/index"), prefix("GIT_PREFIX", "x/");
  const auto base = prepare("main");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->commit, first_);
  EXPECT_EQ(base->candidate_root, repository_);
  EXPECT_TRUE(files_.exists(base->root + "/.git"));
}

TEST_F(Bases, StartNoHooksOfTheRepository) {
  part();
  write_program(in(".git/hooks/post-checkout"), "touch " + at("hook-ran") + "\n");
  ASSERT_TRUE(prepare("main"));
  EXPECT_FALSE(files_.exists(at("hook-ran")));
}

TEST_F(Bases, CanBeAFolderWithGitOrWithout) {
  part();
  git({"clone", "--quiet", repository_, at("old")}, root_);
  auto base = prepare("../old");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->kind, BaseTree::Kind::folder);
  EXPECT_EQ(base->root, at("old"));
  EXPECT_EQ(base->commit, own_);
  EXPECT_EQ(base->candidate_root, repository_);
  EXPECT_EQ(base->candidate_commit, own_);
  EXPECT_EQ(base->words, "folder ../old, at " + own_.substr(0, 7) + " \"own\"");

  ASSERT_TRUE(files_.make_dirs(at("plain/perf")).has_value());
  ASSERT_TRUE(files_.make_dirs(at("plain/before")).has_value());
  base = prepare("../before", {}, at("plain/perf"));
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->root, at("plain/before"));
  EXPECT_EQ(base->candidate_root, at("plain/perf"));
  EXPECT_EQ(base->commit, std::nullopt);
  EXPECT_EQ(base->words, "folder ../before");

  EXPECT_FALSE(files_.exists(at("cache"))) << "a folder needs no cache";
}

}  // namespace choose_test
}  // namespace weir::source
