// Inside of expand(): whether the parts of one point of the product fit together, and whether the
// config's limits hold anything and make sense. Not for other modules. Pure.
#pragma once

#include "gate/config/matrix.hpp"

namespace weir::config {

// One combination of the product, before it is known to fit.
struct Combination {
  const EngineSettings* engine;
  const VariantSettings* variant;
  const ModelSettings* model;
  const BackendSettings* backend;
  const PromptSettings* prompt;
  // What all of them bring along, later ones on top.
  [[nodiscard]] Extra extra() const;
};

// Why the engine cannot be asked for this, ready to show; nothing where it can. `cell` is what was
// made of the combination; `missing_flag` should get another value and is not in its command.
[[nodiscard]] std::optional<std::string> misfit(const Cell& cell,
                                                const std::optional<std::string>& missing_flag,
                                                const Combination& of, const Settings& settings);

// Fails with Code::config on an entry that covers nothing in the whole matrix, or whose kind makes
// no sense for a metric that it covers.
[[nodiscard]] Result<void> check_limits(const Settings& settings, std::span<const Cell> cells);

}  // namespace weir::config
