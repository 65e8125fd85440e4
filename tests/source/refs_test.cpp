// Tests that a name means one ref, or is refused: whoever may push can make a tag of any name.
#include "gate/source/tree_files.hpp"

#include "scene.hpp"

namespace weir::source {
namespace refs_test {

class Refs : public Scene {
 protected:
  void SetUp() override {
    Scene::SetUp();
    write(in("weir.yaml"), "version: 1\n");
    first_ = commit("first");
    write(in("weir.yaml"), "version: 2\n");
    second_ = commit("second");
    effects_ = std::make_unique<Effects>(effects());
    git({"remote", "add", "origin", at("elsewhere")});
  }
  void set_ref(const std::string& name, const std::string& commit) {
    git({"update-ref", name, commit});
  }
  // Returns the commit, "none", or the error's message.
  [[nodiscard]] std::string resolve(const std::string& name) const {
    const auto repository = Git::open(*effects_, repository_);
    if (!repository) return "error: " + repository.error().message;
    const auto commit = repository->resolve_commit(name);
    if (!commit) return "error: " + commit.error().message;
    return commit->value_or("none");
  }

  std::string first_, second_;
  std::unique_ptr<Effects> effects_;
};

TEST_F(Refs, ATagNamedLikeABranchOfTheRemoteIsRefusedByName) {
  set_ref("refs/remotes/origin/main", first_);
  EXPECT_EQ(resolve("origin/main"), first_);
  set_ref("refs/tags/origin/main", second_);
  for (const bool packed : {false, true}) {
    if (packed) git({"pack-refs", "--all"});
    for (const char* name : {"origin/main", "origin/main~0", "origin/main^{commit}"}) {
      expect_holds(resolve(name), "refs/tags/origin/main and refs/remotes/origin/main");
      expect_holds(resolve(name), "write refs/remotes/origin/main");
    }
    EXPECT_EQ(resolve("refs/remotes/origin/main"), first_);
    EXPECT_EQ(resolve("refs/tags/origin/main"), second_);
  }
  const auto base = prepare("origin/main");
  ASSERT_FALSE(base);
  EXPECT_EQ(base.error().code, Code::config);
  expect_holds(base.error().message, "--against origin/main: ");
  expect_holds(base.error().message, "write refs/remotes/origin/main");
  EXPECT_FALSE(files_.exists(at("cache/trees"))) << "nothing was checked out";
}

TEST_F(Refs, ANameOfMoreThanOneRefIsRefusedWhateverTheRefs) {
  const std::string short_id = first_.substr(0, 9);
  const struct {
    std::string name;
    std::vector<std::string> refs;
  } cases[] = {
      {"v1", {"refs/tags/v1", "refs/heads/v1"}},
      {"heads/main", {"refs/heads/main", "refs/tags/heads/main"}},
      {"tags/v1", {"refs/tags/v1", "refs/heads/tags/v1"}},
      {"remotes/origin/a", {"refs/remotes/origin/a", "refs/heads/remotes/origin/a"}},
      {"origin/a", {"refs/heads/origin/a", "refs/remotes/origin/a"}},
      {"origin", {"refs/tags/origin", "refs/remotes/origin/HEAD"}},
      {"x/a", {"refs/x/a", "refs/tags/x/a"}},
      {short_id, {"refs/tags/" + short_id}},
      {short_id, {"refs/heads/" + short_id}},
  };
  for (const auto& c : cases) {
    for (const std::string& ref : c.refs) set_ref(ref, second_);
    const std::string result = resolve(c.name);
    for (const std::string& ref : c.refs) expect_holds(result, ref);
    expect_holds(result, "ambiguous");
    for (const std::string& ref : c.refs) {
      if (ref != "refs/heads/main") git({"update-ref", "-d", ref});
    }
  }
}

TEST_F(Refs, AFullNameIsThatRefOrNone) {
  for (const char* ref : {"refs/tags/refs/remotes/origin/main", "refs/heads/refs/heads/gone"}) {
    set_ref(ref, second_);
  }
  EXPECT_EQ(resolve("refs/remotes/origin/main"), "none");
  EXPECT_EQ(resolve("refs/heads/gone"), "none");
}

TEST_F(Refs, ANameOfARemotesBranchIsNoTagAndNoLocalBranch) {
  set_ref("refs/tags/origin/main", second_);
  expect_holds(resolve("origin/main"), "refs/tags/origin/main");
  git({"update-ref", "-d", "refs/tags/origin/main"});
  set_ref("refs/heads/origin/main", second_);
  expect_holds(resolve("origin/main"), "refs/heads/origin/main");
  EXPECT_EQ(resolve("refs/heads/origin/main"), second_);
  set_ref("refs/heads/feature/main", first_);
  EXPECT_EQ(resolve("feature/main"), first_) << "no remote is called so";
}

TEST_F(Refs, AnIdIsThatCommitWhateverIsNamedLikeIt) {
  const std::string unknown(40, 'a'), long_id(64, 'b');
  for (const char* folder : {"refs/tags/", "refs/heads/"}) {
    for (const std::string& id : {first_, unknown, long_id}) set_ref(folder + id, second_);
  }
  EXPECT_EQ(resolve(first_), first_);
  EXPECT_EQ(resolve(unknown), "none");
  EXPECT_EQ(resolve(long_id), "none");
  set_ref("refs/tags/HEAD", first_);
  EXPECT_EQ(resolve("HEAD"), second_);
  EXPECT_EQ(resolve("HEAD~1"), first_);
}

TEST_F(Refs, APlainNameStillMeansItsCommit) {
  git({"tag", "-a", "v1.2", "-m", "a tag of its own", first_});
  git({"tag", "cafe", first_});
  set_ref("refs/remotes/origin/main", first_);
  set_ref("refs/remotes/origin/topic/a", first_);
  git({"symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"});
  git({"config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"});
  git({"branch", "--quiet", "--set-upstream-to=origin/main", "main"});
  git({"branch", "older", first_});
  write(in(".git/FETCH_HEAD"), first_ + "\t\tbranch 'main' of elsewhere\n");
  for (const bool packed : {false, true}) {
    if (packed) git({"pack-refs", "--all"});
    for (const char* name : {"v1.2",
                             "tags/v1.2",
                             "refs/tags/v1.2",
                             "v1.2^{}",
                             "cafe",
                             "older",
                             "main~1",
                             "main^",
                             "HEAD~1",
                             "HEAD^1",
                             "@~1",
                             "origin/main",
                             "origin",
                             "origin/HEAD",
                             "origin/topic/a",
                             "refs/remotes/origin/main",
                             "remotes/origin/main",
                             "@{u}",
                             "@{upstream}",
                             "main@{u}",
                             "HEAD@{upstream}",
                             "FETCH_HEAD"}) {
      EXPECT_EQ(resolve(name), first_) << name;
    }
    for (const char* name : {"main", "heads/main", "refs/heads/main", "HEAD", "@", "HEAD^0"}) {
      EXPECT_EQ(resolve(name), second_) << name;
    }
  }
  EXPECT_EQ(resolve(first_), first_);
  EXPECT_EQ(resolve(first_.substr(0, 8)), first_);
  EXPECT_EQ(resolve(second_.substr(0, 8) + "~1"), first_);
}

TEST_F(Refs, ANameThatGitWouldInterpretIsNone) {
  set_ref("refs/tags/FETCH_HEAD", second_);
  expect_holds(resolve("FETCH_HEAD"), "refs/tags/FETCH_HEAD");
  for (const char* name : {"main@{1}", "HEAD@{0}", "@{-1}", "main@{yesterday}", "main@{now}"}) {
    expect_holds(resolve(name), "write the commit's id");
  }
  const std::string described = "gone-1-g" + first_.substr(0, 8);
  for (const std::string& name :
       {std::string(":/first"), std::string("HEAD^{/first}"), std::string("main:weir.yaml"),
        std::string("HEAD~1..HEAD"), std::string("^main"), std::string("main "),
        std::string("ma*n"), std::string("--all"), std::string("-main"), std::string(""),
        std::string("~1"), std::string("nothing"), described}) {
    EXPECT_EQ(resolve(name), "none") << name;
  }
}

TEST_F(Refs, AReplacedCommitIsStillItself) {
  git({"replace", first_, second_});
  const auto repository = Git::open(*effects_, repository_);
  ASSERT_TRUE(repository) << repository.error().message;
  EXPECT_EQ(file_of(*repository, first_, "weir.yaml", 100).value(), "version: 1\n");
}

TEST_F(Refs, AFolderNamedLikeARefIsRefusedAndLikeAFullNameIsNone) {
  set_ref("refs/remotes/origin/main", first_);
  for (const std::string& folder : {std::string("main"), std::string("origin/main"),
                                    std::string("refs/remotes/origin/main"), first_}) {
    ASSERT_TRUE(files_.make_dirs(in(folder)).has_value());
  }
  for (const char* name : {"main", "origin/main"}) {
    expect_holds(base_text(name), std::string("write ./") + name);
  }
  EXPECT_EQ(base_text("refs/remotes/origin/main"), first_);
  EXPECT_EQ(base_text(first_), first_);
  for (const std::string& name : {std::string("./main"), in("main")}) {
    const auto base = prepare(name);
    ASSERT_TRUE(base) << base.error().message;
    EXPECT_EQ(base->root, in("main"));
  }
  set_ref("refs/tags/origin/gone", second_);
  ASSERT_TRUE(files_.make_dirs(in("origin/gone")).has_value());
  expect_holds(base_text("origin/gone"), "error: ");
  git({"update-ref", "-d", "refs/tags/origin/gone"});
  expect_holds(base_text("origin/gone"), "error: ");
}

}  // namespace refs_test
}  // namespace weir::source
