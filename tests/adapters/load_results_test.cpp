// Results of tools that load servers, as the tools themselves wrote them: weir reads the numbers
// that expected.tsv has, and a gate takes or refuses each file as it says.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace load_results_test {

using testing::HasSubstr;

std::string read_tool_file(const std::string& name) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + "/tests/adapters/load_tools/" + name);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

Result<profile::EngineReport> judge(const std::string& text, config::WantedLoad wanted = {}) {
  const auto formats = find_formats(Printed({text}));
  if (formats.empty()) return fail(Code::data, "no format");
  Output output;
  output.out = text;
  output.wanted_load = wanted;
  return find(formats.front()->adapter.name)->read(output);
}

std::string refusal(const std::string& text, config::WantedLoad wanted = {}) {
  const auto report = judge(text, wanted);
  return report ? "taken" : report.error().message;
}

struct Row {
  std::string file, requests, completed, failed, load, input, output, output_rate, request_rate,
      first_p50, first_p99, whole_p50, whole_p99, right;
};

std::vector<Row> read_expected() {
  std::vector<Row> rows;
  for (const std::string& line : text::lines(read_tool_file("expected.tsv"))) {
    const auto v = text::split(line, '\t');
    if (v.size() != 14 || v[0] == "file") continue;
    rows.push_back(
        {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13]});
  }
  return rows;
}

// Holds a number of the table, which may lack it, against weir's.
void expect_near(const std::string& what, const std::string& expected,
                 const std::optional<double>& value, double unit = 1) {
  const auto number = printed_number(expected);
  if (!number) return;
  ASSERT_TRUE(value) << what << ": nothing read, expected " << expected;
  EXPECT_NEAR(*value / unit, *number, 0.005 * *number) << what;
}

std::optional<double> as_number(const std::optional<std::int64_t>& count) {
  return count ? std::optional(static_cast<double>(*count)) : std::nullopt;
}

std::optional<double> mean_of(const ObservedCase& load, const char* metric) {
  const auto* timing = find_first(
      load.timings, [&](const ObservedTiming& entry) { return entry.metric.name == metric; });
  return timing == nullptr ? std::nullopt : timing->mean;
}

std::optional<double> percentile(const Observed& observed, const char* metric, double percent) {
  for (const ObservedLatency& latency : observed.latencies) {
    const bool is_median = percent == 50 && latency.figure == "median";
    if (latency.metric.name == metric && (is_median || latency.percentile == percent))
      return latency.seconds;
  }
  return std::nullopt;
}

void expect_figures(const Row& row, const Observed& observed, std::size_t run) {
  ASSERT_LT(run, observed.cases.size()) << row.file;
  const ObservedCase& load = observed.cases[run];
  const auto fact = [&](const char* name) { return printed_number(look_up(load.facts, name, "")); };
  expect_near(row.file + " completed", row.completed, fact("completed"));
  expect_near(row.file + " failed", row.failed, fact("failed"));
  expect_near(row.file + " input tokens", row.input, as_number(load.prompt_tokens));
  expect_near(row.file + " output tokens", row.output, as_number(load.generated_tokens));
  expect_near(row.file + " tok/s", row.output_rate, mean_of(load, "output_tokens_per_second"));
  expect_near(row.file + " requests/s", row.request_rate, mean_of(load, "requests_per_second"));
  // Latencies of several runs are one list, and there are none where all requests failed.
  if (observed.cases.size() != 1 || row.completed == "0") return;
  for (const auto& [name, p50, p99] :
       {std::tuple("time_to_first_token_seconds", row.first_p50, row.first_p99),
        std::tuple("end_to_end_latency_seconds", row.whole_p50, row.whole_p99)}) {
    expect_near(row.file + " p50 of " + name, p50, percentile(observed, name, 50), 1e-3);
    expect_near(row.file + " p99 of " + name, p99, percentile(observed, name, 99), 1e-3);
  }
}

TEST(LoadTools, AreReadWithTheirOwnNumbers) {
  std::map<std::string, std::size_t> runs;
  const std::vector<Row> rows = read_expected();
  ASSERT_GT(rows.size(), 35U);
  for (const Row& row : rows) {
    const std::string text = read_tool_file(row.file);
    const auto read = read_any({text});
    ASSERT_TRUE(read) << row.file << ": " << read.error().message;
    EXPECT_TRUE(row.file.starts_with(read->format)) << row.file << ": " << read->format;
    if (row.requests.empty()) continue;  // no run
    expect_figures(row, *read, runs[row.file]++);
  }
  for (const Row& row : rows) {
    const auto read = read_any({read_tool_file(row.file)});
    EXPECT_EQ(read->cases.size(), runs[row.file]) << row.file;
  }
}

