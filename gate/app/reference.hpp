// gate.reference: the pinned workload that runs beside what is held to stored times.
#pragma once

#include <vector>

#include "gate/app/session.hpp"

namespace weir::app {

// It runs beside whatever is timed against stored samples, selected or not; beside a base program
// it has nothing to say and is left out.
[[nodiscard]] Result<void> choose_reference(Loaded& loaded, bool times, bool against);

// Gives every timed profile its rates, where there is one.
void take_reference(const config::Settings& settings, std::vector<profile::Profile>& profiles);

}  // namespace weir::app
