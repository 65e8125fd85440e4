// Tests the times and the order of commits.
#include <gmock/gmock.h>

#include "scene.hpp"

namespace weir::source {
namespace git_history_test {

class CommitOrderInGit : public Scene {
 protected:
  void SetUp() override {
    Scene::SetUp();
    effects_ = std::make_unique<Effects>(effects());
  }
  Git git_here(const std::string& folder = "") {
    return *Git::open(*effects_, folder.empty() ? repository_ : folder);
  }
  std::unique_ptr<Effects> effects_;
};

TEST_F(CommitOrderInGit, OfARepositoryWithoutACommitIsEmpty) {
  const Git git = git_here();
  EXPECT_EQ(git.head().value(), std::nullopt);
  EXPECT_TRUE(git.all_commits().value().empty());
}

TEST_F(CommitOrderInGit, PutsParentsFirstAndKeepsLinesOfHistoryTogether) {
  const std::string root = commit("root");
  git({"checkout", "-q", "-b", "topic"});
  const std::string t1 = commit("t1"), t2 = commit("t2");
  git({"checkout", "-q", "main"});
  const std::string m1 = commit("m1");
  git({"merge", "-q", "--no-ff", "-m", "merge", "topic"});
  const std::string merge = git({"rev-parse", "HEAD"});
  git({"checkout", "-q", "--detach"});
  const std::string loose = commit("on no branch");

  const auto commits = git_here().all_commits().value();
  ASSERT_EQ(commits.size(), 6U);
  const auto place = [&](const std::string& name) {
    return std::find(commits.begin(), commits.end(), name) - commits.begin();
  };
  EXPECT_EQ(place(root), 0);
  EXPECT_EQ(place(t2), place(t1) + 1);
  EXPECT_EQ(place(merge), 4);
  EXPECT_EQ(place(loose), 5);
  EXPECT_LT(place(m1), 4);
}

TEST_F(CommitOrderInGit, SaysWhatIsCheckedOutAndWhenItWasMade) {
  const std::string root = commit("root");
  const auto head = git_here().head().value();
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->name, root);
  EXPECT_EQ(head->branch, "main");
  EXPECT_EQ(head->time, 1767225600);  // 2026-01-01T00:00:00Z, as the scene has it
  EXPECT_EQ(git_here().time_of(root.substr(0, 8)).value(), 1767225600);
  EXPECT_EQ(git_here().time_of("nothing-such").value(), std::nullopt);
  git({"checkout", "-q", "--detach"});
  EXPECT_EQ(git_here().head().value()->branch, std::nullopt);
}

TEST_F(CommitOrderInGit, NamesTheCommitsThatChangedAFolderAlongTheFirstParents) {
  write(in("perf/a.json"), "1");
  const std::string first = commit("one");
  commit("nothing");
  git({"checkout", "-q", "-b", "topic"});
  write(in("perf/a.json"), "2");
  commit("on a branch");
  git({"checkout", "-q", "main"});
  write(in("other"), "x");
  commit("elsewhere");
  git({"merge", "-q", "--no-ff", "-m", "merge", "topic"});
  const std::string merge = git({"rev-parse", "HEAD"});
  const auto names = [](const std::vector<CommitFacts>& commits) {
    std::vector<std::string> all;
    for (const CommitFacts& commit : commits) all.push_back(commit.name);
    return all;
  };
  const Git git = git_here();
  EXPECT_THAT(names(git.commits_that_changed("perf").value()), testing::ElementsAre(first, merge));
  EXPECT_TRUE(git.commits_that_changed("nothing").value().empty());
  EXPECT_EQ(git.commits_that_changed("").value().size(), 3U);  // one commit changed nothing
  // A name is taken literally: no pattern, no option.
  EXPECT_TRUE(git.commits_that_changed("p*").value().empty());
}

}  // namespace git_history_test
}  // namespace weir::source