TEST(LoadTools, AreJudgedOrRefusedForTheRightReason) {
  static const std::map<std::string, const char*> k_reasons{
      {"refuse: failed", "failed"},
      {"refuse: cancelled", "cancelled"},
      {"refuse: two runs", "it holds 2 runs"},
      {"refuse: no token", "no token was generated"},
      {"say: an aggregate", "aggregate"},
      {"say: sglang, failures unknown", "does not say how many requests failed"}};
  for (const Row& row : read_expected()) {
    const std::string text = read_tool_file(row.file);
    if (row.right != "read") {
      ASSERT_TRUE(k_reasons.contains(row.right)) << row.right;
      EXPECT_THAT(refusal(text), HasSubstr(k_reasons.at(row.right))) << row.file;
      continue;
    }
    const auto report = judge(text);
    ASSERT_TRUE(report) << row.file << ": " << report.error().message;
    EXPECT_EQ(report->requests, text::to_int(row.completed)) << row.file;
    std::string load = row.load;
    if (load.starts_with("rate ")) load.erase(0, 5);
    EXPECT_THAT(report->load.value_or(""), HasSubstr(load)) << row.file;
    EXPECT_GT(report->generated_tokens_per_request.value_or(0), 0) << row.file;
  }
}

// 24 requests were asked for in each of SGLang's files, which do not say so.
TEST(LoadTools, ThatDoNotCountFailuresAreJudgedByTheNumberAskedFor) {
  for (const Row& row : read_expected()) {
    if (!row.file.starts_with("sglang")) continue;
    const std::string answer = refusal(read_tool_file(row.file), {.requests = 24});
    if (row.completed == "24") {
      EXPECT_EQ(answer, "taken") << row.file;
    } else {
      EXPECT_THAT(answer, HasSubstr("18 requests were completed, and the cell asks for 24"));
    }
  }
  // With --output-details the errors are listed.
  std::string details = read_tool_file("sglang-0.5.23-c4.jsonl");
  details.insert(details.rfind('}'), R"(, "errors": ["", "Connection reset", ""])");
  EXPECT_THAT(refusal(details), HasSubstr("1 of 25 requests failed"));
  details = read_tool_file("sglang-0.5.23-c4.jsonl");
  details.insert(details.rfind('}'), R"(, "errors": ["", ""])");
  EXPECT_EQ(refusal(details), "taken");
}

// 6 of 24 requests failed in each of these files.
TEST(LoadTools, WithFailedRequestsAreTakenIfALimitAllowsThem) {
  using verdict::Amount;
  const std::optional<Amount> fits[] = {Amount{6, false}, Amount{0.25, true}, Amount{0.9, true}};
  const std::optional<Amount> exceeded[] = {std::nullopt, Amount{0, false}, Amount{5, false},
                                            Amount{0.24, true}};
  for (const char* name :
       {"vllm-0.32.0-six-of-24-failed.json", "aiperf-0.13.0-six-of-24-failed.json",
        "guidellm-0.8.1-six-of-24-failed.json"}) {
    const std::string text = read_tool_file(name);
    for (const auto& limit : exceeded) {
      EXPECT_THAT(refusal(text, {.may_fail = limit}), HasSubstr("6 of 24 requests failed")) << name;
    }
    for (const auto& limit : fits) {
      const auto report = judge(text, {.may_fail = limit});
      ASSERT_TRUE(report) << name << ": " << report.error().message;
      EXPECT_EQ(report->requests, 18) << name;
      EXPECT_EQ(report->times.back().metric.name, "failed_requests") << name;
      EXPECT_EQ(report->times.back().samples, std::vector{6.0}) << name;
      EXPECT_THAT(report->warnings, testing::Contains(HasSubstr("6 of 24 requests failed")))
          << name;
    }
    EXPECT_THAT(refusal(text, {.may_fail = Amount{0.24, true}}), HasSubstr("24 %")) << name;
    // All that were asked for are 24 whether they failed or not.
    EXPECT_EQ(refusal(text, {.requests = 24, .may_fail = fits[0]}), "taken") << name;
    EXPECT_THAT(refusal(text, {.requests = 25, .may_fail = fits[0]}),
                HasSubstr("18 requests were completed, and the cell asks for 25"))
        << name;
  }
  // A tool that does not count failures: those that are missing.
  const std::string sglang = read_tool_file("sglang-0.5.23-c4-six-of-24-failed.jsonl");
  EXPECT_EQ(refusal(sglang, {.requests = 24, .may_fail = fits[1]}), "taken");
  EXPECT_THAT(refusal(sglang, {.requests = 24, .may_fail = exceeded[3]}),
              HasSubstr("18 requests were completed, and the cell asks for 24"));
  EXPECT_THAT(refusal(sglang, {.may_fail = fits[1]}), HasSubstr("how many requests failed"));
}

