// Whatever is left of a saved output, or became of it, a reader answers with a profile or with a
// clear error: cut at each byte, and with bytes changed. Made for ASan and UBSan.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "gate/adapters/format.hpp"
#include "gate/base/json.hpp"

#include "tests/adapters/read_data.hpp"
#include "tests/adapters/samples.hpp"
#include "tests/support/rounds.hpp"

namespace weir::adapters {
namespace cut_test {

struct Answers {
  std::size_t cases = 0, profiles = 0, errors = 0;
};

// A profile holds numbers that are numbers, indices that lead somewhere, and something at all.
void check(const Result<observed::Observed>& read, Answers& answers) {
  ++answers.cases;
  if (!read) {
    ++answers.errors;
    ASSERT_FALSE(read.error().message.empty());
    ASSERT_LT(read.error().message.size(), 10'000U);
    return;
  }
  ++answers.profiles;
  ASSERT_FALSE(observed::empty(*read));
  const Json json = write_fields(*read);
  const auto back = read_fields<observed::Observed>(json, "observed");
  ASSERT_TRUE(back) << back.error().message;
  for (const auto& op : read->ops) {
    for (const auto& value : {op.seconds, op.min_seconds, op.max_seconds, op.seconds_without_nested,
                              op.flops, op.bytes}) {
      ASSERT_TRUE(!value || (std::isfinite(*value) && *value >= 0)) << op.op;
    }
  }
  for (const auto& timing : read->timings) {
    for (const double sample : timing.samples) ASSERT_TRUE(std::isfinite(sample) && sample > 0);
  }
}

struct Loaded {
  std::string out, err;
};

Loaded load(const SampleFile& sample) {
  return {*sample.out == '\0' ? "" : read_data(sample.out),
          *sample.err == '\0' ? "" : read_data(sample.err)};
}

// Cuts at each byte of a sample's beginning, and at each 29th after it: the lines there are alike.
std::size_t next_cut(std::size_t at) { return at + (at < 3000 ? 1 : 29) * tests::k_one_of; }

TEST(CutSamples, GiveAProfileOrAClearErrorWhereverTheyAreCut) {
  Answers answers;
  for (const SampleFile& sample : samples()) {
    const Loaded text = load(sample);
    const std::string& longer = text.out.size() >= text.err.size() ? text.out : text.err;
    for (std::size_t at = 0; at <= longer.size(); at = next_cut(at)) {
      const auto cut = [&](const std::string& full) {
        return std::string_view(full).substr(0, std::min(at, full.size()));
      };
      check(read_any({cut(text.out), cut(text.err)}), answers);
      if (testing::Test::HasFatalFailure()) FAIL() << sample.name << " cut at " << at;
    }
  }
  EXPECT_GT(answers.cases, 90'000U / tests::k_one_of);
  EXPECT_GT(answers.profiles, 50'000U / tests::k_one_of);
  EXPECT_GT(answers.errors, 500U / tests::k_one_of);
}

TEST(CutSamples, NeverSayMoreThanTheWhole) {
  // Counts and sums of a text that was cut are at most those of the whole.
  for (const SampleFile& sample : samples()) {
    // The rates of a stream that was cut are those of the tokens so far.
    if (*sample.format == '\0' || std::string(sample.name) == "llama-server-stream") continue;
    const Loaded text = load(sample);
    const Document document{text.out, text.err};
    const auto full = read_as(sample.format, document);
    ASSERT_TRUE(full) << sample.name;
    const std::string& source = text.out.empty() ? text.err : text.out;
    for (std::size_t at = 0; at < source.size(); at += 1 + source.size() / 400) {
      const std::string_view cut = std::string_view(source).substr(0, at);
      const auto read =
          text.out.empty() ? read_as(sample.format, {"", cut}) : read_as(sample.format, {cut, ""});
      if (!read) continue;
      EXPECT_LE(read->ops.size(), full->ops.size()) << sample.name << " at " << at;
      EXPECT_LE(read->cases.size(), full->cases.size()) << sample.name << " at " << at;
      EXPECT_LE(read->splits.size(), full->splits.size()) << sample.name << " at " << at;
      for (const auto& timing : read->timings) {
        const auto same =
            std::find_if(full->timings.begin(), full->timings.end(),
                         [&](const auto& candidate) { return candidate.metric == timing.metric; });
        if (same == full->timings.end()) continue;  // one test alone of what were two
        for (const double value : timing.samples) {
          EXPECT_NE(std::find(same->samples.begin(), same->samples.end(), value),
                    same->samples.end())
              << sample.name << " at " << at << ": " << timing.metric.name << " " << value;
        }
      }
    }
  }
}

// Changes, drops, doubles and inserts bytes and what matters to some reader.
std::string changed(std::string text, std::mt19937& random) {
  static constexpr std::string_view k_pieces[] = {"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  "\"",
                                                  ",",
                                                  ":",
                                                  "-",
                                                  "1e999",
                                                  "NaN",
                                                  "\n",
                                                  "\r",
                                                  "\\",
                                                  "\x1B[",
                                                  "\xFF",
                                                  "0",
                                                  "9999999999999999999",
                                                  "=",
                                                  "(",
                                                  ")",
                                                  "'",
                                                  " x ",
                                                  "#",
                                                  "|",
                                                  "\xC3\x97",
                                                  "us",
                                                  "ms"};
  const auto random_below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t i = random_below(6) + 1; i > 0 && !text.empty(); --i) {
    const std::size_t at = random_below(text.size());
    const std::size_t how = random_below(5);
    if (how < 2) text[at] = static_cast<char>(random_below(256));
    if (how == 2) text.erase(at, random_below(40) + 1);
    if (how == 3) text.insert(at, k_pieces[random_below(std::size(k_pieces))]);
    if (how == 4) text.insert(at, text.substr(random_below(text.size()), random_below(80)));
  }
  return text;
}

TEST(ChangedSamples, GiveAProfileOrAClearError) {
  Answers answers;
  std::mt19937 random(20);
  std::size_t others = 0;
  for (int round = 0; round < 300; ++round) {
    for (const SampleFile& sample : samples()) {
      if (*sample.format == '\0') continue;
      const Loaded text = load(sample);
      // A piece of the longer ones: they are made of many lines alike.
      const auto piece = [&](const std::string& full) { return full.substr(0, 3000); };
      const std::string out = text.out.empty() ? "" : changed(piece(text.out), random);
      const std::string err = text.err.empty() ? "" : changed(piece(text.err), random);
      check(read_as(sample.format, {out, err}), answers);
      if (testing::Test::HasFatalFailure()) FAIL() << sample.name << " changed in round " << round;
      // Any other reader must bear it too.
      const auto& all = formats();
      check(read_as(all[others++ % all.size()].name, {out, err}), answers);
      if (testing::Test::HasFatalFailure())
        FAIL() << sample.name << " to another reader, round " << round;
    }
  }
  EXPECT_GT(answers.cases, 30'000U);
  EXPECT_GT(answers.profiles, 5'000U);
  EXPECT_GT(answers.errors, 500U / tests::k_one_of);
}

}  // namespace cut_test
}  // namespace weir::adapters
