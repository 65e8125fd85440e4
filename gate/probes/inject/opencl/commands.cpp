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

// The first argument of a type: for one, where the program wants the command's event, or its error.
template <class Wanted, class First, class... Rest>
Wanted& first_of(First& first, Rest&... rest) {
  if constexpr (__is_same(First, Wanted)) {
    return first;
  } else {
    return first_of<Wanted>(rest...);
  }
}
template <class Wanted, class... Rest>
Wanted last_of(Rest&... rest) {
  Wanted found{};
  const auto look = [&found](auto& one) {
    if constexpr (__is_same(decltype(one), Wanted&)) found = one;
  };
  (look(rest), ...);
  return found;
}

// How a call says what it moves: in bytes, which stand behind all offsets; as a region of a buffer
// or of an image (the first or the last of two objects), which stands behind all origins.
enum class Told { not_at_all, bytes, region, first_image, last_image };
struct Way {
  uint32_t kind;  // weir_copy_kind, or k_mapped
  Told told;
  bool may_block = false;
};
constexpr uint32_t k_mapped = UINT32_MAX;  // read or written, as the call's flags say

// Of the arguments behind the queue.
template <Way way, class... Rest>
Moved moved(Rest&... rest) {
  Moved out{way.kind, 0};
  if constexpr (way.kind == k_mapped) {
    const bool read = (first_of<cl_map_flags>(rest...) & CL_MAP_READ) != 0;
    out.kind = read ? WEIR_COPY_READ : WEIR_COPY_WRITE;
  }
  if constexpr (way.may_block) out.blocking = first_of<cl_bool>(rest...);
  [[maybe_unused]] const auto* region = last_of<const size_t*>(rest...);
  if constexpr (way.told == Told::bytes) out.bytes = last_of<size_t>(rest...);
  if constexpr (way.told == Told::region) out.bytes = volume(region);
  if constexpr (way.told == Told::first_image) {
    out.bytes = image_bytes(first_of<cl_mem>(rest...), region);
  }
  if constexpr (way.told == Told::last_image) {
    out.bytes = image_bytes(last_of<cl_mem>(rest...), region);
  }
  return out;
}

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
  // The call returned when it was done.
  if (moved.blocking != CL_FALSE) count_wait(queue, WEIR_WAIT_CALL, enqueued.begin());
}

template <auto member, Way way, class Function>
struct Copy;
template <auto member, Way way, class... Rest>
struct Copy<member, way, cl_int (*)(cl_command_queue, Rest...)> {
  static cl_int call(cl_command_queue queue, Rest... rest) {
    Enqueued enqueued(queue, &first_of<cl_event*>(rest...));
    const cl_int result = (g.next.*member)(queue, rest...);
    if (result == CL_SUCCESS) count_copy(queue, moved<way>(rest...), enqueued);
    return result;
  }
};
// Maps: they answer with an address, and with an error where the program wants it.
template <auto member, Way way, class... Rest>
struct Copy<member, way, void* (*)(cl_command_queue, Rest...)> {
  static void* call(cl_command_queue queue, Rest... rest) {
    Enqueued enqueued(queue, &first_of<cl_event*>(rest...));
    cl_int mine = CL_SUCCESS;
    cl_int*& error = first_of<cl_int*>(rest...);
    cl_int* const wanted = error;
    error = &mine;
    void* mapped = (g.next.*member)(queue, rest...);
    if (wanted != nullptr) *wanted = mine;
    if (mine == CL_SUCCESS) count_copy(queue, moved<way>(rest...), enqueued);
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
  const KernelEntry entry = kernel_on(queue->device, kernel);
  weir_probe_launch launch{};
  launch.kernel = entry.index;
  launch.dimensions = dimensions;
  copy_sizes(launch.global, global, dimensions, 1);
  copy_sizes(launch.local, local, dimensions, local == nullptr ? 0 : 1);
  add(&g.file.kernels[launch.kernel].dispatches, 1);
  g.launches.count(&g.file, &g.lock, launch);
  if (entry.code != nullptr) {
    add(&entry.code->dispatches, 1);
    add(&entry.code->groups, groups_of(launch));
  }
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
#define WEIR_PUT_COPY(name, ...) \
  WEIR_PUT(table, name,          \
           (&Copy<&cl_icd_dispatch::name, Way{__VA_ARGS__}, decltype(table->name)>::call))

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

  WEIR_PUT_COPY(clEnqueueReadBuffer, WEIR_COPY_READ, Told::bytes, true);
  WEIR_PUT_COPY(clEnqueueReadBufferRect, WEIR_COPY_READ, Told::region, true);
  WEIR_PUT_COPY(clEnqueueWriteBuffer, WEIR_COPY_WRITE, Told::bytes, true);
  WEIR_PUT_COPY(clEnqueueWriteBufferRect, WEIR_COPY_WRITE, Told::region, true);
  WEIR_PUT_COPY(clEnqueueReadImage, WEIR_COPY_READ, Told::first_image, true);
  WEIR_PUT_COPY(clEnqueueWriteImage, WEIR_COPY_WRITE, Told::first_image, true);
  WEIR_PUT_COPY(clEnqueueSVMMemcpy, WEIR_COPY_BUFFER, Told::bytes, true);
  WEIR_PUT_COPY(clEnqueueSVMMap, k_mapped, Told::bytes, true);
  WEIR_PUT_COPY(clEnqueueMapBuffer, k_mapped, Told::bytes, true);
  WEIR_PUT_COPY(clEnqueueMapImage, k_mapped, Told::first_image, true);
  WEIR_PUT_COPY(clEnqueueCopyBuffer, WEIR_COPY_BUFFER, Told::bytes);
  WEIR_PUT_COPY(clEnqueueCopyBufferRect, WEIR_COPY_BUFFER, Told::region);
  WEIR_PUT_COPY(clEnqueueCopyImage, WEIR_COPY_IMAGE, Told::first_image);
  WEIR_PUT_COPY(clEnqueueCopyImageToBuffer, WEIR_COPY_IMAGE, Told::first_image);
  WEIR_PUT_COPY(clEnqueueCopyBufferToImage, WEIR_COPY_IMAGE, Told::last_image);
  WEIR_PUT_COPY(clEnqueueFillBuffer, WEIR_COPY_FILL, Told::bytes);
  WEIR_PUT_COPY(clEnqueueFillImage, WEIR_COPY_FILL, Told::first_image);
  WEIR_PUT_COPY(clEnqueueSVMMemFill, WEIR_COPY_FILL, Told::bytes);
  // What moves, if anything, the driver knows alone.
  WEIR_PUT_COPY(clEnqueueMigrateMemObjects, WEIR_COPY_BUFFER, Told::not_at_all);
  WEIR_PUT_COPY(clEnqueueSVMMigrateMem, WEIR_COPY_BUFFER, Told::not_at_all);

  WEIR_PUT_COMMAND(clEnqueueUnmapMemObject, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMUnmap, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMFree, What::other);
  WEIR_PUT_COMMAND(clEnqueueAcquireGLObjects, What::other);
  WEIR_PUT_COMMAND(clEnqueueReleaseGLObjects, What::other);
}

}  // namespace weir_probe::opencl
