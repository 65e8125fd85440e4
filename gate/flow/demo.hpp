// weir demo: one regression from the baseline to its cause, by weir's own verbs on the reference
// engine (docs/reference/engine.md). Each step is a real process of this program in the demo's
// folder; what it prints is shown as it comes.
#pragma once

#include <string>

#include "gate/flow/job.hpp"

namespace weir::flow {
struct DemoOptions {
  std::string plant;   // the regression; "": one that shows on this machine
  std::string keep;    // a new folder that stays; "": a temporary one
  std::string engine;  // weir-engine; "": the one beside this program
};

// Returns ExitCode::pass if the gate passed before the regression and failed with it. Code::data
// with the output of the step that went otherwise; Code::usage for a regression that the engine
// does not have.
[[nodiscard]] Result<Answer> demo(const Job& job, const DemoOptions& options);

}  // namespace weir::flow
