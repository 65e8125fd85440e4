// What is enqueued. A command counts when the driver has taken it.
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// What a copy moves. Bytes are those that the call names, whether or not the device has to move
// them (a map on one that shares the host's memory moves none); 0: not told.
struct Moved {
  uint32_t kind;  // weir_copy_kind
  uint64_t bytes;
  cl_bool blocking = CL_FALSE;
};

uint64_t volume(const size_t* region) {
  return region == nullptr ? 0 : uint64_t{region[0]} * region[1] * region[2];
}

uint64_t image_bytes(cl_mem image, const size_t* region) {
  size_t element = 0;
  const auto ask = g.next.clGetImageInfo;
  if (ask == nullptr ||
      ask(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr) != CL_SUCCESS) {
    return 0;
  }
  return volume(region) * element;
}

uint32_t mapped_kind(cl_map_flags flags) {
  return (flags & CL_MAP_READ) != 0 ? WEIR_COPY_READ : WEIR_COPY_WRITE;
}

// Of the arguments behind the queue.
template <uint32_t kind>  // read, write
constexpr auto of_buffer = [](cl_mem, cl_bool blocking, size_t, size_t size, auto...) {
  return Moved{kind, size, blocking};
};
template <uint32_t kind>
constexpr auto of_buffer_rect =
    [](cl_mem, cl_bool blocking, const size_t*, const size_t*, const size_t* region, auto...) {
      return Moved{kind, volume(region), blocking};
    };
template <uint32_t kind>
constexpr auto of_image =
    [](cl_mem image, cl_bool blocking, const size_t*, const size_t* region, auto...) {
      return Moved{kind, image_bytes(image, region), blocking};
    };
constexpr auto mapped_buffer = [](cl_mem, cl_bool blocking, cl_map_flags flags, size_t, size_t size,
                                  auto...) {
  return Moved{mapped_kind(flags), size, blocking};
};
constexpr auto mapped_image = [](cl_mem image, cl_bool blocking, cl_map_flags flags, const size_t*,
                                 const size_t* region, auto...) {
  return Moved{mapped_kind(flags), image_bytes(image, region), blocking};
};
constexpr auto copied_buffer = [](cl_mem, cl_mem, size_t, size_t, size_t size, auto...) {
  return Moved{WEIR_COPY_BUFFER, size};
};
constexpr auto copied_buffer_rect = [](cl_mem, cl_mem, const size_t*, const size_t*,
                                       const size_t* region, auto...) {
  return Moved{WEIR_COPY_BUFFER, volume(region)};
};
constexpr auto copied_image = [](cl_mem image, cl_mem, const size_t*, const size_t*,
                                 const size_t* region, auto...) {
  return Moved{WEIR_COPY_IMAGE, image_bytes(image, region)};
};
constexpr auto image_to_buffer = [](cl_mem image, cl_mem, const size_t*, const size_t* region,
                                    auto...) {
  return Moved{WEIR_COPY_IMAGE, image_bytes(image, region)};
};
constexpr auto buffer_to_image = [](cl_mem, cl_mem image, size_t, const size_t*,
                                    const size_t* region, auto...) {
  return Moved{WEIR_COPY_IMAGE, image_bytes(image, region)};
};
constexpr auto filled_buffer = [](cl_mem, const void*, size_t, size_t, size_t size, auto...) {
  return Moved{WEIR_COPY_FILL, size};
};
constexpr auto filled_image = [](cl_mem image, const void*, const size_t*, const size_t* region,
                                 auto...) {
  return Moved{WEIR_COPY_FILL, image_bytes(image, region)};
};
constexpr auto copied_svm = [](cl_bool blocking, void*, const void*, size_t size, auto...) {
  return Moved{WEIR_COPY_BUFFER, size, blocking};
};
constexpr auto mapped_svm = [](cl_bool blocking, cl_map_flags flags, void*, size_t size, auto...) {
  return Moved{mapped_kind(flags), size, blocking};
};
constexpr auto filled_svm = [](void*, const void*, size_t, size_t size, auto...) {
  return Moved{WEIR_COPY_FILL, size};
};
// What moves, if anything, the driver knows alone.
constexpr auto migrated = [](auto...) { return Moved{WEIR_COPY_BUFFER, 0}; };

