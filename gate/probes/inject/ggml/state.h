// What the parts of the ggml probe share.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/writer/events.h"
#include "gate/probes/inject/writer/file.h"

namespace weir_probe {

// --- What the probe knows of ggml: which exported functions it stands in front of and which it
// asks, by name and signature. Everything of ggml's is an opaque pointer: no header of ggml is
// needed, and programs built with ggml a year apart are served by one library.

struct Tensor;   // ggml_tensor
struct Graph;    // ggml_cgraph
struct Sched;    // ggml_backend_sched
struct Backend;  // ggml_backend
struct Buffer;   // ggml_backend_buffer
struct BufferType;
struct BackendDevice;
struct Event;
struct Registry;  // ggml_backend_reg

// ggml_backend_sched_eval_callback: asked before a node whether it is to be waited for; told after
// it, where false ends the graph.
using EvalCallback = bool (*)(Tensor* node, bool asks, void* data);

// A ggml_cgraph as ggml gives it by value. It is larger than any of ggml's (some 100 bytes): the
// caller makes the room for a result of this size, whatever part of it is filled.
struct GraphView {
  char bytes[1024];
};

// Those that move bytes: X(how it is stood in front of, name without "ggml_", parameters,
// arguments, and of sets and gets how many bytes).
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

// The others: X(name without "ggml_", result, parameters). All have the same signatures since they
// exist.
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

// What ggml answers; nothing (null, 0) where it has no such function.
template <class R, class... P, class... A>
R ask(R (*function)(P...), A... arguments) {
  return function == nullptr ? R() : function(arguments...);
}

// What is read from a tensor itself, for layouts that fit.
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
  // Where its bytes lie; null before they are given a place.
  [[nodiscard]] Buffer* buffer() const {
    const Tensor* whole = view_of();
    return *reinterpret_cast<Buffer* const*>(
        (whole == nullptr ? at : reinterpret_cast<const char*>(whole)) + 8);
  }

 private:
  [[nodiscard]] const Tensor* const* pointers(size_t offset) const {
    return reinterpret_cast<const Tensor* const*>(at + offset);
  }
};

// The kind of memory that a tensor's bytes lie in; null where that is not known.
inline BufferType* memory_of(const Functions& ggml, const Tensor* tensor) {
  Buffer* buffer = TensorView(tensor).buffer();
  return buffer == nullptr ? nullptr : ask(ggml.backend_buffer_get_type, buffer);
}
inline const char* name_of(const Functions& ggml, BufferType* memory) {
  return memory == nullptr ? nullptr : ask(ggml.backend_buft_name, memory);
}

// --- Which ggml a call was meant for (library.cpp).
//
// A preloaded function is found before ggml's own by everything in the process, also by libraries
// that were opened privately (Python, Node: RTLD_LOCAL), of which there may be several with a ggml
// each. The call goes on to where it would have gone without the probe: to the ggml of the global
// scope, else to that of the library which called.

// An int and no class: atomic operations take nothing else everywhere.
enum Layout : int { k_unproven, k_fits, k_unknown };

struct Library {
  Functions ggml;
  int layout;        // atomic; a Layout
  int tensors_seen;  // atomic; how many were held against the layout
};

// Whom the innermost of the calls meant that this thread has passed on, or null. What ggml calls
// from within as its last act comes back with a return address of the probe's own: it means the
// same.
extern __thread Library* t_meant __attribute__((tls_model("initial-exec")));

// Null when no ggml can be found, after one line on stderr. `caller` is the return address of the
// interposed function. Without a lock once a call site is known.
Library* library_for(const void* caller);

// The file of the library that `address` lies in, or null.
const char* file_of(const void* address);

void reset_library_lock_after_fork();

// Can the tensor itself be read? Proven with the first tensors; where one does not fit, never
// again.
bool readable(Library* library, const Tensor* tensor);

// --- What is counted.

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
  bool on_twin;
};
extern Globals g;

// Makes the file before the first count, also in a forked child.
void make_ready();
inline void ensure_ready() {
  if (!is_ready(g)) make_ready();
}

inline void count(Counter which, uint64_t amount = 1) { add(g.counters[which], amount); }

// When a call began, for the event file; 0 without events.
inline uint64_t event_time() { return events_on() ? now_nanoseconds() : 0; }

// One node that does work.
struct Step {
  const Tensor* tensor;
  const char* op;
  uint64_t op_hash;
  uint64_t hash;    // op, types, shapes
  uint32_t device;  // index in the file
  bool shaped;
};

// When a graph was computed; both 0 without events.
struct When {
  uint64_t begin, end;
};

// Whether a node computes something: an op that only says how to look at bytes does not, and
// backends skip those without elements.
bool does_work(const Functions& ggml, const Tensor* node);
// Whether the nodes of a graph can be looked at.
inline bool lists_nodes(const Functions& ggml) {
  return ggml.graph_n_nodes != nullptr && ggml.graph_node != nullptr && ggml.op_desc != nullptr;
}

