// weir init: a starter configuration for the engines found on this machine, and a workflow for a CI
// system with a first look at what it will do there.
#pragma once

#include <string>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct InitOptions {
  bool force = false;
  std::string ci{};    // "github", "gitlab"; "": none
  bool list = false;   // the presets, and nothing else
  bool forks = false;  // of "github": two workflows, which gate forks as well
  std::string twin{};  // the only backend, a simulated GPU; "": what is here
};
// Writes job.asked.config. For a CI system also .github/workflows/weir.yml (and weir-post.yml), or
// .gitlab-ci.yml
// (.gitlab/weir.yml where that is there), at the repository's root; a file that is there stays, and
// what to do is said. Then doctor, one counts-only run, and how long a gate takes; nothing of that
// while the configuration is an example still.
[[nodiscard]] Result<Answer> init(const Job& job, const InitOptions& options);

}  // namespace weir::flow