// In front of the function at `member` of the table, whatever its parameters.
template <auto member, What what, class Function>
struct Command;
template <auto member, What what, class... Rest>
struct Command<member, what, cl_int (*)(cl_command_queue, Rest...)> {
  static cl_int call(cl_command_queue queue, Rest... rest) {
    const cl_int result = (g.next.*member)(queue, rest...);
    if (result == CL_SUCCESS) count_command(queue_of(queue), what);
    return result;
  }
};

void count_copy(cl_command_queue handle, const Moved& moved, const Enqueued& enqueued) {
  Queue* queue = queue_of(handle);
  if (queue == nullptr) return;
  enqueued.tell(queue, 0, 1 + moved.kind, moved.bytes);
  add(g.copied_bytes, moved.bytes);
  count_command(queue, What::copy);
  if (moved.blocking == CL_FALSE) return;
  // The call returned when it was done.
  add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
  count_wait(queue, WEIR_WAIT_CALL, enqueued.begin());
}

// The one argument of its type: where the program wants the command's event, or its error.
template <class Wanted, class First, class... Rest>
Wanted& argument_of(First& first, Rest&... rest) {
  if constexpr (__is_same(First, Wanted)) {
    return first;
  } else {
    return argument_of<Wanted>(rest...);
  }
}

template <auto member, auto of, class Function>
struct Copy;
template <auto member, auto of, class... Rest>
struct Copy<member, of, cl_int (*)(cl_command_queue, Rest...)> {
  static cl_int call(cl_command_queue queue, Rest... rest) {
    Enqueued enqueued(queue, &argument_of<cl_event*>(rest...));
    const cl_int result = (g.next.*member)(queue, rest...);
    if (result == CL_SUCCESS) count_copy(queue, of(rest...), enqueued);
    return result;
  }
};
// Maps: they answer with an address, and with an error where the program wants it.
template <auto member, auto of, class... Rest>
struct Copy<member, of, void* (*)(cl_command_queue, Rest...)> {
  static void* call(cl_command_queue queue, Rest... rest) {
    Enqueued enqueued(queue, &argument_of<cl_event*>(rest...));
    cl_int mine = CL_SUCCESS;
    cl_int*& error = argument_of<cl_int*>(rest...);
    cl_int* const wanted = error;
    error = &mine;
    void* mapped = (g.next.*member)(queue, rest...);
    if (wanted != nullptr) *wanted = mine;
    if (mine == CL_SUCCESS) count_copy(queue, of(rest...), enqueued);
    return mapped;
  }
};

template <size_t count>
void copy_sizes(uint64_t (&to)[count], const size_t* from, cl_uint dimensions, uint64_t otherwise) {
  for (cl_uint i = 0; i < count; ++i) {
    to[i] = from != nullptr && i < dimensions ? from[i] : otherwise;
  }
}

void count_dispatch(cl_command_queue handle, cl_kernel kernel, cl_uint dimensions,
                    const size_t* global, const size_t* local, const Enqueued& enqueued) {
  Queue* queue = queue_of(handle);
  if (queue == nullptr) return;
  weir_probe_launch launch{};
  launch.kernel = kernel_on(queue->device, kernel);
  launch.dimensions = dimensions;
  copy_sizes(launch.global, global, dimensions, 1);
  copy_sizes(launch.local, local, dimensions, local == nullptr ? 0 : 1);
  add(&g.file.kernels[launch.kernel].dispatches, 1);
  g.launches.count(&g.file, &g.lock, launch);
  enqueued.tell(queue, launch.kernel, 0, 0);
  count_command(queue, What::dispatch);
}

cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                      const size_t* offset, const size_t* global, const size_t* local,
                      cl_uint waits, const cl_event* wait_list, cl_event* event) {
  Enqueued enqueued(queue, &event);
  const cl_int result = g.next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                      local, waits, wait_list, event);
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, dimensions, global, local, enqueued);
  return result;
}

cl_int enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits,
                    const cl_event* wait_list, cl_event* event) {
  Enqueued enqueued(queue, &event);
  const cl_int result = g.next.clEnqueueTask(queue, kernel, waits, wait_list, event);
  constexpr size_t k_one = 1;
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, 1, &k_one, &k_one, enqueued);
  return result;
}

}  // namespace

