// The OpenCL layer: named in OPENCL_LAYERS, the loader puts it between the program and the drivers.
// It passes every call on unchanged, and counts. Where it is entered: at the bottom of this file.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {

Globals g = {};

// --- The files, devices and kernels: which entry of the file they are.

namespace {

constexpr Capacity k_capacity{16, 128, 4096, 8, 0, 0, 0, 4096, 4096};

void in_child() {
  detach_events_after_fork();
  g.queues.each([](void* queue) { forget_flights(static_cast<Queue*>(queue)); });
  g.devices.each([](void* device) { static_cast<Device*>(device)->last_tie = 0; });
}

}  // namespace

void make_ready() {
  const auto open = [] {
    open_file(&g.file, "opencl", k_capacity);
    g.markers = add_counter(&g.file, "markers");
    g.copied_bytes = add_counter(&g.file, "device_copied_bytes");
    have_memory();
    open_events(g.file);
  };
  weir_probe::make_ready(&g, open, in_child, make_forked_events);
}

// What follows asks the driver without the lock: one that starts a process meanwhile would wait for
// itself in before_fork.

Device* device_of(cl_device_id handle) {
  if (void* known = g.devices.find(number(handle))) return static_cast<Device*>(known);
  weir_probe_device entry;
  (void)describe_device({g.next.clGetDeviceInfo, g.next.clGetPlatformInfo}, handle, &entry);
  const Locked locked(&g.lock);
  make_ready();
  auto* device = record_of<Device>(&g.devices, number(handle));
  if (device != nullptr && device->entry == nullptr) {
    device->handle = handle;
    device->index = add_device(&g.file, entry);
    device->entry = &g.file.devices[device->index];
  }
  return device;
}

namespace {

// `program`: null where it is not known. `like`: one that it is a copy of, or null.
Kernel* describe_kernel(cl_kernel handle, cl_program program, const Kernel* like) {
  size_t size = 0;
  char* name = nullptr;
  const auto ask = g.next.clGetKernelInfo;
  if (ask != nullptr && ask(handle, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) == CL_SUCCESS &&
      size < size_t{1} << 20) {
    name = static_cast<char*>(calloc(1, size + 1));
  }
  if (name != nullptr) ask(handle, CL_KERNEL_FUNCTION_NAME, size, name, nullptr);
  pthread_mutex_lock(&g.lock);
  make_ready();
  auto* kernel = record_of<Kernel>(&g.kernels, number(handle));
  if (kernel != nullptr) {
    copy_text(kernel->name, sizeof kernel->name, name);
    kernel->hash = name == nullptr ? 0 : hash_text(name);
    kernel->code = like != nullptr ? like->code : code_of(program, kernel->hash);
    __atomic_store_n(&kernel->place, 0, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&g.lock);
  free(name);
  return kernel;
}

cl_kernel create_kernel(cl_program program, const char* name, cl_int* error) {
  cl_kernel made = g.next.clCreateKernel(program, name, error);
  if (made != nullptr) describe_kernel(made, program, nullptr);
  return made;
}

cl_int create_kernels(cl_program program, cl_uint room, cl_kernel* kernels, cl_uint* count) {
  cl_uint made = 0;
  const cl_int result = g.next.clCreateKernelsInProgram(program, room, kernels, &made);
  if (count != nullptr) *count = made;
  if (result != CL_SUCCESS || kernels == nullptr) return result;
  for (cl_uint i = 0; i < made && i < room; ++i) describe_kernel(kernels[i], program, nullptr);
  return result;
}

cl_kernel clone_kernel(cl_kernel kernel, cl_int* error) {
  cl_kernel made = g.next.clCloneKernel(kernel, error);
  if (made != nullptr) describe_kernel(made, nullptr, g.kernels.get<Kernel>(number(kernel)));
  return made;
}

}  // namespace

KernelEntry kernel_on(Device* device, cl_kernel handle) {
  auto* kernel = g.kernels.get<Kernel>(number(handle));
  const uint64_t wanted = static_cast<uint64_t>(device->index) + 1;
  if (kernel != nullptr) {
    const uint64_t place = __atomic_load_n(&kernel->place, __ATOMIC_ACQUIRE);
    if (place >> 32 == wanted) {
      return {static_cast<uint32_t>(place), __atomic_load_n(&kernel->counted, __ATOMIC_RELAXED)};
    }
  }
  if (kernel == nullptr) kernel = describe_kernel(handle, nullptr, nullptr);
  if (kernel == nullptr || kernel->name[0] == 0) return {};
  KernelEntry out{};
  {
    const Locked locked(&g.lock);
    out.index = kernel_entry(&g.file, device->index, kernel->hash, true, kernel->name, "");
  }
  if (kernel->code != 0) out.code = g.codes.entry_of(&g.file, &g.lock, out.index, kernel->code);
  __atomic_store_n(&kernel->counted, out.code, __ATOMIC_RELAXED);
  __atomic_store_n(&kernel->place, wanted << 32 | out.index, __ATOMIC_RELEASE);
  return out;
}

// --- Where the layer is entered.

namespace {

cl_icd_dispatch g_table;  // what the layer above, or the program, calls

// Command buffers and the like are reached through functions that only the driver knows: their
// calls pass the layer by. Asking is not using, so this is a warning, not an error.
void* note_extension(const char* name, void* found) {
  if (found == nullptr || name == nullptr || strncmp(name, "clEnqueue", 9) != 0) return found;
  if (!tell_flag(&g, WEIR_PROBE_CALLS_UNSEEN)) return found;
  complain("opencl", "what goes through an extension,", name, 0);
  return found;
}

void* get_extension_function(const char* name) {
  return note_extension(name, g.next.clGetExtensionFunctionAddress(name));
}

void* get_extension_function_for_platform(cl_platform_id platform, const char* name) {
  return note_extension(name, g.next.clGetExtensionFunctionAddressForPlatform(platform, name));
}

}  // namespace
}  // namespace weir_probe::opencl

