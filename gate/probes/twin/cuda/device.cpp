// CUDA's own queries of the GPU: its properties, and those of the driver.
#include <string.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

// Writes a cudaDeviceProp, field by field in their order: ints and 8-byte sizes. CUDA 13 removed
// eight fields of CUDA 12 (`is_cuda_12`) and appended seven.
class PropertiesWriter {
 public:
  PropertiesWriter(void* to, bool is_cuda_12)
      : to_(static_cast<char*>(to)), is_cuda_12_(is_cuda_12) {}
  void bytes(const void* from, size_t size) {
    memcpy(to_ + at_, from, size);
    at_ += size;
  }
  void number(int value) { bytes(&value, sizeof value); }
  // `count` attributes from `first` on as ints; zeros for attribute 0.
  void attributes(int first, int count) {
    for (int i = 0; i < count; ++i) number(first == 0 ? 0 : attribute(first + i));
  }
  // A field that only CUDA 12 has.
  void cuda_12_attribute(int index) {
    if (is_cuda_12_) attributes(index, 1);
  }
  void size(uint64_t value) {
    at_ = (at_ + 7) / 8 * 8;
    bytes(&value, sizeof value);
  }
  // An attribute as a size.
  void attribute_size(int index) { size(static_cast<uint64_t>(attribute(index))); }

 private:
  char* to_;
  bool is_cuda_12_;
  size_t at_ = 0;
};

// Fills a cudaDeviceProp of CUDA 12 or 13 with the properties of GPU `index`.
void fill_properties(void* to, bool is_cuda_12, int index) {
  constexpr size_t k_trailing_ints_12 = 63, k_trailing_ints_13 = 56;
  const weir_runtime_twin& gpu = *twin();
  PropertiesWriter out(to, is_cuda_12);
  out.bytes(gpu.name, sizeof gpu.name);
  uint8_t uuid[16] = {'w', 'e', 'i', 'r'};
  uuid[15] = static_cast<uint8_t>(index + 1);
  out.bytes(uuid, sizeof uuid);
  const char luid[8] = {};
  out.bytes(luid, sizeof luid);
  out.number(0);  // luidDeviceNodeMask
  out.size(gpu.total_bytes);
  out.attribute_size(k_shared_per_block);
  out.attributes(k_registers_per_block, 1);
  out.attributes(k_warp_size, 1);
  out.attribute_size(11);     // memPitch
  out.attributes(1, 1);       // maxThreadsPerBlock
  out.attributes(2, 3);       // maxThreadsDim
  out.attributes(5, 3);       // maxGridSize
  out.cuda_12_attribute(13);  // clockRate
  out.attribute_size(k_constant_memory);
  out.attributes(k_major, 2);
  out.attribute_size(14);     // textureAlignment
  out.attribute_size(51);     // texturePitchAlignment
  out.cuda_12_attribute(15);  // deviceOverlap
  out.attributes(k_processors, 1);
  out.cuda_12_attribute(17);  // kernelExecTimeoutEnabled
  out.attributes(18, 2);      // integrated, canMapHostMemory
  out.cuda_12_attribute(20);  // computeMode
  out.attributes(0, 2);       // maxTexture1D, maxTexture1DMipmap
  out.cuda_12_attribute(0);   // maxTexture1DLinear
  // maxTexture2D, -Mipmap, -Linear, -Gather, 3D, 3DAlt, Cubemap, layered ones; surfaces alike
  out.attributes(0, 2 + 2 + 3 + 2 + 3 + 3 + 1 + 2 + 3 + 2 + 1 + 2 + 3 + 2 + 3 + 1 + 2);
  out.attribute_size(30);  // surfaceAlignment
  out.attributes(31, 1);   // concurrentKernels
  out.attributes(32, 1);   // ECCEnabled
  out.number(attribute(k_pci_bus) + index);
  out.attributes(k_pci_device, 1);
  out.attributes(k_pci_domain, 1);
  out.attributes(35, 1);      // tccDriver
  out.attributes(40, 2);      // asyncEngineCount, unifiedAddressing
  out.cuda_12_attribute(36);  // memoryClockRate
  out.attributes(37, 2);      // memoryBusWidth, l2CacheSize
  out.attributes(108, 1);     // persistingL2CacheMaxSize
  out.attributes(k_threads_per_processor, 1);
  out.attributes(78,
                 3);  // streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported
  out.attribute_size(k_shared_per_processor);
  out.attributes(k_registers_per_processor, 1);
  out.attributes(83, 4);  // managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomic
  out.cuda_12_attribute(87);  // singleToDoublePrecisionPerfRatio
  out.attributes(88, 4);      // pageableMemoryAccess … canUseHostPointerForRegisteredMem
  out.attributes(95, 1);      // cooperativeLaunch
  out.cuda_12_attribute(96);  // cooperativeMultiDeviceLaunch
  out.attribute_size(k_shared_per_block_optin);
  out.attributes(100, 2);  // pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost
  out.attributes(k_blocks_per_processor, 1);
  out.attributes(109, 1);  // accessPolicyMaxWindowSize
  out.attribute_size(k_reserved_shared);
  out.attributes(99, 1);   // hostRegisterSupported
  out.attributes(112, 8);  // sparseCudaArraySupported … memoryPoolSupportedHandleTypes
  out.attributes(121, 1);  // deferredMappingCudaArraySupported
  out.attributes(125, 1);  // ipcEventSupported
  out.attributes(120, 1);  // clusterLaunch
  out.attributes(129, 1);  // unifiedFunctionPointers
  const size_t trailing = is_cuda_12 ? k_trailing_ints_12 : 7 + k_trailing_ints_13;
  for (size_t i = 0; i < trailing; ++i) out.number(0);
}

