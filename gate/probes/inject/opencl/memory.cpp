// Memory that a program asks a context for: buffers, images, shared virtual memory. Sizes as they
// were asked for; a driver may wait until a device needs them.
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

uint64_t *g_peak, *g_steady, *g_allocations;  // counters
Level g_level;                                // under g.lock
Table g_shared;                               // address of shared virtual memory -> its bytes

void taken(uint64_t bytes) {
  const Locked locked(&g.lock);
  make_ready();
  add(g_allocations, 1);
  add(g_peak, g_level.rise(bytes));
}
void given_back(uint64_t bytes) {
  const Locked locked(&g.lock);
  g_level.fall(bytes);
}

void CL_CALLBACK object_is_gone(cl_mem, void* bytes) {
  given_back(reinterpret_cast<size_t>(bytes));
}

// The driver says when it is gone: not before the last kernel that uses it, nor its parts.
cl_mem made(cl_mem memory, cl_mem_flags flags, size_t bytes) {
  const auto tell = g.next.clSetMemObjectDestructorCallback;
  if (memory == nullptr || tell == nullptr || (flags & CL_MEM_USE_HOST_PTR) != 0) return memory;
  taken(bytes);
  tell(memory, object_is_gone, reinterpret_cast<void*>(bytes));
  return memory;
}
cl_mem made_image(cl_mem image, cl_mem_flags flags) {
  size_t bytes = 0;
  const auto ask = g.next.clGetMemObjectInfo;
  if (image == nullptr || ask == nullptr ||
      ask(image, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) {
    return image;
  }
  return made(image, flags, bytes);
}

cl_mem create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host,
                     cl_int* error) {
  return made(g.next.clCreateBuffer(context, flags, bytes, host, error), flags, bytes);
}
cl_mem create_buffer_with(cl_context context, const cl_mem_properties* properties,
                          cl_mem_flags flags, size_t bytes, void* host, cl_int* error) {
  return made(g.next.clCreateBufferWithProperties(context, properties, flags, bytes, host, error),
              flags, bytes);
}
// One that is made of a buffer takes no memory of its own.
cl_mem create_image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                    const cl_image_desc* desc, void* host, cl_int* error) {
  cl_mem image = g.next.clCreateImage(context, flags, format, desc, host, error);
  return desc != nullptr && desc->mem_object != nullptr ? image : made_image(image, flags);
}

void* shared_alloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  void* at = g.next.clSVMAlloc(context, flags, bytes, alignment);
  if (at != nullptr && g_shared.insert(number(at), reinterpret_cast<void*>(bytes))) taken(bytes);
  return at;
}
void shared_free(cl_context context, void* at) {
  given_back(reinterpret_cast<size_t>(g_shared.remove(number(at))));
  g.next.clSVMFree(context, at);
}

}  // namespace

void have_memory() {
  g_peak = add_counter(&g.file, "device_memory_peak_bytes");
  g_steady = add_counter(&g.file, "device_memory_steady_bytes");
  g_allocations = add_counter(&g.file, "allocations");
}

void note_memory() {
  __atomic_store_n(g_steady, __atomic_load_n(&g_level.now, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void put_memory(cl_icd_dispatch* table) {
  WEIR_PUT(table, clCreateBuffer, create_buffer);
  WEIR_PUT(table, clCreateBufferWithProperties, create_buffer_with);
  WEIR_PUT(table, clCreateImage, create_image);
  WEIR_PUT(table, clSVMAlloc, shared_alloc);
  WEIR_PUT(table, clSVMFree, shared_free);
}

}  // namespace weir_probe::opencl
