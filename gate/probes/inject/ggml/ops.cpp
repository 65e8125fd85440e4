// Times single ops on any backend: under serialized timing, a graph is computed node by node with a
// wait behind each. A scheduler does that by itself for an evaluation callback; a graph that is
// given to a backend directly is split into views of one node.
//
// Every second one of similar graphs is computed normally (and waited for), so that the file shows
// the cost of computing node by node. Nodes of backends whose work another probe times are not
// separated, so that such a backend fuses them as it does without the probe.
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr size_t k_max_concurrent = 8;     // graphs computed at once by different threads
constexpr size_t k_kinds = 256;            // kinds of graphs that take turns separately
constexpr uint32_t k_max_nodes = 1 << 20;  // nodes
constexpr int k_success = 0;

const char* g_timed_backends;  // beginnings of names of backends, separated by commas
bool g_enabled;
NodeTiming g_timings[k_max_concurrent];
uint8_t g_turns[k_kinds];
Table g_callbacks;           // a scheduler -> the program's own callback
bool g_has_missed_callback;  // memory was out for a program's callback: then none is replaced

struct Callback {
  EvalCallback call;
  void* data;
};

// Returns true if another probe times the work of a backend with this name.
bool is_timed_elsewhere(const char* backend) {
  if (g_timed_backends == nullptr || backend == nullptr) return false;
  for (const char* name = g_timed_backends; *name != '\0';) {
    const size_t length = strcspn(name, ",");
    if (length != 0 && strncmp(backend, name, length) == 0) return true;
    name += length + (name[length] == ',' ? 1 : 0);
  }
  return false;
}

// Adds the node with its begin and this end; drops it when memory is out.
void add_time(NodeTiming* timing, const Tensor* node, uint64_t end) {
  if (!make_room(&timing->nodes, &timing->room, timing->count + 1, 256, k_max_nodes)) return;
  timing->nodes[timing->count++] = {node, timing->begin, end};
}

// Serves ggml's scheduler as evaluation callback while a graph is timed: asked before each node
// (`is_query`), and called after it. Passes both on to the program's own callback.
bool on_scheduler_node(Tensor* node, bool is_query, void* data) {
  auto* timing = static_cast<NodeTiming*>(data);
  if (is_query) {
    const Functions& ggml = timing->library->ggml;
    timing->program_waits =
        timing->callback != nullptr && timing->callback(node, true, timing->callback_data);
    timing->is_timed =
        does_work(ggml, node) &&
        !is_timed_elsewhere(call_if_present(
            ggml.backend_name, ggml.backend_sched_get_tensor_backend(timing->sched, node)));
    t_waits_of_probe = ProbeWaits::next;  // the scheduler's wait for the callback
    timing->begin = now_nanoseconds();
    return timing->is_timed || timing->program_waits;
  }
  if (timing->is_timed) add_time(timing, node, now_nanoseconds());
  return !timing->program_waits || timing->callback(node, false, timing->callback_data);
}

// Returns true for every second one of similar graphs: those with as many nodes, whose first and
// last have the same shapes.
bool is_its_turn(Library* library, Graph* graph, int nodes) {
  uint64_t hash = hash_bytes(k_hash_seed, &nodes, sizeof nodes);
  const int ends[] = {0, nodes - 1};
  for (const int i : ends) {
    const Tensor* node = library->ggml.graph_node(graph, i);
    if (is_readable(library, node))
      hash = hash_bytes(hash, TensorView(node).ne(), sizeof(int64_t[4]));
  }
  return (__atomic_fetch_add(&g_turns[hash % k_kinds], 1, __ATOMIC_RELAXED) & 1) == 0;
}

