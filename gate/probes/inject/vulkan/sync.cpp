// Counts the program's waits and polls, and which of them were syncs.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

Queue* find_fence_queue(Device* device, VkFence fence) {
  return device->fences.get<Queue>(handle_key(fence));
}

Timeline* find_timeline(Device* device, VkSemaphore semaphore) {
  return device->timelines.get<Timeline>(handle_key(semaphore));
}

// Counts a call at its device, as a wait or a poll. Returns true for a wait; a call with timeout 0,
// or one that timed out, is a poll.
bool count_call(Device* device, VkResult result, uint64_t timeout) {
  const bool waited = timeout != 0 && result == VK_SUCCESS;
  count(device->entry->counters, waited ? WEIR_COUNT_WAITS : WEIR_COUNT_POLLS);
  return waited;
}

// The distinct queues that one wait or poll reported done, so that each of them counts it once.
class CompletedQueues {
 public:
  // Construct it before the call goes down: it notes the time.
  explicit CompletedQueues(uint32_t kind)
      : kind_(kind), begin_(is_recording_events() ? now_nanoseconds() : 0) {}

  // Counts a queue that a wait (`waited`) or a poll reported done; null is ignored.
  void add(Queue* queue, bool waited) {
    if (queue == nullptr) return;
    const bool sync = count_sync(queue);
    for (uint32_t i = 0; waited && i < count_; ++i) {
      if (queues_[i] == queue) return;
    }
    if (is_recording_events()) write_wait_event(queue, waited, sync);
    if (!waited) return;
    if (count_ < k_max_queues) queues_[count_++] = queue;
    count(queue->entry->counters, WEIR_COUNT_WAITS);
  }
  // Notes that the program asked whether this queue was done, and it was not.
  static void note_not_ready(Queue* queue) {
    if (queue != nullptr && is_recording_events()) queue->polled.note_not_ready(now_nanoseconds());
  }

 private:
  // Writes the event of the wait, or of a poll that was a sync, and reads the times of finished
  // work.
  void write_wait_event(Queue* queue, bool waited, bool sync) {
    const uint64_t polled = queue->polled.take();
    if (waited) {
      write_wait(queue_index(queue), kind_, begin_, sync);
    } else if (sync) {
      write_wait(queue_index(queue), WEIR_WAIT_POLL, polled != 0 ? polled : begin_, sync);
    }
    begin_ = now_nanoseconds();  // further queues of this call take no time of their own
    const bool idle = kind_ == WEIR_WAIT_QUEUE || kind_ == WEIR_WAIT_DEVICE;
    if (sync || idle) read_times(queue->device, queue, idle);
  }

  static constexpr uint32_t k_max_queues = 32;
  uint32_t kind_;
  uint64_t begin_;
  Queue* queues_[k_max_queues];
  uint32_t count_ = 0;
};

// Returns the queue that is to bring the semaphore to `value`, which is that of the first signal at
// or above it; or null. Under the timeline's lock.
Queue* find_signaller(const Timeline& timeline, uint64_t value) {
  for (uint32_t i = 0; i < timeline.count; ++i) {
    if (timeline.signals[i].value >= value) return timeline.signals[i].queue;
  }
  return nullptr;
}

// Notes that the semaphore has reached `value`, and returns the queue that brought it there.
Queue* reach_and_find_signaller(Timeline* timeline, uint64_t value) {
  const Locked locked(&timeline->lock);
  if (value > timeline->highest) timeline->highest = value;
  return find_signaller(*timeline, value);
}

// Counts a poll that answered `value`. It reports done to each queue that has a signal above the
// highest value so far and up to this one.
void report_polled_value(Timeline* timeline, uint64_t value) {
  CompletedQueues queues(WEIR_WAIT_POLL);
  const Locked locked(&timeline->lock);
  for (uint32_t i = 0; i < timeline->count; ++i) {
    const Timeline::Signal& signal = timeline->signals[i];
    if (signal.value > timeline->highest && signal.value <= value)
      queues.add(signal.queue, /*waited=*/false);
  }
  if (value > timeline->highest) timeline->highest = value;
}

// Notes that the program found the semaphore below `value`, to which some queue is to bring it.
void note_below_value(Timeline* timeline, uint64_t value) {
  if (timeline == nullptr || !is_recording_events()) return;
  const Locked locked(&timeline->lock);
  CompletedQueues::note_not_ready(find_signaller(*timeline, value));
}

// Waits for timeline semaphores, and counts the wait at each queue that brought one to its value. A
// wait for any of them asks afterwards which have arrived.
template <class Next>
VkResult wait_semaphores(VkDevice handle, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  Device* device = find_device(handle);
  const NextDevice& next = device->next;
  const auto poll = next.GetSemaphoreCounterValue != nullptr ? next.GetSemaphoreCounterValue
                                                             : next.GetSemaphoreCounterValueKHR;
  CompletedQueues queues(WEIR_WAIT_SEMAPHORE);
  const VkResult result = Next::of(device)(handle, info, timeout);
  const bool waited = count_call(device, result, timeout);
  if (result == VK_TIMEOUT) {
    for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
      note_below_value(find_timeline(device, info->pSemaphores[i]), info->pValues[i]);
    }
  }
  if (result != VK_SUCCESS) return result;
  const bool waits_for_any =
      (info->flags & VK_SEMAPHORE_WAIT_ANY_BIT) != 0 && info->semaphoreCount > 1;
  for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
    if (waits_for_any) {
      uint64_t value = 0;
      if (poll == nullptr || poll(handle, info->pSemaphores[i], &value) != VK_SUCCESS ||
          value < info->pValues[i]) {
        continue;
      }
    }
    Timeline* timeline = find_timeline(device, info->pSemaphores[i]);
    if (timeline != nullptr)
      queues.add(reach_and_find_signaller(timeline, info->pValues[i]), waited);
  }
  return result;
}

