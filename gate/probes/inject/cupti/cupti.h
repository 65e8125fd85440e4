// What the driver is asked of graphs, beside what CUPTI tells: a second count of what the probe in
// front of CUDA counts, to hold that against.
#pragma once

#include <cuda.h>

namespace weir_probe::cupti {

#define WEIR_CUPTI_ASKED(X)        \
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
  WEIR_CUPTI_ASKED(WEIR_DECLARE)
#undef WEIR_DECLARE
};
const Driver& driver();

}  // namespace weir_probe::cupti
