// `weir kernels OLD NEW` on files with GPU code.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"
#include "tests/probes/amd_bytes.hpp"

namespace weir::e2e {
namespace builds_test {

using testing::AllOf;
using testing::HasSubstr;

std::string object(std::uint32_t spilled) {
  const std::string code = std::string(256, static_cast<char>(spilled));
  const auto kernel = [&](const std::string& name) {
    return probes::AmdKernelBytes{
        name, code, {{".vgpr_count", 128}, {".vgpr_spill_count", spilled}, {".sgpr_count", 8}}};
  };
  const probes::AmdObjectBytes bytes{.kernels = {kernel("_Z4ropeILi64EEvPf"), kernel("scale")}};
  return bytes.str();
}

class Builds : public testing::Test {
 protected:
  void SetUp() override {
    spill(scratch_ / "old/kernels.hsaco", object(0));
    spill(scratch_ / "old/readme.txt", "no code");
    spill(scratch_ / "new/a/b.bin", probes::bundle_bytes({{"gfx942", object(51)}}));
    fs::create_symlink("..", scratch_ / "new/a/loop");
  }
  Ended kernels(std::vector<std::string> words) {
    words.insert(words.begin(), "kernels");
    return weir(scratch_, words);
  }
  Scratch scratch_;
};

TEST_F(Builds, OfTwoFoldersAreComparedByGpuAndSymbol) {
  const Ended ended = kernels({"old", "new"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("gfx942  2 → 2 kernels"), HasSubstr("0 → 51"),
                               HasSubstr("rope<64>"), HasSubstr("no time")));
  EXPECT_THAT(kernels({"old", "old"}).out, HasSubstr("gfx942  2 kernels: the same code"));
}

TEST_F(Builds, FailWhereALimitIsBroken) {
  const Ended failed = kernels({"old", "new", "--max-increase", "spilled_registers=0", "--json"});
  EXPECT_EQ(failed.exit_code, 1);
  const Json json = Json::parse(failed.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << failed.out;
  EXPECT_EQ(json["broken"], 2);
  EXPECT_EQ(json["targets"][0]["kernels"][0]["now"]["spilled_vgprs"], 51);
  EXPECT_EQ(kernels({"old", "new", "--max-increase", "spilled_vgprs=51"}).exit_code, 0);
  EXPECT_EQ(kernels({"old", "new", "--max-decrease", "occupancy=0"}).exit_code, 0);
}

TEST_F(Builds, ThatCannotBeComparedAreUsageErrors) {
  spill(scratch_ / "broken.co", "__CLANG_OFFLOAD_BUNDLE__" + std::string(8, '\xff'));
  struct Case {
    std::vector<std::string> words;
    const char* message;
    int exit_code = 2;
  };
  const std::vector<Case> cases = {
      {{"old", "absent"}, "absent: no such file or folder"},
      {{"old", "new", "--target", "gfx1100"}, "no GPU code for gfx1100"},
      {{"old", "new", "--max-increase", "spills=0"}, "unknown figure \"spills\""},
      {{"old", "new", "--max-increase", "registers"}, "write FIGURE=AMOUNT"},
      {{"old", "new", "--diff", "rope*"}, "without --diff"},
      {{"old", "--max-increase", "registers=0"}, "weir kernels OLD NEW"},
      {{"old", "broken.co"}, "broken.co: AMD code: a bundle of", 3}};
  for (const Case& c : cases) {
    const Ended ended = kernels(c.words);
    EXPECT_EQ(ended.exit_code, c.exit_code) << c.message << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(c.message));
  }
}

}  // namespace builds_test
}  // namespace weir::e2e
