// Asks the HIP runtime for its devices, kernels and graphs; implements the functions that streams.h
// requires.
#include <stdio.h>

#include "gate/probes/inject/hip/hip.h"

namespace weir_probe {
namespace hip {
namespace {

constexpr uint32_t k_vendor = 0x1002;

}  // namespace

WEIR_FUNCTION_TABLE(HipFunctions, hip_functions, WEIR_HIP_FUNCTIONS)

}  // namespace hip

namespace streams {

using namespace hip;

const char k_probe_name[] = "hip", k_api_name[] = "hip";
const char* const k_libraries[] = {"libamdhip64.so", nullptr};

// Returns the entry of a device, with a class made from its name, compute capability and driver.
weir_probe_device describe_device(int device) {
  const HipFunctions& functions = hip_functions();
  weir_probe_device entry{};
  copy_text(entry.type, sizeof entry.type, "other");
  const uint64_t name = name_device(
      &entry, succeeds(functions.hipDeviceGetName, entry.name, int{sizeof entry.name - 1}, device));
  int version = 0, capability[2] = {};
  succeeds(functions.hipRuntimeGetVersion, &version);
  succeeds(functions.hipDeviceComputeCapability, &capability[0], &capability[1], device);
  entry.vendor = k_vendor;
  entry.driver_version = static_cast<uint32_t>(version);
  entry.feature_hash = hash_bytes(name, capability, sizeof capability);
  snprintf(entry.driver, sizeof entry.driver, "HIP runtime %d", version);
  classify_device(&entry);
  return entry;
}

int current_device() {
  int device = 0;
  return succeeds(hip_functions().hipGetDevice, &device) ? device : 0;
}

const char* kernel_name(const Launch& launch, void* stream) {
  if (void* name = g.names.find(key_of(launch.function))) {
    return static_cast<const char*>(name);
  }
  const auto kernel_name_by_function = hip_functions().hipKernelNameRefByPtr;
  return kernel_name_by_function == nullptr ? nullptr
                                            : kernel_name_by_function(launch.function, stream);
}

uint64_t code_hash(const Launch&) { return 0; }
void measure_costs(const Launch&, weir_probe_code*) {}

bool is_captured(void* stream) {
  int status = 0;
  return succeeds(hip_functions().hipStreamIsCapturing, stream, &status) && status != 0;
}

bool list_nodes(void* graph, void** nodes, size_t* count) {
  return succeeds(hip_functions().hipGraphGetNodes, graph, nodes, count);
}

int node_type(void* node) {
  int type = -1;
  return succeeds(hip_functions().hipGraphNodeGetType, node, &type) ? type : -1;
}

bool read_launch(void* node, Launch* out) {
  KernelNodeParams params{};
  if (!succeeds(hip_functions().hipGraphKernelNodeGetParams, node, &params)) return false;
  out->function = params.function;
  out->sizes = launch_sizes(params.grid, params.block, params.shared);
  return true;
}

void* child_graph(void* node) {
  void* child = nullptr;
  return succeeds(hip_functions().hipGraphChildGraphNodeGetGraph, node, &child) ? child : nullptr;
}

}  // namespace streams
}  // namespace weir_probe