TEST(LoadTools, WithOtherErrorsAreRefusedWhateverMayFail) {
  const verdict::Amount all{1, true};
  for (const auto& [name, error] :
       {std::pair{"vllm-0.32.0-all-failed.json", "no request was completed"},
        {"guidellm-0.8.1-no-tokens.json", "failed"},
        {"vllm-0.32.0-no-tokens.json", "no token was generated"},
        {"aiperf-0.13.0-ctrl-c.json", "cancelled"}}) {
    EXPECT_THAT(refusal(read_tool_file(name), {.may_fail = all}), HasSubstr(error)) << name;
  }
}

// expected.tsv has the latencies of both runs.
TEST(LoadTools, WithSeveralRunsGiveTheOneOfTheCellsLoad) {
  for (const char* name : {"guidellm-0.8.1-c1-c4.json", "vllm-0.32.0-append-c1-c4.json"}) {
    const std::string text = read_tool_file(name);
    const auto observed = read_any({text});
    ASSERT_TRUE(observed) << name;
    EXPECT_THAT(collect<std::string>(observed->cases, &ObservedCase::name),
                testing::ElementsAre("concurrency 1", "concurrency 4"))
        << name;
    EXPECT_TRUE(observed->latencies.empty()) << name;
    EXPECT_EQ(list_concurrencies(*observed), (std::vector<std::int64_t>{1, 4})) << name;
    std::vector<Row> rows;
    for (const Row& row : read_expected()) {
      if (row.file == name) rows.push_back(row);
    }
    ASSERT_EQ(rows.size(), 2U);
    for (const Row& row : rows) {
      config::WantedLoad wanted{.concurrency = text::to_int(row.load)};
      wanted.may_fail = verdict::Amount{1, false};
      const auto report = judge(text, wanted);
      ASSERT_TRUE(report) << name << ": " << report.error().message;
      EXPECT_EQ(report->requests, text::to_int(row.completed)) << name;
      const auto* first = find_first(report->times, [](const auto& series) {
        return series.metric.name == "time_to_first_token_seconds";
      });
      ASSERT_NE(first, nullptr);
      expect_near(name, row.first_p50, first->samples.front(), 1e-3);
    }
    EXPECT_THAT(refusal(text, {.concurrency = 8}), HasSubstr("none of its 2 runs (concurrency 1,"));
    EXPECT_THAT(refusal(text), HasSubstr("whose concurrency or rate the prompt has"));
  }
  const std::string once = read_tool_file("vllm-0.32.0-append-c1-c4.json") + "\n";
  EXPECT_THAT(refusal(once + once, {.concurrency = 4}), HasSubstr("2 of its 4 runs"));
  EXPECT_THAT(read_any({once + once})->cases.back().name, "concurrency 4 (2)");
  EXPECT_TRUE(list_concurrencies(*read_any({once + once})).empty());
}

TEST(LoadTools, OfAnotherLoadThanTheCellsAreRefused) {
  const std::string c4 = read_tool_file("vllm-0.32.0-c4.json");
  EXPECT_EQ(refusal(c4, {.requests = 24, .concurrency = 4}), "taken");
  EXPECT_THAT(refusal(c4, {.concurrency = 8}), HasSubstr("4 requests were sent at once"));
  EXPECT_THAT(refusal(c4, {.requests = 100}), HasSubstr("24 requests were completed"));
  const std::string rate = read_tool_file("aiperf-0.13.0-duration.json");
  const std::string vllm_rate = read_tool_file("vllm-0.32.0-rate-20.json");
  EXPECT_EQ(refusal(vllm_rate, {.rate = 20}), "taken");
  EXPECT_THAT(refusal(vllm_rate, {.rate = 8}), HasSubstr("20 requests were sent a second"));
  const auto unlimited = judge(c4, {.rate = 8});
  ASSERT_TRUE(unlimited);
  EXPECT_THAT(unlimited->warnings, testing::Contains(HasSubstr("of no rate of requests")));
}

TEST(LoadTools, WithoutALoadAreRefusedUnlessTheCellSaysIt) {
  const std::string text =
      replaced(read_tool_file("vllm-0.32.0-c4.json"), "\"request_rate\": \"inf\", ", "");
  const std::string none = replaced(text, "\"max_concurrency\": 4, ", "");
  EXPECT_THAT(refusal(none), HasSubstr("does not say the load"));
  const auto said = judge(none, {.concurrency = 4});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_THAT(said->load.value_or(""), HasSubstr("concurrency 4"));
}

