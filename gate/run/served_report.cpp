// Turns the requests of a load into a report: latencies, drifts, failures, the server's own
// figures.
#include "gate/run/served_report.hpp"

#include <cmath>

#include "gate/adapters/server_metrics.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/load_picture.hpp"
#include "gate/stats/drift.hpp"

namespace weir::run {
namespace {

using profile::EngineReport;
using profile::ServedRequest;

// Returns what `get` yields for every request that did not fail, if it is the same for all.
template <class T, class Get>
std::optional<T> common_value(std::span<const ServedRequest> requests, Get get) {
  std::optional<T> common;
  for (const ServedRequest& request : requests) {
    if (request.failure) continue;
    const std::optional<T> value = std::invoke(get, request);
    if (!value || (common && *common != *value)) return std::nullopt;
    common = value;
  }
  return common;
}

std::int64_t output_tokens(std::span<const ServedRequest> requests) {
  std::int64_t sum = 0;
  for (const ServedRequest& request : requests) sum += request.output_tokens();
  return sum;
}

// Adds two shares to the report: draft tokens that were accepted, and prompt tokens that were
// cached. A share of nothing is left out.
void add_shares(std::span<const ServedRequest> requests, bool allows_cached_prompts,
                EngineReport& report) {
  using Report = profile::ServedReport;
  const auto add_share = [&](const char* metric, auto part, auto total) {
    std::int64_t parts = 0, totals = 0;
    for (const ServedRequest& request : requests) {
      // A request that reports only one of the two is left out.
      if (!(request.reported.*part) || !(request.reported.*total)) continue;
      parts += *(request.reported.*part);
      totals += *(request.reported.*total);
    }
    if (const auto share = totals > 0 ? Rational::make(parts, totals) : std::nullopt) {
      report.shares[metric] = *share;
    }
  };
  add_share("draft_acceptance", &Report::accepted_tokens, &Report::drafted_tokens);
  if (allows_cached_prompts)
    add_share("cached_prompt_share", &Report::cached_tokens, &Report::prompt_tokens);
}

}  // namespace

// Makes a cell's report from the requests that a server answered. Tokens and the output's digest
// are set only if all requests agree.
EngineReport served_report(const PreparedCell& cell, std::span<const ServedRequest> requests) {
  EngineReport report;
  const config::ServerSettings& server = *cell.cell.engine->server;
  const profile::ServedSummary summary = profile::summarise(requests, server.objectives);
  for (const profile::ServedFigure& figure : profile::figures_of(summary)) {
    report.times.push_back({figure.metric, {figure.value}});
  }
  if (cell.cell.wanted_load.may_fail) {
    report.times.push_back({*unit::find_metric(unit::k_failed_requests),
                            {static_cast<double>(summary.requests - summary.succeeded)}});
  }
  report.requests = summary.succeeded;
  report.generated_tokens = common_value<std::int64_t>(requests, &ServedRequest::output_tokens);
  // If requests ask for different lengths and each got its own, use the average.
  if (cell.cell.sweep == profile::Sweep::burst && !requests.empty() &&
      std::ranges::all_of(requests, [](const ServedRequest& request) {
        return request.output_tokens() == request.asked_tokens;
      })) {
    report.generated_tokens = output_tokens(requests) / static_cast<std::int64_t>(requests.size());
  }
  // A server that cannot be made to generate the full length may end earlier, where the model does.
  const bool ignores_eos = server.sends_extra_fields && server.api != "ollama";
  const bool is_short =
      !requests.empty() && report.generated_tokens < requests.front().asked_tokens;
  if (!ignores_eos && is_short) report.generated_tokens.reset();
  report.prompt_tokens = common_value<std::int64_t>(
      requests, [](const ServedRequest& request) { return request.reported.prompt_tokens; });
  if (!profile::requests_share_batches(cell.cell.sweep)) {
    report.output_digest = common_value<std::string>(requests, &ServedRequest::output_digest);
  }
  add_shares(requests, cell.cell.allows_cached_prompts, report);
  report.engine_build = common_value<std::string>(
      requests, [](const ServedRequest& request) { return request.reported.build; });
  report.warnings = summary.warnings;
  return report;
}

namespace {

// Adds how much a series got worse, as a share of its value; 0 if chance explains it. `worse` is 1
// or -1: the sign of a change for the worse. `is_log`: the points are logarithms.
void add_drift(const char* metric, const std::vector<stats::Point>& points, double worse,
               bool is_log, EngineReport& report) {
  // At this level, 1.5 of 1000 series without drift stand out, half of them as better. With 2 000
  // autocorrelated requests and 10 % noise, 99 of 100 drifts of 10 % do
  // (tests/stats/drift_test.cpp).
  constexpr double k_level = 0.0015;
  const auto drift = stats::measure_drift(points, k_level);
  if (!drift) return;
  const auto share = [&](double change) { return is_log ? std::expm1(change) : change; };
  constexpr double k_min_change = 1e-6;  // rounding error
  const bool got_worse = drift->stands_out() && worse * drift->change > k_min_change;
  report.times.push_back(
      {*unit::find_metric(metric), {got_worse ? std::fabs(share(drift->change)) : 0}});
  if (!got_worse) return;
  report.warnings.push_back(
      fmt::format("{}: {:+.1f} % over {} (99.85 % interval {:+.1f} … {:+.1f} %)",
                  unit::display_name(*unit::find_metric(metric)), 100 * share(drift->change),
                  unit::show_duration(points.back().x - points.front().x), 100 * share(drift->low),
                  100 * share(drift->high)));
}

}  // namespace

// Adds drifts of latencies, memory and shares over the time of a load.
void add_drifts(std::span<const ServedRequest> requests, std::span<const stats::Point> memory,
                EngineReport& report) {
  if (requests.size() < stats::k_min_drift_points) {
    report.warnings.push_back(
        fmt::format("{} requests are too few to tell a drift: at least {} are needed",
                    requests.size(), stats::k_min_drift_points));
    return;
  }
  std::vector<stats::Point> first_token, per_token, end_to_end, accepted_shares, cached_shares;
  const auto add_share = [](std::vector<stats::Point>& to, double at,
                            const std::optional<std::int64_t>& part,
                            const std::optional<std::int64_t>& all) {
    if (part && all && *all > 0) {
      to.push_back({at, static_cast<double>(*part) / static_cast<double>(*all)});
    }
  };
  for (const ServedRequest& request : requests) {
    if (request.failure || request.tokens.empty()) continue;
    const double at = request.scheduled;
    const profile::Latencies latencies = profile::measure_latencies(request);
    const auto add_log = [&](std::vector<stats::Point>& to, double seconds) {
      if (seconds > 0) to.push_back({at, std::log(seconds)});
    };
    add_log(first_token, latencies.first_token);
    add_log(end_to_end, latencies.end_to_end);
    if (latencies.per_token) add_log(per_token, *latencies.per_token);
    add_share(accepted_shares, at, request.reported.accepted_tokens,
              request.reported.drafted_tokens);
    add_share(cached_shares, at, request.reported.cached_tokens, request.reported.prompt_tokens);
  }
  add_drift("time_to_first_token_drift", first_token, 1, /*is_log=*/true, report);
  add_drift("time_per_output_token_drift", per_token, 1, /*is_log=*/true, report);
  add_drift("end_to_end_latency_drift", end_to_end, 1, /*is_log=*/true, report);
  std::vector<stats::Point> logs;
  for (const stats::Point& point : memory) {
    if (point.y > 0) logs.push_back({point.x, std::log(point.y)});
  }
  add_drift("resident_memory_drift", logs, 1, /*is_log=*/true, report);
  for (auto [metric, shares] : {std::pair{"draft_acceptance_drift", &accepted_shares},
                                std::pair{"cached_prompt_share_drift", &cached_shares}}) {
    double mean = 0;
    for (const stats::Point& point : *shares) mean += point.y / static_cast<double>(shares->size());
    if (mean <= 0) continue;
    for (stats::Point& point : *shares) point.y /= mean;
    add_drift(metric, *shares, -1, /*is_log=*/false, report);
  }
}

void add_latencies(std::span<const ServedRequest> requests, EngineReport& report) {
  std::vector<std::int64_t> values;
  for (const ServedRequest& request : requests) {
    if (request.failure || request.tokens.empty()) continue;
    const profile::Latencies latencies = profile::measure_latencies(request);
    for (const double seconds : {request.scheduled, latencies.first_token, latencies.end_to_end}) {
      values.push_back(std::llround(seconds * 1e6));
    }
  }
  report.latencies = profile::thin_latencies(values, profile::k_max_latencies);
}

// Describes failed requests by kind ("2 of 64 requests failed: …"), with the first failure's
// details. Nullopt if none failed.
std::optional<std::string> served_failures(std::span<const ServedRequest> requests) {
  std::map<std::string_view, std::int64_t> kinds;
  std::vector<const profile::ServedFailure*> failed;
  for (const ServedRequest& request : requests) {
    if (!request.failure) continue;
    ++kinds[profile::to_string(request.failure->fault)];
    failed.push_back(&*request.failure);
  }
  if (failed.empty()) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(fmt::format("{} {}", count, kind));
  std::string message = fmt::format("{} of {} requests failed: {}", failed.size(), requests.size(),
                                    text::join(parts));
  const profile::ServedFailure& first_failure = *failed.front();
  std::vector<std::string> details;
  if (first_failure.status != 0) details.push_back(fmt::format("HTTP {}", first_failure.status));
  // A page of HTML says nothing more than that there is no such path.
  const bool is_missing = first_failure.status == 404;
  const bool is_page = is_missing && text::trim(first_failure.detail).starts_with('<');
  if (!first_failure.detail.empty() && !is_page) details.push_back(first_failure.detail);
  const bool names_model = first_failure.detail.find("model") != std::string::npos;
  if (is_missing)
    details.emplace_back(names_model ? "is `model_name:` right?" : "is `api:` right?");
  for (const std::string_view field : {"ignore_eos", "cache_prompt"}) {
    if (first_failure.status < 400 || first_failure.detail.find(field) == std::string::npos)
      continue;
    details.emplace_back("`own_fields: false` on the engine leaves out weir's own fields");
    break;
  }
  if (!details.empty()) message += fmt::format(" ({})", text::join(details, ": "));
  return message;
}

// Returns the number of requests whose output differs from the most common one of their prompt.
std::int64_t different_outputs(std::span<const ServedRequest> requests) {
  const profile::ServedSummary summary = profile::summarise(requests);
  std::int64_t different = 0;
  for (const auto& [prompt, outputs] : summary.outputs) {
    std::int64_t total = 0, most_frequent = 0;
    for (const auto& [digest, count] : outputs.digests) {
      total += count;
      most_frequent = std::max(most_frequent, count);
    }
    different += total - most_frequent;
  }
  return different;
}

bool token_counts_agree(const std::vector<profile::ServerFigure>& figures,
                        std::span<const ServedRequest> requests) {
  const auto generated = adapters::generated_tokens_between(figures);
  return !generated || *generated == static_cast<double>(output_tokens(requests));
}

// Adds the figures that the server itself reported, with a warning if it counted other tokens than
// its answers show.
void add_server_figures(std::vector<profile::ServerFigure> figures,
                        std::span<const ServedRequest> requests, bool allows_cached_prompts,
                        EngineReport& report) {
  if (!token_counts_agree(figures, requests)) {
    report.warnings.push_back(fmt::format(
        "the server's own metrics count {:g} generated tokens, its answers {}: somebody else may "
        "have asked it meanwhile",
        *adapters::generated_tokens_between(figures), output_tokens(requests)));
  }
  auto own_metrics = adapters::own_metrics(figures, static_cast<std::int64_t>(requests.size()));
  if (!allows_cached_prompts) own_metrics.shares.erase("cached_prompt_share");
  report.shares.merge(own_metrics.shares);  // keeps shares that the answers gave
  for (auto& series : own_metrics.readings) report.times.push_back(std::move(series));
  report.server = std::move(figures);
}

std::string made_up_prompt(std::int64_t tokens) {
  constexpr std::array k_words{"one",  "two", "three", "four",  "five", "six",
                               "then", "and", "the",   "other", "way",  "back"};
  std::string text;
  for (std::int64_t i = 0; i < tokens; ++i) {
    if (i > 0) text += ' ';
    text += k_words[static_cast<std::size_t>(i) % k_words.size()];
  }
  return text;
}

}  // namespace weir::run
