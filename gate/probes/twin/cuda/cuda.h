// What the stand-in libraries of a CUDA twin share. They answer as the GPU would and count nothing:
// that does the probe in front of CUDA (gate/probes/inject/cuda), here as before a real driver.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/twin/cuda/blob.h"

// A function of the runtime (cudart) or of cuBLAS: one body, found under the versions of both
// majors. Programs of CUDA 12 ask for name@libcudart.so.12.
// (Assembly, since clang has no attribute for it.)
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
// The description; null where there is none, which was told.
const weir_cuda_twin* twin();
int attribute(int which);  // 0 where there is no twin
int device();              // the calling thread's
int fail(int error);       // keeps it as the thread's last error, and hands it on
inline int ok_or(bool good, int error) { return good ? k_ok : fail(error); }

// --- kernels.cpp
struct Function {
  const weir_cuda_kernel* facts;  // null: unknown
  int arch;                       // of the image that the GPU takes, 10 * major + minor; 0: none
  bool machine_code;              // else PTX
  int dynamic_shared;             // atomic; allowed by cudaFuncSetAttribute; 0: not said
};
Function* function_of(const void* host_or_handle);
// How many blocks of it one multiprocessor holds.
int blocks_that_fit(const Function& function, int threads, size_t dynamic_shared);

// --- streams.cpp
// While `stream` is captured what happens on it becomes a node of the graph, and the answer is
// false: nothing runs. `*error`: that of a capture that is broken.
bool runs_now(void* stream, streams::NodeType type, int* error, const void* function = nullptr);
// A call that waits may not be made within a capture: breaks it.
int waits_on(void* stream);

}  // namespace weir_probe::cuda_twin