TEST(LoadTools, SayWhetherAnswersWereStreamed) {
  EXPECT_THAT(judge(read_tool_file("aiperf-0.13.0-no-streaming.json"))->load.value_or(""),
              HasSubstr("not streamed"));
  EXPECT_THAT(judge(read_tool_file("aiperf-0.13.0-c4.json"))->load.value_or(""),
              testing::Not(HasSubstr("not streamed")));
}

// What AIPerf 0.3 has: no version of its own, settings under loadgen.
TEST(LoadTools, OfOlderAIPerfAndOfGenaiPerfAreToldApart) {
  const std::string figures =
      R"("request_throughput": {"unit": "requests/sec", "avg": 7.5},
         "request_latency": {"unit": "ms", "avg": 240.0, "p50": 235.0, "p99": 310.0},
         "request_count": {"unit": "requests", "avg": 20.0},
         "output_sequence_length": {"unit": "tokens", "avg": 12.0},)";
  const std::string aiperf = "{" + figures +
                             R"("input_config": {"endpoint": {"model_names": ["m"]},
         "loadgen": {"concurrency": 2, "request_count": 20}},
         "was_cancelled": false, "error_summary": []})";
  const auto read = judge(aiperf);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(find_formats(Printed({aiperf})).front()->name, "aiperf");
  EXPECT_EQ(read->model, "m");
  EXPECT_EQ(read->generated_tokens_per_request, 12);
  const std::string genai = "{" + figures +
                            R"("input_config": {"model": ["m"], "concurrency": 2,
         "request_count": 0, "artifact_dir": "artifacts"}})";
  EXPECT_EQ(find_formats(Printed({genai})).front()->name, "genai-perf");
  EXPECT_THAT(refusal(genai), HasSubstr("does not say how many requests failed"));
  const auto wanted = judge(genai, {.requests = 20});
  ASSERT_TRUE(wanted) << wanted.error().message;
  EXPECT_THAT(wanted->load.value_or(""), HasSubstr("concurrency 2"));
}

TEST(LoadTools, MayListEachTokenOfARun) {
  std::string text = read_tool_file("vllm-0.32.0-c4.json");
  std::string lists = R"("itls": [)";
  for (int request = 0; request < 24; ++request) {
    lists += request == 0 ? "[" : ", [";
    for (int token = 0; token < 9000; ++token) lists += "0.012345678901234567, ";
    lists += "0.01]";
  }
  lists += "], \"generated_texts\": [";
  for (int request = 0; request < 24; ++request) {
    lists += (request == 0 ? "\"" : ", \"") + std::string(100'000, 'w') + "\"";
  }
  lists += R"(], "errors": [)" + std::string("\"\"") + "], ";
  const std::string key = "\"mean_ttft_ms\"";
  text.insert(text.find(key), lists);
  ASSERT_GT(text.size(), std::size_t{6} << 20);
  const auto report = judge(text);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->times.size(), judge(read_tool_file("vllm-0.32.0-c4.json"))->times.size());
}

TEST(LoadTools, AreNotReadAsThoseOfAnotherTool) {
  const std::string text = read_tool_file("sglang-0.5.23-c4.jsonl");
  Output output;
  output.out = text;
  const auto report = find("vllm-bench")->read(output);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("output: sglang"));
}

TEST(LoadTools, OfLlmdsReportHaveTheFiguresOfTheStage) {
  const auto stage = read_any({read_tool_file("inference-perf-0.7.0-stage-0.json")});
  const std::string yaml = read_tool_file("inference-perf-0.7.0-partial-stage-0.yaml");
  const auto report = read_any({yaml});
  ASSERT_TRUE(stage && report) << report.error().message;
  EXPECT_EQ(report->format, "inference-perf");
  ASSERT_EQ(report->cases.size(), 1U);
  for (const char* metric : {"time_to_first_token_seconds", "end_to_end_latency_seconds"}) {
    EXPECT_NEAR(percentile(*report, metric, 50).value_or(0),
                percentile(*stage, metric, 50).value_or(1), 1e-12);
    EXPECT_NEAR(percentile(*report, metric, 99).value_or(0),
                percentile(*stage, metric, 99).value_or(1), 1e-12);
  }
  EXPECT_EQ(report->cases[0].generated_tokens, 261);
  EXPECT_THAT(refusal(yaml), HasSubstr("3 of 24 requests failed"));
  EXPECT_EQ(refusal(replaced(yaml, "failures: 3", "failures: 0")), "taken");
}

