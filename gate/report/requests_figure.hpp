// Requests and batches of one load as small pictures of a page. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gate/profile/load_picture.hpp"

namespace weir::report {

// <figure> of requests of one load, a point each: end-to-end latency and time to first token
// against when it should have begun. `latencies` as EngineReport::latencies, which may be hostile;
// "" for few requests. One path a colour, so that ten thousand of them open at once. `requests`:
// how many there were, of which these may be some.
[[nodiscard]] std::string requests_figure(std::span<const std::int64_t> latencies,
                                          std::optional<std::int64_t> requests = {});

// <figure> of how many graphs computed how many tokens at once, a bar each. "" for none.
[[nodiscard]] std::string batches_figure(std::span<const profile::BatchBar> bars);

}  // namespace weir::report
