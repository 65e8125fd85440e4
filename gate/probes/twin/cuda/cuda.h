// What the stand-in libraries of a CUDA twin share. Types and numbers are those of CUDA's public
// interface (driver_types.h, cuda.h); the two majors agree on all of them but cudaDeviceProp.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/streams/streams.h"
#include "gate/probes/twin/cuda/blob.h"

// A function of the runtime (cudart) or of cuBLAS: one body, found under the versions of both
// majors. Programs of CUDA 12 ask for name@libcudart.so.12.
#define WEIR_TWICE(library, result, name, ...)                                         \
  extern "C" __attribute__((visibility("default"), symver(#name "@" library ".so.12"), \
                            symver(#name "@@" library ".so.13")))                      \
  result weir_twin_##name __VA_ARGS__
#define WEIR_RUNTIME_OF(result, name, ...) WEIR_TWICE("libcudart", result, name, __VA_ARGS__)
#define WEIR_RUNTIME(name, ...) WEIR_RUNTIME_OF(int, name, __VA_ARGS__)

namespace weir_probe::cuda_twin {

enum Error : int {
  k_ok = 0,
  k_invalid_value = 1,
  k_out_of_memory = 2,
  k_invalid_configuration = 9,
  k_invalid_function = 98,
  k_no_device = 100,
  k_invalid_device = 101,
  k_no_image = 209,
  k_invalid_handle = 400,
  k_not_found = 500,
  k_out_of_resources = 701,
  k_peer_enabled = 704,
  k_host_registered = 712,
  k_host_not_registered = 713,
  k_not_supported = 801,
  k_capture_unsupported = 900,
  k_capture_broken = 901,
  k_update_failed = 910,
};

// CUdevice_attribute; cudaDeviceAttr has the same numbers.
enum Attribute : int {
  k_max_threads_per_block = 1,
  k_max_grid_x = 5,
  k_shared_per_block = 8,
  k_constant_memory = 9,
  k_warp_size = 10,
  k_registers_per_block = 12,
  k_processors = 16,
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

using streams::Size3;

// --- device.cpp
// The description; null where there is none, which was told.
const weir_cuda_twin* twin();
int attribute(int which);  // 0 where there is no twin
int device();              // the calling thread's
int fail(int error);       // keeps it as the thread's last error, and hands it on
inline int ok_or(bool good, int error) { return good ? k_ok : fail(error); }
// A whole file, mapped to read; null where it cannot be. `*bytes`: its size.
const void* map_file(const char* path, size_t* bytes);

// --- kernels.cpp
struct Function {
  const void* host;
  const char* name;               // the symbol
  const weir_cuda_kernel* facts;  // null: unknown
  int arch;                       // of the image that the GPU takes, 10 * major + minor; 0: none
  bool machine_code;              // else PTX
  int dynamic_shared;             // atomic; allowed by cudaFuncSetAttribute; 0: not said
};
Function* function_of(const void* host_or_handle);
// How many blocks of it one multiprocessor holds.
int blocks_that_fit(const Function& function, int threads, size_t dynamic_shared);

// --- streams.cpp
struct Node {
  int type;  // streams::NodeType
  streams::Launch launch;
  bool programmatic = false;  // may start before the kernel ahead of it ends
  bool of_cublas = false;
};
// While `stream` is captured `node` becomes one of the graph's, and the answer is false: nothing
// runs. `*error`: that of a capture that is broken.
bool runs_now(void* stream, const Node& node, int* error);
// A call that waits may not be made within a capture: breaks it.
int waits_on(void* stream);

// --- counters of their own beside those of streams
enum Counter {
  k_cublas_calls,
  k_graph_launches,
  k_graph_instantiations,
  k_programmatic,
  k_device_memory_bytes,  // the most that was taken of each device, added up
  k_memory_refused,       // for want of it
  k_counters
};
void have_counters();
void count(Counter what, uint64_t amount = 1);

}  // namespace weir_probe::cuda_twin
