// Tests which files the words of a command mean on each side of a pair.
#include "gate/source/side_paths.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "gate/source/virtual_environment.hpp"

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

class SharedEnvironment : public SidePathsTest {
 protected:
  void SetUp() override {
    SidePathsTest::SetUp();
    put("pyvenv.cfg", "home = /usr/bin\ncommand = /usr/bin/python3 -m venv /p/perf/.venv\n");
    put("bin/bench", "#!/p/perf/.venv/bin/python\n");
    put(k_packages + "distutils-precedence.pth", "import os; os.getcwd()\n");
  }
  void put(const std::string& name, const std::string& text) {
    files_.put("/p/perf/.venv/" + name, text);
  }
  SidePaths base() {
    SideCheckout side{{"/link", "/p"}, "/p/perf", "/base", "/l"};
    side.is_tracked = [&](const std::string& inner) { return tracked_.contains(inner); };
    return {files_, side};
  }
  const std::string k_packages = "lib/python3.11/site-packages/";
  std::set<std::string> tracked_;
};

TEST_F(SharedEnvironment, ServesBothSides) {
  for (const char* word : {".venv/bin/bench", "./.venv", ".venv", "/p/perf/.venv/bin/bench"}) {
    SidePaths side = base();
    const auto placed = side.place(word);
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_THAT(*placed, testing::StartsWith("/p/perf/.venv")) << word;
    EXPECT_TRUE(side.shares_environment()) << word;
    EXPECT_EQ(side.shared(), std::set<std::string>{"perf/.venv"}) << word;
  }
  SidePaths side = base();
  EXPECT_TRUE(side.share_environment("/p/perf/.venv/bin/bench").value());
  EXPECT_FALSE(side.share_environment("/p/perf/built").value()) << "no environment is around it";
  EXPECT_FALSE(side.share_environment("").value());
}

