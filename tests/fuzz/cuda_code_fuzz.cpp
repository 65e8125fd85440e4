// CUDA code in a program's file: bytes -> what its kernels need.
#include "gate/probes/read/cuda_images.hpp"
#include "gate/probes/read/kernel_names.hpp"
#include "gate/probes/read/runtime_kernels.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view image = bytes;
  static_cast<void>(weir::probes::read_cuda_kernels({&image, 1}, 8, 9));
  static_cast<void>(weir::probes::unpack({true, 86, 0x2000, 4 * size, image}));
  static_cast<void>(weir::probes::readable_kernel_name("_Z" + bytes.substr(0, 256)));
  return 0;
}
