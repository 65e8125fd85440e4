// Which HIP runtime a call is meant for, and what only it can tell of its devices, kernels and
// graphs.
#include <stdio.h>

#include "gate/probes/inject/hip/hip.h"

namespace weir_probe {
namespace hip {
namespace {

constexpr uint32_t k_vendor = 0x1002;

}  // namespace

WEIR_ASKED(Asked, asked, WEIR_HIP_ASKED)

}  // namespace hip

namespace streams {

using namespace hip;

const char k_probe_name[] = "hip", k_api_name[] = "hip";
const char* const k_libraries[] = {"libamdhip64.so", nullptr};

weir_probe_device describe(int device) {
  const Asked& ask = asked();
  weir_probe_device entry{};
  copy_text(entry.type, sizeof entry.type, "other");
  const uint64_t name = name_device(
      &entry, succeeds(ask.hipDeviceGetName, entry.name, int{sizeof entry.name - 1}, device));
  int version = 0, capability[2] = {};
  succeeds(ask.hipRuntimeGetVersion, &version);
  succeeds(ask.hipDeviceComputeCapability, &capability[0], &capability[1], device);
  entry.vendor = k_vendor;
  entry.driver_version = static_cast<uint32_t>(version);
  entry.feature_hash = hash_bytes(name, capability, sizeof capability);
  snprintf(entry.driver, sizeof entry.driver, "HIP runtime %d", version);
  classify_device(&entry);
  return entry;
}

int current_device() {
  int device = 0;
  return succeeds(asked().hipGetDevice, &device) ? device : 0;
}

const char* name_of(const Launch& launch, void* stream) {
  if (void* known = g.names.find(key_of(launch.function))) {
    return static_cast<const char*>(known);
  }
  const auto ask = asked().hipKernelNameRefByPtr;
  return ask == nullptr ? nullptr : ask(launch.function, stream);
}

uint64_t code_of(const Launch&) { return 0; }
void measure(const Launch&, weir_probe_code*) {}

bool is_captured(void* stream) {
  int status = 0;
  return succeeds(asked().hipStreamIsCapturing, stream, &status) && status != 0;
}

bool nodes_of(void* graph, void** nodes, size_t* count) {
  return succeeds(asked().hipGraphGetNodes, graph, nodes, count);
}

int type_of(void* node) {
  int type = -1;
  return succeeds(asked().hipGraphNodeGetType, node, &type) ? type : -1;
}

bool launch_of(void* node, Launch* out) {
  KernelNodeParams params{};
  if (!succeeds(asked().hipGraphKernelNodeGetParams, node, &params)) return false;
  out->function = params.function;
  out->sizes = sizes_of(params.grid, params.block, params.shared);
  return true;
}

void* child_of(void* node) {
  void* child = nullptr;
  return succeeds(asked().hipGraphChildGraphNodeGetGraph, node, &child) ? child : nullptr;
}

}  // namespace streams
}  // namespace weir_probe
