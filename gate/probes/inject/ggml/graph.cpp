// Records a computed graph: its kind, and its ops with types, shapes and the device of each.
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr int32_t k_flag_compute = 16;             // GGML_TENSOR_FLAG_COMPUTE, of 2026
constexpr uint32_t k_reserved_for_unshaped = 256;  // entries of the op table
constexpr int k_max_nodes = 1 << 20;
constexpr size_t k_backends = 32;

// All of this under g.lock.
Step* g_steps;
uint32_t g_room;
Table g_ops;     // hash of (graph, device, hash of the step) -> entry
Table g_graphs;  // hash -> entry
uint64_t g_sums_before[WEIR_GRAPH_SUMS];
constexpr uint32_t k_max_kinds = 128;  // kinds of graphs that the file has room for
bool g_nodes_written[k_max_kinds];
bool g_has_order[k_max_kinds];  // or there is no room for it

// Device entries of the current graph's backends. Only for one graph: later another backend may get
// the same address.
struct Backends {
  Backend* backend[k_backends];
  uint32_t device[k_backends];
  size_t count;
};

bool equals(const char* op, const char* name) { return strcmp(op, name) == 0; }

// Returns "cpu" for a device that computes in the host's memory, else the kind of GPU. ggml's
// numbers 0 (CPU) and 1 (GPU) never changed; for later ones the device's memory decides.
const char* device_type(const Functions& ggml, BackendDevice* device, const char* name) {
  if (device == nullptr || ggml.backend_dev_type == nullptr) {
    return strncmp(name, "CPU", 3) == 0 || equals(name, "BLAS") ? "cpu" : "other";
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

// Returns the index of the backend's device in the probe's file, and adds the device if it is new.
uint32_t find_or_add_device(const Functions& ggml, Backend* backend) {
  const char* name = backend == nullptr ? nullptr : call_if_present(ggml.backend_name, backend);
  if (name == nullptr) {
    name = "(unknown)";
    set_flag(&g.file, WEIR_PROBE_OPS_UNSEEN);  // it may have been the CPU
  }
  BackendDevice* device =
      backend == nullptr ? nullptr : call_if_present(ggml.backend_get_device, backend);
  weir_probe_device new_entry{};
  copy_text(new_entry.api, sizeof new_entry.api, "ggml");
  copy_text(new_entry.name, sizeof new_entry.name, name);
  copy_text(new_entry.type, sizeof new_entry.type, device_type(ggml, device, name));
  const uint32_t device_count = find_section(&g.file, WEIR_SECTION_DEVICES)->used;
  for (uint32_t i = 0; i < device_count; ++i) {
    const weir_probe_device& device_entry = g.file.devices[i];
    if (equals(device_entry.name, new_entry.name) && equals(device_entry.type, new_entry.type))
      return i;
  }
  copy_text(new_entry.driver, sizeof new_entry.driver,
            device == nullptr ? nullptr : call_if_present(ggml.backend_dev_description, device));
  copy_text(new_entry.device_class, sizeof new_entry.device_class, "ggml-");
  copy_text(new_entry.device_class + 5, sizeof new_entry.device_class - 5, name);
  return add_device(&g.file, new_entry);
}

// Returns the index in the file of a backend's device, cached for the graph.
uint32_t device_index(const Functions& ggml, Backend* backend, Backends* backends) {
  for (size_t i = 0; i < backends->count; ++i) {
    if (backends->backend[i] == backend) return backends->device[i];
  }
  const uint32_t device = find_or_add_device(ggml, backend);
  if (backends->count < k_backends) {
    backends->backend[backends->count] = backend;
    backends->device[backends->count++] = device;
  }
  return device;
}

bool on_cpu(uint32_t device) { return equals(g.file.devices[device].type, "cpu"); }

// Mixes one value into a hash. Costs the delay of a multiplication, so hash_operand multiplies its
// values in parallel.
uint64_t mix_hash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25ULL;
  return hash ^ (hash >> 35);
}

uint64_t hash_operand(uint64_t hash, const Tensor* tensor) {
  const TensorView view(tensor);
  const auto ne = [&](int i) { return static_cast<uint64_t>(view.ne()[i]); };
  return mix_hash(hash, ne(0) * 0x9e3779b97f4a7c15ULL + ne(1) * 0xd6e8feb86659fd93ULL +
                            ne(2) * 0xa0761d6478bd642fULL + ne(3) * 0xe7037ed1a0b428dbULL +
                            static_cast<uint64_t>(view.type()) * 0x8ebc6af09c88c6e3ULL);
}

// Sets the step's hashes and, if its tensor can be read, `shaped`. Without shapes both hashes are
// that of the op's name.
void hash_step(Library* library, Step* step) {
  step->op_hash = hash_bytes(k_hash_seed, step->op, strlen(step->op));
  step->hash = step->op_hash;
  step->shaped = is_readable(library, step->tensor);
  if (!step->shaped) return;
  step->hash = hash_operand(step->hash, step->tensor);
  const TensorView view(step->tensor);
  for (size_t i = 0; i < WEIR_OP_SOURCES; ++i) {
    if (view.source(i) != nullptr) step->hash = hash_operand(step->hash + i, view.source(i));
  }
}

// Lists the nodes of a graph that do work in g_steps and returns their number; -1 when they cannot
// be listed. Under g.lock.
template <class FindBackend>
int list_steps(Library* library, Graph* graph, FindBackend find_backend) {
  const Functions& ggml = library->ggml;
  if (!lists_nodes(ggml)) return -1;
  const int nodes = ggml.graph_n_nodes(graph);
  if (nodes < 0 || nodes > k_max_nodes ||
      !make_room(&g_steps, &g_room, static_cast<uint64_t>(nodes), 256, k_max_nodes))
    return -1;
  Backends backends;
  backends.count = 0;
  int steps = 0;
  bool has_marks = false;
  for (int i = 0; i < nodes; ++i) {
    Tensor* node = ggml.graph_node(graph, i);
    if (node == nullptr || !does_work(ggml, node)) continue;
    Step& step = g_steps[steps++];
    step.tensor = node;
    step.op = ggml.op_desc(node);
    hash_step(library, &step);
    has_marks = has_marks || (step.shaped && (TensorView(node).flags() & k_flag_compute) != 0);
    step.device = device_index(ggml, find_backend(node), &backends);
  }
  if (!has_marks) return steps;
  // This ggml marks nodes that are to be computed; the others belong to a branch not taken.
  int computed_steps = 0;
  for (int i = 0; i < steps; ++i) {
    if ((TensorView(g_steps[i].tensor).flags() & k_flag_compute) != 0)
      g_steps[computed_steps++] = g_steps[i];
  }
  return computed_steps;
}

void fill_operand(const Functions& ggml, const Tensor* tensor, weir_probe_operand* out) {
  const TensorView view(tensor);
  copy_text(out->type, sizeof out->type, ggml.type_name(view.type()));
  memcpy(out->ne, view.ne(), sizeof out->ne);
}

// Adds an op's entry with types and shapes of its result and sources; null when the file has no
// room. The last entries are reserved for ops without shapes.
weir_probe_op* add_op(Library* library, const Step& step, uint32_t graph, uint64_t key) {
  weir_probe_section* section = find_section(&g.file, WEIR_SECTION_OPS);
  const uint32_t usable_entries = section->capacity - (step.shaped ? k_reserved_for_unshaped : 0);
  if (section->used >= usable_entries) return nullptr;
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
      if (source == nullptr) continue;
      fill_operand(library->ggml, source, &entry->source[entry->sources]);
      ++entry->sources;
    }
  }
  publish_entry(section);
  return entry;
}

