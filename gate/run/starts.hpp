// Which steps of a plan share one start of their server. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "gate/run/plan.hpp"

namespace weir::run {

// By order, the first step of each one's start: its own where it shares none. Steps share one that
// are of the same pass and the same round (each cell's process of a round is its own, so that how
// far processes lie apart can still be seen), and whose servers would be started in the same way:
// the same command line, environment and probes. Never pairs, whose coins are each cell's own, and
// none of an engine with `share_start: false`, or without a warm-up: what a server does once would
// be in the first cell's numbers alone.
[[nodiscard]] std::vector<std::size_t> starts_of(const Plan& plan);

}  // namespace weir::run
