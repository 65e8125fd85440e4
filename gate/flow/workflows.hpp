// The CI workflows that weir init writes.
#pragma once

#include <functional>
#include <string>

#include "gate/flow/init.hpp"

namespace weir::flow {

// Writes the workflows that the options ask for, then measures once: it counts, or times if nothing
// can be counted. `incomplete`: the configuration is still an example, and nothing is measured.
[[nodiscard]] Result<Answer> init_ci(const Job& job, const InitOptions& options, bool incomplete);

// Returns the command that builds a program in a fresh checkout, judged by the build files that
// are there. "" if there are none.
[[nodiscard]] std::string find_build(const std::function<bool(const char*)>& is_there);

}  // namespace weir::flow
