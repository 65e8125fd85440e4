// weir init: writes a starter configuration for the engines on this machine, and a workflow for a
// CI system with a first measurement.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct InitOptions {
  bool force = false;
  std::string ci{};                    // "github", "gitlab"; "": none
  bool list = false;                   // only list the presets
  bool forks = false;                  // for "github": two workflows, which gate forks as well
  bool queue = false;                  // for "github": merge groups are gated as well
  bool comments = false;               // for "github": a workflow that answers comments
  bool nightly = false;                // for "github": a workflow for nights on a GPU
  std::string twin{};                  // a simulated GPU as the only backend; "": real devices
  std::vector<std::string> metrics{};  // "NAME=REGEX" of the command
  std::string
      tokens{};  // the argument of the command that is the number of tokens; "": weir guesses
  double timeout = 120;                           // seconds for the one run of the command
  std::vector<std::string> trailing_arguments{};  // a command after "--": the only engine
};
// Writes job.asked.config: for the engines found here, or for the one command that is named. For a
// CI system it also writes .github/workflows/weir.yml (and others), or .gitlab-ci.yml
// (.gitlab/weir.yml if that exists), at the repository's root. An existing file stays, with advice;
// one that lacks what was asked for makes the exit code `unmeasured`.
// Then it counts once, or times once if nothing can be counted, unless the configuration is still
// an example. What is left for the user to do comes last.
[[nodiscard]] Result<Answer> init(const Job& job, const InitOptions& options);

}  // namespace weir::flow
