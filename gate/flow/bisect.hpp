// The work of weir bisect: each commit is checked out and built in weir's cache and held to the
// good one's own program, measured on this machine.
#pragma once

#include <optional>
#include <string>

#include "gate/flow/job.hpp"

namespace weir::flow {
struct BisectWanted {
  std::string good, bad;              // as typed
  bool times = false;                 // pairs beside the good one, in place of counts
  std::optional<std::string> resume;  // a folder, "" is the newest; good and bad are then its own
};

// Never touches the checkout, the index, HEAD or the references of the user. Code::config where the
// good one is bad already or the bad one is good (nothing else was built then), or names nothing;
// Code::unavailable where one of these two cannot be built or judged; Code::interrupted on a stop,
// saying how to go on.
[[nodiscard]] Result<Answer> bisect(const Job& job, const BisectWanted& wanted);

}  // namespace weir::flow
