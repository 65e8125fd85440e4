// NVML, as far as engines ask which GPUs there are before they use them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

enum NvmlError : int {
  k_nvml_ok = 0,
  k_nvml_no_driver = 9,
  k_nvml_invalid = 2,
  k_nvml_not_supported = 3,
  k_nvml_not_found = 6,
};

extern "C" int weir_twin_cudaMemGetInfo(size_t* free_bytes, size_t* total);
extern "C" int weir_twin_cudaDeviceGetPCIBusId(char* out, int size, int index);

// A device's handle is its number + 1.
void* handle_of(int index) { return reinterpret_cast<void*>(static_cast<uint64_t>(index) + 1); }
int index_of(const void* handle) { return static_cast<int>(address_key(handle)) - 1; }

int find_device(int index, void** out) {
  if (twin() == nullptr) return k_nvml_no_driver;
  if (index < 0 || index >= device_count()) return k_nvml_invalid;
  *out = handle_of(index);
  return k_nvml_ok;
}

// As fill_properties() has it: "weir", zeros, and the number.
void write_uuid(char* out, size_t size, int index) {
  snprintf(out, size, "GPU-77656972-0000-0000-0000-0000000000%02x", index + 1);
}

// Finds the device of which `read` writes a text that ends as `wanted` does.
template <class Read>
int find_by_text(const char* wanted, void** out, Read read) {
  for (int index = 0; index < device_count(); ++index) {
    char text[96];
    read(text, sizeof text, index);
    const size_t size = strlen(text), length = strlen(wanted);
    const char* end = length > size ? wanted + (length - size) : wanted;
    if (strcasecmp(end, text) == 0) return find_device(index, out);
  }
  return k_nvml_not_found;
}

}  // namespace

// Each of these has an unversioned name, which torch uses, and a second version.
#define WEIR_NVML_TWICE(name, ...)                    \
  WEIR_EXPORTED int nvml##name __VA_ARGS__;           \
  __asm__(".globl nvml" #name "_v2\n.type nvml" #name \
          "_v2, @function\n"                          \
          ".set nvml" #name "_v2, nvml" #name);       \
  WEIR_EXPORTED int nvml##name __VA_ARGS__

WEIR_NVML_TWICE(Init, ()) { return twin() == nullptr ? k_nvml_no_driver : k_nvml_ok; }
WEIR_EXPORTED int nvmlInitWithFlags(unsigned) { return nvmlInit(); }
WEIR_EXPORTED int nvmlShutdown() { return k_nvml_ok; }
WEIR_EXPORTED const char* nvmlErrorString(int error) {
  return error == k_nvml_ok ? "Success" : "Not Supported";
}
WEIR_NVML_TWICE(DeviceGetCount, (unsigned* count)) {
  *count = static_cast<unsigned>(device_count());
  return k_nvml_ok;
}
WEIR_NVML_TWICE(DeviceGetHandleByIndex, (unsigned index, void** out)) {
  return find_device(static_cast<int>(index), out);
}
WEIR_EXPORTED int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  return find_by_text(uuid, out, write_uuid);
}
WEIR_NVML_TWICE(DeviceGetHandleByPciBusId, (const char* bus, void** out)) {
  return find_by_text(bus, out, [](char* text, size_t size, int index) {
    weir_twin_cudaDeviceGetPCIBusId(text, static_cast<int>(size), index);
  });
}
WEIR_EXPORTED int nvmlDeviceGetIndex(void* handle, unsigned* out) {
  *out = static_cast<unsigned>(index_of(handle));
  return k_nvml_ok;
}
WEIR_EXPORTED int nvmlDeviceGetName(void*, char* out, unsigned size) {
  if (twin() == nullptr) return k_nvml_no_driver;
  copy_text(out, size, twin()->name);
  return k_nvml_ok;
}
WEIR_EXPORTED int nvmlDeviceGetUUID(void* handle, char* out, unsigned size) {
  write_uuid(out, size, index_of(handle));
  return k_nvml_ok;
}
struct NvmlMemory {
  uint64_t total, free, used;
};
WEIR_EXPORTED int nvmlDeviceGetMemoryInfo(void*, NvmlMemory* out) {
  size_t free_bytes = 0, total = 0;
  if (weir_twin_cudaMemGetInfo(&free_bytes, &total) != k_ok) return k_nvml_no_driver;
  *out = {total, free_bytes, total - free_bytes};
  return k_nvml_ok;
}
WEIR_EXPORTED int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = attribute(k_major);
  *minor = attribute(k_minor);
  return k_nvml_ok;
}
WEIR_EXPORTED int nvmlDeviceGetP2PStatus(void*, void*, int, int* status) {
  constexpr int k_peer_ok = 0, k_peer_not_supported = 1;
  *status = twin() != nullptr && twin()->peers != 0 ? k_peer_ok : k_peer_not_supported;
  return k_nvml_ok;
}
WEIR_EXPORTED int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return k_nvml_ok;
}
WEIR_EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = 0;
  return k_nvml_ok;
}
// torch demands these before it explains that memory is out. A twin has no NVLink.
WEIR_EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) {
  return k_nvml_not_supported;
}
WEIR_NVML_TWICE(DeviceGetNvLinkRemotePciInfo, (void*, unsigned, void*)) {
  return k_nvml_not_supported;
}
WEIR_EXPORTED int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return k_nvml_not_supported; }
WEIR_NVML_TWICE(SystemGetCudaDriverVersion, (int* version)) {
  *version = driver_version();
  return k_nvml_ok;
}
WEIR_EXPORTED int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  copy_text(out, size, "580.65.06");  // a driver of CUDA 13.0
  return k_nvml_ok;
}

}  // namespace weir_probe::runtime_twin
