// Values in SPIR-V: shown, and computed as a compiler does before it looks at any code. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weir::explain {

// "64"; of a float of `width` 16, 32 or 64 bits "64.0".
[[nodiscard]] std::string number_text(std::uint64_t bits, std::uint32_t width);

// Computes an OpSpecConstantOp on 32-bit integers and booleans. Nothing for an instruction that is
// not known here, and for a division by zero.
[[nodiscard]] std::optional<std::uint64_t> fold(std::uint32_t instruction,
                                                std::span<const std::uint64_t> operands);

}  // namespace weir::explain