// Reads a timeline semaphore's value; that counts as a poll.
template <class Next>
VkResult poll_semaphore(VkDevice handle, VkSemaphore semaphore, uint64_t* value) {
  Device* device = find_device(handle);
  const VkResult result = Next::of(device)(handle, semaphore, value);
  count(device->entry->counters, WEIR_COUNT_POLLS);
  Timeline* timeline = find_timeline(device, semaphore);
  if (result == VK_SUCCESS && timeline != nullptr) {
    report_polled_value(timeline, *value);
    note_below_value(timeline, *value + 1);
  }
  return result;
}

VkResult queue_wait_idle(VkQueue handle) {
  Device* device = find_device(handle);
  CompletedQueues queues(WEIR_WAIT_QUEUE);
  const VkResult result = device->next.QueueWaitIdle(handle);
  if (result != VK_SUCCESS) return result;
  count_call(device, result, UINT64_MAX);
  queues.add(find_queue(device, handle), /*waited=*/true);
  return result;
}

VkResult device_wait_idle(VkDevice handle) {
  Device* device = find_device(handle);
  CompletedQueues queues(WEIR_WAIT_DEVICE);
  const VkResult result = device->next.DeviceWaitIdle(handle);
  if (result != VK_SUCCESS) return result;
  count_call(device, result, UINT64_MAX);
  const Locked locked(&g.lock);  // no queue is added meanwhile
  device->queues.each(
      [&](void* queue) { queues.add(static_cast<Queue*>(queue), /*waited=*/true); });
  return result;
}

void forget_fence(Device* device, VkFence fence, const VkAllocationCallbacks*) {
  device->fences.remove(handle_key(fence));
}

// Stands in for vkWaitForFences: also counts the wait at each queue that signals one of the
// fences.
VkResult wait_for_fences(VkDevice handle, uint32_t fence_count, const VkFence* fences,
                         VkBool32 wait_for_all, uint64_t timeout) {
  Device* device = find_device(handle);
  CompletedQueues queues(WEIR_WAIT_FENCE);
  const VkResult result =
      device->next.WaitForFences(handle, fence_count, fences, wait_for_all, timeout);
  const bool waited = count_call(device, result, timeout);
  if (result == VK_TIMEOUT) {
    for (uint32_t i = 0; i < fence_count; ++i)
      CompletedQueues::note_not_ready(find_fence_queue(device, fences[i]));
  }
  if (result != VK_SUCCESS) return result;
  const bool waits_for_any = wait_for_all == VK_FALSE && fence_count > 1;
  for (uint32_t i = 0; i < fence_count; ++i) {
    if (waits_for_any && device->next.GetFenceStatus(handle, fences[i]) != VK_SUCCESS) continue;
    queues.add(find_fence_queue(device, fences[i]), waited);
  }
  return result;
}

// Stands in for vkGetFenceStatus: also counts a sync for the fence's queue if its work is done.
VkResult get_fence_status(VkDevice handle, VkFence fence) {
  Device* device = find_device(handle);
  const VkResult result = device->next.GetFenceStatus(handle, fence);
  count(device->entry->counters, WEIR_COUNT_POLLS);
  Queue* queue = find_fence_queue(device, fence);
  if (result == VK_SUCCESS) {
    CompletedQueues(WEIR_WAIT_POLL).add(queue, /*waited=*/false);
  } else if (result == VK_NOT_READY) {
    CompletedQueues::note_not_ready(queue);
  }
  return result;
}

void note_semaphore(Device* device, const VkSemaphoreCreateInfo* info, const VkAllocationCallbacks*,
                    VkSemaphore* out) {
  const auto* type = in_chain<VkSemaphoreTypeCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  if (type == nullptr || type->semaphoreType != VK_SEMAPHORE_TYPE_TIMELINE) return;
  auto* timeline = replace_record<Timeline>(&device->timelines, handle_key(*out));
  if (timeline == nullptr) return;
  pthread_mutex_init(&timeline->lock, nullptr);
  timeline->highest = type->initialValue;
}

void note_host_signal(Device* device, const VkSemaphoreSignalInfo* info) {
  note_signal(device, info->semaphore, info->value, nullptr);
}

const Hook k_hooks[] = {WEIR_SYNC_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_sync_hooks = list_of(k_hooks);

// Keeps which queue signals which value, in rising order, and drops the smallest value when full.
// New values almost always go to the end; those of several threads may not.
void note_signal(Device* device, VkSemaphore semaphore, uint64_t value, Queue* queue) {
  Timeline* timeline = find_timeline(device, semaphore);
  if (timeline == nullptr) return;
  const Locked locked(&timeline->lock);
  if (timeline->count == Timeline::k_signals) {
    memmove(&timeline->signals[0], &timeline->signals[1],
            (Timeline::k_signals - 1) * sizeof(Timeline::Signal));
    --timeline->count;
  }
  uint32_t index = timeline->count++;
  for (; index > 0 && timeline->signals[index - 1].value > value; --index) {
    timeline->signals[index] = timeline->signals[index - 1];
  }
  timeline->signals[index] = {value, queue};
}

}  // namespace weir_probe
