// The part of HIP's binary interface that the probe uses. ROCm's headers are not needed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/streams/front.h"

namespace weir_probe::hip {

using Dim3 = streams::Size3;

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

// Functions of the runtime that the probe calls, besides those that it intercepts.
#define WEIR_HIP_FUNCTIONS(X)                                     \
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

struct HipFunctions {
#define WEIR_FIELD(name, result, parameters) result(*name) parameters;
  WEIR_HIP_FUNCTIONS(WEIR_FIELD)
#undef WEIR_FIELD
};

const HipFunctions& hip_functions();

}  // namespace weir_probe::hip
