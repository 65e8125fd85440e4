// Files of profiles, and what engines and profilers wrote.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/flow/profile_files.hpp"

namespace weir::flow {
namespace sides_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ProfileFiles : public testing::Test {
 protected:
  Result<ProfileFile> read(const std::string& text) {
    std::ofstream(file_, std::ios::binary) << text;
    return read_profile_file(file_.string(), sys::RealFiles());
  }
  Result<ProfileFile> read(const std::string& text, std::uint64_t max_whole_bytes) {
    std::ofstream(file_, std::ios::binary) << text;
    return read_profile_file(file_.string(), sys::RealFiles(), max_whole_bytes);
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
      {R"({"schema": 1})", "weir does not know this format"},
      {R"({"schema": "weir.verdict/1"})", "it is weir.verdict/1, not a profile"},
      {R"({"schema": "weir.profiles/1"})", "it has no profiles"},
      {R"({"schema": "weir.profiles/1", "profiles": {"a": 1}})", "it has no profiles"},
      {R"({"schema": "weir.profiles/1", "profiles": [1]})", ""},
      {"[1, 2]", "weir does not know this format"},
      {"{", "weir does not know this format"},
  };
  for (const Case& test_case : cases) {
    const auto read_it = read(test_case.text);
    ASSERT_FALSE(read_it) << test_case.text;
    EXPECT_THAT(read_it.error().message, HasSubstr(test_case.says)) << test_case.text;
    EXPECT_THAT(read_it.error().message, HasSubstr(file_.string())) << test_case.text;
  }
}

TEST_F(ProfileFiles, OfAChromeTraceMayBeLongerThanWhatIsReadAtOnce) {
  std::string text = R"({"schemaVersion": 1, "traceEvents": [)";
  for (int i = 0; i < 30'000; ++i) {  // 2 MB: more than one chunk
    text += fmt::format(R"({{"ph": "X", "name": "op {}", "pid": 1, "tid": 1, "ts": {}, "dur": 2}},)"
                        "\n",
                        i % 7, i * 3);
  }
  text += "{}]}\n";
  const auto unsplit = read(text, adapters::k_max_read_bytes);
  const auto pieces = read(text, 100'000);
  ASSERT_TRUE(unsplit) << unsplit.error().message;
  ASSERT_TRUE(pieces) << pieces.error().message;
  ASSERT_TRUE(unsplit->observed && pieces->observed);
  EXPECT_EQ(*pieces->observed, *unsplit->observed);
  ASSERT_EQ(pieces->observed->ops.size(), 7U);
  ASSERT_EQ(pieces->observed->tracks.size(), 1U);
  EXPECT_EQ(pieces->observed->tracks[0].events, 30'000);
  EXPECT_NEAR(pieces->observed->tracks[0].seconds, 0.06, 1e-9);  // 30 000 of 2 us

  const auto cut = read(text.substr(0, text.size() - 50), 100'000);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_TRUE(cut->observed->truncated);
  EXPECT_EQ(cut->observed->tracks[0].events, 29'999) << "the last one is not whole";
}

TEST_F(ProfileFiles, OfAChromeTraceTellWhenThingsTookPlaceHoweverLongItIs) {
  const std::string text = R"({"traceEvents": [
      {"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 5, "dur": 2}]})";
  for (const std::uint64_t max_whole_bytes : {std::uint64_t{10}, std::uint64_t{10'000}}) {
    std::ofstream(file_) << text;
    observed::ObservedMoments moments;
    const auto read_it =
        read_profile_file(file_.string(), sys::RealFiles(), max_whole_bytes, &moments);
    ASSERT_TRUE(read_it) << read_it.error().message;
    ASSERT_EQ(moments.spans.size(), 1U) << max_whole_bytes;
    EXPECT_NEAR(moments.spans[0].at, 5e-6, 1e-15);
    EXPECT_NEAR(moments.spans[0].length, 2e-6, 1e-15);
  }
}

std::string bytes_from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST_F(ProfileFiles, AreUnpackedWhereTheyArePackedWithGzip) {
  // gzip -9n of {"traceEvents": [{"ph": "X", "name": "ADD", "cat": "kernel", "ts": 1, "dur": 2,
  // …}]}
  const std::string trace = bytes_from_hex(
      "1f8b0800000000000203ab562a294a4c4e752d4bcd2b2956b25288ae562ac800d24a114a3a0a4a7989b9a9208ea3"
      "8b0b889b9c5802e265a716e5a5e68004c05a0c818c94d22220cb08c82ac84c818a954058b5b1b500d431c78d6500"
      "0000");
  const std::string newline = bytes_from_hex("1f8b0800000000000203e302009306d73201000000");
  // 100 000 zero bytes in 132.
  const std::string bomb = bytes_from_hex("1f8b0800000000000203edc13101000000c2a0f54f6d0d0fa0" +
                                          std::string(192, '0') + "8057037d9511d4a0860100");
  std::string damaged = trace;
  damaged[60] ^= 0x40;
  const struct {
    const char* what;
    std::string bytes;
    std::uint64_t max_whole_bytes;
    const char* says;  // "": it is read
  } cases[] = {
      {"a trace", trace, 10'000, ""},
      {"one read piece by piece", trace, 10, ""},
      {"two parts", trace + newline, 10'000, ""},
      {"padded with zero bytes", trace + std::string(512, '\0'), 10'000, ""},
      {"padded, piece by piece", trace + std::string(200'000, '\0'), 10, ""},
      {"padded between parts", trace + std::string(3, '\0') + newline, 10'000, ""},
      {"something behind the padding", trace + std::string(3, '\0') + "more", 10'000,
       "is damaged before byte"},
      {"the end is missing", trace.substr(0, 60), 10'000, "ends too early, at byte 60"},
      {"the end is missing, piece by piece", trace.substr(0, 60), 10, "ends too early"},
      {"its checksum is missing", trace.substr(0, 88), 10'000, "ends too early, at byte 88"},
      {"a bit is another", damaged, 10'000, "is damaged before byte"},
      {"something behind it", trace + "more", 10'000, "is damaged before byte"},
      {"much of nothing", bomb, 10'000, "larger than 0 MiB unpacked, which only a Chrome trace"},
  };
  for (const auto& c : cases) {
    const auto read_it = read(c.bytes, c.max_whole_bytes);
    if (c.says == std::string()) {
      ASSERT_TRUE(read_it) << c.what << ": " << read_it.error().message;
      EXPECT_EQ(read_it->observed->format, "chrome-trace") << c.what;
      continue;
    }
    ASSERT_FALSE(read_it) << c.what;
    EXPECT_THAT(read_it.error().message, HasSubstr(c.says)) << c.what;
    EXPECT_THAT(read_it.error().message, HasSubstr(file_.string())) << c.what;
  }
}

TEST_F(ProfileFiles, ThatAreLongAndNoTraceAreRefused) {
  const std::uint64_t mib = 1 << 20;
  struct Case {
    std::string text;
    const char* says;
  };
  const Case cases[] = {
      {std::string(mib + 1, 'x'), "larger than 1 MiB, which only a Chrome trace"},
      {"[" + std::string(mib, ' ') + "1]", "larger than 1 MiB"},
      {"\x1F\x8B" + std::string(mib, 'x'), "gzip"},
      {R"({"traceEvents": [)" + std::string(mib, ' ') + "]}",
       "no whole part of the format chrome-trace"},
  };
  for (const Case& test_case : cases) {
    const auto refused = read(test_case.text, mib);
    ASSERT_FALSE(refused) << test_case.says;
    EXPECT_EQ(refused.error().code, Code::data);
    EXPECT_THAT(refused.error().message, HasSubstr(test_case.says));
    EXPECT_THAT(refused.error().message, HasSubstr(file_.string()));
  }
}

TEST(Sides, OfJsonLinesAreNoRunsWhereAnEngineWroteThem) {
  sys::RealWorld real;
  const sys::Files& files = real.world().files;
  const std::string data = std::string(WEIR_SOURCE_DIR) + "/tests/adapters/data/";
  EXPECT_FALSE(holds_run(data + "llama-bench.jsonl", files));
  EXPECT_FALSE(holds_run(data, files)) << "a folder without a journal";
  std::optional<MeasuredRun> run;
  const auto read = read_profiles(Job{real.world()}, data + "llama-bench.jsonl", run);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->observed.has_value());
  EXPECT_FALSE(run);
}

}  // namespace sides_test
}  // namespace weir::flow
