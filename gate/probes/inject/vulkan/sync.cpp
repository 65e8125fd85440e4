// Waits and polls, and which of them were syncs.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

Queue* queue_of_fence(Device* device, VkFence fence) {
  return device->fences.get<Queue>(number(fence));
}

Timeline* timeline_of(Device* device, VkSemaphore semaphore) {
  return device->timelines.get<Timeline>(number(semaphore));
}

// A call that waits counts at the device; a zero timeout, or one that passed, is a poll.
bool count_call(Device* device, VkResult result, uint64_t timeout) {
  const bool waited = timeout != 0 && result == VK_SUCCESS;
  count(device->entry->counters, waited ? WEIR_COUNT_WAITS : WEIR_COUNT_POLLS);
  return waited;
}

// The distinct queues of one wait, so that each of them counts it once.
class Queues {
 public:
  // To be made before the call goes down, since it takes its time.
  explicit Queues(uint32_t kind) : kind_(kind), begin_(events_on() ? now_nanoseconds() : 0) {}

  void reached(Queue* queue, bool waited) {
    if (queue == nullptr) return;
    const bool sync = count_sync(queue);
    for (uint32_t i = 0; waited && i < known_; ++i) {
      if (queues_[i] == queue) return;
    }
    if (events_on()) tell(queue, waited, sync);
    if (!waited) return;
    if (known_ < k_most) queues_[known_++] = queue;
    count(queue->entry->counters, WEIR_COUNT_WAITS);
  }
  // The program asked whether this queue was done, and it was not.
  static void not_yet(Queue* queue) {
    if (queue != nullptr && events_on()) queue->polled.not_yet(now_nanoseconds());
  }

 private:
  void tell(Queue* queue, bool waited, bool sync) {
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

  static constexpr uint32_t k_most = 32;
  uint32_t kind_;
  uint64_t begin_;
  Queue* queues_[k_most];
  uint32_t known_ = 0;
};

// Under its lock. The queue that is to bring the semaphore to `value`: that of the first signal at
// or above it, or null.
Queue* signaller_of(const Timeline& timeline, uint64_t value) {
  for (uint32_t i = 0; i < timeline.count; ++i) {
    if (timeline.signals[i].value >= value) return timeline.signals[i].queue;
  }
  return nullptr;
}

// The same, once `value` was seen.
Queue* reach_value(Timeline* timeline, uint64_t value) {
  const Locked locked(&timeline->lock);
  if (value > timeline->seen) timeline->seen = value;
  return signaller_of(*timeline, value);
}

// A poll answered `value`: it reports done to each queue that has a signal between what was seen
// before and this. An answer that tells nothing new is a "not ready".
void report_value(Timeline* timeline, uint64_t value) {
  Queues queues(WEIR_WAIT_POLL);
  const Locked locked(&timeline->lock);
  for (uint32_t i = 0; i < timeline->count; ++i) {
    const Timeline::Signal& signal = timeline->signals[i];
    if (signal.value > timeline->seen && signal.value <= value) queues.reached(signal.queue, false);
  }
  if (value > timeline->seen) timeline->seen = value;
}

// The program saw that the semaphore is below `value`, which some queue is to bring it to.
void not_yet_at(Timeline* timeline, uint64_t value) {
  if (timeline == nullptr || !events_on()) return;
  const Locked locked(&timeline->lock);
  Queues::not_yet(signaller_of(*timeline, value));
}

template <class Next>
VkResult wait_semaphores(VkDevice handle, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  Device* device = device_of(handle);
  const NextDevice& next = device->next;
  const auto poll = next.GetSemaphoreCounterValue != nullptr ? next.GetSemaphoreCounterValue
                                                             : next.GetSemaphoreCounterValueKHR;
  Queues queues(WEIR_WAIT_SEMAPHORE);
  const VkResult result = Next::of(device)(handle, info, timeout);
  const bool waited = count_call(device, result, timeout);
  if (result == VK_TIMEOUT) {
    for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
      not_yet_at(timeline_of(device, info->pSemaphores[i]), info->pValues[i]);
    }
  }
  if (result != VK_SUCCESS) return result;
  const bool any = (info->flags & VK_SEMAPHORE_WAIT_ANY_BIT) != 0 && info->semaphoreCount > 1;
  for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
    if (any) {
      uint64_t value = 0;
      if (poll == nullptr || poll(handle, info->pSemaphores[i], &value) != VK_SUCCESS ||
          value < info->pValues[i]) {
        continue;
      }
    }
    Timeline* timeline = timeline_of(device, info->pSemaphores[i]);
    if (timeline != nullptr) queues.reached(reach_value(timeline, info->pValues[i]), waited);
  }
  return result;
}

