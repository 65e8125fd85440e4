// What only CUDA can tell of its devices, kernels and graphs.
#include <dlfcn.h>
#include <stdio.h>

#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/streams/streams.h"
#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe {
namespace cuda {
namespace {

constexpr uint32_t k_vendor = 0x10de;

Driver g_driver;
Once g_driver_once;

}  // namespace

const Driver& driver() {
  g_driver_once.run([] {
    void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return;
#define WEIR_FETCH(name) \
  g_driver.name = reinterpret_cast<decltype(g_driver.name)>(dlsym(library, #name));
    WEIR_CUDA_ASKED(WEIR_FETCH)
#undef WEIR_FETCH
  });
  return g_driver;
}

}  // namespace cuda

namespace streams {

using namespace cuda;

const char k_probe_name[] = "cuda";

weir_probe_device describe(int device) {
  const Driver& ask = driver();
  weir_probe_device entry{};
  name_device(&entry,
              succeeds(ask.cuDeviceGetName, entry.name, int{sizeof entry.name - 1}, device));
  int version = 0;
  succeeds(ask.cuDriverGetVersion, &version);
  constexpr CUdevice_attribute k_features[] = {
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_WARP_SIZE,
  };
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    succeeds(ask.cuDeviceGetAttribute, &value, which, device);
    return value;
  };
  uint64_t features = k_hash_seed;
  for (const CUdevice_attribute which : k_features) {
    const int value = attribute(which);
    features = hash_bytes(features, &value, sizeof value);
  }
  const bool integrated = attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  copy_text(entry.type, sizeof entry.type, integrated ? "integrated" : "discrete");
  entry.vendor = k_vendor;
  entry.driver_version = static_cast<uint32_t>(version);
  entry.feature_hash = features;
  snprintf(entry.driver, sizeof entry.driver, "CUDA driver for %d.%d", version / 1000,
           version % 1000 / 10);
  classify_device(&entry);
  return entry;
}

int current_device() {
  CUdevice device = 0;
  return succeeds(driver().cuCtxGetDevice, &device) ? device : 0;
}

// CUPTI tells it with the call; a graph's node is asked when the graph is read.
const char* name_of(const Launch& launch, void*) { return launch.name; }

bool is_captured(void* stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return succeeds(driver().cuStreamIsCapturing, static_cast<CUstream>(stream), &status) &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool nodes_of(void* graph, void** nodes, size_t* count) {
  return succeeds(driver().cuGraphGetNodes, static_cast<CUgraph>(graph),
                  reinterpret_cast<CUgraphNode*>(nodes), count);
}

int type_of(void* node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const bool told = succeeds(driver().cuGraphNodeGetType, static_cast<CUgraphNode>(node), &type);
  return told ? static_cast<int>(type) : -1;
}

bool launch_of(void* node, Launch* out) {
  CUDA_KERNEL_NODE_PARAMS params{};
  const Driver& ask = driver();
  if (!succeeds(ask.cuGraphKernelNodeGetParams_v2, static_cast<CUgraphNode>(node), &params)) {
    return false;
  }
  // Kernels that are loaded when first used have no function before.
  if (params.func != nullptr) {
    out->function = params.func;
    succeeds(ask.cuFuncGetName, &out->name, params.func);
  } else {
    out->function = params.kern;
    succeeds(ask.cuKernelGetName, &out->name, params.kern);
  }
  out->sizes =
      sizes_of({params.gridDimX, params.gridDimY, params.gridDimZ},
               {params.blockDimX, params.blockDimY, params.blockDimZ}, params.sharedMemBytes);
  return true;
}

void* child_of(void* node) {
  CUgraph child = nullptr;
  succeeds(driver().cuGraphChildGraphNodeGetGraph, static_cast<CUgraphNode>(node), &child);
  return child;
}

}  // namespace streams
}  // namespace weir_probe