TEST(LoadTools, WithPercentilesAloneNameTheFileThatIsMissing) {
  const std::string text = read_tool_file("evalscope-1.14.1-percentile-c4.json");
  EXPECT_THAT(refusal(text), HasSubstr("give benchmark_summary.json"));
  EXPECT_NEAR(percentile(*read_any({text}), "end_to_end_latency_seconds", 99).value_or(0), 0.2395,
              1e-9);
}

// 272 requests in 5.072 s; its percentiles are Locust's, of rounded times.
TEST(LoadTools, OfLocustAreReadAsTableAndAsList) {
  const std::string table = read_tool_file("locust-2.47.0-stats.csv");
  const auto csv = judge(table);
  ASSERT_TRUE(csv) << csv.error().message;
  const auto figure = [](const profile::EngineReport& report, const char* metric) {
    for (const auto& series : report.times) {
      if (series.metric.name == metric) return series.samples.at(0);
    }
    return 0.0;
  };
  EXPECT_EQ(csv->requests, 259);
  EXPECT_NEAR(figure(*csv, "requests_per_second"), 51.36741338359467, 1e-9);
  EXPECT_NEAR(figure(*csv, "end_to_end_latency_seconds"), 0.057, 1e-9);
  EXPECT_NEAR(figure(*csv, "end_to_end_latency_p99_seconds"), 0.21, 1e-9);
  EXPECT_THAT(csv->warnings, testing::Contains(HasSubstr("how many users")));
  const auto list = judge(read_tool_file("locust-2.47.0-requests.json"));
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->requests, 272);
  EXPECT_NEAR(figure(*list, "requests_per_second"), 272 / 5.0721498, 1e-3);
  EXPECT_NEAR(figure(*list, "end_to_end_latency_p99_seconds"), 0.21, 1e-9);
  EXPECT_THAT(refusal(replaced(table, "Aggregated,259,0", "Aggregated,259,7")),
              HasSubstr("7 of 259 requests failed"));
  EXPECT_THAT(refusal("Timestamp,User Count,Type,Name,Requests/s\n1,2,,Aggregated,3\n"),
              HasSubstr("_stats.csv"));
}

TEST(Benchmarks, GiveTheirRunsAsSamples) {
  const std::string text = read_tool_file("hyperfine-1.15.0-two-commands.json");
  const auto hyperfine = judge(text);
  ASSERT_TRUE(hyperfine) << hyperfine.error().message;
  ASSERT_EQ(hyperfine->times.size(), 1U);
  EXPECT_EQ(hyperfine->times[0].metric.name, "iteration_seconds");
  EXPECT_EQ(hyperfine->times[0].samples.size(), 6U);
  EXPECT_NEAR(hyperfine->times[0].samples[0], 0.021879649 + 0.031720408, 1e-12);
  EXPECT_THAT(refusal(replaced(text, "        0,\n", "        3,\n")),
              HasSubstr("1 of 6 runs did not exit with 0"));
  const auto pytest = judge(read_tool_file("pytest-benchmark-5.3.1-two-benchmarks.json"));
  ASSERT_TRUE(pytest) << pytest.error().message;
  ASSERT_EQ(pytest->times[0].samples.size(), 20U);
  EXPECT_NEAR(pytest->times[0].samples[0], 5.921000001762877e-05 + 4.484999999476713e-05, 1e-15);
  EXPECT_NE(pytest->output_digest, hyperfine->output_digest);
}

TEST(Benchmarks, ThatLimitsNameAreTakenOneByOne) {
  const std::string text = read_tool_file("pytest-benchmark-5.3.1-two-benchmarks.json");
  const std::vector<std::string> works{"op:*test_loads"};
  Output output;
  output.out = text;
  output.works = works;
  const auto report = find("pytest-benchmark")->read(output);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->times.size(), 2U);
  EXPECT_THAT(report->times[0].metric.name, HasSubstr("test_loads"));
}

// Its requests generated 12 tokens each (expected.tsv).
TEST(LoadTools, WithMoreTokensThanThePromptAllowsAreRefused) {
  const std::string text = read_tool_file("vllm-0.32.0-c4.json");
  EXPECT_EQ(refusal(text, {.concurrency = 4, .tokens = 12}), "taken");
  EXPECT_EQ(refusal(text, {.concurrency = 4, .tokens = 128}), "taken") << "an end of text ends it";
  EXPECT_EQ(refusal(text, {.concurrency = 4, .tokens = 8}),
            "12 tokens were generated a request, and the cell asks for 8");
}

}  // namespace load_results_test
}  // namespace weir::adapters
