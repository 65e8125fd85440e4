// Fences, semaphores, events and queries. Timestamps are times of the clock; other queries are 0.
#include <linux/futex.h>

#include "gate/probes/twin/state.h"

namespace weir_twin {
uint64_t query_size(const QueryPool& pool, VkQueryResultFlags flags) {
  const uint64_t value_size = (flags & VK_QUERY_RESULT_64_BIT) != 0 ? 8 : 4;
  const uint64_t more = (flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) != 0 ? 1 : 0;
  return value_size * (pool.values + more);
}

// Writes the values of a query to `out`, and whether it is available if `flags` ask for that.
void write_query(const QueryPool& pool, const Query& query, VkQueryResultFlags flags,
                 uint8_t* out) {
  const size_t value_size = (flags & VK_QUERY_RESULT_64_BIT) != 0 ? 8 : 4;
  const auto write = [&](uint64_t value) {
    memcpy(out, &value, value_size);  // little-endian: the lower half comes first
    out += value_size;
  };
  if (query.available || (flags & VK_QUERY_RESULT_PARTIAL_BIT) != 0) {
    for (uint32_t i = 0; i < pool.values; ++i) write(query.value);
  } else {
    out += value_size * pool.values;
  }
  if ((flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) != 0) write(query.available ? 1 : 0);
}

// Waits until `ready` returns true, at most `timeout` nanoseconds; false if the time is up. It
// waits on a futex: condition variables on this clock need a newer glibc.
bool wait_until(Device* device, uint64_t timeout, bool (*ready)(void*), void* data) {
  constexpr uint64_t k_second = 1000000000;
  constexpr uint64_t k_for_ever = uint64_t{1} << 62;  // 146 years
  const uint64_t start = timeout == 0 ? 0 : now_nanoseconds();
  pthread_mutex_lock(&device->lock);
  bool is_ready = ready(data);
  uint64_t waited = 0;
  while (!is_ready && waited < timeout) {
    const uint32_t changes = device->changes;
    pthread_mutex_unlock(&device->lock);
    const uint64_t rest = timeout - waited;
    const timespec limit{static_cast<time_t>(rest / k_second), static_cast<long>(rest % k_second)};
    syscall(SYS_futex, &device->changes, FUTEX_WAIT_PRIVATE, changes,
            timeout < k_for_ever ? &limit : nullptr, nullptr, 0);
    waited = now_nanoseconds() - start;
    pthread_mutex_lock(&device->lock);
    is_ready = ready(data);
  }
  pthread_mutex_unlock(&device->lock);
  return is_ready;
}

}  // namespace weir_twin

using namespace weir_twin;

VkResult vkCreateFence(VkDevice, const VkFenceCreateInfo* info, const VkAllocationCallbacks*,
                       VkFence* out) {
  return create<Fence>(out, [&](Fence* fence) {
    fence->signaled = (info->flags & VK_FENCE_CREATE_SIGNALED_BIT) != 0;
  });
}

VkResult vkResetFences(VkDevice device, uint32_t count, const VkFence* fences) {
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  for (uint32_t i = 0; i < count; ++i) object<Fence>(fences[i])->signaled = false;
  return VK_SUCCESS;
}

VkResult vkGetFenceStatus(VkDevice device, VkFence fence) {
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  return object<Fence>(fence)->signaled ? VK_SUCCESS : VK_NOT_READY;
}

VkResult vkWaitForFences(VkDevice device, uint32_t count, const VkFence* fences, VkBool32 all,
                         uint64_t timeout) {
  const auto ready = [&] {
    uint32_t signaled = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (object<Fence>(fences[i])->signaled) ++signaled;
    }
    return all != VK_FALSE ? signaled == count : signaled != 0;
  };
  return wait_until(object<Device>(device), timeout, ready) ? VK_SUCCESS : VK_TIMEOUT;
}

