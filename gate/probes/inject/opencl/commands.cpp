// Counts enqueued commands, when the driver has accepted them.
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// A copy: its kind and bytes. Bytes are those that the call names; 0: unknown. The device may move
// fewer, as for a map of memory shared with the host.
struct CopyInfo {
  uint32_t kind;  // weir_copy_kind
  uint64_t bytes;
  cl_bool blocking = CL_FALSE;
};

uint64_t volume(const size_t* region) {
  return region == nullptr ? 0 : uint64_t{region[0]} * region[1] * region[2];
}

// Returns the bytes of a region of an image; 0 if the driver does not answer.
uint64_t image_bytes(cl_mem image, const size_t* region) {
  size_t element = 0;
  const auto get_info = g.driver.clGetImageInfo;
  if (get_info == nullptr ||
      get_info(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr) != CL_SUCCESS) {
    return 0;
  }
  return volume(region) * element;
}

// Returns the first argument of type T, such as the address for the command's event or error.
template <class T, class First, class... Rest>
T& first_argument(First& first, Rest&... rest) {
  if constexpr (__is_same(First, T)) {
    return first;
  } else {
    return first_argument<T>(rest...);
  }
}
// Returns the last argument of type T.
template <class T, class... Rest>
T last_argument(Rest&... rest) {
  T last{};
  const auto assign_if_same_type = [&last](auto& argument) {
    if constexpr (__is_same(decltype(argument), T&)) last = argument;
  };
  (assign_if_same_type(rest), ...);
  return last;
}

// The argument of a call that has the size of a copy: bytes, which come after all offsets; or a
// region of a buffer or an image (the first or last of two objects), which comes after all origins.
enum class SizeSource { none, bytes, region, first_image, last_image };
struct CopyCall {
  uint32_t kind;  // weir_copy_kind, or k_by_map_flags
  SizeSource size_source;
  bool may_block = false;
};
constexpr uint32_t k_by_map_flags = UINT32_MAX;  // read or written, as the call's flags say

// Returns the kind, the bytes and the blocking flag of a copy, from the call's arguments after the
// queue.
template <CopyCall copy_call, class... Rest>
CopyInfo copy_info(Rest&... rest) {
  CopyInfo info{copy_call.kind, 0};
  if constexpr (copy_call.kind == k_by_map_flags) {
    const bool is_read = (first_argument<cl_map_flags>(rest...) & CL_MAP_READ) != 0;
    info.kind = is_read ? WEIR_COPY_READ : WEIR_COPY_WRITE;
  }
  if constexpr (copy_call.may_block) info.blocking = first_argument<cl_bool>(rest...);
  [[maybe_unused]] const auto* region = last_argument<const size_t*>(rest...);
  if constexpr (copy_call.size_source == SizeSource::bytes)
    info.bytes = last_argument<size_t>(rest...);
  if constexpr (copy_call.size_source == SizeSource::region) info.bytes = volume(region);
  if constexpr (copy_call.size_source == SizeSource::first_image) {
    info.bytes = image_bytes(first_argument<cl_mem>(rest...), region);
  }
  if constexpr (copy_call.size_source == SizeSource::last_image) {
    info.bytes = image_bytes(last_argument<cl_mem>(rest...), region);
  }
  return info;
}

// Intercepts the function at `member` of the table, whatever its parameters.
template <auto member, CommandKind what, class Function>
struct Command;
template <auto member, CommandKind what, class... Rest>
struct Command<member, what, cl_int (*)(cl_command_queue, Rest...)> {
  static cl_int call(cl_command_queue queue, Rest... rest) {
    const cl_int result = (g.driver.*member)(queue, rest...);
    if (result == CL_SUCCESS) count_command(find_or_add_queue(queue), what);
    return result;
  }
};

// Counts a copy, and a wait if the call was blocking.
void count_copy(cl_command_queue handle, const CopyInfo& copy_info, const CommandTimer& timer) {
  Queue* queue = find_or_add_queue(handle);
  if (queue == nullptr) return;
  timer.write_command(queue, 0, 1 + copy_info.kind, copy_info.bytes);
  add(g.copied_bytes, copy_info.bytes);
  count_command(queue, CommandKind::copy);
  if (copy_info.blocking != CL_FALSE) count_wait(queue, WEIR_WAIT_CALL, timer.begin());
}

