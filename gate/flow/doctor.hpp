// weir doctor: reports what probes can see of a program, and what makes this machine's times worse.
//
// No engine is started but a command after "--", once, with all probes that may fit, and the first
// command of each cell that is selected (--cell), without probes. weir-devices
// and nvidia-smi are asked, each in a process of its own with a time limit: one that is missing,
// crashes or hangs is an answer, never an error.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct DoctorOptions {
  std::vector<std::string> engines{};  // names or programs; none: all of the configuration
  std::vector<std::string> trailing_arguments{};  // a command after "--" to run
};
[[nodiscard]] Result<Answer> doctor(const Job& job, const DoctorOptions& options);

}  // namespace weir::flow