template <class Next>
VkResult poll_semaphore(VkDevice handle, VkSemaphore semaphore, uint64_t* value) {
  Device* device = device_of(handle);
  const VkResult result = Next::of(device)(handle, semaphore, value);
  count(device->entry->counters, WEIR_COUNT_POLLS);
  Timeline* timeline = timeline_of(device, semaphore);
  if (result == VK_SUCCESS && timeline != nullptr) {
    report_value(timeline, *value);
    not_yet_at(timeline, *value + 1);
  }
  return result;
}

VkResult queue_wait_idle(VkQueue handle) {
  Device* device = device_of(handle);
  Queues queues(WEIR_WAIT_QUEUE);
  const VkResult result = device->next.QueueWaitIdle(handle);
  if (result != VK_SUCCESS) return result;
  count_call(device, result, UINT64_MAX);
  queues.reached(queue_of(device, handle), true);
  return result;
}

VkResult device_wait_idle(VkDevice handle) {
  Device* device = device_of(handle);
  Queues queues(WEIR_WAIT_DEVICE);
  const VkResult result = device->next.DeviceWaitIdle(handle);
  if (result != VK_SUCCESS) return result;
  count_call(device, result, UINT64_MAX);
  const Locked locked(&g.lock);  // no queue is added meanwhile
  device->queues.each([&](void* queue) { queues.reached(static_cast<Queue*>(queue), true); });
  return result;
}

void forget_fence(Device* device, VkFence fence, const VkAllocationCallbacks*) {
  device->fences.remove(number(fence));
}

VkResult wait_for_fences(VkDevice handle, uint32_t fence_count, const VkFence* fences, VkBool32 all,
                         uint64_t timeout) {
  Device* device = device_of(handle);
  Queues queues(WEIR_WAIT_FENCE);
  const VkResult result = device->next.WaitForFences(handle, fence_count, fences, all, timeout);
  const bool waited = count_call(device, result, timeout);
  if (result == VK_TIMEOUT) {
    for (uint32_t i = 0; i < fence_count; ++i) Queues::not_yet(queue_of_fence(device, fences[i]));
  }
  if (result != VK_SUCCESS) return result;
  const bool any = all == VK_FALSE && fence_count > 1;
  for (uint32_t i = 0; i < fence_count; ++i) {
    if (any && device->next.GetFenceStatus(handle, fences[i]) != VK_SUCCESS) continue;
    queues.reached(queue_of_fence(device, fences[i]), waited);
  }
  return result;
}

VkResult get_fence_status(VkDevice handle, VkFence fence) {
  Device* device = device_of(handle);
  const VkResult result = device->next.GetFenceStatus(handle, fence);
  count(device->entry->counters, WEIR_COUNT_POLLS);
  Queue* queue = queue_of_fence(device, fence);
  if (result == VK_SUCCESS) {
    Queues(WEIR_WAIT_POLL).reached(queue, false);
  } else if (result == VK_NOT_READY) {
    Queues::not_yet(queue);
  }
  return result;
}

void made_semaphore(Device* device, const VkSemaphoreCreateInfo* info, const VkAllocationCallbacks*,
                    VkSemaphore* out) {
  const auto* type = in_chain<VkSemaphoreTypeCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  if (type == nullptr || type->semaphoreType != VK_SEMAPHORE_TYPE_TIMELINE) return;
  auto* timeline = fresh_record<Timeline>(&device->timelines, number(*out));
  if (timeline == nullptr) return;
  pthread_mutex_init(&timeline->lock, nullptr);
  timeline->seen = type->initialValue;
}

void host_signals(Device* device, const VkSemaphoreSignalInfo* info) {
  note_signal(device, info->semaphore, info->value, nullptr);
}

const Hook k_hooks[] = {WEIR_SYNC_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_sync_hooks = list_of(k_hooks);

void note_signal(Device* device, VkSemaphore semaphore, uint64_t value, Queue* queue) {
  Timeline* timeline = timeline_of(device, semaphore);
  if (timeline == nullptr) return;
  const Locked locked(&timeline->lock);
  if (timeline->count == Timeline::k_signals) {
    memmove(&timeline->signals[0], &timeline->signals[1],
            (Timeline::k_signals - 1) * sizeof(Timeline::Signal));
    --timeline->count;
  }
  uint32_t at = timeline->count++;
  // Almost always at the end: values rise. Submissions of several threads may come out of order.
  for (; at > 0 && timeline->signals[at - 1].value > value; --at) {
    timeline->signals[at] = timeline->signals[at - 1];
  }
  timeline->signals[at] = {value, queue};
}

}  // namespace weir_probe
