// Records the work of captured streams and of the graphs made of them.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/cuda/cuda.h"

namespace weir_probe {
namespace cuda {
namespace {

struct CapturedGraph {
  Node* nodes;
  size_t count, room;
  bool is_incomplete;  // memory was out, or it has work that was not seen
};

bool g_capturing;        // atomic: some stream has been captured
Table g_captures;        // the driver's number of a capture -> CapturedGraph
Table g_begun_captures;  // stream -> the number of the capture that began on it
Table g_graphs;          // graph -> CapturedGraph
Table g_execs;           // executable graph -> CapturedGraph
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // guards the graphs in the tables

// Appends a node; the graph is incomplete when memory is out. Under g_lock.
void append(CapturedGraph* to, const Node& node) {
  to->is_incomplete =
      to->is_incomplete || !make_room(&to->nodes, &to->room, to->count + 1, 16, UINT32_MAX);
  if (!to->is_incomplete) to->nodes[to->count++] = node;
}
void append_all(CapturedGraph* to, const CapturedGraph& from) {
  for (size_t i = 0; i < from.count; ++i) append(to, from.nodes[i]);
  to->is_incomplete = to->is_incomplete || from.is_incomplete;
}

void free_graph(void* record) {
  auto* graph = static_cast<CapturedGraph*>(record);
  if (graph == nullptr) return;
  free(graph->nodes);
  free(graph);
}

// Calls `add(CapturedGraph*)` on the work of the capture so far. Locks, as several threads may take
// part in one.
template <class Add>
void add_to_capture(uint64_t capture, Add add) {
  const Locked locked(&g_lock);
  if (auto* captured = get_or_create<CapturedGraph>(&g_captures, capture)) add(captured);
}

}  // namespace

void note_capture(void* stream, void* graph) {
  __atomic_store_n(&g_capturing, true, __ATOMIC_RELEASE);
  const uint64_t capture = find_capture(stream);
  g_begun_captures.insert(key_of(stream), reinterpret_cast<void*>(capture));
  if (graph == nullptr || g_graphs.find(key_of(graph)) != nullptr) return;
  // Nodes that the graph has already were added unseen.
  if (auto* graph_record = replace_record<CapturedGraph>(&g_graphs, key_of(graph)))
    graph_record->is_incomplete = true;
}

uint64_t take_begun_capture(void* stream) {
  return key_of(g_begun_captures.remove(key_of(stream)));
}

// Returns the driver's number of the capture that a stream takes part in; 0: none.
uint64_t find_capture(void* stream) {
  if (!__atomic_load_n(&g_capturing, __ATOMIC_ACQUIRE) ||
      key_of(stream) <= streams::k_legacy_stream) {
    return 0;
  }
  int status = k_not_captured;
  uint64_t capture = 0;
  const bool succeeded =
      streams::succeeds(cuda_functions().cuStreamGetCaptureInfo_v2, stream, &status, &capture,
                        static_cast<void**>(nullptr), static_cast<const void**>(nullptr),
                        static_cast<size_t*>(nullptr));
  return succeeded && status == k_captured ? capture : 0;
}

// Moves the work of a capture to `graph`, in addition to what the graph has; frees it if the
// capture failed (`graph` null).
void end_capture(uint64_t capture, void* graph) {
  void* captured_graph = g_captures.remove(capture);
  if (graph == nullptr) return free_graph(captured_graph);
  // Nothing was captured: the graph is complete and empty.
  if (captured_graph == nullptr) captured_graph = calloc(1, sizeof(CapturedGraph));
  if (captured_graph == nullptr) return;
  if (auto* existing = g_graphs.get<CapturedGraph>(key_of(graph))) {
    const Locked locked(&g_lock);
    append_all(existing, *static_cast<CapturedGraph*>(captured_graph));
    return free_graph(captured_graph);
  }
  if (!g_graphs.insert(key_of(graph), captured_graph)) free_graph(captured_graph);
}

// Records the work of an executable graph: that of the graph that it was instantiated from.
void add_executable(void* exec, void* graph) {
  forget_executable(exec);
  const auto* graph_record = g_graphs.get<CapturedGraph>(key_of(graph));
  auto* executable = replace_record<CapturedGraph>(&g_execs, key_of(exec));
  if (executable == nullptr) return;
  {
    const Locked locked(&g_lock);
    executable->is_incomplete = graph_record == nullptr;
    if (graph_record != nullptr) append_all(executable, *graph_record);
  }
  // A graph that was not captured is unknown; its launch sets a flag in the file.
  if (!executable->is_incomplete) streams::add_graph(exec, executable);
}

// Counts the launch of an executable graph and its work; within a capture, adds the work to that.
void count_executable_launch(void* stream, void* exec) {
  const auto* executable = g_execs.get<CapturedGraph>(key_of(exec));
  // Within a capture its nodes become nodes of the outer graph.
  if (const uint64_t capture = find_capture(stream)) {
    return add_to_capture(capture, [executable](CapturedGraph* outer) {
      outer->is_incomplete = outer->is_incomplete || executable == nullptr;
      if (executable != nullptr) append_all(outer, *executable);
    });
  }
  streams::count_graph_launch(stream, exec);
  count(k_graph_launches);
  uint64_t programmatic_launches = 0;
  uint64_t cublas_calls = 0;
  for (size_t i = 0; executable != nullptr && i < executable->count; ++i) {
    programmatic_launches += executable->nodes[i].uses_dependent_launch;
    cublas_calls += executable->nodes[i].is_cublas;
  }
  count(k_dependent_launches, programmatic_launches);
  count(k_cublas_calls, cublas_calls);
}

void forget_graph(void* graph) { free_graph(g_graphs.remove(key_of(graph))); }
void forget_executable(void* exec) {
  streams::forget_graph(exec);
  free_graph(g_execs.remove(key_of(exec)));
}

// Counts a call and returns true; while its stream is captured, adds it to the capture and returns
// false.
bool count_or_capture(void* stream, const Node& node) {
  add_counters_once();
  if (const uint64_t capture = find_capture(stream)) {
    add_to_capture(capture, [&node](CapturedGraph* graph) { append(graph, node); });
    return false;
  }
  if (node.kind != streams::k_kernel_node) return true;
  streams::count_launch(stream, node.launch);
  if (node.uses_dependent_launch) count(k_dependent_launches);
  if (node.is_cublas) count(k_cublas_calls);
  return true;
}

}  // namespace cuda

namespace streams {

using namespace cuda;

// Captured work never comes here: count_or_capture() records it.
bool is_captured(void*) { return false; }

bool list_nodes(void* graph, void** nodes, size_t* count) {
  auto* captured = static_cast<CapturedGraph*>(graph);
  for (size_t i = 0; nodes != nullptr && i < captured->count && i < *count; ++i)
    nodes[i] = &captured->nodes[i];
  *count = captured->count;
  return true;
}
int node_type(void* node) { return static_cast<Node*>(node)->kind; }
bool read_launch(void* node, Launch* out) {
  *out = static_cast<Node*>(node)->launch;
  return true;
}
void* child_graph(void*) { return nullptr; }

}  // namespace streams
}  // namespace weir_probe
