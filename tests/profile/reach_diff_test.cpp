// Changed files mapped to cells.
#include "gate/profile/reach_diff.hpp"

#include <random>

#include <gmock/gmock.h>

namespace weir::profile {
namespace reach_diff_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FileKind, IsReadFromThePath) {
  const std::vector<std::pair<const char*, FileKind>> cases = {
      {"src/a.cpp", FileKind::source},
      {"main.c", FileKind::source},
      {"src/reader.py", FileKind::anything},
      {"model.bin", FileKind::anything},
      {"src/exports.map", FileKind::anything},
      {"src/notice_queue.cpp", FileKind::source},
      {"src/copying_gc.h", FileKind::anything},
      {"license.c", FileKind::source},
      {"LICENSE-MIT", FileKind::documents},
      {"NOTICE", FileKind::documents},
      {"src/a.h", FileKind::anything},
      {"src/A.HPP", FileKind::anything},
      {"ggml/src/ggml-cuda/common.cuh", FileKind::anything},
      {"ggml/src/tables.inc", FileKind::anything},
      {"shaders/types.glsl", FileKind::anything},
      {"CMakeLists.txt", FileKind::anything},
      {"cmake/x64-toolchain.txt", FileKind::anything},
      {"cmake/find.cmake", FileKind::anything},
      {"tests/CMakeLists.txt", FileKind::anything},
      {"tests/engine.h", FileKind::anything},
      {"Makefile", FileKind::anything},
      {"build.ninja", FileKind::anything},
      {"configure", FileKind::anything},
      {".gitmodules", FileKind::anything},
      {"perf/weir.yaml", FileKind::anything},
      {"ggml/vulkan-shaders/mul_mat_vec.comp", FileKind::shader},
      {"ggml/src/ggml-cuda/mmq.cu", FileKind::shader},
      {"ggml-metal.metal", FileKind::shader},
      {"kernels/gemm.cl", FileKind::shader},
      {"README", FileKind::documents},
      {"ggml/README.txt", FileKind::documents},
      {"src/notes.md", FileKind::documents},
      {"docs/example.h", FileKind::documents},
      {".github/workflows/ci.yml", FileKind::documents},
      {"tests/a_test.cpp", FileKind::tests},
      {"src/tests.cpp", FileKind::source},
      {"latest/a.cpp", FileKind::source},
  };
  for (const auto& [path, kind] : cases) EXPECT_EQ(file_kind(path), kind) << path;
}

TEST(CommonEnd, CountsNamesThatAreTheSameFromTheEnd) {
  EXPECT_EQ(common_end("x/src/a.cpp", "y/src/a.cpp"), 2U);
  EXPECT_EQ(common_end("/src/a.cpp", "src/a.cpp"), 2U);
  EXPECT_EQ(common_end("a.cpp", "a.cpp"), 1U);
  EXPECT_EQ(common_end("xa.cpp", "a.cpp"), 0U);
  EXPECT_EQ(common_end("", ""), 0U);
}

TEST(ParseRawDiff, ReadsNamesRenamesAndSubmodules) {
  using namespace std::string_literals;
  const auto read = parse_raw_diff(
      ":100644 100644 90b13b2 acbd969 M\0src/a b.cpp\0"
      ":100644 100644 90b13b2 acbd969 R086\0old.cpp\0new\n.cpp\0"
      ":100644 100644 90b13b2 acbd969 C100\0from.cpp\0to.cpp\0"
      ":160000 160000 90b13b2 acbd969 M\0third\0"
      ":100644 000000 90b13b2 0000000 D\0gone.cpp\0"s);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(
      *read,
      ElementsAre(ChangedFile{"src/a b.cpp", "", false}, ChangedFile{"new\n.cpp", "old.cpp", false},
                  ChangedFile{"to.cpp", "", false, true}, ChangedFile{"third", "", true},
                  ChangedFile{"gone.cpp", "", false}));
  EXPECT_THAT(*parse_raw_diff(""), IsEmpty());
}

