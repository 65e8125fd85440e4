// Do the config's limits hold anything, and make sense? Pure; inside of expand().
#pragma once

#include <span>

#include "gate/config/matrix.hpp"

namespace weir::config {

// Fails with Code::config on an entry that covers nothing in the whole matrix, or whose kind makes
// no sense for a metric that it covers.
[[nodiscard]] Result<bool> check_limits(const Settings& settings, std::span<const Cell> cells);

}  // namespace weir::config
