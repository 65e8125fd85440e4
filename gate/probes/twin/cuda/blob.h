// What weir hands to the stand-in libraries of a CUDA twin: files that they map as they are.
// Written by gate/probes/read/cuda_twin.hpp; little-endian, all offsets those of these structs.
#pragma once

#include <stdint.h>

// Paths: of the description, and of what weir read in the program's kernels.
#define WEIR_CUDA_TWIN_VARIABLE "WEIR_CUDA_TWIN"
#define WEIR_CUDA_KERNELS_VARIABLE "WEIR_CUDA_KERNELS"

#define WEIR_CUDA_TWIN_MAGIC 0x3154554352494557ULL     // "WEIRCUT1"
#define WEIR_CUDA_KERNELS_MAGIC 0x324b554352494557ULL  // "WEIRCUK2"

enum { WEIR_CUDA_ATTRIBUTES = 256, WEIR_CUDA_MOST_DEVICES = 16 };

struct weir_cuda_twin {
  uint64_t magic;
  uint32_t devices;        // of the same kind, at least 1
  uint32_t bytes;          // of this struct
  int32_t driver_version;  // as cuDriverGetVersion has it: 13000
  uint32_t peers;          // 1: each may read the others' memory
  uint64_t total_bytes;    // of memory
  uint64_t used_bytes;     // of it, before the program does anything: the driver's own
  char name[256];
  int32_t attributes[WEIR_CUDA_ATTRIBUTES];  // by CUdevice_attribute
};

// Flags of a kernel.
enum { WEIR_CUDA_KERNEL_GUESSED = 1 };  // read from another GPU's machine code

struct weir_cuda_kernel {
  uint64_t name;  // hash_text() of the symbol
  uint64_t code;  // hash of its machine code
  uint32_t registers;
  uint32_t shared_bytes;  // static
  uint32_t local_bytes;   // of the stack, a thread
  uint32_t max_threads;   // of a block; 0: not bounded by the code
  uint32_t flags;
  uint32_t code_bytes;
};

struct weir_cuda_kernels {
  uint64_t magic;
  uint32_t count;
  uint32_t bytes;  // of one entry
  // struct weir_cuda_kernel[count], sorted by name
};
