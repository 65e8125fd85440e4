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

// What `get` answers for every request, where they agree.
template <class T, class Get>
std::optional<T> same_of(std::span<const ServedRequest> requests, Get get) {
  std::optional<T> found;
  for (const ServedRequest& request : requests) {
    const std::optional<T> value = std::invoke(get, request);
    if (!value || (found && *found != *value)) return std::nullopt;
    found = value;
  }
  return found;
}

std::int64_t output_tokens(std::span<const ServedRequest> requests) {
  std::int64_t sum = 0;
  for (const ServedRequest& request : requests) sum += request.output_tokens();
  return sum;
}

// How much of what a server counted by request was right, or at hand already.
void add_shares(std::span<const ServedRequest> requests, bool may_be_cached, EngineReport& report) {
  using Report = profile::ServedReport;
  const auto add = [&](const char* metric, auto part, auto whole) {
    std::int64_t parts = 0, wholes = 0;
    for (const ServedRequest& request : requests) {
      // One that says nothing of one says nothing of the other.
      if (!(request.reported.*part) || !(request.reported.*whole)) continue;
      parts += *(request.reported.*part);
      wholes += *(request.reported.*whole);
    }
    if (const auto share = wholes > 0 ? Rational::make(parts, wholes) : std::nullopt) {
      report.shares[metric] = *share;
    }
  };
  add("draft_acceptance", &Report::accepted_tokens, &Report::drafted_tokens);
  if (may_be_cached) add("cached_prompt_share", &Report::cached_tokens, &Report::prompt_tokens);
}

}  // namespace

EngineReport served_report(const PreparedCell& cell, std::span<const ServedRequest> requests) {
  EngineReport report;
  const config::ServerSettings& server = *cell.cell.engine->server;
  const profile::ServedSummary summary = profile::summarise(requests, server.objectives);
  for (const profile::ServedFigure& figure : profile::figures_of(summary)) {
    report.times.push_back({figure.metric, {figure.value}});
  }
  report.requests = summary.whole;
  report.generated_tokens = same_of<std::int64_t>(requests, &ServedRequest::output_tokens);
  // Of requests that ask for different numbers the average, where each got its own.
  if (cell.cell.sweep == profile::Sweep::held && !requests.empty() &&
      std::ranges::all_of(requests, [](const ServedRequest& one) {
        return one.output_tokens() == one.asked_tokens;
      })) {
    report.generated_tokens = output_tokens(requests) / static_cast<std::int64_t>(requests.size());
  }
  // A server that cannot be told to go on to the full length may end where the model does.
  const bool to_full_length = server.own_fields && server.api != "ollama";
  const bool is_short =
      !requests.empty() && report.generated_tokens < requests.front().asked_tokens;
  if (!to_full_length && is_short) report.generated_tokens.reset();
  report.prompt_tokens = same_of<std::int64_t>(
      requests, [](const ServedRequest& one) { return one.reported.prompt_tokens; });
  if (!profile::shares_batches(cell.cell.sweep)) {
    report.output_digest = same_of<std::string>(requests, &ServedRequest::output_digest);
  }
  add_shares(requests, cell.cell.may_be_cached, report);
  report.engine_build =
      same_of<std::string>(requests, [](const ServedRequest& one) { return one.reported.build; });
  report.warnings = summary.warnings;
  return report;
}

namespace {

// By how much a series got worse, as a share of what it was; `is_log`: of its logarithms.
void add_drift(const char* metric, const std::vector<stats::Point>& points, double worse,
               bool is_log, EngineReport& report) {
  // 1.5 of 1000 series without a drift stand out, half of them as better. Of 2 000 requests that
  // vary by 10 % and remember each other, 99 of 100 drifts of 10 % do (tests/stats/drift_test.cpp).
  constexpr double k_level = 0.0015;
  const auto drift = stats::drift_of(points, k_level);
  if (!drift) return;
  const auto share = [&](double change) { return is_log ? std::expm1(change) : change; };
  constexpr double k_least = 1e-6;  // what rounding does
  const bool got_worse = drift->stands_out() && worse * drift->change > k_least;
  report.times.push_back(
      {*unit::find_metric(metric), {got_worse ? std::fabs(share(drift->change)) : 0}});
  if (!got_worse) return;
  report.warnings.push_back(
      fmt::format("{}: {:+.1f} % over {} (99.85 % interval {:+.1f} … {:+.1f} %)",
                  unit::label(*unit::find_metric(metric)), 100 * share(drift->change),
                  unit::show_duration(points.back().x - points.front().x), 100 * share(drift->low),
                  100 * share(drift->high)));
}

}  // namespace

