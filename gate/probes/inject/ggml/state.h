// Types and functions that the files of the ggml probe share.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/writer/events.h"
#include "gate/probes/inject/writer/file.h"

namespace weir_probe {

// --- ggml's interface: the exported functions that the probe intercepts and those that it calls,
// by name and signature. Everything of ggml's is an opaque pointer: no header of ggml is needed,
// and one library serves programs built with ggml a year apart.

struct Tensor;   // ggml_tensor
struct Graph;    // ggml_cgraph
struct Sched;    // ggml_backend_sched
struct Backend;  // ggml_backend
struct Buffer;   // ggml_backend_buffer
struct BufferType;
struct BackendDevice;
struct Event;
struct Registry;  // ggml_backend_reg

// ggml_backend_sched_eval_callback. Called before a node with `is_query` true: should the scheduler
// wait for it? After the wait with false: should the graph go on?
using EvalCallback = bool (*)(Tensor* node, bool is_query, void* data);

// A ggml_cgraph as ggml gives it by value. It is larger than any of ggml's (some 100 bytes): the
// caller makes the room for a result of this size, whatever part of it is filled.
struct GraphView {
  char bytes[1024];
};

// Functions that move bytes: X(how it is intercepted, name without "ggml_", parameters, arguments,
// and for sets and gets the number of bytes).
#define WEIR_GGML_MOVES(X)                                                                         \
  X(COPIES, backend_tensor_copy, (Tensor * from, Tensor * to), (from, to))                         \
  X(COPIES, backend_tensor_copy_async,                                                             \
    (Backend * source, Backend * destination, Tensor * from, Tensor * to),                         \
    (source, destination, from, to))                                                               \
  X(SETS, backend_tensor_set, (Tensor * to, const void* data, size_t offset, size_t size),         \
    (to, data, offset, size), size)                                                                \
  X(SETS, backend_tensor_set_async,                                                                \
    (Backend * backend, Tensor * to, const void* data, size_t offset, size_t size),                \
    (backend, to, data, offset, size), size)                                                       \
  X(SETS, backend_tensor_set_2d,                                                                   \
    (Tensor * to, const void* data, size_t offset, size_t size, size_t copies,                     \
     size_t stride_tensor, size_t stride_data),                                                    \
    (to, data, offset, size, copies, stride_tensor, stride_data), size* copies)                    \
  X(SETS, backend_tensor_set_2d_async,                                                             \
    (Backend * backend, Tensor * to, const void* data, size_t offset, size_t size, size_t copies,  \
     size_t stride_tensor, size_t stride_data),                                                    \
    (backend, to, data, offset, size, copies, stride_tensor, stride_data), size* copies)           \
  X(GETS, backend_tensor_get, (const Tensor* from, void* data, size_t offset, size_t size),        \
    (from, data, offset, size), size)                                                              \
  X(GETS, backend_tensor_get_async,                                                                \
    (Backend * backend, const Tensor* from, void* data, size_t offset, size_t size),               \
    (backend, from, data, offset, size), size)                                                     \
  X(GETS, backend_tensor_get_2d,                                                                   \
    (const Tensor* from, void* data, size_t offset, size_t size, size_t copies,                    \
     size_t stride_tensor, size_t stride_data),                                                    \
    (from, data, offset, size, copies, stride_tensor, stride_data), size* copies)                  \
  X(GETS, backend_tensor_get_2d_async,                                                             \
    (Backend * backend, const Tensor* from, void* data, size_t offset, size_t size, size_t copies, \
     size_t stride_tensor, size_t stride_data),                                                    \
    (backend, from, data, offset, size, copies, stride_tensor, stride_data), size* copies)         \
  X(FILLS, backend_tensor_memset, (Tensor * to, uint8_t value, size_t offset, size_t size),        \
    (to, value, offset, size), size)

// Other intercepted functions: X(name without "ggml_", result, parameters). All have kept their
// signatures since they exist.
#define WEIR_GGML_INTERPOSED(X)                                           \
  X(backend_sched_graph_compute, int, (Sched*, Graph*))                   \
  X(backend_sched_graph_compute_async, int, (Sched*, Graph*))             \
  X(backend_graph_compute, int, (Backend*, Graph*))                       \
  X(backend_graph_compute_async, int, (Backend*, Graph*))                 \
  X(backend_synchronize, void, (Backend*))                                \
  X(backend_event_synchronize, void, (Event*))                            \
  X(backend_sched_set_eval_callback, void, (Sched*, EvalCallback, void*)) \
  X(backend_sched_free, void, (Sched*))                                   \
  X(backend_reg_get_proc_address, void*, (Registry*, const char*))        \
  X(backend_buffer_set_usage, void, (Buffer*, int))                       \
  X(backend_buffer_init_tensor, int, (Buffer*, Tensor*))                  \
  X(backend_buffer_free, void, (Buffer*))

// Any of these may be missing in an older or a trimmed ggml.
#define WEIR_GGML_ASKED(X)                                         \
  X(graph_n_nodes, int, (Graph*))                                  \
  X(graph_node, Tensor*, (Graph*, int))                            \
  X(graph_get_tensor, Tensor*, (Graph*, const char*))              \
  X(graph_view, GraphView, (Graph*, int, int))                     \
  X(op_desc, const char*, (const Tensor*))                         \
  X(op_name, const char*, (int))                                   \
  X(version, const char*, ())                                      \
  X(commit, const char*, ())                                       \
  X(type_name, const char*, (int))                                 \
  X(type_size, size_t, (int))                                      \
  X(element_size, size_t, (const Tensor*))                         \
  X(nelements, int64_t, (const Tensor*))                           \
  X(nbytes, size_t, (const Tensor*))                               \
  X(tensor_overhead, size_t, ())                                   \
  X(get_name, const char*, (const Tensor*))                        \
  X(get_data, void*, (const Tensor*))                              \
  X(backend_name, const char*, (Backend*))                         \
  X(backend_get_device, BackendDevice*, (Backend*))                \
  X(backend_dev_type, int, (BackendDevice*))                       \
  X(backend_dev_description, const char*, (BackendDevice*))        \
  X(backend_dev_buffer_type, BufferType*, (BackendDevice*))        \
  X(backend_buft_is_host, bool, (BufferType*))                     \
  X(backend_buft_name, const char*, (BufferType*))                 \
  X(backend_buffer_get_type, BufferType*, (Buffer*))               \
  X(backend_buffer_get_size, size_t, (Buffer*))                    \
  X(backend_buffer_is_multi_buffer, bool, (Buffer*))               \
  X(backend_buffer_is_meta, bool, (Buffer*))                       \
  X(backend_sched_get_tensor_backend, Backend*, (Sched*, Tensor*)) \
  X(backend_sched_get_n_splits, int, (Sched*))                     \
  X(backend_sched_synchronize, void, (Sched*))

// The functions of one copy of ggml.
struct Functions {
#define WEIR_DECLARE(name, result, parameters) result(*name) parameters;
#define WEIR_DECLARE_MOVE(how, name, parameters, ...) WEIR_DECLARE(name, void, parameters)
  WEIR_GGML_MOVES(WEIR_DECLARE_MOVE)
  WEIR_GGML_INTERPOSED(WEIR_DECLARE)
  WEIR_GGML_ASKED(WEIR_DECLARE)
#undef WEIR_DECLARE_MOVE
#undef WEIR_DECLARE
};

// Calls `function`; returns null or 0 if this ggml does not have it.
template <class R, class... P, class... A>
R call_if_present(R (*function)(P...), A... arguments) {
  return function == nullptr ? R() : function(arguments...);
}

// Reads fields of a tensor directly. Only for tensors that are `is_readable`.
struct TensorView {
  const char* at;

