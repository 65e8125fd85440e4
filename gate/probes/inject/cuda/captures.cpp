// Captures and the graphs that come of them.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/cuda/cuda.h"

namespace weir_probe {
namespace cuda {
namespace {

struct Recorded {
  Node* nodes;
  size_t count, room;
  bool lost;  // it is not whole: memory was out, or it holds what was not seen
};

bool g_capturing;  // atomic: some stream has been captured
Table g_captures;  // the driver's number of one -> Recorded
Table g_begun;     // stream -> the number of the capture that began on it
Table g_graphs;    // graph -> Recorded
Table g_execs;     // executable graph -> Recorded
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // of what they hold

// Under g_lock, as is what keep() makes.
void append(Recorded* to, const Node& node) {
  to->lost = to->lost || !make_room(&to->nodes, &to->room, to->count + 1, 16, UINT32_MAX);
  if (!to->lost) to->nodes[to->count++] = node;
}
void append_all(Recorded* to, const Recorded& from) {
  for (size_t i = 0; i < from.count; ++i) append(to, from.nodes[i]);
  to->lost = to->lost || from.lost;
}

void end(void* recorded) {
  auto* one = static_cast<Recorded*>(recorded);
  if (one == nullptr) return;
  free(one->nodes);
  free(one);
}

// `add(Recorded*)` to what the capture holds. Several threads may take part in one.
template <class Add>
void keep(uint64_t capture, Add add) {
  const Locked locked(&g_lock);
  if (auto* recorded = known_or_fresh<Recorded>(&g_captures, capture)) add(recorded);
}

}  // namespace

void capture_began(void* stream, void* graph) {
  __atomic_store_n(&g_capturing, true, __ATOMIC_RELEASE);
  const uint64_t capture = capture_of(stream);
  g_begun.insert(key_of(stream), reinterpret_cast<void*>(capture));
  if (graph == nullptr || g_graphs.find(key_of(graph)) != nullptr) return;
  // What it holds already was put there unseen.
  if (auto* recorded = fresh_record<Recorded>(&g_graphs, key_of(graph))) recorded->lost = true;
}

uint64_t capture_begun_on(void* stream) { return key_of(g_begun.remove(key_of(stream))); }

uint64_t capture_of(void* stream) {
  if (!__atomic_load_n(&g_capturing, __ATOMIC_ACQUIRE) ||
      key_of(stream) <= streams::k_legacy_stream) {
    return 0;
  }
  int status = k_not_captured;
  uint64_t capture = 0;
  const bool told = streams::succeeds(
      asked().cuStreamGetCaptureInfo_v2, stream, &status, &capture, static_cast<void**>(nullptr),
      static_cast<const void**>(nullptr), static_cast<size_t*>(nullptr));
  return told && status == k_captured ? capture : 0;
}

void capture_ended(uint64_t capture, void* graph) {
  void* recorded = g_captures.remove(capture);
  if (graph == nullptr) return end(recorded);
  // Nothing was captured: an empty graph, which is known.
  if (recorded == nullptr) recorded = calloc(1, sizeof(Recorded));
  if (recorded == nullptr) return;
  if (auto* before = g_graphs.get<Recorded>(key_of(graph))) {
    const Locked locked(&g_lock);
    append_all(before, *static_cast<Recorded*>(recorded));
    return end(recorded);
  }
  if (!g_graphs.insert(key_of(graph), recorded)) end(recorded);
}

void graph_was_made(void* exec, void* graph) {
  executable_ended(exec);
  const auto* from = g_graphs.get<Recorded>(key_of(graph));
  auto* made = fresh_record<Recorded>(&g_execs, key_of(exec));
  if (made == nullptr) return;
  {
    const Locked locked(&g_lock);
    made->lost = from == nullptr;
    if (from != nullptr) append_all(made, *from);
  }
  // Of a graph that was not captured nothing is known, which its launch says.
  if (!made->lost) streams::graph_was_made(exec, made);
}

void graph_was_launched(void* stream, void* exec) {
  const auto* made = g_execs.get<Recorded>(key_of(exec));
  // Within a capture its nodes become nodes of the graph around it.
  if (const uint64_t capture = capture_of(stream)) {
    return keep(capture, [made](Recorded* around) {
      around->lost = around->lost || made == nullptr;
      if (made != nullptr) append_all(around, *made);
    });
  }
  streams::launched_graph(stream, exec);
  count(k_graph_launches);
  uint64_t programmatic = 0, of_cublas = 0;
  for (size_t i = 0; made != nullptr && i < made->count; ++i) {
    programmatic += made->nodes[i].programmatic;
    of_cublas += made->nodes[i].of_cublas;
  }
  count(k_programmatic, programmatic);
  count(k_cublas_calls, of_cublas);
}

void graph_ended(void* graph) { end(g_graphs.remove(key_of(graph))); }
void executable_ended(void* exec) {
  streams::graph_ended(exec);
  end(g_execs.remove(key_of(exec)));
}

bool happens_now(void* stream, const Node& node) {
  have_counters();
  if (const uint64_t capture = capture_of(stream)) {
    keep(capture, [&node](Recorded* recorded) { append(recorded, node); });
    return false;
  }
  if (node.kind != streams::k_kernel_node) return true;
  streams::launched(stream, node.launch);
  if (node.programmatic) count(k_programmatic);
  if (node.of_cublas) count(k_cublas_calls);
  return true;
}

}  // namespace cuda

namespace streams {

using namespace cuda;

// What is captured never comes here: happens_now() keeps it.
bool is_captured(void*) { return false; }

bool nodes_of(void* graph, void** nodes, size_t* count) {
  auto* of = static_cast<Recorded*>(graph);
  for (size_t i = 0; nodes != nullptr && i < of->count && i < *count; ++i) nodes[i] = &of->nodes[i];
  *count = of->count;
  return true;
}
int type_of(void* node) { return static_cast<Node*>(node)->kind; }
bool launch_of(void* node, Launch* out) {
  *out = static_cast<Node*>(node)->launch;
  return true;
}
void* child_of(void*) { return nullptr; }

}  // namespace streams
}  // namespace weir_probe
