// The examples of docs/how-to/instrument.md, out of its own text: compiled, run, and what they mark
// looked at.
#include "tests/probes/instrument/support.hpp"
#include "tests/support/code_blocks.hpp"

namespace weir::probes {
namespace {

std::string blocks(const std::string& language) {
  return tests::code_blocks(slurp(WEIR_SOURCE_DIR "/docs/how-to/instrument.md"), language);
}

bool has(const std::string& program) { return run({program, "--version"}, {}).status == 0; }

const std::string k_include = std::string("-I") + WEIR_INSTRUMENT_INCLUDE;
const std::string k_folder = std::filesystem::path(WEIR_INSTRUMENT_LIBRARY).parent_path().string();

// Compiles `source` with `compiler` and returns the output of the program.
std::string printed_by(const std::string& name, const std::string& source,
                       std::vector<std::string> compiler) {
  const Folder folder;
  const std::string file = folder.path() + "/" + name;
  std::ofstream(file) << source;
  const std::string program = folder.path() + "/program";
  for (std::string& word : compiler) {
    if (word == "FILE") word = file;
    if (const auto at = word.find("PROGRAM"); at != std::string::npos) word.replace(at, 7, program);
  }
  const Ran compiled = run(compiler, {});
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  const Ran ran =
      run({program}, {{"WEIR_PROFILE", "counts,ops,cb"}, {"LD_LIBRARY_PATH", k_folder}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran.err;
}

TEST(InstrumentDocs, HaveAnExampleInC) {
  // Every function of the page once.
  const std::string calls = R"(
int main(void) {
  const int64_t ne[4] = {8, 1, 1, 1};
  engine_open();
  engine_upload(4);
  engine_op("MUL_MAT", 0, ne);
  engine_barrier();
  engine_commit();
  engine_wait();
  engine_done(engine_encode(), 1, 2);
  engine_token_done();
  engine_prefill_done(8);
  return 0;
}
)";
  const std::string printed =
      printed_by("example.c", blocks("c") + calls,
                 {"cc", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", k_include, "FILE",
                  "-o", "PROGRAM", "-L" + k_folder, "-lweir_instrument"});
  EXPECT_THAT(printed, testing::ContainsRegex("Apple M4 0 +3 +1 +1 +2 +1\n"));
  EXPECT_THAT(printed, testing::ContainsRegex("MUL_MAT +1 "));
  EXPECT_THAT(printed, testing::ContainsRegex("decode +1 "));
}

// Two layers in C++, one in the others.
TEST(InstrumentDocs, HaveAnExampleInCxx) {
  const std::string printed =
      printed_by("example.cpp", blocks("cpp"),
                 {"c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", k_include, "FILE", "-o",
                  "PROGRAM", "-L" + k_folder, "-lweir_instrument"});
  EXPECT_THAT(printed, testing::ContainsRegex("Apple M4 0 +2 +2 +0 +1 +1\n"));
  EXPECT_THAT(printed, testing::ContainsRegex("ATTENTION +2 "));
}

TEST(InstrumentDocs, HaveAnExampleInRust) {
  if (!has("rustc")) GTEST_SKIP() << "no rustc here";
  const std::string printed = printed_by(
      "example.rs", blocks("rust"),
      {"rustc", "--edition", "2021", "-D", "warnings", "-L", k_folder, "FILE", "-o", "PROGRAM"});
  EXPECT_THAT(printed, testing::ContainsRegex("flash_attention +1\n"));
  EXPECT_THAT(printed, testing::ContainsRegex("ATTENTION +1 "));
}

// The compiler that ci/macos gets, where that has run.
TEST(InstrumentDocs, HaveAnExampleInZig) {
  const std::string cache = WEIR_SOURCE_DIR "/.cache/zig";
  std::string zig, library;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(cache, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("linux-x64-")) zig = entry.path() / "bin/zig";
    if (name.starts_with("lib-")) library = entry.path();
  }
  if (zig.empty() || library.empty()) GTEST_SKIP() << "no Zig here: ci/macos gets it";
  const std::string printed =
      printed_by("example.zig", blocks("zig"),
                 {"env", "ZIG_LIB_DIR=" + library, "ZIG_GLOBAL_CACHE_DIR=" + cache + "/built",
                  "ZIG_LOCAL_CACHE_DIR=" + cache + "/built", zig, "build-exe", "FILE", "-lc",
                  "-L" + k_folder, "-lweir_instrument", "-femit-bin=PROGRAM"});
  EXPECT_THAT(printed, testing::ContainsRegex("flash_attention +1\n"));
  EXPECT_THAT(printed, testing::ContainsRegex("ATTENTION +1 "));
}

}  // namespace
}  // namespace weir::probes