VkResult vkCreateSemaphore(VkDevice, const VkSemaphoreCreateInfo* info,
                           const VkAllocationCallbacks*, VkSemaphore* out) {
  return create<Semaphore>(out, [&](Semaphore* semaphore) {
    const auto* type = in_chain<VkSemaphoreTypeCreateInfo>(
        info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    if (type != nullptr) {
      semaphore->timeline = type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
      semaphore->value = semaphore->timeline ? type->initialValue : 0;
    }
  });
}

VkResult vkGetSemaphoreCounterValue(VkDevice device, VkSemaphore semaphore, uint64_t* out) {
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  *out = object<Semaphore>(semaphore)->value;
  return VK_SUCCESS;
}

VkResult vkSignalSemaphore(VkDevice device, const VkSemaphoreSignalInfo* info) {
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  object<Semaphore>(info->semaphore)->value = info->value;
  run_ready_batches(object<Device>(device));
  return VK_SUCCESS;
}

VkResult vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  const auto ready = [info] {
    uint32_t reached = 0;
    for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
      if (object<Semaphore>(info->pSemaphores[i])->value >= info->pValues[i]) ++reached;
    }
    const bool any = (info->flags & VK_SEMAPHORE_WAIT_ANY_BIT) != 0;
    return any ? reached != 0 : reached == info->semaphoreCount;
  };
  return wait_until(object<Device>(device), timeout, ready) ? VK_SUCCESS : VK_TIMEOUT;
}

VkResult vkCreateEvent(VkDevice, const VkEventCreateInfo*, const VkAllocationCallbacks*,
                       VkEvent* out) {
  return create<Event>(out, [](Event*) {});
}

VkResult vkGetEventStatus(VkDevice device, VkEvent event) {
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  return object<Event>(event)->set ? VK_EVENT_SET : VK_EVENT_RESET;
}

VkResult vkSetEvent(VkDevice device, VkEvent event) {
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  object<Event>(event)->set = true;
  run_ready_batches(object<Device>(device));
  return VK_SUCCESS;
}

VkResult vkResetEvent(VkDevice device, VkEvent event) {
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  object<Event>(event)->set = false;
  return VK_SUCCESS;
}

// Makes a pool of queries. Their type decides how many values each has.
VkResult vkCreateQueryPool(VkDevice, const VkQueryPoolCreateInfo* info,
                           const VkAllocationCallbacks*, VkQueryPool* out) {
  return create<QueryPool>(
      out,
      [&](QueryPool* pool) {
        pool->count = info->queryCount;
        pool->values = 1;
        if (info->queryType == VK_QUERY_TYPE_PIPELINE_STATISTICS) {
          pool->values = static_cast<uint32_t>(__builtin_popcount(info->pipelineStatistics));
        } else if (info->queryType == VK_QUERY_TYPE_TRANSFORM_FEEDBACK_STREAM_EXT) {
          pool->values = 2;
        }
      },
      size_t{info->queryCount} * sizeof(Query));
}

void vkResetQueryPool(VkDevice device, VkQueryPool handle, uint32_t first, uint32_t count) {
  auto* pool = object<QueryPool>(handle);
  const weir_probe::Locked locked(&object<Device>(device)->lock);
  for (uint32_t i = 0; i < count && first + i < pool->count; ++i) pool->queries[first + i] = {};
}

// Writes those results of queries that fit into `size` bytes, after waiting for all if `flags` ask
// for it.
VkResult vkGetQueryPoolResults(VkDevice handle, VkQueryPool which, uint32_t first, uint32_t count,
                               size_t size, void* out, VkDeviceSize stride,
                               VkQueryResultFlags flags) {
  auto* device = object<Device>(handle);
  auto* pool = object<QueryPool>(which);
  if (first >= pool->count) return VK_SUCCESS;
  if (count > pool->count - first) count = pool->count - first;
  const auto ready = [&] {
    for (uint32_t i = 0; i < count; ++i) {
      if (!pool->queries[first + i].available) return false;
    }
    return true;
  };
  if ((flags & VK_QUERY_RESULT_WAIT_BIT) != 0) wait_until(device, UINT64_MAX, ready);
  const weir_probe::Locked locked(&object<Device>(handle)->lock);
  const uint64_t result_size = query_size(*pool, flags);
  for (uint32_t i = 0; i < count && i * stride + result_size <= size; ++i) {
    write_query(*pool, pool->queries[first + i], flags, static_cast<uint8_t*>(out) + i * stride);
  }
  return ready() ? VK_SUCCESS : VK_NOT_READY;
}
