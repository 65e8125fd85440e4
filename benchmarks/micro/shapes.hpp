// Models of one layer with the sizes of real ones and made-up weights, for measuring single ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tools/engine/model.hpp"

namespace weir::micro {

// Sizes from the models' own config.json: hidden_size, intermediate_size,
// num_attention_heads, num_key_value_heads, head_dim.
struct Shape {
  std::string_view name;
  std::uint32_t embedding, feed_forward, heads, kv_heads, head;
};
inline constexpr Shape k_shapes[] = {
    {"Qwen2.5-0.5B", 896, 4864, 14, 2, 64},
    {"TinyLlama-1.1B", 2048, 5632, 32, 4, 64},
    {"Llama-3.2-1B", 2048, 8192, 32, 8, 64},
    {"Llama-3-8B", 4096, 14336, 32, 8, 128},
};
inline constexpr std::uint32_t k_context = 4096;

// A model and the bytes of its tensors. The vocabulary is short, since its matrix multiplication is
// not measured.
struct MadeModel {
  engine::Model model;
  std::vector<std::byte> bytes;
};
[[nodiscard]] MadeModel make_model(const Shape& shape, model::TensorType type);

}  // namespace weir::micro
