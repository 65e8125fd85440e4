// Asks the driver for kernels and graphs; implements the functions that streams.h requires.
#include "gate/probes/inject/cupti/cupti.h"
#include "gate/probes/inject/streams/front.h"

namespace weir_probe {
namespace cupti {

WEIR_FUNCTION_TABLE(Driver, driver, WEIR_DRIVER_FUNCTIONS)

}  // namespace cupti

namespace streams {

using namespace cupti;

const char k_probe_name[] = "cupti";

// CUPTI gives the name with the call; in a graph read_launch() gets it.
const char* kernel_name(const Launch& launch, void*) { return launch.name; }

uint64_t code_hash(const Launch&) { return 0; }
void measure_costs(const Launch&, weir_probe_code*) {}

bool is_captured(void* stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return succeeds(driver().cuStreamIsCapturing, static_cast<CUstream>(stream), &status) &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool list_nodes(void* graph, void** nodes, size_t* count) {
  return succeeds(driver().cuGraphGetNodes, static_cast<CUgraph>(graph),
                  reinterpret_cast<CUgraphNode*>(nodes), count);
}

int node_type(void* node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const bool succeeded =
      succeeds(driver().cuGraphNodeGetType, static_cast<CUgraphNode>(node), &type);
  return succeeded ? static_cast<int>(type) : -1;
}

// Reads function, name and sizes of a graph's kernel node.
bool read_launch(void* node, Launch* out) {
  CUDA_KERNEL_NODE_PARAMS params{};
  const Driver& functions = driver();
  if (!succeeds(functions.cuGraphKernelNodeGetParams_v2, static_cast<CUgraphNode>(node), &params)) {
    return false;
  }
  // A kernel that is loaded at its first use has no function yet.
  if (params.func != nullptr) {
    out->function = params.func;
    succeeds(functions.cuFuncGetName, &out->name, params.func);
  } else {
    out->function = params.kern;
    succeeds(functions.cuKernelGetName, &out->name, params.kern);
  }
  out->sizes =
      launch_sizes({params.gridDimX, params.gridDimY, params.gridDimZ},
                   {params.blockDimX, params.blockDimY, params.blockDimZ}, params.sharedMemBytes);
  return true;
}

void* child_graph(void* node) {
  CUgraph child = nullptr;
  succeeds(driver().cuGraphChildGraphNodeGetGraph, static_cast<CUgraphNode>(node), &child);
  return child;
}

}  // namespace streams
}  // namespace weir_probe
