// How probes get into an engine and their counts out of it; the app wires this to gate/probes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/config/settings.hpp"
#include "gate/profile/counts.hpp"

namespace weir::run {

// Thread-safe: counted processes run side by side.
class Probing {
 public:
  virtual ~Probing() = default;
  // What is added to the engine's environment so that `probes` write into `folder` (which exists).
  // Loader lists hold only what is to be added: merge_environment() keeps what is there. `inside`:
  // the environment it begins with where that is not weir's own, as in a container; else nullptr.
  [[nodiscard]] virtual Result<config::Environment> attach(std::span<const std::string> probes,
                                                           const std::string& folder,
                                                           const config::Environment* inside) = 0;
  // Where the libraries lie: absolute.
  [[nodiscard]] virtual std::string folder() const = 0;
  // One entry for each probe that saw the engine do something.
  [[nodiscard]] virtual Result<std::vector<profile::ProbeCounts>> collect(
      std::span<const std::string> probes, const std::string& folder) = 0;
};

}  // namespace weir::run
