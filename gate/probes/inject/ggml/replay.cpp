// What weir replay needs to compute a graph's nodes again without the model: each of them as it
// lies in memory, once for every list of the same ops and shapes, and the time of every graph.
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr uint32_t k_lists = 128;
constexpr size_t k_sources = 10;  // GGML_MAX_SRC
constexpr size_t k_tellers = 4;   // backends with threads of their own

using SetThreads = void (*)(Backend*, int);

bool g_wanted;
uint32_t g_threads;    // atomic: as the engine last asked for
Table g_known;         // hash of a list -> its place in g_told
bool g_told[k_lists];  // in the event file of this process
uint32_t g_used;       // of g_told
bool g_engine_told;    // version and commit
SetThreads g_real[k_tellers];

template <size_t Which>
void noting(Backend* backend, int threads) {
  if (threads > 0) __atomic_store_n(&g_threads, static_cast<uint32_t>(threads), __ATOMIC_RELAXED);
  g_real[Which](backend, threads);
}
constexpr SetThreads k_noting[k_tellers] = {noting<0>, noting<1>, noting<2>, noting<3>};

void tell_text(uint32_t which, const char* text) {
  if (text == nullptr) return;
  const size_t size = strlen(text);
  if (size < 4096) write_event(WEIR_EVENT_ENGINE, which, text, static_cast<uint32_t>(size) + 1);
}

void fill_tensor(const Functions& ggml, const Tensor* tensor, uint32_t slot,
                 weir_event_step_tensor* out) {
  const TensorView view(tensor);
  const Tensor* whole = view.view_of() == nullptr ? tensor : view.view_of();
  const TensorView root(whole);
  memset(out, 0, sizeof *out);
  out->type = view.type();
  out->slot = slot;
  memcpy(out->ne, view.ne(), sizeof out->ne);
  memcpy(out->nb, view.nb(), sizeof out->nb);
  out->offset = view.view_of() == nullptr ? 0 : view.offset_in_view();
  out->root = reinterpret_cast<uint64_t>(whole);
  out->root_bytes = ask(ggml.nbytes, whole);
  if (root.op() == 0) {
    out->root_flags = is_input(ggml, whole) ? WEIR_ROOT_INPUT : WEIR_ROOT_CONSTANT;
  }
  copy_text(out->type_name, sizeof out->type_name, ggml.type_name(view.type()));
  copy_text(out->memory, sizeof out->memory, name_of(ggml, memory_of(ggml, tensor)));
}

void tell_node(const Functions& ggml, uint32_t list, uint32_t position, const Step& step) {
  weir_event_step_node node{};
  node.position = position;
  node.device = step.device;
  copy_text(node.op_desc, sizeof node.op_desc, step.op);
  copy_text(node.name, sizeof node.name, ask(ggml.get_name, step.tensor));
  weir_event_step_tensor tensors[1 + k_sources];
  if (step.shaped) {
    const TensorView view(step.tensor);
    node.op = static_cast<uint32_t>(view.op());
    node.flags = view.flags();
    memcpy(node.params, view.params(), sizeof node.params);
    copy_text(node.op_name, sizeof node.op_name, ask(ggml.op_name, view.op()));
    fill_tensor(ggml, step.tensor, 0, &tensors[node.tensors++]);
    for (uint32_t i = 0; i < k_sources; ++i) {
      const Tensor* source = view.source(i);
      if (source != nullptr) fill_tensor(ggml, source, i + 1, &tensors[node.tensors++]);
    }
  }
  write_event(WEIR_EVENT_STEP_NODE, list, &node, sizeof node, tensors,
              static_cast<uint32_t>(node.tensors * sizeof tensors[0]));
}

}  // namespace

void make_replay_ready() {
  const char* wanted = environment(WEIR_PROBE_REPLAY_VARIABLE);
  g_wanted = events_on() && wanted != nullptr && strcmp(wanted, "1") == 0;
}

void reset_replay_after_fork() {
  memset(g_told, 0, sizeof g_told);  // its event file begins empty
  g_engine_told = false;
}

bool replay_wanted() { return g_wanted; }

void* note_threads(const char* name, void* found) {
  if (!g_wanted || found == nullptr || name == nullptr ||
      strcmp(name, "ggml_backend_set_n_threads") != 0) {
    return found;
  }
  const Locked locked(&g.lock);
  for (size_t i = 0; i < k_tellers; ++i) {
    if (g_real[i] == nullptr) g_real[i] = reinterpret_cast<SetThreads>(found);
    if (reinterpret_cast<void*>(g_real[i]) == found) {
      found = reinterpret_cast<void*>(k_noting[i]);
      break;
    }
  }
  return found;
}

// The program's own wait behind it finds nothing left to wait for.
template <class On>
static void wait_for(void (*wait)(On*), On* on) {
  if (!g_wanted && !ops_timed()) return;
  t_own_waits = OwnWaits::all;
  ask(wait, on);
  t_own_waits = OwnWaits::none;
}

void wait_for_steps(Library* library, Sched* sched) {
  wait_for(library->ggml.backend_sched_synchronize, sched);
}

void wait_for_steps(Library* library, Backend* backend) {
  wait_for(library->ggml.backend_synchronize, backend);
}

void tell_steps(Library* library, uint32_t kind, const Step* steps, int count, Graph* graph,
                When when) {
  if (!g_wanted) return;
  const int all = library->ggml.graph_n_nodes(graph);
  if (!g_engine_told) {
    g_engine_told = true;
    const Functions& ggml = library->ggml;
    tell_text(0, ask(ggml.version));
    tell_text(1, ask(ggml.commit));
    tell_text(2, file_of(reinterpret_cast<const void*>(ggml.graph_node)));
  }
  uint64_t hash = hash_bytes(k_hash_seed, &kind, sizeof kind);
  for (int i = 0; i < count; ++i) hash = hash_bytes(hash, &steps[i].hash, sizeof steps[i].hash);
  auto* told = g_known.get<bool>(hash);
  if (told == nullptr && g_used < k_lists) {
    told = &g_told[g_used++];
    g_known.insert(hash, told);
  }
  const uint32_t list = told == nullptr ? UINT32_MAX : static_cast<uint32_t>(told - g_told);
  const weir_event_step body = {when.begin,
                                when.end,
                                kind,
                                static_cast<uint32_t>(count),
                                static_cast<uint32_t>(all < count ? count : all),
                                __atomic_load_n(&g_threads, __ATOMIC_RELAXED),
                                t_masks.open,
                                t_masks.all};
  write_event(WEIR_EVENT_STEP, list, &body, sizeof body);
  if (told == nullptr || *told) return;
  *told = true;
  for (int i = 0; i < count; ++i) {
    tell_node(library->ggml, list, static_cast<uint32_t>(i), steps[i]);
  }
}

}  // namespace weir_probe
