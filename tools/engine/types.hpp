// Checks, before anything is computed, that a backend has kernels for all types of a model.
#pragma once

#include <functional>
#include <string_view>

#include "tools/engine/model.hpp"

namespace weir::engine {

using Multiplies = std::function<bool(model::TensorType type)>;

// Code::unavailable, in the words of missing.hpp, for the first matrix that cannot be multiplied
// or row that cannot be read; Code::data where a row is not whole blocks.
[[nodiscard]] Result<void> check_types(const Model& model, std::string_view backend,
                                       const Multiplies& multiplies);

}  // namespace weir::engine
