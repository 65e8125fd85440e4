// Tests reading the files of a commit without checking it out.
#include "gate/source/tree_files.hpp"

#include "scene.hpp"

namespace weir::source {
namespace tree_files_test {

class CommitFiles : public Scene {
 protected:
  void SetUp() override {
    Scene::SetUp();
    write(in("perf/weir.yaml"), "version: 1\n");
    write(in("perf/baselines/e/m/b/p/c.json"), "{}");
    write(in("perf/baselines/e/m/b/p/d.json"), "[1]");
    commit_ = commit("first");
    // The file in the work tree has other contents now.
    write(in("perf/weir.yaml"), "version: 2\n");
    (void)files_.remove_tree(in("perf/baselines/e/m/b/p"));
    effects_ = std::make_unique<Effects>(effects());
    git_ = std::make_unique<Git>(*Git::open(*effects_, in("perf")));
  }
  // Commits a tree with this link and returns the commit.
  std::string committed(const std::vector<std::string>& link_and_name) {
    (void)files_.remove_tree(in(link_and_name[1]));
    EXPECT_TRUE(files_.make_dirs(sys::folder_of(in(link_and_name[1]))).has_value());
    EXPECT_TRUE(files_.link(link_and_name[0], in(link_and_name[1])).has_value());
    return commit("with a link");
  }

  std::string commit_;
  std::unique_ptr<Effects> effects_;
  std::unique_ptr<Git> git_;
};

TEST_F(CommitFiles, AreThoseOfTheCommitWhateverTheWorkTreeHolds) {
  EXPECT_EQ(file_of(*git_, commit_, "perf/weir.yaml", 100).value(), "version: 1\n");
  EXPECT_EQ(file_of(*git_, commit_, "perf/other.yaml", 100).value(), std::nullopt);
  const auto tree = TreeFiles::open(*git_, commit_, "perf/baselines", "baselines");
  ASSERT_TRUE(tree) << tree.error().message;
  const sys::Files& files = **tree;
  EXPECT_EQ(files.kind("baselines/e/m"), sys::Kind::folder);
  EXPECT_EQ(files.kind("baselines/e/x"), sys::Kind::absent);
  EXPECT_EQ(files.list("baselines/e/m/b/p").value(),
            (std::vector<std::string>{"c.json", "d.json"}));
  EXPECT_EQ(files.read("baselines/e/m/b/p/d.json", 100).value(), "[1]");
  EXPECT_EQ(files.read("baselines/e/m/b/p/d.json", 2).error().code, Code::data);
  EXPECT_FALSE(files.read("baselines/e/m/b/p/e.json", 100));
  EXPECT_EQ(
      git_->changed_files(commit_, "perf/baselines").value(),
      (std::vector<std::string>{"perf/baselines/e/m/b/p/c.json", "perf/baselines/e/m/b/p/d.json"}));
}

TEST_F(CommitFiles, HoldNothingWhereTheCommitHasNoSuchFolder) {
  const auto tree = TreeFiles::open(*git_, commit_, "perf/none", "baselines");
  ASSERT_TRUE(tree);
  EXPECT_TRUE((*tree)->empty());
  EXPECT_EQ((*tree)->kind("baselines"), sys::Kind::absent);
}

TEST_F(CommitFiles, AreRefusedWhereALinkOrASubmoduleStandsAmongThem) {
  const std::string of_file = committed({"/etc/passwd", "perf/baselines/e/m/b/p/c.json"});
  const auto tree = TreeFiles::open(*git_, of_file, "perf/baselines", "baselines");
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().code, Code::config);
  EXPECT_NE(tree.error().message.find("symbolic link"), std::string::npos) << tree.error().message;

  const std::string of_config = committed({"/etc/passwd", "perf/weir.yaml"});
  EXPECT_EQ(file_of(*git_, of_config, "perf/weir.yaml", 100).error().code, Code::config);