template <auto member, CopyCall copy_call, class Function>
struct Copy;
template <auto member, CopyCall copy_call, class... Rest>
struct Copy<member, copy_call, cl_int (*)(cl_command_queue, Rest...)> {
  static cl_int call(cl_command_queue queue, Rest... rest) {
    CommandTimer timer(queue, &first_argument<cl_event*>(rest...));
    const cl_int result = (g.driver.*member)(queue, rest...);
    if (result == CL_SUCCESS) count_copy(queue, copy_info<copy_call>(rest...), timer);
    return result;
  }
};
// The same for a map, which returns an address; its error is reported only if the program wants it.
template <auto member, CopyCall copy_call, class... Rest>
struct Copy<member, copy_call, void* (*)(cl_command_queue, Rest...)> {
  static void* call(cl_command_queue queue, Rest... rest) {
    CommandTimer timer(queue, &first_argument<cl_event*>(rest...));
    cl_int mine = CL_SUCCESS;
    cl_int*& error = first_argument<cl_int*>(rest...);
    cl_int* const wanted = error;
    error = &mine;
    void* mapped = (g.driver.*member)(queue, rest...);
    if (wanted != nullptr) *wanted = mine;
    if (mine == CL_SUCCESS) count_copy(queue, copy_info<copy_call>(rest...), timer);
    return mapped;
  }
};

// Copies the sizes of the dimensions in use; the others get `default_value`.
template <size_t count>
void copy_sizes(uint64_t (&to)[count], const size_t* from, cl_uint dimensions,
                uint64_t default_value) {
  for (cl_uint i = 0; i < count; ++i) {
    to[i] = from != nullptr && i < dimensions ? from[i] : default_value;
  }
}

// Counts a kernel launch with its sizes and its code. `local` may be null: the driver then chooses
// the sizes of groups, which are stored as 0. A program that the layer did not see has no code.
void count_dispatch(cl_command_queue handle, cl_kernel kernel, cl_uint dimensions,
                    const size_t* global, const size_t* local, const CommandTimer& timer) {
  Queue* queue = find_or_add_queue(handle);
  if (queue == nullptr) return;
  const KernelEntry entry = find_or_add_kernel(queue->device, kernel);
  weir_probe_launch launch{};
  launch.kernel = entry.index;
  launch.dimensions = dimensions;
  copy_sizes(launch.global, global, dimensions, 1);
  copy_sizes(launch.local, local, dimensions, local == nullptr ? 0 : 1);
  add(&g.file.kernels[launch.kernel].dispatches, 1);
  g.launches.count(&g.file, &g.lock, launch);
  if (entry.code != nullptr) {
    add(&entry.code->dispatches, 1);
    add(&entry.code->groups, group_count(launch));
  }
  timer.write_command(queue, launch.kernel, /*copy=*/0, /*bytes=*/0);
  count_command(queue, CommandKind::dispatch);
}

cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                      const size_t* offset, const size_t* global, const size_t* local,
                      cl_uint waits, const cl_event* wait_list, cl_event* event) {
  CommandTimer timer(queue, &event);
  const cl_int result = g.driver.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                        local, waits, wait_list, event);
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, dimensions, global, local, timer);
  return result;
}

cl_int enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits,
                    const cl_event* wait_list, cl_event* event) {
  CommandTimer timer(queue, &event);
  const cl_int result = g.driver.clEnqueueTask(queue, kernel, waits, wait_list, event);
  constexpr size_t k_one = 1;
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, 1, &k_one, &k_one, timer);
  return result;
}

}  // namespace

void count_command(Queue* queue, CommandKind what) {
  if (queue == nullptr) return;
  uint64_t* counters = queue->entry->counters;
  add(&counters[WEIR_COUNT_SUBMISSIONS], 1);
  if (what == CommandKind::marker) add(g.markers, 1);
  if (what < CommandKind::marker) add(&counters[static_cast<uint32_t>(what)], 1);
  __atomic_store_n(&queue->pending, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&queue->unflushed, 1, __ATOMIC_RELEASE);
}

#define WEIR_INTERCEPT_COMMAND(name, what) \
  WEIR_INTERCEPT(table, name, (&Command<&cl_icd_dispatch::name, what, decltype(table->name)>::call))
