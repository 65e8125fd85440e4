// What the parts of the ggml probe share.
#pragma once

#include <pthread.h>

#include "gate/probes/inject/ggml/library.h"
#include "gate/probes/inject/writer/events.h"
#include "gate/probes/inject/writer/file.h"

namespace weir_probe {

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
  k_counters
};

struct Globals {
  pthread_mutex_t lock;  // of the file's tables
  File file;
  bool ready;  // atomic: the file is made, and this process's own
  uint64_t* counters[k_counters];
};
extern Globals g;

// The frame of the outermost call that this thread is in, or null. Calls from within one of ggml's
// own are part of it, not work of their own. initial-exec: read in two instructions, and no part of
// the C library that could allocate.
extern __thread const char* t_in_graph __attribute__((tls_model("initial-exec")));
extern __thread const char* t_in_copy __attribute__((tls_model("initial-exec")));
extern __thread const char* t_in_transfer __attribute__((tls_model("initial-exec")));

// Makes the file before the first count, also in a forked child.
void make_ready();
inline void ensure_ready() {
  if (!__atomic_load_n(&g.ready, __ATOMIC_ACQUIRE)) make_ready();
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

// After `graph` was computed: its ops, and what happened since the one before. `begin` is the
// event_time() of before.
void record_sched_graph(Library* library, Sched* sched, Graph* graph, uint64_t begin);
void record_backend_graph(Library* library, Backend* backend, Graph* graph, uint64_t begin);

// For weir replay, where WEIR_PROBE_REPLAY asks for it: a graph's nodes with all that rebuilding
// them takes. Under g.lock.
void tell_steps(Library* library, uint32_t kind, const Step* steps, int count, Graph* graph,
                When when);
// After it was handed to its backends: waits for them, so that the time of a graph is its own.
void wait_for_steps(Library* library, Sched* sched);
void wait_for_steps(Library* library, Backend* backend);
// Before it is computed, as the memory of a mask may then be given to others.
void look_at_masks(Library* library, Graph* graph);
void make_replay_ready();
void reset_replay_after_fork();
// What the program is to be given for a backend's function of this name: `found`, or one of the
// probe's that notes how many threads are asked for and goes on to it.
void* note_threads(const char* name, void* found);

// Before the bytes move. Where it is counted; null when it is part of another transfer.
weir_probe_transfer* record_copy(Library* library, const Tensor* from, const Tensor* to);
weir_probe_transfer* record_set(Library* library, const Tensor* to, uint64_t bytes);
weir_probe_transfer* record_get(Library* library, const Tensor* from, uint64_t bytes);
weir_probe_transfer* record_fill(Library* library, const Tensor* to, uint64_t bytes);

void reset_graphs_after_fork();
void reset_transfer_locks_after_fork();

}  // namespace weir_probe