// --- Times of single ops (ops.cpp).

// A graph that is computed node by node.
struct Stepping {
  struct Node {
    const Tensor* tensor;
    uint64_t begin, end;
  };
  bool taken;  // atomic
  Library* library;
  Node* nodes;  // those timed, in the order in which they were computed
  uint32_t room, count;
  uint64_t begin;  // of the node at hand
  Sched* sched;
  EvalCallback call;  // the program's own, or null
  void* call_data;
  bool ours, theirs;  // who wants to wait for the node at hand
};
using ComputeSched = int (*)(Sched*, Graph*);
using ComputeBackend = int (*)(Backend*, Graph*);

// Which of this thread's waits for a backend are the probe's doing: neither counted nor told.
enum class OwnWaits : int { none, next, all };
extern __thread OwnWaits t_own_waits __attribute__((tls_model("initial-exec")));

void make_ops_ready();
void reset_ops_after_fork();
bool ops_timed();
// Null where the graph is to be computed as it is.
Stepping* begin_steps(Library* library, Graph* graph);
void end_steps(Stepping* stepping);  // or null
// Computes all of it, by `whole` where it cannot be cut. `waits`: `whole` does.
int compute_in_steps(Stepping* stepping, Sched* sched, Graph* graph, ComputeSched whole,
                     bool waits);
int compute_in_steps(Stepping* stepping, Backend* backend, Graph* graph, ComputeBackend whole,
                     bool waits);
void note_callback(Sched* sched, EvalCallback call, void* data);
void forget_callback(Sched* sched);

// After `graph` was computed: its ops, and what happened since the one before. `begin` is the
// event_time() of before; `stepping` is null where the graph was left whole.
void record_sched_graph(Library* library, Sched* sched, Graph* graph, uint64_t begin,
                        const Stepping* stepping);
void record_backend_graph(Library* library, Backend* backend, Graph* graph, uint64_t begin,
                          const Stepping* stepping);

// For weir replay, where WEIR_PROBE_REPLAY asks for it: a graph's nodes with all that rebuilding
// them takes. Under g.lock.
void tell_steps(Library* library, uint32_t kind, const Step* steps, int count, Graph* graph,
                When when);
// After it was handed to its backends, where that or times of ops are asked for: waits for them, so
// that the time of a graph is its own.
void wait_for_steps(Library* library, Sched* sched);
void wait_for_steps(Library* library, Backend* backend);
void make_replay_ready();
void reset_replay_after_fork();
bool replay_wanted();
// What the program is to be given for a backend's function of this name: `found`, or one of the
// probe's that notes how many threads are asked for and goes on to it.
void* note_threads(const char* name, void* found);

// --- Masks of attention (masks.cpp).

// Does the program write it before the graph is computed, and not once for all graphs?
bool is_input(const Functions& ggml, const Tensor* tensor);

// Of the graph that this thread is about to compute, or has computed last.
struct Masks {
  uint64_t open, all;  // places, of each node that uses a mask; counted for replay alone
  // Rows that attend to a place that no other row attends to (MaskValues); 0 if not all do so in
  // every mask, or if a mask cannot be read.
  uint64_t apart;
};
extern __thread Masks t_masks __attribute__((tls_model("initial-exec")));

// With events alone. Before it is computed, as the memory of a mask may then be given to others.
void look_at_masks(Library* library, Graph* graph);

// --- Indices that the host reads from a device twin (indices.cpp).

// Does the process see a device twin in place of a GPU?
bool on_twin();
// After bytes of a tensor were read, by the meant ggml. `backend` is null where the read is over.
void make_indices_valid(Backend* backend, const Tensor* from, void* data, size_t offset,
                        size_t size, size_t copies = 1, size_t stride_tensor = 0,
                        size_t stride_data = 0);
inline void make_indices_valid(const Tensor* from, void* data, size_t offset, size_t size,
                               size_t copies = 1, size_t stride_tensor = 0,
                               size_t stride_data = 0) {
  make_indices_valid(nullptr, from, data, offset, size, copies, stride_tensor, stride_data);
}
// After the program waited for `backend`; null: for an event of some backend. Nothing is written
// after a wait that could be the read's own, as the program may then free the bytes.
void make_late_indices_valid(Backend* backend);
// Where backends end: nobody waits for what was read from them.
void forget_late_indices();

// --- Memory by what it is for (buffers.cpp).

// By ggml's own numbers: 1 weights, 2 intermediate results; and 3 caches, of which it has none.
void buffer_is_for(Library* library, Buffer* buffer, int use);
void tensor_lies_in(Library* library, Buffer* buffer, const Tensor* tensor);
void buffer_ends(Buffer* buffer);

void reset_graphs_after_fork();

}  // namespace weir_probe
