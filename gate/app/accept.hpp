// weir baseline accept: what was measured becomes the baseline.
#pragma once

#include "gate/app/command_line.hpp"

namespace weir::app {

void add_accept(CLI::App& baseline);

}  // namespace weir::app
