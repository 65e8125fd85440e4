// Op scopes, and the graphs that they make up.
//
// Each thread counts its own ops. A boundary (weir_token) collects all that threads counted since
// the last one, as one graph. Its kind is given by its rows and the multiset of its ops, so that
// the order of threads does not matter.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/instrument/state.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_kind_salt = 3, k_operand_salt = 4, k_graph_salt = 5, k_shapeless_salt = 7;

// Under the lock.
struct Ops {
  Table kinds;  // hash -> Kind
  uint32_t kind_count;
  Table graphs;  // hash -> entry
  Table ops;     // graph and kind -> weir_probe_op
  uint64_t* counter_graphs;
  uint64_t* counter_ops;
  uint64_t* counter_cpu_ops;
  uint64_t boundary;  // time of the last boundary; 0: unknown
};
constinit Ops g_ops = {};

struct OpEvent {
  weir_event_op op;
  char name[sizeof weir_probe_op::op];
  uint64_t hash;
};

// As is_cpu_backend() of the reader: a Vulkan device that runs on the CPU is a device.
bool is_on_cpu(const Kind& kind) { return strcmp(g.devices[kind.shape.device].api, "cpu") == 0; }

// Adds a kind of op (equal ops are counted together); null without memory. `is_shaped`: the
// scope's operands, with their sizes, are part of it. The last operand is the op's result. Needs
// g.lock.
Kind* make_kind(uint64_t hash, const Scope& scope, bool is_shaped) {
  const KeepErrno keep;
  auto* kind = static_cast<Kind*>(calloc(1, sizeof(Kind)));
  if (kind == nullptr) return nullptr;
  kind->hash = hash;
  kind->shape.hash = hash;
  kind->shape.device = scope.device;
  copy_text(kind->shape.op, sizeof kind->shape.op, scope.name->text);
  if (is_shaped && scope.operands != 0) {
    kind->shape.flags = WEIR_OP_SHAPED;
    kind->shape.sources = scope.operands - 1;
    memcpy(kind->shape.source, scope.operand, kind->shape.sources * sizeof(weir_probe_operand));
    kind->shape.result = scope.operand[kind->shape.sources];
  }
  if (!g_ops.kinds.insert(hash, kind)) {
    free(kind);
    return nullptr;
  }
  ++g_ops.kind_count;
  return kind;
}

// Returns the kind of op of a scope, adding it if it is new; null without room. Growing contexts
// have ever new shapes, so only the first 3072 kinds have shapes. The rest are for kinds by name
// alone.
Kind* find_kind(const Scope& scope) {
  const Locked locked(&g.lock);
  if (void* kind = g_ops.kinds.find(scope.hash)) return static_cast<Kind*>(kind);
  if (g_ops.kind_count < k_max_kinds / 4 * 3) {
    return make_kind(scope.hash, scope, /*shaped=*/true);
  }
  set_flag(&g.file, WEIR_PROBE_OPS_OVERFLOWED);
  const uint64_t hash = mix(scope.name->hash, k_shapeless_salt);
  if (void* kind = g_ops.kinds.find(hash)) return static_cast<Kind*>(kind);
  if (g_ops.kind_count == k_max_kinds) return nullptr;
  return make_kind(hash, scope, /*shaped=*/false);
}

// Appends a row that counts ops of this kind to the thread's rows; null without memory.
KindRow* add_kind_row(Thread* thread, Kind* kind) {
  KindChunk* chunk = thread->last;
  if (chunk->used == k_rows_of_chunk) {
    const KeepErrno keep;
    auto* next = static_cast<KindChunk*>(calloc(1, sizeof(KindChunk)));
    if (next == nullptr) return nullptr;
    __atomic_store_n(&chunk->next, next, __ATOMIC_RELEASE);
    thread->last = next;
    chunk = next;
  }
  KindRow* row = &chunk->rows[chunk->used];
  row->kind = kind;
  __atomic_store_n(&chunk->used, chunk->used + 1, __ATOMIC_RELEASE);
  return row;
}

