// Streams, events, captures and graphs. Work is done when its call returns; captured work becomes
// nodes of a graph, and launching the graph does nothing.
#include <stdlib.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

struct StreamObject {
  uint64_t capture;   // under g_lock; number of the capture that it takes part in; 0: none
  LastKernel kernel;  // atomic, each member
};
struct EventObject {
  uint64_t capture;  // number of its stream's capture when it was recorded; 0: none
};
struct Node {
  NodeType type;
  const void* function;  // the program's kernel; null for a library's
};
struct Graph {
  Node* nodes;
  size_t count, room;
};
struct Capture {
  uint64_t number;
  const void* origin;  // the stream that started it
  int device;
  Graph* graph;
  bool broken;
  Capture* next;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Capture* g_captures;       // under g_lock
uint32_t g_capturing;      // atomic: number of captures
uint64_t g_last_capture;   // under g_lock
LastKernel g_last_kernel;  // atomic, each member; of all streams
LastKernel g_of_default;   // the same; of all default streams

// Finds a capture by its number; null if it has ended. Needs g_lock.
Capture* find_capture(uint64_t number) {
  if (number == 0) return nullptr;
  Capture* capture = g_captures;
  while (capture != nullptr && capture->number != number) capture = capture->next;
  return capture;
}
// The capture that a stream takes part in, or null. Needs g_lock.
Capture* is_capturing(void* stream) {
  return is_handle(stream) ? find_capture(static_cast<StreamObject*>(stream)->capture) : nullptr;
}
CaptureStatus capture_status(const Capture* capture) {
  if (capture == nullptr) return k_not_captured;
  return capture->broken ? k_capture_is_broken : k_captured;
}
bool any_capture() { return __atomic_load_n(&g_capturing, __ATOMIC_ACQUIRE) != 0; }

// Appends a node; false without memory.
bool append(Graph* graph, const Node& node) {
  if (!make_room(&graph->nodes, &graph->room, graph->count + 1, 16, UINT32_MAX)) return false;
  graph->nodes[graph->count] = node;
  ++graph->count;
  return true;
}

// Copies a graph; null without memory.
Graph* copy_graph(const Graph& from) {
  auto* graph = static_cast<Graph*>(calloc(1, sizeof(Graph)));
  for (size_t i = 0; graph != nullptr && i < from.count; ++i) {
    if (!append(graph, from.nodes[i])) return nullptr;
  }
  return graph;
}

void free_graph(Graph* graph) {
  if (graph == nullptr) return;
  free(graph->nodes);
  free(graph);
}

template <class Object>
int create(void** out) {
  *out = calloc(1, sizeof(Object));
  return success_if(*out != nullptr, k_out_of_memory);
}

// Invalidates a capture, and fails; k_ok where there is none. Needs g_lock.
int break_capture(Capture* capture) {
  if (capture == nullptr) return k_ok;
  capture->broken = true;
  return fail(k_capture_unsupported);
}

// Checks a call that waits for an event, which invalidates the event's capture.
int check_event_wait(void* event) {
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  return break_capture(find_capture(static_cast<const EventObject*>(event)->capture));
}

// Records an event in a stream. It belongs to the stream's capture if there is one.
int record_event(void* event, void* stream) {
  if (twin() == nullptr) return fail(k_no_device);
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  Capture* capture = is_capturing(stream);
  static_cast<EventObject*>(event)->capture = capture == nullptr ? 0 : capture->number;
  return success_if(capture == nullptr || !capture->broken, k_capture_broken);
}

// Starts to capture the stream's work into `graph`; returns the API's error code. The default
// stream cannot be captured.
int begin_capture(void* stream, Graph* graph) {
  if (!is_handle(stream)) return fail(k_capture_unsupported);
  auto* capture = static_cast<Capture*>(calloc(1, sizeof(Capture)));
  const Locked locked(&g_lock);
  if (capture == nullptr || graph == nullptr || is_capturing(stream) != nullptr) {
    free(capture);
    return fail(k_capture_unsupported);
  }
  ++g_last_capture;
  capture->number = g_last_capture;
  capture->origin = stream;
  capture->device = device();
  capture->graph = graph;
  capture->next = g_captures;
  g_captures = capture;
  static_cast<StreamObject*>(stream)->capture = capture->number;
  __atomic_add_fetch(&g_capturing, 1, __ATOMIC_RELEASE);
  return k_ok;
}

}  // namespace

