// Tests of the reports of gated engines.
#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace reports_test {

using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

Result<profile::EngineReport> read(const char* adapter, const std::string& out,
                                   const std::string& err, profile::RunParameters parameters = {},
                                   std::string_view device = "cpu",
                                   std::optional<profile::Pass> pass = profile::Pass::timed) {
  const Adapter* reader = find(adapter);
  if (reader == nullptr) return fail(Code::internal, "no adapter {}", adapter);
  return reader->read({out, err, parameters, device, nullptr, pass});
}

TEST(AgaveAdapter, GivesRatesTokensAndWhereItRan) {
  const auto json = read_data("agave-json.stdout.txt");
  const auto report = read("agave", json, read_data("agave-json.stderr.txt"));
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_FALSE(report->times.empty());
  EXPECT_EQ(report->times[0].metric.name, "decode_tokens_per_second");
  EXPECT_THAT(report->times[0].samples,
              ElementsAre(DoubleNear(5 / 0.035, 1e-4)));  // the first of 6 is the prefill's
  EXPECT_EQ(report->generated_tokens, 6);
  EXPECT_EQ(report->prompt_tokens, 10);
  EXPECT_EQ(report->engine_build, "0.1.0");
  EXPECT_EQ(report->device_refuted, std::nullopt);
}

TEST(AgaveAdapter, SaysWhereItFellBackToTheCpu) {
  const auto report =
      read("agave", "", read_data("agave-backend-fallback-metal.stderr.txt"), {}, "metal");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->device_refuted.value_or(""), HasSubstr("the CPU did the work"));
  EXPECT_THAT(report->warnings, Contains("Metal not available on this platform"));
}

TEST(AgaveAdapter, HandsOnWhatTheEngineComplainedOf) {
  const auto report = read("agave", "", read_data("agave-error-missing-file.stderr.txt"));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("failed to open 'nosuch.gguf'"));
}

TEST(AgaveAdapter, CountsInACountedPass) {
  const auto report = read("agave", "", read_data("constructed-agave-metal-counters.stderr.txt"),
                           {}, "metal", profile::Pass::counted);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->counts.at("dispatches_per_token"), 994);
  EXPECT_EQ(report->counts.at("syncs_per_token"), 1);
}

// As weir-engine prints it.
constexpr const char* k_observed = R"({"schema": "weir.observed/1", "format": "weir-engine",
  "context": {"engine": "weir-engine", "engine_build": "1", "backend": "Vulkan"},
  "generated_tokens": 4, "prompt_tokens": 1,
  "timings": [{"metric": "decode_tokens_per_second", "samples": [50.0, 52.0]}],
  "counts": [{"metric": "dispatches_per_token", "values": [39, 39, 39]}]})";

TEST(WeirObservedAdapter, GivesRatesCountsAndTokens) {
  const auto report = read("weir-observed", k_observed, "", {}, "vulkan");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->times.size(), 1U);
  EXPECT_THAT(report->times[0].samples, ElementsAre(50.0, 52.0));
  EXPECT_EQ(report->shares.at("dispatches_per_token"), Rational(39));
  EXPECT_EQ(report->generated_tokens, 4);
  EXPECT_EQ(report->device_refuted, std::nullopt);
}

TEST(WeirObservedAdapter, RefusesWhatWeirMeasuresItself) {
  for (const char* metric : {"process_cpu_seconds", "voluntary_switches", "involuntary_switches",
                             "minor_faults", "major_faults"}) {
    std::string text = k_observed;
    const std::string_view rate = "decode_tokens_per_second";
    text.replace(text.find(rate), rate.size(), metric);
    const auto report = read("weir-observed", text, "", {}, "vulkan");
    ASSERT_FALSE(report) << metric;
    EXPECT_THAT(report.error().message, HasSubstr("which weir measures itself")) << metric;
  }
}