// Returns the thread's row for the scope's kind of op, adding it if it is new; null without room.
KindRow* find_kind_row(Thread* thread, const Scope& scope) {
  auto* row = thread->rows.get<KindRow>(scope.hash);
  if (__builtin_expect(row != nullptr, 1)) return row;
  Kind* kind = find_kind(scope);
  if (kind == nullptr) return nullptr;
  // A kind without shape may have a row already.
  if (kind->hash != scope.hash) row = thread->rows.get<KindRow>(kind->hash);
  if (row == nullptr) {
    row = add_kind_row(thread, kind);
    if (row != nullptr) remember(thread, kind->hash, row);
  }
  if (row != nullptr && kind->hash != scope.hash)
    remember(thread, scope.hash, row, /*shared=*/true);
  return row;
}

// Adds to a value of a row. A plain store is enough, as only the row's thread writes it.
void add_in_own_thread(uint64_t* value, uint64_t amount) {
  __atomic_store_n(value, *value + amount, __ATOMIC_RELAXED);
}

// Adds a time to a row, in units of stamps.
void add_time(KindRow* row, uint64_t length) {
  add_in_own_thread(&row->total, length);
  if (length > __atomic_load_n(&row->longest, __ATOMIC_RELAXED))
    __atomic_store_n(&row->longest, length, __ATOMIC_RELAXED);
}

void write_op(const Scope& scope, uint32_t depth, uint64_t end) {
  OpEvent event = {};
  event.op = {scope.begin, end, __atomic_load_n(&g.tokens, __ATOMIC_RELAXED), scope.layer, depth};
  copy_text(event.name, sizeof event.name, scope.name->text);
  event.hash = scope.hash;
  write_event(WEIR_EVENT_OP, scope.device, &event, sizeof event);
}

// Calls `visit` with every row of every thread.
template <class Visit>
void each_row(Visit visit) {
  for (Thread* thread = g.threads; thread != nullptr; thread = thread->next) {
    for (KindChunk* chunk = &thread->first; chunk != nullptr;
         chunk = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE)) {
      const uint32_t used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE);
      for (uint32_t i = 0; i < used; ++i) visit(&chunk->rows[i]);
    }
  }
}

// Collects what all threads counted since the last boundary of graphs. Returns a list of the kinds
// of op, each with its number in `pending`.
Kind* collect_pending_kinds() {
  Kind* first = nullptr;
  each_row([&](KindRow* row) {
    const uint64_t count = __atomic_load_n(&row->count, __ATOMIC_RELAXED);
    const uint64_t pending = count - row->count_at_boundary;
    row->count_at_boundary = count;
    if (pending == 0) return;
    if (row->kind->pending == 0) {
      row->kind->next = first;
      first = row->kind;
    }
    row->kind->pending += pending;
  });
  return first;
}

// Returns the file's entry for a kind of op in a graph, adding it if it is new. Null without room:
// such ops are counted in the total alone.
weir_probe_op* find_op(uint32_t graph, Kind* kind) {
  const uint64_t key = mix(kind->hash, graph);
  if (void* entry = g_ops.ops.find(key)) return static_cast<weir_probe_op*>(entry);
  weir_probe_section* section = find_section(&g.file, WEIR_SECTION_OPS);
  if (!has_room(&g.file, section, WEIR_PROBE_OPS_OVERFLOWED)) return nullptr;
  weir_probe_op* op = &g.file.ops[section->used];
  *op = kind->shape;
  op->graph = graph;
  if (!g_ops.ops.insert(key, op)) return nullptr;
  publish_entry(section);
  return op;
}

// Returns the name of a scope, cut to the size of the file's field. Written to `temporary` if
// there is no room to store it.
const Name* scope_name(Thread* thread, const char* text, uint64_t owner, Name* temporary) {
  char cut[sizeof weir_probe_op::op];
  const bool fits = copy_text(cut, sizeof cut, text);
  if (!fits) set_flag(&g.file, WEIR_PROBE_NAMES_TRUNCATED);
  const uint64_t hash = hash_bytes(k_hash_seed ^ k_kind_salt ^ (owner << 32), cut, sizeof cut);
  const Name* name = intern_name(thread, hash, cut);
  if (name == nullptr) {
    temporary->hash = hash;
    copy_text(temporary->text, sizeof temporary->text, cut);
    return temporary;
  }
  if (fits) *cache_slot(thread, text, owner) = {text, owner, name, nullptr, nullptr};
  return name;
}

