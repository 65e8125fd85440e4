// What a computed graph did: its ops with types and shapes, where each of them ran, and which kind
// of graph it was.
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr int32_t k_flag_compute = 16;         // GGML_TENSOR_FLAG_COMPUTE, of 2026
constexpr uint32_t k_kept_for_unshaped = 256;  // entries of the op table
constexpr int k_most_nodes = 1 << 20;
constexpr size_t k_backends = 32;

// All of this under g.lock.
Step* g_steps;
uint32_t g_room;
Table g_ops;     // hash of (graph, device, what the step hashes) -> entry
Table g_graphs;  // hash -> entry
uint64_t g_sums_before[WEIR_GRAPH_SUMS];
constexpr uint32_t k_told = 128;  // kinds of graphs that the file has room for
bool g_nodes_told[k_told];
bool g_has_order[k_told];  // or there is no room for it

// Backends of the graph at hand. Not kept for longer: another may come to lie at the same address.
struct Backends {
  Backend* known[k_backends];
  uint32_t device[k_backends];
  size_t count;
};

bool is(const char* op, const char* name) { return strcmp(op, name) == 0; }

// Does it compute on the host? ggml's numbers of device types: 0 CPU and 1 GPU always; what comes
// after has changed meaning (accelerators such as BLAS, integrated GPUs), so its memory decides.
const char* type_of(const Functions& ggml, BackendDevice* device, const char* name) {
  if (device == nullptr || ggml.backend_dev_type == nullptr) {
    return strncmp(name, "CPU", 3) == 0 || is(name, "BLAS") ? "cpu" : "other";
  }
  const int type = ggml.backend_dev_type(device);
  if (type == 0) return "cpu";
  if (type == 1) return "discrete";
  if (ggml.backend_dev_buffer_type == nullptr || ggml.backend_buft_is_host == nullptr) {
    return "other";
  }
  BufferType* memory = ggml.backend_dev_buffer_type(device);
  return memory != nullptr && ggml.backend_buft_is_host(memory) ? "cpu" : "integrated";
}

uint32_t device_entry(const Functions& ggml, Backend* backend) {
  const char* name = backend == nullptr ? nullptr : ask(ggml.backend_name, backend);
  if (name == nullptr) {
    name = "(unknown)";
    set_flag(&g.file, WEIR_PROBE_OPS_UNSEEN);  // it may have been the CPU
  }
  BackendDevice* device = backend == nullptr ? nullptr : ask(ggml.backend_get_device, backend);
  weir_probe_device entry{};
  copy_text(entry.api, sizeof entry.api, "ggml");
  copy_text(entry.name, sizeof entry.name, name);
  copy_text(entry.type, sizeof entry.type, type_of(ggml, device, name));
  const uint32_t used = section_of(&g.file, WEIR_SECTION_DEVICES)->used;
  for (uint32_t i = 0; i < used; ++i) {
    const weir_probe_device& known = g.file.devices[i];
    if (is(known.name, entry.name) && is(known.type, entry.type)) return i;
  }
  copy_text(entry.driver, sizeof entry.driver,
            device == nullptr ? nullptr : ask(ggml.backend_dev_description, device));
  copy_text(entry.device_class, sizeof entry.device_class, "ggml-");
  copy_text(entry.device_class + 5, sizeof entry.device_class - 5, name);
  return add_device(&g.file, entry);
}

uint32_t device_of(const Functions& ggml, Backend* backend, Backends* backends) {
  for (size_t i = 0; i < backends->count; ++i) {
    if (backends->known[i] == backend) return backends->device[i];
  }
  const uint32_t device = device_entry(ggml, backend);
  if (backends->count < k_backends) {
    backends->known[backends->count] = backend;
    backends->device[backends->count++] = device;
  }
  return device;
}

bool on_cpu(uint32_t device) { return is(g.file.devices[device].type, "cpu"); }

// One after the other, as each costs a multiplication's delay; within an operand side by side.
uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25ULL;
  return hash ^ (hash >> 35);
}

uint64_t hash_operand(uint64_t hash, const Tensor* tensor) {
  const TensorView view(tensor);
  const auto ne = [&](int i) { return static_cast<uint64_t>(view.ne()[i]); };
  return mix(hash, ne(0) * 0x9e3779b97f4a7c15ULL + ne(1) * 0xd6e8feb86659fd93ULL +
                       ne(2) * 0xa0761d6478bd642fULL + ne(3) * 0xe7037ed1a0b428dbULL +
                       static_cast<uint64_t>(view.type()) * 0x8ebc6af09c88c6e3ULL);
}

