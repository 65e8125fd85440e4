// Records of what a cell executed.
#include "gate/profile/reach.hpp"

#include <random>

#include <gmock/gmock.h>

#include "gate/base/json.hpp"

namespace weir::profile {
namespace reach_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(NormalPath, TakesDotsOut) {
  const std::pair<const char*, const char*> cases[] = {{"a/./b/../c", "a/c"},
                                                       {"/a//b/", "/a/b"},
                                                       {"../x", "../x"},
                                                       {"/../x", "/x"},
                                                       {"./csu/../sysdeps/x.h", "sysdeps/x.h"},
                                                       {"", ""},
                                                       {"/", "/"}};
  for (const auto& [path, normal] : cases) EXPECT_EQ(normal_path(path), normal) << path;
}

TEST(PathBelow, CountsFromTheTopOnlyBelowIt) {
  EXPECT_EQ(path_below("/r/src/./a.cpp", "/r"), "src/a.cpp");
  EXPECT_EQ(path_below("/r2/src/a.cpp", "/r"), "/r2/src/a.cpp");
  EXPECT_EQ(path_below("/r/../x/a.cpp", "/r"), "/x/a.cpp");
}

TEST(Reach, ComesBackFromJsonAsItWas) {
  Reach reach;
  reach.cell = "e/m/cpu/p";
  reach.commit = "1a2b";
  reach.dirty = true;
  reach.source = "callgrind";
  add_executed(reach.executed, "src/a.cpp", "main");
  add_executed(reach.executed, "src/b.cpp", "");
  reach.executed.without_debug_info = {"/x/lib.so"};
  reach.ops = {"MUL_MAT"};
  for (const bool counted : {false, true}) {
    if (counted) reach.kernels = std::set<std::string>{"add_f32"};
    const auto text = dump_json(write_fields(reach), 1);
    const auto back = read_fields<Reach>(*parse_json(text), "reach");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, reach);
  }
  reach.executed.inlined.reset();  // unknown
  const auto unknown = read_fields<Reach>(*parse_json(dump_json(write_fields(reach), 1)), "reach");
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_EQ(*unknown, reach);
}

TEST(Reach, RefusesOtherJson) {
  for (const char* text : {"{}", "[]", "1", R"({"schema": "weir.reach/2"})",
                           R"({"schema": "weir.reach/1", "cell": "c", "commit": "", "dirty": false,
                              "source": "x", "files": {"a": 1}, "kernels_named": false})"}) {
    EXPECT_FALSE(read_fields<Reach>(*parse_json(text), "reach")) << text;
  }
}

// Output of llvm-cov 14 export -format=text, shortened.
constexpr std::string_view k_llvm = R"({"data": [{"files": [
  {"filename": "/r/src/a.cpp", "segments": [[1, 12, 4, true, true, false], [3, 2, 0, false, false, false]],
   "summary": {"lines": {"count": 3, "covered": 3}}},
  {"filename": "/r/src/b.cpp", "segments": [[1, 12, 0, true, true, false]],
   "summary": {"lines": {"count": 3, "covered": 0}}}],
  "functions": [{"name": "main", "count": 1, "filenames": ["/r/src/a.cpp"]},
                {"name": "unused", "count": 0, "filenames": ["/r/src/b.cpp"]}]}],
  "type": "llvm.coverage.json.export", "version": "2.0.1"})";

// Output of gcov 12 --json-format --stdout, shortened: one document a line.
constexpr std::string_view k_gcov =
    R"x({"gcc_version": "12.2.0", "current_working_directory": "/r/build", "files": [)x"
    R"x({"file": "../src/a.cpp", "functions": [{"name": "_Z1fv", "demangled_name": "f()", )x"
    R"x("execution_count": 2}], "lines": [{"line_number": 1, "count": 2}]}, )x"
    R"x({"file": "/usr/include/x.h", "lines": [{"line_number": 1, "count": 0}]}]})x"
    "\n"
    R"x({"gcc_version": "12.2.0", "current_working_directory": "/r/build", "files": [)x"
    R"x({"file": "../src/b.cpp", "functions": [], "lines": [{"line_number": 1, "count": 1}]}]})x"
    "\n";

TEST(ReadCoverage, TakesWhatClangPrints) {
  const auto read = read_coverage(k_llvm);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->files, ElementsAre(Pair("/r/src/a.cpp", ElementsAre("main"))));
}

TEST(ReadCoverage, TakesWhatGccPrintsOneDocumentALine) {
  const auto read = read_coverage(k_gcov);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->files, ElementsAre(Pair("/r/src/a.cpp", ElementsAre("f()")),
                                       Pair("/r/src/b.cpp", IsEmpty())));
}

TEST(ReadCoverage, RefusesWhatIsNone) {
  for (const char* text : {"", "x", "{}", "[]", R"({"type": "llvm.coverage.json.export"})"}) {
    EXPECT_FALSE(read_coverage(text)) << text;
  }
  EXPECT_THAT(read_coverage(R"({"gcc_version": "12", "files": []})").error().message,
              HasSubstr("no line of any file ran"));
}

TEST(ReadCoverage, TakesAnyTextWithoutHarm) {
  std::mt19937 random(11);
  for (int i = 0; i < 10'000; ++i) {
    std::string text(random() % 2 == 0 ? k_llvm : k_gcov);
    for (auto k = 1 + random() % 4; k > 0; --k) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
      }
      if (text.empty()) text = "{";
    }
    const auto read = read_coverage(text);
    EXPECT_TRUE(!read || !read->files.empty());
  }
}

TEST(AddExecuted, KeepsSomeFunctionsOfAFileAndNoMore) {
  Executed executed;
  for (int i = 0; i < 1000; ++i) add_executed(executed, "a.cpp", fmt::format("f{}", i));
  EXPECT_EQ(executed.files.at("a.cpp").size(), k_max_reach_functions);
  add_executed(executed, "", "f");
  add_executed(executed, std::string(10'000, 'x'), "f");
  EXPECT_EQ(executed.files.size(), 1U);
}

}  // namespace reach_test
}  // namespace weir::profile