TEST(WeirObservedAdapter, RefusesWhatIsCutOrOfAnotherSchema) {
  const std::string text = k_observed;
  EXPECT_FALSE(read("weir-observed", text.substr(0, text.size() / 2), ""));
  EXPECT_FALSE(read("weir-observed", R"({"schema": "weir.verdict/1"})", ""));
  EXPECT_FALSE(read("weir-observed", "", ""));
}

// Agave's table: gemv_qkv 20 calls of 1607 us on average, of 5 tokens (the first came of the
// prompt).
TEST(AgaveAdapter, GivesTimesAndCallsOfOpsThatLimitsName) {
  const std::string text = read_data("agave-profile.stderr.txt");
  const std::vector<std::string> works{"op:gemv_*", "op_calls:gemv_qkv"};
  const auto read_report = [&](profile::Pass pass) {
    const auto report = find("agave")->read({"", text, {}, "cpu", nullptr, pass, works});
    EXPECT_TRUE(report) << report.error().message;
    return *report;
  };
  const profile::EngineReport timed = read_report(profile::Pass::timed);
  std::map<std::string, double> seconds;
  for (const auto& time : timed.times) seconds[time.metric.name] = time.samples.at(0);
  EXPECT_TRUE(seconds.contains("op:gemv_out"));
  EXPECT_NEAR(seconds["op:gemv_qkv"], 20 * 1607e-6 / 5, 1e-9);
  EXPECT_FALSE(seconds.contains("op:rms_norm"));
  EXPECT_FALSE(timed.counts.contains("op_calls:gemv_qkv"));
  const profile::EngineReport counted = read_report(profile::Pass::counted);
  EXPECT_EQ(counted.counts.at("op_calls:gemv_qkv"), 20 / 5);
  EXPECT_FALSE(counted.counts.contains("op_calls:gemv_out"));
}

// Agave profiles three of its architectures.
TEST(AgaveAdapter, SaysThatNoTableOfOpsWasPrinted) {
  const std::vector<std::string> works{"op_calls:*"};
  const auto report = find("agave")->read(
      {read_data("agave-json.stdout.txt"), "", {}, "cpu", nullptr, profile::Pass::counted, works});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->warnings, Contains(HasSubstr("printed no table of its ops")));
}

// "lm head" and "lm_head" are one metric: 10 ms and 20 ms of one token.
TEST(WeirObservedAdapter, AddsUpOpsThatShareAMetricAndLeavesOutWhatIsNotTheSameForEachToken) {
  const std::vector<std::string> works{"op:*", "op_calls:*"};
  const auto read_report = [&](profile::Pass pass, int tokens) {
    const std::string text = fmt::format(
        R"({{"schema": "weir.observed/1", "format": "e", "profiled_tokens": {},
            "timings": [{{"metric": "decode_tokens_per_second", "samples": [50.0]}}],
            "ops": [{{"op": "lm head", "phase": "decode", "calls": 4, "seconds": 0.01}},
                    {{"op": "lm_head", "phase": "decode", "calls": 4, "seconds": 0.02}}]}})",
        tokens);
    const auto report = find("weir-observed")->read({text, "", {}, "cpu", nullptr, pass, works});
    EXPECT_TRUE(report) << report.error().message;
    return *report;
  };
  const auto timed = read_report(profile::Pass::timed, 1);
  ASSERT_EQ(timed.times.size(), 2U);
  EXPECT_EQ(timed.times[1].metric.name, "op:lm_head");
  EXPECT_NEAR(timed.times[1].samples.at(0), 0.03, 1e-12);
  EXPECT_EQ(read_report(profile::Pass::counted, 1).counts.at("op_calls:lm_head"), 8);
  const auto uneven = read_report(profile::Pass::counted, 3);
  EXPECT_FALSE(uneven.counts.contains("op_calls:lm_head"));
  EXPECT_THAT(uneven.warnings, Contains(HasSubstr("op_calls:lm_head: 2.667 a token")));
}

