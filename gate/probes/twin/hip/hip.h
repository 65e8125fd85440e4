// How the functions of a HIP twin are called: the runtime's (amdhip64), hipBLAS's, and the numbers
// of its attributes. versions.map gives them their symbol versions.
#pragma once

#include "gate/probes/inject/streams/interface.h"
#include "gate/probes/twin/runtime/blob.h"

#define WEIR_API_TITLE "HIP"
#define WEIR_API_PREFIX "hip"

#define WEIR_RUNTIME_OF(result, name, ...) WEIR_EXPORTED result hip##name __VA_ARGS__
#define WEIR_RUNTIME(name, ...) WEIR_RUNTIME_OF(int, name, __VA_ARGS__)
#define WEIR_CALL(name) hip##name
// A function that compiled programs call by themselves.
#define WEIR_REGISTERED(result, name, ...) WEIR_EXPORTED result __hip##name __VA_ARGS__
#define WEIR_DRIVER(name, ...) WEIR_RUNTIME(name, __VA_ARGS__)
#define WEIR_BLAS_OF(result, name, ...) WEIR_EXPORTED result hipblas##name __VA_ARGS__
#define WEIR_BLAS(name, ...) WEIR_BLAS_OF(int, name, __VA_ARGS__)

#define WEIR_BLAS_NAME(name) name
#define WEIR_BLAS_PRODUCTS(X) \
  X(GemmEx)                   \
  X(GemmEx_v2)                \
  X(GemmBatchedEx)            \
  X(GemmBatchedEx_v2)         \
  X(GemmStridedBatchedEx)     \
  X(GemmStridedBatchedEx_v2)  \
  X(Sgemm)                    \
  X(Hgemm)                    \
  X(SgemmBatched)             \
  X(SgemmStridedBatched)      \
  X(StrsmBatched)

namespace weir_probe::runtime_twin {

using namespace streams;
using Description = weir_hip_twin;  // of the GPU, as mapped
const char* target();               // the GPU's: "gfx1100"
constexpr int k_product_failed = 5, k_launch_failed = 719;

// From hip_runtime_api.h of ROCm 6, as are the numbers below.
struct FunctionAttributes {  // hipFuncAttributes
  int binary_version, cache_mode;
  size_t const_bytes, local_bytes;
  int max_dynamic_shared, max_threads, registers, preferred_carveout, ptx_version;
  size_t shared_bytes;
};
struct KernelNodeParams {  // hipKernelNodeParams
  Size3 block;
  void** extra;
  const void* function;
  Size3 grid;
  void** parameters;
  unsigned shared;
};
struct LaunchConfig {  // the beginning of hipLaunchConfig_t
  Size3 grid, block;
  size_t shared;
  void* stream;
};

// hipDeviceAttribute_t (ROCm 6).
enum Attribute : int {
  k_can_map_host_memory = 3,
  k_clock_rate = 5,
  k_concurrent_kernels = 8,
  k_cooperative_launch = 10,
  k_integrated = 16,
  k_l2_bytes = 19,
  k_major = 23,
  k_managed_memory = 24,
  k_blocks_per_processor = 25,
  k_max_block_x = 26,
  k_max_grid_x = 29,
  k_max_threads_per_block = 56,
  k_threads_per_processor = 57,
  k_memory_bus_width = 59,
  k_memory_clock_rate = 60,
  k_minor = 61,
  k_processors = 63,
  k_pci_bus = 67,
  k_pci_device = 68,
  k_pci_domain = 69,
  k_registers_per_block = 71,
  k_registers_per_processor = 72,
  k_shared_per_block = 74,
  k_shared_per_block_optin = 75,
  k_shared_per_processor = 76,
  k_constant_memory = 83,
  k_warp_size = 87,
};

}  // namespace weir_probe::runtime_twin
