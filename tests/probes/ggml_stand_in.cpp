// A ggml of a few functions, for what the real one cannot be brought to do: graphs that are known
// by hand, tensors laid out in another way, functions that are not there, two of them in a process.
//
// Every function checks that what it gets is its own, so a call that went to another copy shows.
#include "tests/probes/ggml_stand_in.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

// As tensors have been since November 2024.
struct Tensor {
  int type;
  void* buffer;
  long long ne[4];
  size_t nb[4];
  int op;
  int params[16];
  int flags;
  Tensor* src[10];
  Tensor* view_src;
  size_t view_offs;
  void* data;
#ifdef STAND_IN_LONG_NAMES
  char name[160];
#else
  char name[64];
#endif
  void* extra;
  char padding[8];
};
static_assert(sizeof(Tensor) == 256 + sizeof(Tensor::name) + 16);

struct Device {
  int type;
  const char* name;
};
struct Backend {
  const void* owner;
  Device* device;
};
struct BufferType {
  const char* name;
};
struct Buffer {
  BufferType* type;
};
struct Node {
  Tensor tensor;
  const char* op;
  Backend* backend;
};
struct Graph {
  const void* owner;
  int count;
  Node* nodes;
};
using EvalCallback = bool (*)(Tensor*, bool, void*);

namespace {

const char g_me = 0;
Device g_devices[] = {{0, "CPU"}, {1, "GPU0"}};
Backend g_cpu{&g_me, &g_devices[0]};
Backend g_gpu{&g_me, &g_devices[1]};
BufferType g_host_type{"CPU"}, g_gpu_type{"GPU0"};
Buffer g_host{&g_host_type}, g_gpu_buffer{&g_gpu_type};
unsigned long long g_calls[8];
EvalCallback g_callback;  // callback of the one scheduler
void* g_callback_data;

// The data that an asynchronous read writes when the program waits.
struct Late {
  void* data;
  size_t size;
};
Late g_late;
constexpr int k_garbage = 0x7f;

void mine(const void* owner) {
  if (owner == &g_me) return;
  std::fprintf(stderr, "a call went to the wrong ggml\n");
  std::abort();
}

Tensor make(int type, long long a, long long b, Buffer* buffer) {
  Tensor tensor{};
  tensor.type = type;
  tensor.ne[0] = a;
  tensor.ne[1] = b;
  tensor.ne[2] = tensor.ne[3] = 1;
  tensor.buffer = buffer;
  tensor.data = &g_calls;
  return tensor;
}

void add(Graph* graph, const char* op, Backend* backend, Tensor result, Tensor* first,
         Tensor* second, int flags = 16) {
  Node& node = graph->nodes[graph->count++];
  node.op = op;
  node.backend = backend;
  node.tensor = result;
  node.tensor.src[0] = first;
  node.tensor.src[1] = second;
  node.tensor.flags = flags;
}

[[maybe_unused]] Node* node_of(const void* tensor) {
  return reinterpret_cast<Node*>(const_cast<void*>(tensor));  // its first member
}

}  // namespace

