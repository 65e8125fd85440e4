// The OpenCL layer: named in OPENCL_LAYERS, the loader puts it between the program and the drivers.
// It passes every call on unchanged, and counts. The loader enters at the bottom of this file.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {

Globals g = {};

// --- The files, and the entries of devices and kernels in them.

namespace {

constexpr Capacity k_capacity{16, 128, 4096, 8, 0, 0, 0, 4096, 4096};

// Runs in the child of a fork: events and clock readings belong to the parent.
void reset_after_fork() {
  detach_events_after_fork();
  g.queues.each([](void* queue) { reset_pending(static_cast<Queue*>(queue)); });
  g.devices.each([](void* device) { static_cast<Device*>(device)->last_calibration = 0; });
}

}  // namespace

void ensure_initialized() {
  const auto open = [] {
    open_file(&g.file, "opencl", k_capacity);
    g.markers = add_counter(&g.file, "markers");
    g.copied_bytes = add_counter(&g.file, "device_copied_bytes");
    add_memory_counters();
    open_events(g.file);
  };
  weir_probe::ensure_initialized(&g, open, reset_after_fork, make_forked_events);
}

// The functions below ask the driver without the lock: a driver that starts a process meanwhile
// would wait for itself in before_fork.

// Returns the device's record, and adds it if it is new; null when memory is out.
Device* find_or_add_device(cl_device_id handle) {
  if (void* record = g.devices.find(handle_key(handle))) return static_cast<Device*>(record);
  weir_probe_device entry;
  (void)describe_device({g.driver.clGetDeviceInfo, g.driver.clGetPlatformInfo}, handle, &entry);
  const Locked locked(&g.lock);
  ensure_initialized();
  auto* device = find_or_add_record<Device>(&g.devices, handle_key(handle));
  if (device != nullptr && device->entry == nullptr) {
    device->handle = handle;
    device->index = add_device(&g.file, entry);
    device->entry = &g.file.devices[device->index];
  }
  return device;
}

namespace {

// Records a kernel with its name and a hash of its code. `program` is null if it is unknown;
// `original` is the kernel that this is a copy of, or null.
Kernel* record_kernel(cl_kernel handle, cl_program program, const Kernel* original) {
  size_t size = 0;
  char* name = nullptr;
  const auto get_info = g.driver.clGetKernelInfo;
  if (get_info != nullptr &&
      get_info(handle, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) == CL_SUCCESS &&
      size < size_t{1} << 20) {
    name = static_cast<char*>(calloc(1, size + 1));
  }
  if (name != nullptr) get_info(handle, CL_KERNEL_FUNCTION_NAME, size, name, nullptr);
  pthread_mutex_lock(&g.lock);
  ensure_initialized();
  auto* kernel = find_or_add_record<Kernel>(&g.kernels, handle_key(handle));
  if (kernel != nullptr) {
    copy_text(kernel->name, sizeof kernel->name, name);
    kernel->hash = name == nullptr ? 0 : hash_text(name);
    kernel->code = original != nullptr ? original->code : kernel_code_hash(program, kernel->hash);
    __atomic_store_n(&kernel->place, 0, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&g.lock);
  free(name);
  return kernel;
}

cl_kernel create_kernel(cl_program program, const char* name, cl_int* error) {
  cl_kernel kernel = g.driver.clCreateKernel(program, name, error);
  if (kernel != nullptr) record_kernel(kernel, program, nullptr);
  return kernel;
}

cl_int create_kernels(cl_program program, cl_uint room, cl_kernel* kernels, cl_uint* count) {
  cl_uint available = 0;
  const cl_int result = g.driver.clCreateKernelsInProgram(program, room, kernels, &available);
  if (count != nullptr) *count = available;
  if (result != CL_SUCCESS || kernels == nullptr) return result;
  for (cl_uint i = 0; i < available && i < room; ++i) record_kernel(kernels[i], program, nullptr);
  return result;
}

cl_kernel clone_kernel(cl_kernel original, cl_int* error) {
  cl_kernel kernel = g.driver.clCloneKernel(original, error);
  if (kernel != nullptr)
    record_kernel(kernel, nullptr, g.kernels.get<Kernel>(handle_key(original)));
  return kernel;
}

}  // namespace

// Returns the file's entry of a kernel on a device. The kernel's record caches it for the device
// that used it last.
KernelEntry find_or_add_kernel(Device* device, cl_kernel handle) {
  auto* kernel = g.kernels.get<Kernel>(handle_key(handle));
  const uint64_t device_number = static_cast<uint64_t>(device->index) + 1;
  if (kernel != nullptr) {
    const uint64_t cached_place = __atomic_load_n(&kernel->place, __ATOMIC_ACQUIRE);
    if (cached_place >> 32 == device_number) {
      return {static_cast<uint32_t>(cached_place),
              __atomic_load_n(&kernel->code_entry, __ATOMIC_RELAXED)};
    }
  }
  if (kernel == nullptr) kernel = record_kernel(handle, nullptr, nullptr);
  if (kernel == nullptr || kernel->name[0] == 0) return {};
  KernelEntry entry{};
  {
    const Locked locked(&g.lock);
    entry.index =
        kernel_index(&g.file, device->index, kernel->hash, /*named=*/true, kernel->name, "");
  }
  if (kernel->code != 0)
    entry.code = g.codes.find_or_add(&g.file, &g.lock, entry.index, kernel->code);
  __atomic_store_n(&kernel->code_entry, entry.code, __ATOMIC_RELAXED);
  __atomic_store_n(&kernel->place, device_number << 32 | entry.index, __ATOMIC_RELEASE);
  return entry;
}

// --- The functions that the loader calls.

namespace {

cl_icd_dispatch g_table;  // the functions that the layer above, or the program, calls

// Warns when the program looks up an extension function that enqueues commands. Its calls bypass
// the layer; but it may never be called, so this is no error. Returns `function`.
void* warn_of_extension(const char* name, void* function) {
  if (function == nullptr || name == nullptr || strncmp(name, "clEnqueue", 9) != 0) return function;
  if (!raise_flag(&g, WEIR_PROBE_CALLS_UNSEEN)) return function;
  report_not_counting("opencl", "what goes through an extension,", name, 0);
  return function;
}

void* get_extension_function(const char* name) {
  return warn_of_extension(name, g.driver.clGetExtensionFunctionAddress(name));
}

void* get_extension_function_for_platform(cl_platform_id platform, const char* name) {
  return warn_of_extension(name, g.driver.clGetExtensionFunctionAddressForPlatform(platform, name));
}

}  // namespace
}  // namespace weir_probe::opencl

