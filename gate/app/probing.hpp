// Wires gate/probes to the runner.
#pragma once

#include <memory>

#include "gate/run/runner.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

// Fails with Code::unavailable when the probes are not where the program expects them.
[[nodiscard]] Result<std::unique_ptr<run::Probing>> make_probing(sys::Files& files);

}  // namespace weir::app
