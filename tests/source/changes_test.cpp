// Tests which files differ between two commits, or between a commit and the work tree.
#include <filesystem>

#include <gmock/gmock.h>

#include "gate/source/lfs.hpp"
#include "gate/sys/digest.hpp"

#include "scene.hpp"

namespace weir::source {
namespace changes_test {

namespace fs = std::filesystem;
using testing::ElementsAre;

class Changes : public Scene {
 protected:
  // Lists "path BEFORE AFTER", objects as the names given to them in `names_`.
  std::vector<std::string> changes(const std::string& from,
                                   const std::optional<std::string>& to = std::nullopt) {
    const Effects git_effects = effects();
    const auto list = Git::open(git_effects, repository_)->changes_since(from, to);
    EXPECT_TRUE(list) << list.error().message;
    std::vector<std::string> lines;
    for (const Git::FileChange& change : list.value_or(std::vector<Git::FileChange>())) {
      lines.push_back(fmt::format("{} {} {}{}", change.path, name_of(change.before),
                                  name_of(change.after), change.is_submodule ? " submodule" : ""));
    }
    std::ranges::sort(lines);
    return lines;
  }
  std::string name_of(const std::string& object) {
    if (object.empty()) return "-";
    for (const char* text : {"one", "two"}) {
      write(at("text"), text);
      if (git({"hash-object", at("text")}) == object) return text;
    }
    return object.substr(0, 4);
  }
};

TEST_F(Changes, BetweenCommitsAreOfFilesLinksAndSubmodules) {
  for (const char* name : {"same", "edited", "removed", "deep/renamed"}) write(in(name), "one");
  git({"update-index", "--add", "--cacheinfo", "160000," + std::string(40, 'a') + ",module"});
  git({"add", "--all", "--", "same", "edited", "removed", "deep"});
  git({"commit", "--quiet", "-m", "first"});
  const std::string first = git({"rev-parse", "HEAD"});
  write(in("edited"), "two");
  git({"rm", "-q", "removed"});
  git({"mv", "deep/renamed", "deep/new name"});
  git({"update-index", "--cacheinfo", "160000," + std::string(40, 'b') + ",module"});
  git({"add", "edited"});
  git({"commit", "--quiet", "-m", "second"});
  const std::string second = git({"rev-parse", "HEAD"});
  const auto expected = ElementsAre("deep/new name - one", "deep/renamed one -", "edited one two",
                                    "module aaaa bbbb submodule", "removed one -");
  EXPECT_THAT(changes(first, second), expected);
  EXPECT_THAT(changes(first), expected);
  EXPECT_TRUE(changes(second, second).empty());
}

TEST_F(Changes, OfTheWorkTreeAreNamedByWhatIsThereNow) {
  for (const char* name : {"staged", "edited", "removed", "link"}) write(in(name), "one");
  write(in(".gitattributes"), "edited text eol=crlf\n");
  const std::string first = commit("first");
  write(in("staged"), "two");
  write(in("added"), "two");
  git({"add", "staged", "added"});
  write(in("edited"), "two");
  write(in("unknown"), "two");
  fs::remove(in("removed"));
  fs::remove(in("link"));
  fs::create_symlink("/dev/zero", in("link"));
  EXPECT_THAT(changes(first), ElementsAre("added - two", "edited one two", "link one link",
                                          "removed one -", "staged one two"));
}

TEST_F(Changes, OfFilesThatTheIndexHidesAreSeen) {
  for (const char* name : {"skipped", "assumed", "both", "same", "gone", "left out", "link"})
    write(in(name), "one");
  const std::string first = commit("first");
  write(in("both"), "two");
  git({"add", "both"});
  git({"update-index", "--skip-worktree", "skipped", "both", "same", "left out", "link"});
  git({"update-index", "--assume-unchanged", "assumed", "both", "same", "gone"});
  const Effects git_effects = effects();
  const auto repository = Git::open(git_effects, repository_);
  fs::remove(in("left out"));
  git({"commit", "--quiet", "-m", "second"});
  EXPECT_FALSE(repository->dirty().value()) << "a sparse checkout leaves files out";
  EXPECT_THAT(changes(first), ElementsAre("both one two", "left out one -"));
  for (const char* name : {"skipped", "assumed", "gone", "link"}) {
    git({"update-index", "--refresh"});
    write(in(name), "two");
    EXPECT_TRUE(repository->dirty().value()) << name;
    write(in(name), "one");
    EXPECT_FALSE(repository->dirty().value()) << name;
  }
  write(in("skipped"), "two");
  write(in("assumed"), "two");
  write(in("both"), "one");
  fs::remove(in("gone"));
  fs::remove(in("link"));
  fs::create_symlink("/dev/zero", in("link"));
  EXPECT_THAT(changes(first), ElementsAre("assumed one two", "gone one -", "left out one -",
                                          "link one link", "skipped one two"));
}

TEST_F(Changes, OfTheSameSizeAndTimeAreSeenWhateverTheSettings) {
  write(in("edited"), "one");
  const auto long_ago = fs::last_write_time(in("edited")) - std::chrono::hours(1);
  fs::last_write_time(in("edited"), long_ago);
  const std::string first = commit("first");
  git({"config", "core.checkStat", "minimal"});
  git({"config", "core.trustctime", "false"});
  write(in("edited"), "two");
  fs::last_write_time(in("edited"), long_ago);
  EXPECT_THAT(changes(first), ElementsAre("edited one two"));
}

TEST_F(Changes, InASubmoduleAreThoseSinceItsCommit) {
  make(at("data"));
  write(at("data/w.dat"), "one");
  const std::string of_data = commit("data", at("data"));
  git({"-c", "protocol.file.allow=always", "submodule", "--quiet", "add", at("data"), "sets/data"});
  commit("first");
  const Effects git_effects = effects();
  const auto repository = Git::open(git_effects, repository_);
  const auto list = [&] { return repository->changes_in_submodule("sets/data", of_data); };
  ASSERT_TRUE(list()) << list().error().message;
  EXPECT_TRUE(list()->empty());
  write(in("sets/data/w.dat"), "two");
  ASSERT_TRUE(list());
  ASSERT_EQ(list()->size(), 1U);
  EXPECT_EQ(list()->front().path, "sets/data/w.dat");
  EXPECT_FALSE(repository->changes_in_submodule("sets/data", std::string(40, 'a')))
      << "a commit that is not there";
  git({"submodule", "--quiet", "deinit", "--force", "sets/data"});
  EXPECT_FALSE(list()) << "not checked out";
}

std::string pointer_to(const std::string& content) {
  return fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                     sys::sha256_hex(content), content.size());
}

TEST_F(Changes, OfAFileInGitLfsAreThoseOfItsContent) {
  const std::string content(std::size_t{3} << 20, 'x');
  std::string edited = content;
  edited.back() = 'y';
  write(in(".gitattributes"), "*.bin filter=lfs\n");
  for (const char* name : {"a.bin", "hidden.bin", "edited.bin", "pointer.bin", "plain"})
    write(in(name), pointer_to(content));
  const std::string first = commit("first");
  git({"update-index", "--skip-worktree", "hidden.bin"});
  for (const char* name : {"a.bin", "hidden.bin"}) write(in(name), content);
  EXPECT_TRUE(changes(first).empty());
  EXPECT_TRUE(is_lfs_pointer(files_, in("pointer.bin")));
  EXPECT_FALSE(is_lfs_pointer(files_, in("a.bin")));
  for (const char* name : {"hidden.bin", "edited.bin"}) write(in(name), edited);
  write(in("plain"), content);
  const std::vector<std::string> lines = changes(first);
  ASSERT_EQ(lines.size(), 3U) << text::join(lines, "\n");
  EXPECT_TRUE(lines[0].starts_with("edited.bin ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("hidden.bin ")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("plain ")) << "attributes give it no filter";
}

TEST(LfsPointers, AreRecognizedInTheirOneForm) {
  const std::string good = pointer_to("one");
  const auto pointer = parse_lfs_pointer(good);
  ASSERT_TRUE(pointer);
  EXPECT_EQ(pointer->sha256, sys::sha256_hex("one"));
  EXPECT_EQ(pointer->size, 3U);
  for (const std::string& text :
       {std::string(), good + "more\n", good.substr(1), good.substr(0, good.find("size")),
        pointer_to("one").replace(good.find("sha256:") + 7, 1, "z"), good + std::string(2000, ' ')})
    EXPECT_FALSE(parse_lfs_pointer(text)) << text;
}

}  // namespace changes_test
}  // namespace weir::source
