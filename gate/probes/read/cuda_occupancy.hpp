// Computes how many warps fit on a multiprocessor of NVIDIA's, by a kernel's registers. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::probes {

// Returns nothing for a GPU that is not in the table. Source: CUDA C++ Programming Guide,
// "Technical Specifications per Compute Capability". Each quarter of a multiprocessor has 16384
// registers, and gives them to warps in units of 256.
[[nodiscard]] inline std::optional<std::uint32_t> cuda_occupancy(int arch,
                                                                 std::uint32_t registers) {
  constexpr std::uint32_t k_quarters = 4, k_registers = 16384, k_unit = 256, k_warp = 32;
  std::uint32_t max_warps = 64;
  if (arch < 70 || arch > 121) return std::nullopt;
  if (arch == 75) max_warps = 32;
  if (arch == 86 || arch == 87 || arch == 89 || arch >= 120) max_warps = 48;
  const std::uint32_t warp = (std::max(registers, 1U) * k_warp + k_unit - 1) / k_unit * k_unit;
  return std::min(max_warps, k_registers / warp * k_quarters);
}

}  // namespace weir::probes
