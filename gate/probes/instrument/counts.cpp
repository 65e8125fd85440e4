// Dispatches, barriers, copies, submits, syncs.

#include "gate/probes/instrument/state.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_kernel_salt = 2;

// The thread's own row for a kernel on a queue's device; its index is what events name.
weir_probe_kernel* kernel_of(Thread* thread, uint32_t queue, const char* name) {
  const uint64_t hash = hash_text(name, k_kernel_salt);
  const uint64_t key = mix(hash, queue);
  auto* known = thread->rows.get<weir_probe_kernel>(key);
  if (known != nullptr) {
    const Name* kept = queue < k_most_queues ? stored_name(thread, key, name) : nullptr;
    if (kept != nullptr) {
      *seen_at(thread, name, queue) = {name, queue, kept, known, row_of(thread, queue)};
    }
    return known;
  }
  queue = checked_queue(queue);
  row_of(thread, queue);  // its device is in the file then
  const Locked locked(&g.lock);
  const uint32_t device = g.queues[queue].device;
  uint32_t entry = kernel_entry(&g.file, device, mix(hash, thread->slot), true, name, "");
  // A full table may still have another thread's row.
  for (uint32_t slot = 0; entry == 0 && slot < k_most_slots; ++slot) {
    entry = kernel_entry(&g.file, device, mix(hash, slot), true, name, "");
  }
  weir_probe_kernel* row = &g.file.kernels[entry];
  keep(thread, key, row, entry == 0);
  return row;
}

void dispatched(uint32_t queue, const char* kernel, uint32_t x, uint32_t y, uint32_t z) {
  const auto [thread] = Mark();
  if (kernel == nullptr || kernel[0] == '\0') kernel = "(no name)";
  const Seen* seen = seen_at(thread, kernel, queue);
  weir_probe_kernel* row = nullptr;
  if (__builtin_expect(is_seen(*seen, kernel, queue), 1)) {
    row = seen->kernel;
    add(&seen->queue->counters[WEIR_COUNT_DISPATCHES], 1);
  } else {
    row = kernel_of(thread, queue, kernel);
    add(&row_of(thread, queue)->counters[WEIR_COUNT_DISPATCHES], 1);
  }
  add(&row->dispatches, 1);
  if (thread->buffer != 0 || events_on()) {
    enter_dispatch(thread, static_cast<uint32_t>(row - g.file.kernels), x, y, z);
  }
}

// Every wait counts until something is submitted; from then on the first after each submission.
bool is_sync(uint32_t queue) {
  uint32_t pending = 1;
  return __atomic_load_n(&g.queues[queue].submitted, __ATOMIC_RELAXED) == 0 ||
         __atomic_compare_exchange_n(&g.queues[queue].submitted, &pending, 2, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Something else that counts, in the command buffer of this thread as well.
template <class Event>
void marked(uint32_t queue, weir_probe_counter counter, uint16_t kind, const Event& event) {
  const Mark mark;
  add(&row_of(mark.thread, queue)->counters[counter], 1);
  if (mark.thread->buffer != 0 && events_on()) write_event(kind, 0, &event, sizeof event);
}

}  // namespace
}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORTED void weir_dispatch_on(uint32_t queue, const char* kernel) {
  dispatched(queue, kernel, 0, 0, 0);
}

WEIR_EXPORTED void weir_dispatch_groups_on(uint32_t queue, const char* kernel, uint32_t x,
                                           uint32_t y, uint32_t z) {
  dispatched(queue, kernel, x, y, z);
}

WEIR_EXPORTED void weir_barrier_on(uint32_t queue) {
  marked(queue, WEIR_COUNT_BARRIERS, WEIR_EVENT_BARRIER, weir_event_barrier{});
}

WEIR_EXPORTED void weir_copy_on(uint32_t queue, uint32_t kind, uint64_t bytes) {
  marked(queue, WEIR_COUNT_COPIES, WEIR_EVENT_COPY, weir_event_copy{bytes, kind, WEIR_NO_GROUP});
}

WEIR_EXPORTED void weir_submit_on(uint32_t queue, uint64_t buffer) {
  const auto [thread] = Mark();
  queue = checked_queue(queue);
  weir_probe_queue* row = row_of(thread, queue);
  add(&row->counters[WEIR_COUNT_SUBMITS], 1);
  add(&row->counters[WEIR_COUNT_SUBMISSIONS], 1);
  add(&row->counters[WEIR_COUNT_COMMAND_BUFFERS], 1);
  __atomic_store_n(&g.queues[queue].submitted, 1, __ATOMIC_RELAXED);
  if (events_on()) enter_submit(queue, buffer);
  if (buffer != 0 && thread->buffer == buffer) leave_buffer(thread);
}

WEIR_EXPORTED void weir_wait_begin_on(void) {
  if (!events_on() && !g.timed) return;
  const Mark mark;
  mark.thread->wait_began = stamp(g.stamps);
}

WEIR_EXPORTED void weir_sync_on(uint32_t queue) {
  const auto [thread] = Mark();
  wait_in_op(thread);
  if ((weir_profile_flags & WEIR_PROFILE_COUNTS) == 0) {
    thread->wait_began = 0;
    return;
  }
  queue = checked_queue(queue);
  weir_probe_queue* row = row_of(thread, queue);
  const bool counted = is_sync(queue);
  if (counted) add(&row->counters[WEIR_COUNT_SYNCS], 1);
  add(&row->counters[WEIR_COUNT_WAITS], 1);
  add(&g.file.devices[g.queues[queue].device].counters[WEIR_COUNT_WAITS], 1);
  // Stamps are nanoseconds where events are written.
  if (events_on()) write_wait(event_queue(queue), WEIR_WAIT_QUEUE, thread->wait_began, counted);
  thread->wait_began = 0;
}
