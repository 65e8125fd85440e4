// The CUDA part of a GPU's description -> what the stand-in libraries of a CUDA twin map
// (gate/probes/twin/cuda/blob.h). Pure.
//
// In the description's "weir" (docs/reference/devices.md): {"cuda": {"name", "compute_capability",
// "multiprocessors", "memory_bytes", …, "attributes": {"L2_CACHE_SIZE": n}}}. What depends on the
// compute capability alone comes from NVIDIA's tables (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability"); an attribute that is given goes before them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "gate/probes/read/twins.hpp"

namespace weir::probes {

struct CudaTwin {
  std::string blob;  // weir_cuda_twin
  std::string name;  // what the device calls itself
  int major = 0, minor = 0;
};

constexpr std::int64_t k_most_cuda_devices = 16;

// What a driver is asked of a GPU: a CUdevice_attribute without CU_DEVICE_ATTRIBUTE_, by its
// number.
struct CudaAttribute {
  int number;
  const char* name;
  int value;  // of every GPU of the last ten years, where nothing else is said; 0: unknown
};
[[nodiscard]] std::span<const CudaAttribute> cuda_attributes();

// `devices` of it, between 1 and k_most_cuda_devices. Code::data where the description has no CUDA
// part, or one that cannot be.
[[nodiscard]] Result<CudaTwin> compile_cuda_twin(const Twin& twin, std::int64_t devices);

}  // namespace weir::probes