void describe(Library* library, Step* step) {
  step->op_hash = hash_bytes(k_hash_seed, step->op, strlen(step->op));
  step->hash = step->op_hash;
  step->shaped = readable(library, step->tensor);
  if (!step->shaped) return;
  step->hash = hash_operand(step->hash, step->tensor);
  const TensorView view(step->tensor);
  for (size_t i = 0; i < WEIR_OP_SOURCES; ++i) {
    if (view.source(i) != nullptr) step->hash = hash_operand(step->hash + i, view.source(i));
  }
}

// The nodes that do work. -1 when they cannot be listed.
template <class BackendOf>
int list_steps(Library* library, Graph* graph, BackendOf backend_of) {
  const Functions& ggml = library->ggml;
  if (!lists_nodes(ggml)) return -1;
  const int nodes = ggml.graph_n_nodes(graph);
  if (nodes < 0 || nodes > k_most_nodes ||
      !make_room(&g_steps, &g_room, static_cast<uint64_t>(nodes), 256, k_most_nodes))
    return -1;
  Backends backends;
  backends.count = 0;
  int steps = 0;
  bool marked = false;
  for (int i = 0; i < nodes; ++i) {
    Tensor* node = ggml.graph_node(graph, i);
    if (node == nullptr || !does_work(ggml, node)) continue;
    Step& step = g_steps[steps++];
    step.tensor = node;
    step.op = ggml.op_desc(node);
    describe(library, &step);
    marked = marked || (step.shaped && (TensorView(node).flags() & k_flag_compute) != 0);
    step.device = device_of(ggml, backend_of(node), &backends);
  }
  if (!marked) return steps;
  // This ggml says which nodes are to be computed: the others belong to a branch not taken.
  int kept = 0;
  for (int i = 0; i < steps; ++i) {
    if ((TensorView(g_steps[i].tensor).flags() & k_flag_compute) != 0) g_steps[kept++] = g_steps[i];
  }
  return kept;
}

void fill_operand(const Functions& ggml, const Tensor* tensor, weir_probe_operand* out) {
  const TensorView view(tensor);
  copy_text(out->type, sizeof out->type, ggml.type_name(view.type()));
  memcpy(out->ne, view.ne(), sizeof out->ne);
}

weir_probe_op* new_op(Library* library, const Step& step, uint32_t graph, uint64_t key) {
  weir_probe_section* section = section_of(&g.file, WEIR_SECTION_OPS);
  const uint32_t room = section->capacity - (step.shaped ? k_kept_for_unshaped : 0);
  if (section->used >= room) return nullptr;
  weir_probe_op* entry = &g.file.ops[section->used];
  memset(entry, 0, sizeof *entry);
  entry->hash = key;
  entry->graph = graph;
  entry->device = step.device;
  copy_text(entry->op, sizeof entry->op, step.op);
  if (step.shaped) {
    entry->flags = WEIR_OP_SHAPED;
    fill_operand(library->ggml, step.tensor, &entry->result);
    const TensorView view(step.tensor);
    for (size_t i = 0; i < WEIR_OP_SOURCES; ++i) {
      const Tensor* source = view.source(i);
      if (source != nullptr) fill_operand(library->ggml, source, &entry->source[entry->sources++]);
    }
  }
  raise_used(section);
  return entry;
}

// Without its shapes where there is no room for them; null where there is none at all.
weir_probe_op* op_entry(Library* library, const Step& wanted, uint32_t graph) {
  Step step = wanted;
  for (;;) {
    const uint64_t key = mix(step.hash, (static_cast<uint64_t>(graph) << 32) | step.device);
    if (auto* known = g_ops.get<weir_probe_op>(key)) return known;
    weir_probe_op* made = new_op(library, step, graph, key);
    if (made != nullptr) {
      if (!g_ops.insert(key, made)) set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
      return made;
    }
    set_flag(&g.file, WEIR_PROBE_OPS_OVERFLOWED);
    if (!step.shaped) return nullptr;
    step.shaped = false;
    step.hash = step.op_hash;
  }
}

