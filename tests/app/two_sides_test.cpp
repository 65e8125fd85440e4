// What a side of a comparison is.
#include "gate/app/two_sides.hpp"

#include <gtest/gtest.h>

namespace weir::app {
namespace {

TEST(Sides, OfJsonLinesAreNoRunsWhereAnEngineWroteThem) {
  const sys::RealFiles files;
  const std::string data = std::string(WEIR_SOURCE_DIR) + "/tests/adapters/data/";
  EXPECT_FALSE(holds_run(data + "llama-bench.jsonl", files));
  EXPECT_FALSE(holds_run(data, files)) << "a folder without a journal";
  std::optional<Measured> run;
  const auto read = read_side({}, data + "llama-bench.jsonl", files, run);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->observed.has_value());
  EXPECT_FALSE(run);
}

}  // namespace
}  // namespace weir::app