TEST(ParseRawDiff, RefusesWhatGitDoesNotPrint) {
  using namespace std::string_literals;
  for (const std::string& text :
       {"x"s, ":100644 100644 a b M"s, ":100644 100644 a b M\0"s, ":100644 100644 a b M\0\0"s,
        ":100644 100644 a b R100\0one\0"s, "100644 100644 a b M\0x\0"s, ":1 2 3 4 \0x\0"s}) {
    EXPECT_FALSE(parse_raw_diff(text)) << text;
  }
}

Reach ran(std::vector<std::string> files, std::set<std::string> kernels = {}) {
  Reach reach;
  for (const std::string& file : files) add_executed(reach.executed, file, "f");
  reach.kernels = std::move(kernels);
  reach.kernels_named = true;
  return reach;
}

// Names of the cells that one change reaches, and the reason in the first of them.
struct Answer {
  std::vector<std::string> cells;
  std::string why;
  bool none = false, quiet = false;
};
Answer ask(const std::vector<CellReach>& cells, ChangedFile changed,
           std::vector<std::string> files = {}) {
  files.insert(files.end(), {"src/a.cpp", "src/b.cpp", "x/src/a.cpp", "main.cpp"});
  const DiffReach reach = reach_of_diff(cells, std::vector{std::move(changed)}, files);
  Answer answer;
  for (const ReachedCell& cell : reach.cells) {
    if (cell.changed_code_run.empty()) continue;
    answer.cells.push_back(cell.cell);
    if (answer.why.empty()) answer.why = cell.changed_code_run.front().why;
  }
  answer.none = !reach.unreached_files.empty();
  answer.quiet = !reach.quiet_files.empty();
  return answer;
}

TEST(ReachOfDiff, NamesTheCellsThatExecuteAChangedFile) {
  const std::vector<CellReach> cells = {{"one", "cpu", ran({"src/a.cpp", "src/b.cpp"})},
                                        {"two", "cpu", ran({"src/b.cpp"})}};
  EXPECT_THAT(ask(cells, {"src/a.cpp"}).cells, ElementsAre("one"));
  EXPECT_THAT(ask(cells, {"src/b.cpp"}).cells, ElementsAre("one", "two"));
  const Answer unseen = ask(cells, {"src/c.cpp"});
  EXPECT_THAT(unseen.cells, IsEmpty());
  EXPECT_TRUE(unseen.none);
}

// An inlined call may leave no line in the coverage.
TEST(ReachOfDiff, NeverSaysNoOfCodeThatMayBeInlined) {
  std::vector<CellReach> cells = {{"one", "cpu", ran({"src/b.cpp"})},
                                  {"two", "cpu", ran({"src/b.cpp"})}};
  cells[0].reach->executed.inlined = {"/build/src/a.cpp"};
  const Answer answer = ask(cells, {"src/a.cpp"});
  EXPECT_THAT(answer.cells, ElementsAre("one"));
  EXPECT_THAT(answer.why, HasSubstr("it may run it: some of its functions are inlined"));
  EXPECT_FALSE(answer.none);
  EXPECT_THAT(ask(cells, {"src/z.cpp", "src/a.cpp"}).cells, ElementsAre("one")) << "renamed";
  cells[1].reach->executed.inlined.reset();
  EXPECT_THAT(ask(cells, {"src/c.cpp"}).cells, ElementsAre("two"));
  EXPECT_THAT(ask(cells, {"src/c.cpp"}).why, HasSubstr("what is inlined was not recorded"));
  EXPECT_THAT(ask(cells, {"README.md"}).cells, IsEmpty());
}

TEST(ReachOfDiff, FollowsARenamedFileByItsOldName) {
  const std::vector<CellReach> cells = {{"one", "cpu", ran({"src/a.cpp"})}};
  const Answer answer = ask(cells, {"src/z.cpp", "src/a.cpp"});
  EXPECT_THAT(answer.cells, ElementsAre("one"));
  EXPECT_EQ(answer.why, "it runs it, as src/a.cpp");
}

