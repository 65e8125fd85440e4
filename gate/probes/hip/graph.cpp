// What a graph does each time it is launched: read once, when it is made ready to be launched.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/hip/state.h"

namespace weir_probe::hip {
namespace {

constexpr size_t k_most_nodes = size_t{1} << 20;
constexpr int k_deepest = 8;  // graphs within graphs

bool append(Graph* to, const Launch& launch) {
  // Room doubles; a power of two is full.
  if ((to->launch_count & (to->launch_count - 1)) == 0) {
    const size_t room = to->launch_count == 0 ? 1 : to->launch_count * 2;
    auto* more = static_cast<Launch*>(realloc(to->launches, room * sizeof(Launch)));
    if (more == nullptr) return false;
    to->launches = more;
  }
  to->launches[to->launch_count++] = launch;
  return true;
}

bool add_nodes(Graph* to, void* graph, int depth);

bool add_node(Graph* to, void* node, int depth) {
  const Asked& ask = asked();
  int type = -1;
  if (ask.hipGraphNodeGetType(node, &type) != k_success) return false;
  if (type == k_copy_node || type == k_fill_node) ++to->copies;
  if (type == k_child_node) {
    void* child = nullptr;
    return ask.hipGraphChildGraphNodeGetGraph != nullptr &&
           ask.hipGraphChildGraphNodeGetGraph(node, &child) == k_success &&
           add_nodes(to, child, depth + 1);
  }
  if (type != k_kernel_node) return true;
  KernelNodeParams params;
  memset(&params, 0, sizeof params);
  if (ask.hipGraphKernelNodeGetParams == nullptr ||
      ask.hipGraphKernelNodeGetParams(node, &params) != k_success) {
    return false;
  }
  Launch launch{};
  launch.function = params.function;
  launch.sizes = sizes_of(params.grid, params.block, params.shared);
  return append(to, launch);
}

bool add_nodes(Graph* to, void* graph, int depth) {
  const Asked& ask = asked();
  size_t count = 0;
  if (depth > k_deepest || ask.hipGraphGetNodes == nullptr || ask.hipGraphNodeGetType == nullptr ||
      ask.hipGraphGetNodes(graph, nullptr, &count) != k_success || count > k_most_nodes) {
    return false;
  }
  if (count == 0) return true;
  auto** nodes = static_cast<void**>(calloc(count, sizeof(void*)));
  if (nodes == nullptr) return false;
  bool whole = ask.hipGraphGetNodes(graph, nodes, &count) == k_success;
  for (size_t i = 0; whole && i < count; ++i) whole = add_node(to, nodes[i], depth);
  free(nodes);
  return whole;
}

}  // namespace

void graph_was_made(void* exec, void* graph) {
  graph_ended(exec);
  auto* record = static_cast<Graph*>(calloc(1, sizeof(Graph)));
  if (record == nullptr) return;
  if (add_nodes(record, graph, 0) && g.graphs.insert(reinterpret_cast<uint64_t>(exec), record)) {
    return;
  }
  free(record->launches);
  free(record);
}

void graph_ended(void* exec) {
  auto* record = static_cast<Graph*>(g.graphs.remove(reinterpret_cast<uint64_t>(exec)));
  if (record == nullptr) return;
  free(record->launches);
  free(record);
}

}  // namespace weir_probe::hip