int get_properties(void* to, int index, bool is_cuda_12) {
  if (to == nullptr) return fail(k_invalid_value);
  if (const int error = check_device(index)) return error;
  fill_properties(to, is_cuda_12, index);
  return k_ok;
}

}  // namespace

// Functions that differ between the two majors.
#define WEIR_OF_MAJOR(symbol, name, ...) \
  WEIR_VERSIONED(name, symbol)           \
  extern "C" __attribute__((visibility("default"))) int weir_twin_##name __VA_ARGS__
WEIR_OF_MAJOR("cudaGetDeviceProperties@@libcudart.so.13", properties_13, (void* to, int index)) {
  return get_properties(to, index, /*is_cuda_12=*/false);
}
WEIR_OF_MAJOR("cudaGetDeviceProperties_v2@libcudart.so.12", properties_12, (void* to, int index)) {
  return get_properties(to, index, /*is_cuda_12=*/true);
}
WEIR_OF_MAJOR("cudaRuntimeGetVersion@@libcudart.so.13", runtime_13, (int* version)) {
  *version = 13000;
  return k_ok;
}
WEIR_OF_MAJOR("cudaRuntimeGetVersion@libcudart.so.12", runtime_12, (int* version)) {
  *version = 12080;
  return k_ok;
}

WEIR_OF_MAJOR("cudaStreamGetCaptureInfo@@libcudart.so.13", capture_info_13,
              (void* stream, int* status, uint64_t* number, void** graph, const void**,
               const void**, size_t* dependencies)) {
  return capture_info(stream, status, number, graph, dependencies);
}
WEIR_OF_MAJOR("cudaStreamGetCaptureInfo_v2@libcudart.so.12", capture_info_12,
              (void* stream, int* status, uint64_t* number, void** graph, const void**,
               size_t* dependencies)) {
  return capture_info(stream, status, number, graph, dependencies);
}

struct UpdateResult {
  int result;
  void *node, *from;
};
WEIR_RUNTIME(GraphExecUpdate, (void* exec, void* graph, UpdateResult* result)) {
  constexpr int k_topology_changed = 2;
  const bool updates = can_update(exec, graph);
  *result = {updates ? 0 : k_topology_changed, nullptr, nullptr};
  return success_if(updates, k_update_failed);
}

}  // namespace weir_probe::runtime_twin
