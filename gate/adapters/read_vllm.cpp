// vllm bench serve --save-result: one JSON object per run, several with --append-result.
//
// Latencies are percentiles of many requests, in ms. Details (--save-detailed) are lists of every
// request and token, in seconds: some MB.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::vllm {
namespace {

// Lists of details that are read, and those that are passed over.
constexpr std::string_view k_first_tokens = "ttfts", k_errors = "errors";
const std::vector<std::string>& detail_lists() {
  static const std::vector<std::string> k_lists{
      "ttfts",       "errors",      "itls",      "generated_texts", "input_lens",
      "output_lens", "start_times", "latencies", "queue_times",     "prompts"};
  return k_lists;
}

struct Details {
  std::vector<double> first_tokens;
  std::int64_t errors = 0;
};

// Adds an error if requests failed or are missing.
void check_requests(const Json& json, const Details& details, ObservedCase& run) {
  auto failed = json_integer(json, "failed");
  const auto completed = json_integer(json, "completed");
  const auto requested = json_integer(json, "num_prompts");
  // Older versions do not count failed requests.
  if (!failed && completed && requested)
    failed = std::max<std::int64_t>(*requested - *completed, 0);
  if (details.errors > 0) failed = std::max(failed.value_or(0), details.errors);
  set_requests(run, completed, failed);
  if (!run.error && completed && requested && *completed + failed.value_or(0) < *requested)
    fail_load(run, fmt::format("{} of {} requests were completed", *completed, *requested));
}

// Reads the result of one run.
void read_result(const Json& json, const Details& details, Observed& observed) {
  const bool is_result = json.contains("total_output_tokens") ||
                         (json.contains("completed") && json.contains("request_throughput"));
  if (!json.is_object() || !is_result) return;
  ObservedCase run;
  run.name = json_text(json, "label").value_or(fmt::format("run {}", observed.cases.size()));
  copy_facts(json,
             {"date", "endpoint_type", "label", "tokenizer_id", "request_rate", "burstiness",
              "max_concurrency", "num_prompts", "duration", "request_throughput", "request_goodput",
              "total_token_throughput"},
             run);
  if (const auto burstiness = json_number(json, "burstiness"); burstiness && *burstiness != 1)
    run.facts["arrivals"] = fmt::format("of burstiness {:g}", *burstiness);
  set_model(json_text(json, "model_id"), observed);
  if (const auto backend = json_text(json, "backend")) observed.context.backend = *backend;
  check_requests(json, details, run);
  run.prompt_tokens = json_integer(json, "total_input_tokens");
  run.generated_tokens = json_integer(json, "total_output_tokens");
  // The rate over all requests includes the time of their prompts, so it is no decode rate.
  set_rate(run, "output_tokens_per_second", json_number(json, "output_throughput"));
  set_rate(run, "requests_per_second", json_number(json, "request_throughput"));
  set_rate(run, "goodput_requests_per_second", json_number(json, "request_goodput"));
  for (const double seconds : details.first_tokens) {
    add_sample(run.timings, "time_to_first_token_seconds", seconds);
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_number() && has_answers(run))
      add_latency_by_key(run.latencies, key, value.get<double>());
  }
  append_row_within_limit(observed.cases, std::move(run), observed);
}

}  // namespace

// Reads {"completed": 100, "mean_ttft_ms": 81.5, …, "ttfts": [0.08, …], "errors": ["", …]}, or a
// list of such runs. Lists of other details are passed over.
void read(const Printed& printed, Observed& observed) {
  Details details;
  const auto take_detail = [&](std::string_view list, const Json& value) {
    if (list.empty()) return read_result(value, {}, observed);  // a run in a list of runs
    if (list == k_first_tokens && value.is_number() && details.first_tokens.size() < k_max_rows)
      details.first_tokens.push_back(value.get<double>());
    if (list == k_errors && value.is_string() && value != "") ++details.errors;
  };
  const auto take_run = [&](const Json& members) {
    read_result(members, std::exchange(details, {}), observed);
  };
  const auto pass_over = [](std::string_view list, std::string_view rest) {
    const bool is_read = list.empty() || list == k_first_tokens || list == k_errors;
    return is_read ? 0 : skip_elements(rest);
  };
  read_pieces(printed, detail_lists(), {take_detail, take_run, pass_over}, observed);
  finish_loads(observed);
}

Result<profile::EngineReport> make_vllm_report(const Output& output) {
  return make_load_report("vllm", output);
}

}  // namespace weir::adapters::vllm

const weir::adapters::Format weir::adapters::k_vllm(
    "vllm", "vllm bench serve --save-result", "vllm", vllm::read,
    {{85,
      {"\"request_throughput\" & \"total_output_tokens\"", "\"output_throughput\"",
       "\"request_throughput\" & \"total_token_throughput\""}}},
    {"vllm-bench", 11, Counts::results, vllm::make_vllm_report});
