// The functions that stand in front of ggml's.
//
// Only what a program asks for itself is work: what ggml calls from within (the scheduler computes
// each of its parts) is part of the outer call. Waits are counted wherever they come from, as each
// of them is one; so are the sets and gets by which a copy is done, though its bytes move once.
#include <string.h>

#include "gate/probes/inject/ggml/state.h"

#define WEIR_EXPORTED extern "C" __attribute__((visibility("default")))
#define WEIR_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

namespace weir_probe {

Globals g = {PTHREAD_MUTEX_INITIALIZER, {}, false, {}};
__thread const char* t_in_graph __attribute__((tls_model("initial-exec")));
__thread const char* t_in_copy __attribute__((tls_model("initial-exec")));
__thread const char* t_in_transfer __attribute__((tls_model("initial-exec")));

namespace {

constexpr int k_success = 0;  // GGML_STATUS_SUCCESS
constexpr int k_failed = -1;  // GGML_STATUS_FAILED
constexpr Capacity k_capacity{16, 0, 0, 16, 4096, 128, 64};

bool g_fork_handled;

void before_fork() { pthread_mutex_lock(&g.lock); }
void after_fork_in_parent() { pthread_mutex_unlock(&g.lock); }
void after_fork_in_child() {
  pthread_mutex_init(&g.lock, nullptr);
  reset_library_locks_after_fork();
  reset_graphs_after_fork();
  reset_transfer_locks_after_fork();
  reset_replay_after_fork();
  detach_after_fork(&g.file);
  detach_events_after_fork();
  g.ready = false;
}

// Marks the outermost of nested calls by its frame. A frame and not a depth, because an exception
// of ggml's passes through here without running destructors (they would need a C++ runtime): the
// next call from as far up the stack finds the mark out of date.
class Within {
 public:
  Within(const char** mark, void* frame) : mark_(mark), before_(*mark) {
    const char* here = static_cast<const char*>(frame);
    outermost_ = before_ == nullptr || here >= before_;
    if (outermost_) *mark = here;
  }
  ~Within() {
    if (outermost_) *mark_ = nullptr;
  }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  [[nodiscard]] bool outermost() const { return outermost_; }