  explicit TensorView(const Tensor* tensor) : at(reinterpret_cast<const char*>(tensor)) {}
  [[nodiscard]] int type() const { return *reinterpret_cast<const int*>(at); }
  [[nodiscard]] const int64_t* ne() const { return reinterpret_cast<const int64_t*>(at + 16); }
  [[nodiscard]] const uint64_t* nb() const { return reinterpret_cast<const uint64_t*>(at + 48); }
  [[nodiscard]] int op() const { return *reinterpret_cast<const int*>(at + 80); }
  [[nodiscard]] const int32_t* params() const { return reinterpret_cast<const int32_t*>(at + 84); }
  [[nodiscard]] uint64_t offset_in_view() const {
    return *reinterpret_cast<const uint64_t*>(at + 240);
  }
  [[nodiscard]] int32_t flags() const { return *reinterpret_cast<const int32_t*>(at + 148); }
  [[nodiscard]] const Tensor* source(size_t i) const { return pointers(152)[i]; }
  [[nodiscard]] const Tensor* view_of() const { return pointers(232)[0]; }
  // The buffer with its bytes; null before they are allocated.
  [[nodiscard]] Buffer* buffer() const {
    const Tensor* viewed = view_of();
    return *reinterpret_cast<Buffer* const*>(
        (viewed == nullptr ? at : reinterpret_cast<const char*>(viewed)) + 8);
  }

