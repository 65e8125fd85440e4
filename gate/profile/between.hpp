// What probes counted between two readings of a process that goes on: a server's counts of its
// requests alone, without its start and its warm-up. Pure.
#pragma once

#include <span>

#include "gate/base/result.hpp"
#include "gate/profile/counts.hpp"

namespace weir::profile {

// `after` − `before`, probe by probe (one that is not in `before` had seen nothing by then). Counts
// that stayed are kept as 0; kernels, graphs, ops and transfers that did not occur in between are
// left out. Devices, names and warnings are those of `after`. Functions are not told apart by time:
// left out. Graphs are told apart by what they are made of, not by their place in the list.
// Fails with Code::data when a count went back: these are not two readings of one process.
[[nodiscard]] Result<std::vector<ProbeCounts>> counts_between(std::span<const ProbeCounts> before,
                                                              std::span<const ProbeCounts> after);

}  // namespace weir::profile
