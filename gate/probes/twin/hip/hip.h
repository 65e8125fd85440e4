// How the functions of a HIP twin are called: the runtime's (amdhip64) and hipBLAS's. versions.map
// gives them their symbol versions.
#pragma once

#include "gate/probes/inject/hip/hip.h"
#include "gate/probes/twin/runtime/blob.h"

#define WEIR_API_TITLE "HIP"
#define WEIR_API_PREFIX "hip"
// Names and texts of errors that differ by API.
#define WEIR_NO_DEVICE_TEXT "no ROCm-capable device is detected"
#define WEIR_NO_MEMORY_NAME "ErrorOutOfMemory"
#define WEIR_NO_IMAGE_NAME "ErrorNoBinaryForGpu"
#define WEIR_INVALID_HANDLE_NAME "ErrorInvalidHandle"
#define WEIR_NOT_FOUND_NAME "ErrorNotFound"
#define WEIR_OWN_ERRORS

#define WEIR_RUNTIME_OF(result, name, ...) WEIR_EXPORTED result hip##name __VA_ARGS__
#define WEIR_RUNTIME(name, ...) WEIR_RUNTIME_OF(int, name, __VA_ARGS__)
#define WEIR_CALL(name) hip##name
// A function that compiled programs call by themselves.
#define WEIR_REGISTERED(result, name, ...) WEIR_EXPORTED result __hip##name __VA_ARGS__
#define WEIR_DRIVER(name, ...) WEIR_RUNTIME(name, __VA_ARGS__)
#define WEIR_BLAS_OF(result, name, ...) WEIR_EXPORTED result hipblas##name __VA_ARGS__
#define WEIR_BLAS(name, ...) WEIR_BLAS_OF(int, name, __VA_ARGS__)

#define WEIR_BLAS_NAME(name) name
#define WEIR_BLAS_PRODUCT(name) WEIR_EXPORTED int name(void* handle)
#define WEIR_BLAS_PRODUCTS WEIR_HIPBLAS_PRODUCTS

namespace weir_probe::runtime_twin {

using namespace hip;
using Description = weir_hip_twin;  // of the GPU, as mapped
const char* target();               // the GPU's: "gfx1100"
constexpr int k_product_failed = 5, k_launch_failed = 719;

struct KernelNodeParams {  // hipKernelNodeParams
  Size3 block;
  void** extra;
  const void* function;
  Size3 grid;
  void** parameters;
  unsigned shared;
};

}  // namespace weir_probe::runtime_twin
