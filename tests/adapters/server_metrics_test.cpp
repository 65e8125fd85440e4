// Tests of a server's own metrics before and after a load. The first text is llama-server's, its
// numbers are invented; the histogram is written as vLLM writes its own.
#include "gate/adapters/server_metrics.hpp"

#include <gmock/gmock.h>

namespace weir::adapters {
namespace server_metrics_test {

using profile::ServerFigure;
using testing::ElementsAre;
using testing::IsEmpty;

ServerFigure counter(const char* name, double value) {
  return {name, ServerFigure::Kind::counter, value};
}
ServerFigure gauge(const char* name, double value) {
  return {name, ServerFigure::Kind::gauge, value};
}
ServerFigure mean(const char* name, double value) {
  return {name, ServerFigure::Kind::mean, value};
}

std::vector<ServerFigure> figures(std::string_view before, std::string_view after) {
  return between(read_server_metrics(before), read_server_metrics(after));
}

TEST(ServerMetrics, AreWhatCountersGrewByAndWhatGaugesAreInTheEnd) {
  const auto text = [](int tokens, double rate) {
    return fmt::format(
        "# HELP llamacpp:tokens_predicted_total Number of generation tokens processed.\n"
        "# TYPE llamacpp:tokens_predicted_total counter\n"
        "llamacpp:tokens_predicted_total {}\n"
        "# HELP llamacpp:predicted_tokens_seconds Average generation throughput in tokens/s.\n"
        "# TYPE llamacpp:predicted_tokens_seconds gauge\n"
        "llamacpp:predicted_tokens_seconds {}\n",
        tokens, rate);
  };
  const auto growth = figures(text(40, 12), text(168, 12.5));
  EXPECT_THAT(growth, ElementsAre(gauge("llamacpp:predicted_tokens_seconds", 12.5),
                                  counter("llamacpp:tokens_predicted_total", 128)));
  EXPECT_EQ(generated_tokens_between(growth), 128);
  EXPECT_EQ(generated_tokens_between({}), std::nullopt);
}

TEST(ServerMetrics, TakeLabelSetsOfACounterTogetherAndAHistogramForItsMean) {
  const auto text = [](int a, int b, double sum, int count) {
    return fmt::format(
        "# TYPE vllm:request_success_total counter\n"
        "vllm:request_success_total{{finished_reason=\"stop\",model_name=\"/home/x/m\"}} {}\n"
        "vllm:request_success_total{{finished_reason=\"length\",model_name=\"/home/x/m\"}} {}\n"
        "# TYPE vllm:time_to_first_token_seconds histogram\n"
        "vllm:time_to_first_token_seconds_bucket{{le=\"0.1\"}} {}\n"
        "vllm:time_to_first_token_seconds_bucket{{le=\"+Inf\"}} {}\n"
        "vllm:time_to_first_token_seconds_sum{{model_name=\"/home/x/m\"}} {}\n"
        "vllm:time_to_first_token_seconds_count{{model_name=\"/home/x/m\"}} {}\n",
        a, b, count, count, sum, count);
  };
  // (3.5 - 1.5) / (12 - 4); no label and no bucket is kept.
  EXPECT_THAT(figures(text(1, 3, 1.5, 4), text(2, 10, 3.5, 12)),
              ElementsAre(counter("vllm:request_success_total", 8),
                          mean("vllm:time_to_first_token_seconds", 0.25),
                          counter("vllm:time_to_first_token_seconds_count", 8)));
}

TEST(ServerMetrics, AreLeftOutWhereTheySayNothingOfTheLoad) {
  struct Case {
    const char* before;
    const char* after;
    const char* why;
  };
  const Case cases[] = {
      {"a_total 9\n", "a_total 2\n", "it began anew"},
      {"", "a 2\n", "nothing says what it is"},
      {"", "# TYPE g gauge\ng{x=\"1\"} 1\ng{x=\"2\"} 2\n", "a sum of shares is no share"},
      {"", "# TYPE g gauge\ng NaN\n", "no number"},
      {"", "# TYPE a_total counter\na_total +Inf\n", "no end to it"},
      {"", "# TYPE a counter\na_created 1.7e9\n", "when it began"},
      {"", "a_total{x=\"1\n", "a label without an end"},
      {"", "<html>no metrics</html>\n\x01\xff", "another page"},
  };
  for (const Case& c : cases) EXPECT_THAT(figures(c.before, c.after), IsEmpty()) << c.why;
}

TEST(ServerMetrics, AreBoundedWhateverAServerSays) {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += fmt::format("m{}_total 1\n", i);
  const ServerMetrics read = read_server_metrics(many);
  EXPECT_EQ(read.counters.size(), 256U);
  EXPECT_GT(read.left_out, 0U);
  const std::string long_name = std::string(100'000, 'x') + "_total 1\n";
  for (const auto& [name, value] : read_server_metrics(long_name).counters) {
    EXPECT_LE(name.size(), 210U);
  }
  std::string hostile = "# TYPE ";
  for (int i = 0; i < 1000; ++i) hostile += std::string(1, static_cast<char>(i % 256)) + "{\"\\";
  (void)read_server_metrics(hostile);
}

}  // namespace server_metrics_test
}  // namespace weir::adapters
