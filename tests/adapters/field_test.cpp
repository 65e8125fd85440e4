// Files as people have them: other encodings, tables copied from pages, logs of old builds, names
// that are no ASCII, crashed programs. Expected numbers are those that stand in the texts; rates of
// servers are of all tokens but the first.
#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace field_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

observed::Observed read(const std::string& out, const std::string& err = "") {
  auto result = read_any({out, err});
  if (result) return std::move(*result);
  ADD_FAILURE() << result.error().message;
  return {};
}

// Returns "name value ± deviation" for each rate of each case.
std::vector<std::string> rates(const observed::Observed& observed) {
  std::vector<std::string> lines;
  for (const auto& test : observed.cases) {
    const std::string name = observed::case_name(test, observed.case_settings);
    for (const auto& timing : test.timings) {
      std::string line = fmt::format("{}: {:.2f}", name, timing.value().value_or(-1));
      if (timing.stddev) line += fmt::format(" ± {:.2f}", *timing.stddev);
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

TEST(LlamaBenchTables, AreReadInTheFormsThatPeoplePaste) {
  const struct {
    const char* file;
    std::vector<std::string> rates;
  } cases[] = {
      {"constructed-llama-bench-oem437.md.txt", {"pp512: 8123.40 ± 41.20", "tg128: 211.50 ± 0.61"}},
      {"constructed-llama-bench-cp1252.md.txt", {"pp512: 8123.40 ± 41.20", "tg128: 211.50 ± 0.61"}},
      {"constructed-llama-bench-no-outer-bars.md.txt",
       {"pp512: 8123.40 ± 41.20", "tg128: 211.50 ± 0.61"}},
      {"constructed-llama-bench-2023.md.txt", {"pp512: 1500.00 ± 10.00", "tg128: 75.00 ± 0.50"}},
      {"constructed-llama-bench-gp.md.txt",
       {"pp512: 9100.20 ± 55.10", "tg128: 140.10 ± 0.11", "tg128 @ d512: 133.40 ± 0.09",
        "tg128 @ d8192: 91.70 ± 0.12"}},
      {"constructed-llama-bench-blank-repeats.md.txt",
       {"pp128, flash_attn 0: 3000.00 ± 10.00", "tg128, flash_attn 0: 70.00 ± 0.10",
        "pp128, flash_attn 1: 3100.00 ± 9.00", "tg128, flash_attn 1: 72.00 ± 0.20"}},
      {"constructed-llama-bench-ot.md.txt",
       {R"(pp512, tensor_buft_overrides blk\.(1|2|3)\.ffn_(up|down|gate)_exps=CPU: 512.25 ± 3.10)",
        R"(tg128, tensor_buft_overrides blk\.(1|2|3)\.ffn_(up|down|gate)_exps=CPU: 41.75 ± 0.20)",
        "pp512, tensor_buft_overrides none: 2210.50 ± 9.30",
        "tg128, tensor_buft_overrides none: 151.00 ± 0.40"}},
      {"constructed-llama-bench-several.jsonl",
       {"tg128, llama 1B Q8_0, flash_attn 0: 200.00 ± 0.61",
        "tg128, llama 1B Q8_0, flash_attn 1: 220.00 ± 0.61",
        "tg128, qwen2 7B Q4_K - Medium, flash_attn 0: 80.00 ± 0.61"}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(rates(read(read_data(c.file))), c.rates) << c.file;
  }
}

TEST(LlamaBenchTables, OfSeveralModelsNameNoneForTheWhole) {
  const auto observed = read(read_data("constructed-llama-bench-several.md.txt"));
  EXPECT_EQ(observed.context.model, std::nullopt);
  EXPECT_EQ(observed.context.engine_build, "1a2b3c4d");
  EXPECT_THAT(observed.case_settings, ElementsAre("model_type", "flash_attn"));
  EXPECT_TRUE(observed.timings.empty()) << "no rate is that of the whole";
}

TEST(LlamaBenchTables, CountRowsThatTheyDoNotRead) {
  const std::string heading = "| model | size | test | t/s |\n| --- | --- | --- | --- |\n";
  const std::string good = "| llama 1B | 1 GiB | pp512 | 8123.40 ± 41.2 |\n";
  const struct {
    const char* row;
    const char* warning;
  } cases[] = {
      {"| llama | 1B | 1 GiB | tg128 | 211.50 ± 0.61 |\n",
       "1 of 2 tests not read: a cell holds a bar"},
      {"| llama 1B | 1 GiB | xx128 | 211.50 ± 0.61 |\n",
       "1 of 2 tests not read: the test \"xx128\" is of another kind"},
      {"| llama 1B | 1 GiB | tg128 | - |\n", "1 of 2 tests not read: \"-\" is no rate"},
      {"| llama 1B | 1 GiB | tg128 | 0.00 ± 0.00 |\n",
       "1 of 2 tests not read: tg128: 0 tokens a second"},
      {"| llama 1B | tg128 | 211.50 ± 0.61 |\n",
       "1 of 2 tests not read: a row has fewer cells than the heading"},
  };
  for (const auto& c : cases) {
    const auto observed = read(heading + good + c.row + "\nbuild: 1a2b3c4d (9001)\n");
    EXPECT_THAT(rates(observed), ElementsAre("pp512: 8123.40 ± 41.20")) << c.row;
    EXPECT_THAT(observed.warnings, Contains(c.warning)) << c.row;
  }
}

TEST(LlamaServerLogs, GiveTheTimingsOfEachRequestWhateverTheBuild) {
  const struct {
    const char* file;
    std::vector<std::string> rates;
  } cases[] = {
      {"constructed-llama-server-2024.stderr.txt",
       {"task 0: 100.00", "task 0: 50.00", "task 301: 50.00", "task 301: 25.00"}},
      {"constructed-llama-server-compose.stderr.txt", {"task 0: 100.00", "task 0: 50.00"}},
      {"constructed-llama-server-three-lines.stderr.txt",
       {"request 0: 640.00", "request 0: 24.90"}},
      {"constructed-llama-server-router.stderr.txt", {"task 12: 100.00", "task 12: 50.00"}},
      {"constructed-llama-server-2024-03.jsonl", {"task 7: 100.00", "task 7: 50.00"}},
      {"constructed-llama-cli-2026.txt", {"turn 0: 412.50", "turn 0: 50.20"}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(rates(read(read_data(c.file))), c.rates) << c.file;
  }
  const auto ollama = read(read_data("constructed-ollama-journald.stderr.txt"));
  ASSERT_EQ(ollama.timings.size(), 3U);  // load, prompt, and 250 runs in 5 s
  EXPECT_EQ(ollama.timings[1].samples, std::vector<double>{2000});
  EXPECT_EQ(ollama.timings[2].samples, std::vector<double>{50});
}

TEST(LlamaServerLogs, CountRequestsWithoutTimings) {
  const auto read = read_any({"slot print_timing: id  0 | task 0 | \nsrv  update_slots: idle\n"});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message,
              HasSubstr("1 of 1 requests not read: task 0: its timings are missing"));
}

TEST(GoogleBenchmark, TakesComplexityForNoBenchmarkAndSkippedForNoFailure) {
  const auto complexity = read(read_data("constructed-google-benchmark-complexity.json"));
  EXPECT_EQ(complexity.cases.size(), 2U);
  const auto skipped = read(read_data("constructed-google-benchmark-skipped.json"));
  EXPECT_TRUE(skipped.errors.empty());
  EXPECT_THAT(skipped.warnings, Contains("BM_gpu: skipped: no GPU here"));
  for (const char* file : {"constructed-google-benchmark-complexity.json",
                           "constructed-google-benchmark-skipped.json"}) {
    const auto report =
        find("google-benchmark")->read({read_data(file), "", {}, "cpu", nullptr, {}, {}});
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->times.size(), 1U);
    EXPECT_NEAR(report->times[0].samples.at(0), 901.5e-9, 1e-15) << file;  // 100.5 + 801 ns
  }
}

TEST(GoogleBenchmark, CountsRowsWithoutATime) {
  const auto observed = read(R"({"context": {"library_build_type": "release"}, "benchmarks": [
    {"name": "a", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "ms"},
    {"name": "b", "run_type": "iteration", "real_time": 0.0, "cpu_time": 1.0, "time_unit": "ms"}]})");
  EXPECT_THAT(observed.warnings,
              Contains(HasSubstr("b: real_time is missing, 0 or in no unit of time")));
}

TEST(GoogleBenchmark, NamesThatDifferStayDifferentMetrics) {
  const std::vector<std::string> works{"op:BM_gr*"};
  const auto report = find("google-benchmark")
                          ->read({read_data("constructed-google-benchmark-umlauts.json"),
                                  "",
                                  {},
                                  "cpu",
                                  nullptr,
                                  {},
                                  works});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->times.size(), 3U);
  EXPECT_EQ(report->times[0].metric.name, "op:BM_größe/1");
  EXPECT_EQ(report->times[1].metric.name, "op:BM_grüße/1");
}

