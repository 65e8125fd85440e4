// weir-devices, which loads the drivers of GPUs so that weir need not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {

struct AskDevices {
  std::vector<std::string> arguments;
  sys::EnvironmentList env;
  double patience_seconds = 30;
  std::uint64_t output_limit = std::uint64_t{1} << 20;
};

// How it ended, and what it printed. Code::unavailable where it is not installed or can not be
// started, Code::interrupted on Ctrl-C; a driver that crashes or hangs is an answer.
[[nodiscard]] Result<sys::Finished> ask_devices_program(const AskDevices& ask,
                                                        const sys::Stop& stop);

}  // namespace weir::app
