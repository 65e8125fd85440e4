// The files, devices and kernels: which entry of the file they are.
#include "gate/probes/inject/opencl/objects.h"

#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/opencl/class.h"
#include "gate/probes/inject/opencl/events.h"
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

constexpr Capacity k_capacity{16, 128, 4096, 4, 0, 0, 0, 4096};

bool g_fork_handled;

void before_fork() { pthread_mutex_lock(&g.lock); }
void after_fork_in_parent() { pthread_mutex_unlock(&g.lock); }
void after_fork_in_child() {
  pthread_mutex_init(&g.lock, nullptr);
  g.devices.unlock_after_fork();
  g.queues.unlock_after_fork();
  g.kernels.unlock_after_fork();
  g.launches.unlock_after_fork();
  detach_events_after_fork();
  g.queues.each([](void* queue) { forget_flights(static_cast<Queue*>(queue)); });
  g.devices.each([](void* device) { static_cast<Device*>(device)->last_tie = 0; });
  detach_after_fork(&g.file);
  g.ready = false;
}

}  // namespace

void make_ready() {
  if (g.file.header == nullptr) {
    open_file(&g.file, "opencl", k_capacity);
    g.markers = add_counter(&g.file, "markers");
    g.copied_bytes = add_counter(&g.file, "device_copied_bytes");
    open_events(g.file);
  }
  if (!g_fork_handled) {
    g_fork_handled = true;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
  make_forked_file(&g.file);
  make_forked_events(g.file);
  if (__atomic_load_n(&g.calls_unseen, __ATOMIC_RELAXED)) {
    set_flag(&g.file, WEIR_PROBE_CALLS_UNSEEN);
  }
  __atomic_store_n(&g.ready, true, __ATOMIC_RELEASE);
}

// What follows asks the driver without the lock: one that starts a process meanwhile would wait for
// itself in before_fork.

Device* device_of(cl_device_id handle) {
  if (void* known = g.devices.find(number(handle))) return static_cast<Device*>(known);
  DeviceClass described;
  const bool answered =
      describe_device({g.next.clGetDeviceInfo, g.next.clGetPlatformInfo}, handle, &described);
  weir_probe_device entry;
  memset(&entry, 0, sizeof entry);
  copy_text(entry.api, sizeof entry.api, "opencl");
  copy_text(entry.type, sizeof entry.type, described.type);
  if (answered) copy_text(entry.device_class, sizeof entry.device_class, described.text);
  copy_text(entry.name, sizeof entry.name, described.name);
  copy_text(entry.driver, sizeof entry.driver, described.driver);
  entry.vendor = described.vendor;
  entry.device = described.device;
  entry.driver_id = described.driver_id;
  entry.driver_version = described.driver_version;
  entry.feature_hash = described.feature_hash;
  pthread_mutex_lock(&g.lock);
  make_ready();
  auto* device = record_of<Device>(&g.devices, number(handle));
  if (device != nullptr && device->entry == nullptr) {
    device->handle = handle;
    device->index = add_device(&g.file, entry);
    device->entry = &g.file.devices[device->index];
  }
  pthread_mutex_unlock(&g.lock);
  return device;
}

namespace {

Kernel* describe_kernel(cl_kernel handle) {
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
    copy_text(kernel->name, sizeof kernel->name, name == nullptr ? "" : name);
    kernel->hash = name == nullptr ? 0 : hash_bytes(k_hash_seed, name, strlen(name));
    __atomic_store_n(&kernel->place, 0, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&g.lock);
  free(name);
  return kernel;
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* error) {
  cl_kernel made = g.next.clCreateKernel(program, name, error);
  if (made != nullptr) describe_kernel(made);
  return made;
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint room, cl_kernel* kernels,
                                  cl_uint* count) {
  cl_uint made = 0;
  const cl_int result = g.next.clCreateKernelsInProgram(program, room, kernels, &made);
  if (count != nullptr) *count = made;
  if (result != CL_SUCCESS || kernels == nullptr) return result;
  for (cl_uint i = 0; i < made && i < room; ++i) describe_kernel(kernels[i]);
  return result;
}

cl_kernel CL_API_CALL clone_kernel(cl_kernel kernel, cl_int* error) {
  cl_kernel made = g.next.clCloneKernel(kernel, error);
  if (made != nullptr) describe_kernel(made);
  return made;
}

}  // namespace

uint32_t kernel_on(Device* device, cl_kernel handle) {
  auto* kernel = static_cast<Kernel*>(g.kernels.find(number(handle)));
  const uint64_t wanted = static_cast<uint64_t>(device->index) + 1;
  if (kernel != nullptr) {
    const uint64_t place = __atomic_load_n(&kernel->place, __ATOMIC_ACQUIRE);
    if (place >> 32 == wanted) return static_cast<uint32_t>(place);
  }
  if (kernel == nullptr) kernel = describe_kernel(handle);
  uint32_t entry = 0;
  pthread_mutex_lock(&g.lock);
  if (kernel != nullptr && kernel->name[0] != 0) {
    entry = kernel_entry(&g.file, device->index, kernel->hash, true, kernel->name, "");
    __atomic_store_n(&kernel->place, wanted << 32 | entry, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&g.lock);
  return entry;
}

void put_objects(cl_icd_dispatch* table) {
  put_queues(table);
  WEIR_PUT(table, clCreateKernel, create_kernel);
  WEIR_PUT(table, clCreateKernelsInProgram, create_kernels);
  WEIR_PUT(table, clCloneKernel, clone_kernel);
}

}  // namespace weir_probe::opencl
