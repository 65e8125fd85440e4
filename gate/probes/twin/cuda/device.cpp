// Which GPU this is: the description, what is asked of it, and errors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/cuda/table.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/cuda/cuda.h"

namespace weir_probe::cuda_twin {
namespace {

const weir_cuda_twin* g_twin;
Once g_once;
__thread int t_device;
__thread int t_error;

void load() {
  const char* path = getenv(WEIR_CUDA_TWIN_VARIABLE);
  size_t bytes = 0;
  const auto* found =
      path == nullptr ? nullptr : static_cast<const weir_cuda_twin*>(map_file(path, &bytes));
  if (found != nullptr && bytes >= sizeof *found && found->magic == WEIR_CUDA_TWIN_MAGIC &&
      found->bytes == sizeof *found && found->devices > 0 &&
      found->devices <= WEIR_CUDA_MOST_DEVICES && memchr(found->name, 0, sizeof found->name)) {
    g_twin = found;
    return;
  }
  complain("cuda twin", "no description of a GPU in " WEIR_CUDA_TWIN_VARIABLE ":",
           path == nullptr ? "" : path, 0);
}

// cudaDeviceProp of CUDA 13 and, with `old`, of CUDA 12: the fields in their order, each a number
// of ints or sizes. CUDA 13 left eight out and appended seven.
class Properties {
 public:
  Properties(void* to, bool old) : to_(static_cast<char*>(to)), old_(old) {}
  void bytes(const void* from, size_t size) {
    memcpy(to_ + at_, from, size);
    at_ += size;
  }
  void number(int value) { bytes(&value, sizeof value); }
  void numbers(int which, int count) {
    for (int i = 0; i < count; ++i) number(which == 0 ? 0 : attribute(which + i));
  }
  void only_old(int which, int count = 1) {
    if (old_) numbers(which, count);
  }
  void size(uint64_t value) {
    at_ = (at_ + 7) / 8 * 8;
    bytes(&value, sizeof value);
  }
  void size_of(int which) { size(static_cast<uint64_t>(attribute(which))); }

