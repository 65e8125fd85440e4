// A stand-in for AMD's HIP runtime, with its binary interface and without a device.
#include "tests/probes/hip_stand_in.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace {

struct Node {
  int type;  // hipGraphNodeType
  KernelNodeParams params;
  void* child;
};
struct Graph {
  std::vector<Node*> nodes;
};
std::map<void*, Graph*> g_capturing;  // stream -> what it is captured into
int g_polls;

bool capture(void* stream, const Node& node) {
  const auto match = g_capturing.find(stream);
  if (match == g_capturing.end()) return false;
  match->second->nodes.push_back(new Node(node));
  return true;
}

}  // namespace

extern "C" {

int hipGetDevice(int* device) { return *device = 0; }
int hipDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Stand-in GPU", static_cast<size_t>(size));
  return 0;
}
int hipDeviceComputeCapability(int* major, int* minor, int) {
  *major = 11;
  return *minor = 0;
}
int hipRuntimeGetVersion(int* version) {
  *version = 60443484;
  return 0;
}
const char* hipKernelNameRefByPtr(const void* function, void*) {
  if (function == reinterpret_cast<const void*>(&kernel_one)) return "kernel_one";
  if (function == reinterpret_cast<const void*>(&kernel_two)) return "kernel_two";
  return nullptr;
}
void kernel_one() {}
void kernel_two() {}

int hipStreamCreate(void** stream) {
  *stream = new int;
  return 0;
}
int hipStreamDestroy(void* stream) {
  delete static_cast<int*>(stream);
  return 0;
}
int hipEventCreate(void** event) { return hipStreamCreate(event); }
int hipEventRecord(void*, void*) { return 0; }
int hipEventSynchronize(void*) { return 0; }
int hipStreamSynchronize(void*) { return 0; }
int hipDeviceSynchronize() { return 0; }
int hipStreamWaitEvent(void*, void*, unsigned) { return 0; }
// Not ready twice, then done.
int hipEventQuery(void*) { return ++g_polls % 3 == 0 ? 0 : k_not_ready; }
int hipStreamQuery(void* event) { return hipEventQuery(event); }

int hipLaunchKernel(const void* function, Dim3 grid, Dim3 block, void**, size_t shared,
                    void* stream) {
  if (function == nullptr) return k_invalid;
  KernelNodeParams params{};
  params.function = const_cast<void*>(function);
  params.grid = grid;
  params.block = block;
  params.shared = static_cast<unsigned>(shared);
  capture(stream, {0, params, nullptr});
  return 0;
}
int hipModuleGetFunction(void** function, void*, const char*) {
  *function = std::malloc(1);
  return 0;
}
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void*, void**, void**) {
  return 0;
}
int hipMalloc(void** out, size_t bytes) {
  *out = bytes > size_t{1} << 40 ? nullptr : std::malloc(bytes);
  return *out == nullptr ? 2 : 0;  // hipErrorOutOfMemory
}
int hipMallocAsync(void** out, size_t bytes, void*) { return hipMalloc(out, bytes); }
int hipFree(void* at) {
  std::free(at);
  return 0;
}
int hipMemCreate(void** handle, size_t bytes, const void*, unsigned long long) {
  return hipMalloc(handle, bytes);
}
int hipMemMap(void*, size_t, size_t, void*, unsigned long long) { return 0; }
int hipMemUnmap(void*, size_t) { return 0; }
int hipMemRelease(void*) { return 0; }
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int, void* stream) {
  if (!capture(stream, {1, {}, nullptr})) std::memcpy(to, from, bytes);
  return 0;
}
// As in the real one, one exported function may use another.
int hipMemcpy(void* to, const void* from, size_t bytes, int direction) {
  hipMemcpyAsync(to, from, bytes, direction, nullptr);
  return hipStreamSynchronize(nullptr);
}
int hipMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  if (!capture(stream, {2, {}, nullptr})) std::memset(to, value, bytes);
  return 0;
}

int hipStreamIsCapturing(void* stream, int* status) {
  *status = g_capturing.count(stream) != 0 ? 1 : 0;
  return 0;
}
int hipStreamBeginCapture(void* stream, int) {
  g_capturing[stream] = new Graph;
  return 0;
}
int hipStreamEndCapture(void* stream, void** graph) {
  *graph = g_capturing.at(stream);
  g_capturing.erase(stream);
  return 0;
}
int hipGraphAddChildGraphNode(void** node, void* graph, void* const*, size_t, void* child) {
  *node = static_cast<Graph*>(graph)->nodes.emplace_back(new Node{4, {}, child});
  return 0;
}
int hipGraphGetNodes(void* graph, void** nodes, size_t* count) {
  const auto& all = static_cast<Graph*>(graph)->nodes;
  if (nodes != nullptr) std::memcpy(nodes, all.data(), all.size() * sizeof(void*));
  *count = all.size();
  return 0;
}
int hipGraphNodeGetType(void* node, int* type) {
  *type = static_cast<Node*>(node)->type;
  return 0;
}
int hipGraphKernelNodeGetParams(void* node, KernelNodeParams* params) {
  *params = static_cast<Node*>(node)->params;
  return 0;
}
int hipGraphChildGraphNodeGetGraph(void* node, void** graph) {
  *graph = static_cast<Node*>(node)->child;
  return 0;
}
int hipGraphInstantiate(void** exec, void*, void**, char*, size_t) {
  *exec = new int;
  return 0;
}
int hipGraphLaunch(void*, void*) { return 0; }
int hipGraphExecDestroy(void* exec) {
  delete static_cast<int*>(exec);
  return 0;
}

}  // extern "C"