// Returns the entry of an op in a graph, and adds it if it is new: without its shapes if there is
// no room for them. Null if there is no room at all.
weir_probe_op* find_or_add_op(Library* library, const Step& original, uint32_t graph) {
  Step step = original;
  for (;;) {
    const uint64_t key = mix_hash(step.hash, (static_cast<uint64_t>(graph) << 32) | step.device);
    if (auto* entry = g_ops.get<weir_probe_op>(key)) return entry;
    weir_probe_op* added = add_op(library, step, graph, key);
    if (added != nullptr) {
      if (!g_ops.insert(key, added)) set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
      return added;
    }
    set_flag(&g.file, WEIR_PROBE_OPS_OVERFLOWED);
    if (!step.shaped) return nullptr;
    step.shaped = false;
    step.hash = step.op_hash;
  }
}

// Returns the number of rows of the first look-up in a table, as every language model begins with
// one; 0 if there is none or it cannot be read.
uint64_t count_table_rows(int steps) {
  for (int i = 0; i < steps; ++i) {
    if (!equals(g_steps[i].op, "GET_ROWS")) continue;
    return g_steps[i].shaped ? static_cast<uint64_t>(TensorView(g_steps[i].tensor).ne()[1]) : 0;
  }
  return 0;
}

// Returns the index of the graph's kind in the file. The kind is a hash of the devices and ops in
// order, the rows, the splits and whether the rows are independent.
uint32_t find_or_add_graph(int steps, uint64_t splits, uint64_t cpu_ops) {
  const uint64_t rows = count_table_rows(steps);
  const uint32_t flags = rows > 1 && t_masks.independent_rows == rows ? WEIR_GRAPH_ROWS_APART : 0;
  const uint64_t seed[3] = {rows, splits, static_cast<uint64_t>(steps)};
  uint64_t hash = hash_bytes(k_hash_seed, seed, sizeof seed) + flags;
  for (int i = 0; i < steps; ++i) hash = mix_hash(hash, g_steps[i].op_hash + g_steps[i].device);
  const weir_probe_graph fresh = {hash, 0,     rows, static_cast<uint64_t>(steps), cpu_ops, splits,
                                  {},   flags, 0};
  return graph_index(&g.file, &g_graphs, fresh);
}

