// Copies a matrix into the words that the Vulkan kernels read: quantized blocks get a 32-bit scale.
#include "tools/engine/pack.hpp"

#include <bit>
#include <cstring>

#include "tools/engine/half.hpp"

namespace weir::engine {
namespace {

// Copies blocks of a scale (half) and `quants` words to words that a kernel can read, with the
// scale as a float.
std::vector<std::uint32_t> pack_blocks(std::span<const std::byte> bytes, std::size_t quants) {
  const std::size_t block_bytes = 2 + 4 * quants;
  std::vector<std::uint32_t> words(bytes.size() / block_bytes * (1 + quants));
  for (std::size_t i = 0; i < bytes.size() / block_bytes; ++i) {
    std::uint16_t scale = 0;
    std::memcpy(&scale, bytes.data() + i * block_bytes, 2);
    std::uint32_t* packed_block = words.data() + i * (1 + quants);
    packed_block[0] = std::bit_cast<std::uint32_t>(float_of_half(scale));
    std::memcpy(packed_block + 1, bytes.data() + i * block_bytes + 2, 4 * quants);
  }
  return words;
}

}  // namespace

std::vector<std::uint32_t> pack(const Tensor& tensor) {
  if (tensor.type == model::TensorType::q8_0) return pack_blocks(tensor.bytes, 8);
  if (tensor.type == model::TensorType::q4_0) return pack_blocks(tensor.bytes, 4);
  std::vector<std::uint32_t> words(tensor.bytes.size() / 4);
  std::memcpy(words.data(), tensor.bytes.data(), words.size() * 4);
  return words;
}

}  // namespace weir::engine
