// The driver's own interface, as far as engines use it besides the runtime: devices, contexts and
// addresses.
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {

extern "C" int weir_twin_cudaDeviceCanAccessPeer(int* can_access, int from, int peer);
extern "C" int weir_twin_cudaMemGetInfo(size_t* free_bytes, size_t* total);
extern "C" int cuPointerGetAttribute(void* out, int number, uint64_t at);

namespace {

int g_context;  // all contexts are one
// The calling thread's, if the driver was told of one: the runtime's calls need no telling.
__thread void* t_current;

int has_twin() { return twin() == nullptr ? int{k_no_device} : int{k_ok}; }

}  // namespace

WEIR_EXPORTED int cuInit(unsigned) { return has_twin(); }
WEIR_EXPORTED int cuDriverGetVersion(int* version) {
  *version = driver_version();
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGetCount(int* count) {
  *count = device_count();
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGet(int* out, int index) {
  if (index < 0 || index >= device_count()) return k_invalid_device;
  *out = index;
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGetName(char* out, int size, int) {
  if (twin() == nullptr) return k_no_device;
  copy_text(out, static_cast<size_t>(size), twin()->name);
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGetAttribute(int* out, int number, int) {
  *out = attribute(number);
  return has_twin();
}
WEIR_EXPORTED int cuGetErrorString(int error, const char** out) {
  *out = error_text(error);
  return k_ok;
}
WEIR_EXPORTED int cuGetErrorName(int error, const char** out) {
  *out = error_name(error);
  return k_ok;
}
WEIR_EXPORTED int cuDeviceTotalMem_v2(size_t* out, int) {
  *out = twin() == nullptr ? 0 : twin()->total_bytes;
  return has_twin();
}
WEIR_EXPORTED int cuDeviceCanAccessPeer(int* can_access, int from, int peer) {
  return weir_twin_cudaDeviceCanAccessPeer(can_access, from, peer);
}

// A context takes no memory of its own: the description's `used_bytes` includes one.
WEIR_EXPORTED int cuDevicePrimaryCtxRetain(void** out, int index) {
  set_device(index);
  *out = &g_context;
  return has_twin();
}
WEIR_EXPORTED int cuDevicePrimaryCtxRelease_v2(int) { return k_ok; }
WEIR_EXPORTED int cuDevicePrimaryCtxGetState(int index, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = is_used(index) ? 1 : 0;
  return k_ok;
}
WEIR_EXPORTED int cuCtxSetCurrent(void* context) {
  t_current = context;
  return k_ok;
}
WEIR_EXPORTED int cuCtxGetCurrent(void** out) {
  *out = t_current == nullptr && is_used(device()) ? &g_context : t_current;
  return has_twin();
}
WEIR_EXPORTED int cuCtxPushCurrent_v2(void* context) { return cuCtxSetCurrent(context); }
WEIR_EXPORTED int cuCtxPopCurrent_v2(void** out) { return cuCtxGetCurrent(out); }
WEIR_EXPORTED int cuCtxGetDevice(int* out) {
  *out = device();
  return has_twin();
}
WEIR_EXPORTED int cuCtxSetLimit(int, size_t) { return has_twin(); }
WEIR_EXPORTED int cuCtxGetLimit(size_t* out, int) {
  *out = 0;
  return has_twin();
}
WEIR_EXPORTED int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return weir_twin_cudaMemGetInfo(free_bytes, total);
}
WEIR_EXPORTED int cuMemGetAddressRange_v2(uint64_t* begin, size_t* bytes, uint64_t at) {
  uint64_t block = 0, size = 0;
  int index = 0;
  if (!find_block(reinterpret_cast<const void*>(at), &block, &size, &index)) return k_invalid_value;
  if (begin != nullptr) *begin = block;
  if (bytes != nullptr) *bytes = size;
  return k_ok;
}

// Attributes of an address that is of no memory of the API are 0.
WEIR_EXPORTED int cuPointerGetAttributes(unsigned count, const int* numbers, void** out,
                                         uint64_t at) {
  for (unsigned i = 0; i < count; ++i) {
    if (cuPointerGetAttribute(out[i], numbers[i], at) != k_ok) memset(out[i], 0, sizeof(int));
  }
  return k_ok;
}
struct PointerAttributes {  // cudaPointerAttributes
  int type, device;
  const void *on_device, *on_host;
};
WEIR_RUNTIME(PointerGetAttributes, (PointerAttributes * out, const void* at)) {
  const bool on_device = is_device_address(at), pinned = is_pinned(at);
  *out = {k_unregistered, -2, nullptr, at};  // cudaInvalidDeviceId
  if (!on_device && !pinned) return k_ok;
  cuPointerGetAttribute(&out->device, k_pointer_device, address_key(at));
  out->type = on_device ? k_device_memory : k_host_memory;
  out->on_device = at;
  if (on_device) out->on_host = nullptr;
  return k_ok;
}

}  // namespace weir_probe::runtime_twin
