// Summarizes requests that were sent to an inference server, and turns the summary into metrics.
#include "gate/profile/served.hpp"

#include <cmath>
#include <numeric>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_served_schema = "weir.served/1";

constexpr auto k_faults = names_in_order<ServedFault>(
    "invalid_request", "no_connection", "refused", "tls", "timeout_headers", "timeout_token",
    "timeout_total", "cut_off", "bad_http", "redirected", "too_many_requests", "status",
    "bad_content_type", "encoded", "bad_event", "server_error", "unfinished", "no_token",
    "too_long", "interrupted", "other");

}  // namespace

std::string_view to_string(ServedFault fault) { return name_of(k_faults, fault); }

std::int64_t ServedRequest::output_tokens() const {
  return reported.output_tokens.value_or(counted_tokens);
}

// Appends a block of served requests, with times moved as if it had started when the earlier ones
// ended.
void append_block(std::vector<ServedRequest>& all, std::vector<ServedRequest> block) {
  if (all.empty()) all.swap(block);
  if (block.empty()) return;
  const double end = std::ranges::max(all, {}, &ServedRequest::ended).ended;
  const double shift = end - std::ranges::min(block, {}, &ServedRequest::scheduled).scheduled;
  const auto first = static_cast<std::int64_t>(all.size());
  for (ServedRequest& request : block) {
    request.number += first;
    request.scheduled += shift;
    request.sent += shift;
    request.ended += shift;
    if (request.connected) *request.connected += shift;
    if (request.answered) *request.answered += shift;
    for (ServedToken& token : request.tokens) token.received_at += shift;
    all.push_back(std::move(request));
  }
}

// Reads or writes what a server reports about one request: its tokens, times in seconds, model and
// build.
static void fields(Fields& io, ServedReport& report) {
  io.optional("prompt_tokens", report.prompt_tokens);
  io.optional("cached_tokens", report.cached_tokens);
  io.optional("output_tokens", report.output_tokens);
  io.optional("drafted_tokens", report.drafted_tokens);
  io.optional("accepted_tokens", report.accepted_tokens);
  io.optional("prompt_seconds", report.prompt_seconds);
  io.optional("output_seconds", report.output_seconds);
  io.optional("finish", report.finish);
  io.optional("model", report.model);
  io.optional("build", report.build);
}

static void fields(Fields& io, ServedFailure& failure) {
  io.write_only("fault", to_string(failure.fault));
  io.optional("status", failure.status);
  io.always("detail", failure.detail);
}

// Writes one line of a requests file, a request as the client saw it. Nothing reads it back.
void fields(Fields& io, ServedRequest& request) {
  io.write_only("schema", k_served_schema);
  io("number", request.number);
  io("prompt", request.prompt);
  io("asked_tokens", request.asked_tokens);
  io("intended", RoundedNumber{request.scheduled});
  io("sent", RoundedNumber{request.sent});
  io("ended", RoundedNumber{request.ended});
  io("counted_tokens", request.counted_tokens);
  io("output_bytes", request.output_bytes);
  io.optional("warm_up", request.warm_up);
  io.optional("kept_connection", request.kept_connection);
  io.optional("connected", request.connected);
  io.optional("answered", request.answered);
  io.optional("output_digest", request.output_digest);
  // Times and counts of events are two lists. The second is present only if an event may hold
  // several tokens.
  auto times = collect<double>(request.tokens, &ServedToken::received_at);
  auto counts = collect<std::int64_t>(request.tokens, &ServedToken::tokens);
  if (std::ranges::all_of(counts, [](auto count) { return count == 1; })) counts.clear();
  io("token_times", RoundedNumber{times});
  io.optional("tokens_of_each", counts);
  io("reported", request.reported);
  io.optional("failure", request.failure);
}

