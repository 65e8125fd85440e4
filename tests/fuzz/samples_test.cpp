// Runs the samples that ci/fuzz begins with, without a fuzzer, so that a broken target is noticed
// before it is needed.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"

#include "tests/fuzz/targets.hpp"

namespace {

TEST(FuzzTargets, TakeEverySampleAndHalfOfIt) {
  ASSERT_GT(k_fuzz_targets.size(), 15U);
  std::size_t samples = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/tests/adapters/data")) {
    if (!entry.is_regular_file() || entry.file_size() > 100'000) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
    for (const FuzzTarget& target : k_fuzz_targets) {
      SCOPED_TRACE(target.name);
      for (const std::size_t size : {text.size(), text.size() / 2}) {
        EXPECT_EQ(target.take(data, size), 0);
      }
    }
    ++samples;
  }
  EXPECT_GT(samples, 20U);
}

TEST(FuzzTargets, AreThereForEachFormat) {
  const std::vector<std::string> targets = weir::text::split(WEIR_FUZZ_FORMATS, ',');
  const std::set<std::string> with_target(targets.begin(), targets.end());
  std::set<std::string> formats;
  for (const auto& format : weir::adapters::formats()) formats.emplace(format.name);
  EXPECT_EQ(with_target, formats) << "tests/fuzz/CMakeLists.txt lists them";
}

}  // namespace
