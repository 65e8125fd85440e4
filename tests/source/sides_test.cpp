// Tests how paths of the candidate are mapped to paths of the base.
#include <set>

#include "scene.hpp"
#include "tests/support/memory_files.hpp"

namespace weir::source {
namespace sides_test {

TEST(ProgramInBase, IsTheCandidatesCounterpart) {
  sys::MemoryFiles files;
  for (const char* path : {"/base/build/x", "/base/perf/x", "/base/plain", "/link/p/build/x"}) {
    files.put(path, "");
    files.set_executable(path);
  }
  files.put("/base/readme", "");
  BaseTree base;
  base.root = "/base";
  base.candidate_root = "/link/p";
  base.candidate_real_root = "/home/p";
  base.words = "HEAD, 1a2b3c4 \"first\"";
  struct Case {
    const char *program, *answer;
  };
  const Case cases[] = {
      {"/link/p/build/x", "/base/build/x"},
      {"/home/p/build/x", "/base/build/x"},
      {"/link/p/perf/../build/./x", "/base/build/x"},
      {"/link/p/perf/x", "/base/perf/x"},
      {"/usr/bin/x", "outside /link/p"},
      {"/link/p2/build/x", "outside /link/p"},
      {"/link/p/../build/x", "give the base as a command: --against -- COMMAND…"},
      {"/link/p", "outside /link/p"},
      {"/link/p/readme", "no such program in the base"},
      {"/link/p/build", "no such program in the base"},
      {"/link/p/build/y", "needs the command that makes it there (build: [./build.sh])"},
  };
  for (const Case& c : cases) {
    const auto counterpart = program_in_base(files, base, c.program);
    if (counterpart) {
      EXPECT_EQ(*counterpart, c.answer) << c.program;
    } else {
      EXPECT_EQ(counterpart.error().code, Code::config);
      expect_holds(counterpart.error().message, c.answer);
    }
  }
  base.built = true;
  expect_holds(program_in_base(files, base, "/link/p/y").error().message,
               "the build command has to make it");
  base.kind = BaseTree::Kind::folder;
  expect_holds(program_in_base(files, base, "/link/p/y").error().message,
               "the folder has to hold the program");
}

TEST(EqualLengthLinks, MakePathsOfOneLengthToEveryRoot) {
  sys::MemoryFiles files;
  const std::string roots[] = {"/a", "/home/someone/.cache/weir/trees/1234-5678", "/"};
  std::set<std::size_t> lengths;
  std::set<std::string> paths;
  for (const std::string& root : roots) {
    const std::string program = sys::join_path(root, "build/x");
    files.put(program, "of " + root);
    for (int again = 0; again < 2; ++again) {
      const auto path = through_equal_length_link(files, "/out", root, program);
      ASSERT_TRUE(path) << path.error().message;
      EXPECT_EQ(*files.read(*path, 100), "of " + root);
      EXPECT_TRUE(path->starts_with("/out/sides/"));
      EXPECT_TRUE(path->ends_with("/build/x"));
      lengths.insert(path->size());
      paths.insert(*path);
    }
  }
  EXPECT_EQ(lengths.size(), 1U);
  EXPECT_EQ(paths.size(), 3U);
  // The link adds "/out/sides/" and 16 hex digits.
  EXPECT_EQ(through_equal_length_link(files, "/out", "/a", "/a")->size(), 11U + 16U);
  EXPECT_EQ(through_equal_length_link(files, "/out", "/a", "/ab/x").error().code, Code::internal);
  const auto own = through_equal_length_link(files, "/out", "/a", "/a/x");
  const auto base_link = through_equal_length_link(files, "/out", "/a", "/a/x", "base");
  EXPECT_NE(*own, *base_link);
  EXPECT_EQ(own->size(), base_link->size());
}

TEST(EqualLengthLinks, LeadToRealPrograms) {
  char pattern[] = "/tmp/weir-sides-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  sys::RealFiles files;
  ASSERT_TRUE(files.make_dirs(folder + "/base").has_value());
  ASSERT_TRUE(files.write_atomic(folder + "/base/x", "x").has_value());
  const auto path =
      through_equal_length_link(files, folder + "/out", folder + "/base", folder + "/base/x");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*files.read(*path, 10), "x");
  (void)files.remove_tree(folder);
}

TEST(CacheFolder, IsTheFirstThatIsSet) {
  struct Case {
    const char *own, *xdg, *home, *folder;
  };
  const Case cases[] = {
      {"/own/./x", "/xdg", "/home/a", "/own/x"},
      {"", "/xdg", "/home/a", "/xdg/weir"},
      {"", "relative", "/home/a", "/home/a/.cache/weir"},
      {"", "", "/home/a", "/home/a/.cache/weir"},
      {"", "", "", "no place for a cache"},
  };
  for (const Case& c : cases) {
    const Variable own("WEIR_CACHE", c.own), xdg("XDG_CACHE_HOME", c.xdg), home("HOME", c.home);
    const auto folder = default_cache_folder();
    expect_holds(folder ? *folder : folder.error().message, c.folder);
  }
  const Variable own("WEIR_CACHE", "relative");
  EXPECT_TRUE(default_cache_folder()->starts_with("/"));
}

}  // namespace sides_test
}  // namespace weir::source
