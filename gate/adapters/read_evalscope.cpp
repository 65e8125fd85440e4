// evalscope perf: benchmark_summary.json, an object whose keys hold their units
// ("Avg TTFT (ms)"), and benchmark_percentile.json, a list of percentiles without the numbers of
// requests. Keys differ between versions.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::evalscope {
namespace {

using Keys = std::initializer_list<const char*>;

std::optional<double> number_of(const Json& json, Keys keys) {
  for (const char* key : keys) {
    if (const auto value = json_number(json, key)) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> count_of(const Json& json, Keys keys) {
  for (const char* key : keys) {
    if (const auto value = json_integer(json, key)) return value;
  }
  return std::nullopt;
}

// Names of latencies in percentiles, and in a summary behind "Avg " or "Average ".
struct Latency {
  const char* metric;
  std::vector<const char*> names;
};
constexpr const char* k_units[] = {" (ms)", " (s)"};

const std::vector<Latency>& latencies() {
  static const std::vector<Latency> k_all{
      {"time_to_first_token_seconds", {"TTFT", "time to first token"}},
      {"time_per_output_token_seconds", {"TPOT", "time per output token"}},
      {"inter_token_latency_seconds", {"ITL", "inter-token latency"}},
      {"end_to_end_latency_seconds", {"Latency", "latency"}}};
  return k_all;
}

// Adds the latencies of an object under "PREFIX NAME (UNIT)".
void add_latencies(const Json& json, Keys prefixes, std::string_view figure,
                   std::vector<ObservedLatency>& latencies_found) {
  for (const Latency& latency : latencies()) {
    for (const char* prefix : prefixes) {
      for (const char* name : latency.names) {
        for (const std::string_view unit : k_units) {
          const std::string key = fmt::format("{}{}{}", prefix, name, unit);
          const auto value = json_number(json, key.c_str());
          if (value)
            add_latency_figure(latencies_found, latency.metric, figure,
                               *value * (unit == " (ms)" ? 1e-3 : 1));
        }
      }
    }
  }
}

// Reads {"Number of concurrency": 8, "Total requests": 100, "Succeed requests": 100, …}.
void read_summary(const Json& json, Observed& observed) {
  const auto completed =
      count_of(json, {"Success Requests", "Succeed requests", "Successful requests"});
  if (!completed) return;
  ObservedCase load;
  load.name = fmt::format("run {}", observed.cases.size());
  copy_facts(
      json,
      {"Concurrency", "Number of concurrency", "Request Rate (req/s)", "Request rate (req/s)",
       "Test Duration (s)", "Time taken for tests (s)", "KV Cache Hit Rate (%)"},
      load);
  const auto total = count_of(json, {"Total Requests", "Total requests"});
  if (total) load.facts["requests"] = fmt::format("{}", *total);
  if (count_of(json, {"Stream Requests"}) == 0) load.facts[k_not_streamed] = "true";
  const auto failed = count_of(json, {"Failed Requests", "Failed requests"});
  set_requests(load, completed, failed);
  if (!load.error && total && *total != *completed + failed.value_or(0))
    fail_load(load, fmt::format("{} of {} requests were completed", *completed, *total));
  const auto tokens = [&](Keys keys) -> std::optional<std::int64_t> {
    const auto mean = number_of(json, keys);
    if (!mean) return std::nullopt;
    return rounded_count(*mean * static_cast<double>(*completed));
  };
  load.prompt_tokens = tokens({"Avg Input Tokens", "Average input tokens per request"});
  load.generated_tokens = tokens({"Avg Output Tokens", "Average output tokens per request"});
  set_rate(load, "output_tokens_per_second",
           number_of(json, {"Output Throughput (tok/s)", "Output token throughput (tok/s)",
                            "Average output tokens per second (tok/s)"}));
  set_rate(load, "requests_per_second",
           number_of(json, {"Req Throughput (req/s)", "Request throughput (req/s)"}));
  if (has_answers(load)) add_latencies(json, {"Avg ", "Average "}, "mean", load.latencies);
  append_row_within_limit(observed.cases, std::move(load), observed);
}

// Reads a row of percentiles: "Percentiles": "50%".
void read_percentile(const Json& json, Observed& observed) {
  const auto name = json_text(json, "Percentiles");
  const auto percentile = name && name->ends_with('%')
                              ? printed_number(name->substr(0, name->size() - 1))
                              : std::nullopt;
  if (percentile) add_latencies(json, {""}, fmt::format("p{:g}", *percentile), observed.latencies);
}

// Reads summaries and lists of percentiles. Percentiles alone are an error.
void read(const Printed& printed, Observed& observed) {
  const auto take = [&](const Json& json) {
    if (!json.is_object()) return;
    read_summary(json, observed);
    read_percentile(json, observed);
  };
  read_documents(printed, take, observed);
  if (observed.cases.empty() && !observed.latencies.empty()) {
    observed.errors.emplace_back(
        "percentiles alone, which do not say how many requests failed: give "
        "benchmark_summary.json");
  }
  finish_loads(observed);
}

Result<profile::EngineReport> make_evalscope_report(const Output& output) {
  return make_load_report("evalscope", output);
}

}  // namespace
}  // namespace weir::adapters::evalscope

const weir::adapters::Format weir::adapters::k_evalscope(
    "evalscope", "evalscope perf: benchmark_summary.json", "", evalscope::read,
    {{90,
      {"\"Success Requests\"", "\"Succeed requests\"", "\"Failed requests\" & \"Total requests\"",
       "\"Percentiles\" & (tok/s)"}}},
    {"evalscope", 19, Counts::results, evalscope::make_evalscope_report});