// Forgets scopes that were open when ops were switched off, as their ends were not reported.
void drop_stale_scopes(Thread* thread) {
  const uint32_t epoch = __atomic_load_n(&g.epoch, __ATOMIC_RELAXED);
  if (__builtin_expect(thread->epoch == epoch, 1)) return;
  thread->epoch = epoch;
  thread->depth = 0;
}

}  // namespace

// Counts all ops since the last boundary as one graph: its kind, its ops and the totals. Without
// ops and `rows` there is no graph. Needs the lock.
void close_graph(uint32_t rows) {
  Kind* const first = collect_pending_kinds();
  if (first == nullptr && rows == 0) return;
  fill_devices();
  if (g_ops.counter_graphs == nullptr) {
    g_ops.counter_graphs = add_counter(&g.file, "graphs");
    g_ops.counter_ops = add_counter(&g.file, "ops");
    g_ops.counter_cpu_ops = add_counter(&g.file, "cpu_ops");
  }
  uint64_t hash = mix(k_graph_salt, rows), ops = 0, cpu_ops = 0;
  for (Kind* kind = first; kind != nullptr; kind = kind->next) {
    hash += mix(kind->hash, kind->pending);  // a sum: the order does not matter
    ops += kind->pending;
    if (is_on_cpu(*kind)) cpu_ops += kind->pending;
  }
  const uint32_t graph =
      graph_index(&g.file, &g_ops.graphs, {hash, 0, rows, ops, cpu_ops, 0, {}, 0, 0});
  for (Kind* kind = first; kind != nullptr;) {
    if (weir_probe_op* op = find_op(graph, kind)) add(&op->count, kind->pending);
    kind->pending = 0;
    Kind* const next = kind->next;
    kind->next = nullptr;
    kind = next;
  }
  add(&g.file.graphs[graph].computed, 1);
  add(g_ops.counter_graphs, 1);
  add(g_ops.counter_ops, ops);
  add(g_ops.counter_cpu_ops, cpu_ops);
  __atomic_add_fetch(&g.tokens, 1, __ATOMIC_RELAXED);
  if (!is_recording_events()) return;
  const uint64_t now = now_nanoseconds();
  const weir_event_graph event = {g_ops.boundary != 0 ? g_ops.boundary : now, now};
  g_ops.boundary = now;
  write_event(WEIR_EVENT_GRAPH, graph, &event, sizeof event);
}

void exclude_wait_from_op(Thread* thread) {
  const uint32_t open = thread->depth < k_max_depth ? thread->depth : k_max_depth;
  if (open == 0 || thread->wait_start == 0) return;
  Scope& scope = thread->scopes[open - 1];
  const uint64_t begin = scope.begin > thread->wait_start ? scope.begin : thread->wait_start;
  const uint64_t end = read_stamp(g.stamps);
  if (end > begin) scope.waited += end - begin;
}

void forget_ops_after_fork() {
  each_row([](KindRow* row) { row->count_at_boundary = row->count; });
  g_ops.boundary = 0;
  g.tokens = 0;
}

// Prints a table of ops by name, over all shapes and devices, and the number of evaluated graphs.
void dump_ops(int descriptor) {
  auto* rows = static_cast<Row*>(calloc(k_max_kinds, sizeof(Row)));
  if (rows == nullptr) return;
  const double unit = nanoseconds_per_unit(g.stamps);
  const auto nanoseconds = [&](uint64_t length) {
    return static_cast<uint64_t>(static_cast<double>(length) * unit + 0.5);
  };
  uint32_t used = 0;
  each_row([&](KindRow* row) {
    const uint64_t calls = __atomic_load_n(&row->count, __ATOMIC_RELAXED) - row->base_count;
    if (calls == 0) return;
    Times& timed = find_table_row(rows, &used, row->kind->shape.op)->timed;
    const uint64_t longest = nanoseconds(__atomic_load_n(&row->longest, __ATOMIC_RELAXED));
    timed.calls += calls;
    timed.total += nanoseconds(__atomic_load_n(&row->total, __ATOMIC_RELAXED) - row->base_total);
    if (longest > timed.longest) timed.longest = longest;
  });
  if (used != 0) {
    print_rows(descriptor, "ops", "CPU ms", rows, used);
    const uint64_t boundaries = __atomic_load_n(&g.tokens, __ATOMIC_RELAXED) - g.base_tokens;
    print_line(descriptor, "%llu evaluation%s\n", static_cast<unsigned long long>(boundaries),
               boundaries == 1 ? "" : "s");
  }
  free(rows);
}

