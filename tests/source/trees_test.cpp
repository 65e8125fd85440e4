// Tests how base programs are built in worktrees and kept in the cache.
#include "gate/source/trees.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "gate/base/json.hpp"

#include "scene.hpp"

namespace weir::source {
namespace trees_test {

class BuiltBases : public Scene {
 protected:
  void SetUp() override {
    Scene::SetUp();
    // Every build adds a line to `builds`, outside of all checkouts; `wanted` selects how it ends.
    write_program(in("make.sh"),
                  "echo \"$PWD $1 ${GIT_DIR-unset}\" >> '" + at("builds") +
                      "'\n"
                      "ls > seen\n"
                      "mkdir -p out\n"
                      "echo half > out/half\n"
                      "test ! -f '" +
                      at("fail") +
                      "' || { echo 'compiling x'; echo 'x.c:1: broken \x1b[31m' >&2; exit 2; }\n"
                      "test ! -f '" +
                      at("hang") +
                      "' || sleep 600\n"
                      "printf '#!/bin/sh\\necho built\\n' > out/x\n"
                      "chmod +x out/x\n");
    head_ = commit("first");
  }
  // Returns the number of builds that were started.
  [[nodiscard]] std::size_t builds() const { return lines_in(at("builds")); }
  [[nodiscard]] std::vector<std::string> trees() const {
    std::vector<std::string> folders;
    const std::vector<std::string> names =
        files_.list(at("cache/trees")).value_or(std::vector<std::string>());
    for (const std::string& name : names) {
      if (name.find('.') == std::string::npos) folders.push_back(name);
    }
    return folders;
  }
  const std::vector<config::Arguments> build_{{"./make.sh", "all"}};
  std::string head_;
};

TEST_F(BuiltBases, AreBuiltOnceAndTakenFromTheCacheAfterThat) {
  auto base = prepare("HEAD", build_);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_FALSE(base->from_cache);
  EXPECT_TRUE(base->built);
  EXPECT_TRUE(base->notes.back().starts_with("the base was built in ")) << base->notes.back();
  expect_holds(log_, "building the base " + head_.substr(0, 7) + ": ./make.sh all");
  const auto program = program_in_base(files_, *base, in("out/x"));
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(*program, base->root + "/out/x");
  EXPECT_TRUE(files_.exists(base->root + ".log"));
  const auto record = parse_json(*files_.read(base->root + ".json", 10'000));
  ASSERT_TRUE(record);
  EXPECT_EQ((*record)["schema"], "weir.base/1");
  EXPECT_EQ((*record)["commit"], head_);
  EXPECT_EQ((*record)["commands"], Json::parse(R"([["./make.sh", "all"]])"));

  log_.clear();
  const auto again = prepare("HEAD", build_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->root, base->root);
  EXPECT_TRUE(again->from_cache);
  EXPECT_EQ(again->notes.back(), "the base's build is taken from the cache");
  EXPECT_EQ(log_, "") << "nothing that takes long";
  EXPECT_EQ(builds(), 1U);

  // Two engines with one command need one build. Another command needs another tree.
  ASSERT_TRUE(prepare("HEAD", {build_[0], build_[0]}));
  EXPECT_EQ(builds(), 1U);
  const auto rebuilt = prepare("HEAD", {build_[0], {"./make.sh", "more"}});
  ASSERT_TRUE(rebuilt) << rebuilt.error().message;
  EXPECT_NE(rebuilt->root, base->root);
  EXPECT_EQ(builds(), 3U);
}

TEST_F(BuiltBases, AreBuiltWhereTheConfigLiesAndWithoutGitsVariables) {
  write_program(in("perf/own/make.sh"), "pwd > where\necho ${GIT_DIR-unset} >> where\n");
  commit("a config of its own folder");
  const Variable folder("GIT_DIR", in(".git"));
  const auto base = prepare("HEAD", {{"./make.sh"}}, in("perf/own"));
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->candidate_root, repository_);
  EXPECT_EQ(*files_.read(base->root + "/perf/own/where", 1000), base->root + "/perf/own\nunset\n");
  ASSERT_TRUE(prepare("HEAD~1", {{"sh", "-c", "true"}}, in("perf/own")))
      << "a base from before that folder";
}

TEST_F(BuiltBases, AreBuiltWithoutSecretsThatTheConfigDoesNotPassOn) {
  const Variable github("GITHUB_TOKEN", "ghs_planted"), mirror("MIRROR_TOKEN", "m");
  const Variable orders("GITHUB_ENV", at("orders"));
  const std::string log = at("log");
  ASSERT_TRUE(run_builds({{"engine", {"/usr/bin/env"}}}, repository_, log, 60, effects()));
  const std::string without = files_.read(log, 100'000).value();
  expect_holds(without, "PATH=");
  for (const char* name : {"ghs_planted", "MIRROR_TOKEN", "GITHUB_ENV"}) {
    EXPECT_EQ(without.find(name), std::string::npos) << without;
  }
  ASSERT_TRUE(run_builds({{"engine", {"/usr/bin/env"}, {"MIRROR_TOKEN"}}}, repository_, log, 60,
                         effects()));
  const std::string with = files_.read(log, 100'000).value();
  expect_holds(with, "MIRROR_TOKEN=m");
  EXPECT_EQ(with.find("ghs_planted"), std::string::npos);
}

TEST_F(BuiltBases, FollowTheWayTheConfigWasNamed) {
  write(in("perf/weir.yaml"), "");
  commit("config");
  ASSERT_TRUE(files_.link(repository_, at("link")).has_value());
  const auto base = prepare("HEAD", {}, at("link/perf"));
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->candidate_root, at("link"));
  for (const std::string& top : {at("link"), repository_}) {
    const auto program = program_in_base(files_, *base, top + "/make.sh");
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(*program, base->root + "/make.sh");
  }
}

TEST_F(BuiltBases, SayWhatABuildThatFailsPrintedAndHowToRunItAgain) {
  write(at("fail"), "");
  const auto base = prepare("HEAD", build_);
  ASSERT_FALSE(base);
  EXPECT_EQ(base.error().code, Code::unavailable);
  const std::string& message = base.error().message;
  expect_holds(message, "`./make.sh all` (`build:` of the engine engine) exited with 2");
  expect_holds(message, "\n  compiling x\n  x.c:1: broken");
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  ASSERT_EQ(trees().size(), 1U);
  const std::string tree = at("cache/trees/" + trees()[0]);
  expect_holds(message, "again by hand: cd " + tree + " && ./make.sh all");
  expect_holds(message, "fresh checkout");
  expect_holds(*files_.read(tree + ".log", 1000), "$ ./make.sh all\ncompiling x\n");

  // The next build starts from scratch.
  ASSERT_TRUE(files_.exists(tree + "/out/half"));
  ASSERT_TRUE(files_.remove(at("fail")).has_value());
  const auto again = prepare("HEAD", build_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->root, tree);
  EXPECT_EQ(*files_.read(tree + "/seen", 1000), "make.sh\nseen\n");
}

TEST_F(BuiltBases, RefuseBuildsThatCanNotStartOrDoNotEnd) {
  auto base = prepare("HEAD", {{"no-such-program-anywhere", "x y"}});
  ASSERT_FALSE(base);
  EXPECT_EQ(base.error().code, Code::unavailable);
  expect_holds(base.error().message, "`no-such-program-anywhere 'x y'`");
  expect_holds(base.error().message, "there is no such program");

  write(at("hang"), "");
  build_timeout_ = 1;
  base = prepare("HEAD", build_);
  ASSERT_FALSE(base);
  EXPECT_EQ(base.error().code, Code::unavailable);
  expect_holds(base.error().message, "did not end within 1 s");
}

TEST_F(BuiltBases, AreMadeAgainAfterABuildThatWasStopped) {
  write(at("hang"), "");
  std::thread stopper([this] {
    while (builds() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop_.request();
  });
  sys::Stop& stop = stop_;
  const auto base = prepare("HEAD", build_);
  stopper.join();
  ASSERT_FALSE(base);
  EXPECT_TRUE(stop.requested());
  EXPECT_EQ(base.error().code, Code::interrupted);

  ASSERT_TRUE(files_.remove(at("hang")).has_value());
  const sys::Stop fresh;
  const Effects effects{processes_, files_, clock_, locks_, {}, fresh};
  const auto again =
      prepare_base({"HEAD", repository_, {{"engine", build_[0]}}, at("cache")}, effects);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->from_cache);
  EXPECT_EQ(*files_.read(again->root + "/seen", 1000), "make.sh\nseen\n");
}

// kill -9 may leave any of these.
TEST_F(BuiltBases, AreMadeAgainWhereOnlyPartsOfOneAreThere) {
  const std::string tree = prepare("HEAD", build_)->root;
  using Damage = std::function<void()>;
  const std::pair<const char*, Damage> cases[] = {
      {"built, but not said so", [&] { (void)files_.remove(tree + ".json"); }},
      {"an empty folder that git knows",
       [&] {
         (void)files_.remove(tree + ".json");
         (void)files_.remove_tree(tree);
         (void)files_.make_dirs(tree);
       }},
      {"the folder is gone", [&] { (void)files_.remove_tree(tree); }},
      {"a record of something else", [&] { write(tree + ".json", "{}"); }},
      {"no record at all", [&] { write(tree + ".json", "\x01garbage"); }},
      {"git has forgotten it",
       [&] {
         (void)files_.remove(tree + ".json");
         (void)files_.remove_tree(in(".git/worktrees"));
       }},
      {"the whole cache was cleared", [&] { (void)files_.remove_tree(at("cache")); }},
  };
  std::size_t expected = 1;
  for (const auto& [what, damage] : cases) {
    damage();
    const auto base = prepare("HEAD", build_);
    ASSERT_TRUE(base) << what << ": " << base.error().message;
    EXPECT_EQ(base->root, tree) << what;
    EXPECT_FALSE(base->from_cache) << what;
    EXPECT_EQ(builds(), ++expected) << what;
    EXPECT_TRUE(program_in_base(files_, *base, in("out/x"))) << what;
  }
}

TEST_F(BuiltBases, AreBuiltOnceForTwoThatWantThemAtTheSameTime) {
  std::atomic<int> from_cache{0}, fine{0};
  std::vector<std::thread> weirs;
  for (int i = 0; i < 4; ++i) {
    weirs.emplace_back([&] {
      const auto base = prepare("HEAD", build_);
      if (base) ++fine;
      if (base && base->from_cache) ++from_cache;
    });
  }
  for (std::thread& weir : weirs) weir.join();
  EXPECT_EQ(fine, 4);
  EXPECT_EQ(from_cache, 3);
  EXPECT_EQ(builds(), 1U);
}

TEST_F(BuiltBases, KeepThoseUsedLastAndNoneThatIsInUseIsRemoved) {
  for (int i = 0; i < 8; ++i) commit("one more");
  const auto in_use = prepare("HEAD~8");
  ASSERT_TRUE(in_use) << in_use.error().message;
  std::vector<std::string> roots;
  for (int i = 7; i > 0; --i) {
    const auto base = prepare("HEAD~" + std::to_string(i));
    ASSERT_TRUE(base) << base.error().message;
    roots.push_back(base->root);
  }
  // Five of seven, and the first one, which is the oldest.
  EXPECT_EQ(trees().size(), 6U);
  EXPECT_TRUE(files_.exists(in_use->root + "/make.sh"));
  EXPECT_FALSE(files_.exists(roots[0]));
  EXPECT_FALSE(files_.exists(roots[1]));
  EXPECT_TRUE(files_.exists(roots[2] + "/make.sh"));
  EXPECT_FALSE(files_.exists(roots[0] + ".json"));
  const std::string worktrees = git({"worktree", "list"});
  EXPECT_EQ(worktrees.find(roots[0]), std::string::npos) << worktrees;
  expect_holds(worktrees, roots[6]);
}

TEST_F(BuiltBases, LeaveTheUsersOwnWorktreesAlone) {
  git({"worktree", "add", "--quiet", "--detach", at("own")});
  ASSERT_TRUE(files_.remove_tree(at("own")).has_value()) << "as on a disk that is not mounted";
  (void)files_.remove(prepare("HEAD", build_)->root + ".json");
  ASSERT_TRUE(prepare("HEAD", build_));
  expect_holds(git({"worktree", "list"}), at("own"));
}

TEST_F(BuiltBases, AreSharedByAllWorktreesOfARepository) {
  const std::string root = prepare("HEAD", build_)->root;
  git({"worktree", "add", "--quiet", "-b", "topic", at("topic")});
  commit("in the other worktree", at("topic"));
  const auto base = prepare("main", build_, at("topic"));
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->root, root);
  EXPECT_TRUE(base->from_cache);
  EXPECT_EQ(base->candidate_root, at("topic"));
}

// A CI system restores the cache and makes the repository anew.
TEST_F(BuiltBases, ServeAFreshCloneInThePlaceOfTheRepository) {
  const std::string root = prepare("HEAD", build_)->root;
  git({"clone", "--quiet", repository_, at("fresh")}, root_);
  ASSERT_TRUE(files_.remove_tree(repository_).has_value());
  ASSERT_EQ(std::rename(at("fresh").c_str(), repository_.c_str()), 0);
  const auto base = prepare("HEAD", build_);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->root, root);
  EXPECT_TRUE(base->from_cache);
  EXPECT_EQ(builds(), 1U);
}

TEST_F(BuiltBases, HaveTheirSubmodules) {
  const Variable count("GIT_CONFIG_COUNT", "1"), key("GIT_CONFIG_KEY_0", "protocol.file.allow"),
      value("GIT_CONFIG_VALUE_0", "always");
  make(at("library"));
  write(at("library/code"), "x");
  commit("library", at("library"));
  git({"submodule", "--quiet", "add", at("library"), "third party"});
  commit("with a submodule");
  auto base = prepare("HEAD", build_);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_TRUE(files_.exists(base->root + "/third party/code"));
  expect_holds(log_, "fetching its submodules");

  // The tree is removed and built again, with its contents.
  base->held.reset();
  (void)files_.remove(base->root + ".json");
  ASSERT_TRUE(prepare("HEAD", build_));
  EXPECT_TRUE(files_.exists(base->root + "/third party/code"));
}

TEST(ShellLines, CanBePastedAsTheyStand) {
  struct Case {
    std::vector<std::string> argv;
    const char* line;
  };
  const Case cases[] = {
      {{"cmake", "--build", "build", "-j2"}, "cmake --build build -j2"},
      {{"sh", "-c", "a && b"}, "sh -c 'a && b'"},
      {{"echo", "it's", ""}, "echo 'it'\\''s' ''"},
      {{"a\nb", "\x1b[31m'\\"}, "$'a\\x0ab' $'\\x1b[31m\\'\\\\'"},
      {{"a*", "~", "$x"}, "'a*' '~' '$x'"},
  };
  for (const Case& c : cases) EXPECT_EQ(shell_line(c.argv), c.line);
}

}  // namespace trees_test
}  // namespace weir::source
