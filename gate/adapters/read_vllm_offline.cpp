// vllm bench latency and vllm bench throughput: --output-json, and what they print.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters {

// Each latency is that of a batch of requests, in seconds.
namespace vllm_latency {
namespace {

constexpr const char* k_latency = "end_to_end_latency_seconds";

// Reads {"avg_latency": 2.1, "latencies": [2.0, …], "percentiles": {"50": 2.1, …}}.
void read_result(const Json& json, Observed& observed) {
  if (!json.is_object() || !json.contains("avg_latency")) return;
  ObservedCase run;
  run.name = fmt::format("run {}", observed.cases.size());
  for (const Json& seconds : list_or_empty(json, "latencies")) {
    if (seconds.is_number()) add_sample(run.timings, k_latency, seconds.get<double>());
  }
  if (const auto mean = json_number(json, "avg_latency"); mean && *mean > 0)
    find_or_add_timing(run.timings, find_time_metric(k_latency)).mean = mean;
  for (const auto& [percent, seconds] : member_or_null(json, "percentiles").items()) {
    if (seconds.is_number())
      add_latency_figure(run.latencies, k_latency, percent == "50" ? "median" : "p" + percent,
                         seconds.get<double>());
  }
  if (run.timings.empty()) return add_unread_part(observed, "runs", "a run has no latency");
  add_read_parts(observed, "runs");
  append_row_within_limit(observed.cases, std::move(run), observed);
}

// Reads "Avg latency: 1.23 seconds" and "99% percentile latency: 1.30 seconds".
void read_line(std::string_view line, Observed& observed) {
  LineScanner scan(line);
  double seconds = 0, percent = 0;
  if (scan.read_values("Avg latency: {} seconds", seconds)) {
    ObservedCase run;
    run.name = fmt::format("run {}", observed.cases.size());
    find_or_add_timing(run.timings, find_time_metric(k_latency)).mean = seconds;
    append_row_within_limit(observed.cases, std::move(run), observed);
  } else if (scan.read_values("{}% percentile latency: {} seconds", percent, seconds)) {
    auto& latencies = observed.cases.empty() ? observed.latencies : observed.cases.back().latencies;
    add_latency_figure(latencies, k_latency, percent == 50 ? "median" : fmt::format("p{}", percent),
                       seconds);
  }
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  if (printed.holds("\"avg_latency\"")) {
    read_documents(
        printed, [&](const Json& json) { read_result(json, observed); }, observed);
  } else {
    for (const std::string_view line : printed.lines()) {
      if (!printed.may_be_cut(line)) read_line(line, observed);
    }
  }
  if (!observed.cases.empty()) finish_loads(observed);
}

}  // namespace vllm_latency

const Format k_vllm_latency(
    "vllm-latency", "vllm bench latency, --output-json or as printed", "vllm", vllm_latency::read,
    {{85, {"\"avg_latency\" & \"percentiles\"", "Avg latency: & % percentile latency:"}}});

namespace vllm_throughput {
namespace {

// Adds a run as a case with its rates a second: `requests`, `tokens` of prompts and answers, and
// `output` tokens.
void add_run(std::optional<double> requests, std::optional<double> tokens,
             std::optional<double> output, ObservedCase run, Observed& observed) {
  run.name = fmt::format("run {}", observed.cases.size());
  set_rate(run, "requests_per_second", requests);
  set_rate(run, "output_tokens_per_second", output);
  if (tokens && *tokens > 0) {  // of prompts and answers
    const auto metric = unit::custom_metric("tokens_per_second", unit::Kind::time,
                                            unit::Unit::tokens_per_second, unit::Better::higher);
    find_or_add_timing(run.timings, metric).mean = tokens;
  }
  const bool has_rate = std::ranges::any_of(
      run.timings, [](const ObservedTiming& rate) { return rate.mean.value_or(0) > 0; });
  if (!has_rate) return add_unread_part(observed, "runs", "a run has no rate above 0");
  add_read_parts(observed, "runs");
  append_row_within_limit(observed.cases, std::move(run), observed);
}

void read_result(const Json& json, Observed& observed) {
  if (!json.is_object() || !json.contains("requests_per_second")) return;
  ObservedCase run;
  for (const char* fact : {"elapsed_time", "num_requests", "total_num_tokens"}) {
    if (const Json& value = member_or_null(json, fact); value.is_number())
      run.facts[fact] = json_display_text(value);
  }
  add_run(json_number(json, "requests_per_second"), json_number(json, "tokens_per_second"),
          std::nullopt, std::move(run), observed);
}

// Reads a line of a run: its numbers of tokens ("Total num prompt tokens: 512"), or its rates,
// which end the run: "Throughput: 9.41 requests/s, 4231.25 total tokens/s, 2115.11 output
// tokens/s". Older versions print the first two rates, "tokens/s".
void read_line(std::string_view line, ObservedCase& run, Observed& observed) {
  LineScanner scan(line);
  double requests = 0, tokens = 0, output = 0;
  if (scan.skip_prefix("Total num prompt tokens:")) {
    run.prompt_tokens = scan.integer();
  } else if (scan.skip_prefix("Total num output tokens:")) {
    run.generated_tokens = scan.integer();
  } else if (scan.read_values("Throughput: {} requests/s,", requests)) {
    std::optional<double> total, generated;
    if (scan.read_values("{} total tokens/s,", tokens) || scan.read_values("{} tokens/s", tokens))
      total = tokens;
    if (scan.read_values("{} output tokens/s", output)) generated = output;
    add_run(requests, total, generated, std::exchange(run, {}), observed);
  }
}

}  // namespace

// Reads JSON results if the text has any, else the lines that are printed.
void read(const Printed& printed, Observed& observed) {
  if (printed.holds("\"requests_per_second\"")) {
    read_documents(
        printed, [&](const Json& json) { read_result(json, observed); }, observed);
  } else {
    ObservedCase run;
    // The tokens are printed after the rate of the newer versions.
    for (const std::string_view line : printed.lines()) {
      if (printed.may_be_cut(line)) continue;
      read_line(line, run, observed);
    }
    if (observed.cases.size() == 1) {
      auto& only = observed.cases.front();
      if (!only.prompt_tokens) only.prompt_tokens = run.prompt_tokens;
      if (!only.generated_tokens) only.generated_tokens = run.generated_tokens;
    }
  }
  if (!observed.cases.empty()) finish_loads(observed);
}

}  // namespace vllm_throughput

const Format k_vllm_throughput(
    "vllm-throughput", "vllm bench throughput, --output-json or as printed", "vllm",
    vllm_throughput::read,
    {{84,
      {"\"elapsed_time\" & \"requests_per_second\"", "^Throughput: & requests/s, & tokens/s"}}});

}  // namespace weir::adapters
