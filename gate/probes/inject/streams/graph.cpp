// What a graph does each time it is launched: read once, when it is made ready to be launched.
#include <stdlib.h>

#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::streams {
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
  const int type = type_of(node);
  if (type == k_copy_node || type == k_fill_node) ++to->copies;
  if (type == k_child_node) {
    void* child = child_of(node);
    return child != nullptr && add_nodes(to, child, depth + 1);
  }
  if (type != k_kernel_node) return type >= 0;
  Launch launch{};
  return launch_of(node, &launch) && append(to, launch);
}

bool add_nodes(Graph* to, void* graph, int depth) {
  size_t count = 0;
  if (depth > k_deepest || !nodes_of(graph, nullptr, &count) || count > k_most_nodes) return false;
  if (count == 0) return true;
  auto** nodes = static_cast<void**>(calloc(count, sizeof(void*)));
  if (nodes == nullptr) return false;
  bool whole = nodes_of(graph, nodes, &count);
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

}  // namespace weir_probe::streams
