// weir kernels: shows what kernels cost by the card's own compiler, without the card; or compares
// the GPU code of two builds.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct KernelsOptions {
  std::string what;                               // a run or a profile; "": the newest run
  std::vector<std::string> trailing_arguments{};  // after "--": a program, which is run once
  std::vector<std::string> targets;               // compile for these; none: as the run did
  std::string diff;  // this kernel alone: what its code differs in from the base's
  bool assembly = false;
  double timeout = 600;  // seconds, of that program
  std::size_t top = 20;
  // With `now`, `what` and it are two builds, whose GPU code is compared (flow/builds.hpp).
  std::string now;
  std::vector<std::string> max_increase{}, max_decrease{};
};

[[nodiscard]] Result<Answer> kernels(const Job& job, const KernelsOptions& options);

}  // namespace weir::flow
