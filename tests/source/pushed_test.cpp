// Tests how the lines that git gives a pre-push hook are read.
#include "gate/source/git.hpp"

#include "scene.hpp"

namespace weir::source {
namespace pushed_test {

const std::string k_first(40, 'a'), k_second(40, 'b'), k_zero(40, '0');

TEST(PushedLines, SayWhatIsPushedWhere) {
  const auto all = parse_pushed("refs/heads/topic " + k_first + " refs/heads/main " + k_second +
                                "\n" + "(delete) " + k_zero + " refs/heads/old " + k_second + "\n" +
                                "refs/tags/v1 " + k_first + " refs/tags/v1 " + k_zero + "\n");
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3U);
  // The typed name may hold blanks: git push origin 'HEAD@{2 days ago}:refs/heads/x'.
  const auto typed =
      parse_pushed("HEAD@{2 days ago} " + k_first + " refs/heads/x " + k_zero + "\n");
  ASSERT_TRUE(typed) << typed.error().message;
  EXPECT_EQ((*typed)[0].local_ref, "HEAD@{2 days ago}");
  EXPECT_EQ((*all)[0].commit, k_first);
  EXPECT_EQ((*all)[0].remote_ref, "refs/heads/main");
  EXPECT_FALSE((*all)[0].deletes());
  EXPECT_FALSE((*all)[0].is_new());
  EXPECT_TRUE((*all)[1].deletes());
  EXPECT_TRUE((*all)[2].is_new());
  EXPECT_TRUE(parse_pushed("")->empty());
}

TEST(PushedLines, AreNothingElse) {
  for (const std::string& text : std::vector<std::string>{
           "hello", "a b c d", "r " + k_first + " r", "r --option r " + k_first,
           "r " + k_first + " r " + k_first + " more",
           "r " + std::string(40, 'G') + " r " + k_first}) {
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