// The rows of the first look-up in a table, as every language model begins with one.
uint64_t rows_of(int steps) {
  for (int i = 0; i < steps; ++i) {
    if (!is(g_steps[i].op, "GET_ROWS")) continue;
    return g_steps[i].shaped ? static_cast<uint64_t>(TensorView(g_steps[i].tensor).ne()[1]) : 0;
  }
  return 0;
}

uint32_t graph_entry(int steps, uint64_t splits, uint64_t cpu_ops) {
  const uint64_t rows = rows_of(steps);
  const uint32_t flags = rows > 1 && t_masks.apart == rows ? WEIR_GRAPH_ROWS_APART : 0;
  const uint64_t seed[3] = {rows, splits, static_cast<uint64_t>(steps)};
  uint64_t hash = hash_bytes(k_hash_seed, seed, sizeof seed) + flags;
  for (int i = 0; i < steps; ++i) hash = mix(hash, g_steps[i].op_hash + g_steps[i].device);
  const weir_probe_graph fresh = {hash, 0,     rows, static_cast<uint64_t>(steps), cpu_ops, splits,
                                  {},   flags, 0};
  return graph_index(&g.file, &g_graphs, fresh);
}

// Does `node` take what `before` made, itself or by way of views?
// That comes directly before it in the order of the graph, so that nothing lies between but views.
bool follows(const Tensor* node, const Tensor* before) {
  constexpr int k_most_views = 8;
  for (size_t i = 0; i < WEIR_OP_SOURCES; ++i) {
    const Tensor* source = TensorView(node).source(i);
    for (int views = 0; source != nullptr && views < k_most_views; ++views) {
      if (source == before) return true;
      const TensorView view(source);
      source = view.view_of() == nullptr ? nullptr : view.source(0);
    }
  }
  return false;
}

// Lists the steps of a new kind of graph. A graph whose tensors cannot be read has no list.
void list_order(Library* library, uint32_t kind, int steps) {
  if (kind == 0 || kind >= k_told || g_has_order[kind]) return;
  g_has_order[kind] = true;
  weir_probe_section* section = section_of(&g.file, WEIR_SECTION_STEPS);
  if (static_cast<uint32_t>(steps) > section->capacity - section->used) return;
  for (int i = 0; i < steps; ++i) {
    const weir_probe_op* entry = op_entry(library, g_steps[i], kind);
    if (entry == nullptr || !g_steps[i].shaped) return;
    const bool follow = i > 0 && g_steps[i].device == g_steps[i - 1].device &&
                        follows(g_steps[i].tensor, g_steps[i - 1].tensor);
    g.file.steps[section->used + static_cast<uint32_t>(i)] = {
        static_cast<uint32_t>(entry - g.file.ops), follow ? WEIR_STEP_FOLLOWS : 0};
  }
  __atomic_store_n(&section->used, section->used + static_cast<uint32_t>(steps), __ATOMIC_RELEASE);
}

// What happened since the graph before goes to this one.
void add_sums(weir_probe_graph* graph) {
  static constexpr struct {
    weir_probe_graph_sum sum;
    Counter counter;
  } k_sums[] = {{WEIR_GRAPH_TENSOR_COPIES, k_tensor_copies},
                {WEIR_GRAPH_TENSOR_SETS, k_tensor_sets},
                {WEIR_GRAPH_TENSOR_GETS, k_tensor_gets},
                {WEIR_GRAPH_COPIED_BYTES, k_copied_bytes},
                {WEIR_GRAPH_BACKEND_SYNCS, k_backend_syncs}};
  for (const auto& [sum, counter] : k_sums) {
    const uint64_t now = __atomic_load_n(g.counters[counter], __ATOMIC_RELAXED);
    add(&graph->sums[sum], now - g_sums_before[sum]);
    g_sums_before[sum] = now;
  }
}

