// Tests OpenMetrics text by its grammar and by the rules of GitLab's reader.
#include "gate/report/open_metrics.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace open_metrics_test {

using support::first_line;
using support::occurrences;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using verdict::Outcome;

bool is_name(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string_view::npos;
}

// Name, labels and value of the sample in a line, by the grammar of OpenMetrics 1.0. Nothing if the
// line does not match.
struct Sample {
  std::string name, labels, value;
};
std::optional<Sample> parse_sample(std::string_view line) {
  Sample sample;
  std::size_t at = std::min(line.find_first_of("{ "), line.size());
  sample.name = line.substr(0, at);
  if (!is_name(sample.name)) return std::nullopt;
  if (at < line.size() && line[at] == '{') {
    const std::size_t from = ++at;
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find("=\"", at);
      if (equals == std::string_view::npos || !is_name(line.substr(at, equals - at))) return {};
      at = equals + 2;
      while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2 : 1;
      if (at + 1 >= line.size()) return {};
      ++at;
      if (line[at] == ',') ++at;
    }
    sample.labels = line.substr(from, at - from);
    ++at;
  }
  if (at >= line.size() || line[at] != ' ') return std::nullopt;
  sample.value = line.substr(at + 1);
  return text::to_double(sample.value) ? std::optional(sample) : std::nullopt;
}

TEST(OpenMetrics, KeepsToTheGrammarWhateverNamesHold) {
  for (const auto& [name, gate] : fixtures::all()) {
    const std::string text = open_metrics(gate);
    EXPECT_THAT(text, EndsWith("\n# EOF\n")) << name;
    std::string family;
    std::set<std::string> families, samples;
    for (const std::string& line : text::lines(text)) {
      if (line == "# EOF") continue;
      if (line.starts_with("# HELP ")) {
        family = line.substr(7, line.find(' ', 7) - 7);
        EXPECT_TRUE(is_name(family)) << line;
        EXPECT_TRUE(families.insert(family).second) << "in two places: " << family;
        continue;
      }
      if (line.starts_with("# TYPE ")) {
        EXPECT_EQ(line, "# TYPE " + family + " gauge");
        continue;
      }
      const auto sample = parse_sample(line);
      ASSERT_TRUE(sample) << name << ": " << line;
      EXPECT_EQ(sample->name, family);
      EXPECT_TRUE(samples.insert(sample->name + sample->labels).second) << "twice: " << line;
      // GitLab ignores a line after '#'.
      EXPECT_EQ(line.find('#'), std::string::npos) << line;
    }
  }
}

TEST(OpenMetrics, HoldsTheValuesOfEachCellAndItsVerdict) {
  const std::string red = open_metrics(fixtures::red());
  EXPECT_EQ(first_line(red), "# HELP weir_exit_code 1 of 8 cells broke a limit");
  EXPECT_THAT(red, HasSubstr("\nweir_exit_code 1\n"));
  EXPECT_THAT(red,
              HasSubstr("\nweir_cell_verdict{cell=\"llama.cpp/tiny-llama/vulkan/decode\"} 1\n"));
  EXPECT_THAT(red, HasSubstr("\nweir_cell_verdict{cell=\"llama.cpp/tiny-llama/cpu/decode\"} 0\n"));
  EXPECT_THAT(
      red,
      HasSubstr("# HELP weir_dispatches_per_token dispatches/token: kernels that reach the device "
                "(count), lower is better\n"
                "# TYPE weir_dispatches_per_token gauge\n"
                "weir_dispatches_per_token{cell=\"llama.cpp/tiny-llama/cpu/decode\"} 65\n"
                "weir_dispatches_per_token{cell=\"llama.cpp/tiny-llama/vulkan/decode\"} 77\n"));
  EXPECT_THAT(red, HasSubstr("weir_decode_tokens_per_second{cell=\"llama.cpp/tiny-llama/vulkan/"
                             "decode\"} 27.9\n"));
}

TEST(OpenMetrics, SaysInItsFirstLineWhatWasNotJudged) {
  EXPECT_THAT(first_line(open_metrics(fixtures::mixed())),
              HasSubstr("throughput not decided in 3 of 8 cells, 2 cells new"));
}

TEST(OpenMetrics, LeavesOutWhatWasNotMeasured) {
  const std::string errors = open_metrics(fixtures::errors());
  EXPECT_THAT(errors,
              HasSubstr("weir_cell_verdict{cell=\"llama.cpp/tiny-llama/vulkan/decode\"} 2"));
  EXPECT_EQ(occurrences(errors, "cell=\"llama.cpp/tiny-llama/vulkan/decode\""), 1U);
}

TEST(OpenMetrics, GivesMetricsOfTheConfigurationNamesOfTheirOwn) {
  auto gate = fixtures::green();
  const auto custom = [&](const char* name) {
    auto metric = fixtures::count("syncs_per_token", Outcome::pass, 1, 1);
    metric.metric =
        unit::custom_metric(name, unit::Kind::count, unit::Unit::count, unit::Better::lower);
    gate.cells[0].judgements.push_back(metric);
  };
  for (const char* name : {"cell_verdict", "cache-hits", "cache_hits", "a#b\"c\\", "jobs_total"}) {
    custom(name);
  }
  const std::string text = open_metrics(gate);
  const std::string cell = "{cell=\"llama.cpp/tiny-llama/cpu/prefill\"";
  EXPECT_THAT(text, HasSubstr("\nweir_custom_cell_verdict" + cell + "} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_custom_cache_hits" + cell +
                              ",metric=\"cache-hits\"} 1\n"
                              "weir_custom_cache_hits" +
                              cell + "} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_custom_a_b_c_" + cell + ",metric=\"a_b\\\"c\\\\\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_custom_jobs_total_value" + cell + "} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nweir_jobs")));
}

}  // namespace open_metrics_test
}  // namespace weir::report
