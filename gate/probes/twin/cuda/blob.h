// Files that the stand-in libraries of a CUDA twin map: a description of the GPU, and a table of
// the program's kernels. gate/probes/read/cuda_twin.hpp and cuda_kernels.hpp make them.
// Little-endian.
#pragma once

#include <stdint.h>

// Paths of the description and of the table of kernels.
#define WEIR_CUDA_TWIN_VARIABLE "WEIR_CUDA_TWIN"
#define WEIR_CUDA_KERNELS_VARIABLE "WEIR_CUDA_KERNELS"

#define WEIR_CUDA_TWIN_MAGIC 0x3154554352494557ULL     // "WEIRCUT1"
#define WEIR_CUDA_KERNELS_MAGIC 0x324b554352494557ULL  // "WEIRCUK2"

enum { WEIR_CUDA_ATTRIBUTES = 256, WEIR_CUDA_MOST_DEVICES = 16 };

struct weir_cuda_twin {
  uint64_t magic;
  uint32_t devices;        // number of such GPUs, at least 1
  uint32_t bytes;          // size of this struct
  int32_t driver_version;  // cuDriverGetVersion's: 13000
  uint32_t peers;          // 1: each may read the others' memory
  uint64_t total_bytes;    // all memory
  uint64_t used_bytes;     // memory that the driver itself uses
  char name[256];
  int32_t attributes[WEIR_CUDA_ATTRIBUTES];  // by CUdevice_attribute
};

// Flags of a kernel.
enum { WEIR_CUDA_KERNEL_NOT_COMPILED = 1 };  // read from another GPU's machine code

struct weir_cuda_kernel {
  uint64_t name;  // hash_text() of the symbol
  uint64_t code;  // hash of its machine code
  uint32_t registers;
  uint32_t shared_bytes;  // static
  uint32_t local_bytes;   // stack of a thread
  uint32_t max_threads;   // largest block; 0: no limit in the code
  uint32_t flags;
  uint32_t code_bytes;
};

struct weir_cuda_kernels {
  uint64_t magic;
  uint32_t count;
  uint32_t bytes;  // size of one entry
  // struct weir_cuda_kernel[count], sorted by name
};