// Takes a free NodeTiming for this thread; false if it is in use.
bool acquire(NodeTiming* timing) {
  bool expected = false;
  return __atomic_compare_exchange_n(&timing->in_use, &expected, true, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

}  // namespace

__thread ProbeWaits t_waits_of_probe __attribute__((tls_model("initial-exec")));

bool times_ops() { return g_enabled; }

void make_ops_ready() {
  g_enabled = timing_wanted() == Timing::serialized;
  g_timed_backends = environment(WEIR_PROBE_TIMED_VARIABLE);
}

void reset_ops_after_fork() {
  for (NodeTiming& timing : g_timings) timing.in_use = false;
}

// Returns a free NodeTiming if times of ops are recorded and this graph's turn has come; else
// null.
NodeTiming* begin_node_timing(Library* library, Graph* graph) {
  if (!g_enabled || !lists_nodes(library->ggml)) return nullptr;
  const int nodes = library->ggml.graph_n_nodes(graph);
  if (nodes <= 0 || !is_its_turn(library, graph, nodes)) return nullptr;
  for (NodeTiming& timing : g_timings) {
    if (!acquire(&timing)) continue;
    timing.library = library;
    timing.count = 0;
    return &timing;
  }
  return nullptr;
}

void end_node_timing(NodeTiming* timing) {
  if (timing != nullptr) __atomic_store_n(&timing->in_use, false, __ATOMIC_RELEASE);
}

void note_callback(Sched* sched, EvalCallback call, void* data) {
  const auto key = reinterpret_cast<uint64_t>(sched);
  auto* record =
      call == nullptr ? g_callbacks.get<Callback>(key) : get_or_create<Callback>(&g_callbacks, key);
  if (record != nullptr) {
    *record = {call, data};
  } else if (call != nullptr) {
    __atomic_store_n(&g_has_missed_callback, true, __ATOMIC_RELAXED);
  }
}

void forget_callback(Sched* sched) {
  ::free(g_callbacks.remove(reinterpret_cast<uint64_t>(sched)));
}

// Computes the graph with the probe's evaluation callback, so that the scheduler waits after each
// node and it can be timed. The program's callback is put back afterwards.
int compute_node_by_node(NodeTiming* timing, Sched* sched, Graph* graph, ComputeSched compute,
                         bool) {
  const Functions& ggml = timing->library->ggml;
  if (ggml.backend_sched_set_eval_callback == nullptr ||
      ggml.backend_sched_get_tensor_backend == nullptr ||
      __atomic_load_n(&g_has_missed_callback, __ATOMIC_RELAXED)) {
    return compute(sched, graph);
  }
  const auto* callback = g_callbacks.get<Callback>(reinterpret_cast<uint64_t>(sched));
  timing->sched = sched;
  timing->callback = callback == nullptr ? nullptr : callback->call;
  timing->callback_data = callback == nullptr ? nullptr : callback->data;
  ggml.backend_sched_set_eval_callback(sched, on_scheduler_node, timing);
  const int status = compute(sched, graph);
  t_waits_of_probe = ProbeWaits::none;
  ggml.backend_sched_set_eval_callback(sched, timing->callback, timing->callback_data);
  return status;
}

// Computes a backend's graph as views that each end with one node that does work, and times them.
// If the graph cannot be split, `compute` does it all. `waits`: the program itself waits for it.
int compute_node_by_node(NodeTiming* timing, Backend* backend, Graph* graph, ComputeBackend compute,
                         bool waits) {
  const Functions& ggml = timing->library->ggml;
  const int nodes = ggml.graph_n_nodes(graph);
  // Readable tensors imply a ggml that returns views by value.
  if (ggml.graph_view == nullptr || ggml.backend_graph_compute == nullptr ||
      !is_readable(timing->library, ggml.graph_node(graph, 0)) ||
      is_timed_elsewhere(call_if_present(ggml.backend_name, backend))) {
    return compute(backend, graph);
  }
  int status = k_success;
  for (int i = 0, first = 0; i < nodes && status == k_success; ++i) {
    Tensor* node = ggml.graph_node(graph, i);
    const bool is_last = i + 1 == nodes;
    const bool has_work = does_work(ggml, node);
    if (!has_work && !is_last) continue;  // goes with the next node
    GraphView view = ggml.graph_view(graph, first, i + 1);
    first = i + 1;
    // The wait for the last node stands for the program's own.
    t_waits_of_probe = is_last && waits ? ProbeWaits::none : ProbeWaits::next;
    timing->begin = now_nanoseconds();
    status = ggml.backend_graph_compute(backend, reinterpret_cast<Graph*>(&view));
    if (has_work) add_time(timing, node, now_nanoseconds());
  }
  t_waits_of_probe = ProbeWaits::none;
  return status;
}

}  // namespace weir_probe
