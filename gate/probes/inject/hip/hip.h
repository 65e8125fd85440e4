// Types and numbers of HIP's public interface (hip_runtime_api.h of ROCm 6), as far as its twin and
// the probe in front of it need them. ROCm's headers are not needed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/streams/interface.h"

namespace weir_probe::hip {

using namespace streams;

// hipDeviceAttribute_t
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

struct LaunchConfig {  // the beginning of hipLaunchConfig_t
  Size3 grid;
  Size3 block;
  size_t shared;
  void* stream;
};

struct FunctionAttributes {  // hipFuncAttributes
  int binary_version, cache_mode;
  size_t const_bytes, local_bytes;
  int max_dynamic_shared, max_threads, registers, preferred_carveout, ptx_version;
  size_t shared_bytes;
};
static_assert(sizeof(FunctionAttributes) == 56);

// By which compiled code hands over a bundle of machine code.
struct BundleWrapper {
  uint32_t magic, version;
  const void* bundle;
  void* unused;
};
constexpr uint32_t k_bundle_magic = 0x48495046;

}  // namespace weir_probe::hip

// The functions of hipBLAS, hipBLASLt and rocBLAS that set the stream of a handle and end it, and
// those that compute. hipblasLtMatmul has the stream as its last argument.
#define WEIR_LIBRARIES(X)             \
  X(hipblasSetStream, hipblasDestroy) \
  X(rocblas_set_stream, rocblas_destroy_handle)
#define WEIR_HIPBLAS_PRODUCTS(X)    \
  X(hipblasGemmEx)                  \
  X(hipblasGemmEx_v2)               \
  X(hipblasGemmBatchedEx)           \
  X(hipblasGemmBatchedEx_v2)        \
  X(hipblasGemmStridedBatchedEx)    \
  X(hipblasGemmStridedBatchedEx_v2) \
  X(hipblasSgemm)                   \
  X(hipblasHgemm)                   \
  X(hipblasSgemmBatched)            \
  X(hipblasSgemmStridedBatched)     \
  X(hipblasStrsmBatched)
#define WEIR_LIBRARY_PRODUCTS(X)     \
  WEIR_HIPBLAS_PRODUCTS(X)           \
  X(rocblas_gemm_ex)                 \
  X(rocblas_gemm_batched_ex)         \
  X(rocblas_gemm_strided_batched_ex) \
  X(rocblas_sgemm)                   \
  X(rocblas_hgemm)
