// Reduces the requests and batches of a load to what a picture shows.
#include "gate/profile/load_picture.hpp"

#include <algorithm>
#include <limits>

#include "gate/base/add_capped.hpp"
#include "gate/base/fields.hpp"

namespace weir::profile {

// Thins out latencies for a picture: keeps the fastest and the slowest request of each group, at
// most `max_groups` requests in all. Each request has k_latencies_of_request values in a row.
std::vector<std::int64_t> thin_latencies(std::span<const std::int64_t> latencies,
                                         std::size_t max_groups) {
  const std::size_t count = latencies.size() / k_latencies_of_request;
  const std::size_t groups = count <= max_groups ? count : max_groups / 2;
  std::vector<std::int64_t> thin;
  const auto end_to_end = [&](std::size_t request) {
    return latencies[k_latencies_of_request * (request + 1) - 1];
  };
  const auto keep = [&](std::size_t request) {
    const auto latencies_of_request =
        latencies.subspan(k_latencies_of_request * request, k_latencies_of_request);
    thin.insert(thin.end(), latencies_of_request.begin(), latencies_of_request.end());
  };
  for (std::size_t group = 0; group < groups; ++group) {
    std::size_t fastest = count * group / groups, slowest = fastest;
    for (std::size_t i = fastest; i < count * (group + 1) / groups; ++i) {
      if (end_to_end(i) < end_to_end(fastest)) fastest = i;
      if (end_to_end(i) > end_to_end(slowest)) slowest = i;
    }
    keep(std::min(fastest, slowest));
    if (fastest != slowest) keep(std::max(fastest, slowest));
  }
  return thin;
}

void fields(Fields& io, BatchBar& bar) {
  io("from_tokens", bar.from_tokens);
  io("to_tokens", bar.to_tokens);
  io("graphs", bar.graphs);
  io.check(
      bar.from_tokens >= 1 && bar.to_tokens >= bar.from_tokens && bar.graphs >= 1,
      "needs from_tokens, to_tokens and graphs of at least 1, and to_tokens not below from_tokens");
}

// Returns bars of how many graphs ran at each number of tokens in a batch. Of more than 24
// numbers, a bar covers a range between powers of 2.
std::vector<BatchBar> batch_bars(const std::map<std::int64_t, std::int64_t>& batches) {
  constexpr std::size_t k_max_bars = 24;
  std::vector<BatchBar> bars;
  std::int64_t range_end = 1;  // end of the current range, a power of 2
  for (const auto& [tokens, graphs] : batches) {
    if (tokens < 1 || graphs < 1) continue;
    while (range_end < tokens && range_end <= std::numeric_limits<std::int64_t>::max() / 2)
      range_end *= 2;
    const bool extends_last =
        batches.size() > k_max_bars && !bars.empty() && bars.back().to_tokens >= range_end / 2 + 1;
    if (!extends_last) bars.push_back({tokens, tokens, 0});
    bars.back().to_tokens = tokens;
    add_capped(bars.back().graphs, graphs);
  }
  return bars;
}

}  // namespace weir::profile