TEST(ReachOfDiff, FindsFilesOfABuildElsewhereByTheLongestCommonEnd) {
  struct Case {
    const char *ran, *changed;
    bool reached;
    const char* because;
  };
  const Case cases[] = {
      {"/build/src/a.cpp", "src/a.cpp", true, "all of the name, behind a build's folder"},
      {"/build/x/src/a.cpp", "src/a.cpp", false, "x/src/a.cpp fits better"},
      {"/build/x/src/a.cpp", "x/src/a.cpp", true, "the best there is"},
      {"/build/y/src/a.cpp", "src/a.cpp", true, "two fit equally: both"},
      {"/build/y/src/a.cpp", "x/src/a.cpp", true, "two fit equally: both"},
      {"/build/elsewhere/b.cpp", "src/b.cpp", false, "a file's name alone is not enough"},
      {"/build/here/main.cpp", "main.cpp", true, "a file at the top has no folder to compare"},
      {"/build/a.cpp/src/b.cpp", "src/a.cpp", false, "another file"},
      {"x/src/a.cpp", "src/a.cpp", false, "another file of this repository"},
  };
  for (const Case& entry : cases) {
    // b.cpp gives the record debug information.
    const std::vector<CellReach> cells = {{"c", "cpu", ran({entry.ran, "src/b.cpp"})}};
    if (std::string_view(entry.changed) == "src/b.cpp") {
      const std::vector<CellReach> without_debug = {{"c", "cpu", ran({entry.ran, "main.cpp"})}};
      EXPECT_EQ(!ask(without_debug, {entry.changed}).cells.empty(), entry.reached) << entry.because;
      continue;
    }
    EXPECT_EQ(!ask(cells, {entry.changed}).cells.empty(), entry.reached)
        << entry.ran << " " << entry.changed << ": " << entry.because;
  }
}

TEST(ReachOfDiff, HeadersBuildFilesAndSubmodulesReachEveryCell) {
  const std::vector<CellReach> cells = {{"one", "cpu", ran({"src/a.cpp"})},
                                        {"two", "vulkan", ran({"src/b.cpp"})}};
  for (const char* path : {"src/x.h", "CMakeLists.txt", ".gitmodules", "weir.yaml"}) {
    EXPECT_THAT(ask(cells, {path}).cells, ElementsAre("one", "two")) << path;
  }
  EXPECT_THAT(ask(cells, {"third", "", true}).cells, ElementsAre("one", "two"));
}

TEST(ReachOfDiff, DocumentsAndTestsThatNoCellRunsAreNoAlarm) {
  const std::vector<CellReach> cells = {{"one", "cpu", ran({"src/a.cpp", "tests/bench.cpp"})}};
  for (const char* path : {"README.md", "docs/x.png", "tests/a.cpp", ".github/w.yml"}) {
    const Answer answer = ask(cells, {path});
    EXPECT_TRUE(answer.cells.empty() && answer.quiet && !answer.none) << path;
  }
  EXPECT_THAT(ask(cells, {"tests/bench.cpp"}).cells, ElementsAre("one"));
}

