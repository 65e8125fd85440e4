// Results of tools that load inference servers (vllm bench serve, AIPerf, guidellm): helpers of
// their readers, and the report of a gate.
#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace {

// Returns the metric of a figure that weir judges: a median or p50 ("BASE_seconds"), a p90 or p99
// ("BASE_p90_seconds"). Nothing for other figures.
std::optional<unit::Metric> judged_metric(const ObservedLatency& latency) {
  constexpr std::string_view k_end = "_seconds";
  const bool is_median = latency.figure == "median" || latency.percentile == 50;
  if (!is_median && !latency.percentile) return std::nullopt;
  const std::string& name = latency.metric.name;
  if (!name.ends_with(k_end)) return std::nullopt;
  if (is_median) return unit::find_metric(name);
  return unit::find_metric(fmt::format("{}_p{}{}", name.substr(0, name.size() - k_end.size()),
                                       *latency.percentile, k_end));
}

}  // namespace

void add_figure(Observed& observed, std::string_view metric, std::string_view figure,
                double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return;
  ObservedLatency latency;
  latency.metric = find_time_metric(metric);
  latency.seconds = seconds;
  latency.figure = figure;
  if (figure.starts_with('p')) {
    latency.figure = "percentile";
    latency.percentile = printed_number(figure.substr(1));
    if (!latency.percentile || *latency.percentile <= 0 || *latency.percentile >= 100) return;
  }
  append_row_within_limit(observed.latencies, std::move(latency), observed);
}

void set_rate(ObservedCase& load, const char* metric, std::optional<double> rate) {
  if (rate && *rate > 0) find_or_add_timing(load.timings, *unit::find_metric(metric)).mean = rate;
}

void set_requests(ObservedCase& load, std::optional<std::int64_t> completed,
                  std::optional<std::int64_t> failed, Observed& observed) {
  if (completed) load.facts[k_whole_requests] = fmt::format("{}", *completed);
  if (failed == 0 && completed != 0) return;
  if (!failed) {
    load.error = "it does not say how many requests failed";
  } else if (completed == 0) {
    load.error = "no request was completed";
  } else {
    const std::int64_t total = *failed + completed.value_or(0);
    load.error = fmt::format("{} of {} requests failed", *failed, total);
  }
  observed.errors.push_back(load.name + ": " + *load.error);
}

void finish_loads(Observed& observed) {
  copy_tokens_of_only_case(observed);
  if (observed.cases.size() == 1) {
    observed.timings = observed.cases.front().timings;
  } else {
    add_warning(observed, "it holds several runs: latencies are listed run by run");
  }
}

Result<profile::EngineReport> make_load_report(std::string_view format, const Output& output) {
  WEIR_TRY(const auto observed, read_as(format, {output.out, output.err}));
  if (observed.truncated) return fail(Code::data, "the result ends in the middle");
  // read_pieces() may have left out another run.
  for (const std::string& warning : observed.warnings) {
    if (warning.ends_with("were left out")) return fail(Code::data, "{}", warning);
  }
  if (observed.cases.size() != 1) {
    return fail(Code::data, "it holds {} runs: a gate takes one of each file",
                observed.cases.size());
  }
  const ObservedCase& load = observed.cases.front();
  // With failed requests, the figures are those of another load.
  if (load.error) return fail(Code::data, "{}", *load.error);
  profile::EngineReport report;
  for (const ObservedTiming& rate : load.timings) {
    if (rate.mean && unit::find_metric(rate.metric.name) == rate.metric)
      report.times.push_back({rate.metric, {*rate.mean}});
  }
  for (const ObservedLatency& latency : observed.latencies) {
    const auto metric = judged_metric(latency);
    if (!metric || latency.seconds <= 0) continue;
    const auto same = [&](const auto& series) { return series.metric == *metric; };
    if (!std::ranges::any_of(report.times, same))
      report.times.push_back({*metric, {latency.seconds}});
  }
  if (report.times.empty()) return fail(Code::data, "it has no rate and no latency ({})", format);
  report.model = observed.context.model;
  std::vector<std::string> settings;
  for (const char* key : {"max_concurrency", "concurrency", "streams", "request_rate", "rate",
                          "num_prompts", "request_count"}) {
    if (const std::string* value = look_up(load.facts, key))
      settings.push_back(fmt::format("{} {}", key, *value));
  }
  if (!settings.empty()) report.load = text::join(settings);
  report.engine_build = observed.context.engine_build;
  if (const auto completed = printed_number(look_up(load.facts, k_whole_requests, "")))
    report.requests = static_cast<std::int64_t>(*completed);
  report.warnings = observed.warnings;
  return report;
}

}  // namespace weir::adapters
