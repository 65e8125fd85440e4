// Inside of expand(): checks that the parts of one combination fit together, and that the config's
// limits apply to something and make sense. Not for other modules. Pure.
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
  // Arguments and environment that all of them bring along, later ones on top.
  [[nodiscard]] Extra extra() const;
};

// Returns why the engine cannot run this combination, ready to show; nothing if it can. `cell` is
// made from the combination; `missing_flag` should get another value but is not in its command.
[[nodiscard]] std::optional<std::string> misfit_reason(
    const Cell& cell, const std::optional<std::string>& missing_flag,
    const Combination& combination, const Settings& settings);

// Fails with Code::config on an entry that covers nothing in the whole matrix, or whose kind makes
// no sense for a metric that it covers.
[[nodiscard]] Result<void> check_limits(const Settings& settings, std::span<const Cell> cells);

}  // namespace weir::config
