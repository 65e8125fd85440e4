// A program behind "--", as it is started and as it ended.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {

// Code::usage where there is no such program.
[[nodiscard]] Result<sys::ProcessSpec> command_spec(const std::vector<std::string>& command,
                                                    double timeout_seconds,
                                                    const sys::Files& files);

// "" where it ended well, else "it exited with code 2".
[[nodiscard]] std::string ended_words(const sys::Finished& finished, const sys::ProcessSpec& spec);

}  // namespace weir::app
