// Shows and computes constant values of SPIR-V.
#include "gate/explain/spirv_values.hpp"

#include <bit>

#include <fmt/format.h>

namespace weir::explain {
namespace {

using U = std::uint32_t;
struct Folded {
  U instruction;
  U (*result)(U a, U b);
};
constexpr U k_unsigned_division = 134, k_unsigned_remainder = 137;
constexpr Folded k_folded[] = {{113, [](U a, U) { return a; }},  // OpUConvert
                               {114, [](U a, U) { return a; }},  // OpSConvert
                               {124, [](U a, U) { return a; }},  // OpBitcast
                               {126, [](U a, U) { return 0 - a; }},
                               {128, [](U a, U b) { return a + b; }},
                               {130, [](U a, U b) { return a - b; }},
                               {132, [](U a, U b) { return a * b; }},
                               {k_unsigned_division, [](U a, U b) { return a / b; }},
                               {k_unsigned_remainder, [](U a, U b) { return a % b; }},
                               {166, [](U a, U b) { return U{(a | b) != 0}; }},
                               {167, [](U a, U b) { return U{a != 0 && b != 0}; }},
                               {168, [](U a, U) { return U{a == 0}; }},
                               {170, [](U a, U b) { return U{a == b}; }},
                               {171, [](U a, U b) { return U{a != b}; }},
                               {172, [](U a, U b) { return U{a > b}; }},
                               {174, [](U a, U b) { return U{a >= b}; }},
                               {176, [](U a, U b) { return U{a < b}; }},
                               {178, [](U a, U b) { return U{a <= b}; }},
                               {194, [](U a, U b) { return b < 32 ? a >> b : 0; }},
                               {196, [](U a, U b) { return b < 32 ? a << b : 0; }},
                               {197, [](U a, U b) { return a | b; }},
                               {198, [](U a, U b) { return a ^ b; }},
                               {199, [](U a, U b) { return a & b; }},
                               {200, [](U a, U) { return ~a; }}};

}  // namespace

// Returns a number as text: `bits` as an integer if `width` is 0, else as a float of 16, 32 or 64
// bits, always with a point.
std::string number_text(std::uint64_t bits, std::uint32_t width) {
  if (width == 0) return fmt::format("{}", bits);
  std::string text;
  if (width == 16) {
    const auto half = std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits));
    text = fmt::format("{}", static_cast<double>(half));
  } else if (width == 32) {
    text = fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  } else {
    text = fmt::format("{}", std::bit_cast<double>(bits));
  }
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

// Computes a SPIR-V instruction on constant operands; nothing if it is not known, or divides by 0.
// Missing operands count as 0.
std::optional<std::uint64_t> fold(std::uint32_t instruction,
                                  std::span<const std::uint64_t> operands) {
  const auto operand = [&](std::size_t index) {
    return index < operands.size() ? static_cast<U>(operands[index]) : 0;
  };
  constexpr U k_select = 169;
  const U a = operand(0), b = operand(1);
  const bool divides = instruction == k_unsigned_division || instruction == k_unsigned_remainder;
  if (operands.empty() || (divides && b == 0)) return std::nullopt;
  if (instruction == k_select) return a != 0 ? b : operand(2);
  for (const Folded& folded : k_folded) {
    if (folded.instruction == instruction) return folded.result(a, b);
  }
  return std::nullopt;
}

}  // namespace weir::explain
