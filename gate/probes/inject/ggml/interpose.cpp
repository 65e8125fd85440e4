// Intercepts ggml's functions and counts their calls.
//
// Only a program's own calls are work: calls within ggml (the scheduler computes each of its parts)
// belong to the outer call. Waits are counted wherever they come from. So are the sets and gets
// that make up a copy, though its bytes count once.

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

Table g_transfers;  // hash of (kind, from, to) -> entry in the file

// Returns the kind of memory that holds a tensor's bytes; null where it is unknown.
BufferType* tensor_memory(Library* library, const Tensor* tensor) {
  return is_readable(library, tensor) ? memory_type(library->ggml, tensor) : nullptr;
}

// Counts a transfer between two kinds of memory and returns its entry in the file. Kinds of memory
// are static objects, so their addresses identify them. Uploads from the host are also counted in
// bytes.
weir_probe_transfer* count_transfer(Library* library, uint32_t kind, BufferType* from,
                                    BufferType* to, uint64_t bytes) {
  const uint64_t key = reinterpret_cast<uint64_t>(from) * 0x9e3779b97f4a7c15ULL +
                       reinterpret_cast<uint64_t>(to) * 0xd6e8feb86659fd93ULL + kind;
  auto* entry = g_transfers.get<weir_probe_transfer>(key);
  if (entry == nullptr) {
    weir_probe_transfer new_entry{};
    new_entry.kind = kind;
    copy_text(new_entry.from, sizeof new_entry.from, memory_name(library->ggml, from));
    copy_text(new_entry.to, sizeof new_entry.to, memory_name(library->ggml, to));
    if (kind == WEIR_TRANSFER_SET || kind == WEIR_TRANSFER_FILL) {
      copy_text(new_entry.from, sizeof new_entry.from, k_program);
    }
    if (kind == WEIR_TRANSFER_GET) copy_text(new_entry.to, sizeof new_entry.to, k_program);
    entry = find_or_add_transfer(&g.file, &g.lock, new_entry);
    g_transfers.insert(key, entry);
  }
  add(&entry->calls, 1);
  add(&entry->bytes, bytes);
  const auto is_host = [library](BufferType* memory) {
    return call_if_present(library->ggml.backend_buft_is_host, memory);
  };
  const bool from_host =
      kind == WEIR_TRANSFER_SET || (kind == WEIR_TRANSFER_COPY && from != nullptr && is_host(from));
  if (from_host && to != nullptr && !is_host(to)) count(k_uploaded_bytes, bytes);
  return entry;
}

// Counts a copy between tensors, before its bytes move, and returns its entry.
weir_probe_transfer* count_copy(Library* library, const Tensor* from, const Tensor* to) {
  const uint64_t bytes = call_if_present(library->ggml.nbytes, from);
  count(k_tensor_copies);
  count(k_copied_bytes, bytes);
  return count_transfer(library, WEIR_TRANSFER_COPY, tensor_memory(library, from),
                        tensor_memory(library, to), bytes);
}

// Counts a set or a get and returns its entry; null if it is part of a copy.
weir_probe_transfer* count_move(Library* library, uint32_t kind, const Tensor* tensor,
                                uint64_t bytes) {
  const bool is_get = kind == WEIR_TRANSFER_GET;
  count(is_get ? k_tensor_gets : k_tensor_sets);
  if (t_in_copy != nullptr) return nullptr;  // counted with the copy
  // While a graph is computed ggml itself moves bytes, such as single experts.
  if (t_in_graph != nullptr) count(k_copied_bytes, bytes);
  BufferType* memory = tensor_memory(library, tensor);
  if (is_get) return count_transfer(library, kind, memory, nullptr, bytes);
  return count_transfer(library, kind, nullptr, memory, bytes);
}

// Runs in the child of a fork: frees locks and empties what belongs to the parent's files.
void reset_after_fork() {
  reset_library_lock_after_fork();
  reset_graphs_after_fork();
  reset_replay_after_fork();
  reset_ops_after_fork();
  detach_events_after_fork();
}

// Sets t_library to the end of its block.
class CurrentLibrary {
 public:
  explicit CurrentLibrary(Library* library) : before_(t_library) { t_library = library; }
  ~CurrentLibrary() { t_library = before_; }
  CurrentLibrary(const CurrentLibrary&) = delete;
  CurrentLibrary& operator=(const CurrentLibrary&) = delete;

 private:
  Library* before_;
};

// Writes an event with the time of a transfer at the end of its block, if `entry` is not null.
class TransferTimer {
 public:
  TransferTimer(weir_probe_transfer* entry, uint64_t bytes)
      : entry_(entry), bytes_(bytes), begin_(entry == nullptr ? 0 : event_time()) {}
  ~TransferTimer() {
    if (begin_ == 0) return;
    const weir_event_transfer body = {begin_, now_nanoseconds(), bytes_};
    write_event(WEIR_EVENT_TRANSFER, static_cast<uint32_t>(entry_ - g.file.transfers), &body,
                sizeof body);
  }
  TransferTimer(const TransferTimer&) = delete;
  TransferTimer& operator=(const TransferTimer&) = delete;

 private:
  weir_probe_transfer* entry_;
  uint64_t bytes_;
  uint64_t begin_;
};

// Returns true if the current wait is caused by the probe and not by the program.
bool is_own_wait(Counter counter) {
  if (counter != k_backend_syncs || t_waits_of_probe == ProbeWaits::none) return false;
  if (t_waits_of_probe == ProbeWaits::next) t_waits_of_probe = ProbeWaits::none;
  return true;
}

}  // namespace