extern "C" {

// The library's own: what scenes are made of.
StandIn stand_in() {
  static Tensor weights = make(2, 256, 768, &g_gpu_buffer);
  static Tensor table = make(1, 256, 512, &g_host);
  static Node nodes[4][256];
  static Graph graphs[4] = {
      {nullptr, 0, nodes[0]}, {nullptr, 0, nodes[1]}, {nullptr, 0, nodes[2]}, {&g_me, 0, nodes[3]}};
  static bool is_built = false;
  for (const long long rows : {1LL, 7LL}) {
    Graph& graph = graphs[rows == 1 ? 0 : 1];
    if (is_built) break;
    graph.owner = &g_me;
    Tensor* tokens = new Tensor(make(26, rows, 1, &g_host));
    add(&graph, "GET_ROWS", &g_cpu, make(0, 256, rows, &g_host), &table, tokens);
    Tensor* row = &graph.nodes[0].tensor;
    add(&graph, "MUL_MAT", &g_gpu, make(0, 768, rows, &g_gpu_buffer), &weights, row);
    add(&graph, "RESHAPE", &g_gpu, make(0, 768, rows, &g_gpu_buffer), row, nullptr);
    add(&graph, "SWIGLU", &g_gpu, make(0, 768, rows, &g_gpu_buffer), row, row);
    add(&graph, "ADD", &g_gpu, make(0, 768, 0, &g_gpu_buffer), row, row);       // empty
    add(&graph, "SCALE", &g_gpu, make(0, 768, 1, &g_gpu_buffer), row, row, 0);  // not taken
    add(&graph, "ADD", &g_gpu, make(0, 768, rows, &g_gpu_buffer), row, row);
  }
  static const char* const k_ops[] = {"MUL_MAT", "ADD", "RMS_NORM", "MUL", "VIEW", "ROPE"};
  static Tensor rows[6];
  for (int i = 0; i < 240 && !is_built; ++i) {
    rows[i % 6] = make(0, 256 * (1 + i % 6), 1, &g_gpu_buffer);
    add(&graphs[2], k_ops[i % 6], &g_gpu, rows[i % 6], &weights, &rows[i % 6]);
  }
  graphs[2].owner = &g_me;
  static float mask_values[3 * 8];
  static Tensor mask = make(0, 8, 3, &g_host);
  if (!is_built) {
    mask.flags = 1;  // an input
    mask.data = mask_values;
    add(&graphs[3], "GET_ROWS", &g_cpu, make(0, 256, 3, &g_host), &table, nullptr);
    add(&graphs[3], "FLASH_ATTN_EXT", &g_gpu, make(0, 256, 3, &g_gpu_buffer), nullptr, nullptr);
    nodes[3][1].tensor.src[3] = &mask;
  }
  static Node number_nodes[5];
  if (!is_built) {
    Graph numbers{&g_me, 0, number_nodes};
    add(&numbers, "ARGSORT", &g_gpu, make(26, 8, 3, &g_gpu_buffer), nullptr, nullptr);
    Tensor top = make(26, 2, 3, &g_gpu_buffer);
    top.nb[1] = 8 * sizeof(int);
    top.view_src = &number_nodes[0].tensor;
    add(&numbers, "VIEW", &g_gpu, top, &number_nodes[0].tensor, nullptr);
    add(&numbers, "ARGMAX", &g_gpu, make(26, 1, 1, &g_gpu_buffer), nullptr, nullptr);
    add(&numbers, "NONE", &g_gpu, make(26, 4, 1, &g_gpu_buffer), nullptr, nullptr);
    add(&numbers, "ARGSORT", &g_cpu, make(26, 8, 1, &g_host), nullptr, nullptr);
  }
  is_built = true;
  StandIn out{};
  out.sched = const_cast<char*>(&g_me);
  out.cpu = &g_cpu;
  out.gpu = &g_gpu;
  out.graph_of_1 = &graphs[0];
  out.graph_of_7 = &graphs[1];
  out.graph_of_many = &graphs[2];
  out.graph_of_3 = &graphs[3];
  out.mask = mask_values;
  out.on_host = &graphs[0].nodes[0].tensor;
  out.on_gpu = &graphs[0].nodes[1].tensor;
  out.sorted = &number_nodes[0].tensor;
  out.top = &number_nodes[1].tensor;
  out.largest = &number_nodes[2].tensor;
  out.given = &number_nodes[3].tensor;
  out.sorted_on_host = &number_nodes[4].tensor;
  out.calls = g_calls;
  return out;
}

const char* ggml_backend_name(Backend* backend) { return backend->device->name; }
void ggml_backend_synchronize(Backend* backend) {
  mine(backend->owner);
  __atomic_fetch_add(&g_calls[k_synchronized], 1, __ATOMIC_RELAXED);
  if (g_late.data != nullptr) std::memset(g_late.data, k_garbage, g_late.size);
  g_late = {};
}
int ggml_backend_graph_compute_async(Backend* backend, Graph* graph) {
  mine(backend->owner);
  mine(graph->owner);
  __atomic_fetch_add(&g_calls[k_computed], 1, __ATOMIC_RELAXED);
  return 0;
}
int ggml_backend_graph_compute(Backend* backend, Graph* graph) {
  const int status = ggml_backend_graph_compute_async(backend, graph);
  ggml_backend_synchronize(backend);
  return status;
}
void ggml_backend_tensor_set(Tensor*, const void*, size_t, size_t) {
  __atomic_fetch_add(&g_calls[k_set], 1, __ATOMIC_RELAXED);
}
void ggml_backend_tensor_set_async(Backend* backend, Tensor* tensor, const void* data,
                                   size_t offset, size_t size) {
  ggml_backend_synchronize(backend);
  ggml_backend_tensor_set(tensor, data, offset, size);
}
void ggml_backend_tensor_get(const Tensor*, void* data, size_t, size_t size) {
  __atomic_fetch_add(&g_calls[k_got], 1, __ATOMIC_RELAXED);
  if (data != nullptr) std::memset(data, k_garbage, size);
}
void ggml_backend_tensor_get_2d(const Tensor*, void* data, size_t, size_t size, size_t copies,
                                size_t, size_t stride) {
  for (size_t i = 0; i < copies; ++i) {
    std::memset(static_cast<char*>(data) + i * stride, k_garbage, size);
  }
}
void ggml_backend_tensor_get_async(Backend*, const Tensor*, void* data, size_t, size_t size) {
  g_late = {data, size};
}
void ggml_backend_tensor_copy(Tensor*, Tensor* to) {
  __atomic_fetch_add(&g_calls[k_copied], 1, __ATOMIC_RELAXED);
  ggml_backend_tensor_set(to, nullptr, 0, 1024);
}
Graph ggml_graph_view(Graph* graph, int from, int to) {
  return {graph->owner, to - from, graph->nodes + from};
}
// As ggml's scheduler does a part of a graph.
int compute_part(Backend* backend, Graph* graph, int from, int to) {
  if (g_callback == nullptr) return ggml_backend_graph_compute_async(backend, graph);
  for (int first = from; first < to; ++first) {
    int last = first;
    bool need = g_callback(&graph->nodes[last].tensor, true, g_callback_data);
    while (!need && last < to - 1) {
      need = g_callback(&graph->nodes[++last].tensor, true, g_callback_data);
    }
    Graph view = ggml_graph_view(graph, first, last + 1);
    ggml_backend_graph_compute_async(backend, &view);
    ggml_backend_synchronize(backend);
    if (need && !g_callback(&graph->nodes[last].tensor, false, g_callback_data)) break;
    first = last;
  }
  return 0;
}
// Two parts, one copy between them.
int ggml_backend_sched_graph_compute_async(void* sched, Graph* graph) {
  mine(sched);
  if (g_calls[k_fail] != 0) return -2;
  compute_part(&g_cpu, graph, 0, 1);
  ggml_backend_synchronize(&g_cpu);
  ggml_backend_tensor_copy(&graph->nodes[0].tensor, &graph->nodes[1].tensor);
  return compute_part(&g_gpu, graph, 1, graph->count);
}
int ggml_backend_sched_graph_compute(void* sched, Graph* graph) {
  const int status = ggml_backend_sched_graph_compute_async(sched, graph);
  ggml_backend_synchronize(&g_cpu);
  ggml_backend_synchronize(&g_gpu);
  return status;
}
size_t ggml_nbytes(const Tensor* tensor) {
  return static_cast<size_t>(tensor->ne[0] * tensor->ne[1]) * 4;
}

#ifndef STAND_IN_OLD
void ggml_backend_sched_set_eval_callback(void* sched, EvalCallback callback, void* data) {
  mine(sched);
  g_callback = callback;
  g_callback_data = data;
}
Backend* ggml_backend_sched_get_tensor_backend(void*, Tensor* tensor) {
  return node_of(tensor)->backend;
}
int ggml_backend_sched_get_n_splits(void*) { return 2; }
Device* ggml_backend_get_device(Backend* backend) { return backend->device; }
int ggml_backend_dev_type(Device* device) { return device->type; }
const char* ggml_backend_dev_description(Device*) { return "a stand-in"; }
BufferType* ggml_backend_buffer_get_type(Buffer* buffer) { return buffer->type; }
const char* ggml_backend_buft_name(BufferType* type) { return type->name; }
// Memory of the CPU; that of GPUs is no host's.
bool ggml_backend_buft_is_host(BufferType* type) { return std::strcmp(type->name, "CPU") == 0; }
int ggml_graph_n_nodes(Graph* graph) { return graph->count; }
Tensor* ggml_graph_node(Graph* graph, int i) { return &graph->nodes[i].tensor; }
const char* ggml_op_desc(const Tensor* tensor) { return node_of(tensor)->op; }
const char* ggml_type_name(int type) {
  if (type == 0) return "f32";
  if (type == 1) return "f16";
  return type == 2 ? "q4_0" : "i32";
}
size_t ggml_type_size(int type) { return static_cast<size_t>(type) + 1; }
size_t ggml_element_size(const Tensor* tensor) { return ggml_type_size(tensor->type); }
long long ggml_nelements(const Tensor* tensor) {
  return tensor->ne[0] * tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
}
const char* ggml_get_name(const Tensor* tensor) { return tensor->name; }
void* ggml_get_data(const Tensor* tensor) { return tensor->data; }
size_t ggml_tensor_overhead() {
#ifdef STAND_IN_OTHER_LAYOUT
  return 32 + 320;
#else
  return 32 + sizeof(Tensor);
#endif
}
#endif

}  // extern "C"
