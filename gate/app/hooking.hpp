// What the pre-push hook does with what is pushed.
#pragma once

#include <string>

#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/source/git.hpp"

namespace weir::app {

struct HookWanted {
  std::string remote;         // its name, as git gives it
  std::string against;        // REF whose merge-base is the base; "": the remote's own branches
  double limit_seconds = 60;  // of all measuring
  bool build = false;         // what is not built
  bool all = false;           // also cells that by their record run nothing of what changed
};

// Judges the tips of what is pushed by counts, each beside its merge-base. Says what it judged,
// what it did not, and why. ExitCode::fail where a limit is broken, else ExitCode::pass.
[[nodiscard]] Result<ExitCode> judge_pushed(const CommonOptions& options, const HookWanted& wanted,
                                            const std::vector<source::Pushed>& pushed,
                                            sys::Files& files);

}  // namespace weir::app