void add_drifts(std::span<const ServedRequest> requests, std::span<const stats::Point> memory,
                EngineReport& report) {
  if (requests.size() < stats::k_least_drift_points) {
    report.warnings.push_back(
        fmt::format("{} requests are too few to tell a drift: at least {} are needed",
                    requests.size(), stats::k_least_drift_points));
    return;
  }
  std::vector<stats::Point> first, per, whole, accepted, cached;
  const auto add_share = [](std::vector<stats::Point>& to, double at,
                            const std::optional<std::int64_t>& part,
                            const std::optional<std::int64_t>& all) {
    if (part && all && *all > 0) {
      to.push_back({at, static_cast<double>(*part) / static_cast<double>(*all)});
    }
  };
  for (const ServedRequest& request : requests) {
    if (request.tokens.empty()) continue;
    const double at = request.intended;
    const profile::Latencies found = profile::latencies_of(request);
    const auto add_log = [&](std::vector<stats::Point>& to, double seconds) {
      if (seconds > 0) to.push_back({at, std::log(seconds)});
    };
    add_log(first, found.first_token);
    add_log(whole, found.end_to_end);
    if (found.per_token) add_log(per, *found.per_token);
    add_share(accepted, at, request.reported.accepted_tokens, request.reported.drafted_tokens);
    add_share(cached, at, request.reported.cached_tokens, request.reported.prompt_tokens);
  }
  add_drift("time_to_first_token_drift", first, 1, true, report);
  add_drift("time_per_output_token_drift", per, 1, true, report);
  add_drift("end_to_end_latency_drift", whole, 1, true, report);
  std::vector<stats::Point> logs;
  for (const stats::Point& point : memory) {
    if (point.y > 0) logs.push_back({point.x, std::log(point.y)});
  }
  add_drift("resident_memory_drift", logs, 1, true, report);
  for (auto [metric, shares] : {std::pair{"draft_acceptance_drift", &accepted},
                                std::pair{"cached_prompt_share_drift", &cached}}) {
    double mean = 0;
    for (const stats::Point& point : *shares) mean += point.y / static_cast<double>(shares->size());
    if (mean <= 0) continue;
    for (stats::Point& point : *shares) point.y /= mean;
    add_drift(metric, *shares, -1, false, report);
  }
}

void add_latencies(std::span<const ServedRequest> requests, EngineReport& report) {
  std::vector<std::int64_t> all;
  for (const ServedRequest& request : requests) {
    if (request.failure || request.tokens.empty()) continue;
    const profile::Latencies found = profile::latencies_of(request);
    for (const double seconds : {request.intended, found.first_token, found.end_to_end}) {
      all.push_back(std::llround(seconds * 1e6));
    }
  }
  report.latencies = profile::thin_latencies(all, profile::k_most_latencies);
}

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
  std::string words = fmt::format("{} of {} requests failed: {}", failed.size(), requests.size(),
                                  text::join(parts));
  const profile::ServedFailure& why = *failed.front();
  std::vector<std::string> details;
  if (why.status != 0) details.push_back(fmt::format("HTTP {}", why.status));
  if (!why.detail.empty()) details.push_back(why.detail);
  if (!details.empty()) words += fmt::format(" ({})", text::join(details, ": "));
  return words;
}

std::int64_t different_outputs(std::span<const ServedRequest> requests) {
  const profile::ServedSummary summary = profile::summarise(requests);
  std::int64_t different = 0;
  for (const auto& [prompt, outputs] : summary.outputs) {
    std::int64_t all = 0, most = 0;
    for (const auto& [digest, count] : outputs.digests) {
      all += count;
      most = std::max(most, count);
    }
    different += all - most;
  }
  return different;
}

bool counts_the_same(const std::vector<profile::ServerFigure>& figures,
                     std::span<const ServedRequest> requests) {
  const auto counted = adapters::generated_between(figures);
  return !counted || *counted == static_cast<double>(output_tokens(requests));
}

void add_server_figures(std::vector<profile::ServerFigure> figures,
                        std::span<const ServedRequest> requests, bool may_be_cached,
                        EngineReport& report) {
  if (!counts_the_same(figures, requests)) {
    report.warnings.push_back(fmt::format(
        "the server's own metrics count {:g} generated tokens, its answers {}: somebody else may "
        "have asked it meanwhile",
        *adapters::generated_between(figures), output_tokens(requests)));
  }
  auto own = adapters::own_metrics(figures, static_cast<std::int64_t>(requests.size()));
  if (!may_be_cached) own.shares.erase("cached_prompt_share");
  report.shares.merge(own.shares);  // what each answer said goes before
  for (auto& series : own.readings) report.times.push_back(std::move(series));
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