namespace {

// A driver that sends this late (p99) has added to the latencies.
constexpr double k_late_seconds = 0.002;

// Returns mean, percentiles and the largest of the values; nothing without values.
std::optional<ServedDistribution> summarize_values(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  ServedDistribution distribution;
  distribution.samples = static_cast<std::int64_t>(values.size());
  distribution.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  distribution.p50 = stats::quantile_of_sorted(values, 0.5);
  distribution.p90 = stats::quantile_of_sorted(values, 0.9);
  distribution.p99 = stats::quantile_of_sorted(values, 0.99);
  distribution.largest = values.back();
  return distribution;
}

bool is_within(const Latencies& latencies, const ServedObjectives& objectives) {
  const auto is_met = [](const std::optional<double>& limit, double value) {
    return !limit || value <= *limit;
  };
  return is_met(objectives.first_token_seconds, latencies.first_token) &&
         is_met(objectives.per_token_seconds, latencies.per_token.value_or(0)) &&
         is_met(objectives.end_to_end_seconds, latencies.end_to_end);
}

// Sums over all requests, from which the summary and its warnings are made.
struct RequestSums {
  std::vector<double> first_token, per_token, inter_token_gap, end_to_end, send_delay;
  double first_start = INFINITY, last_end = -INFINITY;
  std::int64_t miscounted = 0, from_cache = 0, cache_unreported = 0, short_of_asked = 0,
               unreported = 0;
};

// Adds a request that succeeded to the sums of latencies and tokens, and to the different outputs
// of its prompt.
void add_request(const ServedRequest& request, const ServedObjectives& objectives,
                 ServedSummary& summary, RequestSums& sums) {
  const Latencies latencies = measure_latencies(request);
  ++summary.succeeded;
  sums.first_token.push_back(latencies.first_token);
  sums.end_to_end.push_back(latencies.end_to_end);
  if (latencies.per_token) sums.per_token.push_back(*latencies.per_token);
  for (std::size_t i = 1; i < request.tokens.size(); ++i) {
    sums.inter_token_gap.push_back(request.tokens[i].received_at -
                                   request.tokens[i - 1].received_at);
  }
  if (summary.met_objectives && is_within(latencies, objectives)) ++*summary.met_objectives;

  const ServedReport& reported = request.reported;
  summary.input_tokens += reported.prompt_tokens.value_or(0);
  summary.output_tokens += request.output_tokens();
  summary.cached_tokens += reported.cached_tokens.value_or(0);
  if (!reported.output_tokens) ++sums.unreported;
  // Caches hold blocks of tokens, so a shorter prompt gains nothing.
  constexpr std::int64_t k_min_cached_tokens = 16;
  if (!reported.cached_tokens && reported.prompt_tokens >= k_min_cached_tokens)
    ++sums.cache_unreported;
  if (reported.cached_tokens.value_or(0) > 0) ++sums.from_cache;
  if (reported.output_tokens && *reported.output_tokens != request.counted_tokens) {
    ++sums.miscounted;
  }
  if (request.output_tokens() < request.asked_tokens) ++sums.short_of_asked;

  ServedOutputs& outputs = summary.outputs[request.prompt];
  const std::int64_t tokens = request.output_tokens();
  outputs.min_tokens = outputs.digests.empty() ? tokens : std::min(outputs.min_tokens, tokens);
  outputs.max_tokens = std::max(outputs.max_tokens, tokens);
  ++outputs.digests[request.output_digest];
}

// Adds warnings about what makes the summary doubtful: failed requests, miscounted tokens, caches,
// different outputs, and requests that were sent late.
void add_warnings(ServedSummary& summary, const RequestSums& sums) {
  const auto warn = [&](std::int64_t count, std::string_view problem) {
    if (count > 0) {
      summary.warnings.push_back(
          fmt::format("{} of {} requests {}", count, summary.succeeded, problem));
    }
  };
  for (const auto& [fault, count] : summary.faults) {
    summary.warnings.push_back(
        fmt::format("{} of {} requests failed: {}", count, summary.requests, to_string(fault)));
  }
  warn(sums.unreported, "have no report of their tokens: those that came were counted");
  warn(sums.miscounted,
       "report another number of tokens than came as events: gaps are between events, rates and "
       "times per token go by the report");
  warn(sums.short_of_asked, "have fewer tokens than asked for");
  warn(sums.from_cache, "took a part of their prompt from a cache");
  warn(sums.cache_unreported, "do not say whether a cache was used");
  for (const auto& [prompt, outputs] : summary.outputs) {
    if (outputs.digests.size() > 1) {
      summary.warnings.push_back(
          fmt::format("prompt {} has {} different outputs", prompt, outputs.digests.size()));
    }
  }
  if (summary.send_delay && summary.send_delay->p99 > k_late_seconds) {
    summary.warnings.push_back(
        fmt::format("requests were sent late, by {:.3g} ms at p99: the machine that sends, or its "
                    "limit on requests at once, is a part of every latency",
                    summary.send_delay->p99 * 1e3));
  }
}

unit::Metric find_time_metric(const std::string& name) {
  if (const auto metric = unit::find_metric(name)) return *metric;
  return unit::custom_metric(name, unit::Kind::time, unit::Unit::seconds, unit::Better::lower);
}

void add_figures(std::vector<ServedFigure>& figures, const std::string& base,
                 const std::optional<ServedDistribution>& spread) {
  if (!spread) return;
  figures.push_back({find_time_metric(base + "_seconds"), spread->p50});
  figures.push_back({find_time_metric(base + "_p90_seconds"), spread->p90});
  figures.push_back({find_time_metric(base + "_p99_seconds"), spread->p99});
}

void add_rate_figure(std::vector<ServedFigure>& figures, const char* name, unit::Unit unit,
                     const std::optional<double>& value) {
  if (value) {
    figures.push_back(
        {unit::custom_metric(name, unit::Kind::time, unit, unit::Better::higher), *value});
  }
}

}  // namespace

