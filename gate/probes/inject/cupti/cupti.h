// Functions of the driver that CUPTI's probe calls. It counts the same as the probe in front of
// CUDA, so that the two can be compared.
#pragma once

#include <cuda.h>

namespace weir_probe::cupti {

#define WEIR_DRIVER_FUNCTIONS(X)   \
  X(cuStreamIsCapturing)           \
  X(cuGraphGetNodes)               \
  X(cuGraphNodeGetType)            \
  X(cuGraphKernelNodeGetParams_v2) \
  X(cuGraphChildGraphNodeGetGraph) \
  X(cuFuncGetName)                 \
  X(cuKernelGetName)

// Looked up in the driver that the program has loaded, by their plain binary names. Any may be
// null.
struct Driver {
#define WEIR_DECLARE(name) decltype(&::name) name;
  WEIR_DRIVER_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
};

// Notes that a stream is captured. From then on each stream is asked if it is.
void note_capture();
// Reads the nodes of `graph` into the record of `exec`.
void add_graph(CUgraphExec exec, CUgraph graph);

}  // namespace weir_probe::cupti