// Says in the event file that a graph was computed; the first time also which nodes its kind has.
void tell_graph(Library* library, uint32_t kind, int steps, When when) {
  const weir_event_graph body = {when.begin, when.end};
  write_event(WEIR_EVENT_GRAPH, kind, &body, sizeof body);
  if (kind >= k_told || g_nodes_told[kind]) return;
  g_nodes_told[kind] = true;
  for (int i = 0; i < steps; ++i) {
    const weir_probe_op* entry = op_entry(library, g_steps[i], kind);
    if (entry == nullptr) continue;
    char cut[64];
    copy_text(cut, sizeof cut, ask(library->ggml.get_name, g_steps[i].tensor));
    const weir_event_node node = {kind, static_cast<uint32_t>(i)};
    write_event(WEIR_EVENT_NODE, static_cast<uint32_t>(entry - g.file.ops), &node, sizeof node, cut,
                static_cast<uint32_t>(strlen(cut)) + 1);
  }
}

// When each node was computed, of those that were timed alone. They come in the order of the graph.
void tell_times(Library* library, uint32_t kind, int steps, const Stepping& stepping) {
  int at = 0;
  for (uint32_t i = 0; i < stepping.count; ++i) {
    const Stepping::Node& timed = stepping.nodes[i];
    int found = at;
    while (found < steps && g_steps[found].tensor != timed.tensor) ++found;
    if (found == steps) continue;
    at = found + 1;
    const weir_probe_op* entry = op_entry(library, g_steps[found], kind);
    if (entry == nullptr) continue;
    const weir_event_op_time body = {timed.begin, timed.end, kind, static_cast<uint32_t>(found)};
    write_event(WEIR_EVENT_OP_TIME, static_cast<uint32_t>(entry - g.file.ops), &body, sizeof body);
  }
}

template <class BackendOf>
void record(Library* library, Graph* graph, uint64_t splits, uint64_t begin,
            const Stepping* stepping, BackendOf backend_of) {
  const When when = {begin, begin == 0 ? 0 : now_nanoseconds()};
  const Recorded recorded;
  const Locked locked(&g.lock);
  count(k_graphs);
  count(k_splits, splits);
  const int steps = list_steps(library, graph, backend_of);
  if (steps < 0) return set_flag(&g.file, WEIR_PROBE_OPS_UNSEEN);
  uint64_t cpu_ops = 0;
  for (int i = 0; i < steps; ++i) cpu_ops += on_cpu(g_steps[i].device) ? 1 : 0;
  const uint32_t kind = graph_entry(steps, splits, cpu_ops);
  for (int i = 0; i < steps; ++i) {
    weir_probe_op* entry = op_entry(library, g_steps[i], kind);
    if (entry != nullptr) add(&entry->count, 1);
  }
  list_order(library, kind, steps);
  count(k_ops, static_cast<uint64_t>(steps));
  count(k_cpu_ops, cpu_ops);
  add(&g.file.graphs[kind].computed, 1);
  add_sums(&g.file.graphs[kind]);
  if (begin == 0) return;
  tell_graph(library, kind, steps, when);
  if (stepping != nullptr) tell_times(library, kind, steps, *stepping);
  tell_steps(library, kind, g_steps, steps, graph, when);
}

}  // namespace

bool does_work(const Functions& ggml, const Tensor* node) {
  constexpr const char* k_views[] = {"NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"};
  const char* op = ggml.op_desc(node);
  if (op == nullptr) return false;
  for (const char* view : k_views) {
    if (op[0] == view[0] && is(op, view)) return false;
  }
  return ggml.nelements == nullptr || ggml.nelements(node) != 0;
}

void record_sched_graph(Library* library, Sched* sched, Graph* graph, uint64_t begin,
                        const Stepping* stepping) {
  const Functions& ggml = library->ggml;
  if (ggml.backend_sched_get_n_splits == nullptr) set_flag(&g.file, WEIR_PROBE_OPS_UNSEEN);
  const int splits = ask(ggml.backend_sched_get_n_splits, sched);
  record(library, graph, splits < 0 ? 0 : static_cast<uint64_t>(splits), begin, stepping,
         [&](Tensor* node) { return ask(ggml.backend_sched_get_tensor_backend, sched, node); });
}

void record_backend_graph(Library* library, Backend* backend, Graph* graph, uint64_t begin,
                          const Stepping* stepping) {
  record(library, graph, 1, begin, stepping, [&](Tensor*) { return backend; });
}

void reset_graphs_after_fork() {
  memset(g_sums_before, 0, sizeof g_sums_before);  // its counts begin at 0
  memset(g_nodes_told, 0, sizeof g_nodes_told);    // and so does its event file
}

}  // namespace weir_probe
