// What the probe in front of CUDA knows of devices, captures and memory.
//
// A call on a stream that is being captured builds a graph: it counts each time that the graph is
// launched. What a graph holds is what the program asked for while it was captured, not what the
// driver made of that: a call of cuBLAS is one dispatch, in a graph and outside.
#pragma once

#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/inject/streams/front.h"

namespace weir_probe::cuda {

// What driver and runtime are asked, in addition to what is stood in front of.
#define WEIR_CUDA_ASKED(X)                                                           \
  X(cudaFuncGetAttributes, (void*, const void*))                                     \
  X(cudaGetLastError, ())                                                            \
  X(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int*, const void*, int, size_t)) \
  X(cuCtxGetDevice, (int*))                                                          \
  X(cuDeviceGetName, (char*, int, int))                                              \
  X(cuDeviceGetAttribute, (int*, int, int))                                          \
  X(cuDriverGetVersion, (int*))                                                      \
  X(cuPointerGetAttribute, (void*, int, uint64_t))                                   \
  X(cuStreamGetCaptureInfo_v2, (void*, int*, uint64_t*, void**, const void**, size_t*))

struct Asked {
#define WEIR_FIELD(name, parameters) int(*name) parameters;
  WEIR_CUDA_ASKED(WEIR_FIELD)
#undef WEIR_FIELD
};
const Asked& asked();

// --- captures.cpp
struct Node {
  int kind;  // a streams::NodeType
  streams::Launch launch;
  bool programmatic = false;  // may start before the kernel ahead of it ends
  bool of_cublas = false;
};
// `stream` is captured, into `graph` where that is not null: from now on each stream is asked
// whether it takes part.
void capture_began(void* stream, void* graph);
// The capture that `stream` takes part in; 0: none.
uint64_t capture_of(void* stream);
// The one that began on `stream`, also where it is broken. It is to end now.
uint64_t capture_begun_on(void* stream);
// It gave `graph`; null: it failed.
void capture_ended(uint64_t capture, void* graph);
void graph_was_made(void* exec, void* graph);
void graph_was_launched(void* stream, void* exec);
void graph_ended(void* graph);
void executable_ended(void* exec);
// Counts it, or keeps it while `stream` is captured; the answer is then false.
bool happens_now(void* stream, const Node& node);

// --- functions.cpp
void function_is(const void* function, const char* name);
// The same as another one, which is known.
void function_is_also(const void* function, const void* known);

// --- counters of their own beside those of streams
enum Counter {
  k_cublas_calls,
  k_graph_launches,
  k_graph_instantiations,
  k_programmatic,
  k_device_memory_bytes,  // as device_memory_peak_bytes, for its growth over lengths
  k_memory_refused,       // for want of it
  k_counters
};
void count(Counter what, uint64_t amount = 1);
// Those that stay 0 are told, too.
void have_counters();

}  // namespace weir_probe::cuda
