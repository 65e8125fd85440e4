// A stand-in for AMD's HIP runtime, with its binary interface and without a device.
#include "tests/probes/hip_stand_in.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace {

std::map<void*, unsigned long long> g_captured;  // stream -> the number of its capture
unsigned long long g_captures;
std::map<void*, void*> g_streams;  // of handles of libraries
std::set<void*> g_memory;          // of the device
std::mutex g_mutex;                // of g_memory
int g_polls;

// As a library's call does that computes: two kernels.
int multiply(void* stream) {
  const void* const of_the_library = reinterpret_cast<const void*>(&multiply);
  hipLaunchKernel(of_the_library, {1, 1, 1}, {64, 1, 1}, nullptr, 0, stream);
  return hipLaunchKernel(of_the_library, {1, 1, 1}, {64, 1, 1}, nullptr, 0, stream);
}

}  // namespace

extern "C" {

int hipGetDevice(int* device) { return *device = 0; }
int hipDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Stand-in GPU", static_cast<size_t>(size));
  return 0;
}
int hipDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 1 : attribute;  // it is integrated
  return 0;
}
int hipRuntimeGetVersion(int* version) {
  *version = 60443484;
  return 0;
}
int hipGetLastError() { return 0; }
int hipPointerGetAttribute(void* value, int, void* at) {
  const std::lock_guard hold(g_mutex);
  *static_cast<int*>(value) = g_memory.contains(at) ? 2 : 0;
  return 0;
}
int hipFuncGetAttributes(void* attributes, const void*) {
  const struct {
    int binary_version = 0, cache_mode = 0;
    size_t const_bytes = 0, local_bytes = 180;
    int max_dynamic_shared = 0, max_threads = 1024, registers = 128, carveout = 0, ptx = 0;
    size_t shared_bytes = 512;
  } answer;
  std::memcpy(attributes, &answer, sizeof answer);
  return 0;
}
int hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t) {
  *blocks = 1024 / threads;
  return 0;
}
void** __hipRegisterFatBinary(const void* wrapper) { return new void*(const_cast<void*>(wrapper)); }
void __hipRegisterFunction(void**, const void*, char*, const char*, unsigned, void*, void*, void*,
                           void*, int*) {}
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

int hipLaunchKernel(const void* function, Dim3, Dim3, void**, size_t, void*) {
  return function == nullptr ? k_invalid : 0;
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
  if (*out == nullptr) return 2;  // hipErrorOutOfMemory
  const std::lock_guard hold(g_mutex);
  g_memory.insert(*out);
  return 0;
}
int hipMallocAsync(void** out, size_t bytes, void*) { return hipMalloc(out, bytes); }
int hipFree(void* at) {
  const std::lock_guard hold(g_mutex);
  g_memory.erase(at);
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
  if (!g_captured.contains(stream)) std::memcpy(to, from, bytes);
  return 0;
}
// As in the real one, one exported function may use another.
int hipMemcpy(void* to, const void* from, size_t bytes, int direction) {
  hipMemcpyAsync(to, from, bytes, direction, nullptr);
  return hipStreamSynchronize(nullptr);
}
int hipMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  if (!g_captured.contains(stream)) std::memset(to, value, bytes);
  return 0;
}

int hipStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void**,
                               const void**, size_t*) {
  const auto match = g_captured.find(stream);
  *status = match != g_captured.end() ? 1 : 0;
  *id = match != g_captured.end() ? match->second : 0;
  return 0;
}
int hipStreamBeginCapture(void* stream, int) {
  g_captured[stream] = ++g_captures;
  return 0;
}
int hipStreamEndCapture(void* stream, void** graph) {
  g_captured.erase(stream);
  return hipStreamCreate(graph);
}
int hipGraphDestroy(void* graph) { return hipStreamDestroy(graph); }
int hipGraphInstantiate(void** exec, void*, void**, char*, size_t) {
  *exec = new int;
  return 0;
}
int hipGraphLaunch(void*, void*) { return 0; }
int hipGraphExecDestroy(void* exec) {
  delete static_cast<int*>(exec);
  return 0;
}

int hipblasSetStream(void* handle, void* stream) {
  g_streams[handle] = stream;
  return 0;
}
int hipblasDestroy(void* handle) {
  g_streams.erase(handle);
  return 0;
}
int rocblas_set_stream(void* handle, void* stream) { return hipblasSetStream(handle, stream); }
#define STAND_IN_DEFINES(name) \
  int name(void* handle) { return multiply(g_streams[handle]); }
STAND_IN_PRODUCTS(STAND_IN_DEFINES)
int hipblasLtMatmul(void*, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t,
                    size_t, size_t, size_t, size_t, size_t, void* stream) {
  return multiply(stream);
}

}  // extern "C"