// One repetition of a benchmark, in microseconds.
std::string repetition(const char* name, double microseconds) {
  return fmt::format(
      R"({{"name": "{0}", "run_name": "{0}", "run_type": "iteration", "real_time": {1},
           "cpu_time": {1}, "time_unit": "us", "iterations": 10}})",
      name, microseconds);
}
std::string benchmarks(const std::vector<std::string>& rows) {
  return fmt::format(R"({{"context": {{"library_build_type": "release"}}, "benchmarks": [{}]}})",
                     text::join(rows));
}

TEST(GoogleBenchmarkAdapter, AddsUpOneIterationOfEachBenchmarkAndGivesThoseThatLimitsName) {
  const std::string text = benchmarks({repetition("BM_a/1", 1), repetition("BM_a/1", 2),
                                       repetition("BM_b", 10), repetition("BM_b", 20)});
  const std::vector<std::string> works{"op:BM_a*"};
  const auto report = find("google-benchmark")->read({text, "", {}, "cpu", nullptr, {}, works});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->times.size(), 2U);
  EXPECT_EQ(report->times[0].metric.name, "op:BM_a/1");
  EXPECT_THAT(report->times[0].samples,
              testing::ElementsAre(testing::DoubleEq(1e-6), testing::DoubleEq(2e-6)));
  EXPECT_EQ(report->times[1].metric.name, "iteration_seconds");
  EXPECT_THAT(report->times[1].samples,
              testing::ElementsAre(testing::DoubleEq(11e-6), testing::DoubleEq(22e-6)));
}

TEST(GoogleBenchmarkAdapter, TakesAnotherSetOfBenchmarksForOtherWork) {
  const auto digest = [](const std::vector<std::string>& rows) {
    const std::string text = benchmarks(rows);
    const auto report = find("google-benchmark")->read({text, "", {}, "cpu", nullptr, {}, {}});
    return report ? report->output_digest.value_or("none") : "error";
  };
  const std::string both = digest({repetition("BM_a", 1), repetition("BM_b", 1)});
  EXPECT_EQ(digest({repetition("BM_b", 5), repetition("BM_a", 3)}), both);
  EXPECT_NE(digest({repetition("BM_a", 1.6)}), both) << "one that is gone hides a slower one";
}

TEST(GoogleBenchmarkAdapter, RefusesWhatFailedOrHasOtherRepetitions) {
  const std::string failed =
      R"({"name": "BM_c", "run_name": "BM_c", "error_occurred": true, "error_message": "no GPU"})";
  const struct {
    std::vector<std::string> rows;
    const char* message;
  } cases[] = {
      {{repetition("BM_a", 1), failed}, "a benchmark failed: BM_c: no GPU"},
      {{repetition("BM_a", 1), repetition("BM_a", 1), repetition("BM_b", 1)},
       "BM_b: 1 repetitions, and 2 of others"},
  };
  for (const auto& c : cases) {
    const std::string text = benchmarks(c.rows);
    const auto report = find("google-benchmark")->read({text, "", {}, "cpu", nullptr, {}, {}});
    ASSERT_FALSE(report) << c.message;
    EXPECT_EQ(report.error().code, Code::data);
    EXPECT_THAT(report.error().message, HasSubstr(c.message));
  }
}

TEST(Hf2qAdapter, SumsCountsOfTokensOverTheTokens) {
  std::string text = read_data("constructed-hf2q.stderr.txt");
  text.resize(text.find("--- mlx-native"));  // the rest is another run of 128 tokens
  const auto report = read("hf2q", "", text, {0, 2, 1, 0}, "metal", profile::Pass::counted);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->shares.at("submits_per_token"), Rational(102));
  EXPECT_EQ(report->shares.at("dispatches_per_token"), *Rational::make(2701, 2)) << "1350 and 1351";
}

