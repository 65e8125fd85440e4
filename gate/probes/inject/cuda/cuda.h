// What the probe asks the CUDA driver, beside what CUPTI tells it.
#pragma once

#include <cuda.h>

namespace weir_probe::cuda {

#define WEIR_CUDA_ASKED(X)         \
  X(cuCtxGetDevice)                \
  X(cuDeviceGetName)               \
  X(cuDeviceGetAttribute)          \
  X(cuDriverGetVersion)            \
  X(cuStreamIsCapturing)           \
  X(cuGraphGetNodes)               \
  X(cuGraphNodeGetType)            \
  X(cuGraphKernelNodeGetParams_v2) \
  X(cuGraphChildGraphNodeGetGraph) \
  X(cuFuncGetName)                 \
  X(cuKernelGetName)

// Found in the driver that the program has loaded, by their plain binary names. All may be null.
struct Driver {
#define WEIR_DECLARE(name) decltype(&::name) name;
  WEIR_CUDA_ASKED(WEIR_DECLARE)
#undef WEIR_DECLARE
};
const Driver& driver();

}  // namespace weir_probe::cuda