// Returns true if `node` uses the result of `before`, the node that was computed just before it,
// directly or by way of views.
bool follows(const Tensor* node, const Tensor* before) {
  constexpr int k_max_views = 8;
  for (size_t i = 0; i < WEIR_OP_SOURCES; ++i) {
    const Tensor* source = TensorView(node).source(i);
    for (int views = 0; source != nullptr && views < k_max_views; ++views) {
      if (source == before) return true;
      const TensorView view(source);
      source = view.view_of() == nullptr ? nullptr : view.source(0);
    }
  }
  return false;
}

// Writes the order of ops (steps) in a kind of graph, once per kind. A graph whose tensors cannot
// be read, or which does not fit, gets none.
void write_step_order(Library* library, uint32_t kind, int steps) {
  if (kind == 0 || kind >= k_max_kinds || g_has_order[kind]) return;
  g_has_order[kind] = true;
  weir_probe_section* section = find_section(&g.file, WEIR_SECTION_STEPS);
  if (static_cast<uint32_t>(steps) > section->capacity - section->used) return;
  for (int i = 0; i < steps; ++i) {
    const weir_probe_op* entry = find_or_add_op(library, g_steps[i], kind);
    if (entry == nullptr || !g_steps[i].shaped) return;
    const bool is_following = i > 0 && g_steps[i].device == g_steps[i - 1].device &&
                              follows(g_steps[i].tensor, g_steps[i - 1].tensor);
    g.file.steps[section->used + static_cast<uint32_t>(i)] = {
        static_cast<uint32_t>(entry - g.file.ops), is_following ? WEIR_STEP_FOLLOWS : 0};
  }
  __atomic_store_n(&section->used, section->used + static_cast<uint32_t>(steps), __ATOMIC_RELEASE);
}

// Adds the transfers and waits since the graph before to this graph's sums.
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
    const uint64_t total = __atomic_load_n(g.counters[counter], __ATOMIC_RELAXED);
    add(&graph->sums[sum], total - g_sums_before[sum]);
    g_sums_before[sum] = total;
  }
}

// Writes an event for a computed graph: its kind, begin and end. The first graph of a kind also
// writes its nodes.
void write_graph_event(Library* library, uint32_t kind, int steps, Interval interval) {
  const weir_event_graph body = {interval.begin, interval.end};
  write_event(WEIR_EVENT_GRAPH, kind, &body, sizeof body);
  if (kind >= k_max_kinds || g_nodes_written[kind]) return;
  g_nodes_written[kind] = true;
  for (int i = 0; i < steps; ++i) {
    const weir_probe_op* entry = find_or_add_op(library, g_steps[i], kind);
    if (entry == nullptr) continue;
    char name[64];
    copy_text(name, sizeof name, call_if_present(library->ggml.get_name, g_steps[i].tensor));
    const weir_event_node node = {kind, static_cast<uint32_t>(i)};
    write_event(WEIR_EVENT_NODE, static_cast<uint32_t>(entry - g.file.ops), &node, sizeof node,
                name, static_cast<uint32_t>(strlen(name)) + 1);
  }
}