TEST(Hf2qAdapter, CountsCommandBuffersByLabelAndTimesThoseThatLimitsName) {
  const std::string rate = "Decode tok/s: 41.2\n";
  const std::string table =
      "[CB_PROFILE] total=9.81ms across 2 labels:\n"
      "   48.0%      4.71ms  count=40    avg= 117.8µs  min=110.2µs  max=140.9µs  layer.ffn\n"
      "   52.0%      5.10ms  count=2     avg=2550.0µs  min=2510.0µs  max=2640.9µs  output head\n";
  std::string cut = table;
  cut.replace(cut.find("2 labels"), 8, "9 labels");
  const std::vector<std::string> times{"buffer:layer*"}, counts{"buffers:*"};
  const auto read_report = [](const std::string& text, profile::Pass pass,
                              const std::vector<std::string>& works) {
    const auto report = find("hf2q")->read({"", text, {}, "metal", nullptr, pass, works});
    EXPECT_TRUE(report) << report.error().message;
    return report.value_or(profile::EngineReport{});
  };
  const auto counted = read_report(rate + table + table, profile::Pass::counted, {});
  EXPECT_THAT(counted.shares,
              testing::UnorderedElementsAre(testing::Pair("buffers:layer.ffn", Rational(40)),
                                            testing::Pair("buffers:output_head", Rational(2))));
  const auto timed = read_report(rate + table + table, profile::Pass::timed, times);
  EXPECT_TRUE(timed.shares.empty());
  ASSERT_EQ(timed.times.size(), 2U);
  EXPECT_EQ(timed.times[1].metric.name, "buffer:layer.ffn");
  EXPECT_NEAR(timed.times[1].samples.at(0), 4.71e-3, 1e-9);
  // An absent label of a table that is cut would be taken for none.
  const auto some = read_report(rate + cut, profile::Pass::counted, counts);
  EXPECT_TRUE(some.shares.empty());
  EXPECT_THAT(some.warnings, Contains(HasSubstr("the engine does not list all of them")));
  const auto none = read_report(rate, profile::Pass::counted, counts);
  EXPECT_THAT(none.warnings, Contains(HasSubstr("MLX_PROFILE_CB=1")));
  EXPECT_TRUE(read_report(rate, profile::Pass::counted, {}).warnings.empty())
      << "nobody asked for them";
}

TEST(AgaveAdapter, SumsCountsOfTokensOverTheTokens) {
  const auto lines = [](const std::vector<int>& syncs) {
    std::string text;
    for (const int count : syncs) {
      text += fmt::format("Metal stats: 706 dispatches, 930 barriers, {} syncs\n", count);
    }
    return text;
  };
  const std::vector<int> third{1, 1, 17, 1, 1, 17, 1, 1}, last{1, 1, 1, 1, 1, 1, 1, 17};
  for (const auto& [syncs, mean] : {std::pair{third, 5}, {last, 3}}) {
    const auto report =
        read("agave", "", lines(syncs), {0, 8, 1, 0}, "metal", profile::Pass::counted);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->shares.at("syncs_per_token"), Rational(mean));
    EXPECT_EQ(report->shares.at("dispatches_per_token"), Rational(706));
  }
  const auto few = read("agave", "", lines({1, 17, 1}), {0, 8, 1, 0}, "metal");
  EXPECT_FALSE(few && few->shares.contains("syncs_per_token"));
}

TEST(LlamaBenchTableAdapter, HoldsTheTestsToWhatWasAskedFor) {
  for (const char* file : {"llama-bench.csv", "llama-bench.md.txt"}) {
    const auto report = read("llama-bench-table", read_data(file), "", {16, 8, 2, 0});
    ASSERT_TRUE(report) << file << ": " << report.error().message;
    EXPECT_EQ(report->times.size(), 2U);
    EXPECT_EQ(report->generated_tokens, 8);
    EXPECT_THAT(read("llama-bench-table", read_data(file), "", {16, 0, 2, 0}).error().message,
                HasSubstr("2 results, expected 1"));
    EXPECT_THAT(read("llama-bench-table", read_data(file), "", {16, 9, 2, 0}).error().message,
                HasSubstr("not asked for"));
    EXPECT_THAT(read("llama-bench-table", read_data(file), "", {16, 8, 2, 32}).error().message,
                HasSubstr("not asked for"));
  }
  const std::string prompts_alone = replaced(read_data("llama-bench.md.txt"), " tg8", "pp16");
  const auto twice = read("llama-bench-table", prompts_alone, "", {16, 8, 2, 0});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("0 tests that generate tokens, expected 1"));
}

