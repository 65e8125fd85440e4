// Counts memory that a program allocates in a context: buffers, images, shared virtual memory.
// Sizes are those requested; a driver may allocate them when a device needs them.
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

uint64_t *g_peak, *g_steady, *g_allocations;  // counters
Level g_level;                                // under g.lock
Table g_shared;                               // address of shared virtual memory -> its bytes

void count_allocation(uint64_t bytes) {
  const Locked locked(&g.lock);
  ensure_initialized();
  add(g_allocations, 1);
  add(g_peak, g_level.rise(bytes));
}
void count_free(uint64_t bytes) {
  const Locked locked(&g.lock);
  g_level.fall(bytes);
}

void CL_CALLBACK on_object_destroyed(cl_mem, void* bytes) {
  count_free(reinterpret_cast<size_t>(bytes));
}

// Counts a new memory object and has the driver report its end, which comes after the last kernel
// that uses it and after its parts. Returns `memory`.
cl_mem track_object(cl_mem memory, cl_mem_flags flags, size_t bytes) {
  const auto set_callback = g.driver.clSetMemObjectDestructorCallback;
  if (memory == nullptr || set_callback == nullptr || (flags & CL_MEM_USE_HOST_PTR) != 0)
    return memory;
  count_allocation(bytes);
  set_callback(memory, on_object_destroyed, reinterpret_cast<void*>(bytes));
  return memory;
}
cl_mem track_image(cl_mem image, cl_mem_flags flags) {
  size_t bytes = 0;
  const auto get_info = g.driver.clGetMemObjectInfo;
  if (image == nullptr || get_info == nullptr ||
      get_info(image, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) {
    return image;
  }
  return track_object(image, flags, bytes);
}

cl_mem create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host,
                     cl_int* error) {
  return track_object(g.driver.clCreateBuffer(context, flags, bytes, host, error), flags, bytes);
}
cl_mem create_buffer_with(cl_context context, const cl_mem_properties* properties,
                          cl_mem_flags flags, size_t bytes, void* host, cl_int* error) {
  return track_object(
      g.driver.clCreateBufferWithProperties(context, properties, flags, bytes, host, error), flags,
      bytes);
}
// Creates an image. One that is made of a buffer takes no memory of its own.
cl_mem create_image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                    const cl_image_desc* desc, void* host, cl_int* error) {
  cl_mem image = g.driver.clCreateImage(context, flags, format, desc, host, error);
  return desc != nullptr && desc->mem_object != nullptr ? image : track_image(image, flags);
}

void* shared_alloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  void* at = g.driver.clSVMAlloc(context, flags, bytes, alignment);
  if (at != nullptr && g_shared.insert(handle_key(at), reinterpret_cast<void*>(bytes)))
    count_allocation(bytes);
  return at;
}
void shared_free(cl_context context, void* at) {
  count_free(reinterpret_cast<size_t>(g_shared.remove(handle_key(at))));
  g.driver.clSVMFree(context, at);
}

}  // namespace

void add_memory_counters() {
  g_peak = add_counter(&g.file, "device_memory_peak_bytes");
  g_steady = add_counter(&g.file, "device_memory_steady_bytes");
  g_allocations = add_counter(&g.file, "allocations");
}

void record_steady_memory() {
  __atomic_store_n(g_steady, __atomic_load_n(&g_level.now, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void intercept_memory(cl_icd_dispatch* table) {
  WEIR_INTERCEPT(table, clCreateBuffer, create_buffer);
  WEIR_INTERCEPT(table, clCreateBufferWithProperties, create_buffer_with);
  WEIR_INTERCEPT(table, clCreateImage, create_image);
  WEIR_INTERCEPT(table, clSVMAlloc, shared_alloc);
  WEIR_INTERCEPT(table, clSVMFree, shared_free);
}

}  // namespace weir_probe::opencl
