// Reads the GPU code of any file: programs and libraries (AMD's .hip_fatbin, NVIDIA's .nv_fatbin),
// code objects, cubins, bundles and fat binaries. Bytes are hostile. Pure: reads by a function.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"
#include "gate/profile/gpu_build.hpp"

namespace weir::probes {

// A file, which may be far larger than memory.
struct PartialFile {
  std::uint64_t bytes = 0;
  // Returns `size` bytes from `offset`; fewer where the file ends before.
  std::function<Result<std::string>(std::uint64_t offset, std::uint64_t size)> read_at;
};

// Returns true for an ELF file with bytes in a section of this name. Fails where it cannot be read.
[[nodiscard]] Result<bool> has_section(const PartialFile& file, std::string_view name);

// Adds the kernels of a file for the wanted targets (globs; none: all) to `build`. A file without
// GPU code adds nothing. Fails with Code::data where GPU code contradicts itself.
[[nodiscard]] Result<void> read_gpu_code(const PartialFile& file,
                                         std::span<const std::string> targets,
                                         profile::GpuBuild& build);

}  // namespace weir::probes
