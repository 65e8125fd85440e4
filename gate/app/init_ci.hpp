// weir init --ci: a workflow for the CI system, and a first look at what it will do there.
#pragma once

#include <string>

#include "gate/app/command_line.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

enum class CiSystem { github, gitlab };

// Writes .github/workflows/weir.yml, or .gitlab-ci.yml (.gitlab/weir.yml where that is there), at
// the repository's root; a file that is there stays, and what to do is said. Then doctor, one
// counts-only run, and how long a gate takes. `incomplete`: weir.yaml is an example still, and
// nothing is run.
[[nodiscard]] Result<ExitCode> init_ci(CiSystem system, const std::string& config, bool incomplete,
                                       sys::Files& files);

}  // namespace weir::app
