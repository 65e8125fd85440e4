// What verbs that work on commits of their own share: bisect and hook.
#pragma once

#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/source/build.hpp"
#include "gate/source/effects.hpp"

namespace weir::app {

// What git and builds need. Measuring listens to signals by itself, and only one may at a time: so
// it lives no longer than one question or build.
struct Outside {
  explicit Outside(sys::Files& files)
      : effects{processes, files, clock, locks, {}, stopped.stop()} {}
  sys::RealProcesses processes;
  sys::RealClock clock;
  sys::HostLocks locks{sys::HostLocks::default_folder()};
  sys::Interrupts stopped;
  source::Effects effects;
};

// Builds of these cells' engines, each command once.
[[nodiscard]] std::vector<source::Build> builds_of_cells(const std::vector<config::Cell>& cells);

}  // namespace weir::app
