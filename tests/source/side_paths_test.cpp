// Tests which files the words of a command mean on each side of a pair.
#include "gate/source/side_paths.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "scene.hpp"
#include "tests/support/memory_files.hpp"

namespace weir::source {
namespace side_paths_test {

using testing::HasSubstr;

class SidePathsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* path :
         {"/p/perf/cfg.json", "/p/perf/m.bin", "/p/perf/run/x", "/p/lib/own.txt", "/m/x.gguf",
          "/base/perf/cfg.json", "/base/perf/only.json", "/p/perf/only.json", "/other"}) {
      files_.put(path, "text");
    }
    files_.put("/p/perf/built",
               "\x7f"
               "ELF");
    files_.put("/p/perf/made.sh", "#!/bin/sh\n");
  }
  SidePaths side(const std::string& root, const std::string& other_root = "") {
    return {files_, {{"/link", "/p"}, "/p/perf", root, "/l", other_root}};
  }

  sys::MemoryFiles files_;
};

TEST_F(SidePathsTest, StartInTheFolderOfTheConfiguration) {
  EXPECT_EQ(side("/base").folder(), "/l/perf");
  EXPECT_EQ(SidePaths(files_, {{"/p"}, "/p", "/base", "/l"}).folder(), "/l");
}

TEST_F(SidePathsTest, MeanTheSidesOwnFileElseTheUsers) {
  const std::pair<const char*, const char*> cases[] = {
      {"cfg.json", "cfg.json"},
      {"./cfg.json", "./cfg.json"},
      {"--cfg=cfg.json", "--cfg=cfg.json"},
      {"/p/perf/cfg.json", "/l/perf/cfg.json"},
      {"--cfg=/link/perf/../perf/cfg.json", "--cfg=/l/perf/cfg.json"},
      {"/p", "/l"},
      {"m.bin", "/p/perf/m.bin"},
      {"/p/perf/m.bin", "/p/perf/m.bin"},
      {"--models=./run", "--models=/p/perf/run"},
      {"run", "run"},
      {"../lib/own.txt", "/p/lib/own.txt"},
      {"../../m/x.gguf", "/m/x.gguf"},
      {"/m/x.gguf", "/m/x.gguf"},
      {"absent/x", "absent/x"},
      {"{model}", "{model}"},
      {"", ""},
  };
  for (const auto& [word, placed] : cases) {
    SidePaths base = side("/base");
    EXPECT_EQ(base.place(word).value_or("an error"), placed) << word;
  }
  SidePaths base = side("/base");
  (void)base.place("m.bin:../lib/own.txt:../../m/x.gguf:cfg.json");
  EXPECT_EQ(base.shared(), (std::set<std::string>{"lib/own.txt", "perf/m.bin"}));
}

TEST_F(SidePathsTest, AreAsLongOnBothSides) {
  for (const char* word : {"m.bin", "cfg.json", "/p/perf/cfg.json", "--x=../lib/own.txt"}) {
    SidePaths base = side("/base"), candidate = side("/p", "/base");
    EXPECT_EQ(base.place(word).value_or("an error"), candidate.place(word).value_or("another"));
  }
}

TEST_F(SidePathsTest, OfCodeThatTheSideLacksAreRefused) {
  SidePaths base = side("/base");
  for (const char* word : {"built", "--lib=./made.sh", "/p/perf/built"}) {
    const auto placed = base.place(word);
    ASSERT_FALSE(placed) << word;
    EXPECT_EQ(placed.error().code, Code::config);
    EXPECT_THAT(placed.error().message, HasSubstr("and /base has no such file")) << word;
  }
}

// Links are real ones: what they lead to is the system's to say.
TEST_F(SidePathsTest, OverALinkFromOutsideAreThoseOfTheCheckout) {
  char pattern[] = "/tmp/weir-links-XXXXXX";
  const std::string top = std::filesystem::canonical(mkdtemp(pattern)).string();
  for (const char* folder : {"/own/bin", "/base/bin"})
    std::filesystem::create_directories(top + folder);
  for (const char* file : {"/own/bin/x", "/own/bin/m.bin", "/base/bin/x"})
    std::ofstream(top + file) << "text";
  std::filesystem::create_symlink(top + "/own", top + "/link");
  std::filesystem::create_symlink(top + "/own/bin", top + "/own/untracked");
  const sys::RealFiles files;
  SidePaths base(files, {{top + "/own"}, top + "/own", top + "/base", "/l"});
  const std::pair<std::string, std::string> cases[] = {
      {top + "/link/bin", "/l/bin"},
      {top + "/own/untracked/x", "/l/bin/x"},
      {"/usr/bin:" + top + "/link/bin/x:/bin", "/usr/bin:/l/bin/x:/bin"},
      {top + "/link/absent", top + "/link/absent"},
      {top + "/link/bin/m.bin", top + "/link/bin/m.bin"},
  };
  for (const auto& [value, placed] : cases) {
    EXPECT_EQ(base.place_inherited(value), placed) << value;
    EXPECT_EQ(base.place(value).value_or("an error"), placed) << value;
  }
  EXPECT_EQ(base.place("../link/bin/x").value_or("an error"), "/l/bin/x");
  EXPECT_EQ(base.shared(), std::set<std::string>{"bin/m.bin"});
  std::filesystem::remove_all(top);
}

TEST_F(SidePathsTest, InInheritedValuesAreReplacedWhereTheyAreAbsolute) {
  const std::pair<const char*, const char*> cases[] = {
      {"/p", "/l"},
      {"/usr/bin:/p/perf/built:/p/perf/cfg.json", "/usr/bin:/p/perf/built:/l/perf/cfg.json"},
      {"cfg.json", "cfg.json"},
      {"/pp", "/pp"},
  };
  for (const auto& [value, placed] : cases) EXPECT_EQ(side("/base").place_inherited(value), placed);
}

}  // namespace side_paths_test
}  // namespace weir::source