TEST(AdaptersOfReaders, RefuseWhatIsCutOrOfAnotherKind) {
  EXPECT_THAT(
      read("mlx-lm", "Timing with prompt_tokens=5\nTrial 1:  prompt_tps=1.5, generation_tps=2.5\n",
           "")
          .error()
          .message,
      HasSubstr("ends in the middle"));
  for (const char* adapter :
       {"agave", "hf2q", "mlx-lm", "ollama", "llama-perf", "llama-bench-table"}) {
    EXPECT_FALSE(read(adapter, "hello\n", "")) << adapter;
    EXPECT_FALSE(read(adapter, "", "")) << adapter;
  }
}

TEST(AdaptersOfReaders, ReadTheirEnginesRates) {
  const auto perf = read("llama-perf", "", read_data("llama-completion-perf.stderr.txt"));
  ASSERT_TRUE(perf) << perf.error().message;
  EXPECT_EQ(perf->generated_tokens, 8);
  const auto ollama = read("ollama", "", read_data("constructed-ollama-verbose.stderr.txt"));
  ASSERT_TRUE(ollama) << ollama.error().message;
  EXPECT_EQ(ollama->generated_tokens, 290);
  const auto mlx = read("mlx-lm", read_data("constructed-mlx-lm.txt"), "");
  ASSERT_TRUE(mlx) << mlx.error().message;
  EXPECT_EQ(mlx->times.size(), 2U);
}

// Results of tools that load servers: medians, p90, p99 and rates under weir's names.
std::map<std::string, double> report_figures(const profile::EngineReport& report) {
  std::map<std::string, double> figures;
  for (const auto& series : report.times) figures[series.metric.name] = series.samples.at(0);
  return figures;
}

TEST(LoadResults, GiveTheFiguresThatAreJudgedUnderOneName) {
  using testing::Pair;
  const auto near = [](const char* name, double value) {
    return Pair(name, DoubleNear(value, 1e-9));
  };
  const auto aiperf = read("aiperf", read_data("constructed-aiperf.json"), "");
  ASSERT_TRUE(aiperf) << aiperf.error().message;
  EXPECT_THAT(report_figures(*aiperf),
              testing::UnorderedElementsAre(near("time_to_first_token_seconds", 0.07025),
                                            near("time_to_first_token_p90_seconds", 0.14),
                                            near("time_to_first_token_p99_seconds", 0.18),
                                            near("time_per_output_token_seconds", 0.011),
                                            near("time_per_output_token_p90_seconds", 0.014),
                                            near("time_per_output_token_p99_seconds", 0.016),
                                            near("end_to_end_latency_seconds", 2.35),
                                            near("end_to_end_latency_p90_seconds", 2.9),
                                            near("end_to_end_latency_p99_seconds", 3.1),
                                            near("output_tokens_per_second", 1575),
                                            near("requests_per_second", 7.5)));
  EXPECT_EQ(aiperf->requests, 200);
  EXPECT_EQ(aiperf->load, "concurrency 16, request_count 200");
  EXPECT_EQ(aiperf->model, "meta-llama/Llama-3.1-8B");

  const auto guidellm = read("guidellm", read_data("constructed-guidellm.json"), "");
  ASSERT_TRUE(guidellm) << guidellm.error().message;
  EXPECT_THAT(
      report_figures(*guidellm),
      testing::IsSupersetOf(
          {near("time_to_first_token_p99_seconds", 0.18),
           near("time_per_output_token_seconds", 0.011), near("end_to_end_latency_seconds", 2.35),
           near("output_tokens_per_second", 1575), near("requests_per_second", 7.5)}));
  EXPECT_EQ(guidellm->requests, 200);

  const auto vllm = read("vllm-bench", read_data("constructed-vllm.json"), "");
  ASSERT_TRUE(vllm) << vllm.error().message;
  EXPECT_THAT(report_figures(*vllm),
              testing::UnorderedElementsAre(near("time_to_first_token_seconds", 0.07025),
                                            near("time_to_first_token_p99_seconds", 0.18),
                                            near("time_per_output_token_seconds", 0.011),
                                            near("time_per_output_token_p99_seconds", 0.016),
                                            near("output_tokens_per_second", 1680),
                                            near("requests_per_second", 8)));
  EXPECT_EQ(vllm->requests, 100);
}

