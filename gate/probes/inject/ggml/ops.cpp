// Times of single ops, on any backend: where serialized timing is asked for, a graph is computed
// node by node with a wait behind each. A scheduler does that by itself for an evaluation callback;
// a graph that is given to a backend directly is cut into views of one node.
//
// Of graphs alike every second one is left whole (and waited for), so that the file tells what
// computing them node by node costs. Nodes of backends whose work another probe times are left
// together: there a backend's fusions are as they are without the probe.
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr size_t k_at_once = 8;       // graphs that several threads compute
constexpr size_t k_kinds = 256;       // of graphs, for turns
constexpr uint32_t k_most = 1 << 20;  // nodes
constexpr int k_success = 0;

const char* g_elsewhere;  // beginnings of names of backends, separated by commas
bool g_wanted;
Stepping g_steppings[k_at_once];
uint8_t g_turns[k_kinds];
Table g_callbacks;  // a scheduler -> the program's own callback
bool g_forgot;      // some program's callback: then no scheduler is given another

struct Callback {
  EvalCallback call;
  void* data;
};

bool timed_elsewhere(const char* backend) {
  if (g_elsewhere == nullptr || backend == nullptr) return false;
  for (const char* name = g_elsewhere; *name != '\0';) {
    const size_t length = strcspn(name, ",");
    if (length != 0 && strncmp(backend, name, length) == 0) return true;
    name += length + (name[length] == ',' ? 1 : 0);
  }
  return false;
}

void note(Stepping* stepping, const Tensor* node, uint64_t end) {
  if (!make_room(&stepping->nodes, &stepping->room, stepping->count + 1, 256, k_most)) return;
  stepping->nodes[stepping->count++] = {node, stepping->begin, end};
}

// The scheduler asks it before each node whether it is to wait behind it, and tells it after that.
bool on_node(Tensor* node, bool asks, void* data) {
  auto* stepping = static_cast<Stepping*>(data);
  if (asks) {
    const Functions& ggml = stepping->library->ggml;
    stepping->theirs = stepping->call != nullptr && stepping->call(node, true, stepping->call_data);
    stepping->ours = does_work(ggml, node) &&
                     !timed_elsewhere(ask(ggml.backend_name, ggml.backend_sched_get_tensor_backend(
                                                                 stepping->sched, node)));
    t_own_waits = OwnWaits::next;  // the scheduler's, behind what it computes for a callback
    stepping->begin = now_nanoseconds();
    return stepping->ours || stepping->theirs;
  }
  if (stepping->ours) note(stepping, node, now_nanoseconds());
  return !stepping->theirs || stepping->call(node, false, stepping->call_data);
}

// Graphs of as many nodes with first and last ones alike take turns.
bool is_its_turn(Library* library, Graph* graph, int nodes) {
  uint64_t hash = hash_bytes(k_hash_seed, &nodes, sizeof nodes);
  const int ends[] = {0, nodes - 1};
  for (const int i : ends) {
    const Tensor* node = library->ggml.graph_node(graph, i);
    if (readable(library, node)) hash = hash_bytes(hash, TensorView(node).ne(), sizeof(int64_t[4]));
  }
  return (__atomic_fetch_add(&g_turns[hash % k_kinds], 1, __ATOMIC_RELAXED) & 1) == 0;
}

bool take(Stepping* stepping) {
  bool free = false;
  return __atomic_compare_exchange_n(&stepping->taken, &free, true, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

}  // namespace

__thread OwnWaits t_own_waits __attribute__((tls_model("initial-exec")));

bool ops_timed() { return g_wanted; }

void make_ops_ready() {
  g_wanted = timing_wanted() == Timing::serialized;
  g_elsewhere = environment(WEIR_PROBE_TIMED_VARIABLE);
}

void reset_ops_after_fork() {
  for (Stepping& one : g_steppings) one.taken = false;
}

Stepping* begin_steps(Library* library, Graph* graph) {
  if (!g_wanted || !lists_nodes(library->ggml)) return nullptr;
  const int nodes = library->ggml.graph_n_nodes(graph);
  if (nodes <= 0 || !is_its_turn(library, graph, nodes)) return nullptr;
  for (Stepping& one : g_steppings) {
    if (!take(&one)) continue;
    one.library = library;
    one.count = 0;
    return &one;
  }
  return nullptr;
}

void end_steps(Stepping* stepping) {
  if (stepping != nullptr) __atomic_store_n(&stepping->taken, false, __ATOMIC_RELEASE);
}

void note_callback(Sched* sched, EvalCallback call, void* data) {
  const auto key = reinterpret_cast<uint64_t>(sched);
  auto* known = call == nullptr ? g_callbacks.get<Callback>(key)
                                : known_or_fresh<Callback>(&g_callbacks, key);
  if (known != nullptr) {
    *known = {call, data};
  } else if (call != nullptr) {
    __atomic_store_n(&g_forgot, true, __ATOMIC_RELAXED);
  }
}

void forget_callback(Sched* sched) {
  ::free(g_callbacks.remove(reinterpret_cast<uint64_t>(sched)));
}

int compute_in_steps(Stepping* stepping, Sched* sched, Graph* graph, ComputeSched whole, bool) {
  const Functions& ggml = stepping->library->ggml;
  if (ggml.backend_sched_set_eval_callback == nullptr ||
      ggml.backend_sched_get_tensor_backend == nullptr ||
      __atomic_load_n(&g_forgot, __ATOMIC_RELAXED)) {
    return whole(sched, graph);
  }
  const auto* own = g_callbacks.get<Callback>(reinterpret_cast<uint64_t>(sched));
  stepping->sched = sched;
  stepping->call = own == nullptr ? nullptr : own->call;
  stepping->call_data = own == nullptr ? nullptr : own->data;
  ggml.backend_sched_set_eval_callback(sched, on_node, stepping);
  const int status = whole(sched, graph);
  t_own_waits = OwnWaits::none;
  ggml.backend_sched_set_eval_callback(sched, stepping->call, stepping->call_data);
  return status;
}

int compute_in_steps(Stepping* stepping, Backend* backend, Graph* graph, ComputeBackend whole,
                     bool waits) {
  const Functions& ggml = stepping->library->ggml;
  const int nodes = ggml.graph_n_nodes(graph);
  // Tensors of a known look are those of a ggml whose views are given by value.
  if (ggml.graph_view == nullptr || ggml.backend_graph_compute == nullptr ||
      !readable(stepping->library, ggml.graph_node(graph, 0)) ||
      timed_elsewhere(ask(ggml.backend_name, backend))) {
    return whole(backend, graph);
  }
  int status = k_success;
  for (int i = 0, first = 0; i < nodes && status == k_success; ++i) {
    Tensor* node = ggml.graph_node(graph, i);
    const bool last = i + 1 == nodes;
    const bool alone = does_work(ggml, node);
    if (!alone && !last) continue;  // with the next
    GraphView view = ggml.graph_view(graph, first, i + 1);
    first = i + 1;
    // The last one's is the program's.
    t_own_waits = last && waits ? OwnWaits::none : OwnWaits::next;
    stepping->begin = now_nanoseconds();
    status = ggml.backend_graph_compute(backend, reinterpret_cast<Graph*>(&view));
    if (alone) note(stepping, node, now_nanoseconds());
  }
  t_own_waits = OwnWaits::none;
  return status;
}

}  // namespace weir_probe