  const std::string of_folder = committed({"/etc", "perf"});
  EXPECT_EQ(file_of(*git_, of_folder, "perf/weir.yaml", 100).error().code, Code::config);
  EXPECT_FALSE(TreeFiles::open(*git_, of_folder, "perf/baselines", "baselines"));

  (void)files_.remove(in("perf"));
  git({"update-index", "--add", "--cacheinfo", "160000," + commit_ + ",baselines/sub"});
  git({"commit", "--quiet", "-m", "a submodule"});
  const auto with_submodule =
      TreeFiles::open(*git_, git({"rev-parse", "HEAD"}), "baselines", "baselines");
  ASSERT_FALSE(with_submodule);
  EXPECT_NE(with_submodule.error().message.find("submodule"), std::string::npos);
}

TEST_F(CommitFiles, AreNeverTakenForOptionsOrPatterns) {
  write(in("-x/a*b"), "odd");
  write(in("-x/aXb"), "other");
  const std::string odd = commit("odd names");
  EXPECT_EQ(file_of(*git_, odd, "-x/a*b", 100).value(), "odd");
  EXPECT_EQ(file_of(*git_, odd, "-x/a?b", 100).value(), std::nullopt);
  EXPECT_EQ(file_of(*git_, odd, "../weir.yaml", 100).value_or("refused").value_or("none"),
            "refused");
}

TEST_F(CommitFiles, KeepWhatIsWrittenForACommitToCome) {
  const auto tree = TreeFiles::open(*git_, commit_, "perf/baselines", "baselines");
  ASSERT_TRUE(tree);
  ASSERT_TRUE((*tree)->write_atomic("baselines/e/m/b/q/c.json", "new"));
  ASSERT_TRUE((*tree)->remove("baselines/e/m/b/p/c.json"));
  EXPECT_EQ((*tree)->read("baselines/e/m/b/q/c.json", 100).value(), "new");
  EXPECT_EQ((*tree)->list("baselines/e/m/b").value(), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ((*tree)->list("baselines/e/m/b/p").value(), (std::vector<std::string>{"d.json"}));
  const auto changes = (*tree)->changes();
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes.at("perf/baselines/e/m/b/q/c.json"), "new");
  EXPECT_EQ(changes.at("perf/baselines/e/m/b/p/c.json"), std::nullopt);
  EXPECT_FALSE((*tree)->write_atomic("elsewhere/x", "no"));
}

TEST_F(CommitFiles, AreCommittedOnlyWhereTheBranchIsWhereItWasSeen) {
  const auto first = git_->commit_to("data", {{}, {}, {{"a/b", "1"}}, "first"});
  ASSERT_TRUE(first && *first) << (first ? "somebody was faster" : first.error().message);
  // A writer that saw no branch there is too late.
  EXPECT_EQ(git_->commit_to("data", {{}, {}, {{"a/b", "2"}}, "late"}).value(), std::nullopt);
  const auto second =
      git_->commit_to("data", {*first, *first, {{"a/c", "3"}, {"a/b", {}}}, "second"});
  ASSERT_TRUE(second && *second);
  EXPECT_EQ(git_->commit_to("data", {*first, *first, {{"a/d", "4"}}, "late"}).value(),
            std::nullopt);
  EXPECT_EQ(git({"ls-tree", "-r", "--name-only", "data"}), "a/c");
  EXPECT_EQ(git({"show", "data:a/c"}), "3");
  EXPECT_EQ(git({"rev-parse", "data~1"}), **first);
  EXPECT_FALSE(git_->branch_tip("../x"));
  EXPECT_FALSE(git_->branch_tip("-x"));
  EXPECT_EQ(git_->branch_tip("data").value(), **second);
  EXPECT_EQ(git_->checked_out_in("data").value(), "");
  EXPECT_EQ(git_->checked_out_in("main").value(), git_->top());
}

}  // namespace tree_files_test
}  // namespace weir::source
