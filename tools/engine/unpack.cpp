// Unpacks one row of a tensor to 32-bit floats, in plain code: it looks up the embedding, and tests
// compare the kernels of both backends with it. Layouts of blocks: ggml-quants (Q4_0: x = d * (q -
// 8) with the low nibbles first; Q8_0: x = d * q; d is a half float in front).
#include <cstring>

#include "tools/engine/half.hpp"
#include "tools/engine/model.hpp"

namespace weir::engine {
namespace {

using model::TensorType;

std::uint16_t u16_at(const std::byte* at) {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void unpack_q8_0(std::span<const std::byte> row, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* block = row.data() + i / 32 * 34;
    const auto quant = static_cast<std::int8_t>(block[2 + i % 32]);
    values[i] = float_of_half(u16_at(block)) * static_cast<float>(quant);
  }
}

void unpack_q4_0(std::span<const std::byte> row, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* block = row.data() + i / 32 * 18;
    const auto both = std::to_integer<int>(block[2 + i % 16]);
    const int quant = (i % 32 < 16 ? both & 15 : both >> 4) - 8;
    values[i] = float_of_half(u16_at(block)) * static_cast<float>(quant);
  }
}

}  // namespace

bool can_unpack(TensorType type) {
  return type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16 ||
         type == TensorType::q8_0 || type == TensorType::q4_0;
}

// Writes a row of the tensor as floats. Other types of tensors, which the engine refuses to load,
// stay as they are.
void unpack_row(const Tensor& tensor, std::uint64_t row, std::span<float> values) {
  const auto bytes = tensor.row(row);
  switch (tensor.type) {
    case TensorType::f32:
      std::memcpy(values.data(), bytes.data(), values.size_bytes());
      return;
    case TensorType::f16:
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = float_of_half(u16_at(bytes.data() + 2 * i));
      }
      return;
    case TensorType::bf16:
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = float_of_bits(std::uint32_t{u16_at(bytes.data() + 2 * i)} << 16);
      }
      return;
    case TensorType::q8_0:
      return unpack_q8_0(bytes, values);
    case TensorType::q4_0:
      return unpack_q4_0(bytes, values);
    default:
      return;
  }
}

}  // namespace weir::engine
