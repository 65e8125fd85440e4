// vllm bench serve --save-result: one JSON object per run, several with --append-result.
//
// Latencies are percentiles of many requests, in ms; details (--save-detailed) are in seconds.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::vllm {
namespace {

constexpr std::pair<std::string_view, const char*> k_latencies[] = {
    {"ttft", "time_to_first_token_seconds"},
    {"tpot", "time_per_output_token_seconds"},
    {"itl", "inter_token_latency_seconds"},
    {"e2el", "end_to_end_latency_seconds"}};

std::string latency_metric(std::string_view name) {
  const auto* match =
      find_first(k_latencies, [&](const auto& latency) { return latency.first == name; });
  return match ? match->second : fmt::format("{}_seconds", name);
}

// Adds a latency by its key: "p99_ttft_ms", "p99.9_itl_ms", "mean_e2el_ms". Other keys are ignored.
void add_latency(const std::string& key, double ms, Observed& observed) {
  Scan scan(key);
  const std::string figure(scan.read_until("_").value_or(""));
  const std::string name(scan.read_until_last("_ms").value_or(""));
  if (name.empty() || name.size() > 60 || !scan.done()) return;
  static const std::map<std::string, std::string> k_figures{
      {"mean", "mean"}, {"median", "median"}, {"std", "stddev"}};
  const std::string known_figure =
      look_up(k_figures, figure, figure.starts_with('p') ? figure : "");
  if (!known_figure.empty()) add_figure(observed, latency_metric(name), known_figure, ms / 1e3);
}

// Reads the model, the backend and the settings of a run.
void read_settings(const Json& json, ObservedCase& run, Observed& observed) {
  auto& context = observed.context;
  if (const auto model = json_text(json, "model_id")) {
    context.model = *model;
    if (model->starts_with('/')) add_place(observed, *model);
  }
  if (const auto backend = json_text(json, "backend")) context.backend = *backend;
  for (const char* key :
       {"date", "endpoint_type", "label", "tokenizer_id", "request_rate", "burstiness",
        "max_concurrency", "num_prompts", "duration", "completed", "failed", "request_throughput",
        "request_goodput", "total_token_throughput"}) {
    const Json& setting = member_or_null(json, key);
    if (setting.is_primitive() && !setting.is_null()) run.facts[key] = json_display_text(setting);
  }
}

// Adds an error if requests failed or are missing.
void check_requests(const Json& json, ObservedCase& run, Observed& observed) {
  const auto failed = json_integer(json, "failed");
  const auto completed = json_integer(json, "completed");
  const auto requested = json_integer(json, "num_prompts");
  if (failed.value_or(0) > 0 || (completed && requested && *completed != *requested)) {
    run.error = fmt::format("{} of {} requests were completed", completed.value_or(0),
                            requested.value_or(0));
    observed.errors.push_back(run.name + ": " + *run.error);
  }
}

// Reads the result of one run.
void read_result(const Json& json, Observed& observed) {
  if (!json.is_object() || !json.contains("total_output_tokens")) return;
  ObservedCase run;
  run.name = json_text(json, "label").value_or(fmt::format("run {}", observed.cases.size()));
  read_settings(json, run, observed);
  check_requests(json, run, observed);
  run.prompt_tokens = json_integer(json, "total_input_tokens");
  run.generated_tokens = json_integer(json, "total_output_tokens");
  // The rate over all requests includes the time of their prompts, so it is no decode rate.
  set_rate(run, "output_tokens_per_second", json_number(json, "output_throughput"));
  set_rate(run, "requests_per_second", json_number(json, "request_throughput"));
  set_rate(run, "goodput_requests_per_second", json_number(json, "request_goodput"));
  // The companion of the result: lists of every request, in seconds.
  for (const Json& seconds : list_in(json, "ttfts")) {
    if (seconds.is_number())
      add_sample(run.timings, "time_to_first_token_seconds", seconds.get<double>());
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_number()) add_latency(key, value.get<double>(), observed);
  }
  append_row_within_limit(observed.cases, std::move(run), observed);
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  read_documents(
      printed, [&](const Json& json) { read_result(json, observed); }, observed);
  finish_loads(observed);
}

Result<profile::EngineReport> make_vllm_report(const Output& output) {
  return make_load_report("vllm", output);
}

}  // namespace weir::adapters::vllm

const weir::adapters::Format weir::adapters::k_vllm(
    "vllm", "vllm bench serve --save-result", "vllm", vllm::read,
    {{85, {"\"request_throughput\" & \"total_output_tokens\"", "\"output_throughput\""}}},
    {"vllm-bench", 11, Counts::results, vllm::make_vllm_report});