TEST(LoadResults, OfRequestsThatFailedOrOfSeveralRunsAreRefused) {
  const auto words = [](const char* adapter, const std::string& text) {
    const auto report = read(adapter, text, "");
    return report ? std::string("read") : report.error().message;
  };
  const std::string vllm = read_data("constructed-vllm.json");
  EXPECT_THAT(words("vllm-bench", vllm + vllm), HasSubstr("it holds 2 runs"));
  EXPECT_THAT(words("vllm-bench", vllm.substr(0, vllm.size() - 40)),
              HasSubstr("ends in the middle"));
  const auto with = [](const char* file, const char* from, const char* to) {
    std::string text = read_data(file);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, std::string_view(from).size(), to);
  };
  EXPECT_THAT(
      words("aiperf", with("constructed-aiperf.json", "\"error_summary\"",
                           "\"error_request_count\": {\"unit\": \"requests\", \"avg\": 3.0}, "
                           "\"error_summary\"")),
      HasSubstr("3 of 203 requests failed"));
  EXPECT_THAT(words("aiperf", with("constructed-aiperf.json", "\"was_cancelled\": false",
                                   "\"was_cancelled\": true")),
              HasSubstr("cancelled"));
  EXPECT_THAT(
      words("guidellm", with("constructed-guidellm.json", "\"errored\": 0, \"incomplete\": 2",
                             "\"errored\": 5, \"incomplete\": 2")),
      HasSubstr("5 of 205 requests failed"));
  EXPECT_THAT(words("guidellm", with("constructed-guidellm.json",
                                     "\"errored\": 0, \"incomplete\": 2", "\"incomplete\": 2")),
              HasSubstr("does not say how many requests failed"));
  EXPECT_THAT(words("aiperf", with("constructed-aiperf.json", "\"error_summary\": []",
                                   "\"error_summary\": [{\"count\": 150}]")),
              HasSubstr("150 of 350 requests failed"));
  // A second run that is too long to be read.
  std::string long_run = read_data("constructed-guidellm.json");
  const std::size_t list = long_run.find("\"benchmarks\": [");
  ASSERT_NE(list, std::string::npos);
  long_run.insert(list + 15,
                  "{\"requests\": \"" + std::string(std::size_t{33} << 20, 'a') + "\"}, ");
  EXPECT_THAT(words("guidellm", long_run), HasSubstr("left out"));
}

// AIPerf has a total of tokens, too, which is a mark of vLLM's.
TEST(LoadResults, AreTakenForThoseOfTheToolThatTheyName) {
  std::string text = read_data("constructed-aiperf.json");
  text.insert(1, R"("total_output_tokens": {"unit": "tokens", "avg": 1234.0}, )");
  const auto formats = find_formats(Printed({text, {}, "b.json"}));
  ASSERT_FALSE(formats.empty());
  EXPECT_EQ(formats.front()->adapter.name, std::string("aiperf"));
}

}  // namespace reports_test
}  // namespace weir::adapters
