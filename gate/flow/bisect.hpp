// weir bisect: finds the first bad commit. Checks out and builds each commit in weir's cache, and
// compares it with the good one on this machine.
#pragma once

#include <optional>
#include <string>

#include "gate/flow/job.hpp"

namespace weir::flow {
struct BisectOptions {
  std::string good, bad;         // as typed
  bool judges_by_times = false;  // judge by pairs with the good one, in place of counts
  std::optional<std::string>
      resume;  // a folder, or "" for the newest; then good and bad are not given
  // Time for all pairs of a commit, in place of gate.budget. With `resume`, commits that were
  // skipped are tried again.
  std::optional<std::string> budget{};
};

// Finds the first bad commit. Never touches the checkout, the index, HEAD or the references of the
// user. Code::config if the good commit is bad, the bad one is good (nothing else is built then),
// or a name is unknown. Code::unavailable if one of these two cannot be built or judged;
// Code::interrupted on a stop, with the command to resume.
[[nodiscard]] Result<Answer> bisect(const Job& job, const BisectOptions& wanted);

}  // namespace weir::flow
