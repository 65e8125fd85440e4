// Files of profiles, and what engines and profilers wrote.
#include "gate/app/profile_files.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::app {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ProfileFiles : public testing::Test {
 protected:
  Result<ProfileFile> read(const std::string& text) {
    std::ofstream(file_, std::ios::binary) << text;
    return read_profile_file(file_.string(), sys::RealFiles());
  }
  void TearDown() override { fs::remove(file_); }

  fs::path file_ = fs::path(testing::TempDir()) /
                   (std::string("weir-") +
                    testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt");
};

TEST_F(ProfileFiles, HoldWhatAProfilerWrote) {
  const auto read_it = read(
      "Vulkan Timings:\n"
      "MUL_MAT q8_0 m=64 n=1 k=256: 4 x 2 us = 8 us\n"
      "Total time: 8 us.\n");
  ASSERT_TRUE(read_it) << read_it.error().message;
  ASSERT_TRUE(read_it->observed);
  EXPECT_EQ(read_it->observed->format, "vk-perf-logger");
  EXPECT_TRUE(read_it->profiles.empty());
}

TEST_F(ProfileFiles, NameAModelWithoutItsFolder) {
  const auto read_it = read(
      R"({"schema": "weir.observed/1", "format": "made",
          "context": {"model": "/home/someone/secret/tiny.gguf"},
          "ops": [{"op": "ADD", "calls": 1}]})");
  ASSERT_TRUE(read_it) << read_it.error().message;
  ASSERT_TRUE(read_it->observed);
  EXPECT_EQ(read_it->observed->context.model, "tiny.gguf");
}

TEST_F(ProfileFiles, ThatAreNeitherAreRefused) {
  struct Case {
    const char* text;
    const char* says;
  };
  const Case cases[] = {
      {R"({"schema": 1})", "no format that weir reads"},
      {R"({"schema": "weir.verdict/1"})", "it is weir.verdict/1, not a profile"},
      {R"({"schema": "weir.profiles/1"})", "it has no profiles"},
      {R"({"schema": "weir.profiles/1", "profiles": {"a": 1}})", "it has no profiles"},
      {R"({"schema": "weir.profiles/1", "profiles": [1]})", ""},
      {"[1, 2]", "no format that weir reads"},
      {"{", "no format that weir reads"},
  };
  for (const Case& one : cases) {
    const auto read_it = read(one.text);
    ASSERT_FALSE(read_it) << one.text;
    EXPECT_THAT(read_it.error().message, HasSubstr(one.says)) << one.text;
    EXPECT_THAT(read_it.error().message, HasSubstr(file_.string())) << one.text;
  }
}

}  // namespace
}  // namespace weir::app
