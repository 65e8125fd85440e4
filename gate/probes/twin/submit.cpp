// Queues: what is handed over is done at once, in order; what waits for a semaphore or an event
// that is not there yet is kept, and done by the call that brings it.
#include <limits.h>
#include <linux/futex.h>

#include "gate/probes/twin/state.h"

namespace weir_twin {

struct Mark {
  Semaphore* semaphore;
  uint64_t value;
};
// One of a submission's parts. The arrays lie behind it, in one piece.
struct Batch {
  Batch* next;
  uint32_t wait_count, buffer_count, signal_count;
  uint32_t at_buffer, at_op;  // where it stopped
  bool started;
  Mark *waits, *signals;
  CommandBuffer** buffers;
  Fence* fence;
};
namespace {

constexpr uint64_t k_page = 4096;

// Where `size` bytes of a buffer lie, cut to what is there. Null for memory that the host cannot
// see.
uint8_t* bytes_of(const void* of, uint64_t offset, uint64_t* size) {
  const auto* buffer = static_cast<const Buffer*>(of);
  const Memory* memory = buffer->memory;
  const uint64_t at = buffer->offset + offset;
  if (memory == nullptr || memory->pages == nullptr || at >= memory->size) return nullptr;
  if (*size > memory->size - at) *size = memory->size - at;
  return memory->pages + at;
}

// Whole pages that only have to look fresh are given back to the system instead.
void fill_bytes(const Memory& memory, uint8_t* to, uint64_t size, uint8_t byte) {
  if (memory.returnable && byte == memory.fresh && size >= 4 * k_page) {
    const uint64_t before = (k_page - (to - memory.pages) % k_page) % k_page;
    const uint64_t middle = (size - before) / k_page * k_page;
    if (madvise(to + before, middle, MADV_DONTNEED) == 0) {
      memset(to, byte, before);
      memset(to + before + middle, byte, size - before - middle);
      return;
    }
  }
  memset(to, byte, size);
}

void do_copy(const Device& device, const Op& op) {
  uint64_t size = op.z;
  const uint8_t* from = bytes_of(op.first, op.x, &size);
  uint8_t* to = bytes_of(op.second, op.y, &size);
  if (to == nullptr) return;
  if (from == nullptr) {
    fill_bytes(*static_cast<const Buffer*>(op.second)->memory, to, size, device.fill);
  } else {
    memmove(to, from, size);
  }
}

void do_fill(const Op& op) {
  uint64_t size = op.z;
  uint8_t* to = bytes_of(op.second, op.y, &size);
  if (to == nullptr) return;
  const auto byte = static_cast<uint8_t>(op.number);
  if (op.number == byte * 0x01010101U) {
    fill_bytes(*static_cast<const Buffer*>(op.second)->memory, to, size, byte);
    return;
  }
  for (uint64_t at = 0; at + sizeof op.number <= size; at += sizeof op.number) {
    memcpy(to + at, &op.number, sizeof op.number);
  }
}

Query* query_of(const Op& op, uint64_t which) {
  auto* pool = static_cast<QueryPool*>(op.first);
  return which < pool->count ? &pool->queries[which] : nullptr;
}

void do_copy_queries(const Op& op) {
  const auto* pool = static_cast<const QueryPool*>(op.first);
  const uint64_t bytes = size_of_query(*pool, op.flags);
  for (uint32_t i = 0; i < op.number; ++i) {
    const Query* query = query_of(op, op.x + i);
    uint64_t size = bytes;
    uint8_t* to = bytes_of(op.second, op.y + i * op.z, &size);
    if (query != nullptr && to != nullptr && size == bytes) {
      write_query(*pool, *query, op.flags, to);
    }
  }
}

uint64_t valid_ticks(const Queue& queue, uint64_t ticks) {
  VkQueueFamilyProperties family{};
  queue_family(queue.device->physical->twin, queue.family, &family);
  const uint32_t bits = family.timestampValidBits;
  return bits == 0 || bits >= 64 ? ticks : ticks & ((uint64_t{1} << bits) - 1);
}

// False when it has to wait.
bool do_op(Queue* queue, const Op& op) {
  switch (op.kind) {
    case k_copy:
      do_copy(*queue->device, op);
      break;
    case k_fill:
      do_fill(op);
      break;
    case k_update: {
      uint64_t size = op.z;
      uint8_t* to = bytes_of(op.second, op.y, &size);
      if (to != nullptr && op.data != nullptr) memcpy(to, op.data, size);
      break;
    }
    case k_set_event:
    case k_reset_event:
      static_cast<Event*>(op.first)->set = op.kind == k_set_event;
      break;
    case k_wait_event:
      return static_cast<const Event*>(op.first)->set;
    case k_reset_queries:
      for (uint64_t i = 0; i < op.y; ++i) {
        if (Query* query = query_of(op, op.x + i)) *query = {};
      }
      break;
    case k_end_query:
      if (Query* query = query_of(op, op.x)) *query = {true, 0};
      break;
    case k_write_time:
      if (Query* query = query_of(op, op.x)) {
        *query = {true, valid_ticks(*queue, next_ticks(queue->device))};
      }
      break;
    case k_copy_queries:
      do_copy_queries(op);
      break;
  }
  return true;
}

bool may_start(const Batch& batch) {
  for (uint32_t i = 0; i < batch.wait_count; ++i) {
    const Mark& wait = batch.waits[i];
    if (wait.semaphore->value < (wait.semaphore->timeline ? wait.value : 1)) return false;
  }
  return true;
}

// False when it has to wait.
bool do_batch(Queue* queue, Batch* batch) {
  if (!batch->started) {
    if (!may_start(*batch)) return false;
    for (uint32_t i = 0; i < batch->wait_count; ++i) {
      if (!batch->waits[i].semaphore->timeline) batch->waits[i].semaphore->value = 0;
    }
    batch->started = true;
  }
  for (; batch->at_buffer < batch->buffer_count; ++batch->at_buffer, batch->at_op = 0) {
    const CommandBuffer& buffer = *batch->buffers[batch->at_buffer];
    for (; batch->at_op < buffer.count; ++batch->at_op) {
      if (!do_op(queue, buffer.ops[batch->at_op])) return false;
    }
  }
  for (uint32_t i = 0; i < batch->signal_count; ++i) {
    const Mark& signal = batch->signals[i];
    signal.semaphore->value = signal.semaphore->timeline ? signal.value : 1;
  }
  if (batch->fence != nullptr) batch->fence->signaled = true;
  return true;
}

Batch* make_batch(uint32_t waits, uint32_t buffers, uint32_t signals) {
  const size_t marks = size_t{waits} + signals;
  auto* bytes = static_cast<uint8_t*>(
      calloc(1, sizeof(Batch) + marks * sizeof(Mark) + buffers * sizeof(CommandBuffer*)));
  if (bytes == nullptr) return nullptr;
  auto* batch = reinterpret_cast<Batch*>(bytes);
  batch->waits = reinterpret_cast<Mark*>(bytes + sizeof(Batch));
  batch->signals = batch->waits + waits;
  batch->buffers = reinterpret_cast<CommandBuffer**>(batch->signals + signals);
  batch->wait_count = waits;
  batch->buffer_count = buffers;
  batch->signal_count = signals;
  return batch;
}

Batch* batch_of(const VkSubmitInfo& info) {
  Batch* batch =
      make_batch(info.waitSemaphoreCount, info.commandBufferCount, info.signalSemaphoreCount);
  if (batch == nullptr) return nullptr;
  VkTimelineSemaphoreSubmitInfo none{};
  const auto* values = in_chain<VkTimelineSemaphoreSubmitInfo>(
      info.pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  if (values == nullptr) values = &none;
  const auto mark = [](Mark* marks, uint32_t count, const VkSemaphore* semaphores,
                       uint32_t value_count, const uint64_t* of) {
    for (uint32_t i = 0; i < count; ++i) {
      marks[i] = {object<Semaphore>(semaphores[i]), i < value_count ? of[i] : 0};
    }
  };
  mark(batch->waits, info.waitSemaphoreCount, info.pWaitSemaphores, values->waitSemaphoreValueCount,
       values->pWaitSemaphoreValues);
  mark(batch->signals, info.signalSemaphoreCount, info.pSignalSemaphores,
       values->signalSemaphoreValueCount, values->pSignalSemaphoreValues);
  for (uint32_t i = 0; i < info.commandBufferCount; ++i) {
    batch->buffers[i] = object<CommandBuffer>(info.pCommandBuffers[i]);
  }
  return batch;
}

Batch* batch_of(const VkSubmitInfo2& info) {
  Batch* batch = make_batch(info.waitSemaphoreInfoCount, info.commandBufferInfoCount,
                            info.signalSemaphoreInfoCount);
  if (batch == nullptr) return nullptr;
  const auto mark = [](Mark* marks, uint32_t count, const VkSemaphoreSubmitInfo* infos) {
    for (uint32_t i = 0; i < count; ++i) {
      marks[i] = {object<Semaphore>(infos[i].semaphore), infos[i].value};
    }
  };
  mark(batch->waits, info.waitSemaphoreInfoCount, info.pWaitSemaphoreInfos);
  mark(batch->signals, info.signalSemaphoreInfoCount, info.pSignalSemaphoreInfos);
  for (uint32_t i = 0; i < info.commandBufferInfoCount; ++i) {
    batch->buffers[i] = object<CommandBuffer>(info.pCommandBufferInfos[i].commandBuffer);
  }
  return batch;
}

// What is bound by it stays as it is: a twin has no memory that could be sparse.
Batch* batch_of(const VkBindSparseInfo& info) {
  VkSubmitInfo alike{};
  alike.pNext = info.pNext;
  alike.waitSemaphoreCount = info.waitSemaphoreCount;
  alike.pWaitSemaphores = info.pWaitSemaphores;
  alike.signalSemaphoreCount = info.signalSemaphoreCount;
  alike.pSignalSemaphores = info.pSignalSemaphores;
  return batch_of(alike);
}

template <class Info>
VkResult submit_all(VkQueue handle, uint32_t count, const Info* infos, VkFence fence) {
  auto* queue = object<Queue>(handle);
  Batch *first = nullptr, *last = nullptr;
  const auto append = [&](Batch* batch) {
    if (batch == nullptr) return false;
    if (first == nullptr) {
      first = batch;
    } else {
      last->next = batch;
    }
    last = batch;
    return true;
  };
  bool all = true;
  for (uint32_t i = 0; i < count && all; ++i) all = append(batch_of(infos[i]));
  if (all && count == 0 && fence != VK_NULL_HANDLE) all = append(make_batch(0, 0, 0));
  while (!all && first != nullptr) {
    Batch* next = first->next;
    free(first);
    first = next;
  }
  if (!all) return VK_ERROR_OUT_OF_HOST_MEMORY;
  if (first == nullptr) return VK_SUCCESS;
  last->fence = object<Fence>(fence);
  Device* device = queue->device;
  const weir_probe::Locked locked(&device->lock);
  if (queue->first == nullptr) {
    queue->first = first;
  } else {
    queue->last->next = first;
  }
  queue->last = last;
  advance(device);
  return VK_SUCCESS;
}

}  // namespace

void drop_pending(Device* device) {
  for (uint32_t i = 0; i < device->queue_count; ++i) {
    while (Batch* batch = device->queues[i].first) {
      device->queues[i].first = batch->next;
      free(batch);
    }
  }
}

void advance(Device* device) {
  bool moved = true;
  while (moved) {
    moved = false;
    for (uint32_t i = 0; i < device->queue_count; ++i) {
      Queue* queue = &device->queues[i];
      while (queue->first != nullptr && do_batch(queue, queue->first)) {
        Batch* done = queue->first;
        queue->first = done->next;
        free(done);
        moved = true;
      }
    }
  }
  __atomic_add_fetch(&device->changes, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &device->changes, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace weir_twin

using namespace weir_twin;

VkResult vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  return submit_all(queue, count, infos, fence);
}

VkResult vkQueueSubmit2(VkQueue queue, uint32_t count, const VkSubmitInfo2* infos, VkFence fence) {
  return submit_all(queue, count, infos, fence);
}

VkResult vkQueueBindSparse(VkQueue queue, uint32_t count, const VkBindSparseInfo* infos,
                           VkFence fence) {
  return submit_all(queue, count, infos, fence);
}

VkResult vkQueueWaitIdle(VkQueue handle) {
  auto* queue = object<Queue>(handle);
  wait_until(queue->device, UINT64_MAX, [queue] { return queue->first == nullptr; });
  return VK_SUCCESS;
}

VkResult vkDeviceWaitIdle(VkDevice handle) {
  auto* device = object<Device>(handle);
  wait_until(device, UINT64_MAX, [device] {
    for (uint32_t i = 0; i < device->queue_count; ++i) {
      if (device->queues[i].first != nullptr) return false;
    }
    return true;
  });
  return VK_SUCCESS;
}
