// guidellm benchmark: {"metadata": …, "benchmarks": [{"metrics": {"time_to_first_token_ms":
// {"successful": {"mean": …, "percentiles": {"p50": …}}, …}, …}}]}, a benchmark for each rate.
//
// Its version 0.3 and older have the numbers of requests beside the metrics, and the strategy under
// "args" in place of "config".
#include "gate/adapters/readers.hpp"

namespace weir::adapters::guidellm {
namespace {

struct Latency {
  const char* key;
  const char* metric;
  double scale;  // in seconds
};
// guidellm's inter-token latency is one number per request, weighted by its tokens; its time per
// output token includes the first token.
constexpr Latency k_latencies[] = {
    {"time_to_first_token_ms", "time_to_first_token_seconds", 1e-3},
    {"inter_token_latency_ms", "time_per_output_token_seconds", 1e-3},
    {"request_latency", "end_to_end_latency_seconds", 1}};
constexpr std::pair<const char*, const char*> k_rates[] = {
    {"output_tokens_per_second", "output_tokens_per_second"},
    {"requests_per_second", "requests_per_second"}};

// Returns the figures of a metric over requests that were answered.
const Json& successful_requests(const Json& metrics, const char* key) {
  return member_or_null(member_or_null(metrics, key), "successful");
}

// Returns the first that is an object; null if none is.
const Json& first_object(std::initializer_list<const Json*> candidates) {
  static const Json k_null;
  for (const Json* candidate : candidates) {
    if (candidate->is_object()) return *candidate;
  }
  return k_null;
}

// Returns the tokens of all answered requests. Their sum is that of numbers with fractions.
std::optional<std::int64_t> total_tokens(const Json& metrics, const char* key) {
  return rounded_count(json_number(successful_requests(metrics, key), "total_sum"));
}

// Reads how the server was loaded.
void read_settings(const Json& json, ObservedCase& load, Observed& observed) {
  const Json &config = member_or_null(json, "config"), &args = member_or_null(json, "args");
  const Json& strategy =
      first_object({&member_or_null(config, "strategy"), &member_or_null(args, "strategy"),
                    &member_or_null(json, "scheduler_strategy")});
  load.name = json_text(strategy, "type_").value_or("run");
  load.name += fmt::format(" {}", observed.cases.size());
  if (strategy.is_object()) add_facts(strategy, load.facts);
  const Json& backend = member_or_null(config, "backend");
  const Json& worker = member_or_null(json, "worker");
  auto model = json_text(backend, "model");
  if (!model) model = json_text(worker, "backend_model");
  set_model(model, observed);
  if (member_or_null(backend, "stream") == Json(false)) load.facts[k_not_streamed] = "true";
}

// Reads one benchmark: the result at one rate.
void read_benchmark(const Json& json, Observed& observed) {
  const Json& metrics = member_or_null(json, "metrics");
  if (!metrics.is_object()) return;
  ObservedCase load;
  read_settings(json, load, observed);
  const Json& totals = first_object(
      {&member_or_null(metrics, "request_totals"), &member_or_null(json, "request_totals"),
       &member_or_null(member_or_null(json, "run_stats"), "requests_made")});
  set_requests(load, json_integer(totals, "successful"), json_integer(totals, "errored"));
  load.prompt_tokens = total_tokens(metrics, "prompt_token_count");
  load.generated_tokens = total_tokens(metrics, "output_token_count");
  for (const auto& [key, metric] : k_rates) {
    set_rate(load, metric, json_number(successful_requests(metrics, key), "mean"));
  }
  for (const auto& [key, metric, scale] : k_latencies) {
    const Json& figures = successful_requests(metrics, key);
    if (!has_answers(load)) break;
    for (const auto& [name, figure] :
         {std::pair{"mean", "mean"}, {"median", "median"}, {"std_dev", "stddev"}}) {
      if (const auto value = json_number(figures, name))
        add_latency_figure(load.latencies, metric, figure, *value * scale);
    }
    for (const char* percentile : {"p90", "p95", "p99"}) {
      if (const auto value = json_number(member_or_null(figures, "percentiles"), percentile))
        add_latency_figure(load.latencies, metric, percentile, *value * scale);
    }
  }
  append_row_within_limit(observed.cases, std::move(load), observed);
}

void read(const Printed& printed, Observed& observed) {
  const auto take = [&](std::string_view list, const Json& json) {
    if (list == "benchmarks") read_benchmark(json, observed);
  };
  // Benchmarks also list their requests, some or all, so pieces are large.
  constexpr JsonPieceLimits k_limits{std::size_t{32} << 20, std::size_t{16} << 20, 32};
  read_pieces(printed, {"benchmarks"}, {take, [](const Json& /*rest*/) {}}, observed, k_limits);
  finish_loads(observed);
}

Result<profile::EngineReport> make_guidellm_report(const Output& output) {
  return make_load_report("guidellm", output);
}

}  // namespace
}  // namespace weir::adapters::guidellm

const weir::adapters::Format weir::adapters::k_guidellm(
    "guidellm", "guidellm benchmark: benchmarks.json", "", guidellm::read,
    {{95, {"\"guidellm_version\""}},
     {85,
      {"\"generative_benchmark\"", "\"request_totals\" & \"metrics\"",
       "\"generative_requests_worker\""}}},
    {"guidellm", 13, Counts::results, guidellm::make_guidellm_report});
