// Records the work of captured streams and of the graphs made of them.
#include <stdlib.h>

#include "gate/probes/inject/streams/interface.h"

namespace weir_probe::streams {
namespace {

bool g_capturing;        // atomic: some stream has been captured
Table g_captures;        // the runtime's number of a capture -> Graph
Table g_begun_captures;  // stream -> the number of the capture that began on it
Table g_graphs;          // graph -> Graph
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // guards the graphs in the tables

void append_all(Graph* to, const Graph& from) {
  for (size_t i = 0; i < from.launch_count; ++i) append(to, from.launches[i]);
  to->copies += from.copies;
  to->is_incomplete = to->is_incomplete || from.is_incomplete;
}

// Returns the runtime's number of the capture that a stream takes part in; 0: none.
uint64_t find_capture(void* stream) {
  if (!__atomic_load_n(&g_capturing, __ATOMIC_ACQUIRE) || address_key(stream) <= k_legacy_stream) {
    return 0;
  }
  int status = k_not_captured;
  uint64_t capture = 0;
  const bool succeeded =
      succeeds(runtime().capture_info, stream, &status, &capture, static_cast<void**>(nullptr),
               static_cast<const void**>(nullptr), static_cast<size_t*>(nullptr));
  return succeeded && status == k_captured ? capture : 0;
}

// Calls `add(Graph*)` on the work so far of the capture that a stream takes part in. False: it
// takes part in none. Locks, as several threads may take part in one.
template <class Add>
bool add_to_capture(void* stream, Add add) {
  const uint64_t capture = find_capture(stream);
  if (capture == 0) return false;
  const Locked locked(&g_lock);
  if (auto* captured = get_or_create<Graph>(&g_captures, capture)) add(captured);
  return true;
}

}  // namespace

bool is_captured(void* stream) { return find_capture(stream) != 0; }

bool capture_launch(void* stream, const Launch& launch) {
  return add_to_capture(stream, [&launch](Graph* captured) { append(captured, launch); });
}

bool capture_copy(void* stream) {
  return add_to_capture(stream, [](Graph* captured) { ++captured->copies; });
}

// Within a capture the work of a graph becomes part of the outer one.
bool capture_graph_launch(void* stream, void* exec) {
  return add_to_capture(stream, [exec](Graph* outer) {
    const auto* inner = g.graphs.get<Graph>(address_key(exec));
    outer->is_incomplete = outer->is_incomplete || inner == nullptr;
    if (inner != nullptr) append_all(outer, *inner);
  });
}

void note_capture(void* stream, void* graph) {
  __atomic_store_n(&g_capturing, true, __ATOMIC_RELEASE);
  const uint64_t capture = find_capture(stream);
  g_begun_captures.insert(address_key(stream), reinterpret_cast<void*>(capture));
  if (graph == nullptr || g_graphs.find(address_key(graph)) != nullptr) return;
  // Nodes that the graph has already were added unseen.
  if (auto* record = replace_record<Graph>(&g_graphs, address_key(graph)))
    record->is_incomplete = true;
}

// Moves the work of the capture to `graph`, in addition to what the graph has.
void end_capture(void* stream, void* graph) {
  const uint64_t capture = address_key(g_begun_captures.remove(address_key(stream)));
  if (capture == 0) return;
  auto* captured = static_cast<Graph*>(g_captures.remove(capture));
  if (graph == nullptr) return free_graph(captured);
  const Locked locked(&g_lock);
  // A graph of which nothing was captured is complete and empty.
  auto* record = get_or_create<Graph>(&g_graphs, address_key(graph));
  if (record != nullptr && captured != nullptr) append_all(record, *captured);
  free_graph(captured);
}

// Records the work of an executable graph: that of the graph that it was instantiated from. One
// that was not captured is unknown.
void add_executable(void* exec, void* graph) {
  Graph* executable = renew_graph(exec);
  if (executable == nullptr) return;
  const Locked locked(&g_lock);
  const auto* captured = g_graphs.get<Graph>(address_key(graph));
  executable->is_incomplete = captured == nullptr;
  if (captured != nullptr) append_all(executable, *captured);
}

void note_instantiation(void* exec, void* graph) {
  add_executable(exec, graph);
  count(k_graph_instantiations);
}

void forget_captured_graph(void* graph) {
  free_graph(static_cast<Graph*>(g_graphs.remove(address_key(graph))));
}

}  // namespace weir_probe::streams
