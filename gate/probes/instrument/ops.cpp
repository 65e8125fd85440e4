// Op scopes, and which of them make up a token.
//
// Each thread counts its ops for itself. A boundary (weir_token) takes what all threads have
// counted since the one before: that is one graph, whose kind is the multiset of its ops, so that
// threads may race as they like, and its rows.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/instrument/state.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_kind_salt = 3, k_operand_salt = 4, k_graph_salt = 5, k_shapeless_salt = 7;

// All of it under the lock.
struct Ops {
  Table kinds;  // hash -> Kind
  uint32_t kind_count;
  Table graphs;  // hash -> entry
  Table ops;     // of graph and kind -> weir_probe_op
  uint64_t* counter_graphs;
  uint64_t* counter_ops;
  uint64_t* counter_cpu_ops;
  uint64_t boundary;  // when the last one was; 0: unknown
};
constinit Ops g_ops = {};

struct OpEvent {
  weir_event_op op;
  char name[sizeof weir_probe_op::op];
  uint64_t hash;
};

// As is_cpu_backend of the reader: a Vulkan device made of the processor is a device all the same.
bool on_cpu(const Kind& kind) { return strcmp(g.devices[kind.shape.device].api, "cpu") == 0; }

Kind* make_kind(uint64_t hash, const Scope& scope, bool shaped) {
  const KeepErrno keep;
  auto* kind = static_cast<Kind*>(calloc(1, sizeof(Kind)));
  if (kind == nullptr) return nullptr;
  kind->hash = hash;
  kind->shape.hash = hash;
  kind->shape.device = scope.device;
  copy_text(kind->shape.op, sizeof kind->shape.op, scope.name->text);
  if (shaped && scope.operands != 0) {
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

// A context that grows makes kinds without end: beyond the first 3072 they have no
// shapes, which leaves room for a quarter as many names.
Kind* kind_of(const Scope& scope) {
  const Locked locked(&g.lock);
  if (void* known = g_ops.kinds.find(scope.hash)) return static_cast<Kind*>(known);
  if (g_ops.kind_count < k_most_kinds / 4 * 3) return make_kind(scope.hash, scope, true);
  set_flag(&g.file, WEIR_PROBE_OPS_OVERFLOWED);
  const uint64_t hash = mix(scope.name->hash, k_shapeless_salt);
  if (void* known = g_ops.kinds.find(hash)) return static_cast<Kind*>(known);
  return g_ops.kind_count < k_most_kinds ? make_kind(hash, scope, false) : nullptr;
}

KindRow* fresh_row(Thread* thread, Kind* kind) {
  KindChunk* chunk = thread->last;
  if (chunk->used == k_rows_of_chunk) {
    const KeepErrno keep;
    auto* next = static_cast<KindChunk*>(calloc(1, sizeof(KindChunk)));
    if (next == nullptr) return nullptr;
    __atomic_store_n(&chunk->next, next, __ATOMIC_RELEASE);
    thread->last = chunk = next;
  }
  KindRow* row = &chunk->rows[chunk->used];
  row->kind = kind;
  __atomic_store_n(&chunk->used, chunk->used + 1, __ATOMIC_RELEASE);
  return row;
}

KindRow* row_of_scope(Thread* thread, const Scope& scope) {
  auto* known = thread->rows.get<KindRow>(scope.hash);
  if (__builtin_expect(known != nullptr, 1)) return known;
  Kind* kind = kind_of(scope);
  if (kind == nullptr) return nullptr;
  KindRow* row = nullptr;
  // One without its shape may have a row already.
  if (kind->hash != scope.hash) row = thread->rows.get<KindRow>(kind->hash);
  if (row == nullptr) {
    row = fresh_row(thread, kind);
    if (row != nullptr) keep(thread, kind->hash, row);
  }
  if (row != nullptr && kind->hash != scope.hash) keep(thread, scope.hash, row, true);
  return row;
}

// Only its thread writes a row.
void raise(uint64_t* value, uint64_t amount) {
  __atomic_store_n(value, *value + amount, __ATOMIC_RELAXED);
}

// In units of stamps.
void time_row(KindRow* row, uint64_t length) {
  raise(&row->total, length);
  if (length > __atomic_load_n(&row->most, __ATOMIC_RELAXED))
    __atomic_store_n(&row->most, length, __ATOMIC_RELAXED);
}

void write_op(const Scope& scope, uint32_t depth, uint64_t end) {
  OpEvent event = {};
  event.op = {scope.begin, end, __atomic_load_n(&g.tokens, __ATOMIC_RELAXED), scope.layer, depth};
  copy_text(event.name, sizeof event.name, scope.name->text);
  event.hash = scope.hash;
  write_event(WEIR_EVENT_OP, scope.device, &event, sizeof event);
}

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

// What threads counted since the last boundary, as a list of kinds.
Kind* pending_kinds() {
  Kind* first = nullptr;
  each_row([&](KindRow* row) {
    const uint64_t count = __atomic_load_n(&row->count, __ATOMIC_RELAXED);
    const uint64_t fresh = count - row->taken;
    row->taken = count;
    if (fresh == 0) return;
    if (row->kind->pending == 0) {
      row->kind->next = first;
      first = row->kind;
    }
    row->kind->pending += fresh;
  });
  return first;
}

// Null where the file has no room: counted in `ops`, and in no list.
weir_probe_op* op_of(uint32_t graph, Kind* kind) {
  const uint64_t key = mix(kind->hash, graph);
  if (void* known = g_ops.ops.find(key)) return static_cast<weir_probe_op*>(known);
  weir_probe_section* section = section_of(&g.file, WEIR_SECTION_OPS);
  if (!has_room(&g.file, section, WEIR_PROBE_OPS_OVERFLOWED)) return nullptr;
  weir_probe_op* op = &g.file.ops[section->used];
  *op = kind->shape;
  op->graph = graph;
  if (!g_ops.ops.insert(key, op)) return nullptr;
  raise_used(section);
  return op;
}

// The name as the file has it: cut. `unkept` takes it where there is no room to keep it.
const Name* name_of_scope(Thread* thread, const char* text, uint64_t where, Name* unkept) {
  char cut[sizeof weir_probe_op::op];
  const bool whole = copy_text(cut, sizeof cut, text);
  if (!whole) set_flag(&g.file, WEIR_PROBE_NAMES_TRUNCATED);
  const uint64_t hash = hash_bytes(k_hash_seed ^ k_kind_salt ^ (where << 32), cut, sizeof cut);
  const Name* name = stored_name(thread, hash, cut);
  if (name == nullptr) {
    unkept->hash = hash;
    copy_text(unkept->text, sizeof unkept->text, cut);
    return unkept;
  }
  if (whole) *seen_at(thread, text, where) = {text, where, name, nullptr, nullptr};
  return name;
}

// Of scopes that were open when ops went off, nobody heard the end.
void leave_stale_scopes(Thread* thread) {
  const uint32_t epoch = __atomic_load_n(&g.epoch, __ATOMIC_RELAXED);
  if (__builtin_expect(thread->epoch == epoch, 1)) return;
  thread->epoch = epoch;
  thread->depth = 0;
}

}  // namespace

void take_boundary(uint32_t rows) {
  Kind* const first = pending_kinds();
  if (first == nullptr && rows == 0) return;
  fill_devices();
  if (g_ops.counter_graphs == nullptr) {
    g_ops.counter_graphs = add_counter(&g.file, "graphs");
    g_ops.counter_ops = add_counter(&g.file, "ops");
    g_ops.counter_cpu_ops = add_counter(&g.file, "cpu_ops");
  }
  uint64_t hash = mix(k_graph_salt, rows), ops = 0, cpu_ops = 0;
  for (Kind* kind = first; kind != nullptr; kind = kind->next) {
    hash += mix(kind->hash, kind->pending);  // in any order
    ops += kind->pending;
    if (on_cpu(*kind)) cpu_ops += kind->pending;
  }
  const uint32_t graph = graph_index(&g.file, &g_ops.graphs, {hash, 0, rows, ops, cpu_ops, 0, {}, 0, 0});
  for (Kind* kind = first; kind != nullptr;) {
    if (weir_probe_op* op = op_of(graph, kind)) add(&op->count, kind->pending);
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
  if (!events_on()) return;
  const uint64_t now = now_nanoseconds();
  const weir_event_graph event = {g_ops.boundary != 0 ? g_ops.boundary : now, now};
  g_ops.boundary = now;
  write_event(WEIR_EVENT_GRAPH, graph, &event, sizeof event);
}

void wait_in_op(Thread* thread) {
  const uint32_t open = thread->depth < k_most_depth ? thread->depth : k_most_depth;
  if (open == 0 || thread->wait_began == 0) return;
  Scope& scope = thread->scopes[open - 1];
  const uint64_t begin = scope.begin > thread->wait_began ? scope.begin : thread->wait_began;
  const uint64_t end = stamp(g.stamps);
  if (end > begin) scope.waited += end - begin;
}

void forget_ops_after_fork() {
  each_row([](KindRow* row) { row->taken = row->count; });
  g_ops.boundary = 0;
  g.tokens = 0;
}

// By name, whatever their shapes and devices.
void dump_ops(int descriptor) {
  auto* named = static_cast<Row*>(calloc(k_most_kinds, sizeof(Row)));
  if (named == nullptr) return;
  const double unit = nanoseconds_of(g.stamps);
  const auto nanoseconds = [&](uint64_t length) {
    return static_cast<uint64_t>(static_cast<double>(length) * unit + 0.5);
  };
  uint32_t used = 0;
  each_row([&](KindRow* row) {
    const uint64_t calls = __atomic_load_n(&row->count, __ATOMIC_RELAXED) - row->base_count;
    if (calls == 0) return;
    Timed& timed = row_named(named, &used, row->kind->shape.op)->timed;
    const uint64_t most = nanoseconds(__atomic_load_n(&row->most, __ATOMIC_RELAXED));
    timed.calls += calls;
    timed.total += nanoseconds(__atomic_load_n(&row->total, __ATOMIC_RELAXED) - row->base_total);
    if (most > timed.most) timed.most = most;
  });
  if (used != 0) {
    print_rows(descriptor, "ops", "CPU ms", named, used);
    const uint64_t boundaries = __atomic_load_n(&g.tokens, __ATOMIC_RELAXED) - g.base_tokens;
    print_line(descriptor, "%llu evaluation%s\n", static_cast<unsigned long long>(boundaries),
               boundaries == 1 ? "" : "s");
  }
  free(named);
}

void forget_op_times() {
  g.base_tokens = __atomic_load_n(&g.tokens, __ATOMIC_RELAXED);
  // Rows are their threads' own: what is taken off is remembered here, not written there. The
  // longest can be forgotten only there; a scope that ends just now may put its own back.
  each_row([](KindRow* row) {
    row->base_count = __atomic_load_n(&row->count, __ATOMIC_RELAXED);
    row->base_total = __atomic_load_n(&row->total, __ATOMIC_RELAXED);
    __atomic_store_n(&row->most, 0, __ATOMIC_RELAXED);
  });
}

}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORTED void weir_op_begin_on(const char* name, uint32_t device, int32_t layer) {
  const auto [thread] = Mark();
  if (is_nobody(thread)) return;
  leave_stale_scopes(thread);
  if (thread->depth++ >= k_most_depth) return;
  Scope& scope = thread->scopes[thread->depth - 1];
  scope.device = checked_device(device);
  scope.layer = layer < 0 ? WEIR_LAYER_UNKNOWN : layer;
  scope.operands = 0;
  if (name == nullptr) name = "(no name)";
  const uint64_t where = k_of_device | scope.device;
  const Seen* seen = seen_at(thread, name, where);
  scope.name = __builtin_expect(is_seen(*seen, name, where), 1)
                   ? seen->name
                   : name_of_scope(thread, name, where, &thread->unkept[thread->depth - 1]);
  scope.hash = scope.name->hash;
  scope.waited = 0;
  scope.begin = g.timed ? stamp(g.stamps) : 0;
}

WEIR_EXPORTED void weir_op_operand_on(const char* type, const int64_t* ne) {
  const auto [thread] = Mark();
  if (thread->depth == 0 || thread->depth > k_most_depth || ne == nullptr) return;
  Scope& scope = thread->scopes[thread->depth - 1];
  if (scope.operands == k_most_operands) return;
  weir_probe_operand& operand = scope.operand[scope.operands++];
  copy_text(operand.type, sizeof operand.type, type);
  memcpy(operand.ne, ne, sizeof operand.ne);
  scope.hash = hash_bytes(scope.hash ^ k_operand_salt, &operand, sizeof operand);
}

WEIR_EXPORTED void weir_op_end_on(void) {
  const auto [thread] = Mark();
  leave_stale_scopes(thread);
  if (thread->depth == 0) return;  // it began while this was off
  if (thread->depth-- > k_most_depth) {
    weir_warn_once("op scopes nest deeper than 32: the inner ones are not counted");
    return;
  }
  Scope& scope = thread->scopes[thread->depth];
  KindRow* row = row_of_scope(thread, scope);
  if (row == nullptr) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return;
  }
  raise(&row->count, 1);
  if (scope.begin == 0) return;
  const uint64_t end = stamp(g.stamps);
  if (thread->depth != 0) thread->scopes[thread->depth - 1].waited += scope.waited;
  const uint64_t length = end > scope.begin ? end - scope.begin : 0;
  time_row(row, length > scope.waited ? length - scope.waited : 0);
  if (events_on()) write_op(scope, thread->depth, end);
}

WEIR_EXPORTED void weir_token_on(uint32_t rows) {
  self();
  const Locked locked(&g.lock);
  take_boundary(rows);
  end_evaluation_of_buffers(rows);
}
