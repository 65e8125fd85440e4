// Tests which repository a folder belongs to, and that nothing of its files runs in weir's git.
#include "gate/source/git.hpp"

#include "scene.hpp"

namespace weir::source {
namespace folders_test {

class Folders : public Scene {
 protected:
  void SetUp() override {
    Scene::SetUp();
    write(in("weir.yaml"), "version: 1\n");
    head_ = commit("first");
    effects_ = std::make_unique<Effects>(effects());
  }
  // Returns "" or the error's message.
  [[nodiscard]] std::string open(const std::string& folder) const {
    const auto repository = Git::open(*effects_, folder);
    return repository ? "" : repository.error().message;
  }
  // Makes a folder with the files of a repository, all of which a commit may hold.
  std::string make_repository_of_files(const std::string& name) {
    git({"init", "--quiet", "--bare", in(name)});
    for (const char* extra : {"branches", "description", "hooks", "info"}) {
      (void)files_.remove_tree(in(name) + "/" + extra);
    }
    return in(name);
  }

  std::string head_;
  std::unique_ptr<Effects> effects_;
};

TEST_F(Folders, ThatLookLikeARepositoryAreNotAsked) {
  const std::string folder = make_repository_of_files("sub");
  ASSERT_TRUE(files_.make_dirs(folder + "/deeper").has_value());
  const std::string ran = at("ran");
  write_program(at("program"), "touch " + ran + "\ncat\n");
  const std::string commands =
      "[filter \"x\"]\nclean = " + at("program") + "\n[core]\nfsmonitor = " + at("program") + "\n";
  for (const std::string& config :
       {"[core]\nrepositoryformatversion = 0\nbare = true\n" + commands,
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\n" + commands,
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = " + folder + "\n" +
            commands}) {
    write(folder + "/config", config);
    for (const std::string& place : {folder, folder + "/deeper"}) {
      expect_holds(open(place), folder);
      expect_holds(open(place), "looks like a repository");
    }
  }
  EXPECT_FALSE(files_.exists(ran));
  (void)files_.remove_tree(folder + "/objects");
  (void)files_.remove_tree(folder + "/refs");
  write(folder + "/commondir", in(".git") + "\n");
  expect_holds(open(folder), "looks like a repository");
  EXPECT_EQ(open(repository_), "") << "no matter to the folder above";
}

TEST_F(Folders, MustLieInTheWorkTreeThatTheirRepositorySays) {
  make(at("other"));
  git({"config", "core.worktree", at("other")});
  expect_holds(open(repository_), "work tree");
}

TEST_F(Folders, ARepositoryWhoseSettingsAFileOfTheWorkTreeMakesIsRefused) {
  write(in("shared.config"), "[user]\nname = B\n");
  EXPECT_EQ(open(repository_), "");
  git({"config", "include.path", "../shared.config"});
  expect_holds(open(repository_), "shared.config");
  git({"config", "--unset", "include.path"});
  ASSERT_TRUE(files_.link(in("shared.config"), at("link")).has_value());
  {
    const Variable global("GIT_CONFIG_GLOBAL", at("link"));
    expect_holds(open(repository_), "shared.config");
  }
  write(at("own.config"), "[user]\nname = B\n");
  git({"config", "include.path", at("own.config")});
  EXPECT_EQ(open(repository_), "") << "a file elsewhere is the user's";
}

TEST_F(Folders, NoProgramRunsOnTheContentOfFiles) {
  const std::string ran = at("ran");
  write_program(at("program"), "touch " + ran + "\ncat\n");
  for (const char* key : {"filter.x.clean", "filter.x.smudge", "filter.x.process",
                          "diff.x.textconv", "diff.x.command", "diff.external", "core.fsmonitor"}) {
    git({"config", key, at("program")});
  }
  git({"config", "filter.x.required", "true"});
  write(in(".gitattributes"), "* filter=x diff=x\n");
  write(in("weir.yaml"), "version: 2\n");
  const Variable external("GIT_EXTERNAL_DIFF", at("program"));
  const auto repository = Git::open(*effects_, repository_);
  ASSERT_TRUE(repository) << repository.error().message;
  EXPECT_EQ(repository->changed_files(head_, "").value(),
            (std::vector<std::string>{".gitattributes", "weir.yaml"}));
  ASSERT_TRUE(Git::diff(*effects_, "a\n", "b\n"));
  EXPECT_FALSE(files_.exists(ran));
}

// A build step of a pull request could name one in .git/config and .git/info/attributes.
TEST_F(Folders, ABaseIsCheckedOutWithoutFiltersButGitLfss) {
  write_program(at("program"), "sed s/1/2/\n");
  write(in("weir.yaml"), "version: 1\n");
  commit("base", repository_);
  const std::string base = git({"rev-parse", "HEAD"});
  write(in(".git/info/attributes"), "weir.yaml filter=x\n");
  for (const char* name : {"x", "lfs"}) {
    git({"config", fmt::format("filter.{}.smudge", name), at("program")});
    write(in(".git/info/attributes"), fmt::format("weir.yaml filter={}\n", name));
    const auto repository = Git::open(*effects_, repository_);
    ASSERT_TRUE(repository) << repository.error().message;
    const std::string tree = at(fmt::format("base-{}", name));
    ASSERT_TRUE(repository->add_worktree(tree, base.substr(0, 40)));
    EXPECT_EQ(files_.read(tree + "/weir.yaml", 100).value(), "version: 1\n") << name;
  }
}

TEST_F(Folders, OfLinkedWorkTreesAndSubmodulesAreTheirOwn) {
  git({"worktree", "add", "--quiet", at("linked"), "HEAD"});
  make(at("library"));
  write(at("library/weir.yaml"), "version: 1\n");
  commit("library", at("library"));
  git({"-c", "protocol.file.allow=always", "submodule", "--quiet", "add", at("library"), "lib"});
  git({"init", "--quiet", "--separate-git-dir", at("store"), at("separate")}, root_);
  for (const std::string& folder : {at("linked"), in("lib"), at("separate")}) {
    const auto repository = Git::open(*effects_, folder);
    ASSERT_TRUE(repository) << repository.error().message;
    EXPECT_EQ(repository->top(), folder);
  }
  EXPECT_EQ(Git::open(*effects_, in("lib"))->superproject().value(), repository_);
  EXPECT_EQ(Git::open(*effects_, at("linked"))->superproject().value(), "");
}

}  // namespace folders_test
}  // namespace weir::source
