// Counts dispatches, barriers, copies, submits and syncs.

#include "gate/probes/instrument/state.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_kernel_salt = 2;

// Returns the thread's own row for a kernel on a queue's device, adding it if it is new. A row
// that was there goes into the cache of names.
weir_probe_kernel* find_kernel_row(Thread* thread, uint32_t queue, const char* name) {
  const uint64_t hash = hash_text(name, k_kernel_salt);
  const uint64_t key = mix(hash, queue);
  if (auto* row = thread->rows.get<weir_probe_kernel>(key)) {
    const Name* stored = queue < k_max_queues ? intern_name(thread, key, name) : nullptr;
    if (stored != nullptr) {
      *cache_slot(thread, name, queue) = {name, queue, stored, row, queue_counters(thread, queue)};
    }
    return row;
  }
  queue = checked_queue(queue);
  queue_counters(thread, queue);  // writes its device to the file
  const Locked locked(&g.lock);
  const uint32_t device = g.queues[queue].device;
  uint32_t entry = kernel_index(&g.file, device, mix(hash, thread->slot), true, name, "");
  // If the table is full, use another thread's row.
  for (uint32_t slot = 0; entry == 0 && slot < k_max_slots; ++slot) {
    entry = kernel_index(&g.file, device, mix(hash, slot), true, name, "");
  }
  weir_probe_kernel* row = &g.file.kernels[entry];
  remember(thread, key, row, entry == 0);
  return row;
}

// Counts a dispatch of x·y·z groups for its kernel and queue, and records it for command buffers
// and events.
void count_dispatch(uint32_t queue, const char* kernel, uint32_t x, uint32_t y, uint32_t z) {
  const ThreadAccess access;
  Thread* const thread = access.thread;
  if (kernel == nullptr || kernel[0] == '\0') kernel = "(no name)";
  const CachedName* cached = cache_slot(thread, kernel, queue);
  weir_probe_kernel* row = nullptr;
  if (__builtin_expect(is_cached(*cached, kernel, queue), 1)) {
    row = cached->kernel;
    add(&cached->queue->counters[WEIR_COUNT_DISPATCHES], 1);
  } else {
    row = find_kernel_row(thread, queue, kernel);
    add(&queue_counters(thread, queue)->counters[WEIR_COUNT_DISPATCHES], 1);
  }
  add(&row->dispatches, 1);
  if (thread->buffer != 0 || is_recording_events()) {
    record_dispatch(thread, static_cast<uint32_t>(row - g.file.kernels), x, y, z);
  }
}

// Returns true if a wait counts as a sync: every wait of a queue without submissions, else the
// first one after each submission.
bool is_sync(uint32_t queue) {
  uint32_t pending = 1;
  return __atomic_load_n(&g.queues[queue].submitted, __ATOMIC_RELAXED) == 0 ||
         __atomic_compare_exchange_n(&g.queues[queue].submitted, &pending, 2, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Counts a barrier or copy, and writes its event if this thread has a command buffer.
template <class Event>
void count_mark(uint32_t queue, weir_probe_counter counter, uint16_t kind, const Event& event) {
  const ThreadAccess access;
  add(&queue_counters(access.thread, queue)->counters[counter], 1);
  if (access.thread->buffer != 0 && is_recording_events())
    write_event(kind, 0, &event, sizeof event);
}

}  // namespace
}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORTED void weir_dispatch_on(uint32_t queue, const char* kernel) {
  count_dispatch(queue, kernel, 0, 0, 0);
}

WEIR_EXPORTED void weir_dispatch_groups_on(uint32_t queue, const char* kernel, uint32_t x,
                                           uint32_t y, uint32_t z) {
  count_dispatch(queue, kernel, x, y, z);
}

WEIR_EXPORTED void weir_barrier_on(uint32_t queue) {
  count_mark(queue, WEIR_COUNT_BARRIERS, WEIR_EVENT_BARRIER, weir_event_barrier{});
}

WEIR_EXPORTED void weir_copy_on(uint32_t queue, uint32_t kind, uint64_t bytes) {
  count_mark(queue, WEIR_COUNT_COPIES, WEIR_EVENT_COPY,
             weir_event_copy{bytes, kind, WEIR_NO_GROUP});
}

// Called by the engine: counts a submission of one command buffer to a queue. `buffer` is 0 if the
// engine did not name it.
WEIR_EXPORTED void weir_submit_on(uint32_t queue, uint64_t buffer) {
  const ThreadAccess access;
  Thread* const thread = access.thread;
  queue = checked_queue(queue);
  weir_probe_queue* row = queue_counters(thread, queue);
  add(&row->counters[WEIR_COUNT_SUBMITS], 1);
  add(&row->counters[WEIR_COUNT_SUBMISSIONS], 1);
  add(&row->counters[WEIR_COUNT_COMMAND_BUFFERS], 1);
  __atomic_store_n(&g.queues[queue].submitted, 1, __ATOMIC_RELAXED);
  if (is_recording_events()) record_submit(queue, buffer);
  if (buffer != 0 && thread->buffer == buffer) leave_buffer(thread);
}

WEIR_EXPORTED void weir_wait_begin_on(void) {
  if (!is_recording_events() && !g.timed) return;
  const ThreadAccess access;
  access.thread->wait_start = read_stamp(g.stamps);
}

// Called by the engine: counts a wait for the queue, and a sync if it is one. The wait began at
// weir_wait_begin().
WEIR_EXPORTED void weir_sync_on(uint32_t queue) {
  const ThreadAccess access;
  Thread* const thread = access.thread;
  exclude_wait_from_op(thread);
  if ((weir_profile_flags & WEIR_PROFILE_COUNTS) == 0) {
    thread->wait_start = 0;
    return;
  }
  queue = checked_queue(queue);
  weir_probe_queue* row = queue_counters(thread, queue);
  const bool counted = is_sync(queue);
  if (counted) add(&row->counters[WEIR_COUNT_SYNCS], 1);
  add(&row->counters[WEIR_COUNT_WAITS], 1);
  add(&g.file.devices[g.queues[queue].device].counters[WEIR_COUNT_WAITS], 1);
  // Stamps are nanoseconds if events are on.
  if (is_recording_events())
    write_wait(event_queue(queue), WEIR_WAIT_QUEUE, thread->wait_start, counted);
  thread->wait_start = 0;
}
