// Records queues, with profiling where times are requested, and counts flushes, waits, polls and
// syncs.
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// Origin of a handle: in use already, or just created. Nothing is pending on a queue just created.
enum class Origin { existing, created };

bool wants_times() { return is_recording_events() && timing_wanted() != Timing::off; }

// Records a queue: its device, its entry in the file, and if its commands can be timed. `added`:
// properties that the layer requested, not the program. Null when the driver does not answer or
// memory is out.
Queue* record_queue(cl_command_queue handle, Origin origin, cl_command_queue_properties added = 0) {
  cl_device_id device_handle = nullptr;
  cl_command_queue_properties properties = 0;
  const auto get_info = g.driver.clGetCommandQueueInfo;
  if (get_info == nullptr || get_info(handle, CL_QUEUE_DEVICE, sizeof device_handle, &device_handle,
                                      nullptr) != CL_SUCCESS) {
    return nullptr;
  }
  get_info(handle, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr);
  Device* device = find_or_add_device(device_handle);
  if (device == nullptr) return nullptr;
  pthread_mutex_lock(&g.lock);
  ensure_initialized();
  auto* queue = find_or_add_record<Queue>(&g.queues, handle_key(handle));
  const bool is_new = queue != nullptr && queue->device != device;
  if (is_new || (queue != nullptr && origin == Origin::created)) {
    queue->in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
    queue->timed = wants_times() && (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  }
  if (is_new) {
    const auto flags = static_cast<uint32_t>(properties & ~added & UINT32_MAX);
    if (queue->entry == nullptr) reset_pending(queue);
    queue->references = k_unknown_references;
    queue->entry = &g.file.queues[add_queue(&g.file, device->index, 0, device->queues, flags)];
    ++device->queues;
    __atomic_store_n(&queue->device, device, __ATOMIC_RELEASE);
  }
  if (queue != nullptr && origin == Origin::created) {
    __atomic_store_n(&queue->pending, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->unflushed, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->references, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&g.lock);
  if (queue != nullptr && wants_times()) {
    if (queue->timed) {
      calibrate_clock(device);
    } else {
      report_untimed(k_activity, "a queue is without profiling");
    }
  }
  return queue;
}

// Creates a queue with profiling if times are requested; if that fails, as the program asked.
// `create(added, error)` creates one with `added` properties more.
template <class Make>
cl_command_queue create_queue_with_profiling(bool has_profiling, cl_int* error, Make create) {
  bool wants_profiling = false;
  if (g.events_requested && !has_profiling) {
    const Locked locked(&g.lock);
    ensure_initialized();  // reads from the environment if times are requested
    wants_profiling = wants_times();
  }
  cl_command_queue_properties added = wants_profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
  cl_command_queue queue = create(added, error);
  if (queue == nullptr && wants_profiling) {
    added = 0;
    queue = create(added, error);
  }
  if (queue != nullptr) record_queue(queue, Origin::created, added);
  return queue;
}

cl_command_queue create_queue(cl_context context, cl_device_id device,
                              cl_command_queue_properties properties, cl_int* error) {
  return create_queue_with_profiling((properties & CL_QUEUE_PROFILING_ENABLE) != 0, error,
                                     [&](cl_command_queue_properties added, cl_int* out) {
                                       return g.driver.clCreateCommandQueue(
                                           context, device, properties | added, out);
                                     });
}

// A copy of the program's list of properties: pairs, ended by 0, with room for one pair more.
struct Properties {
  static constexpr uint32_t k_max_words = 32;
  cl_queue_properties pair[k_max_words + 3];
  uint32_t used = 0;   // words
  uint32_t flags = 0;  // index of the value of CL_QUEUE_PROPERTIES; 0: not in the list
  bool fits = true;

  explicit Properties(const cl_queue_properties* list) {
    for (; list != nullptr && list[used] != 0; used += 2) {
      fits = used + 2 <= k_max_words;
      if (!fits) return;
      pair[used] = list[used];
      pair[used + 1] = list[used + 1];
      if (list[used] == CL_QUEUE_PROPERTIES) flags = used + 1;
    }
    pair[used] = 0;
  }
  [[nodiscard]] bool has(cl_command_queue_properties what) const {
    return flags != 0 && (pair[flags] & what) != 0;
  }
  void add(cl_command_queue_properties what) {
    if (flags == 0) {
      pair[used] = CL_QUEUE_PROPERTIES;
      pair[used + 1] = 0;
      flags = used + 1;
      used += 2;
      pair[used] = 0;
    }
    pair[flags] |= what;
  }
};

// Creates a queue, with profiling added if times of commands are requested. Queues on the device
// stay unchanged, as they take no commands from the host.
cl_command_queue create_queue_with_properties(cl_context context, cl_device_id device,
                                              const cl_queue_properties* properties,
                                              cl_int* error) {
  const Properties requested(properties);
  const bool stays_unchanged =
      !requested.fits || requested.has(CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE);
  return create_queue_with_profiling(
      stays_unchanged, error, [&](cl_command_queue_properties added, cl_int* out) {
        Properties extended = requested;
        if (added != 0) extended.add(added);
        return g.driver.clCreateCommandQueueWithProperties(
            context, device, added != 0 ? extended.pair : properties, out);
      });
}

cl_int retain_queue(cl_command_queue handle) {
  const cl_int result = g.driver.clRetainCommandQueue(handle);
  auto* queue = g.queues.get<Queue>(handle_key(handle));
  if (result == CL_SUCCESS && queue != nullptr) {
    __atomic_fetch_add(&queue->references, 1, __ATOMIC_ACQ_REL);
  }
  return result;
}

// Releases a queue. At the last release it collects the times: events that the layer keeps would
// keep the queue alive.
cl_int release_queue(cl_command_queue handle) {
  auto* queue = g.queues.get<Queue>(handle_key(handle));
  if (queue != nullptr && queue->timed &&
      __atomic_sub_fetch(&queue->references, 1, __ATOMIC_ACQ_REL) == 0) {
    collect_times(queue);
  }
  return g.driver.clReleaseCommandQueue(handle);
}

// Writes the commands that nobody waited for, when the library is unloaded; does not ask the
// driver.
__attribute__((destructor)) void write_remaining() {
  if (!is_recording_events()) return;
  const Locked locked(&g.lock);
  g.queues.each([](void* queue) { write_pending_untimed(static_cast<Queue*>(queue)); });
}

// Counts a submit if any command was enqueued since the last one.
void count_flush(Queue* queue) {
  if (__atomic_exchange_n(&queue->unflushed, 0, __ATOMIC_ACQ_REL) != 0) {
    add(&queue->entry->counters[WEIR_COUNT_SUBMITS], 1);
    record_steady_memory();
  }
}

// Returns the queue of an event; null for the program's user events.
Queue* find_event_queue(cl_event event) {
  cl_command_queue queue = nullptr;
  if (g.driver.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, nullptr) !=
          CL_SUCCESS ||
      queue == nullptr) {
    return nullptr;
  }
  return find_or_add_queue(queue);
}

cl_int flush(cl_command_queue handle) {
  const cl_int result = g.driver.clFlush(handle);
  Queue* queue = result == CL_SUCCESS ? find_or_add_queue(handle) : nullptr;
  if (queue != nullptr) count_flush(queue);
  return result;
}

cl_int finish(cl_command_queue handle) {
  const uint64_t begin = call_begin();
  const cl_int result = g.driver.clFinish(handle);
  Queue* queue = result == CL_SUCCESS ? find_or_add_queue(handle) : nullptr;
  if (queue != nullptr) count_wait(queue, WEIR_WAIT_QUEUE, begin);
  return result;
}

// Waits for events, and counts one wait: each queue of the events is in sync with the host then.
cl_int wait_for_events(cl_uint count, const cl_event* events) {
  const uint64_t begin = call_begin();
  const cl_int result = g.driver.clWaitForEvents(count, events);
  if (result != CL_SUCCESS) return result;
  constexpr uint32_t k_max_queues = 32;
  Queue* queues[k_max_queues];
  uint32_t queue_count = 0;
  for (cl_uint i = 0; i < count; ++i) {
    Queue* queue = find_event_queue(events[i]);
    bool is_new = queue != nullptr;
    for (uint32_t seen = 0; is_new && seen < queue_count; ++seen) is_new = queues[seen] != queue;
    if (!is_new) continue;
    // The call is one wait, however many queues it was for.
    count_wait(queue, WEIR_WAIT_EVENT, begin, queue_count == 0);
    if (queue_count < k_max_queues) queues[queue_count++] = queue;
  }
  return result;
}

// Passes the query on to the driver. A query for the execution status counts as a poll of the
// event's queue, and as a sync if the command is done.
cl_int get_event_info(cl_event event, cl_event_info property, size_t size, void* value,
                      size_t* size_out) {
  const uint64_t begin = call_begin();
  const cl_int result = g.driver.clGetEventInfo(event, property, size, value, size_out);
  if (result != CL_SUCCESS || property != CL_EVENT_COMMAND_EXECUTION_STATUS || value == nullptr) {
    return result;
  }
  Queue* queue = find_event_queue(event);
  if (queue == nullptr) return result;
  add(&queue->device->entry->counters[WEIR_COUNT_POLLS], 1);
  if (*static_cast<const cl_int*>(value) == CL_COMPLETE) {
    write_wait_event(queue, WEIR_WAIT_POLL, begin, count_sync(queue));
  } else {
    note_poll(queue, begin);
  }
  return result;
}

}  // namespace