TEST_F(SharedEnvironment, HasNoneOfTheCandidatesCode) {
  const struct {
    const char *file, *text;
  } cases[] = {
      {"__editable__.engine-1.0.pth", "/p/perf/src\n"},
      {"engine.pth", "/link/perf/src\n"},
      {"engine.pth", "../../../../src\n"},
      {"__editable___engine_finder.py", "MAPPING = {'engine': '/p/src/engine'}\n"},
      {"engine.egg-link", "/p\n."},
      {"engine-1.0.dist-info/direct_url.json",
       R"({"dir_info": {"editable": true}, "url": "file:///p/perf"})"},
      {"engine-1.0.dist-info/direct_url.json", R"({"dir_info": {}, "url": "file:///p/perf"})"},
      {"engine-1.0.dist-info/direct_url.json",
       R"({"archive_info": {}, "url": "file:///p/dist/engine-1.0-py3-none-any.whl"})"},
  };
  for (const auto& c : cases) {
    put(k_packages + c.file, c.text);
    SidePaths side = base();
    const auto placed = side.place(".venv/bin/bench");
    ASSERT_FALSE(placed) << c.file << ": " << c.text;
    EXPECT_EQ(placed.error().code, Code::config);
    EXPECT_THAT(placed.error().message,
                testing::AllOf(HasSubstr(c.file), HasSubstr("perf/.venv has the candidate's code"),
                               HasSubstr("build:")));
    put(k_packages + c.file, "");
  }
  put("pyvenv.cfg", "home = /p/tools/python/bin\n");
  EXPECT_FALSE(base().place(".venv/bin/bench")) << "its interpreter is the candidate's";
}

TEST_F(SharedEnvironment, IsNeitherTrackedNorTheBasesOwn) {
  tracked_ = {"perf/.venv"};
  EXPECT_FALSE(base().place(".venv/bin/bench")) << "a pull request may have committed it";
  EXPECT_FALSE(base().share_environment("/p/perf/.venv/bin/bench").value());
  tracked_.clear();
  files_.put("/base/perf/.venv/bin/bench", "#!/bin/sh\n");
  SidePaths side = base();
  EXPECT_EQ(side.place(".venv/bin/bench").value_or("an error"), ".venv/bin/bench");
  EXPECT_FALSE(side.shares_environment());
  SidePaths nobody_asks = this->side("/p");
  EXPECT_FALSE(nobody_asks.share_environment("/p/perf/.venv").value());
}

TEST_F(SharedEnvironment, MayNameItselfAndOtherPlaces) {
  put(k_packages + "self.pth", "/p/perf/.venv/extra\n/opt/p/perf\n/p-other/src\n../more\n");
  put(k_packages + "x-1.dist-info/direct_url.json", R"({"url": "https://example.org/p/perf"})");
  EXPECT_TRUE(base().place(".venv/bin/bench"));
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

TEST_F(SidePathsTest, OfAnEnvironmentDoNotLeadToTheCheckoutOverLinks) {
  char pattern[] = "/tmp/weir-links-XXXXXX";
  const std::string top = std::filesystem::canonical(mkdtemp(pattern)).string();
  const std::string own = top + "/own";
  for (const char* folder : {"/own/.venv/bin", "/own/.venv/share", "/own/tools/env/bin", "/base"})
    std::filesystem::create_directories(top + folder);
  for (const char* file : {"/own/.venv/pyvenv.cfg", "/own/.venv/bin/x", "/own/tools/env/pyvenv.cfg",
                           "/own/tools/env/bin/x", "/own/tools/tool"})
    std::ofstream(top + file) << "#!/bin/sh\n";
  std::filesystem::create_symlink(own + "/tools/tool", own + "/.venv/share/tool");
  std::filesystem::create_symlink("tools/env", own + "/env");
  std::filesystem::create_symlink("/bin/sh", own + "/.venv/bin/python");
  const sys::RealFiles files;
  SideCheckout side{{own}, own, top + "/base", "/l"};
  side.is_tracked = [](const std::string& inner) {
    return sys::is_within("tools/env/bin/x", inner);
  };
  const std::pair<const char*, bool> cases[] = {{".venv/bin/x", true},
                                                {".venv/bin/python", true},
                                                {".venv/share/tool", false},
                                                {"env/bin/x", false}};
  for (const auto& [word, is_shared] : cases) {
    EXPECT_EQ(SidePaths(files, side).place(word).has_value(), is_shared) << word;
    EXPECT_EQ(SidePaths(files, side).share_environment(own + "/" + word).value(), is_shared)
        << word;
  }
  std::filesystem::create_symlink(own + "/tools/tool", own + "/.venv/bin/tool");
  EXPECT_FALSE(SidePaths(files, side).place(".venv/bin/x")) << "another program in it leads there";
  std::filesystem::remove_all(top);
}

TEST(Environment, CopiesOfEditedCodeAreThoseOfItsPackageOrModule) {
  sys::MemoryFiles files;
  const std::string installed = "/p/.venv/lib/python3.11/site-packages/";
  for (const char* name :
       {"pkg/__init__.py", "pkg/core.py", "tool.py", "__pycache__/tool.cpython-311.pyc",
        "google/other/__init__.py", "pkg_2/__init__.py"}) {
    files.put(installed + name, "text");
  }
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"pkg/core.py", {installed + "pkg"}},
      {"src/pkg/new/file.cu", {installed + "pkg"}},
      {"python/pkg/core.py", {installed + "pkg"}},
      {"tool.py", {installed + "tool.py", installed + "__pycache__/tool.cpython-311.pyc"}},
      {"pkg/README.md", {}},
      {"vendor/pkg/core.py", {}},
      {"google/own/core.py", {}},
      {"absent/core.py", {}}};
  for (const auto& [edited, copies] : cases)
    EXPECT_EQ(find_copies(files, "/p/.venv", {edited}), copies) << edited;
}

TEST(Environment, CopiesThatHoldAnEditedFileOtherwiseAreStale) {
  sys::MemoryFiles files;
  const std::string installed = "/p/.venv/lib/python3.11/site-packages/";
  for (const char* name : {"pkg/__init__.py", "pkg/core.py", "tool.py"})
    files.put(installed + name, "as installed");
  files.put("/p/src/pkg/core.py", "as installed");
  files.put("/p/src/pkg/new.py", "edited");
  files.put("/p/tool.py", "edited");
  const std::pair<std::vector<std::string>, std::vector<std::string>> cases[] = {
      {{"src/pkg/core.py", "tool.py"}, {installed + "tool.py"}},
      {{"src/pkg/core.py"}, {}},
      {{"src/pkg/new.py"}, {}},
      {{"src/pkg/__init__.py"}, {}}};
  for (const auto& [edited, copies] : cases)
    EXPECT_EQ(find_stale_copies(files, "/p/.venv", "/p", edited), copies) << edited.front();
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
