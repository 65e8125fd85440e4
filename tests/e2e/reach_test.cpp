// weir reach with a small real engine of C++: real git, a real compiler, real valgrind. Its two
// prompts run different files of it.
#include <gmock/gmock.h>

#include "tests/e2e/reach_scene.hpp"

namespace weir::e2e {
namespace reach_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(ReachOfAnEngine, NamesExactlyTheCellsWhoseExecutedFilesChanged) {
  record();
  const Json stored = *parse_json(slurp(scratch_ / "weir-out/reach/mine/m/cpu/dense.json"));
  EXPECT_EQ(stored["schema"], "weir.reach/1");
  EXPECT_EQ(stored["commit"].get<std::string>().size(), 40U);
  EXPECT_THAT(stored["files"]["src/dense.cpp"].dump(), HasSubstr("dense(int)"));
  EXPECT_THAT(stored["files"]["main.cpp"].dump(), HasSubstr("main"));
  EXPECT_FALSE(stored["files"].contains("src/sparse.cpp"));

  struct Case {
    const char* file;
    std::vector<std::string> cells;
    bool none;
  };
  const Case cases[] = {
      {"src/dense.cpp", {k_dense}, false},
      {"src/sparse.cpp", {k_sparse}, false},
      {"main.cpp", {k_dense, k_sparse}, false},
      {"src/work.h", {k_dense, k_sparse}, false},
      {"src/unused.cpp", {}, true},
      {"README.md", {}, false},
      {"tests/a_test.cpp", {}, false},
      {"build.sh", {k_dense, k_sparse}, false},
      {"src/new.cpp", {k_dense, k_sparse}, false},  // no record can hold it
  };
  for (const Case& test_case : cases) {
    spill(scratch_ / test_case.file, slurp(scratch_ / test_case.file) + "\n");
    commit(std::string("change ") + test_case.file);
    const Json answer = diff();
    EXPECT_EQ(reached(answer), test_case.cells) << test_case.file;
    EXPECT_EQ(answer["none"].size(), test_case.none ? 1U : 0U) << test_case.file;
  }
  const Ended text = weir_here({"reach", "--diff", "HEAD~9"});
  EXPECT_THAT(text.out,
              testing::AllOf(HasSubstr("changed files that no cell runs: src/unused.cpp"),
                             HasSubstr("src/new.cpp: new since what it runs was recorded")));
  EXPECT_THAT(text.out, HasSubstr("9 files changed, 2 of 2 cells run something of it"));
  const Ended names = weir_here({"reach", "--diff", "HEAD~9", "--format", "cells"});
  EXPECT_EQ(names.out, k_dense + "\n" + k_sparse + "\n");
}

TEST_F(ReachOfAnEngine, DecidesWhichCellsAPushIsJudgedBy) {
  const std::string cache = (scratch_ / "cache").string();
  const auto push = [&] {
    const std::string line = "cd '" + scratch_.path().string() + "' && WEIR_CACHE='" + cache +
                             "' WEIR_LOCK_DIR='" + (scratch_ / "locks").string() +
                             "' HOME=/nonexistent git push -q origin HEAD:main > push.txt 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << slurp(scratch_ / "push.txt");
    return slurp(scratch_ / "push.txt");
  };
  git("init -q --bare -b main remote.git");
  spill(scratch_ / ".git/info/exclude", "remote.git\npush.txt\n");
  git("remote add origin remote.git");
  git("push -q origin main");
  git("fetch -q origin");
  record();
  EXPECT_EQ(weir_here({"hook", "install", "--build"}).exit_code, 0);

  spill(scratch_ / "src/dense.cpp", slurp(scratch_ / "src/dense.cpp") + "\n");
  spill(scratch_ / "src/unused.cpp", slurp(scratch_ / "src/unused.cpp") + "\n");
  commit("dense");
  const std::string first = push();
  EXPECT_THAT(first, HasSubstr("for they run nothing of what changed: mine/m/cpu/sparse\n"));
  EXPECT_THAT(first, HasSubstr("changed files that no cell runs: src/unused.cpp"));
  EXPECT_THAT(first, HasSubstr("1 of 1 cells judged by counts, none broke a limit"));

  // A file that dense runs has changed since it was recorded, so the functions that it calls now
  // are not known.
  const auto change_what_none_runs = [&] {
    spill(scratch_ / "src/unused.cpp", slurp(scratch_ / "src/unused.cpp") + "\n");
    commit("unused");
    git("fetch -q origin");
  };
  change_what_none_runs();
  EXPECT_THAT(push(), HasSubstr("1 of 1 cells judged by counts"));
  build();
  record();
  change_what_none_runs();
  const std::string none = push();
  EXPECT_THAT(none, HasSubstr("no cell runs anything of what changed, nothing to judge"));
  EXPECT_THAT(none, Not(HasSubstr("building")));

  EXPECT_EQ(weir_here({"hook", "install", "--build", "--all"}).exit_code, 0);
  change_what_none_runs();
  EXPECT_THAT(push(), HasSubstr("2 of 2 cells judged by counts"));
}

// Compiled as one file and optimised, dense() is a part of main(), of which no line is of its file.
TEST_F(ReachOfAnEngine, MayRunWhatIsInlined) {
  spill(scratch_ / "src/dense.cpp", "#include \"work.h\"\nint dense(int x) {\n  return x;\n}\n");
  spill(scratch_ / "all.cpp",
        "#include \"src/dense.cpp\"\n#include \"src/sparse.cpp\"\n#include \"main.cpp\"\n");
  spill_program(scratch_ / "build.sh",
                "#!/bin/sh\nexec " WEIR_CXX " -g -O2 -o engine all.cpp src/unused.cpp\n");
  commit("as one");
  build();
  record();
  for (const char* file : {"src/dense.cpp", "src/unused.cpp"}) {
    spill(scratch_ / file, slurp(scratch_ / file) + "\n");
    commit(std::string("change ") + file);
  }
  EXPECT_THAT(reached(diff("HEAD~2")), ElementsAre(k_dense, k_sparse));
  const Ended text = weir_here({"reach", "--diff", "HEAD~2"});
  EXPECT_THAT(text.out,
              HasSubstr("src/dense.cpp: it may run it: some of its functions are inlined"));
  EXPECT_THAT(text.out, HasSubstr("changed files that no cell runs: src/unused.cpp"));
}

TEST_F(ReachOfAnEngine, FollowsARenamedFileAndNamesWithSpacesAndNewlines) {
  record();
  git("mv src/dense.cpp 'src/a b\nc.cpp'");
  commit("renamed");
  EXPECT_THAT(reached(diff()), ElementsAre(k_dense));
}

TEST_F(ReachOfAnEngine, SaysWhatWasNeverRecordedAndReachesItByEverything) {
  write_work("unused", 2);
  commit("a change that nobody runs");
  const Json never = diff();
  EXPECT_THAT(reached(never), ElementsAre(k_dense, k_sparse));
  EXPECT_THAT(never["cells"][0]["unknown"].get<std::string>(), HasSubstr("never recorded"));
  const Ended recorded = weir_here({"reach", "--record", "--cell", k_dense});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  EXPECT_THAT(reached(diff()), ElementsAre(k_sparse));
}

TEST_F(ReachOfAnEngine, WithoutDebugInformationIsUnknown) {
  run_shell("sed -i 's/ -g / /' build.sh && ./build.sh && git checkout -q build.sh");
  record();
  write_work("unused", 2);
  commit("a change that nobody runs");
  const Json answer = diff();
  EXPECT_THAT(reached(answer), ElementsAre(k_dense, k_sparse));
  EXPECT_THAT(answer["cells"][0]["unknown"].get<std::string>(), HasSubstr("debug information"));
}

TEST_F(ReachOfAnEngine, TakesACoverageBuildsWordForIt) {
  spill(scratch_ / "coverage.json",
        R"({"gcc_version": "12.2.0", "current_working_directory": ")" + scratch_.path().string() +
            R"(/build", "files": [{"file": "../src/unused.cpp", "functions": [], "lines":
               [{"line_number": 2, "count": 1}]}]})");
  const Ended many = weir_here({"reach", "--record", "--coverage", "coverage.json"});
  EXPECT_EQ(many.exit_code, 2);
  const Ended recorded =
      weir_here({"reach", "--record", "--cell", k_dense, "--coverage", "coverage.json"});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  write_work("unused", 2);
  commit("now it is run");
  EXPECT_EQ(diff()["cells"][0]["by"][0]["why"], "it runs it");
}

