// What is enqueued. A command counts when the driver has taken it.
#include "gate/probes/inject/opencl/copies.h"
#include "gate/probes/inject/opencl/events.h"
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// In front of the function at `member` of the table, whatever its parameters.
template <auto member, What what, class Function>
struct Command;
template <auto member, What what, class... Rest>
struct Command<member, what, cl_int(CL_API_CALL*)(cl_command_queue, Rest...)> {
  static cl_int CL_API_CALL call(cl_command_queue queue, Rest... rest) {
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

// The last of them: where the program wants the command's event.
template <class Only>
Only& last_of(Only& only) {
  return only;
}
template <class First, class... Rest>
auto& last_of(First&, Rest&... rest) {
  return last_of(rest...);
}

template <auto member, class Of, class Function>
struct Copy;
template <auto member, class Of, class... Rest>
struct Copy<member, Of, cl_int(CL_API_CALL*)(cl_command_queue, Rest...)> {
  static cl_int CL_API_CALL call(cl_command_queue queue, Rest... rest) {
    Enqueued enqueued(queue, &last_of(rest...));
    const cl_int result = (g.next.*member)(queue, rest...);
    if (result == CL_SUCCESS) count_copy(queue, Of::moved(rest...), enqueued);
    return result;
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

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                  const size_t* offset, const size_t* global, const size_t* local,
                                  cl_uint waits, const cl_event* wait_list, cl_event* event) {
  Enqueued enqueued(queue, &event);
  const cl_int result = g.next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                      local, waits, wait_list, event);
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, dimensions, global, local, enqueued);
  return result;
}

cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits,
                                const cl_event* wait_list, cl_event* event) {
  Enqueued enqueued(queue, &event);
  const cl_int result = g.next.clEnqueueTask(queue, kernel, waits, wait_list, event);
  constexpr size_t k_one = 1;
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, 1, &k_one, &k_one, enqueued);
  return result;
}

void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                             cl_map_flags flags, size_t offset, size_t size, cl_uint waits,
                             const cl_event* wait_list, cl_event* event, cl_int* error) {
  Enqueued enqueued(queue, &event);
  cl_int mine = CL_SUCCESS;
  void* mapped = g.next.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, waits,
                                           wait_list, event, &mine);
  if (error != nullptr) *error = mine;
  if (mine == CL_SUCCESS) count_copy(queue, {mapped_kind(flags), size, blocking}, enqueued);
  return mapped;
}

void* CL_API_CALL map_image(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                            cl_map_flags flags, const size_t* origin, const size_t* region,
                            size_t* row_pitch, size_t* slice_pitch, cl_uint waits,
                            const cl_event* wait_list, cl_event* event, cl_int* error) {
  Enqueued enqueued(queue, &event);
  cl_int mine = CL_SUCCESS;
  void* mapped = g.next.clEnqueueMapImage(queue, memory, blocking, flags, origin, region, row_pitch,
                                          slice_pitch, waits, wait_list, event, &mine);
  if (error != nullptr) *error = mine;
  if (mine == CL_SUCCESS) {
    count_copy(queue, {mapped_kind(flags), image_bytes(memory, region), blocking}, enqueued);
  }
  return mapped;
}

}  // namespace

void count_command(Queue* queue, What what) {
  if (queue == nullptr) return;
  uint64_t* counters = queue->entry->counters;
  add(&counters[WEIR_COUNT_SUBMISSIONS], 1);
  switch (what) {
    case What::dispatch:
      add(&counters[WEIR_COUNT_DISPATCHES], 1);
      break;
    case What::copy:
      add(&counters[WEIR_COUNT_COPIES], 1);
      break;
    case What::barrier:
      add(&counters[WEIR_COUNT_BARRIERS], 1);
      break;
    case What::marker:
      add(g.markers, 1);
      break;
    case What::other:
      break;
  }
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

  WEIR_PUT_COPY(clEnqueueReadBuffer, OfBuffer<WEIR_COPY_READ>);
  WEIR_PUT_COPY(clEnqueueReadBufferRect, OfBufferRect<WEIR_COPY_READ>);
  WEIR_PUT_COPY(clEnqueueWriteBuffer, OfBuffer<WEIR_COPY_WRITE>);
  WEIR_PUT_COPY(clEnqueueWriteBufferRect, OfBufferRect<WEIR_COPY_WRITE>);
  WEIR_PUT_COPY(clEnqueueReadImage, OfImage<WEIR_COPY_READ>);
  WEIR_PUT_COPY(clEnqueueWriteImage, OfImage<WEIR_COPY_WRITE>);
  WEIR_PUT_COPY(clEnqueueSVMMemcpy, SvmMemcpy);
  WEIR_PUT_COPY(clEnqueueSVMMap, SvmMap);
  WEIR_PUT(table, clEnqueueMapBuffer, map_buffer);
  WEIR_PUT(table, clEnqueueMapImage, map_image);
  WEIR_PUT_COPY(clEnqueueCopyBuffer, CopyBuffer);
  WEIR_PUT_COPY(clEnqueueCopyBufferRect, CopyBufferRect);
  WEIR_PUT_COPY(clEnqueueCopyImage, CopyImage);
  WEIR_PUT_COPY(clEnqueueCopyImageToBuffer, CopyImageToBuffer);
  WEIR_PUT_COPY(clEnqueueCopyBufferToImage, CopyBufferToImage);
  WEIR_PUT_COPY(clEnqueueFillBuffer, FillBuffer);
  WEIR_PUT_COPY(clEnqueueFillImage, FillImage);
  WEIR_PUT_COPY(clEnqueueSVMMemFill, SvmMemFill);
  WEIR_PUT_COPY(clEnqueueMigrateMemObjects, Migration);
  WEIR_PUT_COPY(clEnqueueSVMMigrateMem, Migration);

  WEIR_PUT_COMMAND(clEnqueueUnmapMemObject, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMUnmap, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMFree, What::other);
  WEIR_PUT_COMMAND(clEnqueueAcquireGLObjects, What::other);
  WEIR_PUT_COMMAND(clEnqueueReleaseGLObjects, What::other);
}

}  // namespace weir_probe::opencl
