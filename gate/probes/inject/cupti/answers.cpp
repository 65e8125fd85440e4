// Asks the driver for kernels and graphs; defines what streams.h requires.
#include <stdlib.h>

#include "gate/probes/inject/cupti/cupti.h"
#include "gate/probes/inject/streams/front.h"

namespace weir_probe {
namespace cupti {

using namespace streams;

namespace {

#define WEIR_LOOK_UP(name) table.name = reinterpret_cast<decltype(table.name)>(find_below(#name));
WEIR_FUNCTION_TABLE(Driver, driver, WEIR_DRIVER_FUNCTIONS(WEIR_LOOK_UP))

bool g_capturing;  // atomic: some stream has been captured

constexpr size_t k_max_nodes = size_t{1} << 20;
constexpr int k_max_depth = 8;  // graphs within graphs

int node_type(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  return succeeds(driver().cuGraphNodeGetType, node, &type) ? static_cast<int>(type) : -1;
}

// Reads the function, name and sizes of a CUDA graph's kernel node into `out`. False if the driver
// does not answer.
bool read_launch(CUgraphNode node, Launch* out) {
  CUDA_KERNEL_NODE_PARAMS params{};
  const Driver& functions = driver();
  if (!succeeds(functions.cuGraphKernelNodeGetParams_v2, node, &params)) return false;
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

bool add_nodes(Graph* to, CUgraph graph, int depth);

// Adds the work of one node of a CUDA graph (kernels, copies, child graphs) to `to`. False if the
// driver does not answer, or graphs are nested too deep.
bool add_node(Graph* to, CUgraphNode node, int depth) {
  const int type = node_type(node);
  if (type == k_copy_node || type == k_fill_node) ++to->copies;
  if (type == k_child_node) {
    CUgraph child = nullptr;
    return succeeds(driver().cuGraphChildGraphNodeGetGraph, node, &child) &&
           add_nodes(to, child, depth + 1);
  }
  if (type != k_kernel_node) return type >= 0;
  Launch launch{};
  if (!read_launch(node, &launch)) return false;
  append(to, launch);
  return true;
}

// Adds the work of all nodes of a CUDA graph to `to`. `depth` is how deep it is nested in others.
// False if the nodes cannot be listed, or are too many.
bool add_nodes(Graph* to, CUgraph graph, int depth) {
  const auto list_nodes = driver().cuGraphGetNodes;
  CUgraphNode* const no_array = nullptr;
  size_t count = 0;
  if (depth > k_max_depth || !succeeds(list_nodes, graph, no_array, &count) ||
      count > k_max_nodes) {
    return false;
  }
  if (count == 0) return true;
  auto* nodes = static_cast<CUgraphNode*>(calloc(count, sizeof(CUgraphNode)));
  if (nodes == nullptr) return false;
  bool is_complete = succeeds(list_nodes, graph, nodes, &count);
  for (size_t i = 0; is_complete && i < count; ++i) is_complete = add_node(to, nodes[i], depth);
  free(nodes);
  return is_complete;
}

}  // namespace

void note_capture() { __atomic_store_n(&g_capturing, true, __ATOMIC_RELEASE); }

void add_graph(CUgraphExec exec, CUgraph graph) {
  Graph* record = renew_graph(exec);
  if (record != nullptr && !add_nodes(record, graph, 0)) record->is_incomplete = true;
}

}  // namespace cupti

namespace streams {

using namespace cupti;

const char k_probe_name[] = "cupti";
const char* const k_counter_names[k_counters] = {nullptr, "markers"};

// CUPTI gives the name with the call; in a graph read_launch() gets it.
const char* kernel_name(const Launch& launch) { return launch.name; }

uint64_t code_hash(const Launch&) { return 0; }
void measure_costs(const Launch&, weir_probe_code*) {}

bool is_captured(void* stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return __atomic_load_n(&g_capturing, __ATOMIC_ACQUIRE) &&
         succeeds(driver().cuStreamIsCapturing, static_cast<CUstream>(stream), &status) &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}
// Add nothing: what a graph holds is asked of the driver.
bool capture_launch(void* stream, const Launch&) { return is_captured(stream); }
bool capture_copy(void* stream) { return is_captured(stream); }
bool capture_graph_launch(void* stream, void*) { return is_captured(stream); }

}  // namespace streams
}  // namespace weir_probe