// The engine is built a second time, elsewhere, as one that counts its lines.
TEST_F(ReachOfAnEngine, TakesWhatGcovPrints) {
  run_shell("mkdir weir-gcov && cd weir-gcov && " WEIR_CXX
            " --coverage -O0 -o engine ../main.cpp ../src/*.cpp && ./engine m 4 dense > out && "
            "gcov --json-format --stdout *.gcda > ../coverage.json");
  const Ended recorded =
      weir_here({"reach", "--record", "--cell", k_dense, "--coverage", "coverage.json"});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  for (const char* name : {"dense", "sparse"}) {
    write_work(name, 2);
    commit(name);
    const Ended ended = weir_here({"reach", "--diff", "HEAD~1", "--cell", k_dense, "--json", "-"});
    EXPECT_EQ(json_of(ended)["cells"][0]["reached"], name == std::string("dense")) << ended.out;
  }
}

TEST_F(ReachOfAnEngine, IsANoteOfTheGateBesideABase) {
  record();
  write_work("unused", 2);
  commit("a change that nobody runs");
  build();
  const auto notes = [&] {
    const Ended ended = weir_here({"gate", "--against", "HEAD~1", "--counts-only", "--json", "-"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return json_of(ended)["not_judged"].dump();
  };
  EXPECT_THAT(notes(), HasSubstr("changed files that no cell runs: src/unused.cpp"));
  write_work("dense", 2);
  commit("a change that a cell runs");
  build();
  EXPECT_THAT(notes(), Not(HasSubstr("no cell runs")));
}

TEST_F(ReachOfAnEngine, RefusesWhatItCanNotDo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"reach"},
                                             {"reach", "--record", "--diff", "HEAD"},
                                             {"reach", "--diff", "no-such-branch"},
                                             {"reach", "--diff", "--output=/tmp/x"},
                                             {"reach", "--diff", "HEAD", "--coverage", "x"},
                                             {"reach", "--diff", "HEAD", "--format", "xml"}}) {
    EXPECT_EQ(weir_here(words).exit_code, 2) << words.back();
  }
  // An engine that fails under valgrind is told; what was known stays.
  record();
  spill_program(scratch_ / "engine", "#!/bin/sh\necho broken >&2\nexit 3\n");
  const Ended broken = weir_here({"reach", "--record"});
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_THAT(broken.err, HasSubstr("it exited with code 3"));
  EXPECT_THAT(broken.err, HasSubstr("broken"));
  EXPECT_TRUE(fs::exists(scratch_ / "weir-out/reach/mine/m/cpu/dense.json"));
  EXPECT_THAT(reached(diff("HEAD")), IsEmpty());
}

}  // namespace reach_test
}  // namespace weir::e2e
