// Metrics that are found in what an unknown program prints, and those named on the command line.
#include "gate/config/printed_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/pattern.hpp"

namespace weir::config {
namespace printed_metrics_test {

// Returns "name value", for the last line that each metric's expression finds.
std::string found_in(const std::string& text) {
  std::vector<std::string> found;
  for (const PrintedMetric& metric : find_printed_metrics(text)) {
    std::string value;
    for (const std::string& line : text::lines(text)) {
      const auto pattern = Pattern::compile(metric.regex);
      if (const auto group = pattern->first_group(line)) value = *group;
    }
    found.push_back(fmt::format("{} {}", metric.name, value));
  }
  return text::join(found, ", ");
}

TEST(PrintedMetrics, AreRatesOfTokensAndTimesOfAToken) {
  const struct {
    const char* text;
    const char* metrics;
  } cases[] = {
      {"tokens/s: 41.2", "decode_tokens_per_second 41.2"},
      {"41.2 tok/s", "decode_tokens_per_second 41.2"},
      {"warm-up 3 t/s\nrun 41 t/s\n", "decode_tokens_per_second 41"},
      {"Speed = 12.5 tokens per second (32 tokens)", "decode_tokens_per_second 12.5"},
      {"throughput: 8.0 tokens/sec", "decode_tokens_per_second 8.0"},
      {"{\"tok/s\": 41.2}", "decode_tokens_per_second 41.2"},
      {"prompt: 500 tok/s\ngeneration: 41 tok/s",
       "decode_tokens_per_second 41, prefill_tokens_per_second 500"},
      {"pp 12 tokens, 500.5 tok/s", "prefill_tokens_per_second 500.5"},
      {"eval: 24.3 ms per token", "token_ms 24.3"},
      {"ms/token: 24", "token_ms 24"},
      {"24.3 ms per token, 41.15 tokens per second", "decode_tokens_per_second 41.15"},
      // Lines of the prompt, and totals.
      {"tokens/s: 20\nprompt tokens/s: 900",
       "decode_tokens_per_second 20, prefill_tokens_per_second 900"},
      {"40 tok/s (gen)\n900 tok/s (prompt)", "decode_tokens_per_second 40"},
      {"decode: 40 tok/s\ntotal generation of 3: 120 tok/s", "decode_tokens_per_second 40"},
      {"40 tok/s\ntotal: 120 tok/s", "decode_tokens_per_second 40"},
      {"total: 120 tok/s", "decode_tokens_per_second 120"},
      {"40 ms per token\nprompt: 1.1 ms per token", "token_ms 40"},
      {"eval time = 40 ms per token\nprompt eval time = 1.1 ms per token", "token_ms 40"},
      {"prompt: 1.1 ms per token", ""},
      {"eval: 40 tok/s\nprompt eval: 900 tok/s",
       "decode_tokens_per_second 40, prefill_tokens_per_second 900"},
      {"prompt 500 tok/s, generation 41 tok/s",
       "decode_tokens_per_second 41, prefill_tokens_per_second 500"},
      {"pp512: 900 tok/s\ntg128: 40 tok/s",
       "decode_tokens_per_second 40, prefill_tokens_per_second 900"},
      {"{\"prompt_tokens\": 12, \"tok/s\": 41.2}", "decode_tokens_per_second 41.2"},
      {"0 tok/s", ""},
      {"41 tests/s, 3 ms per test", ""},
      {"41.2 tok/step", ""},
      {"loaded in 3 s", ""},
      {"", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(found_in(c.text), c.metrics) << c.text;
}

TEST(PrintedMetrics, OfACommandLineAreThoseThatTheirNameDeclares) {
  for (const char* name : {"decode_tokens_per_second", "images_per_second", "start_ms", "cache_mib",
                           "hit_rate", "cached_prompt_share"}) {
    const auto metric = parse_printed_metric(fmt::format("{}=n=([0-9.]+)", name));
    ASSERT_TRUE(metric) << metric.error().message;
    EXPECT_EQ(metric->name, name);
    EXPECT_EQ(metric->regex, "n=([0-9.]+)");
  }
}

TEST(PrintedMetrics, StandBesideThoseThatAreNamedButForTheSameWork) {
  const struct {
    const char* named;
    const char* all;
  } cases[] = {
      {"load_seconds", "load_seconds, decode_tokens_per_second"},
      {"decode_tokens_per_second", "decode_tokens_per_second"},
      {"prefill_tokens_per_second", "prefill_tokens_per_second"},
  };
  for (const auto& c : cases) {
    std::vector<PrintedMetric> metrics{{c.named, "([0-9]+)"}};
    add_printed_metrics("41.2 tok/s", metrics);
    EXPECT_EQ(text::join(collect<std::string>(metrics, &PrintedMetric::name)), c.all);
  }
}

TEST(PrintedMetrics, OfACommandLineThatSayTooLittleAreRefused) {
  const struct {
    const char* assignment;
    const char* says;
  } cases[] = {
      {"speed", "expected NAME=REGEX"},
      {"=([0-9]+)", "expected NAME=REGEX"},
      {"start_ms=[0-9]+", "group"},
      {"decode_tokens_per_secnd=([0-9]+)", "did you mean \"decode_tokens_per_second\"?"},
      {"speed=([0-9]+)", "end its name in what it is, such as speed_count: _tokens_per_second, "},
      {"speed=([0-9]+)", "_ratio, _rate, _share (more is better)"},
  };
  for (const auto& c : cases) {
    const auto metric = parse_printed_metric(c.assignment);
    ASSERT_FALSE(metric) << c.assignment;
    EXPECT_EQ(metric.error().code, Code::usage);
    EXPECT_THAT(metric.error().message, testing::HasSubstr(c.says));
  }
}

}  // namespace printed_metrics_test
}  // namespace weir::config
