// What verbs that ask git and build commits share.
#pragma once

#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/source/git.hpp"
#include "gate/source/trees.hpp"

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

// Builds of cells' engines, each command once: trees in the cache are known by these commands, so
// that whoever asks for a commit's tree must ask for the same ones.
void add_build(std::vector<source::Build>& builds, const config::Cell& cell);
[[nodiscard]] std::vector<source::Build> builds_of_cells(const std::vector<config::Cell>& cells);

}  // namespace weir::app
