// Weights as the shaders read them: whole 32-bit words (shaders/weights.glsl).
#pragma once

#include <cstdint>
#include <vector>

#include "tools/engine/model.hpp"

namespace weir::engine {

// F32 and F16 as they are; a block of Q8_0 is 9 words, of Q4_0 5: the scale as a float, then the
// quants in their order. REQUIRES: one of these types, rows of whole words.
[[nodiscard]] std::vector<std::uint32_t> pack(const Tensor& tensor);

}  // namespace weir::engine
