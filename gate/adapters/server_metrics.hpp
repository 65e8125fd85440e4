// A server's own metrics on /metrics (Prometheus' text format, OpenMetrics), read before and after
// a load. Hostile text: unreadable lines are skipped, and sizes are limited. Pure.
#pragma once

#include <cstddef>
#include <set>

#include "gate/profile/record.hpp"

namespace weir::adapters {

// One sample of Prometheus' text format or OpenMetrics.
struct PrometheusSample {
  std::string name, labels;  // labels as they stand: `le="0.5",model="m"`
  double value = 0;
  std::optional<double> at;
};

// Parses one line; nothing if it is no sample.
[[nodiscard]] std::optional<PrometheusSample> parse_prometheus_sample(std::string_view line);
// Parses a value. "+Inf" and "NaN" are valid in the format.
[[nodiscard]] std::optional<double> parse_prometheus_value(std::string_view text);
// Returns the index after a quoted value that begins at `at`; npos when it does not end.
[[nodiscard]] std::size_t skip_prometheus_quoted(std::string_view text, std::size_t at);

// Metrics by name, with all label sets together. Labels may hold a model's path, and a server may
// list any number of them.
struct ServerMetrics {
  std::map<std::string, double> counters;  // sums over label sets; _sum and _count of histograms
  std::map<std::string, double> gauges;    // only with one label set: shares have no sum
  std::set<std::string> histograms;        // and summaries that have both
  std::size_t left_out = 0;                // names beyond the 256 that are kept
};

[[nodiscard]] ServerMetrics read_server_metrics(std::string_view text);

// Returns the differences by name: the growth of counters, gauges at the end, and means of
// histograms that grew. A counter that fell (the server was restarted) is left out.
[[nodiscard]] std::vector<profile::ServerFigure> between(const ServerMetrics& before,
                                                         const ServerMetrics& after);

// A server's own counters as weir's metrics: shares of integers, and readings. Names are those of
// llama-server, vLLM, SGLang and TGI (docs/reference/servers.md).
struct OwnMetrics {
  std::map<std::string, Rational> shares;
  std::vector<profile::EngineReport::Series> readings;
};
[[nodiscard]] OwnMetrics own_metrics(const std::vector<profile::ServerFigure>& figures,
                                     std::int64_t requests);

// Returns the tokens generated in between by the server's own counter, if it has a supported one.
[[nodiscard]] std::optional<double> generated_tokens_between(
    const std::vector<profile::ServerFigure>& figures);

}  // namespace weir::adapters