// Opens the probe's file with its counters on the first call, and again in a forked child.
void ensure_initialized() {
  static const char* const k_names[k_counters] = {
      "graphs",         "ops",           "cpu_ops",        "splits",        "tensor_copies",
      "tensor_sets",    "tensor_gets",   "copied_bytes",   "backend_syncs", "event_syncs",
      "uploaded_bytes", "weights_bytes", "kv_cache_bytes", "compute_bytes"};
  const Locked locked(&g.lock);
  const auto open = [] {
    open_file(&g.file, "ggml", k_capacity);
    for (int i = 0; i < k_counters; ++i) g.counters[i] = add_counter(&g.file, k_names[i]);
    allow_holds(&g.file);
    open_events(g.file);
    make_replay_ready();
    make_ops_ready();
    g.is_on_twin = is_on_twin();
  };
  weir_probe::ensure_initialized(&g, open, reset_after_fork, make_forked_events);
}

}  // namespace weir_probe

using namespace weir_probe;

// Every function below begins with this: finds the ggml to go on to, or returns if there is none.
#define WEIR_ENTER(name, otherwise)                                          \
  Library* const library = library_for(WEIR_CALLER);                         \
  if (library == nullptr || library->ggml.name == nullptr) return otherwise; \
  ensure_ready();                                                            \
  const CurrentLibrary current(library);                                     \
  const Functions& ggml = library->ggml

#define WEIR_COMPUTES(name, On, record, waits)                                          \
  WEIR_EXPORTED int ggml_##name(On* on, Graph* graph) {                                 \
    WEIR_ENTER(name, k_failed);                                                         \
    const OutermostCall outermost_call(&t_in_graph, __builtin_frame_address(0));        \
    if (!outermost_call.is_outermost()) return ggml.name(on, graph);                    \
    hold_back(&g.file);                                                                 \
    read_masks(library, graph);                                                         \
    NodeTiming* const timing = begin_node_timing(library, graph);                       \
    const uint64_t begin = event_time();                                                \
    const int status = timing == nullptr                                                \
                           ? ggml.name(on, graph)                                       \
                           : compute_node_by_node(timing, on, graph, ggml.name, waits); \
    if (status == k_success) {                                                          \
      if (!(waits)) wait_for_steps(library, on);                                        \
      record(library, on, graph, begin, timing);                                        \
    }                                                                                   \
    end_node_timing(timing);                                                            \
    return status;                                                                      \
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
WEIR_WAITS(backend_synchronize, Backend, k_backend_syncs, WEIR_WAIT_BACKEND, fix_late_indices(on))
WEIR_WAITS(backend_event_synchronize, Event, k_event_syncs, WEIR_WAIT_EVENT,
           fix_late_indices(nullptr))

// `record` counts a transfer of `bytes` and returns its entry, if this is the outermost call by
// `mark`. `after` runs when ggml has returned.
#define WEIR_MOVES(name, parameters, arguments, mark, record, bytes, after)               \
  WEIR_EXPORTED void ggml_##name parameters {                                             \
    WEIR_ENTER(name, );                                                                   \
    const OutermostCall outermost_call(&mark, __builtin_frame_address(0));                \
    const TransferTimer timer(outermost_call.is_outermost() ? (record) : nullptr, bytes); \
    ggml.name arguments;                                                                  \
    after;                                                                                \
  }
#define WEIR_COPIES(name, parameters, arguments)                                    \
  WEIR_MOVES(name, parameters, arguments, t_in_copy, count_copy(library, from, to), \
             is_recording_events() ? call_if_present(ggml.nbytes, from) : 0, )
#define WEIR_SETS(name, parameters, arguments, bytes)    \
  WEIR_MOVES(name, parameters, arguments, t_in_transfer, \
             count_move(library, WEIR_TRANSFER_SET, to, bytes), bytes, )
#define WEIR_GETS(name, parameters, arguments, bytes)    \
  WEIR_MOVES(name, parameters, arguments, t_in_transfer, \
             count_move(library, WEIR_TRANSFER_GET, from, bytes), bytes, fix_indices arguments)

#define WEIR_FILLS(name, parameters, arguments, bytes)                                         \
  WEIR_MOVES(                                                                                  \
      name, parameters, arguments, t_in_transfer,                                              \
      count_transfer(library, WEIR_TRANSFER_FILL, nullptr, tensor_memory(library, to), bytes), \
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
  note_buffer_use(library, buffer, use);
}
// Its result is an int since 2025, and was none before.
WEIR_EXPORTED int ggml_backend_buffer_init_tensor(Buffer* buffer, Tensor* tensor) {
  WEIR_ENTER(backend_buffer_init_tensor, k_failed);
  const int status = ggml.backend_buffer_init_tensor(buffer, tensor);
  note_tensor(library, buffer, tensor);
  return status;
}
WEIR_EXPORTED void ggml_backend_buffer_free(Buffer* buffer) {
  WEIR_ENTER(backend_buffer_free, );
  forget_buffer(buffer);
  ggml.backend_buffer_free(buffer);
}

WEIR_EXPORTED void* ggml_backend_reg_get_proc_address(Registry* registry, const char* name) {
  WEIR_ENTER(backend_reg_get_proc_address, nullptr);
  return intercept_set_threads(name, ggml.backend_reg_get_proc_address(registry, name));
}