// Returns true if work on the stream runs now. Else it is added as a node to the stream's capture.
bool runs_now(void* stream, NodeType type, int* error, const void* function) {
  if (!any_capture()) return true;
  const Locked locked(&g_lock);
  Capture* capture = is_capturing(stream);
  if (capture == nullptr) return true;
  if (capture->broken) {
    *error = k_capture_broken;
  } else if (!append(capture->graph, {type, function})) {
    capture->broken = true;
    *error = k_out_of_memory;
  }
  return false;
}

void note_kernel(void* stream, const char* name) {
  LastKernel* of_stream =
      is_handle(stream) ? &static_cast<StreamObject*>(stream)->kernel : &g_of_default;
  LastKernel* const both[] = {of_stream, &g_last_kernel};
  for (LastKernel* last : both) {
    __atomic_store_n(&last->writes, g_writes.count(), __ATOMIC_RELAXED);
    __atomic_store_n(&last->name, name, __ATOMIC_RELEASE);
  }
}
LastKernel last_kernel(void* stream) {
  const LastKernel* last =
      is_handle(stream) ? &static_cast<const StreamObject*>(stream)->kernel : &g_of_default;
  if (__atomic_load_n(&last->name, __ATOMIC_ACQUIRE) == nullptr) last = &g_last_kernel;
  return {__atomic_load_n(&last->name, __ATOMIC_ACQUIRE),
          __atomic_load_n(&last->writes, __ATOMIC_RELAXED)};
}
int run_library_call(void* stream, const char* name, int failure) {
  int error = k_ok;
  if (runs_now(stream, k_kernel_node, &error)) note_kernel(stream, name);
  return error == k_ok ? int{k_ok} : failure;
}

int check_wait(void* stream) {
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  return break_capture(is_capturing(stream));
}

// Succeeds if the graphs have the same shape: as many nodes, each of the same type.
bool can_update(const void* exec, const void* graph) {
  const auto* to = static_cast<const Graph*>(exec);
  const auto* from = static_cast<const Graph*>(graph);
  bool has_same_shape = to->count == from->count;
  for (size_t i = 0; has_same_shape && i < to->count; ++i) {
    has_same_shape = to->nodes[i].type == from->nodes[i].type;
  }
  return has_same_shape;
}

WEIR_RUNTIME(StreamCreate, (void** out)) { return create<StreamObject>(out); }
WEIR_RUNTIME(StreamCreateWithFlags, (void** out, unsigned)) { return create<StreamObject>(out); }
WEIR_RUNTIME(StreamCreateWithPriority, (void** out, unsigned, int)) {
  return create<StreamObject>(out);
}
WEIR_RUNTIME(StreamDestroy, (void* stream)) {
  if (!is_handle(stream)) return fail(k_invalid_handle);
  free(stream);
  return k_ok;
}
WEIR_RUNTIME(StreamSynchronize, (void* stream)) { return check_wait(stream); }
WEIR_RUNTIME(StreamQuery, (void* stream)) { return check_wait(stream); }
// Invalidates all captures of the device, and fails if there are any.
WEIR_RUNTIME(DeviceSynchronize, ()) {
  if (twin() == nullptr) return fail(k_no_device);
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  bool any = false;
  for (Capture* capture = g_captures; capture != nullptr; capture = capture->next) {
    if (capture->device != device()) continue;
    capture->broken = true;
    any = true;
  }
  return success_if(!any, k_capture_unsupported);
}
WEIR_RUNTIME(StreamWaitEvent, (void* stream, void* event, unsigned)) {
  if (!any_capture()) return k_ok;
  const Locked locked(&g_lock);
  const Capture* capture = find_capture(static_cast<const EventObject*>(event)->capture);
  if (capture == nullptr || !is_handle(stream)) return k_ok;
  // The stream joins the event's capture, until that ends.
  static_cast<StreamObject*>(stream)->capture = capture->number;
  return success_if(!capture->broken, k_capture_broken);
}

