// Declarations that the stand-in libraries of a CUDA twin share. They behave as the GPU's would and
// count nothing: the probe in front of CUDA (gate/probes/inject/cuda) does, as with a real driver.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/twin/runtime/blob.h"

// Defines a function of the runtime (cudart) or of cuBLAS once, with symbol versions of both
// majors: programs of CUDA 12 need name@libcudart.so.12. (Assembly, as clang has no attribute for
// it.)
#define WEIR_VERSIONED(name, symbol) __asm__(".symver weir_twin_" #name "," symbol);
#define WEIR_TWICE(library, result, name, ...)      \
  WEIR_VERSIONED(name, #name "@" library ".so.12")  \
  WEIR_VERSIONED(name, #name "@@" library ".so.13") \
  extern "C" __attribute__((visibility("default"))) result weir_twin_##name __VA_ARGS__
#define WEIR_RUNTIME_OF(result, name, ...) WEIR_TWICE("libcudart", result, name, __VA_ARGS__)
#define WEIR_RUNTIME(name, ...) WEIR_RUNTIME_OF(int, name, __VA_ARGS__)

namespace weir_probe::cuda_twin {

using namespace cuda;

// --- device.cpp
// The description; null where there is none, after a message.
const weir_runtime_twin* twin();
int attribute(int number);  // 0 without a twin
int device();               // the calling thread's
int fail(int error);        // sets the thread's last error and returns it
// Returns k_ok if `good`, else fails with `error`.
inline int success_if(bool good, int error) { return good ? k_ok : fail(error); }

// --- kernels.cpp
struct Function {
  const weir_runtime_kernel* facts;  // null: unknown
  int arch;            // architecture of the image that the GPU loads, 10 * major + minor; 0: none
  bool machine_code;   // else PTX
  int dynamic_shared;  // atomic; bytes that cudaFuncSetAttribute allows; 0: never set
};
// Null for an unknown function.
Function* find_function(const void* host_or_handle);
// The number of its blocks that one multiprocessor holds at a time.
int resident_blocks(const Function& function, int threads, size_t dynamic_shared);

// --- streams.cpp
// Returns true if the work runs now. While `stream` is captured, the work becomes a node of the
// graph and the result is false. `*error` is set for an invalidated capture.
bool runs_now(void* stream, streams::NodeType type, int* error, const void* function = nullptr);
// Checks a call that waits for `stream`. Such a call invalidates a capture, and fails.
int check_wait(void* stream);

}  // namespace weir_probe::cuda_twin