 private:
  const char** mark_;
  const char* before_;
  bool outermost_;
};

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

void tell_wait(uint32_t kind, uint64_t begin) {
  const weir_event_wait body = {begin, now_nanoseconds(), kind, 0};
  write_event(WEIR_EVENT_WAIT, UINT32_MAX, &body, sizeof body);
}

}  // namespace

void make_ready() {
  static const char* const k_names[k_counters] = {
      "graphs",      "ops",         "cpu_ops",      "splits",        "tensor_copies",
      "tensor_sets", "tensor_gets", "copied_bytes", "backend_syncs", "event_syncs"};
  pthread_mutex_lock(&g.lock);
  if (g.file.header == nullptr) {
    open_file(&g.file, "ggml", k_capacity);
    for (int i = 0; i < k_counters; ++i) g.counters[i] = add_counter(&g.file, k_names[i]);
    open_events(g.file);
    make_replay_ready();
  }
  if (!g_fork_handled) {
    g_fork_handled = true;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
  make_forked_file(&g.file);
  make_forked_events(g.file);
  __atomic_store_n(&g.ready, true, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&g.lock);
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

WEIR_EXPORTED int ggml_backend_sched_graph_compute(Sched* sched, Graph* graph) {
  WEIR_ENTER(backend_sched_graph_compute, k_failed);
  const Within within(&t_in_graph, __builtin_frame_address(0));
  if (within.outermost()) look_at_masks(library, graph);
  const uint64_t begin = event_time();
  const int status = ggml.backend_sched_graph_compute(sched, graph);
  if (within.outermost() && status == k_success) {
    record_sched_graph(library, sched, graph, begin);
  }
  return status;
}

WEIR_EXPORTED int ggml_backend_sched_graph_compute_async(Sched* sched, Graph* graph) {
  WEIR_ENTER(backend_sched_graph_compute_async, k_failed);
  const Within within(&t_in_graph, __builtin_frame_address(0));
  if (within.outermost()) look_at_masks(library, graph);
  const uint64_t begin = event_time();
  const int status = ggml.backend_sched_graph_compute_async(sched, graph);
  if (within.outermost() && status == k_success) {
    wait_for_steps(library, sched);
    record_sched_graph(library, sched, graph, begin);
  }
  return status;
}

WEIR_EXPORTED int ggml_backend_graph_compute(Backend* backend, Graph* graph) {
  WEIR_ENTER(backend_graph_compute, k_failed);
  const Within within(&t_in_graph, __builtin_frame_address(0));
  if (within.outermost()) look_at_masks(library, graph);
  const uint64_t begin = event_time();
  const int status = ggml.backend_graph_compute(backend, graph);
  if (within.outermost() && status == k_success) {
    record_backend_graph(library, backend, graph, begin);
  }
  return status;
}

WEIR_EXPORTED int ggml_backend_graph_compute_async(Backend* backend, Graph* graph) {
  WEIR_ENTER(backend_graph_compute_async, k_failed);
  const Within within(&t_in_graph, __builtin_frame_address(0));
  if (within.outermost()) look_at_masks(library, graph);
  const uint64_t begin = event_time();
  const int status = ggml.backend_graph_compute_async(backend, graph);
  if (within.outermost() && status == k_success) {
    wait_for_steps(library, backend);
    record_backend_graph(library, backend, graph, begin);
  }
  return status;
}

WEIR_EXPORTED void ggml_backend_synchronize(Backend* backend) {
  WEIR_ENTER(backend_synchronize, );
  count(k_backend_syncs);
  const uint64_t begin = event_time();
  ggml.backend_synchronize(backend);
  if (begin != 0) tell_wait(WEIR_WAIT_BACKEND, begin);
}

WEIR_EXPORTED void ggml_backend_event_synchronize(Event* event) {
  WEIR_ENTER(backend_event_synchronize, );
  count(k_event_syncs);
  const uint64_t begin = event_time();
  ggml.backend_event_synchronize(event);
  if (begin != 0) tell_wait(WEIR_WAIT_EVENT, begin);
}

WEIR_EXPORTED void ggml_backend_tensor_copy(Tensor* from, Tensor* to) {
  WEIR_ENTER(backend_tensor_copy, );
  const Within within(&t_in_copy, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_copy(library, from, to) : nullptr,
                      events_on() && ggml.nbytes != nullptr ? ggml.nbytes(from) : 0);
  ggml.backend_tensor_copy(from, to);
}

WEIR_EXPORTED void ggml_backend_tensor_copy_async(Backend* source, Backend* destination,
                                                  Tensor* from, Tensor* to) {
  WEIR_ENTER(backend_tensor_copy_async, );
  const Within within(&t_in_copy, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_copy(library, from, to) : nullptr,
                      events_on() && ggml.nbytes != nullptr ? ggml.nbytes(from) : 0);
  ggml.backend_tensor_copy_async(source, destination, from, to);
}

WEIR_EXPORTED void ggml_backend_tensor_set(Tensor* to, const void* data, size_t offset,
                                           size_t size) {
  WEIR_ENTER(backend_tensor_set, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_set(library, to, size) : nullptr, size);
  ggml.backend_tensor_set(to, data, offset, size);
}

WEIR_EXPORTED void ggml_backend_tensor_set_async(Backend* backend, Tensor* to, const void* data,
                                                 size_t offset, size_t size) {
  WEIR_ENTER(backend_tensor_set_async, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_set(library, to, size) : nullptr, size);
  ggml.backend_tensor_set_async(backend, to, data, offset, size);
}

WEIR_EXPORTED void ggml_backend_tensor_set_2d(Tensor* to, const void* data, size_t offset,
                                              size_t size, size_t copies, size_t stride_tensor,
                                              size_t stride_data) {
  WEIR_ENTER(backend_tensor_set_2d, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_set(library, to, size * copies) : nullptr,
                      size * copies);
  ggml.backend_tensor_set_2d(to, data, offset, size, copies, stride_tensor, stride_data);
}

WEIR_EXPORTED void ggml_backend_tensor_set_2d_async(Backend* backend, Tensor* to, const void* data,
                                                    size_t offset, size_t size, size_t copies,
                                                    size_t stride_tensor, size_t stride_data) {
  WEIR_ENTER(backend_tensor_set_2d_async, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_set(library, to, size * copies) : nullptr,
                      size * copies);
  ggml.backend_tensor_set_2d_async(backend, to, data, offset, size, copies, stride_tensor,
                                   stride_data);
}

WEIR_EXPORTED void ggml_backend_tensor_get(const Tensor* from, void* data, size_t offset,
                                           size_t size) {
  WEIR_ENTER(backend_tensor_get, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_get(library, from, size) : nullptr, size);
  ggml.backend_tensor_get(from, data, offset, size);
}

WEIR_EXPORTED void ggml_backend_tensor_get_async(Backend* backend, const Tensor* from, void* data,
                                                 size_t offset, size_t size) {
  WEIR_ENTER(backend_tensor_get_async, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_get(library, from, size) : nullptr, size);
  ggml.backend_tensor_get_async(backend, from, data, offset, size);
}

WEIR_EXPORTED void ggml_backend_tensor_get_2d(const Tensor* from, void* data, size_t offset,
                                              size_t size, size_t copies, size_t stride_tensor,
                                              size_t stride_data) {
  WEIR_ENTER(backend_tensor_get_2d, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_get(library, from, size * copies) : nullptr,
                      size * copies);
  ggml.backend_tensor_get_2d(from, data, offset, size, copies, stride_tensor, stride_data);
}

WEIR_EXPORTED void ggml_backend_tensor_get_2d_async(Backend* backend, const Tensor* from,
                                                    void* data, size_t offset, size_t size,
                                                    size_t copies, size_t stride_tensor,
                                                    size_t stride_data) {
  WEIR_ENTER(backend_tensor_get_2d_async, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_get(library, from, size * copies) : nullptr,
                      size * copies);
  ggml.backend_tensor_get_2d_async(backend, from, data, offset, size, copies, stride_tensor,
                                   stride_data);
}

WEIR_EXPORTED void ggml_backend_tensor_memset(Tensor* to, uint8_t value, size_t offset,
                                              size_t size) {
  WEIR_ENTER(backend_tensor_memset, );
  const Within within(&t_in_transfer, __builtin_frame_address(0));
  const Moving moving(within.outermost() ? record_fill(library, to, size) : nullptr, size);
  ggml.backend_tensor_memset(to, value, offset, size);
}

WEIR_EXPORTED void* ggml_backend_reg_get_proc_address(Registry* registry, const char* name) {
  WEIR_ENTER(backend_reg_get_proc_address, nullptr);
  return note_threads(name, ggml.backend_reg_get_proc_address(registry, name));
}