Latencies measure_latencies(const ServedRequest& request) {
  const double first = request.tokens.front().received_at, last = request.tokens.back().received_at;
  Latencies result;
  result.first_token = first - request.scheduled;
  result.end_to_end = last - request.scheduled;
  const std::int64_t tokens = request.output_tokens();
  if (tokens > 1) result.per_token = (last - first) / static_cast<double>(tokens - 1);
  return result;
}

// Summarizes all requests except warm-ups: latencies, rates per second, faults and warnings. Empty
// if there are no others.
ServedSummary summarise(std::span<const ServedRequest> requests,
                        const ServedObjectives& objectives) {
  ServedSummary summary;
  RequestSums sums;
  if (objectives.any()) summary.met_objectives = 0;
  for (const ServedRequest& request : requests) {
    if (request.warm_up) continue;
    ++summary.requests;
    sums.first_start = std::min(sums.first_start, request.scheduled);
    sums.last_end = std::max(sums.last_end, request.ended);
    sums.send_delay.push_back(request.sent - request.scheduled);
    if (request.failure) {
      ++summary.faults[request.failure->fault];
    } else if (request.tokens.empty()) {
      ++summary.faults[ServedFault::no_token];
    } else {
      add_request(request, objectives, summary, sums);
    }
  }
  if (summary.requests == 0) return {};
  summary.span_seconds = std::max(sums.last_end - sums.first_start, 0.0);
  summary.first_token = summarize_values(std::move(sums.first_token));
  summary.per_token = summarize_values(std::move(sums.per_token));
  summary.inter_token_gap = summarize_values(std::move(sums.inter_token_gap));
  summary.end_to_end = summarize_values(std::move(sums.end_to_end));
  summary.send_delay = summarize_values(std::move(sums.send_delay));
  if (summary.span_seconds > 0) {
    const auto rate = [&](std::int64_t count) {
      return static_cast<double>(count) / summary.span_seconds;
    };
    summary.output_tokens_per_second = rate(summary.output_tokens);
    summary.requests_per_second = rate(summary.succeeded);
    if (summary.met_objectives) summary.goodput = rate(*summary.met_objectives);
  }
  add_warnings(summary, sums);
  return summary;
}

// Returns the numbers of a summary under the names of their metrics.
std::vector<ServedFigure> figures_of(const ServedSummary& summary) {
  std::vector<ServedFigure> figures;
  add_figures(figures, "time_to_first_token", summary.first_token);
  add_figures(figures, "time_per_output_token", summary.per_token);
  add_figures(figures, "inter_token_latency", summary.inter_token_gap);
  add_figures(figures, "end_to_end_latency", summary.end_to_end);
  add_rate_figure(figures, "output_tokens_per_second", unit::Unit::tokens_per_second,
                  summary.output_tokens_per_second);
  // weir has no unit for goodput, so it is a plain ratio.
  add_rate_figure(figures, "requests_per_second", unit::Unit::requests_per_second,
                  summary.requests_per_second);
  add_rate_figure(figures, "goodput_requests_per_second", unit::Unit::ratio, summary.goodput);
  return figures;
}

static void fields(Fields& io, ServedDistribution& spread) {
  io("samples", spread.samples);
  io("mean", spread.mean);
  io("p50", spread.p50);
  io("p90", spread.p90);
  io("p99", spread.p99);
  io("most", spread.largest);
}

static void fields(Fields& io, ServedOutputs& outputs) {
  io("digests", outputs.digests);
  io("least_tokens", outputs.min_tokens);
  io("most_tokens", outputs.max_tokens);
}

// Reads or writes a summary of served requests (weir.served-summary/1).
void fields(Fields& io, ServedSummary& summary) {
  std::map<std::string, std::int64_t> faults;
  for (const auto& [fault, count] : summary.faults) faults.emplace(to_string(fault), count);
  io.write_only("schema", "weir.served-summary/1");
  io("requests", summary.requests);
  io("whole", summary.succeeded);
  io.write_only("faults", faults);
  io("span_seconds", summary.span_seconds);
  io("input_tokens", summary.input_tokens);
  io("output_tokens", summary.output_tokens);
  io("cached_tokens", summary.cached_tokens);
  io("outputs", summary.outputs);
  io("warnings", summary.warnings);
  io("time_to_first_token_seconds", summary.first_token);
  io("time_per_output_token_seconds", summary.per_token);
  io("inter_token_latency_seconds", summary.inter_token_gap);
  io("end_to_end_latency_seconds", summary.end_to_end);
  io("late_seconds", summary.send_delay);
  io("output_tokens_per_second", RoundedNumber{summary.output_tokens_per_second});
  io("requests_per_second", RoundedNumber{summary.requests_per_second});
  io("goodput_requests_per_second", RoundedNumber{summary.goodput});
  io("good", summary.met_objectives);
}

}  // namespace weir::profile
