// Streams, events, captures and graphs. Nothing runs: what is handed over is done when its call
// returns, and only what was captured waits for its graph to be launched.
#include <stdlib.h>

#include "gate/probes/twin/cuda/cuda.h"

namespace weir_probe::cuda_twin {
namespace {

struct StreamObject {
  uint64_t capture;  // under g_lock; the number of the one that it takes part in; 0: none
};
struct EventObject {
  uint64_t capture;  // as the stream had that it was recorded in
};
struct Node {
  streams::NodeType type;
  const void* function;  // of a kernel, as it was launched; null: a library's
};
struct Recorded {
  Node* nodes;
  size_t count, room;
};
struct Capture {
  uint64_t number;
  const void* origin;  // the stream that began it
  int device;
  Recorded* graph;
  bool broken;
  Capture* next;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Capture* g_captures;      // under g_lock
uint32_t g_capturing;     // atomic: how many there are
uint64_t g_last_capture;  // under g_lock

Capture* capture_of(uint64_t number) {
  Capture* one = number == 0 ? nullptr : g_captures;
  while (one != nullptr && one->number != number) one = one->next;
  return one;
}
// Under g_lock.
Capture* capture_on(void* stream) {
  return is_handle(stream) ? capture_of(static_cast<StreamObject*>(stream)->capture) : nullptr;
}
CaptureStatus status_of(const Capture* capture) {
  if (capture == nullptr) return k_not_captured;
  return capture->broken ? k_capture_is_broken : k_captured;
}
bool any_capture() { return __atomic_load_n(&g_capturing, __ATOMIC_ACQUIRE) != 0; }

bool append(Recorded* to, const Node& node) {
  if (!make_room(&to->nodes, &to->room, to->count + 1, 16, UINT32_MAX)) return false;
  to->nodes[to->count++] = node;
  return true;
}

Recorded* copy_of(const Recorded& from) {
  auto* graph = static_cast<Recorded*>(calloc(1, sizeof(Recorded)));
  for (size_t i = 0; graph != nullptr && i < from.count; ++i) {
    if (!append(graph, from.nodes[i])) return nullptr;
  }
  return graph;
}

void end(Recorded* graph) {
  if (graph == nullptr) return;
  free(graph->nodes);
  free(graph);
}

template <class Object>
int fresh(void** out) {
  *out = calloc(1, sizeof(Object));
  return ok_or(*out != nullptr, k_out_of_memory);
}

// Under g_lock.
int breaks(Capture* capture) {
  if (capture == nullptr) return k_ok;
  capture->broken = true;
  return fail(k_capture_unsupported);
}

int waits_for(void* event) {
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  return breaks(capture_of(static_cast<const EventObject*>(event)->capture));
}

int record(void* event, void* stream) {
  if (twin() == nullptr) return fail(k_no_device);
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  Capture* capture = capture_on(stream);
  static_cast<EventObject*>(event)->capture = capture == nullptr ? 0 : capture->number;
  return ok_or(capture == nullptr || !capture->broken, k_capture_broken);
}

int begin_capture(void* stream, Recorded* graph) {
  if (!is_handle(stream)) return fail(k_capture_unsupported);
  auto* capture = static_cast<Capture*>(calloc(1, sizeof(Capture)));
  const Locked locked(&g_lock);
  if (capture == nullptr || graph == nullptr || capture_on(stream) != nullptr) {
    free(capture);
    return fail(k_capture_unsupported);
  }
  *capture = {++g_last_capture, stream, device(), graph, false, g_captures};
  g_captures = capture;
  static_cast<StreamObject*>(stream)->capture = capture->number;
  __atomic_add_fetch(&g_capturing, 1, __ATOMIC_RELEASE);
  return k_ok;
}

}  // namespace

bool runs_now(void* stream, streams::NodeType type, int* error, const void* function) {
  if (!any_capture()) return true;
  const Locked locked(&g_lock);
  Capture* capture = capture_on(stream);
  if (capture == nullptr) return true;
  if (capture->broken) {
    *error = k_capture_broken;
  } else if (!append(capture->graph, {type, function})) {
    capture->broken = true;
    *error = k_out_of_memory;
  }
  return false;
}

int waits_on(void* stream) {
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  return breaks(capture_on(stream));
}

WEIR_RUNTIME(cudaStreamCreate, (void** out)) { return fresh<StreamObject>(out); }
WEIR_RUNTIME(cudaStreamCreateWithFlags, (void** out, unsigned)) { return fresh<StreamObject>(out); }
WEIR_RUNTIME(cudaStreamCreateWithPriority, (void** out, unsigned, int)) {
  return fresh<StreamObject>(out);
}
WEIR_RUNTIME(cudaStreamDestroy, (void* stream)) {
  if (!is_handle(stream)) return fail(k_invalid_handle);
  free(stream);
  return k_ok;
}
WEIR_RUNTIME(cudaStreamSynchronize, (void* stream)) { return waits_on(stream); }
WEIR_RUNTIME(cudaStreamQuery, (void* stream)) { return waits_on(stream); }
WEIR_RUNTIME(cudaDeviceSynchronize, ()) {
  if (twin() == nullptr) return fail(k_no_device);
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  bool any = false;
  for (Capture* one = g_captures; one != nullptr; one = one->next) {
    if (one->device != device()) continue;
    one->broken = any = true;
  }
  return ok_or(!any, k_capture_unsupported);
}
WEIR_RUNTIME(cudaStreamWaitEvent, (void* stream, void* event, unsigned)) {
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  const Capture* from = capture_of(static_cast<const EventObject*>(event)->capture);
  if (from == nullptr || !is_handle(stream)) return k_ok;
  // The stream joins the capture that the event is of, until that ends.
  static_cast<StreamObject*>(stream)->capture = from->number;
  return ok_or(!from->broken, k_capture_broken);
}

WEIR_RUNTIME(cudaEventCreate, (void** out)) { return fresh<EventObject>(out); }
WEIR_RUNTIME(cudaEventCreateWithFlags, (void** out, unsigned)) { return fresh<EventObject>(out); }
WEIR_RUNTIME(cudaEventDestroy, (void* event)) {
  free(event);
  return k_ok;
}
WEIR_RUNTIME(cudaEventRecord, (void* event, void* stream)) { return record(event, stream); }
WEIR_RUNTIME(cudaEventRecordWithFlags, (void* event, void* stream, unsigned)) {
  return record(event, stream);
}
WEIR_RUNTIME(cudaEventSynchronize, (void* event)) { return waits_for(event); }
WEIR_RUNTIME(cudaEventQuery, (void* event)) { return waits_for(event); }
WEIR_RUNTIME(cudaEventElapsedTime, (float* milliseconds, void*, void*)) {
  *milliseconds = 0.001F;  // a twin has no times
  return k_ok;
}

WEIR_RUNTIME(cudaStreamBeginCapture, (void* stream, int)) {
  auto* graph = static_cast<Recorded*>(calloc(1, sizeof(Recorded)));
  const int error = begin_capture(stream, graph);
  if (error != k_ok) free(graph);
  return error;
}
WEIR_RUNTIME(cudaStreamBeginCaptureToGraph,
             (void* stream, void* graph, const void*, const void*, size_t, int)) {
  return begin_capture(stream, static_cast<Recorded*>(graph));
}
WEIR_RUNTIME(cudaStreamEndCapture, (void* stream, void** out)) {
  const Locked locked(&g_lock);
  Capture* capture = capture_on(stream);
  *out = nullptr;
  if (capture == nullptr || capture->origin != stream) return fail(k_capture_unsupported);
  Capture** at = &g_captures;
  while (*at != capture) at = &(*at)->next;  // it is among them: capture_on found it there
  *at = capture->next;
  __atomic_sub_fetch(&g_capturing, 1, __ATOMIC_RELEASE);
  const bool broken = capture->broken;
  if (broken) {
    end(capture->graph);
  } else {
    *out = capture->graph;
  }
  free(capture);
  return ok_or(!broken, k_capture_broken);
}
WEIR_RUNTIME(cudaStreamIsCapturing, (void* stream, int* status)) {
  const Locked locked(&g_lock);
  const Capture* capture = capture_on(stream);
  *status = status_of(capture);
  return k_ok;
}
WEIR_EXPORTED int cuStreamGetCaptureInfo_v2(void* stream, int* status, uint64_t* number, void**,
                                            const void**, size_t*) {
  const Locked locked(&g_lock);
  const Capture* capture = capture_on(stream);
  *status = status_of(capture);
  *number = capture == nullptr ? 0 : capture->number;
  return k_ok;
}

WEIR_RUNTIME(cudaGraphInstantiate, (void** exec, void* graph, unsigned long long)) {
  auto* made = copy_of(*static_cast<Recorded*>(graph));
  *exec = made;
  return ok_or(made != nullptr, k_out_of_memory);
}
struct UpdateResult {
  int result;
  void *node, *from;
};
// The same shape of graph takes over: as many nodes, each of the same kind.
WEIR_RUNTIME(cudaGraphExecUpdate, (void* exec, void* graph, UpdateResult* result)) {
  auto* to = static_cast<Recorded*>(exec);
  const auto* from = static_cast<const Recorded*>(graph);
  bool same = to->count == from->count;
  for (size_t i = 0; same && i < to->count; ++i) same = to->nodes[i].type == from->nodes[i].type;
  constexpr int k_topology_changed = 2;
  *result = {same ? 0 : k_topology_changed, nullptr, nullptr};
  return ok_or(same, k_update_failed);
}
WEIR_RUNTIME(cudaGraphLaunch, (void* exec, void* stream)) {
  const auto* recorded = static_cast<const Recorded*>(exec);
  // Within a capture its nodes become nodes of the graph around it.
  int error = k_ok;
  for (size_t i = 0; i < recorded->count; ++i) {
    const Node& node = recorded->nodes[i];
    if (runs_now(stream, node.type, &error, node.function)) break;
  }
  return error == k_ok ? error : fail(error);
}
WEIR_RUNTIME(cudaGraphDestroy, (void* graph)) {
  end(static_cast<Recorded*>(graph));
  return k_ok;
}
WEIR_RUNTIME(cudaGraphExecDestroy, (void* exec)) {
  end(static_cast<Recorded*>(exec));
  return k_ok;
}
WEIR_RUNTIME(cudaGraphGetNodes, (void* graph, void** nodes, size_t* count)) {
  auto* of = static_cast<Recorded*>(graph);
  for (size_t i = 0; nodes != nullptr && i < of->count && i < *count; ++i) nodes[i] = &of->nodes[i];
  *count = of->count;
  return k_ok;
}
WEIR_RUNTIME(cudaGraphNodeGetType, (const void* node, int* type)) {
  *type = static_cast<const Node*>(node)->type;
  return k_ok;
}
// cudaKernelNodeParams of driver_types.h.
struct KernelOfNode {
  const void* function;
  streams::Size3 grid, block;
  unsigned shared;
  void **parameters, **more;
};
// As a real one says of a library's node that its kernel is none of the program's. A program may
// write into the list of parameters, and through it: nothing runs, so that nobody reads either.
WEIR_RUNTIME(cudaGraphKernelNodeGetParams, (const void* node, KernelOfNode* out)) {
  alignas(64) static char unread[32768];  // the most that CUDA takes for one launch
  static void* parameters[256];
  const auto* of = static_cast<const Node*>(node);
  if (of->type != streams::k_kernel_node) return fail(k_invalid_value);
  if (of->function == nullptr) return fail(k_invalid_function);
  const Locked locked(&g_lock);
  for (void*& one : parameters) one = unread;
  *out = {of->function, {1, 1, 1}, {1, 1, 1}, 0, parameters, nullptr};
  return k_ok;
}
WEIR_RUNTIME(cudaGraphKernelNodeSetParams, (const void*, const KernelOfNode*)) { return k_ok; }

}  // namespace weir_probe::cuda_twin