 private:
  char* to_;
  bool old_;
  size_t at_ = 0;
};

void fill(void* to, bool old, int index) {
  constexpr size_t k_ints_left_12 = 63, k_ints_left_13 = 56;
  const weir_cuda_twin& of = *twin();
  Properties out(to, old);
  out.bytes(of.name, sizeof of.name);
  uint8_t uuid[16] = {'w', 'e', 'i', 'r'};
  uuid[15] = static_cast<uint8_t>(index + 1);
  out.bytes(uuid, sizeof uuid);
  const char luid[8] = {};
  out.bytes(luid, sizeof luid);
  out.number(0);  // luidDeviceNodeMask
  out.size(of.total_bytes);
  out.size_of(k_shared_per_block);
  out.numbers(k_registers_per_block, 1);
  out.numbers(k_warp_size, 1);
  out.size_of(11);    // memPitch
  out.numbers(1, 1);  // maxThreadsPerBlock
  out.numbers(2, 3);  // maxThreadsDim
  out.numbers(5, 3);  // maxGridSize
  out.only_old(13);   // clockRate
  out.size_of(k_constant_memory);
  out.numbers(k_major, 2);
  out.size_of(14);   // textureAlignment
  out.size_of(51);   // texturePitchAlignment
  out.only_old(15);  // deviceOverlap
  out.numbers(k_processors, 1);
  out.only_old(17);    // kernelExecTimeoutEnabled
  out.numbers(18, 2);  // integrated, canMapHostMemory
  out.only_old(20);    // computeMode
  out.numbers(0, 2);   // maxTexture1D, maxTexture1DMipmap
  out.only_old(0);     // maxTexture1DLinear
  // maxTexture2D, -Mipmap, -Linear, -Gather, 3D, 3DAlt, Cubemap, layered ones; surfaces alike
  out.numbers(0, 2 + 2 + 3 + 2 + 3 + 3 + 1 + 2 + 3 + 2 + 1 + 2 + 3 + 2 + 3 + 1 + 2);
  out.size_of(30);     // surfaceAlignment
  out.numbers(31, 1);  // concurrentKernels
  out.numbers(32, 1);  // ECCEnabled
  out.number(attribute(k_pci_bus) + index);
  out.numbers(k_pci_device, 1);
  out.numbers(k_pci_domain, 1);
  out.numbers(35, 1);   // tccDriver
  out.numbers(40, 2);   // asyncEngineCount, unifiedAddressing
  out.only_old(36);     // memoryClockRate
  out.numbers(37, 2);   // memoryBusWidth, l2CacheSize
  out.numbers(108, 1);  // persistingL2CacheMaxSize
  out.numbers(k_threads_per_processor, 1);
  out.numbers(78, 3);  // streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported
  out.size_of(k_shared_per_processor);
  out.numbers(k_registers_per_processor, 1);
  out.numbers(83, 4);  // managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomic
  out.only_old(87);    // singleToDoublePrecisionPerfRatio
  out.numbers(88, 4);  // pageableMemoryAccess … canUseHostPointerForRegisteredMem
  out.numbers(95, 1);  // cooperativeLaunch
  out.only_old(96);    // cooperativeMultiDeviceLaunch
  out.size_of(k_shared_per_block_optin);
  out.numbers(100, 2);  // pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost
  out.numbers(k_blocks_per_processor, 1);
  out.numbers(109, 1);  // accessPolicyMaxWindowSize
  out.size_of(k_reserved_shared);
  out.numbers(99, 1);   // hostRegisterSupported
  out.numbers(112, 8);  // sparseCudaArraySupported … memoryPoolSupportedHandleTypes
  out.numbers(121, 1);  // deferredMappingCudaArraySupported
  out.numbers(125, 1);  // ipcEventSupported
  out.numbers(120, 1);  // clusterLaunch
  out.numbers(129, 1);  // unifiedFunctionPointers
  for (size_t i = 0; i < (old ? k_ints_left_12 : 7 + k_ints_left_13); ++i) out.number(0);
}

int properties(void* to, int index, bool old) {
  if (to == nullptr) return fail(k_invalid_value);
  if (twin() == nullptr) return fail(k_no_device);
  if (index < 0 || index >= static_cast<int>(twin()->devices)) return fail(k_invalid_device);
  fill(to, old, index);
  return k_ok;
}

struct Words {
  int error;
  const char *name, *text;
};
constexpr Words k_words[] = {
    {k_ok, "cudaSuccess", "no error"},
    {k_invalid_value, "cudaErrorInvalidValue", "invalid argument"},
    {k_out_of_memory, "cudaErrorMemoryAllocation", "out of memory"},
    {k_invalid_configuration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {k_invalid_function, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {k_no_device, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {k_invalid_device, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {k_no_image, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {k_invalid_handle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {k_symbol_not_found, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {k_out_of_resources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {k_peer_enabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {k_host_registered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {k_host_not_registered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {k_not_supported, "cudaErrorNotSupported", "operation not supported"},
    {k_capture_unsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {k_capture_broken, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {k_update_failed, "cudaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
};
const Words& words_of(int error) {
  static constexpr Words k_unknown{0, "unrecognized error code", "unrecognized error code"};
  for (const Words& one : k_words) {
    if (one.error == error) return one;
  }
  return k_unknown;
}

}  // namespace

const weir_cuda_twin* twin() {
  g_once.run(load);
  return g_twin;
}

int attribute(int which) {
  return twin() == nullptr || which < 0 || which >= WEIR_CUDA_ATTRIBUTES
             ? 0
             : twin()->attributes[which];
}

int device() { return t_device; }
int fail(int error) { return t_error = error; }

WEIR_RUNTIME(cudaGetDeviceCount, (int* count)) {
  *count = twin() == nullptr ? 0 : static_cast<int>(twin()->devices);
  return ok_or(*count > 0, k_no_device);
}
WEIR_RUNTIME(cudaGetDevice, (int* out)) {
  if (twin() == nullptr) return fail(k_no_device);
  *out = t_device;
  return k_ok;
}
WEIR_RUNTIME(cudaSetDevice, (int index)) {
  if (twin() == nullptr) return fail(k_no_device);
  if (index < 0 || index >= static_cast<int>(twin()->devices)) return fail(k_invalid_device);
  t_device = index;
  return k_ok;
}
WEIR_RUNTIME(cudaSetDeviceFlags, (unsigned)) { return k_ok; }
WEIR_RUNTIME(cudaDeviceReset, ()) { return k_ok; }
WEIR_RUNTIME(cudaDeviceGetAttribute, (int* out, int which, int index)) {
  if (twin() == nullptr) return fail(k_no_device);
  if (index < 0 || index >= static_cast<int>(twin()->devices)) return fail(k_invalid_device);
  *out = attribute(which) + (which == k_pci_bus ? index : 0);
  return k_ok;
}
WEIR_RUNTIME(cudaDeviceGetPCIBusId, (char* out, int size, int index)) {
  if (twin() == nullptr) return fail(k_no_device);
  snprintf(out, static_cast<size_t>(size), "%04x:%02x:%02x.0", attribute(k_pci_domain),
           attribute(k_pci_bus) + index, attribute(k_pci_device));
  return k_ok;
}
WEIR_RUNTIME(cudaDeviceEnablePeerAccess, (int, unsigned)) {
  return ok_or(twin() != nullptr && twin()->peers != 0, k_not_supported);
}
WEIR_RUNTIME(cudaDeviceDisablePeerAccess, (int)) { return k_ok; }
WEIR_RUNTIME(cudaDriverGetVersion, (int* version)) {
  *version = twin() == nullptr ? 0 : twin()->driver_version;
  return k_ok;
}
WEIR_RUNTIME(cudaGetLastError, ()) {
  const int error = t_error;
  t_error = k_ok;
  return error;
}
WEIR_RUNTIME(cudaPeekAtLastError, ()) { return t_error; }

// One struct a major, under one name in each.
#define WEIR_OF_MAJOR(symbol, name, ...) \
  WEIR_VERSIONED(name, symbol)           \
  extern "C" __attribute__((visibility("default"))) int weir_twin_##name __VA_ARGS__
WEIR_OF_MAJOR("cudaGetDeviceProperties@@libcudart.so.13", properties_13, (void* to, int index)) {
  return properties(to, index, false);
}
WEIR_OF_MAJOR("cudaGetDeviceProperties_v2@libcudart.so.12", properties_12, (void* to, int index)) {
  return properties(to, index, true);
}
WEIR_OF_MAJOR("cudaRuntimeGetVersion@@libcudart.so.13", runtime_13, (int* version)) {
  *version = 13000;
  return k_ok;
}
WEIR_OF_MAJOR("cudaRuntimeGetVersion@libcudart.so.12", runtime_12, (int* version)) {
  *version = 12080;
  return k_ok;
}
WEIR_RUNTIME_OF(const char*, cudaGetErrorString, (int error)) { return words_of(error).text; }
WEIR_RUNTIME_OF(const char*, cudaGetErrorName, (int error)) { return words_of(error).name; }

// --- the driver's own interface, as far as engines ask it beside the runtime
WEIR_EXPORTED int cuInit(unsigned) { return twin() == nullptr ? int{k_no_device} : int{k_ok}; }
WEIR_EXPORTED int cuDriverGetVersion(int* version) {
  *version = twin() == nullptr ? 0 : twin()->driver_version;
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGetCount(int* count) {
  *count = twin() == nullptr ? 0 : static_cast<int>(twin()->devices);
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGet(int* out, int index) {
  if (twin() == nullptr || index < 0 || index >= static_cast<int>(twin()->devices)) {
    return k_invalid_device;
  }
  *out = index;
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGetName(char* out, int size, int) {
  if (twin() == nullptr) return k_no_device;
  copy_text(out, static_cast<size_t>(size), twin()->name);
  return k_ok;
}
WEIR_EXPORTED int cuDeviceGetAttribute(int* out, int which, int) {
  *out = attribute(which);
  return twin() == nullptr ? int{k_no_device} : int{k_ok};
}
WEIR_EXPORTED int cuGetErrorString(int error, const char** out) {
  *out = words_of(error).text;
  return k_ok;
}
WEIR_EXPORTED int cuGetErrorName(int error, const char** out) {
  *out = words_of(error).name;
  return k_ok;
}

WEIR_RUNTIME(cudaDeviceCanAccessPeer, (int* can, int one, int other)) {
  *can = twin() != nullptr && twin()->peers != 0 && one != other ? 1 : 0;
  return k_ok;
}
WEIR_EXPORTED int cuDeviceTotalMem_v2(size_t* out, int) {
  *out = twin() == nullptr ? 0 : twin()->total_bytes;
  return twin() == nullptr ? int{k_no_device} : int{k_ok};
}
WEIR_EXPORTED int cuDeviceCanAccessPeer(int* can, int one, int other) {
  return weir_twin_cudaDeviceCanAccessPeer(can, one, other);
}
// A program's own context is no more here than what the driver takes.
WEIR_EXPORTED int cuDevicePrimaryCtxRetain(void** out, int index) {
  t_device = index;
  *out = &t_device;
  return twin() == nullptr ? int{k_no_device} : int{k_ok};
}
WEIR_EXPORTED int cuDevicePrimaryCtxRelease_v2(int) { return k_ok; }
WEIR_EXPORTED int cuCtxSetCurrent(void*) { return k_ok; }
WEIR_EXPORTED int cuCtxGetDevice(int* out) {
  *out = t_device;
  return twin() == nullptr ? int{k_no_device} : int{k_ok};
}

}  // namespace weir_probe::cuda_twin
