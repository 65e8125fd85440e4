// Computes how many waves of a kernel fit on one SIMD of a Radeon or Instinct. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gate/profile/gpu_build.hpp"

namespace weir::probes {

struct AmdWave {
  std::uint32_t threads = 64;      // 32 or 64
  bool has_processor_pair = true;  // a group runs on two compute units (WGP mode)
};

// Returns the least of what registers and static shared memory allow; nothing for a GPU that is not
// in the table. As LLVM's AMDGPUBaseInfo computes it.
[[nodiscard]] std::optional<std::uint32_t> amd_occupancy(std::string_view target,
                                                         const profile::KernelFigures& figures,
                                                         const AmdWave& wave);

}  // namespace weir::probes