Queue* find_or_add_queue(cl_command_queue handle) {
  auto* queue = g.queues.get<Queue>(handle_key(handle));
  // Its device is null while another thread records it: the creator shared the queue too early.
  if (queue != nullptr && is_ready(g) &&
      __atomic_load_n(&queue->device, __ATOMIC_ACQUIRE) != nullptr) {
    return queue;
  }
  return record_queue(handle, Origin::existing);
}

void count_wait(Queue* queue, uint32_t kind, uint64_t begin, bool count_at_device) {
  if (count_at_device) add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
  add(&queue->entry->counters[WEIR_COUNT_WAITS], 1);
  count_flush(queue);  // a wait submits all commands
  write_wait_event(queue, kind, begin, count_sync(queue));
}

// Replaces the functions of queues, waits and events in `table` by those of this file. References
// are only counted with events.
void intercept_queues(cl_icd_dispatch* table) {
  WEIR_INTERCEPT(table, clFlush, flush);
  WEIR_INTERCEPT(table, clFinish, finish);
  WEIR_INTERCEPT(table, clWaitForEvents, wait_for_events);
  WEIR_INTERCEPT(table, clGetEventInfo, get_event_info);
  WEIR_INTERCEPT(table, clCreateCommandQueue, create_queue);
  WEIR_INTERCEPT(table, clCreateCommandQueueWithProperties, create_queue_with_properties);
  if (g.events_requested) {
    WEIR_INTERCEPT(table, clRetainCommandQueue, retain_queue);
    WEIR_INTERCEPT(table, clReleaseCommandQueue, release_queue);
  }
}

}  // namespace weir_probe::opencl