using namespace weir_probe::opencl;

// Answers the OpenCL loader's question for the layer's name or the version of its interface.
WEIR_EXPORTED cl_int clGetLayerInfo(cl_layer_info property, size_t size, void* value,
                                    size_t* size_out) {
  const auto copy_answer = [&](const void* source, size_t source_bytes) {
    if (value != nullptr && size < source_bytes) return CL_INVALID_VALUE;
    if (value != nullptr) memcpy(value, source, source_bytes);
    if (size_out != nullptr) *size_out = source_bytes;
    return CL_SUCCESS;
  };
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  constexpr char k_name[] = "weir";
  if (property == CL_LAYER_API_VERSION) return copy_answer(&version, sizeof version);
  if (property == CL_LAYER_NAME) return copy_answer(k_name, sizeof k_name);
  return CL_INVALID_VALUE;
}

// Takes the loader's table of `entries` functions below this layer, and returns the layer's own
// table, with the intercepted functions replaced.
WEIR_EXPORTED cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* below,
                                 cl_uint* entries_out, const cl_icd_dispatch** out) {
  constexpr cl_uint k_entries = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (below == nullptr || entries_out == nullptr || out == nullptr) return CL_INVALID_VALUE;
  // An older loader has fewer functions; the rest stays null and is not intercepted.
  memcpy(static_cast<void*>(&g.driver), below,
         (entries < k_entries ? entries : k_entries) * sizeof(void*));
  g_table = g.driver;
  g.events_requested = secure_getenv(WEIR_PROBE_EVENTS_VARIABLE) != nullptr;
  intercept_queues(&g_table);
  intercept_programs(&g_table);
  WEIR_INTERCEPT(&g_table, clCreateKernel, create_kernel);
  WEIR_INTERCEPT(&g_table, clCreateKernelsInProgram, create_kernels);
  WEIR_INTERCEPT(&g_table, clCloneKernel, clone_kernel);
  intercept_commands(&g_table);
  intercept_memory(&g_table);
  WEIR_INTERCEPT(&g_table, clGetExtensionFunctionAddress, get_extension_function);
  WEIR_INTERCEPT(&g_table, clGetExtensionFunctionAddressForPlatform,
                 get_extension_function_for_platform);
  *entries_out = entries < k_entries ? entries : k_entries;
  *out = &g_table;
  return CL_SUCCESS;
}
