// HIP's own queries of the GPU, and its other names of common functions.
#include <stdio.h>
#include <string.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

// hipDeviceProp_tR0600: the fields that engines read; the others are 0.
struct Properties {
  char name[256], uuid[16], luid[8];
  unsigned luid_mask;
  size_t total_bytes, shared_per_block;
  int registers_per_block, warp;
  size_t max_pitch;
  int max_threads, max_block[3], max_grid[3], clock_rate;
  size_t constant_bytes;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int device_overlap, processors, has_time_limit, is_integrated, maps_host_memory;
  int mode_textures_surfaces[43];
  int concurrent_kernels, has_ecc, pci_bus, pci_device, pci_domain, tcc;
  int copy_engines, unified_addressing, memory_clock_rate, bus_width, l2_bytes;
  int persisting_l2_bytes, threads_per_processor, has_priorities, caches[2];
  size_t shared_per_processor;
  int registers_per_processor, managed_memory, boards[7];
  int host_pointers, cooperative_launch, cooperative_launch_of_many;
  size_t shared_per_block_optin;
  int rest[114];
  char target[256];
  size_t max_shared_per_processor;
  int more[10], is_large_bar, revision;
};
static_assert(offsetof(Properties, processors) == 388 && offsetof(Properties, pci_bus) == 584 &&
              offsetof(Properties, cooperative_launch) == 688 &&
              offsetof(Properties, shared_per_block_optin) == 696 &&
              offsetof(Properties, target) == 1160 && offsetof(Properties, revision) == 1468 &&
              sizeof(Properties) == 1472);

size_t attribute_size(int number) { return static_cast<size_t>(attribute(number)); }

// Fills in HIP's properties of device `index` from the description of the simulated GPU.
void fill_properties(Properties* out, int index) {
  const weir_runtime_twin& gpu = *twin();
  *out = {};
  copy_text(out->name, sizeof out->name, gpu.name);
  snprintf(out->uuid, sizeof out->uuid, "weir%d", index);
  copy_text(out->target, sizeof out->target, target());
  out->total_bytes = gpu.total_bytes;
  out->shared_per_block = attribute_size(k_shared_per_block);
  out->registers_per_block = attribute(k_registers_per_block);
  out->warp = attribute(k_warp_size);
  out->max_pitch = 0x7fffffff;
  out->max_threads = attribute(k_max_threads_per_block);
  for (int i = 0; i < 3; ++i) {
    out->max_block[i] = attribute(k_max_block_x + i);
    out->max_grid[i] = attribute(k_max_grid_x + i);
  }
  out->clock_rate = attribute(k_clock_rate);
  out->constant_bytes = attribute_size(k_constant_memory);
  out->major = attribute(k_major);
  out->minor = attribute(k_minor);
  out->processors = attribute(k_processors);
  out->is_integrated = attribute(k_integrated);
  out->maps_host_memory = attribute(k_can_map_host_memory);
  out->concurrent_kernels = attribute(k_concurrent_kernels);
  out->pci_bus = attribute(k_pci_bus) + index;
  out->pci_device = attribute(k_pci_device);
  out->pci_domain = attribute(k_pci_domain);
  out->memory_clock_rate = attribute(k_memory_clock_rate);
  out->bus_width = attribute(k_memory_bus_width);
  out->l2_bytes = attribute(k_l2_bytes);
  out->threads_per_processor = attribute(k_threads_per_processor);
  out->shared_per_processor = attribute_size(k_shared_per_processor);
  out->registers_per_processor = attribute(k_registers_per_processor);
  out->managed_memory = attribute(k_managed_memory);
  out->cooperative_launch = attribute(k_cooperative_launch);
  out->shared_per_block_optin = attribute_size(k_shared_per_block_optin);
  out->max_shared_per_processor = attribute_size(k_shared_per_processor);
  out->is_large_bar = 1;
}

}  // namespace

extern "C" int hipDriverGetVersion(int* version);
extern "C" int hipHostAlloc(void** out, size_t bytes, unsigned flags);
extern "C" int hipFreeHost(void* at);

const char* target() { return reinterpret_cast<const Description*>(twin())->target; }

WEIR_RUNTIME(Init, (unsigned)) { return success_if(twin() != nullptr, k_no_device); }
WEIR_RUNTIME(GetDevicePropertiesR0600, (Properties * out, int index)) {
  if (out == nullptr) return fail(k_invalid_value);
  if (const int error = check_device(index)) return error;
  fill_properties(out, index);
  return k_ok;
}
WEIR_RUNTIME(DeviceGetName, (char* out, int size, int index)) {
  if (const int error = check_device(index)) return error;
  copy_text(out, static_cast<size_t>(size), twin()->name);
  return k_ok;
}
WEIR_RUNTIME(DeviceComputeCapability, (int* major, int* minor, int index)) {
  *major = attribute(k_major);
  *minor = attribute(k_minor);
  return check_device(index);
}
WEIR_RUNTIME(DeviceTotalMem, (size_t * out, int index)) {
  if (const int error = check_device(index)) return error;
  *out = twin()->total_bytes;
  return k_ok;
}
WEIR_RUNTIME(RuntimeGetVersion, (int* version)) { return hipDriverGetVersion(version); }

WEIR_RUNTIME(HostMalloc, (void** out, size_t bytes, unsigned flags)) {
  return hipHostAlloc(out, bytes, flags);
}
WEIR_RUNTIME(HostFree, (void* at)) { return hipFreeHost(at); }
// Advice changes nothing that a program could see.
WEIR_RUNTIME(MemAdvise, (const void*, size_t, int, int)) { return k_ok; }
WEIR_RUNTIME(MemPrefetchAsync, (const void*, size_t, int, void*)) { return k_ok; }

WEIR_RUNTIME(GraphExecUpdate, (void* exec, void* graph, void** error_node, int* result)) {
  constexpr int k_topology_changed = 2;
  const bool updates = can_update(exec, graph);
  *error_node = nullptr;
  *result = updates ? 0 : k_topology_changed;
  return success_if(updates, k_update_failed);
}

WEIR_BLAS_OF(const char*, StatusToString, (int status)) {
  return status == 0 ? "HIPBLAS_STATUS_SUCCESS" : "HIPBLAS_STATUS_EXECUTION_FAILED";
}
// rocBLAS is loaded beside hipBLAS and asked for nothing.
WEIR_EXPORTED void rocblas_initialize() {}

}  // namespace weir_probe::runtime_twin
