// weir demo: one regression from the baseline to its cause, by weir's own verbs on the reference
// engine (docs/reference/engine.md). Each step is a real process of this program in the demo's
// folder; what it prints is shown as it comes.
#pragma once

#include <string>

#include "gate/flow/job.hpp"

namespace weir::flow {
struct DemoOptions {
  std::string plant;   // the regression; "": one that this machine can show
  std::string keep;    // a folder that is made and stays; "": one that is removed
  std::string engine;  // weir-engine; "": the one beside this program
};

// ExitCode::pass when all went as it should: the gate passed before the regression and failed with
// it. Code::data with what a step said where one went otherwise, Code::usage for a regression that
// the engine does not have.
[[nodiscard]] Result<Answer> demo(const Job& job, const DemoOptions& options);

}  // namespace weir::flow
