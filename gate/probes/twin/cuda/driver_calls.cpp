// The driver's own functions for memory, copies and events, as programs without the runtime call
// them. Each is passed on to the runtime's: a probe in front counts it there.
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {

extern "C" {
int weir_twin_cudaMalloc(void** out, size_t bytes);
int weir_twin_cudaFree(void* at);
int weir_twin_cudaHostAlloc(void** out, size_t bytes, unsigned flags);
int weir_twin_cudaFreeHost(void* at);
int weir_twin_cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int weir_twin_cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream);
int weir_twin_cudaDeviceSynchronize();
int weir_twin_cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int weir_twin_cudaEventCreateWithFlags(void** out, unsigned flags);
int weir_twin_cudaEventDestroy(void* event);
int weir_twin_cudaEventRecord(void* event, void* stream);
int weir_twin_cudaEventSynchronize(void* event);
int weir_twin_cudaEventElapsedTime(float* milliseconds, void* begin, void* end);
int weir_twin_cudaStreamSynchronize(void* stream);
int weir_twin_cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuDevicePrimaryCtxRetain(void** out, int index);
int cuDeviceGetAttribute(int* out, int number, int index);
}

namespace {

enum CopyKind : int { k_to_device = 1, k_to_host = 2, k_inside = 3 };  // cudaMemcpyKind

void* pointer_to(uint64_t address) { return reinterpret_cast<void*>(address); }

// Returns the probe's function of this name, else the twin's own.
template <class Function>
Function probes_or_own(const char* name, Function own) {
  void* const probes = find_probes_function(name);
  return probes == nullptr ? own : reinterpret_cast<Function>(probes);
}

}  // namespace

#define WEIR_FRONT(name) probes_or_own("cuda" #name, &WEIR_CALL(name))

WEIR_EXPORTED int cuCtxCreate_v2(void** out, unsigned, int index) {
  return cuDevicePrimaryCtxRetain(out, index);
}
WEIR_EXPORTED int cuCtxDestroy_v2(void*) { return k_ok; }
WEIR_EXPORTED int cuCtxEnablePeerAccess(void*, unsigned flags) {
  return WEIR_CALL(DeviceEnablePeerAccess)(0, flags);
}
WEIR_EXPORTED int cuDeviceComputeCapability(int* major, int* minor, int index) {
  const int error = cuDeviceGetAttribute(major, k_major, index);
  return error != k_ok ? error : cuDeviceGetAttribute(minor, k_minor, index);
}
WEIR_EXPORTED int cuCtxSynchronize() { return WEIR_FRONT(DeviceSynchronize)(); }
WEIR_EXPORTED int cuStreamSynchronize(void* stream) {
  return WEIR_FRONT(StreamSynchronize)(stream);
}
WEIR_EXPORTED int cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  return WEIR_FRONT(Malloc)(reinterpret_cast<void**>(out), bytes);
}
WEIR_EXPORTED int cuMemFree_v2(uint64_t at) { return WEIR_FRONT(Free)(pointer_to(at)); }
WEIR_EXPORTED int cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  return WEIR_CALL(HostAlloc)(out, bytes, flags);
}
WEIR_EXPORTED int cuMemFreeHost(void* at) { return WEIR_CALL(FreeHost)(at); }
WEIR_EXPORTED int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return WEIR_FRONT(Memcpy)(pointer_to(to), from, bytes, k_to_device);
}
WEIR_EXPORTED int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  return WEIR_FRONT(MemcpyAsync)(pointer_to(to), from, bytes, k_to_device, stream);
}
WEIR_EXPORTED int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return WEIR_FRONT(Memcpy)(to, pointer_to(from), bytes, k_to_host);
}
WEIR_EXPORTED int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  return WEIR_FRONT(MemcpyAsync)(to, pointer_to(from), bytes, k_to_host, stream);
}
WEIR_EXPORTED int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return WEIR_FRONT(MemcpyAsync)(pointer_to(to), pointer_to(from), bytes, k_inside, stream);
}
WEIR_EXPORTED int cuEventCreate(void** out, unsigned flags) {
  return WEIR_CALL(EventCreateWithFlags)(out, flags);
}
WEIR_EXPORTED int cuEventDestroy_v2(void* event) { return WEIR_FRONT(EventDestroy)(event); }
WEIR_EXPORTED int cuEventRecord(void* event, void* stream) {
  return WEIR_FRONT(EventRecord)(event, stream);
}
WEIR_EXPORTED int cuEventSynchronize(void* event) { return WEIR_FRONT(EventSynchronize)(event); }
WEIR_EXPORTED int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return WEIR_CALL(EventElapsedTime)(milliseconds, begin, end);
}
WEIR_EXPORTED int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return WEIR_FRONT(StreamWaitEvent)(stream, event, flags);
}

}  // namespace weir_probe::runtime_twin
