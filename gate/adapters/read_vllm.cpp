// vllm bench serve --save-result: one JSON object a run, several with --append-result.
//
// Latencies are percentiles of many requests, in ms; details (--save-detailed) are in seconds.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::vllm {
namespace {

constexpr std::pair<std::string_view, std::string_view> k_latencies[] = {
    {"ttft", "time_to_first_token_seconds"},
    {"tpot", "time_per_output_token_seconds"},
    {"itl", "inter_token_latency_seconds"},
    {"e2el", "end_to_end_latency_seconds"}};

unit::Metric latency_metric(std::string_view name) {
  const auto* known = first_of(k_latencies, [&](const auto& one) { return one.first == name; });
  return known ? time_named(known->second) : own_time(fmt::format("{}_seconds", name));
}

// "p99_ttft_ms", "p99.9_itl_ms", "mean_e2el_ms"
std::optional<ObservedLatency> latency_of(const std::string& key, double ms) {
  Scan scan(key);
  const std::string figure(scan.until("_").value_or(""));
  const std::string name(scan.until_last("_ms").value_or(""));
  if (figure.empty() || name.empty() || name.size() > 60 || !scan.done() || ms < 0)
    return std::nullopt;
  ObservedLatency latency;
  latency.metric = latency_metric(name);
  latency.seconds = ms / 1e3;
  static const std::map<std::string, std::string> k_figures{
      {"mean", "mean"}, {"median", "median"}, {"std", "stddev"}};
  latency.figure = look_up(k_figures, figure, "percentile");
  if (latency.figure != "percentile") return latency;
  latency.percentile = figure[0] == 'p' ? printed_number(figure.substr(1)) : std::nullopt;
  const bool fits = latency.percentile && *latency.percentile > 0 && *latency.percentile < 100;
  return fits ? std::optional(latency) : std::nullopt;
}

void read_settings(const Json& json, ObservedCase& one, Observed& observed) {
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
    const Json& found = below(json, key);
    if (found.is_primitive() && !found.is_null()) one.facts[key] = json_shown(found);
  }
}

void check_requests(const Json& json, ObservedCase& one, Observed& observed) {
  const auto failed = json_whole(json, "failed");
  const auto completed = json_whole(json, "completed");
  const auto asked = json_whole(json, "num_prompts");
  if (failed.value_or(0) > 0 || (completed && asked && *completed != *asked)) {
    one.error =
        fmt::format("{} of {} requests were completed", completed.value_or(0), asked.value_or(0));
    observed.errors.push_back(one.name + ": " + *one.error);
  }
}

void read_result(const Json& json, Observed& observed) {
  if (!json.is_object() || !json.contains("total_output_tokens")) return;
  ObservedCase one;
  one.name = json_text(json, "label").value_or(fmt::format("run {}", observed.cases.size()));
  read_settings(json, one, observed);
  check_requests(json, one, observed);
  one.prompt_tokens = json_whole(json, "total_input_tokens");
  one.generated_tokens = json_whole(json, "total_output_tokens");
  // Of all requests together, the time of their prompts included: no engine's decode rate.
  if (const auto rate = json_number(json, "output_throughput"); rate && *rate > 0) {
    const auto metric = unit::custom_metric("output_tokens_per_second", unit::Kind::time,
                                            unit::Unit::tokens_per_second, unit::Better::higher);
    timing_of(one.timings, metric).mean = rate;
  }
  // The companion of the result: lists of every request, in seconds.
  for (const Json& seconds : list_in(json, "ttfts")) {
    if (seconds.is_number())
      add_sample(one.timings, "time_to_first_token_seconds", seconds.get<double>());
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_number()) continue;
    auto latency = latency_of(key, value.get<double>());
    if (latency) keep_row(observed.latencies, std::move(*latency), observed);
  }
  keep_row(observed.cases, std::move(one), observed);
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  read_documents(
      printed, [&](const Json& json) { read_result(json, observed); }, observed);
  take_tokens_of_only_case(observed);
  if (observed.cases.size() == 1) {
    observed.timings = observed.cases.front().timings;
  } else {
    add_warning(observed, "it holds several runs: latencies are listed run by run");
  }
}

}  // namespace weir::adapters::vllm

const weir::adapters::Format weir::adapters::k_vllm(
    "vllm", "vllm bench serve --save-result", "vllm", vllm::read,
    {{85, {"\"request_throughput\"", "\"total_output_tokens\""}}});
