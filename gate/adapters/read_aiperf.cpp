// AIPerf's profile_export_aiperf.json: one JSON object a run. Each metric is an object of figures
// in the unit that it names: {"unit": "ms", "avg": 81.5, "p50": 70.25, …, "std": 20.5}.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::aiperf {
namespace {

// AIPerf's inter-token latency is one number per request, weir's time per output token.
constexpr std::pair<const char*, const char*> k_latencies[] = {
    {"time_to_first_token", "time_to_first_token_seconds"},
    {"inter_token_latency", "time_per_output_token_seconds"},
    {"inter_chunk_latency", "inter_token_latency_seconds"},
    {"request_latency", "end_to_end_latency_seconds"}};
constexpr std::pair<const char*, const char*> k_rates[] = {
    {"output_token_throughput", "output_tokens_per_second"},
    {"request_throughput", "requests_per_second"},
    {"goodput", "goodput_requests_per_second"}};
constexpr std::pair<const char*, const char*> k_figures[] = {{"avg", "mean"}, {"std", "stddev"},
                                                             {"p50", "p50"},  {"p90", "p90"},
                                                             {"p95", "p95"},  {"p99", "p99"}};

// Returns the unit of a time in seconds; nothing for other units.
std::optional<double> time_scale(const Json& metric) {
  static const std::map<std::string, double> k_scales{
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"sec", 1}, {"s", 1}};
  const double* scale = look_up(k_scales, json_text(metric, "unit").value_or(""));
  return scale ? std::optional(*scale) : std::nullopt;
}

std::optional<std::int64_t> average_count(const Json& json, const char* key) {
  return json_integer(member_or_null(json, key), "avg");
}

// Reads the result of one run.
void read_result(const Json& json, Observed& observed) {
  if (!member_or_null(json, "request_count").is_object()) return;
  ObservedCase load;
  load.name = fmt::format("run {}", observed.cases.size());
  const Json& config = member_or_null(json, "input_config");
  for (const char* key : {"concurrency", "request_rate", "request_count", "benchmark_duration"}) {
    const Json& setting = member_or_null(member_or_null(config, "loadgen"), key);
    if (setting.is_primitive() && !setting.is_null()) load.facts[key] = json_display_text(setting);
  }
  const Json& models = list_in(member_or_null(config, "endpoint"), "model_names");
  if (!models.empty() && models.front().is_string()) {
    observed.context.model = json_display_text(models.front());
    if (observed.context.model->starts_with('/')) add_place(observed, *observed.context.model);
  }
  // The number of errors is missing if there are none.
  const bool has_errors = !list_in(json, "error_summary").empty();
  const auto failed = average_count(json, "error_request_count");
  set_requests(load, average_count(json, "request_count"),
               failed || has_errors ? failed : std::optional<std::int64_t>(0), observed);
  if (json_flag(json, "was_cancelled")) load.error = "the run was cancelled";
  load.prompt_tokens = average_count(json, "total_isl");
  load.generated_tokens = average_count(json, "total_output_tokens");
  for (const auto& [key, metric] : k_rates) {
    set_rate(load, metric, json_number(member_or_null(json, key), "avg"));
  }
  for (const auto& [key, metric] : k_latencies) {
    const Json& figures = member_or_null(json, key);
    const auto scale = time_scale(figures);
    for (const auto& [name, figure] : k_figures) {
      const auto value = json_number(figures, name);
      if (scale && value) add_figure(observed, metric, figure, *value * *scale);
    }
  }
  append_row_within_limit(observed.cases, std::move(load), observed);
}

void read(const Printed& printed, Observed& observed) {
  read_documents(
      printed, [&](const Json& json) { read_result(json, observed); }, observed);
  finish_loads(observed);
}

Result<profile::EngineReport> make_aiperf_report(const Output& output) {
  return make_load_report("aiperf", output);
}

}  // namespace
}  // namespace weir::adapters::aiperf

const weir::adapters::Format weir::adapters::k_aiperf(
    "aiperf", "AIPerf: profile_export_aiperf.json", "", aiperf::read,
    {{95, {"\"aiperf_version\""}},
     {85, {"\"request_throughput\" & \"request_latency\" & \"avg\""}}},
    {"aiperf", 12, Counts::results, aiperf::make_aiperf_report});