#define WEIR_INTERCEPT_COPY(name, ...) \
  WEIR_INTERCEPT(                      \
      table, name,                     \
      (&Copy<&cl_icd_dispatch::name, CopyCall{__VA_ARGS__}, decltype(table->name)>::call))

void intercept_commands(cl_icd_dispatch* table) {
  WEIR_INTERCEPT(table, clEnqueueNDRangeKernel, enqueue_kernel);
  WEIR_INTERCEPT(table, clEnqueueTask, enqueue_task);
  // Runs a function of the program's own, in the queue's order: work, but no kernel.
  WEIR_INTERCEPT_COMMAND(clEnqueueNativeKernel, CommandKind::other);

  WEIR_INTERCEPT_COMMAND(clEnqueueBarrier, CommandKind::barrier);
  WEIR_INTERCEPT_COMMAND(clEnqueueBarrierWithWaitList, CommandKind::barrier);
  WEIR_INTERCEPT_COMMAND(clEnqueueWaitForEvents,
                         CommandKind::barrier);  // its name in OpenCL 1.0
  WEIR_INTERCEPT_COMMAND(clEnqueueMarker, CommandKind::marker);
  WEIR_INTERCEPT_COMMAND(clEnqueueMarkerWithWaitList, CommandKind::marker);

  WEIR_INTERCEPT_COPY(clEnqueueReadBuffer, WEIR_COPY_READ, SizeSource::bytes, /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueReadBufferRect, WEIR_COPY_READ, SizeSource::region,
                      /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueWriteBuffer, WEIR_COPY_WRITE, SizeSource::bytes, /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueWriteBufferRect, WEIR_COPY_WRITE, SizeSource::region,
                      /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueReadImage, WEIR_COPY_READ, SizeSource::first_image,
                      /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueWriteImage, WEIR_COPY_WRITE, SizeSource::first_image,
                      /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueSVMMemcpy, WEIR_COPY_BUFFER, SizeSource::bytes, /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueSVMMap, k_by_map_flags, SizeSource::bytes, /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueMapBuffer, k_by_map_flags, SizeSource::bytes, /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueMapImage, k_by_map_flags, SizeSource::first_image,
                      /*may_block=*/true);
  WEIR_INTERCEPT_COPY(clEnqueueCopyBuffer, WEIR_COPY_BUFFER, SizeSource::bytes);
  WEIR_INTERCEPT_COPY(clEnqueueCopyBufferRect, WEIR_COPY_BUFFER, SizeSource::region);
  WEIR_INTERCEPT_COPY(clEnqueueCopyImage, WEIR_COPY_IMAGE, SizeSource::first_image);
  WEIR_INTERCEPT_COPY(clEnqueueCopyImageToBuffer, WEIR_COPY_IMAGE, SizeSource::first_image);
  WEIR_INTERCEPT_COPY(clEnqueueCopyBufferToImage, WEIR_COPY_IMAGE, SizeSource::last_image);
  WEIR_INTERCEPT_COPY(clEnqueueFillBuffer, WEIR_COPY_FILL, SizeSource::bytes);
  WEIR_INTERCEPT_COPY(clEnqueueFillImage, WEIR_COPY_FILL, SizeSource::first_image);
  WEIR_INTERCEPT_COPY(clEnqueueSVMMemFill, WEIR_COPY_FILL, SizeSource::bytes);
  // Only the driver knows if anything moves.
  WEIR_INTERCEPT_COPY(clEnqueueMigrateMemObjects, WEIR_COPY_BUFFER, SizeSource::none);
  WEIR_INTERCEPT_COPY(clEnqueueSVMMigrateMem, WEIR_COPY_BUFFER, SizeSource::none);

  WEIR_INTERCEPT_COMMAND(clEnqueueUnmapMemObject, CommandKind::other);
  WEIR_INTERCEPT_COMMAND(clEnqueueSVMUnmap, CommandKind::other);
  WEIR_INTERCEPT_COMMAND(clEnqueueSVMFree, CommandKind::other);
  WEIR_INTERCEPT_COMMAND(clEnqueueAcquireGLObjects, CommandKind::other);
  WEIR_INTERCEPT_COMMAND(clEnqueueReleaseGLObjects, CommandKind::other);
}

}  // namespace weir_probe::opencl
