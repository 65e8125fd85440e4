// Reads the containers that nvcc makes: images of machine code (cubins) and PTX, and the kernels of
// a cubin. Bytes are hostile. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/twin/runtime/blob.h"

namespace weir::probes {

inline constexpr std::uint64_t k_cuda_container_magic = 0xba55ed50;
inline constexpr std::size_t k_cuda_container_header = 16;

struct CudaImage {
  bool machine_code = false;  // else PTX
  int arch = 0;               // 10 * major + minor
  std::uint64_t flags = 0, unpacked_bytes = 0;
  std::string_view bytes;  // packed if `flags` says so
};

// Returns the images of a container without its header. Fails with Code::data where one ends behind
// it.
[[nodiscard]] Result<std::vector<CudaImage>> read_cuda_images(std::string_view container);

// Returns the image's code, unpacked (LZ4, zstd); nothing if it is broken, or where weir was built
// without zstd.
[[nodiscard]] std::optional<std::string> unpack(const CudaImage& image);

// Returns the kernels of a cubin, a 64-bit ELF file, by symbol; each without `name` and `flags`.
// Names point into `elf`.
[[nodiscard]] std::map<std::string_view, weir_runtime_kernel> read_cubin(std::string_view elf,
                                                                         int arch);

}  // namespace weir::probes
