// Every saved output is of the format it should be, and is read into what its golden file says:
// checked by hand against each format's description.
#include "tests/adapters/samples.hpp"

#include <cstdlib>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

#include "tests/adapters/read_data.hpp"
#include "tests/support/golden.hpp"

namespace weir::adapters {
namespace samples_test {

namespace fs = std::filesystem;

std::string data_or_nothing(const char* name) { return *name == '\0' ? "" : read_data(name); }

TEST(Samples, AreReadIntoWhatTheirGoldenFilesSay) {
  for (const SampleFile& sample : samples()) {
    const std::string out = data_or_nothing(sample.out);
    const std::string err = data_or_nothing(sample.err);
    const auto read = read_any({out, err});
    if (*sample.format == '\0') {
      EXPECT_FALSE(read) << sample.name << " was taken for " << read->format;
      continue;
    }
    ASSERT_TRUE(read) << sample.name << ": " << read.error().message;
    EXPECT_EQ(read->format, sample.format) << sample.name;
    const Json json = write_fields(*read);
    tests::expect_file("tests/golden/adapters/" + std::string(sample.name) + ".json",
                       dump_json(json, 1) + "\n");
    const auto back = read_fields<observed::Observed>(json, "observed");
    ASSERT_TRUE(back) << sample.name << ": " << back.error().message;
    EXPECT_EQ(*back, *read) << sample.name;
  }
}

TEST(Samples, AreAllInTheTable) {
  std::set<std::string> used{"README.md"};
  for (const SampleFile& sample : samples()) {
    used.insert(sample.out);
    used.insert(sample.err);
  }
  for (const auto& entry :
       fs::directory_iterator(fs::path(WEIR_SOURCE_DIR) / "tests/adapters/data")) {
    const std::string name = entry.path().filename();
    // Standard output of a run whose figures are on standard error: the text the model wrote.
    EXPECT_TRUE(used.contains(name)) << name;
  }
}

TEST(Samples, SayTheSameFromEitherStreamAndWithOtherLineEndings) {
  for (const SampleFile& sample : samples()) {
    if (*sample.format == '\0' || (*sample.out != '\0' && *sample.err != '\0')) continue;
    const std::string text = data_or_nothing(*sample.out == '\0' ? sample.err : sample.out);
    const auto plain = read_any({text, ""});
    ASSERT_TRUE(plain) << sample.name << ": " << plain.error().message;
    std::string windows;
    for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
    const auto carried = read_any({windows, ""});
    ASSERT_TRUE(carried) << sample.name << ": " << carried.error().message;
    EXPECT_EQ(dump_json(write_fields(*carried), 1), dump_json(write_fields(*plain), 1))
        << sample.name;
  }
}

TEST(Samples, OfLinesAreTheSameBetweenLogLinesAndColours) {
  for (const SampleFile& sample : samples()) {
    const std::string format = sample.format;
    // JSON is read whole; a log line of digits is an op's line to graph-ops.
    if (*sample.err == '\0' || *sample.out != '\0' || format.empty()) continue;
    const std::string text = read_data(sample.err);
    std::string noisy;
    for (const std::string& line : text::lines(text)) {
      noisy += "\x1B[2K\x1B[32m" + line + "\x1B[0m\n[info] something else went on: 12 % {so far}\n";
    }
    const auto plain = read_any({"", text});
    const auto read = read_any({"", noisy});
    ASSERT_TRUE(plain && read) << sample.name;
    EXPECT_EQ(dump_json(write_fields(*read), 1), dump_json(write_fields(*plain), 1)) << sample.name;
  }
}

TEST(ReadAny, NamesTheFormatsWhereNoneFits) {
  const auto read = read_any({"hello\n"});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::data);
  for (const Format& format : formats()) {
    EXPECT_THAT(read.error().message, testing::HasSubstr(std::string(format.name)));
  }
}

TEST(ReadAny, SaysWhatIsWrongWithWhatItCanNotTake) {
  EXPECT_THAT(read_any({" \n", ""}).error().message, testing::HasSubstr("no text"));
  EXPECT_THAT(read_any({"\x1F\x8B\x08", ""}).error().message, testing::HasSubstr("gzip"));
  const std::string huge(k_max_read_bytes + 1, 'x');
  EXPECT_THAT(read_any({huge, ""}).error().message, testing::HasSubstr("64 MiB"));
}

TEST(ReadAny, SaysThatTheProgramCrashed) {
  const auto read = read_any({read_data("test-backend-ops-error-missing-file.stdout.txt"), ""});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::HasSubstr("; the program crashed: "));
}

TEST(ReadAs, KnowsFormatsByNameAndSuggestsTheNearest) {
  const auto wrong = read_as("agvae", {"x"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::usage);
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("did you mean \"agave\""));
  const auto none = read_as("agave", {"no such thing"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, testing::HasSubstr("no whole part of the format agave"));
}

TEST(ReadAny, ReadsWhatWeirWrote) {
  const std::string text = read_data("llama-bench.md.txt");
  const auto first = read_any({text});
  ASSERT_TRUE(first);
  auto second = read_any({dump_json(write_fields(*first), 2)});
  ASSERT_TRUE(second) << second.error().message;
  second->format = first->format;
  EXPECT_EQ(*second, *first);
}

}  // namespace samples_test
}  // namespace weir::adapters
