#include "gate/run/served_report.hpp"

#include "gate/adapters/server_metrics.hpp"
#include "gate/base/text.hpp"

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
  // A server that cannot be told to go on to the full length may end where the model does.
  const bool to_full_length = server.own_fields && server.api != "ollama";
  const bool is_short =
      !requests.empty() && report.generated_tokens < requests.front().asked_tokens;
  if (!to_full_length && is_short) report.generated_tokens.reset();
  report.prompt_tokens = same_of<std::int64_t>(
      requests, [](const ServedRequest& one) { return one.reported.prompt_tokens; });
  if (cell.cell.sweep != profile::Sweep::overlapping) {
    report.output_digest = same_of<std::string>(requests, &ServedRequest::output_digest);
  }
  report.engine_build =
      same_of<std::string>(requests, [](const ServedRequest& one) { return one.reported.build; });
  report.warnings = summary.warnings;
  return report;
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
                        std::span<const ServedRequest> requests, EngineReport& report) {
  if (!counts_the_same(figures, requests)) {
    report.warnings.push_back(fmt::format(
        "the server's own metrics count {:g} generated tokens, its answers {}: somebody else may "
        "have asked it meanwhile",
        *adapters::generated_between(figures), output_tokens(requests)));
  }
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
