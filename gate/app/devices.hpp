// Which devices are there, asked before anything is measured.
#pragma once

#include <map>
#include <string>

#include "gate/config/matrix.hpp"
#include "gate/run/preflight.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/machine.hpp"

namespace weir::app {

// "cpu", and the cell's own device as the cell's environment shows it. A driver is loaded in a
// process of its own (weir-devices), so that one that crashes or hangs takes nothing with it: the
// device is then absent, with its last words.
[[nodiscard]] Result<std::map<std::string, run::DeviceFacts>> look_for_devices(
    const config::Cell& cell, const sys::Machine& machine, const sys::Stop& stop);

}  // namespace weir::app
