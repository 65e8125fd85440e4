// Which waits and polls were syncs, and which calls handed commands to the device.
#include "gate/probes/inject/opencl/events.h"
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

bool count_sync(Queue* queue) {
  if (__atomic_exchange_n(&queue->pending, 0, __ATOMIC_ACQ_REL) == 0) return false;
  add(&queue->entry->counters[WEIR_COUNT_SYNCS], 1);
  return true;
}

// One batch of commands is handed over, unless all were before.
void count_flush(Queue* queue) {
  if (__atomic_exchange_n(&queue->unflushed, 0, __ATOMIC_ACQ_REL) != 0) {
    add(&queue->entry->counters[WEIR_COUNT_SUBMITS], 1);
  }
}

// Null for events of the program's own.
Queue* queue_of_event(cl_event event) {
  cl_command_queue queue = nullptr;
  if (g.next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, nullptr) !=
          CL_SUCCESS ||
      queue == nullptr) {
    return nullptr;
  }
  return queue_of(queue);
}

cl_int CL_API_CALL flush(cl_command_queue handle) {
  const cl_int result = g.next.clFlush(handle);
  Queue* queue = result == CL_SUCCESS ? queue_of(handle) : nullptr;
  if (queue != nullptr) count_flush(queue);
  return result;
}

cl_int CL_API_CALL finish(cl_command_queue handle) {
  const uint64_t begin = call_begins();
  const cl_int result = g.next.clFinish(handle);
  Queue* queue = result == CL_SUCCESS ? queue_of(handle) : nullptr;
  if (queue == nullptr) return result;
  add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
  count_wait(queue, WEIR_WAIT_QUEUE, begin);
  return result;
}

cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  const uint64_t begin = call_begins();
  const cl_int result = g.next.clWaitForEvents(count, events);
  if (result != CL_SUCCESS) return result;
  constexpr uint32_t k_most = 32;
  Queue* queues[k_most];
  uint32_t known = 0;
  for (cl_uint i = 0; i < count; ++i) {
    Queue* queue = queue_of_event(events[i]);
    bool fresh = queue != nullptr;
    for (uint32_t j = 0; fresh && j < known; ++j) fresh = queues[j] != queue;
    if (!fresh) continue;
    // The call is one wait, however many queues it was for.
    if (known == 0) add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
    count_wait(queue, WEIR_WAIT_EVENT, begin);
    if (known < k_most) queues[known++] = queue;
  }
  return result;
}

cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t size, void* value,
                                  size_t* size_out) {
  const uint64_t begin = call_begins();
  const cl_int result = g.next.clGetEventInfo(event, what, size, value, size_out);
  if (result != CL_SUCCESS || what != CL_EVENT_COMMAND_EXECUTION_STATUS || value == nullptr) {
    return result;
  }
  Queue* queue = queue_of_event(event);
  if (queue == nullptr) return result;
  add(&queue->device->entry->counters[WEIR_COUNT_POLLS], 1);
  if (*static_cast<const cl_int*>(value) == CL_COMPLETE) {
    tell_wait(queue, WEIR_WAIT_POLL, begin, count_sync(queue));
  } else {
    note_poll(queue, begin);
  }
  return result;
}

}  // namespace

void count_wait(Queue* queue, uint32_t kind, uint64_t begin) {
  add(&queue->entry->counters[WEIR_COUNT_WAITS], 1);
  count_flush(queue);  // waiting hands over what was not
  tell_wait(queue, kind, begin, count_sync(queue));
}

void put_syncs(cl_icd_dispatch* table) {
  WEIR_PUT(table, clFlush, flush);
  WEIR_PUT(table, clFinish, finish);
  WEIR_PUT(table, clWaitForEvents, wait_for_events);
  WEIR_PUT(table, clGetEventInfo, get_event_info);
}

}  // namespace weir_probe::opencl