WEIR_RUNTIME(EventCreate, (void** out)) { return create<EventObject>(out); }
WEIR_RUNTIME(EventCreateWithFlags, (void** out, unsigned)) { return create<EventObject>(out); }
WEIR_RUNTIME(EventDestroy, (void* event)) {
  free(event);
  return k_ok;
}
WEIR_RUNTIME(EventRecord, (void* event, void* stream)) { return record_event(event, stream); }
WEIR_RUNTIME(EventRecordWithFlags, (void* event, void* stream, unsigned)) {
  return record_event(event, stream);
}
WEIR_RUNTIME(EventSynchronize, (void* event)) { return check_event_wait(event); }
WEIR_RUNTIME(EventQuery, (void* event)) { return check_event_wait(event); }
// A twin has no times. Triton divides its budget for autotuning by this one: it launches each
// configuration a few times, not thousands.
WEIR_RUNTIME(EventElapsedTime, (float* milliseconds, void*, void*)) {
  *milliseconds = 20;
  return k_ok;
}

// Events of another process have happened: its work was done when its call returned.
struct EventHandle {  // cudaIpcEventHandle_t
  char bytes[64];
};
WEIR_RUNTIME(IpcGetEventHandle, (EventHandle * out, void*)) {
  *out = {};
  return k_ok;
}
WEIR_RUNTIME(IpcOpenEventHandle, (void** out, EventHandle)) { return create<EventObject>(out); }

// --- Priorities, and functions of the host.
WEIR_RUNTIME(DeviceGetStreamPriorityRange, (int* least, int* greatest)) {
  constexpr int k_greatest_priority = -5;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = k_greatest_priority;
  return k_ok;
}
WEIR_RUNTIME(StreamGetPriority, (void*, int* priority)) {
  *priority = 0;
  return k_ok;
}
WEIR_RUNTIME(StreamGetFlags, (void*, unsigned* flags)) {
  *flags = 0;
  return k_ok;
}
WEIR_RUNTIME(LaunchHostFunc, (void* stream, void (*function)(void*), void* data)) {
  int error = k_ok;
  if (runs_now(stream, k_host_node, &error)) function(data);
  return error == k_ok ? error : fail(error);
}
WEIR_RUNTIME(StreamAddCallback,
             (void* stream, void (*callback)(void*, int, void*), void* data, unsigned)) {
  if (const int error = check_wait(stream)) return error;
  callback(stream, k_ok, data);
  return k_ok;
}

WEIR_RUNTIME(StreamBeginCapture, (void* stream, int)) {
  auto* graph = static_cast<Graph*>(calloc(1, sizeof(Graph)));
  const int error = begin_capture(stream, graph);
  if (error != k_ok) free(graph);
  return error;
}
WEIR_RUNTIME(StreamBeginCaptureToGraph,
             (void* stream, void* graph, const void*, const void*, size_t, int)) {
  return begin_capture(stream, static_cast<Graph*>(graph));
}
// Ends the capture that this stream started, and returns its graph unless it was invalidated.
WEIR_RUNTIME(StreamEndCapture, (void* stream, void** out)) {
  const Locked locked(&g_lock);
  Capture* capture = is_capturing(stream);
  *out = nullptr;
  if (capture == nullptr || capture->origin != stream) return fail(k_capture_unsupported);
  Capture** link = &g_captures;
  while (*link != capture) link = &(*link)->next;  // the list contains it
  *link = capture->next;
  __atomic_sub_fetch(&g_capturing, 1, __ATOMIC_RELEASE);
  const bool broken = capture->broken;
  if (broken) {
    free_graph(capture->graph);
  } else {
    *out = capture->graph;
  }
  free(capture);
  return success_if(!broken, k_capture_broken);
}
WEIR_RUNTIME(ThreadExchangeStreamCaptureMode, (int* mode)) {
  static __thread int t_mode;
  const int before = t_mode;
  t_mode = *mode;
  *mode = before;
  return k_ok;
}
WEIR_RUNTIME(StreamIsCapturing, (void* stream, int* status)) {
  const Locked locked(&g_lock);
  const Capture* capture = is_capturing(stream);
  *status = capture_status(capture);
  return k_ok;
}
int capture_info(void* stream, int* status, uint64_t* number, void** graph, size_t* dependencies) {
  const Locked locked(&g_lock);
  Capture* capture = is_capturing(stream);
  *status = capture_status(capture);
  if (number != nullptr) *number = capture == nullptr ? 0 : capture->number;
  if (graph != nullptr) *graph = capture == nullptr ? nullptr : capture->graph;
  if (dependencies != nullptr) *dependencies = 0;
  return k_ok;
}
WEIR_DRIVER(StreamGetCaptureInfo_v2, (void* stream, int* status, uint64_t* number, void** graph,
                                      const void**, size_t* dependencies)) {
  return capture_info(stream, status, number, graph, dependencies);
}

