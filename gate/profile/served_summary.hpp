// Requests -> the metrics of serving. Names and definitions are those of vLLM's `bench serve`
// (vllm/benchmarks/serve.py, calculate_metrics); docs/engines-that-serve.md holds them beside
// GenAI-Perf's and the engines' own. Pure.
//
//   time to first token    first token − intended start
//   time per output token  (last token − first token) / (n − 1), n > 1 output tokens
//   inter-token latency    each gap between one event with tokens and the next, of all requests
//   end to end             last token − intended start (what comes behind it brings no token)
//   output tokens/s        output tokens of whole requests / span
//   requests/s, goodput    whole requests / span; of those, the ones within every objective
//   span                   first intended start … last end of any request
//
// Only whole requests are in latencies and rates; failed ones are counted by fault. vLLM begins
// each request when it is sent; here, when it should have been.
//
// Percentiles are interpolated linearly between order statistics (Hyndman and Fan's type 7), as
// numpy's, and so vLLM's, are: the same numbers give the same figures. Of n samples, percentiles
// above 1 − 1/n lie between the two largest: `samples` is there so that nobody has to guess.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/profile/served.hpp"
#include "gate/unit/metric.hpp"

namespace weir::profile {

// Service level objectives: a request is good when it is whole and within each that is stated.
struct ServedObjectives {
  std::optional<double> first_token_seconds{};
  std::optional<double> per_token_seconds{};  // of a request with one token: 0, as in vLLM
  std::optional<double> end_to_end_seconds{};
  [[nodiscard]] bool any() const {
    return first_token_seconds || per_token_seconds || end_to_end_seconds;
  }
  friend bool operator==(const ServedObjectives&, const ServedObjectives&) = default;
};

struct ServedSpread {
  std::int64_t samples = 0;  // at least 1
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, most = 0;
  friend bool operator==(const ServedSpread&, const ServedSpread&) = default;
};

// What the whole requests of one prompt answered. With greedy sampling and caches off, one digest.
struct ServedOutputs {
  std::map<std::string, std::int64_t> digests;  // digest -> requests
  std::int64_t least_tokens = 0, most_tokens = 0;
  friend bool operator==(const ServedOutputs&, const ServedOutputs&) = default;
};

struct ServedSummary {
  std::int64_t requests = 0;  // warm-up left out
  std::int64_t whole = 0;
  std::map<ServedFault, std::int64_t> faults;
  double span_seconds = 0;

  std::optional<ServedSpread> first_token, per_token, gap, end_to_end;  // seconds
  std::optional<double> output_tokens_per_second, requests_per_second;
  std::optional<double> goodput;  // good requests a second; only with objectives
  std::optional<std::int64_t> good;

  std::int64_t input_tokens = 0;  // as reported, of whole requests
  std::int64_t output_tokens = 0;
  std::int64_t cached_tokens = 0;                // of the input; reported ones
  std::optional<ServedSpread> late;              // sent − intended: what the driver itself added
  std::map<std::string, ServedOutputs> outputs;  // by prompt
  // Doubts: counted and reported tokens differ, a prompt came from a cache, several digests of one
  // prompt, fewer tokens than asked, no report of cached tokens, a late driver, failed requests.
  std::vector<std::string> warnings;
  friend bool operator==(const ServedSummary&, const ServedSummary&) = default;
};

// `requests` in any order; warm-up is passed over. Of none at all: everything absent.
[[nodiscard]] ServedSummary summarise(std::span<const ServedRequest> requests,
                                      const ServedObjectives& objectives = {});

// Each figure under its metric's name, in the order of the table above:
// "time_to_first_token_seconds" (its p50: what weir judges), "time_to_first_token_p90_seconds", …
// "time_per_output_token_…", "inter_token_latency_…", "end_to_end_latency_…",
// "output_tokens_per_second", "requests_per_second", "goodput_requests_per_second".
struct ServedFigure {
  unit::Metric metric;
  double value = 0;
  friend bool operator==(const ServedFigure&, const ServedFigure&) = default;
};
[[nodiscard]] std::vector<ServedFigure> figures_of(const ServedSummary& summary);

[[nodiscard]] Json to_json(const ServedSummary& summary);

}  // namespace weir::profile
