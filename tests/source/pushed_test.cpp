// Tests how the lines that git gives a pre-push hook are read.
#include "gate/source/git.hpp"

#include "scene.hpp"

namespace weir::source {
namespace pushed_test {

const std::string k_one(40, 'a'), k_two(40, 'b'), k_none(40, '0');

TEST(PushedLines, SayWhatIsPushedWhere) {
  const auto all = parse_pushed("refs/heads/topic " + k_one + " refs/heads/main " + k_two + "\n" +
                                "(delete) " + k_none + " refs/heads/old " + k_two + "\n" +
                                "refs/tags/v1 " + k_one + " refs/tags/v1 " + k_none + "\n");
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3U);
  // The typed name may hold blanks: git push origin 'HEAD@{2 days ago}:refs/heads/x'.
  const auto typed = parse_pushed("HEAD@{2 days ago} " + k_one + " refs/heads/x " + k_none + "\n");
  ASSERT_TRUE(typed) << typed.error().message;
  EXPECT_EQ((*typed)[0].local_ref, "HEAD@{2 days ago}");
  EXPECT_EQ((*all)[0].commit, k_one);
  EXPECT_EQ((*all)[0].remote_ref, "refs/heads/main");
  EXPECT_FALSE((*all)[0].deletes());
  EXPECT_FALSE((*all)[0].is_new());
  EXPECT_TRUE((*all)[1].deletes());
  EXPECT_TRUE((*all)[2].is_new());
  EXPECT_TRUE(parse_pushed("")->empty());
}

TEST(PushedLines, AreNothingElse) {
  for (const std::string& text : std::vector<std::string>{
           "hello", "a b c d", "r " + k_one + " r", "r --option r " + k_one,
           "r " + k_one + " r " + k_one + " more", "r " + std::string(40, 'G') + " r " + k_one}) {
    EXPECT_FALSE(parse_pushed(text)) << text;
  }
}

class HooksFolder : public Scene {};

TEST_F(HooksFolder, IsWhereGitLooksForIt) {
  commit("first");
  git({"worktree", "add", "--quiet", at("beside")});
  const auto opened = effects();
  const auto folder = [&](const std::string& top) {
    const auto repository = Git::open(opened, top);
    return repository ? repository->hooks_folder().value_or("") : "";
  };
  EXPECT_EQ(folder(repository_), in(".git/hooks"));
  EXPECT_EQ(folder(at("beside")), in(".git/hooks"));
  git({"config", "core.hooksPath", "tools/hooks"});
  EXPECT_EQ(folder(repository_), in("tools/hooks"));
  EXPECT_EQ(folder(at("beside")), at("beside/tools/hooks"));
  git({"config", "core.hooksPath", "/elsewhere"});
  EXPECT_EQ(folder(repository_), "/elsewhere");
}

}  // namespace pushed_test
}  // namespace weir::source
