// Compiles the CUDA part of a GPU's description to the bytes that the stand-in libraries of a CUDA
// twin map (gate/probes/twin/runtime/blob.h). Pure.
//
// The part stands in the description's "weir" (docs/reference/devices.md): {"cuda": {"name",
// "compute_capability", "multiprocessors", "memory_bytes", …, "attributes": {"L2_CACHE_SIZE": n}}}.
// Attributes that depend on the compute capability alone come from NVIDIA's tables (CUDA C++
// Programming Guide, "Technical Specifications per Compute Capability"). An attribute of the
// description overrides them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "gate/probes/read/twins.hpp"

namespace weir::probes {

struct CudaTwin {
  std::string blob;  // weir_runtime_twin
  std::string name;  // the device's name
  int major = 0, minor = 0;
};

constexpr std::int64_t k_max_cuda_devices = 16;

// A CUdevice_attribute of CUDA's driver: its number, and its name without CU_DEVICE_ATTRIBUTE_.
struct CudaAttribute {
  int number;
  const char* name;
  int value;  // default, true of every GPU of the last ten years; 0: unknown
};
[[nodiscard]] std::span<const CudaAttribute> cuda_attributes();

// Compiles a twin with `devices` such GPUs, between 1 and k_max_cuda_devices. Fails with
// Code::data where the description has no CUDA part, or an invalid one.
[[nodiscard]] Result<CudaTwin> compile_cuda_twin(const Twin& twin, std::int64_t devices);

}  // namespace weir::probes
