// What the probe knows of HIP: shapes that its binary interface fixes. ROCm's headers are not
// needed.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir_probe::hip {

// Results. Everything but success is passed on unread.
constexpr int k_success = 0;
constexpr int k_not_found = 500;  // hipErrorNotFound: the runtime below has no such function

struct Dim3 {
  uint32_t x, y, z;
};

// hipMemcpyKind
enum Direction : int { k_to_host_from_host = 0, k_to_device = 1, k_to_host = 2, k_within = 3 };

// Streams that are no handles; others are pointers.
constexpr uint64_t k_null_stream = 0, k_legacy_stream = 1, k_thread_stream = 2;

// hipGraphNodeType, as far as it is work
enum NodeType : int { k_kernel_node = 0, k_copy_node = 1, k_fill_node = 2, k_child_node = 4 };

struct KernelNodeParams {
  Dim3 block;
  void** extra;
  void* function;
  Dim3 grid;
  void** parameters;
  uint32_t shared;
};

struct LaunchConfig {  // the beginning of hipLaunchConfig_t
  Dim3 grid;
  Dim3 block;
  size_t shared;
  void* stream;
};

// What the runtime is asked, in addition to what is stood in front of.
#define WEIR_HIP_ASKED(X)                                         \
  X(hipGetDevice, int, (int*))                                    \
  X(hipDeviceGetName, int, (char*, int, int))                     \
  X(hipDeviceComputeCapability, int, (int*, int*, int))           \
  X(hipRuntimeGetVersion, int, (int*))                            \
  X(hipStreamIsCapturing, int, (void*, int*))                     \
  X(hipKernelNameRefByPtr, const char*, (const void*, void*))     \
  X(hipGraphGetNodes, int, (void*, void**, size_t*))              \
  X(hipGraphNodeGetType, int, (void*, int*))                      \
  X(hipGraphKernelNodeGetParams, int, (void*, KernelNodeParams*)) \
  X(hipGraphChildGraphNodeGetGraph, int, (void*, void**))

struct Asked {
#define WEIR_FIELD(name, result, parameters) result(*name) parameters;
  WEIR_HIP_ASKED(WEIR_FIELD)
#undef WEIR_FIELD
};

// The runtime's own function; null where it has none. Remembered in `slot`.
void* next_function(void** slot, const char* name);
const Asked& asked();

}  // namespace weir_probe::hip
