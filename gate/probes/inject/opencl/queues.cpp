// Queues: which entry of the file they are, and whether their commands can be timed; which waits
// and polls were syncs, and which calls handed commands to the device.
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// Is the handle new to the program too? Then nothing is pending on it.
enum class Made { before, now };

bool times_wanted() { return events_on() && timing_wanted() != Timing::off; }

// `added`: properties that the layer asked for, not the program.
Queue* describe_queue(cl_command_queue handle, Made made, cl_command_queue_properties added = 0) {
  cl_device_id device_handle = nullptr;
  cl_command_queue_properties properties = 0;
  const auto ask = g.next.clGetCommandQueueInfo;
  if (ask == nullptr ||
      ask(handle, CL_QUEUE_DEVICE, sizeof device_handle, &device_handle, nullptr) != CL_SUCCESS) {
    return nullptr;
  }
  ask(handle, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr);
  Device* device = device_of(device_handle);
  if (device == nullptr) return nullptr;
  pthread_mutex_lock(&g.lock);
  make_ready();
  auto* queue = record_of<Queue>(&g.queues, number(handle));
  const bool fresh = queue != nullptr && queue->device != device;
  if (fresh || (queue != nullptr && made == Made::now)) {
    queue->in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
    queue->timed = times_wanted() && (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  }
  if (fresh) {
    const auto flags = static_cast<uint32_t>(properties & ~added & UINT32_MAX);
    if (queue->entry == nullptr) forget_flights(queue);
    queue->references = k_not_seen_made;
    queue->entry = &g.file.queues[add_queue(&g.file, device->index, 0, device->queues++, flags)];
    __atomic_store_n(&queue->device, device, __ATOMIC_RELEASE);
  }
  if (queue != nullptr && made == Made::now) {
    __atomic_store_n(&queue->pending, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->unflushed, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->references, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&g.lock);
  if (queue != nullptr && times_wanted()) {
    if (queue->timed) {
      tie_clock(device);
    } else {
      untimed(k_told, "a queue is without profiling");
    }
  }
  return queue;
}

// Takes profiling where it can be had, and the queue as the program wants it where not. `make`
// makes one with these properties more.
template <class Make>
cl_command_queue make_queue(bool has_profiling, cl_int* error, Make make) {
  bool ask = false;
  if (g.events_asked && !has_profiling) {
    const Locked locked(&g.lock);
    make_ready();  // tells what is wanted
    ask = times_wanted();
  }
  cl_command_queue_properties added = ask ? CL_QUEUE_PROFILING_ENABLE : 0;
  cl_command_queue made = make(added, error);
  if (made == nullptr && ask) {
    added = 0;
    made = make(added, error);
  }
  if (made != nullptr) describe_queue(made, Made::now, added);
  return made;
}

cl_command_queue create_queue(cl_context context, cl_device_id device,
                              cl_command_queue_properties properties, cl_int* error) {
  return make_queue((properties & CL_QUEUE_PROFILING_ENABLE) != 0, error,
                    [&](cl_command_queue_properties more, cl_int* out) {
                      return g.next.clCreateCommandQueue(context, device, properties | more, out);
                    });
}

// The program's list of pairs, ended by 0, with room for one pair more.
struct Properties {
  static constexpr uint32_t k_most = 32;
  cl_queue_properties pair[k_most + 3];
  uint32_t used = 0;   // words
  uint32_t flags = 0;  // where the value of CL_QUEUE_PROPERTIES stands; 0: nowhere
  bool whole = true;

  explicit Properties(const cl_queue_properties* list) {
    for (; list != nullptr && list[used] != 0; used += 2) {
      whole = used + 2 <= k_most;
      if (!whole) return;
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

cl_command_queue create_queue_with_properties(cl_context context, cl_device_id device,
                                              const cl_queue_properties* properties,
                                              cl_int* error) {
  const Properties wanted(properties);
  // Queues on the device take no commands from here.
  const bool leave = !wanted.whole || wanted.has(CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE);
  return make_queue(leave, error, [&](cl_command_queue_properties more, cl_int* out) {
    Properties given = wanted;
    if (more != 0) given.add(more);
    return g.next.clCreateCommandQueueWithProperties(context, device,
                                                     more != 0 ? given.pair : properties, out);
  });
}

cl_int retain_queue(cl_command_queue handle) {
  const cl_int result = g.next.clRetainCommandQueue(handle);
  auto* queue = g.queues.get<Queue>(number(handle));
  if (result == CL_SUCCESS && queue != nullptr) {
    __atomic_fetch_add(&queue->references, 1, __ATOMIC_ACQ_REL);
  }
  return result;
}

cl_int release_queue(cl_command_queue handle) {
  auto* queue = g.queues.get<Queue>(number(handle));
  // Events that the layer keeps would keep the queue.
  if (queue != nullptr && queue->timed &&
      __atomic_sub_fetch(&queue->references, 1, __ATOMIC_ACQ_REL) == 0) {
    harvest(queue);
  }
  return g.next.clReleaseCommandQueue(handle);
}

// What nobody waited for. The driver is not asked any more.
__attribute__((destructor)) void tell_the_rest() {
  if (!events_on()) return;
  const Locked locked(&g.lock);
  g.queues.each([](void* queue) { abandon_flights(static_cast<Queue*>(queue)); });
}

// One batch of commands is handed over, unless all were before.
void count_flush(Queue* queue) {
  if (__atomic_exchange_n(&queue->unflushed, 0, __ATOMIC_ACQ_REL) != 0) {
    add(&queue->entry->counters[WEIR_COUNT_SUBMITS], 1);
    note_memory();
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

cl_int flush(cl_command_queue handle) {
  const cl_int result = g.next.clFlush(handle);
  Queue* queue = result == CL_SUCCESS ? queue_of(handle) : nullptr;
  if (queue != nullptr) count_flush(queue);
  return result;
}

cl_int finish(cl_command_queue handle) {
  const uint64_t begin = call_begins();
  const cl_int result = g.next.clFinish(handle);
  Queue* queue = result == CL_SUCCESS ? queue_of(handle) : nullptr;
  if (queue != nullptr) count_wait(queue, WEIR_WAIT_QUEUE, begin);
  return result;
}

cl_int wait_for_events(cl_uint count, const cl_event* events) {
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
    count_wait(queue, WEIR_WAIT_EVENT, begin, known == 0);
    if (known < k_most) queues[known++] = queue;
  }
  return result;
}

cl_int get_event_info(cl_event event, cl_event_info what, size_t size, void* value,
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

Queue* queue_of(cl_command_queue handle) {
  auto* known = g.queues.get<Queue>(number(handle));
  // Its device is null while another thread describes it: the one that made it shared it too early.
  if (known != nullptr && is_ready(g) &&
      __atomic_load_n(&known->device, __ATOMIC_ACQUIRE) != nullptr) {
    return known;
  }
  return describe_queue(handle, Made::before);
}

void count_wait(Queue* queue, uint32_t kind, uint64_t begin, bool of_device) {
  if (of_device) add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
  add(&queue->entry->counters[WEIR_COUNT_WAITS], 1);
  count_flush(queue);  // waiting hands over what was not
  tell_wait(queue, kind, begin, count_sync(queue));
}

void put_queues(cl_icd_dispatch* table) {
  WEIR_PUT(table, clFlush, flush);
  WEIR_PUT(table, clFinish, finish);
  WEIR_PUT(table, clWaitForEvents, wait_for_events);
  WEIR_PUT(table, clGetEventInfo, get_event_info);
  WEIR_PUT(table, clCreateCommandQueue, create_queue);
  WEIR_PUT(table, clCreateCommandQueueWithProperties, create_queue_with_properties);
  if (g.events_asked) {
    WEIR_PUT(table, clRetainCommandQueue, retain_queue);
    WEIR_PUT(table, clReleaseCommandQueue, release_queue);
  }
}

}  // namespace weir_probe::opencl
