// AMD's GPU code: any bytes as a code object, a bundle, a compressed bundle or a library.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gate/probes/read/gpu_code.hpp"
#include "gate/probes/read/runtime_kernels.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const weir::probes::PartialFile file{bytes.size(), [&](std::uint64_t offset, std::uint64_t part) {
                                         return weir::Result<std::string>(bytes.substr(
                                             std::min<std::uint64_t>(offset, bytes.size()), part));
                                       }};
  weir::profile::GpuBuild build;
  static_cast<void>(weir::probes::read_gpu_code(file, {}, build));
  static_cast<void>(weir::probes::read_hip_kernels({&file, 1}, {.target = "gfx942"}));
  return 0;
}
