// weir baseline accept --allowances N: what a merged pull request was allowed becomes the baseline.
#pragma once

#include <optional>
#include <string>

#include "gate/app/command_line.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

struct AcceptAllowed {
  std::int64_t pull_request = 0;
  std::string allowances_ref;                // branch that holds them
  std::optional<std::string> baselines_ref;  // BRANCH[:PATH]; absent: the folder --baselines
};
// Exit 3 where something that was allowed could not be stored: a time, or a value that is stored as
// another by now. What is stored on the branch of the allowances takes their file away with it.
[[nodiscard]] Result<ExitCode> accept_allowed(const AcceptAllowed& wanted,
                                              const CommonOptions& options, sys::Files& files);

}  // namespace weir::app
