// Devices, captures and counters of the probe in front of CUDA.
//
// A call on a stream that is being captured builds a graph: it counts each time that the graph is
// launched. A graph holds the program's calls while it was captured, not the nodes that the driver
// made of them: a call of cuBLAS is one dispatch, in a graph and outside.
#pragma once

#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/inject/streams/front.h"

namespace weir_probe::cuda {

// Functions of driver and runtime that the probe calls, besides those that it intercepts.
#define WEIR_CUDA_FUNCTIONS(X)                                                       \
  X(cudaFuncGetAttributes, (void*, const void*))                                     \
  X(cudaGetLastError, ())                                                            \
  X(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int*, const void*, int, size_t)) \
  X(cuCtxGetDevice, (int*))                                                          \
  X(cuDeviceGetName, (char*, int, int))                                              \
  X(cuDeviceGetAttribute, (int*, int, int))                                          \
  X(cuDriverGetVersion, (int*))                                                      \
  X(cuPointerGetAttribute, (void*, int, uint64_t))                                   \
  X(cuStreamGetCaptureInfo_v2, (void*, int*, uint64_t*, void**, const void**, size_t*))

struct CudaFunctions {
#define WEIR_FIELD(name, parameters) int(*name) parameters;
  WEIR_CUDA_FUNCTIONS(WEIR_FIELD)
#undef WEIR_FIELD
};
const CudaFunctions& cuda_functions();

// --- captures.cpp
struct Node {
  int kind;  // a streams::NodeType
  streams::Launch launch;
  bool uses_dependent_launch = false;  // may start before the kernel ahead of it has ended
  bool is_cublas = false;
};
// Notes that `stream` is captured, into `graph` if that is not null. From then on each stream is
// asked if it takes part in a capture.
void note_capture(void* stream, void* graph);
// Returns the capture that `stream` takes part in; 0: none.
uint64_t find_capture(void* stream);
// Returns and forgets the capture that began on `stream`, even if it failed; 0: none. Call it when
// the capture ends.
uint64_t take_begun_capture(void* stream);
// Makes the work of a capture that of `graph`; null: the capture failed.
void end_capture(uint64_t capture, void* graph);
void add_executable(void* exec, void* graph);
void count_executable_launch(void* stream, void* exec);
void forget_graph(void* graph);
void forget_executable(void* exec);
// Counts the node and returns true; while `stream` is captured, adds it to the capture and returns
// false.
bool count_or_capture(void* stream, const Node& node);

// --- functions.cpp
void name_function(const void* function, const char* name);
// Gives `function` the name and facts of another one.
void copy_function_name(const void* function, const void* original);

// --- counters of CUDA's own, besides those of streams
enum Counter {
  k_cublas_calls,
  k_graph_launches,
  k_graph_instantiations,
  k_dependent_launches,
  k_device_memory_bytes,  // equals device_memory_peak_bytes, for its growth over lengths
  k_memory_refused,       // allocations that failed for lack of memory
  k_counters
};
void count(Counter what, uint64_t amount = 1);
// Adds the counters to the file, so that those that stay 0 are reported as well.
void add_counters_once();

}  // namespace weir_probe::cuda
