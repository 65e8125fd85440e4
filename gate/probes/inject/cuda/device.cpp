// Describes the GPU by its driver, for the probe in front of CUDA and for CUPTI's.
#include <stdio.h>

#include "gate/probes/inject/cuda/cuda.h"

namespace weir_probe {
namespace cuda {
namespace {

constexpr uint32_t k_vendor = 0x10de;

}  // namespace

WEIR_FUNCTION_TABLE(CudaFunctions, cuda_functions, WEIR_CUDA_FUNCTIONS)

}  // namespace cuda

namespace streams {

using namespace cuda;

const char k_api_name[] = "cuda";

// Without ".so": Python's wheels have "libcudart-3b2f9a1c.so.13".
const char* const k_libraries[] = {"/libcudart", "/libcuda.so", "/libcublas", "/libnccl", nullptr};

// Returns the entry of a device, with a class made from its name, driver and features.
weir_probe_device describe_device(int device) {
  const CudaFunctions& functions = cuda_functions();
  weir_probe_device entry{};
  name_device(&entry,
              succeeds(functions.cuDeviceGetName, entry.name, int{sizeof entry.name - 1}, device));
  int version = 0;
  succeeds(functions.cuDriverGetVersion, &version);
  const auto attribute = [&](int which) {
    int value = 0;
    succeeds(functions.cuDeviceGetAttribute, &value, which, device);
    return value;
  };
  constexpr int k_features[] = {
      k_major,    k_minor, k_processors, k_shared_per_block_optin, k_shared_per_processor,
      k_warp_size};
  uint64_t features = k_hash_seed;
  for (const int which : k_features) {
    const int value = attribute(which);
    features = hash_bytes(features, &value, sizeof value);
  }
  copy_text(entry.type, sizeof entry.type,
            attribute(k_integrated) != 0 ? "integrated" : "discrete");
  entry.vendor = k_vendor;
  entry.driver_version = static_cast<uint32_t>(version);
  entry.feature_hash = features;
  snprintf(entry.driver, sizeof entry.driver, "CUDA driver for %d.%d", version / 1000,
           version % 1000 / 10);
  classify_device(&entry);
  return entry;
}

int current_device() {
  int device = 0;
  return succeeds(cuda_functions().cuCtxGetDevice, &device) ? device : 0;
}

}  // namespace streams
}  // namespace weir_probe
