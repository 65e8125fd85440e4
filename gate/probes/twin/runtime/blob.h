// Files that the stand-in libraries of a CUDA or HIP twin map: a description of the GPU, and a
// table of the program's kernels. gate/probes/read/runtime_twin.hpp and runtime_kernels.hpp make
// them. Little-endian.
#pragma once

#include <stdint.h>

#include "gate/probes/hash.h"

// Paths of the description and of the table of kernels.
#define WEIR_RUNTIME_TWIN_VARIABLE "WEIR_RUNTIME_TWIN"
#define WEIR_RUNTIME_KERNELS_VARIABLE "WEIR_RUNTIME_KERNELS"

#define WEIR_RUNTIME_TWIN_MAGIC 0x3154554352494557ULL     // "WEIRCUT1"
#define WEIR_RUNTIME_KERNELS_MAGIC 0x314b525452494557ULL  // "WEIRTRK1"

enum { WEIR_RUNTIME_ATTRIBUTES = 256, WEIR_RUNTIME_MOST_DEVICES = 16 };

struct weir_runtime_twin {
  uint64_t magic;
  uint32_t devices;        // number of such GPUs, at least 1
  uint32_t bytes;          // size of this struct
  int32_t driver_version;  // cuDriverGetVersion's: 13000; hipRuntimeGetVersion's: 60300000
  uint32_t peers;          // 1: each may read the others' memory
  uint64_t total_bytes;    // all memory
  uint64_t used_bytes;     // memory that the driver itself uses
  char name[256];
  int32_t attributes[WEIR_RUNTIME_ATTRIBUTES];  // by the API's numbers
};

// HIP's. Stored baselines know a device by these bytes: CUDA's have no target.
struct weir_hip_twin {
  weir_runtime_twin common;
  char target[64];  // gcnArchName: "gfx1100"
};

// Flags of a kernel.
enum { WEIR_RUNTIME_KERNEL_NOT_COMPILED = 1 };  // read from another GPU's machine code

struct weir_runtime_kernel {
  uint64_t key;   // weir_probe::kernel_key()
  uint64_t code;  // hash of its machine code
  uint32_t registers;
  uint32_t shared_bytes;  // static
  uint32_t local_bytes;   // stack of a thread
  uint32_t max_threads;   // largest block; 0: no limit in the code
  uint32_t flags;
  uint32_t code_bytes;
  uint32_t spilled_registers;  // AMD; NVIDIA's code does not say
  uint32_t scalar_registers;   // AMD
};

struct weir_runtime_kernels {
  uint64_t magic;
  uint32_t count;
  uint32_t bytes;  // size of one entry
  // struct weir_runtime_kernel[count], sorted by key
};

namespace weir_probe {

// The key of a kernel in the table. `container`: for HIP, the address of its bundle in the loaded
// file, as kernels of one name may have other code in another bundle; 0 for CUDA.
inline uint64_t kernel_key(const char* symbol, size_t length, uint64_t container) {
  const uint64_t name = hash_bytes(k_hash_seed, symbol, length);
  return container == 0 ? name : hash_bytes(name, &container, sizeof container);
}

}  // namespace weir_probe
