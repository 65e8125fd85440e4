// The functions that stand in front of ggml's.
//
// Only what a program asks for itself is work: what ggml calls from within (the scheduler computes
// each of its parts) is part of the outer call. Waits are counted wherever they come from, as each
// of them is one; so are the sets and gets by which a copy is done, though its bytes move once.

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/inject/writer/hold.h"

#define WEIR_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

namespace weir_probe {

Globals g = {};

namespace {

// The frame of the outermost call that this thread is in, or null. initial-exec: read in two
// instructions, and no part of the C library that could allocate.
__thread const char* t_in_graph __attribute__((tls_model("initial-exec")));
__thread const char* t_in_copy __attribute__((tls_model("initial-exec")));
__thread const char* t_in_transfer __attribute__((tls_model("initial-exec")));

constexpr int k_success = 0;  // GGML_STATUS_SUCCESS
constexpr int k_failed = -1;  // GGML_STATUS_FAILED
constexpr Capacity k_capacity{16, 0, 0, 48, 4096, 128, 64, 0, 0, 32768};

constexpr const char* k_program = "program";

Table g_transfers;  // hash of (kind, from, to) -> entry of the file

BufferType* memory_if_readable(Library* library, const Tensor* tensor) {
  return readable(library, tensor) ? memory_of(library->ggml, tensor) : nullptr;
}

// Kinds of memory are static objects of their backends: their addresses tell them apart. That two
// triples share 64 bits of a hash is left to chance.
weir_probe_transfer* record(Library* library, uint32_t kind, BufferType* from, BufferType* to,
                            uint64_t bytes) {
  const uint64_t key = reinterpret_cast<uint64_t>(from) * 0x9e3779b97f4a7c15ULL +
                       reinterpret_cast<uint64_t>(to) * 0xd6e8feb86659fd93ULL + kind;
  auto* entry = g_transfers.get<weir_probe_transfer>(key);
  if (entry == nullptr) {
    weir_probe_transfer wanted{};
    wanted.kind = kind;
    copy_text(wanted.from, sizeof wanted.from, name_of(library->ggml, from));
    copy_text(wanted.to, sizeof wanted.to, name_of(library->ggml, to));
    if (kind == WEIR_TRANSFER_SET || kind == WEIR_TRANSFER_FILL) {
      copy_text(wanted.from, sizeof wanted.from, k_program);
    }
    if (kind == WEIR_TRANSFER_GET) copy_text(wanted.to, sizeof wanted.to, k_program);
    entry = transfer_entry(&g.file, &g.lock, wanted);
    g_transfers.insert(key, entry);
  }
  add(&entry->calls, 1);
  add(&entry->bytes, bytes);
  const auto is_host = [library](BufferType* memory) {
    return ask(library->ggml.backend_buft_is_host, memory);
  };
  const bool from_host =
      kind == WEIR_TRANSFER_SET || (kind == WEIR_TRANSFER_COPY && from != nullptr && is_host(from));
  if (from_host && to != nullptr && !is_host(to)) count(k_uploaded_bytes, bytes);
  return entry;
}

// Before the bytes move. Where it is counted; null when it is part of another transfer.
weir_probe_transfer* record_copy(Library* library, const Tensor* from, const Tensor* to) {
  const uint64_t bytes = ask(library->ggml.nbytes, from);
  count(k_tensor_copies);
  count(k_copied_bytes, bytes);
  return record(library, WEIR_TRANSFER_COPY, memory_if_readable(library, from),
                memory_if_readable(library, to), bytes);
}

// Of a set or a get.
weir_probe_transfer* record_move(Library* library, uint32_t kind, const Tensor* tensor,
                                 uint64_t bytes) {
  const bool get = kind == WEIR_TRANSFER_GET;
  count(get ? k_tensor_gets : k_tensor_sets);
  if (t_in_copy != nullptr) return nullptr;  // the copy has been told
  // While a graph is computed it is ggml that moves: experts, one by one.
  if (t_in_graph != nullptr) count(k_copied_bytes, bytes);
  BufferType* memory = memory_if_readable(library, tensor);
  return record(library, kind, get ? memory : nullptr, get ? nullptr : memory, bytes);
}

void in_child() {
  reset_library_lock_after_fork();
  reset_graphs_after_fork();
  reset_replay_after_fork();
  reset_ops_after_fork();
  detach_events_after_fork();
}

class Meant {
 public:
  explicit Meant(Library* library) : before_(t_meant) { t_meant = library; }
  ~Meant() { t_meant = before_; }
  Meant(const Meant&) = delete;
  Meant& operator=(const Meant&) = delete;

