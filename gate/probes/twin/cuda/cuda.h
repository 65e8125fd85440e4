// How the functions of a CUDA twin are called: the runtime's (cudart), the driver's and cuBLAS's.
#pragma once

#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/twin/runtime/blob.h"

#define WEIR_API_TITLE "CUDA"
#define WEIR_API_PREFIX "cuda"
// Names and texts of errors that differ by API.
#define WEIR_NO_DEVICE_TEXT "no CUDA-capable device is detected"
#define WEIR_NO_MEMORY_NAME "ErrorMemoryAllocation"
#define WEIR_NO_IMAGE_NAME "ErrorNoKernelImageForDevice"
#define WEIR_INVALID_HANDLE_NAME "ErrorInvalidResourceHandle"
#define WEIR_NOT_FOUND_NAME "ErrorSymbolNotFound"
#define WEIR_OWN_ERRORS                         \
  {k_new_ptx, "cudaErrorUnsupportedPtxVersion", \
   "the provided PTX was compiled with an unsupported toolchain."},

// Defines a function of the runtime or of cuBLAS once, with symbol versions of both majors:
// programs of CUDA 12 need name@libcudart.so.12. (Assembly, as clang has no attribute for it.)
#define WEIR_VERSIONED(name, symbol) __asm__(".symver weir_twin_" #name "," symbol);
#define WEIR_TWICE(library, result, name, ...)      \
  WEIR_VERSIONED(name, #name "@" library ".so.12")  \
  WEIR_VERSIONED(name, #name "@@" library ".so.13") \
  extern "C" __attribute__((visibility("default"))) result weir_twin_##name __VA_ARGS__
#define WEIR_RUNTIME_OF(result, name, ...) WEIR_TWICE("libcudart", result, cuda##name, __VA_ARGS__)
#define WEIR_RUNTIME(name, ...) WEIR_RUNTIME_OF(int, name, __VA_ARGS__)
#define WEIR_CALL(name) weir_twin_cuda##name
// A function that compiled programs call by themselves.
#define WEIR_REGISTERED(result, name, ...) \
  WEIR_TWICE("libcudart", result, __cuda##name, __VA_ARGS__)
#define WEIR_DRIVER(name, ...) WEIR_EXPORTED int cu##name __VA_ARGS__
#define WEIR_BLAS_OF(result, name, ...) WEIR_TWICE("libcublas", result, cublas##name, __VA_ARGS__)
#define WEIR_BLAS(name, ...) WEIR_BLAS_OF(int, name, __VA_ARGS__)
#define WEIR_LT(name, ...) WEIR_TWICE("libcublasLt", int, cublasLt##name, __VA_ARGS__)

// cuBLAS has second versions of these.
#define WEIR_BLAS_NAME(name) name##_v2
#define WEIR_BLAS_PRODUCT(name) WEIR_TWICE("libcublas", int, name, (void* handle))
#define WEIR_BLAS_PRODUCTS WEIR_CUBLAS_PRODUCTS

namespace weir_probe::runtime_twin {

using namespace cuda;
using Description = weir_runtime_twin;  // of the GPU, as mapped
constexpr int k_product_failed = 13;

// Returns the probe's function of this name if a program called the twin's around the probe: by an
// address from dlsym, as torch does for kernels that it compiles itself. Null within a call of the
// probe's, and without a probe.
void* find_probes_function(const char* name);
#define WEIR_THROUGH_PROBE(name, ...)                             \
  if (void* const front = find_probes_function(#name)) {          \
    return reinterpret_cast<decltype(&name)>(front)(__VA_ARGS__); \
  }

struct KernelNodeParams {  // cudaKernelNodeParams of driver_types.h
  const void* function;
  Size3 grid, block;
  unsigned shared;
  void **parameters, **more;
};

}  // namespace weir_probe::runtime_twin