TEST(GoogleBenchmark, ReadsNamesThatAreNoUtf8) {
  const auto observed = read(
      "{\"context\": {\"library_build_type\": \"release\"}, \"benchmarks\": ["
      "{\"name\": \"gr\xF6\xDF\x65\", \"real_time\": 2.0, \"cpu_time\": 1.0, \"time_unit\": "
      "\"ms\"},"
      "{\"name\": \"gr\xFC\xDF\x65\", \"real_time\": 3.0, \"cpu_time\": 1.0, \"time_unit\": \"ms\"}"
      "]}");
  ASSERT_EQ(observed.cases.size(), 2U);
  EXPECT_EQ(observed.cases[0].name, "größe");
  EXPECT_EQ(observed.cases[1].name, "grüße");
}

TEST(Crashes, AreAWarningBesideNumbersAndPartOfTheErrorWhereNumbersAreMissing) {
  const std::string crash = "run.sh: line 3:  41 Segmentation fault      (core dumped) ./engine\n";
  const auto observed = read(read_data("llama-bench.json"), crash);
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("the program crashed: run.sh: line 3:")));
  const auto report = find("mlx-lm")->read(
      {read_data("constructed-mlx-lm.txt"), crash, {}, "cpu", nullptr, {}, {}});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->warnings, Contains(HasSubstr("the program crashed: run.sh: line 3:")));
  const auto few =
      find("llama-bench")->read({"[]", crash, {.tokens = 8, .repeats = 1}, "cpu", nullptr, {}, {}});
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().message, HasSubstr("; the program crashed: run.sh: line 3:"));
}

