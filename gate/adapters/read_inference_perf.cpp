// inference-perf of the Kubernetes Serving group: summary_lifecycle_metrics.json and
// stage_N_lifecycle_metrics.json, one JSON object each. And llm-d's benchmark report, which it
// writes as YAML (versions 0.1 and 0.2): the same figures under other names.
#include "gate/adapters/readers.hpp"
#include "gate/config/parse.hpp"

namespace weir::adapters::inference_perf {
namespace {

constexpr std::pair<const char*, const char*> k_latencies[] = {
    {"time_to_first_token", "time_to_first_token_seconds"},
    {"time_per_output_token", "time_per_output_token_seconds"},
    {"inter_token_latency", "inter_token_latency_seconds"},
    {"request_latency", "end_to_end_latency_seconds"}};
constexpr std::pair<const char*, const char*> k_figures[] = {
    {"mean", "mean"}, {"median", "median"}, {"stddev", "stddev"}, {"p50", "p50"},
    {"p90", "p90"},   {"p95", "p95"},       {"p99", "p99"}};

// A document does not always say the load, as that of a summary changes from stage to stage.
void check_load(ObservedCase& load, Observed& observed) {
  if (load.facts.contains("requested_rate") || load.facts.contains("concurrency")) return;
  load.facts[k_unsaid_load] = "not in the file";
  add_warning(observed, "{}: it does not say the load: runs of another load look like it",
              load.name);
}

// Reads {"time_to_first_token": {"mean": 0.12, "median": 0.11, "p99": 0.3}, …}; "units" may be ms
// or us.
void add_latencies(const Json& latency, ObservedCase& load) {
  for (const auto& [key, metric] : k_latencies) {
    const Json& figures = member_or_null(latency, key);
    const std::string units = json_text(figures, "units").value_or("s");
    double scale = 1;
    if (units.starts_with("ms")) scale = 1e-3;
    if (units.starts_with("us")) scale = 1e-6;
    for (const auto& [name, figure] : k_figures) {
      if (const auto value = json_number(figures, name))
        add_latency_figure(load.latencies, metric, figure, *value * scale);
    }
  }
}

// Returns the tokens of all requests: their total, or the mean of each.
std::optional<std::int64_t> count_tokens(const Json& total, const Json& length,
                                         const std::optional<std::int64_t>& requests) {
  if (const auto tokens = json_integer(total, "total")) return tokens;
  const auto mean = json_number(length, "mean");
  if (!mean || !requests) return std::nullopt;
  return rounded_count(*mean * static_cast<double>(*requests));
}

// Reads a summary or a stage.
void read_result(const Json& json, Observed& observed) {
  const Json& successes = member_or_null(json, "successes");
  const Json& failures = member_or_null(json, "failures");
  const Json& summary = member_or_null(json, "load_summary");
  if (!successes.is_object() || !summary.is_object()) return;
  ObservedCase load;
  load.name = fmt::format("run {}", observed.cases.size());
  copy_facts(summary, {"count", "requested_rate", "achieved_rate", "concurrency"}, load);
  const auto completed = json_integer(successes, "count"), failed = json_integer(failures, "count");
  set_requests(load, completed, failed);
  const auto sent = json_integer(summary, "count");
  if (!load.error && sent && completed && *sent != *completed + failed.value_or(0))
    fail_load(load, fmt::format("{} of {} requests were completed", *completed, *sent));
  check_load(load, observed);
  load.prompt_tokens = count_tokens(member_or_null(successes, "prompt_tokens"),
                                    member_or_null(successes, "prompt_len"), completed);
  load.generated_tokens = count_tokens(member_or_null(successes, "output_tokens"),
                                       member_or_null(successes, "output_len"), completed);
  const Json& throughput = member_or_null(successes, "throughput");
  set_rate(load, "output_tokens_per_second", json_number(throughput, "output_tokens_per_sec"));
  set_rate(load, "requests_per_second", json_number(throughput, "requests_per_sec"));
  if (has_answers(load)) add_latencies(member_or_null(successes, "latency"), load);
  append_row_within_limit(observed.cases, std::move(load), observed);
}

// Returns the load that a report's scenario describes. Its names differ between versions.
void read_scenario(const Json& json, ObservedCase& load, Observed& observed) {
  const Json& scenario = member_or_null(json, "scenario");
  const Json& settings = member_or_null(scenario, "load");
  const Json& standard = member_or_null(settings, "standardized");
  for (const Json* place : {&settings, &standard}) {
    if (const auto rate = json_number(*place, "rate_qps"))
      load.facts["requested_rate"] = fmt::format("{:g}", *rate);
    copy_facts(*place, {"concurrency"}, load);
  }
  set_model(json_text(member_or_null(scenario, "model"), "name"), observed);
}

// Reads a report of llm-d.
void read_report(const Json& json, Observed& observed) {
  const Json& performance = member_or_null(member_or_null(json, "results"), "request_performance");
  const Json& aggregate = member_or_null(performance, "aggregate");
  const Json& figures = aggregate.is_object() ? aggregate : member_or_null(json, "metrics");
  const Json& requests = member_or_null(figures, "requests");
  if (!requests.is_object()) return;
  ObservedCase load;
  load.name = fmt::format("run {}", observed.cases.size());
  const auto total = json_integer(requests, "total"), failed = json_integer(requests, "failures");
  std::optional<std::int64_t> completed = total;
  if (completed && failed) completed = std::max<std::int64_t>(*total - *failed, 0);
  set_requests(load, completed, failed);
  read_scenario(json, load, observed);
  check_load(load, observed);
  load.prompt_tokens = count_tokens({}, member_or_null(requests, "input_length"), completed);
  load.generated_tokens = count_tokens({}, member_or_null(requests, "output_length"), completed);
  const Json& throughput = member_or_null(figures, "throughput");
  const auto rate = [&](const char* key, const char* older) {
    const auto mean = json_number(member_or_null(throughput, key), "mean");
    return mean ? mean : json_number(throughput, older);
  };
  set_rate(load, "output_tokens_per_second", rate("output_token_rate", "output_tokens_per_sec"));
  set_rate(load, "requests_per_second", rate("request_rate", "requests_per_sec"));
  if (has_answers(load)) add_latencies(member_or_null(figures, "latency"), load);
  append_row_within_limit(observed.cases, std::move(load), observed);
}

// Reads summaries in JSON and llm-d's reports in YAML.
void read(const Printed& printed, Observed& observed) {
  const auto take = [&](const Json& json) {
    read_result(json, observed);
    read_report(json, observed);
  };
  const std::string_view text =
      text::trim(printed.document().out.empty() ? printed.document().err : printed.document().out);
  if (text.starts_with('{')) {
    read_documents(printed, take, observed);
  } else if (const auto yaml = config::parse_yaml(text, "")) {
    take(config::node_to_json(*yaml));
  } else {
    add_warning(observed, "it is no whole YAML: {}", text::first_line(yaml.error().message));
  }
  finish_loads(observed);
}

Result<profile::EngineReport> make_inference_perf_report(const Output& output) {
  return make_load_report("inference-perf", output);
}

}  // namespace
}  // namespace weir::adapters::inference_perf

const weir::adapters::Format weir::adapters::k_inference_perf(
    "inference-perf", "inference-perf: lifecycle metrics, llm-d's benchmark report", "",
    inference_perf::read,
    {{90, {"\"load_summary\" & \"successes\""}},
     {85, {"request_performance & time_to_first_token", "^scenario: & time_to_first_token:"}}},
    {"inference-perf", 18, Counts::results, inference_perf::make_inference_perf_report});
