// What only the driver can tell of kernels and graphs.
#include "gate/probes/inject/cupti/cupti.h"
#include "gate/probes/inject/streams/front.h"

namespace weir_probe {
namespace cupti {

WEIR_ASKED(Driver, driver, WEIR_CUPTI_ASKED)

}  // namespace cupti

namespace streams {

using namespace cupti;

const char k_probe_name[] = "cupti";

// CUPTI tells it with the call; a graph's node is asked when the graph is read.
const char* name_of(const Launch& launch, void*) { return launch.name; }

uint64_t code_of(const Launch&) { return 0; }
void measure(const Launch&, weir_probe_code*) {}

bool is_captured(void* stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return succeeds(driver().cuStreamIsCapturing, static_cast<CUstream>(stream), &status) &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool nodes_of(void* graph, void** nodes, size_t* count) {
  return succeeds(driver().cuGraphGetNodes, static_cast<CUgraph>(graph),
                  reinterpret_cast<CUgraphNode*>(nodes), count);
}

int type_of(void* node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const bool told = succeeds(driver().cuGraphNodeGetType, static_cast<CUgraphNode>(node), &type);
  return told ? static_cast<int>(type) : -1;
}

bool launch_of(void* node, Launch* out) {
  CUDA_KERNEL_NODE_PARAMS params{};
  const Driver& ask = driver();
  if (!succeeds(ask.cuGraphKernelNodeGetParams_v2, static_cast<CUgraphNode>(node), &params)) {
    return false;
  }
  // Kernels that are loaded when first used have no function before.
  if (params.func != nullptr) {
    out->function = params.func;
    succeeds(ask.cuFuncGetName, &out->name, params.func);
  } else {
    out->function = params.kern;
    succeeds(ask.cuKernelGetName, &out->name, params.kern);
  }
  out->sizes =
      sizes_of({params.gridDimX, params.gridDimY, params.gridDimZ},
               {params.blockDimX, params.blockDimY, params.blockDimZ}, params.sharedMemBytes);
  return true;
}

void* child_of(void* node) {
  CUgraph child = nullptr;
  succeeds(driver().cuGraphChildGraphNodeGetGraph, static_cast<CUgraphNode>(node), &child);
  return child;
}

}  // namespace streams
}  // namespace weir_probe
