// The C++ face, in this very process: it says what the functions say.
#include <thread>

#include "gate/probes/read/fit.hpp"

#include "tests/probes/instrument/support.hpp"
#include "weir/instrument.hpp"

namespace weir::probes {
namespace {

using testing::HasSubstr;

std::string dumped() {
  const Folder folder;
  const std::string path = folder.path() + "/dump";
  std::FILE* file = std::fopen(path.c_str(), "w");
  weir_profile_dump(fileno(file));
  std::fclose(file);
  return slurp(path);
}

TEST(InstrumentFace, MarksByScopesThatEndThemselves) {
  const instrument::Device device("metal", "integrated", "A GPU of C++");
  const instrument::Queue queue(device);
  EXPECT_FALSE(instrument::enabled(WEIR_PROFILE_COUNTS | WEIR_PROFILE_OPS));
  { const instrument::Op op("NOT_COUNTED", device); }
  weir_profile_enable(WEIR_PROFILE_COUNTS | WEIR_PROFILE_OPS);
  EXPECT_TRUE(instrument::enabled(WEIR_PROFILE_OPS));
  weir_profile_reset();
  const instrument::Buffer none("not asked for");
  EXPECT_EQ(none.id(), 0U);
  for (int i = 0; i < 3; ++i) {
    instrument::Op outer("OUTER", device, 4);
    outer.operand("f16", {8, 2, 1, 1});
    const instrument::Op inner("INNER", device);
    queue.dispatch("kernel");
    queue.dispatch("kernel", 1, 2, 3);
    queue.barrier();
    queue.copy(WEIR_COPY_TO_HOST, 4);
    queue.submit();
    const instrument::Wait wait(queue);
  }
  std::thread([&] { const instrument::Op op("OTHER", device); }).join();
  instrument::token(1);
  const std::string text = dumped();
  EXPECT_THAT(text, testing::ContainsRegex("A GPU of C\\+\\+ 0 +6 +3 +3 +3 +3\n"));
  EXPECT_THAT(text, testing::ContainsRegex("OUTER +3 "));
  EXPECT_THAT(text, testing::ContainsRegex("INNER +3 "));
  EXPECT_THAT(text, testing::ContainsRegex("OTHER +1 "));
  EXPECT_THAT(text, testing::Not(HasSubstr("NOT_COUNTED")));
  weir_profile_enable(0);
}

TEST(InstrumentFace, IsSeenInProgramsThatHaveItAndInNoOthers) {
  const sys::RealFiles files;
  const auto none = [](std::string_view) { return std::nullopt; };
  const auto engine = read_program_facts(WEIR_INSTRUMENT_ENGINE, files, none);
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_TRUE(engine->holds_marks);
  // A program that searches for the word must not contain it: weir would be taken for an engine
  // with marks.
  EXPECT_THAT(slurp(WEIR_PROBES_LIBRARY), testing::Not(HasSubstr("weir-instrument-"
                                                                 "abi-")));
}

// Installed anywhere (cmake --install --prefix), or moved after that.
TEST(InstrumentFace, IsFoundByPkgConfigWhereverItLies) {
  if (run({"pkg-config", "--version"}, {}).status != 0) GTEST_SKIP() << "no pkg-config here";
  if (WEIR_INSTALL_LIBDIR[0] == '/') GTEST_SKIP() << "configured for one folder alone";
  const Folder folder;
  const std::string library = folder.path() + "/" + WEIR_INSTALL_LIBDIR;
  std::filesystem::create_directories(library + "/pkgconfig");
  std::filesystem::create_directories(folder.path() + "/include");
  std::filesystem::copy(WEIR_INSTRUMENT_PC, library + "/pkgconfig/weir-instrument.pc");
  for (const auto& [variable, expected] : std::map<std::string, std::string>{
           {"libdir", library}, {"includedir", folder.path() + "/include"}}) {
    const Ran ran = run({"pkg-config", "--variable=" + variable, "weir-instrument"},
                        {{"PKG_CONFIG_PATH", library + "/pkgconfig"}});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const std::string path = ran.out.substr(0, ran.out.find('\n'));
    EXPECT_EQ(std::filesystem::weakly_canonical(path), std::filesystem::canonical(expected));
  }
}

}  // namespace
}  // namespace weir::probes