WEIR_RUNTIME(GraphInstantiate, (void** exec, void* graph, unsigned long long)) {
  Graph* copy = copy_graph(*static_cast<Graph*>(graph));
  *exec = copy;
  return success_if(copy != nullptr, k_out_of_memory);
}
WEIR_RUNTIME(GraphInstantiateWithFlags, (void** exec, void* graph, unsigned long long flags)) {
  return WEIR_CALL(GraphInstantiate)(exec, graph, flags);
}
// Within a capture, the nodes are copied to the captured graph. Else the kernels have run.
WEIR_RUNTIME(GraphLaunch, (void* exec, void* stream)) {
  const auto* graph = static_cast<const Graph*>(exec);
  int error = k_ok;
  for (size_t i = 0; i < graph->count; ++i) {
    const Node& node = graph->nodes[i];
    const bool runs = runs_now(stream, node.type, &error, node.function);
    const Function* function = runs && node.function ? find_function(node.function) : nullptr;
    if (function != nullptr) note_kernel(stream, function->name);
  }
  return error == k_ok ? error : fail(error);
}
WEIR_RUNTIME(GraphDestroy, (void* graph)) {
  free_graph(static_cast<Graph*>(graph));
  return k_ok;
}
WEIR_RUNTIME(GraphExecDestroy, (void* exec)) {
  free_graph(static_cast<Graph*>(exec));
  return k_ok;
}
WEIR_RUNTIME(GraphGetNodes, (void* handle, void** nodes, size_t* count)) {
  auto* graph = static_cast<Graph*>(handle);
  for (size_t i = 0; nodes != nullptr && i < graph->count && i < *count; ++i) {
    nodes[i] = &graph->nodes[i];
  }
  *count = graph->count;
  return k_ok;
}
WEIR_RUNTIME(GraphNodeGetType, (const void* node, int* type)) {
  *type = static_cast<const Node*>(node)->type;
  return k_ok;
}
// Like a real driver, it fails for a node of a library: the kernel is not the program's. A program
// may write to the list of parameters and through its pointers; nothing reads either.
WEIR_RUNTIME(GraphKernelNodeGetParams, (const void* node, KernelNodeParams* out)) {
  alignas(64) static char unread[32768];  // the most bytes of parameters that CUDA allows
  static void* parameters[256];
  const auto* kernel = static_cast<const Node*>(node);
  if (kernel->type != k_kernel_node) return fail(k_invalid_value);
  if (kernel->function == nullptr) return fail(k_invalid_function);
  const Locked locked(&g_lock);
  for (void*& parameter : parameters) parameter = unread;
  *out = {};
  out->function = kernel->function;
  out->grid = out->block = {1, 1, 1};
  out->parameters = parameters;
  return k_ok;
}
WEIR_RUNTIME(GraphKernelNodeSetParams, (const void*, const KernelNodeParams*)) { return k_ok; }

}  // namespace weir_probe::runtime_twin