 private:
  [[nodiscard]] const Tensor* const* pointers(size_t offset) const {
    return reinterpret_cast<const Tensor* const*>(at + offset);
  }
};

// Returns the kind of memory that holds a tensor's bytes; null where it is unknown.
inline BufferType* memory_type(const Functions& ggml, const Tensor* tensor) {
  Buffer* buffer = TensorView(tensor).buffer();
  return buffer == nullptr ? nullptr : call_if_present(ggml.backend_buffer_get_type, buffer);
}
inline const char* memory_name(const Functions& ggml, BufferType* memory) {
  return memory == nullptr ? nullptr : call_if_present(ggml.backend_buft_name, memory);
}

// --- The ggml that a call goes on to (library.cpp).
//
// A preloaded function is found before ggml's own by everything in the process. That includes
// libraries opened privately (Python, Node: RTLD_LOCAL), each of which may have a ggml. A call goes
// on to where it would have gone without the probe: to the ggml of the global scope, else to that
// of the calling library.

// An int and no class: atomic operations take nothing else everywhere.
enum Layout : int { k_unproven, k_fits, k_unknown };

struct Library {
  Functions ggml;
  int layout;           // atomic; a Layout
  int tensors_checked;  // atomic; number of tensors compared with the layout
};

// The ggml that the innermost call of this thread went on to, or null. ggml may leave a function by
// a jump to another; that call comes with a return address in the probe, and goes to the same ggml.
extern __thread Library* t_library __attribute__((tls_model("initial-exec")));

// Returns the ggml for a call; null when none can be found, after one line on stderr. `caller` is
// the return address of the intercepted function. Takes no lock for a call site that was seen
// before.
Library* library_for(const void* caller);

// Returns the path of the library that contains `address`, or null.
const char* file_containing(const void* address);

void reset_library_lock_after_fork();

// Returns true if fields of the tensor can be read directly. The first tensors are checked; after
// one that does not fit, always false.
bool is_readable(Library* library, const Tensor* tensor);

// --- Counters.

enum Counter {
  k_graphs,
  k_ops,
  k_cpu_ops,
  k_splits,
  k_tensor_copies,
  k_tensor_sets,
  k_tensor_gets,
  k_copied_bytes,
  k_backend_syncs,
  k_event_syncs,
  k_uploaded_bytes,
  k_weights_bytes,  // most at once, as are the next two
  k_kv_cache_bytes,
  k_compute_bytes,
  k_counters
};

struct Globals : OwnFile {
  uint64_t* counters[k_counters];
  bool is_on_twin;
};
extern Globals g;

// Makes the file before the first count, also in a forked child.
void ensure_initialized();
inline void ensure_ready() {
  if (!is_ready(g)) ensure_initialized();
}

inline void count(Counter which, uint64_t amount = 1) { add(g.counters[which], amount); }

// The time now, for the event file; 0 without events.
inline uint64_t event_time() { return is_recording_events() ? now_nanoseconds() : 0; }

// One node that does work.
struct Step {
  const Tensor* tensor;
  const char* op;
  uint64_t op_hash;
  uint64_t hash;    // op, types, shapes
  uint32_t device;  // index in the file
  bool shaped;      // its types and shapes could be read
};

// The time in which a graph was computed; both 0 without events.
struct Interval {
  uint64_t begin, end;
};

// Returns true if a node computes something. Views do not, and backends skip nodes without
// elements.
bool does_work(const Functions& ggml, const Tensor* node);
// Returns true if this ggml has the functions to list the nodes of a graph.
inline bool lists_nodes(const Functions& ggml) {
  return ggml.graph_n_nodes != nullptr && ggml.graph_node != nullptr && ggml.op_desc != nullptr;
}

// --- Times of single ops (ops.cpp).

// A graph that is computed node by node, with the time of each.
struct NodeTiming {
  struct Node {
    const Tensor* tensor;
    uint64_t begin, end;
  };
  bool in_use;  // atomic
  Library* library;
  Node* nodes;  // the timed ones, in the order in which they were computed
  uint32_t room, count;
  uint64_t begin;  // start of the current node
  Sched* sched;
  EvalCallback callback;  // the program's own, or null
  void* callback_data;
  bool is_timed;       // the probe waits for the current node
  bool program_waits;  // the program's callback wants to wait for it
};
using ComputeSched = int (*)(Sched*, Graph*);
using ComputeBackend = int (*)(Backend*, Graph*);

// The waits of this thread for a backend that are caused by the probe: neither counted nor
// recorded.
enum class ProbeWaits : int { none, next, all };
extern __thread ProbeWaits t_waits_of_probe __attribute__((tls_model("initial-exec")));

void make_ops_ready();
void reset_ops_after_fork();
bool times_ops();
// Returns null if the graph is to be computed normally.
NodeTiming* begin_node_timing(Library* library, Graph* graph);
void end_node_timing(NodeTiming* timing);  // or null
// Compute the graph node by node; by `compute`, all at once, where it cannot be split. `waits`:
// `compute` returns when the graph is done.
int compute_node_by_node(NodeTiming* timing, Sched* sched, Graph* graph, ComputeSched compute,
                         bool waits);
int compute_node_by_node(NodeTiming* timing, Backend* backend, Graph* graph, ComputeBackend compute,
                         bool waits);
void note_callback(Sched* sched, EvalCallback call, void* data);
void forget_callback(Sched* sched);

// Record a graph after it was computed: its ops, and the transfers and waits since the graph
// before. `begin`: event_time() before it was computed. `timing`: null if it was not computed node
// by node.
void record_sched_graph(Library* library, Sched* sched, Graph* graph, uint64_t begin,
                        const NodeTiming* timing);
void record_backend_graph(Library* library, Backend* backend, Graph* graph, uint64_t begin,
                          const NodeTiming* timing);

// Writes a graph's nodes with everything that weir replay needs to rebuild them, where
// WEIR_PROBE_REPLAY asks for it. Under g.lock.
void write_replay_events(Library* library, uint32_t kind, const Step* steps, int count,
                         Graph* graph, Interval when);
// Wait for a graph's backends if replay or times of ops are recorded, so that a graph's time does
// not include that of another.
void wait_for_steps(Library* library, Sched* sched);
void wait_for_steps(Library* library, Backend* backend);
void make_replay_ready();
void reset_replay_after_fork();
bool records_replay();
// Returns the function to give to the program in place of a backend's function of that name. Mostly
// that is `function`; in place of one that sets the number of threads, one of the probe that notes
// it.
void* intercept_set_threads(const char* name, void* function);

// --- Masks of attention (masks.cpp).

// Returns true if the program writes the tensor before each graph, and not once for all graphs.
bool is_input(const Functions& ggml, const Tensor* tensor);

// The masks of the graph that this thread is about to compute, or has computed last.
struct Masks {
  // Places of the masks, summed over the nodes that use them; counted for replay alone.
  uint64_t attended, places;
  // Rows that attend to a place that no other row attends to (MaskValues); 0 if not all do so in
  // every mask, or if a mask cannot be read.
  uint64_t independent_rows;
};
extern __thread Masks t_masks __attribute__((tls_model("initial-exec")));

// Reads the masks of a graph; with events alone. Call it before the graph is computed, as that may
// reuse the memory of a mask.
void read_masks(Library* library, Graph* graph);

// --- Indices that the host reads from a device twin (indices.cpp).

// Returns true if the process sees a device twin in place of a GPU.
bool is_on_twin();
// Makes indices valid that were read from a tensor by t_library. `backend`: null if the read is
// complete.
void fix_indices(Backend* backend, const Tensor* from, void* data, size_t offset, size_t size,
                 size_t copies = 1, size_t stride_tensor = 0, size_t stride_data = 0);
inline void fix_indices(const Tensor* from, void* data, size_t offset, size_t size,
                        size_t copies = 1, size_t stride_tensor = 0, size_t stride_data = 0) {
  fix_indices(nullptr, from, data, offset, size, copies, stride_tensor, stride_data);
}
// Does the same for asynchronous reads after the program waited for `backend` (null: for an event
// of some backend). A read is then forgotten, as the program may free its bytes.
void fix_late_indices(Backend* backend);
// Forgets asynchronous reads; called when backends end.
void forget_late_indices();

// --- Memory by use (buffers.cpp).

// `use`: ggml's own numbers, 1 weights and 2 intermediate results; and 3 caches, for which ggml has
// no number.
void note_buffer_use(Library* library, Buffer* buffer, int use);
void note_tensor(Library* library, Buffer* buffer, const Tensor* tensor);
void forget_buffer(Buffer* buffer);

void reset_graphs_after_fork();

}  // namespace weir_probe
