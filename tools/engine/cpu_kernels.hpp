// The CPU's kernels, compiled for each instruction set and chosen at run time (Highway).
//
// Vectors are 32-bit floats. Weights of Q8_0 and Q4_0 are multiplied with a vector that is
// quantized as well, in blocks of 32 (x = scale * q), with integers; sums over blocks are floats.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gate/model/tensor_type.hpp"

namespace weir::engine {

// A vector in blocks of 32.
struct Quantized {
  std::vector<std::int8_t> values;
  std::vector<float> scales;  // one a block
};

// The vector of a product, in the forms that kernels need.
struct Operand {
  const float* values = nullptr;
  const Quantized* quantized = nullptr;  // for Q8_0 and Q4_0
};

[[nodiscard]] bool cpu_multiplies(model::TensorType type);
[[nodiscard]] bool needs_quantized(model::TensorType type);

// `values` is a multiple of 32 long.
void quantize(std::span<const float> values, Quantized& out);

// out[i] = row i · operand for `rows` rows that lie one after another; added to out when `add`.
// REQUIRES: cpu_multiplies(type), rows that are whole blocks.
void multiply_rows(model::TensorType type, const std::byte* weights, std::size_t row_bytes,
                   std::size_t columns, std::size_t rows, const Operand& operand, bool add,
                   float* out);

[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b);
// out += factor * in
void add_scaled(float factor, std::span<const float> in, std::span<float> out);
// gate = silu(gate) * up
void silu_times(std::span<float> gate, std::span<const float> up);
// exp(values - largest) in place; returns their sum.
[[nodiscard]] float exponentials(std::span<float> values);

[[nodiscard]] std::string instruction_set();  // "AVX3_DL"
// A planted fault: from here on the kernels are those that any processor of this kind can run, as
// where its features are not asked for.
void use_simplest_kernels();

}  // namespace weir::engine