using namespace weir_probe::opencl;

WEIR_EXPORTED cl_int clGetLayerInfo(cl_layer_info what, size_t size, void* value,
                                    size_t* size_out) {
  const auto answer = [&](const void* from, size_t needed) {
    if (value != nullptr && size < needed) return CL_INVALID_VALUE;
    if (value != nullptr) memcpy(value, from, needed);
    if (size_out != nullptr) *size_out = needed;
    return CL_SUCCESS;
  };
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  constexpr char k_name[] = "weir";
  if (what == CL_LAYER_API_VERSION) return answer(&version, sizeof version);
  if (what == CL_LAYER_NAME) return answer(k_name, sizeof k_name);
  return CL_INVALID_VALUE;
}

WEIR_EXPORTED cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* below,
                                 cl_uint* entries_out, const cl_icd_dispatch** out) {
  constexpr cl_uint k_entries = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (below == nullptr || entries_out == nullptr || out == nullptr) return CL_INVALID_VALUE;
  // An older loader has fewer; the rest stays null, and nothing stands in front of it.
  memcpy(static_cast<void*>(&g.next), below,
         (entries < k_entries ? entries : k_entries) * sizeof(void*));
  g_table = g.next;
  g.events_asked = secure_getenv(WEIR_PROBE_EVENTS_VARIABLE) != nullptr;
  put_queues(&g_table);
  put_programs(&g_table);
  WEIR_PUT(&g_table, clCreateKernel, create_kernel);
  WEIR_PUT(&g_table, clCreateKernelsInProgram, create_kernels);
  WEIR_PUT(&g_table, clCloneKernel, clone_kernel);
  put_commands(&g_table);
  put_memory(&g_table);
  WEIR_PUT(&g_table, clGetExtensionFunctionAddress, get_extension_function);
  WEIR_PUT(&g_table, clGetExtensionFunctionAddressForPlatform, get_extension_function_for_platform);
  *entries_out = entries < k_entries ? entries : k_entries;
  *out = &g_table;
  return CL_SUCCESS;
}
