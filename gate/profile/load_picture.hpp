// The data of pictures of one load: its requests, and how many tokens its graphs compute at once.
// Small enough for a verdict's file and a trend page. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace weir {
class Fields;
}

namespace weir::profile {

// Numbers of one request in a list of latencies, in this order, in microseconds: intended start,
// time to first token, end-to-end latency.
inline constexpr std::size_t k_latencies_of_request = 3;

// A verdict's file has so many requests of a cell at most.
inline constexpr std::size_t k_max_requests_in_file = 400;

// The requests of `latencies`, `most` (at least 2) of them or fewer: of every few in a row the
// fastest and the slowest end to end, so that no stall is lost. What is no whole request goes.
[[nodiscard]] std::vector<std::int64_t> thin_latencies(std::span<const std::int64_t> latencies,
                                                       std::size_t max_groups);

// Graphs that compute from … to tokens at once.
struct BatchBar {
  std::int64_t from_tokens = 0, to_tokens = 0, graphs = 0;  // each at least 1
  friend bool operator==(const BatchBar&, const BatchBar&) = default;
};
void fields(Fields& io, BatchBar& bar);

// Tokens that one graph computes -> graphs, a bar each by rising tokens; of more than 24 sizes they
// are ranges that double. What is below 1 is left out; what no number can hold is the largest.
inline constexpr std::size_t k_max_batch_bars = 64;
[[nodiscard]] std::vector<BatchBar> batch_bars(const std::map<std::int64_t, std::int64_t>& batches);

}  // namespace weir::profile
