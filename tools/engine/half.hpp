// 16-bit floats (IEEE 754 binary16), in plain code.
#pragma once

#include <bit>
#include <cstdint>

namespace weir::engine {

inline float float_of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

inline float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t exponent = (half >> 10) & 31U, fraction = half & 0x3ffU;
  if (exponent == 31) return float_of_bits(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24F;  // below 2^-14: exact
  return sign != 0 ? -small : small;
}

}  // namespace weir::engine