// A load tool writes into its result what it caught from a request that failed.
TEST(Crashes, AreNotWhatAResultQuotes) {
  std::string result = read_data("constructed-guidellm.json");
  const std::string quoted = "\"error\": \"Traceback (most recent call last):\", ";
  result.insert(result.find('{') + 1, quoted);
  EXPECT_THAT(read(result).warnings, Not(Contains(HasSubstr("crashed"))));
  result.insert(result.find(quoted), "\n  ");
  EXPECT_THAT(read(result).warnings, Not(Contains(HasSubstr("crashed"))));
}

TEST(ReadAny, NamesTheNearestFormatsAndWhatTheyLack) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {R"({"request_throughput": 2.0, "mean_latency": 1.0})",
       "The nearest: vllm (\"total_output_tokens\" is missing)"},
      {"### ❌ weir: 1 of 1 cell broke a limit\n\n<sub>weir 1.0</sub>",
       "it looks like a report of weir, which weir does not read back: name the run's folder, or "
       "the verdict.json in it"},
      {R"({"http_req_duration": {}})", "it looks like a result of k6: weir has no reader for it"},
      {R"({"p99_ttft": 1.5, "tpot": {"mean": 2}})",
       "it looks like the result of a load tool (p99_ttft, tpot): weir has no reader for it"},
      {"log: Vulkan Timings:\n",
       "The nearest: vk-perf-logger (no line begins with Vulkan Timings:)"},
  };
  for (const auto& c : cases) {
    const auto read = read_any({c.text});
    ASSERT_FALSE(read) << c.text;
    EXPECT_THAT(read.error().message, HasSubstr(c.message));
  }
}

TEST(ReadAny, SaysThatTwoFormatsFit) {
  const auto observed = read(read_data("constructed-tracy.csv"),
                             "[GREEDY_PROFILE] linear_attn=1.2ms dispatches=1350\n");
  EXPECT_THAT(observed.warnings,
              Contains("it has the marks of hf2q and of tracy-csv: weir reads the first"));
}

TEST(Prometheus, OfAnotherServerSaysThatNothingIsCompared) {
  const auto observed =
      read("# TYPE trt_requests counter\n# TYPE trt_queue gauge\ntrt_requests 5\n");
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("none of its 1 counter is a rate")));
}

}  // namespace field_test
}  // namespace weir::adapters
