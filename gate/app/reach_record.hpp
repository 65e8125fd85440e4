// weir reach --record: each cell once under callgrind, or what its own coverage build said.
#pragma once

#include <string>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

// `coverage`: files of one cell, or none. Cells that fail are told and keep the record they had;
// the exit code then is 3. Kernels and ops come from the newest run, where there is one.
[[nodiscard]] Result<ExitCode> record_reach(const CommonOptions& options,
                                            const std::vector<std::string>& coverage,
                                            sys::Files& files);

}  // namespace weir::app
