// Types and numbers of CUDA's public interface (driver_types.h, cuda.h), as far as its twin and the
// probe in front of it need them; majors 12 and 13 agree on these. The toolkit's headers are not
// needed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gate/probes/hash.h"
#include "gate/probes/inject/streams/interface.h"

namespace weir_probe::cuda {

using namespace streams;

// CUdevice_attribute; cudaDeviceAttr has the same numbers.
enum Attribute : int {
  k_max_threads_per_block = 1,
  k_max_grid_x = 5,
  k_shared_per_block = 8,
  k_constant_memory = 9,
  k_warp_size = 10,
  k_registers_per_block = 12,
  k_processors = 16,
  k_integrated = 18,
  k_pci_bus = 33,
  k_pci_device = 34,
  k_threads_per_processor = 39,
  k_pci_domain = 50,
  k_major = 75,
  k_minor = 76,
  k_shared_per_processor = 81,
  k_registers_per_processor = 82,
  k_shared_per_block_optin = 97,
  k_blocks_per_processor = 106,
  k_reserved_shared = 111,
};

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    int number;
    Size3 size;
    char bytes[64];
  } value;
};
constexpr int k_cluster_dimension = 4, k_programmatic_serialization = 6;
struct LaunchConfig {
  Size3 grid, block;
  size_t shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
struct DriverLaunchConfig {  // CUlaunchConfig
  Size3 grid, block;
  unsigned shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
inline LaunchConfig runtime_config(const DriverLaunchConfig& from) {
  return {from.grid, from.block, from.shared, from.stream, from.attributes, from.attribute_count};
}
struct LaunchAttributes {
  uint64_t uses_dependent_launch;  // 1: its kernel may start before the one ahead of it has ended
  Size3 cluster;                   // in groups; all 0 where they run one by one
  uint32_t reserved;

  // A hash of the attributes; 0: none is set.
  [[nodiscard]] uint64_t hash() const {
    const bool any = uses_dependent_launch != 0 || cluster.x != 0;
    return any ? hash_bytes(k_hash_seed, this, sizeof *this) : 0;
  }
};
// Reads from a launch's configuration the attributes that change how a kernel runs.
inline LaunchAttributes read_attributes(const LaunchConfig& config) {
  LaunchAttributes attributes{};
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const auto& [id, pad, value] = config.attributes[i];
    if (id == k_programmatic_serialization)
      attributes.uses_dependent_launch = value.number != 0 ? 1 : 0;
    const bool has_clusters = uint64_t{value.size.x} * value.size.y * value.size.z > 1;
    if (id == k_cluster_dimension && has_clusters) attributes.cluster = value.size;
  }
  return attributes;
}

struct FunctionAttributes {  // cudaFuncAttributes
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared,
      preferred_carveout;
  int clusters[7], reserved[16];
};

}  // namespace weir_probe::cuda

// Matrix multiplications of cuBLAS that a twin answers and the probe counts.
#define WEIR_CUBLAS_PRODUCTS(X) \
  X(cublasGemmEx)               \
  X(cublasGemmBatchedEx)        \
  X(cublasGemmStridedBatchedEx) \
  X(cublasSgemm_v2)             \
  X(cublasHgemm)                \
  X(cublasSgemmBatched)         \
  X(cublasSgemmStridedBatched)  \
  X(cublasStrsmBatched)
