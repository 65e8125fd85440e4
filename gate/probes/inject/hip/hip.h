// The part of HIP's binary interface that the probe uses. ROCm's headers are not needed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/streams/interface.h"

namespace weir_probe::hip {

using streams::Size3;

// hipDeviceAttribute_t of ROCm 6
enum Attribute : int {
  k_integrated = 16,
  k_major = 23,
  k_minor = 61,
  k_processors = 63,
  k_shared_per_block_optin = 75,
  k_shared_per_processor = 76,
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
#define WEIR_LIBRARY_PRODUCTS(X)     \
  X(hipblasGemmEx)                   \
  X(hipblasGemmEx_v2)                \
  X(hipblasGemmBatchedEx)            \
  X(hipblasGemmBatchedEx_v2)         \
  X(hipblasGemmStridedBatchedEx)     \
  X(hipblasGemmStridedBatchedEx_v2)  \
  X(hipblasSgemm)                    \
  X(hipblasHgemm)                    \
  X(hipblasSgemmBatched)             \
  X(hipblasSgemmStridedBatched)      \
  X(hipblasStrsmBatched)             \
  X(rocblas_gemm_ex)                 \
  X(rocblas_gemm_batched_ex)         \
  X(rocblas_gemm_strided_batched_ex) \
  X(rocblas_sgemm)                   \
  X(rocblas_hgemm)