void count_command(Queue* queue, What what) {
  if (queue == nullptr) return;
  uint64_t* counters = queue->entry->counters;
  add(&counters[WEIR_COUNT_SUBMISSIONS], 1);
  if (what == What::marker) add(g.markers, 1);
  if (what < What::marker) add(&counters[static_cast<uint32_t>(what)], 1);
  __atomic_store_n(&queue->pending, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&queue->unflushed, 1, __ATOMIC_RELEASE);
}

#define WEIR_PUT_COMMAND(name, what) \
  WEIR_PUT(table, name, (&Command<&cl_icd_dispatch::name, what, decltype(table->name)>::call))
#define WEIR_PUT_COPY(name, of) \
  WEIR_PUT(table, name, (&Copy<&cl_icd_dispatch::name, of, decltype(table->name)>::call))

void put_commands(cl_icd_dispatch* table) {
  WEIR_PUT(table, clEnqueueNDRangeKernel, enqueue_kernel);
  WEIR_PUT(table, clEnqueueTask, enqueue_task);
  // Runs a function of the program's own, in the queue's order: work, but no kernel.
  WEIR_PUT_COMMAND(clEnqueueNativeKernel, What::other);

  WEIR_PUT_COMMAND(clEnqueueBarrier, What::barrier);
  WEIR_PUT_COMMAND(clEnqueueBarrierWithWaitList, What::barrier);
  WEIR_PUT_COMMAND(clEnqueueWaitForEvents, What::barrier);  // what it was called in OpenCL 1.0
  WEIR_PUT_COMMAND(clEnqueueMarker, What::marker);
  WEIR_PUT_COMMAND(clEnqueueMarkerWithWaitList, What::marker);

  WEIR_PUT_COPY(clEnqueueReadBuffer, of_buffer<WEIR_COPY_READ>);
  WEIR_PUT_COPY(clEnqueueReadBufferRect, of_buffer_rect<WEIR_COPY_READ>);
  WEIR_PUT_COPY(clEnqueueWriteBuffer, of_buffer<WEIR_COPY_WRITE>);
  WEIR_PUT_COPY(clEnqueueWriteBufferRect, of_buffer_rect<WEIR_COPY_WRITE>);
  WEIR_PUT_COPY(clEnqueueReadImage, of_image<WEIR_COPY_READ>);
  WEIR_PUT_COPY(clEnqueueWriteImage, of_image<WEIR_COPY_WRITE>);
  WEIR_PUT_COPY(clEnqueueSVMMemcpy, copied_svm);
  WEIR_PUT_COPY(clEnqueueSVMMap, mapped_svm);
  WEIR_PUT_COPY(clEnqueueMapBuffer, mapped_buffer);
  WEIR_PUT_COPY(clEnqueueMapImage, mapped_image);
  WEIR_PUT_COPY(clEnqueueCopyBuffer, copied_buffer);
  WEIR_PUT_COPY(clEnqueueCopyBufferRect, copied_buffer_rect);
  WEIR_PUT_COPY(clEnqueueCopyImage, copied_image);
  WEIR_PUT_COPY(clEnqueueCopyImageToBuffer, image_to_buffer);
  WEIR_PUT_COPY(clEnqueueCopyBufferToImage, buffer_to_image);
  WEIR_PUT_COPY(clEnqueueFillBuffer, filled_buffer);
  WEIR_PUT_COPY(clEnqueueFillImage, filled_image);
  WEIR_PUT_COPY(clEnqueueSVMMemFill, filled_svm);
  WEIR_PUT_COPY(clEnqueueMigrateMemObjects, migrated);
  WEIR_PUT_COPY(clEnqueueSVMMigrateMem, migrated);

  WEIR_PUT_COMMAND(clEnqueueUnmapMemObject, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMUnmap, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMFree, What::other);
  WEIR_PUT_COMMAND(clEnqueueAcquireGLObjects, What::other);
  WEIR_PUT_COMMAND(clEnqueueReleaseGLObjects, What::other);
}

}  // namespace weir_probe::opencl