 private:
  Library* before_;
};

// Tells how long a transfer took, when it is over.
class Moving {
 public:
  Moving(weir_probe_transfer* entry, uint64_t bytes)
      : entry_(entry), bytes_(bytes), begin_(entry == nullptr ? 0 : event_time()) {}
  ~Moving() {
    if (begin_ == 0) return;
    const weir_event_transfer body = {begin_, now_nanoseconds(), bytes_};
    write_event(WEIR_EVENT_TRANSFER, static_cast<uint32_t>(entry_ - g.file.transfers), &body,
                sizeof body);
  }
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;

 private:
  weir_probe_transfer* entry_;
  uint64_t bytes_;
  uint64_t begin_;
};

bool is_own_wait(Counter counter) {
  if (counter != k_backend_syncs || t_own_waits == OwnWaits::none) return false;
  if (t_own_waits == OwnWaits::next) t_own_waits = OwnWaits::none;
  return true;
}

}  // namespace

void make_ready() {
  static const char* const k_names[k_counters] = {
      "graphs",         "ops",           "cpu_ops",        "splits",        "tensor_copies",
      "tensor_sets",    "tensor_gets",   "copied_bytes",   "backend_syncs", "event_syncs",
      "uploaded_bytes", "weights_bytes", "kv_cache_bytes", "compute_bytes"};
  const Locked locked(&g.lock);
  const auto open = [] {
    open_file(&g.file, "ggml", k_capacity);
    for (int i = 0; i < k_counters; ++i) g.counters[i] = add_counter(&g.file, k_names[i]);
    may_hold(&g.file);
    open_events(g.file);
    make_replay_ready();
    make_ops_ready();
    g.on_twin = on_twin();
  };
  weir_probe::make_ready(&g, open, in_child, make_forked_events);
}

}  // namespace weir_probe

using namespace weir_probe;

// Everything below: find the ggml that is meant; nothing to be found leaves nothing to be called.
#define WEIR_ENTER(name, otherwise)                                          \
  Library* const library = library_for(WEIR_CALLER);                         \
  if (library == nullptr || library->ggml.name == nullptr) return otherwise; \
  ensure_ready();                                                            \
  const Meant meant(library);                                                \
  const Functions& ggml = library->ggml

#define WEIR_COMPUTES(name, On, record, waits)                                        \
  WEIR_EXPORTED int ggml_##name(On* on, Graph* graph) {                               \
    WEIR_ENTER(name, k_failed);                                                       \
    const Within within(&t_in_graph, __builtin_frame_address(0));                     \
    if (!within.outermost()) return ggml.name(on, graph);                             \
    hold_back(&g.file);                                                               \
    look_at_masks(library, graph);                                                    \
    Stepping* const stepping = begin_steps(library, graph);                           \
    const uint64_t begin = event_time();                                              \
    const int status = stepping == nullptr                                            \
                           ? ggml.name(on, graph)                                     \
                           : compute_in_steps(stepping, on, graph, ggml.name, waits); \
    if (status == k_success) {                                                        \
      if (!(waits)) wait_for_steps(library, on);                                      \
      record(library, on, graph, begin, stepping);                                    \
    }                                                                                 \
    end_steps(stepping);                                                              \
    return status;                                                                    \
  }
WEIR_COMPUTES(backend_sched_graph_compute, Sched, record_sched_graph, true)
WEIR_COMPUTES(backend_sched_graph_compute_async, Sched, record_sched_graph, false)
WEIR_COMPUTES(backend_graph_compute, Backend, record_backend_graph, true)
WEIR_COMPUTES(backend_graph_compute_async, Backend, record_backend_graph, false)