void reset_op_times() {
  g.base_tokens = __atomic_load_n(&g.tokens, __ATOMIC_RELAXED);
  // Counts and totals are written by their threads alone: remember what to subtract. Only the
  // longest time is reset; a scope that ends at this moment may set it again.
  each_row([](KindRow* row) {
    row->base_count = __atomic_load_n(&row->count, __ATOMIC_RELAXED);
    row->base_total = __atomic_load_n(&row->total, __ATOMIC_RELAXED);
    __atomic_store_n(&row->longest, 0, __ATOMIC_RELAXED);
  });
}

}  // namespace weir_probe

using namespace weir_probe;

// Called by the engine: opens an op's scope in this thread. Scopes that lie too deep are only
// counted as depth.
WEIR_EXPORTED void weir_op_begin_on(const char* name, uint32_t device, int32_t layer) {
  const ThreadAccess access;
  Thread* const thread = access.thread;
  if (is_fallback(thread)) return;
  drop_stale_scopes(thread);
  ++thread->depth;
  if (thread->depth > k_max_depth) return;
  Scope& scope = thread->scopes[thread->depth - 1];
  scope.device = checked_device(device);
  scope.layer = layer < 0 ? WEIR_LAYER_UNKNOWN : layer;
  scope.operands = 0;
  if (name == nullptr) name = "(no name)";
  const uint64_t owner = k_device_owner | scope.device;
  const CachedName* cached = cache_slot(thread, name, owner);
  if (__builtin_expect(is_cached(*cached, name, owner), 1)) {
    scope.name = cached->name;
  } else {
    scope.name = scope_name(thread, name, owner, &thread->temporary[thread->depth - 1]);
  }
  scope.hash = scope.name->hash;
  scope.waited = 0;
  scope.begin = g.timed ? read_stamp(g.stamps) : 0;
}

// Called by the engine: adds an operand to the op that is open in this thread. Ops of other types
// or sizes are counted apart.
WEIR_EXPORTED void weir_op_operand_on(const char* type, const int64_t* ne) {
  const ThreadAccess access;
  Thread* const thread = access.thread;
  if (thread->depth == 0 || thread->depth > k_max_depth || ne == nullptr) return;
  Scope& scope = thread->scopes[thread->depth - 1];
  if (scope.operands == k_max_operands) return;
  weir_probe_operand& operand = scope.operand[scope.operands];
  ++scope.operands;
  copy_text(operand.type, sizeof operand.type, type);
  memcpy(operand.ne, ne, sizeof operand.ne);
  scope.hash = hash_bytes(scope.hash ^ k_operand_salt, &operand, sizeof operand);
}

// Called by the engine: closes the thread's innermost op. Counts it, and times it without its
// waits for devices. Ops beyond the deepest level are dropped with a warning, a new kind of op
// without memory is marked in the file, and `scope.begin` is 0 if ops are counted but not timed.
WEIR_EXPORTED void weir_op_end_on(void) {
  const ThreadAccess access;
  Thread* const thread = access.thread;
  drop_stale_scopes(thread);
  if (thread->depth == 0) return;  // it began while ops were off
  --thread->depth;
  if (thread->depth >= k_max_depth) {
    weir_warn_once("op scopes nest deeper than 32: the inner ones are not counted");
    return;
  }
  Scope& scope = thread->scopes[thread->depth];
  KindRow* row = find_kind_row(thread, scope);
  if (row == nullptr) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return;
  }
  add_in_own_thread(&row->count, 1);
  if (scope.begin == 0) return;
  const uint64_t end = read_stamp(g.stamps);
  if (thread->depth != 0) thread->scopes[thread->depth - 1].waited += scope.waited;
  const uint64_t length = end > scope.begin ? end - scope.begin : 0;
  add_time(row, length > scope.waited ? length - scope.waited : 0);
  if (is_recording_events()) write_op(scope, thread->depth, end);
}

WEIR_EXPORTED void weir_token_on(uint32_t rows) {
  ensure_thread_record();
  const Locked locked(&g.lock);
  close_graph(rows);
  end_evaluation_of_buffers(rows);
}
