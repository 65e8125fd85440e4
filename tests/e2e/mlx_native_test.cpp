// docs/how-to/mlx-native.md's exporter, out of its own text: compiled against a stand-in of
// mlx-native's public interface (tests/e2e/mlx_native_stand_in.rs), run, and read by weir.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"
#include "tests/probes/support.hpp"
#include "tests/support/code_blocks.hpp"

namespace weir::e2e {
namespace mlx_native_test {

using testing::HasSubstr;
using testing::Not;

std::string exporter() {
  return tests::code_blocks(slurp(WEIR_SOURCE_DIR "/docs/how-to/mlx-native.md"), "rust");
}

// Three tokens that count, behind one that does not.
constexpr const char* k_program = R"(
fn main() {
    let now = || {
        [mlx_native::dispatch_count(), mlx_native::barrier_count(), mlx_native::sync_count(),
         mlx_native::cmd_buf_count()]
    };
    mlx_native::work();
    let mut export = WeirExport::begin(now());
    for _ in 0..3 {
        mlx_native::work();
        export.token(now());
    }
    print!("{}", export.json("qwen3.5-27b", "Apple \"M5\" Max"));
}
)";

class MlxNative : public testing::Test {
 protected:
  void SetUp() override {
    if (probes::run({"rustc", "--version"}, {}).status != 0) GTEST_SKIP() << "no rustc here";
    const std::string library = scratch_ / "libmlx_native.rlib";
    spill(scratch_ / "export.rs", exporter() + k_program);
    const auto stand_in = probes::run(
        {"rustc", "--edition", "2021", "--crate-type", "rlib", "--crate-name", "mlx_native", "-D",
         "warnings", WEIR_SOURCE_DIR "/tests/e2e/mlx_native_stand_in.rs", "-o", library},
        {});
    ASSERT_EQ(stand_in.status, 0) << stand_in.err;
    const auto built =
        probes::run({"rustc", "--edition", "2021", "-D", "warnings", "--extern",
                     "mlx_native=" + library, scratch_ / "export.rs", "-o", program()},
                    {});
    ASSERT_EQ(built.status, 0) << built.err;
  }
  [[nodiscard]] std::string program() const { return scratch_ / "export"; }
  // The exporter's file of a run with `env`.
  std::string exported(const std::map<std::string, std::string>& env) {
    const auto ran = probes::run({program()}, env);
    EXPECT_EQ(ran.status, 0) << ran.err;
    spill(scratch_ / "mlx.json", ran.out);
    return scratch_ / "mlx.json";
  }
  Scratch scratch_;
};

TEST_F(MlxNative, IsReadWithItsCountsPerToken) {
  const Ended shown = weir(scratch_, {"profile", exported({{"MLX_PROFILE_CB", "1"}})});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("mlx-native \u00b7 qwen3.5-27b \u00b7 Metal"));
  EXPECT_THAT(shown.out, HasSubstr("dispatches_per_token  1350\n"));
  EXPECT_THAT(shown.out, HasSubstr("barriers_per_token    440\n"));
  EXPECT_THAT(shown.out, HasSubstr("syncs_per_token       1\n"));
  EXPECT_THAT(shown.out, HasSubstr("4  800.0 us  150.0 us  250.0 us  layer.ffn \"moe\"\n"));
  EXPECT_THAT(shown.out, Not(HasSubstr("doubt")));
}

TEST_F(MlxNative, SaysThatNoDispatchIsTimedOnAppleSilicon) {
  const std::string file =
      exported({{"MLX_PROFILE_DISPATCH", "1"}, {"STAND_IN_APPLE_SILICON", "1"}});
  const Ended shown = weir(scratch_, {"profile", file});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("warning: no times of single dispatches: Apple silicon"));
  EXPECT_THAT(shown.out, HasSubstr("warning: MLX_PROFILE_CB is not set"));
}

TEST_F(MlxNative, HasDispatchesByKindAndBuffersWithMostTimeFirst) {
  const std::string file = exported({{"MLX_PROFILE_DISPATCH", "1"}, {"MLX_PROFILE_CB", "1"}});
  EXPECT_THAT(weir(scratch_, {"profile", file}).out, HasSubstr("1  820.0 us  Other\n"));
  const std::string buffers = weir(scratch_, {"profile", file, "--by", "buffer"}).out;
  ASSERT_NE(buffers.find("layer.ffn"), std::string::npos) << buffers;
  EXPECT_LT(buffers.find("layer.ffn"), buffers.find("layer.attn\n"));
}

}  // namespace mlx_native_test
}  // namespace weir::e2e