// Writes the begin and end of the nodes that were computed one by one. Both lists are in the order
// of the graph.
void write_node_times(Library* library, uint32_t kind, int steps, const NodeTiming& timing) {
  int next_step = 0;
  for (uint32_t i = 0; i < timing.count; ++i) {
    const NodeTiming::Node& node = timing.nodes[i];
    int step = next_step;
    while (step < steps && g_steps[step].tensor != node.tensor) ++step;
    if (step == steps) continue;
    next_step = step + 1;
    const weir_probe_op* entry = find_or_add_op(library, g_steps[step], kind);
    if (entry == nullptr) continue;
    const weir_event_op_time body = {node.begin, node.end, kind, static_cast<uint32_t>(step)};
    write_event(WEIR_EVENT_OP_TIME, static_cast<uint32_t>(entry - g.file.ops), &body, sizeof body);
  }
}

// Counts a computed graph and its ops, and writes its events where they are recorded.
template <class FindBackend>
void record_graph(Library* library, Graph* graph, uint64_t splits, uint64_t begin,
                  const NodeTiming* timing, FindBackend find_backend) {
  const Interval interval = {begin, begin == 0 ? 0 : now_nanoseconds()};
  const OwnTimeScope own_time_scope;
  const Locked locked(&g.lock);
  count(k_graphs);
  count(k_splits, splits);
  const int steps = list_steps(library, graph, find_backend);
  if (steps < 0) return set_flag(&g.file, WEIR_PROBE_OPS_UNSEEN);
  uint64_t cpu_ops = 0;
  for (int i = 0; i < steps; ++i) {
    if (on_cpu(g_steps[i].device)) ++cpu_ops;
  }
  const uint32_t kind = find_or_add_graph(steps, splits, cpu_ops);
  for (int i = 0; i < steps; ++i) {
    weir_probe_op* entry = find_or_add_op(library, g_steps[i], kind);
    if (entry != nullptr) add(&entry->count, 1);
  }
  write_step_order(library, kind, steps);
  count(k_ops, static_cast<uint64_t>(steps));
  count(k_cpu_ops, cpu_ops);
  add(&g.file.graphs[kind].computed, 1);
  add_sums(&g.file.graphs[kind]);
  if (begin == 0) return;
  write_graph_event(library, kind, steps, interval);
  if (timing != nullptr) write_node_times(library, kind, steps, *timing);
  write_replay_events(library, kind, g_steps, steps, graph, interval);
}

}  // namespace

bool does_work(const Functions& ggml, const Tensor* node) {
  constexpr const char* k_views[] = {"NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"};
  const char* op = ggml.op_desc(node);
  if (op == nullptr) return false;
  for (const char* view : k_views) {
    if (op[0] == view[0] && equals(op, view)) return false;
  }
  return ggml.nelements == nullptr || ggml.nelements(node) != 0;
}

void record_sched_graph(Library* library, Sched* sched, Graph* graph, uint64_t begin,
                        const NodeTiming* timing) {
  const Functions& ggml = library->ggml;
  if (ggml.backend_sched_get_n_splits == nullptr) set_flag(&g.file, WEIR_PROBE_OPS_UNSEEN);
  const int splits = call_if_present(ggml.backend_sched_get_n_splits, sched);
  record_graph(library, graph, splits < 0 ? 0 : static_cast<uint64_t>(splits), begin, timing,
               [&](Tensor* node) {
                 return call_if_present(ggml.backend_sched_get_tensor_backend, sched, node);
               });
}

void record_backend_graph(Library* library, Backend* backend, Graph* graph, uint64_t begin,
                          const NodeTiming* timing) {
  record_graph(library, graph, 1, begin, timing, [&](Tensor*) { return backend; });
}

void reset_graphs_after_fork() {
  memset(g_sums_before, 0, sizeof g_sums_before);      // its counts begin at 0
  memset(g_nodes_written, 0, sizeof g_nodes_written);  // its event file begins empty
}

}  // namespace weir_probe