TEST(ReachOfDiff, ShadersReachTheCellsWhoseKernelsAreNamedAfterThem) {
  Reach nameless = ran({"src/a.cpp"}, {"1a2b"});
  nameless.kernels_named = false;
  Reach uncounted = ran({"src/a.cpp"});
  uncounted.kernels.reset();
  const std::vector<CellReach> cells = {
      {"mat", "vulkan", ran({"src/a.cpp"}, {"add_f32", "mul_mat_vec_q4_0_f32_f32"})},
      {"add", "vulkan", ran({"src/a.cpp"}, {"add_f32"})},
      {"cuda", "cuda", ran({"src/a.cpp"}, {"mul_mat_vec_q"})},
      {"cpu", "cpu", ran({"src/a.cpp"})},
      {"nameless", "vulkan", nameless},
      {"uncounted", "vulkan", uncounted},
  };
  EXPECT_THAT(ask(cells, {"s/mul_mat_vec.comp"}).cells,
              ElementsAre("mat", "nameless", "uncounted"));
  EXPECT_EQ(ask(cells, {"s/mul_mat_vec.comp"}).why, "it runs the kernel mul_mat_vec_q4_0_f32_f32");
  EXPECT_THAT(ask(cells, {"s/add.comp"}).cells, ElementsAre("mat", "add", "nameless", "uncounted"));
  // No recorded name matches this file: unknown is not "no".
  EXPECT_THAT(ask(cells, {"s/soft_max.comp"}).cells,
              ElementsAre("mat", "add", "nameless", "uncounted"));
  EXPECT_THAT(ask(cells, {"s/soft_max.cu"}).cells, ElementsAre("cuda"));
  EXPECT_TRUE(ask(cells, {"s/soft_max.metal"}).none) << "no cell has that device";
}

TEST(ReachOfDiff, WhatWasNeverRecordedIsReachedByEverything) {
  const std::vector<CellReach> cells = {{"never", "vulkan", std::nullopt}};
  for (const char* path : {"src/c.cpp", "tests/x.cpp", "x.h", "s/mul.comp"}) {
    EXPECT_THAT(ask(cells, {path}).cells, ElementsAre("never")) << path;
  }
  EXPECT_THAT(ask(cells, {"src/c.cpp"}).why, HasSubstr("never recorded"));
  EXPECT_TRUE(ask(cells, {"README.md"}).quiet) << "nothing runs a document";
}

TEST(ReachOfDiff, ARecordWithoutDebugInformationIsNoRecord) {
  // Files in glibc's own debug information, and a library of the system's.
  Reach none = ran({"elf/rtld.c", "/usr/include/c++/12/bits/vector.tcc"});
  EXPECT_THAT(ask({{"c", "cpu", none}}, {"src/c.cpp"}).why, HasSubstr("no debug information"));
  Reach part = ran({"src/a.cpp"});
  part.executed.without_debug_info = {"/usr/lib/libgomp.so.1"};
  EXPECT_THAT(ask({{"c", "cpu", part}}, {"src/c.cpp"}).cells, IsEmpty());
  part.executed.without_debug_info.insert("/build/libggml.so");
  EXPECT_EQ(ask({{"c", "cpu", part}}, {"src/c.cpp"}).why,
            "libggml.so ran without debug information");
}

TEST(WordsOfNone, AreOneLineThatNamesTen) {
  DiffReach reach;
  EXPECT_EQ(unreached_files_text(reach), "");
  reach.unreached_files = {"a\n::error::x.cpp", "b\x1b[31m.cpp"};
  EXPECT_EQ(unreached_files_text(reach),
            "changed files that no cell runs: a?::error::x.cpp, b.cpp");
  reach.unreached_files.assign(13, "a.cpp");
  EXPECT_THAT(unreached_files_text(reach), testing::EndsWith("a.cpp (+3 more)"));
}

TEST(ParseRawDiff, TakesAnyBytesWithoutHarm) {
  std::mt19937 random(7);
  const std::string parts[] = {":100644 100644 a b M",
                               ":1 160000 a b R9",
                               "src/a.cpp",
                               "",
                               std::string(1, '\0'),
                               "\xff",
                               ":"};
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    for (auto k = random() % 12; k > 0; --k)
      text += parts[random() % 7] + std::string(random() % 2, '\0');
    const auto read = parse_raw_diff(text);
    if (!read) continue;
    for (const ChangedFile& file : *read) EXPECT_FALSE(file.path.empty());
    const std::vector<CellReach> cells = {{"c", "vulkan", ran({"src/a.cpp"})}};
    const DiffReach reach = reach_of_diff(cells, *read, {});
    EXPECT_LE(reach.unreached_files.size() + reach.quiet_files.size(), read->size());
  }
}

}  // namespace reach_diff_test
}  // namespace weir::profile
