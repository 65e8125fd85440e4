// Inside of expand(): one point of the product, and whether its parts fit together. Not for other
// modules. Pure.
#pragma once

#include <optional>
#include <string>

#include "gate/config/matrix.hpp"
#include "gate/config/settings.hpp"

namespace weir::config {

// One combination of the product, before it is known to fit.
struct Combination {
  const EngineSettings* engine;
  const VariantSettings* variant;
  const ModelSettings* model;
  const BackendSettings* backend;
  const PromptSettings* prompt;
};

// Why the engine can not be asked for this, ready to show; nothing where it can. `cell` is what was
// made of the combination.
[[nodiscard]] std::optional<std::string> misfit(const Cell& cell, const Combination& of,
                                                const Settings& settings);

}  // namespace weir::config
