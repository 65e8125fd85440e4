// What is enqueued. A command counts when the driver has taken it.
#include "gate/probes/opencl/state.h"

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

Blocking blocks(cl_bool blocking) { return blocking == CL_FALSE ? Blocking::no : Blocking::yes; }

// The same where the call may wait for its command: `blocking` is its third parameter, or (SVM) its
// second.
template <auto member, class Function>
struct Transfer;
template <auto member, class... Rest>
struct Transfer<member, cl_int(CL_API_CALL*)(cl_command_queue, cl_mem, cl_bool, Rest...)> {
  static cl_int CL_API_CALL call(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                 Rest... rest) {
    const cl_int result = (g.next.*member)(queue, memory, blocking, rest...);
    if (result == CL_SUCCESS) count_command(queue_of(queue), What::copy, blocks(blocking));
    return result;
  }
};
template <auto member, class... Rest>
struct Transfer<member, cl_int(CL_API_CALL*)(cl_command_queue, cl_bool, Rest...)> {
  static cl_int CL_API_CALL call(cl_command_queue queue, cl_bool blocking, Rest... rest) {
    const cl_int result = (g.next.*member)(queue, blocking, rest...);
    if (result == CL_SUCCESS) count_command(queue_of(queue), What::copy, blocks(blocking));
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
                    const size_t* global, const size_t* local) {
  Queue* queue = queue_of(handle);
  if (queue == nullptr) return;
  weir_probe_launch launch{};
  launch.kernel = kernel_on(queue->device, kernel);
  launch.dimensions = dimensions;
  copy_sizes(launch.global, global, dimensions, 1);
  copy_sizes(launch.local, local, dimensions, local == nullptr ? 0 : 1);
  add(&g.file.kernels[launch.kernel].dispatches, 1);
  g.launches.count(&g.file, &g.lock, launch);
  count_command(queue, What::dispatch);
}

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                  const size_t* offset, const size_t* global, const size_t* local,
                                  cl_uint waits, const cl_event* wait_list, cl_event* event) {
  const cl_int result = g.next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                      local, waits, wait_list, event);
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, dimensions, global, local);
  return result;
}

cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits,
                                const cl_event* wait_list, cl_event* event) {
  const cl_int result = g.next.clEnqueueTask(queue, kernel, waits, wait_list, event);
  constexpr size_t k_one = 1;
  if (result == CL_SUCCESS) count_dispatch(queue, kernel, 1, &k_one, &k_one);
  return result;
}

void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                             cl_map_flags flags, size_t offset, size_t size, cl_uint waits,
                             const cl_event* wait_list, cl_event* event, cl_int* error) {
  cl_int mine = CL_SUCCESS;
  void* mapped = g.next.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, waits,
                                           wait_list, event, &mine);
  if (error != nullptr) *error = mine;
  if (mine == CL_SUCCESS) count_command(queue_of(queue), What::copy, blocks(blocking));
  return mapped;
}

void* CL_API_CALL map_image(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                            cl_map_flags flags, const size_t* origin, const size_t* region,
                            size_t* row_pitch, size_t* slice_pitch, cl_uint waits,
                            const cl_event* wait_list, cl_event* event, cl_int* error) {
  cl_int mine = CL_SUCCESS;
  void* mapped = g.next.clEnqueueMapImage(queue, memory, blocking, flags, origin, region, row_pitch,
                                          slice_pitch, waits, wait_list, event, &mine);
  if (error != nullptr) *error = mine;
  if (mine == CL_SUCCESS) count_command(queue_of(queue), What::copy, blocks(blocking));
  return mapped;
}

}  // namespace

void count_command(Queue* queue, What what, Blocking blocking) {
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
  if (blocking == Blocking::yes) {
    add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
    count_wait(queue);
  }
}

#define WEIR_PUT_COMMAND(name, what) \
  WEIR_PUT(table, name, (&Command<&cl_icd_dispatch::name, what, decltype(table->name)>::call))
#define WEIR_PUT_TRANSFER(name) \
  WEIR_PUT(table, name, (&Transfer<&cl_icd_dispatch::name, decltype(table->name)>::call))

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

  WEIR_PUT_TRANSFER(clEnqueueReadBuffer);
  WEIR_PUT_TRANSFER(clEnqueueReadBufferRect);
  WEIR_PUT_TRANSFER(clEnqueueWriteBuffer);
  WEIR_PUT_TRANSFER(clEnqueueWriteBufferRect);
  WEIR_PUT_TRANSFER(clEnqueueReadImage);
  WEIR_PUT_TRANSFER(clEnqueueWriteImage);
  WEIR_PUT_TRANSFER(clEnqueueSVMMemcpy);
  WEIR_PUT_TRANSFER(clEnqueueSVMMap);
  WEIR_PUT(table, clEnqueueMapBuffer, map_buffer);
  WEIR_PUT(table, clEnqueueMapImage, map_image);
  WEIR_PUT_COMMAND(clEnqueueCopyBuffer, What::copy);
  WEIR_PUT_COMMAND(clEnqueueCopyBufferRect, What::copy);
  WEIR_PUT_COMMAND(clEnqueueCopyImage, What::copy);
  WEIR_PUT_COMMAND(clEnqueueCopyImageToBuffer, What::copy);
  WEIR_PUT_COMMAND(clEnqueueCopyBufferToImage, What::copy);
  WEIR_PUT_COMMAND(clEnqueueFillBuffer, What::copy);
  WEIR_PUT_COMMAND(clEnqueueFillImage, What::copy);
  WEIR_PUT_COMMAND(clEnqueueSVMMemFill, What::copy);
  WEIR_PUT_COMMAND(clEnqueueMigrateMemObjects, What::copy);
  WEIR_PUT_COMMAND(clEnqueueSVMMigrateMem, What::copy);

  WEIR_PUT_COMMAND(clEnqueueUnmapMemObject, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMUnmap, What::other);
  WEIR_PUT_COMMAND(clEnqueueSVMFree, What::other);
  WEIR_PUT_COMMAND(clEnqueueAcquireGLObjects, What::other);
  WEIR_PUT_COMMAND(clEnqueueReleaseGLObjects, What::other);
}

}  // namespace weir_probe::opencl