#define WEIR_WAITS(name, On, counter, kind, after)              \
  WEIR_EXPORTED void ggml_##name(On* on) {                      \
    WEIR_ENTER(name, );                                         \
    const bool own = is_own_wait(counter);                      \
    if (!own) count(counter);                                   \
    const uint64_t begin = own ? 0 : event_time();              \
    ggml.name(on);                                              \
    after;                                                      \
    if (begin != 0) write_wait(UINT32_MAX, kind, begin, false); \
  }
WEIR_WAITS(backend_synchronize, Backend, k_backend_syncs, WEIR_WAIT_BACKEND,
           make_late_indices_valid(on))
WEIR_WAITS(backend_event_synchronize, Event, k_event_syncs, WEIR_WAIT_EVENT,
           make_late_indices_valid(nullptr))

// `record` tells where `bytes` count when no transfer is around this one, by its `mark`.
// `after` is done when ggml returned.
#define WEIR_MOVES(name, parameters, arguments, mark, record, bytes, after) \
  WEIR_EXPORTED void ggml_##name parameters {                               \
    WEIR_ENTER(name, );                                                     \
    const Within within(&mark, __builtin_frame_address(0));                 \
    const Moving moving(within.outermost() ? (record) : nullptr, bytes);    \
    ggml.name arguments;                                                    \
    after;                                                                  \
  }
#define WEIR_COPIES(name, parameters, arguments)                                     \
  WEIR_MOVES(name, parameters, arguments, t_in_copy, record_copy(library, from, to), \
             events_on() ? ask(ggml.nbytes, from) : 0, )
#define WEIR_SETS(name, parameters, arguments, bytes)    \
  WEIR_MOVES(name, parameters, arguments, t_in_transfer, \
             record_move(library, WEIR_TRANSFER_SET, to, bytes), bytes, )
#define WEIR_GETS(name, parameters, arguments, bytes)                     \
  WEIR_MOVES(name, parameters, arguments, t_in_transfer,                  \
             record_move(library, WEIR_TRANSFER_GET, from, bytes), bytes, \
             make_indices_valid arguments)

#define WEIR_FILLS(name, parameters, arguments, bytes)                                             \
  WEIR_MOVES(name, parameters, arguments, t_in_transfer,                                           \
             record(library, WEIR_TRANSFER_FILL, nullptr, memory_if_readable(library, to), bytes), \
             bytes, )
#define WEIR_IN_FRONT_OF_MOVE(how, ...) WEIR_##how(__VA_ARGS__)
WEIR_GGML_MOVES(WEIR_IN_FRONT_OF_MOVE)

WEIR_EXPORTED void ggml_backend_sched_set_eval_callback(Sched* sched, EvalCallback call,
                                                        void* data) {
  WEIR_ENTER(backend_sched_set_eval_callback, );
  note_callback(sched, call, data);
  ggml.backend_sched_set_eval_callback(sched, call, data);
}
WEIR_EXPORTED void ggml_backend_sched_free(Sched* sched) {
  WEIR_ENTER(backend_sched_free, );
  forget_callback(sched);
  forget_late_indices();
  ggml.backend_sched_free(sched);
}

WEIR_EXPORTED void ggml_backend_buffer_set_usage(Buffer* buffer, int use) {
  WEIR_ENTER(backend_buffer_set_usage, );
  ggml.backend_buffer_set_usage(buffer, use);
  buffer_is_for(library, buffer, use);
}
// Its result is an int since 2025, and was none before.
WEIR_EXPORTED int ggml_backend_buffer_init_tensor(Buffer* buffer, Tensor* tensor) {
  WEIR_ENTER(backend_buffer_init_tensor, k_failed);
  const int status = ggml.backend_buffer_init_tensor(buffer, tensor);
  tensor_lies_in(library, buffer, tensor);
  return status;
}
WEIR_EXPORTED void ggml_backend_buffer_free(Buffer* buffer) {
  WEIR_ENTER(backend_buffer_free, );
  buffer_ends(buffer);
  ggml.backend_buffer_free(buffer);
}

WEIR_EXPORTED void* ggml_backend_reg_get_proc_address(Registry* registry, const char* name) {
  WEIR_ENTER(backend_reg_get_proc_address, nullptr);
  return note_threads(name, ggml.backend_reg_get_proc_address(registry, name));
}
