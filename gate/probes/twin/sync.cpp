// Fences, semaphores and events.
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate/probes/twin/entries.h"

namespace weir_twin {
namespace {

class Hold {
 public:
  explicit Hold(VkDevice device) : device_(object<Device>(device)) {
    pthread_mutex_lock(&device_->lock);
  }
  ~Hold() { pthread_mutex_unlock(&device_->lock); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Device* device_;
};

template <class T, class Handle>
VkResult make_state(T** made, Handle* out) {
  *made = static_cast<T*>(calloc(1, sizeof(T)));
  if (*made == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  *out = handle_of<Handle>(*made);
  return VK_SUCCESS;
}
template <class T, class Handle>
VKAPI_ATTR void VKAPI_CALL destroy_state(VkDevice, Handle handle, const VkAllocationCallbacks*) {
  free(object<T>(handle));
}

VKAPI_ATTR VkResult VKAPI_CALL create_fence(VkDevice, const VkFenceCreateInfo* info,
                                            const VkAllocationCallbacks*, VkFence* out) {
  Fence* fence = nullptr;
  const VkResult result = make_state(&fence, out);
  if (result == VK_SUCCESS) fence->signaled = (info->flags & VK_FENCE_CREATE_SIGNALED_BIT) != 0;
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL reset_fences(VkDevice device, uint32_t count,
                                            const VkFence* fences) {
  const Hold hold(device);
  for (uint32_t i = 0; i < count; ++i) object<Fence>(fences[i])->signaled = false;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL get_fence_status(VkDevice device, VkFence fence) {
  const Hold hold(device);
  return object<Fence>(fence)->signaled ? VK_SUCCESS : VK_NOT_READY;
}

struct Fences {
  const VkFence* fences;
  uint32_t count;
  bool all;
};
bool fences_ready(void* of) {
  const auto* wait = static_cast<const Fences*>(of);
  uint32_t ready = 0;
  for (uint32_t i = 0; i < wait->count; ++i) {
    ready += object<Fence>(wait->fences[i])->signaled ? 1 : 0;
  }
  return wait->all ? ready == wait->count : ready != 0;
}
VKAPI_ATTR VkResult VKAPI_CALL wait_for_fences(VkDevice device, uint32_t count,
                                               const VkFence* fences, VkBool32 all,
                                               uint64_t timeout) {
  Fences wait{fences, count, all != VK_FALSE};
  return wait_until(object<Device>(device), timeout, fences_ready, &wait) ? VK_SUCCESS : VK_TIMEOUT;
}

VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice, const VkSemaphoreCreateInfo* info,
                                                const VkAllocationCallbacks*, VkSemaphore* out) {
  Semaphore* semaphore = nullptr;
  const VkResult result = make_state(&semaphore, out);
  const auto* type = find_in_chain<VkSemaphoreTypeCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  if (result == VK_SUCCESS && type != nullptr) {
    semaphore->timeline = type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
    semaphore->value = semaphore->timeline ? type->initialValue : 0;
  }
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL get_counter(VkDevice device, VkSemaphore semaphore, uint64_t* out) {
  const Hold hold(device);
  *out = object<Semaphore>(semaphore)->value;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL signal_semaphore(VkDevice device,
                                                const VkSemaphoreSignalInfo* info) {
  const Hold hold(device);
  object<Semaphore>(info->semaphore)->value = info->value;
  advance(object<Device>(device));
  return VK_SUCCESS;
}
bool semaphores_ready(void* of) {
  const auto* wait = static_cast<const VkSemaphoreWaitInfo*>(of);
  uint32_t ready = 0;
  for (uint32_t i = 0; i < wait->semaphoreCount; ++i) {
    ready += object<Semaphore>(wait->pSemaphores[i])->value >= wait->pValues[i] ? 1 : 0;
  }
  return (wait->flags & VK_SEMAPHORE_WAIT_ANY_BIT) != 0 ? ready != 0
                                                        : ready == wait->semaphoreCount;
}
VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo* info,
                                               uint64_t timeout) {
  VkSemaphoreWaitInfo wait = *info;
  return wait_until(object<Device>(device), timeout, semaphores_ready, &wait) ? VK_SUCCESS
                                                                              : VK_TIMEOUT;
}

VKAPI_ATTR VkResult VKAPI_CALL create_event(VkDevice, const VkEventCreateInfo*,
                                            const VkAllocationCallbacks*, VkEvent* out) {
  Event* event = nullptr;
  return make_state(&event, out);
}
VKAPI_ATTR VkResult VKAPI_CALL get_event(VkDevice device, VkEvent event) {
  const Hold hold(device);
  return object<Event>(event)->set ? VK_EVENT_SET : VK_EVENT_RESET;
}
VKAPI_ATTR VkResult VKAPI_CALL set_event(VkDevice device, VkEvent event) {
  const Hold hold(device);
  object<Event>(event)->set = true;
  advance(object<Device>(device));
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL reset_event(VkDevice device, VkEvent event) {
  const Hold hold(device);
  object<Event>(event)->set = false;
  return VK_SUCCESS;
}

}  // namespace

// A futex, because a condition on the monotonic clock needs a newer glibc.
bool wait_until(Device* device, uint64_t timeout, bool (*ready)(void*), void* what) {
  constexpr uint64_t k_second = 1000000000;
  constexpr uint64_t k_for_ever = uint64_t{1} << 62;  // 146 years
  const uint64_t start = timeout == 0 ? 0 : now_nanoseconds();
  pthread_mutex_lock(&device->lock);
  bool done = ready(what);
  uint64_t waited = 0;
  while (!done && waited < timeout) {
    const uint32_t seen = device->changes;
    pthread_mutex_unlock(&device->lock);
    const uint64_t rest = timeout - waited;
    const timespec left{static_cast<time_t>(rest / k_second), static_cast<long>(rest % k_second)};
    syscall(SYS_futex, &device->changes, FUTEX_WAIT_PRIVATE, seen,
            timeout < k_for_ever ? &left : nullptr, nullptr, 0);
    waited = now_nanoseconds() - start;
    pthread_mutex_lock(&device->lock);
    done = ready(what);
  }
  pthread_mutex_unlock(&device->lock);
  return done;
}

Entries sync_entries() {
  constexpr auto k_timeline = "VK_KHR_timeline_semaphore";
  static const Entry entries[] = {
      WEIR_TWIN_CORE(0, CreateFence, create_fence),
      WEIR_TWIN_CORE(0, DestroyFence, destroy_state<Fence>),
      WEIR_TWIN_CORE(0, ResetFences, reset_fences),
      WEIR_TWIN_CORE(0, GetFenceStatus, get_fence_status),
      WEIR_TWIN_CORE(0, WaitForFences, wait_for_fences),
      WEIR_TWIN_CORE(0, CreateSemaphore, create_semaphore),
      WEIR_TWIN_CORE(0, DestroySemaphore, destroy_state<Semaphore>),
      WEIR_TWIN_CORE(2, GetSemaphoreCounterValue, get_counter),
      WEIR_TWIN_CORE(2, WaitSemaphores, wait_semaphores),
      WEIR_TWIN_CORE(2, SignalSemaphore, signal_semaphore),
      WEIR_TWIN_EXTENSION(k_timeline, GetSemaphoreCounterValueKHR, get_counter),
      WEIR_TWIN_EXTENSION(k_timeline, WaitSemaphoresKHR, wait_semaphores),
      WEIR_TWIN_EXTENSION(k_timeline, SignalSemaphoreKHR, signal_semaphore),
      WEIR_TWIN_CORE(0, CreateEvent, create_event),
      WEIR_TWIN_CORE(0, DestroyEvent, destroy_state<Event>),
      WEIR_TWIN_CORE(0, GetEventStatus, get_event),
      WEIR_TWIN_CORE(0, SetEvent, set_event),
      WEIR_TWIN_CORE(0, ResetEvent, reset_event),
  };
  return all_of(entries);
}

}  // namespace weir_twin
