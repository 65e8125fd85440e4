// One engine being run: the loop that reads its output, watches the clock and the stop, and tells
// the supervisor to end it.
#pragma once

#include <functional>
#include <memory>

#include "gate/sys/interrupts.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {

// Answers the place for one large output (see RealProcesses), nothing while somebody else has it.
using TakePlace = std::function<std::shared_ptr<void>()>;

// REQUIRES: spec.argv is not empty and holds no zero byte.
[[nodiscard]] Finished run_process(const ProcessSpec& spec, const Stop& stop,
                                   const TakePlace& take_place);

}  // namespace weir::sys
