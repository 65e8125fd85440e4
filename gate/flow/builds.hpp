// Compares the costs of the GPU code of two programs, libraries or folders. Reads files; nothing is
// run.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct BuildsOptions {
  std::string base, now;
  std::vector<std::string> targets;                     // globs; none: all
  std::vector<std::string> max_increase, max_decrease;  // "spilled_vgprs=0", "registers=10%"
  std::size_t top = 20;
};

// Exits with `fail` if a kernel breaks a limit.
[[nodiscard]] Result<Answer> compare_builds(const Job& job, const BuildsOptions& options);

}  // namespace weir::flow
