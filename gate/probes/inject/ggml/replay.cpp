// Records for weir replay: each node of a graph as it lies in memory, once for every list of the
// same ops and shapes, and the time of every graph. That suffices to compute the nodes without the
// model.
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr uint32_t k_lists = 128;
constexpr size_t k_sources = 10;     // GGML_MAX_SRC
constexpr size_t k_max_setters = 4;  // backends with threads of their own

using SetThreads = void (*)(Backend*, int);

bool g_enabled;
uint32_t g_threads;            // atomic: the number that the engine set last
Table g_lists;                 // hash of a list -> its index in g_list_written
bool g_list_written[k_lists];  // in the event file of this process
uint32_t g_list_count;         // lists in g_list_written
bool g_engine_written;         // version and commit
SetThreads g_original[k_max_setters];

// Notes the number of threads and calls the original function. A function of its own for each
// original, as ggml passes nothing to tell them apart.
template <size_t Which>
void set_and_note_threads(Backend* backend, int threads) {
  if (threads > 0) __atomic_store_n(&g_threads, static_cast<uint32_t>(threads), __ATOMIC_RELAXED);
  g_original[Which](backend, threads);
}
constexpr SetThreads k_set_threads[k_max_setters] = {
    set_and_note_threads<0>, set_and_note_threads<1>, set_and_note_threads<2>,
    set_and_note_threads<3>};

// Writes a text about this ggml, by its number (WEIR_EVENT_ENGINE); nothing if it is null or too
// long.
void write_engine_text(uint32_t which, const char* text) {
  if (text == nullptr) return;
  const size_t size = strlen(text);
  if (size < 4096) write_event(WEIR_EVENT_ENGINE, which, text, static_cast<uint32_t>(size) + 1);
}

// Describes a tensor for a later replay: type, shape, strides, memory, and the root tensor of
// which it may be a view. `slot` is 0 for the result, i + 1 for source i.
void fill_tensor(const Functions& ggml, const Tensor* tensor, uint32_t slot,
                 weir_event_step_tensor* out) {
  const TensorView view(tensor);
  const Tensor* root = view.view_of() == nullptr ? tensor : view.view_of();
  const TensorView root_view(root);
  memset(out, 0, sizeof *out);
  out->type = view.type();
  out->slot = slot;
  memcpy(out->ne, view.ne(), sizeof out->ne);
  memcpy(out->nb, view.nb(), sizeof out->nb);
  out->offset = view.view_of() == nullptr ? 0 : view.offset_in_view();
  out->root = reinterpret_cast<uint64_t>(root);
  out->root_bytes = call_if_present(ggml.nbytes, root);
  if (root_view.op() == 0) {
    out->root_flags = is_input(ggml, root) ? WEIR_ROOT_INPUT : WEIR_ROOT_CONSTANT;
  }
  copy_text(out->type_name, sizeof out->type_name, ggml.type_name(view.type()));
  copy_text(out->memory, sizeof out->memory, memory_name(ggml, memory_type(ggml, tensor)));
}

// Writes an event for one node of a recorded list: op, parameters, result and sources. `list` and
// `position` say where it belongs.
void write_node(const Functions& ggml, uint32_t list, uint32_t position, const Step& step) {
  weir_event_step_node node{};
  node.position = position;
  node.device = step.device;
  copy_text(node.op_desc, sizeof node.op_desc, step.op);
  copy_text(node.name, sizeof node.name, call_if_present(ggml.get_name, step.tensor));
  weir_event_step_tensor tensors[1 + k_sources];
  if (step.shaped) {
    const TensorView view(step.tensor);
    node.op = static_cast<uint32_t>(view.op());
    node.flags = view.flags();
    memcpy(node.params, view.params(), sizeof node.params);
    copy_text(node.op_name, sizeof node.op_name, call_if_present(ggml.op_name, view.op()));
    fill_tensor(ggml, step.tensor, 0, &tensors[0]);
    node.tensors = 1;
    for (uint32_t i = 0; i < k_sources; ++i) {
      const Tensor* source = view.source(i);
      if (source == nullptr) continue;
      fill_tensor(ggml, source, i + 1, &tensors[node.tensors]);
      ++node.tensors;
    }
  }
  write_event(WEIR_EVENT_STEP_NODE, list, &node, sizeof node, tensors,
              static_cast<uint32_t>(node.tensors * sizeof tensors[0]));
}

}  // namespace

