// What a server says of itself on /metrics (Prometheus' text format, OpenMetrics), read before and
// after a load. Hostile text: what cannot be read is passed over, and it is bounded. Pure.
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

// Nothing where the line is none.
[[nodiscard]] std::optional<PrometheusSample> prometheus_sample(std::string_view line);
// "+Inf" and "NaN" are values of the format, and none of a measurement.
[[nodiscard]] std::optional<double> prometheus_value(std::string_view text);
// Past a quoted value that begins at `at`; npos when it does not end.
[[nodiscard]] std::size_t past_prometheus_quoted(std::string_view text, std::size_t at);

// By name, label sets together: labels hold where a model lies, and with them there is no end to
// what a server may list.
struct ServerMetrics {
  std::map<std::string, double> counters;  // sums over label sets; of histograms _sum and _count
  std::map<std::string, double> gauges;    // those of one label set: a sum of shares is none
  std::set<std::string> histograms;        // and summaries that have both
  std::size_t left_out = 0;                // names beyond the 256 that are kept
};

[[nodiscard]] ServerMetrics read_server_metrics(std::string_view text);

// What came between: how much counters grew, gauges as they are at the end, means of histograms
// that took something in. A counter that fell (the server began anew) is left out. By name.
[[nodiscard]] std::vector<profile::ServerFigure> between(const ServerMetrics& before,
                                                         const ServerMetrics& after);

// What servers count by names of their own, as weir's metrics: shares of whole numbers, and
// readings. Names are those of llama-server, vLLM, SGLang and TGI (docs/how-to/servers.md).
struct OwnMetrics {
  std::map<std::string, Rational> shares;
  std::vector<profile::EngineReport::Series> readings;
};
[[nodiscard]] OwnMetrics own_metrics(const std::vector<profile::ServerFigure>& figures,
                                     std::int64_t requests);

// Tokens generated meanwhile by the server's own counter, where it has one that weir knows.
[[nodiscard]] std::optional<double> generated_between(
    const std::vector<profile::ServerFigure>& figures);

}  // namespace weir::adapters