void make_replay_ready() {
  const char* setting = environment(WEIR_PROBE_REPLAY_VARIABLE);
  g_enabled = is_recording_events() && setting != nullptr && strcmp(setting, "1") == 0;
}

void reset_replay_after_fork() {
  memset(g_list_written, 0, sizeof g_list_written);  // its event file begins empty
  g_engine_written = false;
}

bool records_replay() { return g_enabled; }

// Returns `function`, or in place of a backend's ggml_backend_set_n_threads one that notes the
// number. Each of up to k_max_setters originals gets its own.
void* intercept_set_threads(const char* name, void* function) {
  if (!g_enabled || function == nullptr || name == nullptr ||
      strcmp(name, "ggml_backend_set_n_threads") != 0) {
    return function;
  }
  const Locked locked(&g.lock);
  for (size_t i = 0; i < k_max_setters; ++i) {
    if (g_original[i] == nullptr) g_original[i] = reinterpret_cast<SetThreads>(function);
    if (reinterpret_cast<void*>(g_original[i]) == function) {
      function = reinterpret_cast<void*>(k_set_threads[i]);
      break;
    }
  }
  return function;
}

// Waits for a backend or scheduler without counting it. The program's own wait then finds nothing
// left to wait for.
template <class On>
static void wait_uncounted(void (*wait)(On*), On* on) {
  if (!g_enabled && !times_ops()) return;
  t_waits_of_probe = ProbeWaits::all;
  call_if_present(wait, on);
  t_waits_of_probe = ProbeWaits::none;
}

void wait_for_steps(Library* library, Sched* sched) {
  wait_uncounted(library->ggml.backend_sched_synchronize, sched);
}

void wait_for_steps(Library* library, Backend* backend) {
  wait_uncounted(library->ggml.backend_synchronize, backend);
}

// Writes a computed graph for a later replay. The list of its nodes is written once per file;
// later graphs with equal nodes refer to it by number (UINT32_MAX: no room).
void write_replay_events(Library* library, uint32_t kind, const Step* steps, int count,
                         Graph* graph, Interval interval) {
  if (!g_enabled) return;
  const int node_count = library->ggml.graph_n_nodes(graph);
  if (!g_engine_written) {
    g_engine_written = true;
    const Functions& ggml = library->ggml;
    write_engine_text(0, call_if_present(ggml.version));
    write_engine_text(1, call_if_present(ggml.commit));
    write_engine_text(2, file_containing(reinterpret_cast<const void*>(ggml.graph_node)));
  }
  uint64_t hash = hash_bytes(k_hash_seed, &kind, sizeof kind);
  for (int i = 0; i < count; ++i) hash = hash_bytes(hash, &steps[i].hash, sizeof steps[i].hash);
  auto* is_list_written = g_lists.get<bool>(hash);
  if (is_list_written == nullptr && g_list_count < k_lists) {
    is_list_written = &g_list_written[g_list_count++];
    g_lists.insert(hash, is_list_written);
  }
  const uint32_t list = is_list_written == nullptr
                            ? UINT32_MAX
                            : static_cast<uint32_t>(is_list_written - g_list_written);
  const weir_event_step step_event = {
      interval.begin,
      interval.end,
      kind,
      static_cast<uint32_t>(count),
      static_cast<uint32_t>(node_count < count ? count : node_count),
      __atomic_load_n(&g_threads, __ATOMIC_RELAXED),
      t_masks.attended,
      t_masks.places};
  write_event(WEIR_EVENT_STEP, list, &step_event, sizeof step_event);
  if (is_list_written == nullptr || *is_list_written) return;
  *is_list_written = true;
  for (int i = 0; i < count; ++i) {
    write_node(library->ggml, list, static_cast<uint32_t>(i), steps[i]);
  }
}

}  // namespace weir_probe
