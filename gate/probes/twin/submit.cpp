// Runs submissions at once and in order. One that waits for a semaphore or event is kept, and runs
// in the call that signals it.
#include <limits.h>
#include <linux/futex.h>

#include "gate/probes/twin/state.h"

namespace weir_twin {

struct SemaphoreValue {
  Semaphore* semaphore;
  uint64_t value;
};
// One VkSubmitInfo of a submission. Its arrays lie behind it in the same allocation.
struct Batch {
  Batch* next;
  uint32_t wait_count, buffer_count, signal_count;
  uint32_t next_buffer, next_op;  // to be run next
  bool started;
  SemaphoreValue *waits, *signals;
  CommandBuffer** buffers;
  Fence* fence;
};
namespace {

constexpr uint64_t k_page = 4096;

// Finds `size` bytes of a Buffer, cut to the end of its memory. Null for memory that the host
// cannot see.
uint8_t* find_bytes(const void* operand, uint64_t offset, uint64_t* size) {
  const auto* buffer = static_cast<const Buffer*>(operand);
  const Memory* memory = buffer->memory;
  const uint64_t at = buffer->offset + offset;
  if (memory == nullptr || memory->pages == nullptr || at >= memory->size) return nullptr;
  if (*size > memory->size - at) *size = memory->size - at;
  return memory->pages + at;
}

// Sets bytes of a buffer. Whole pages that get their first value again are given back to the
// system instead.
void fill_bytes(const Memory& memory, uint8_t* to, uint64_t size, uint8_t byte) {
  if (memory.discardable && byte == memory.initial_byte && size >= 4 * k_page) {
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

// Copies `z` bytes from offset `x` of buffer `first` to offset `y` of buffer `second`. Bytes from
// memory without pages read as the device's fill byte.
void run_copy(const Device& device, const Op& op) {
  uint64_t size = op.z;
  const uint8_t* from = find_bytes(op.first, op.x, &size);
  uint8_t* to = find_bytes(op.second, op.y, &size);
  if (to == nullptr) return;
  if (from == nullptr) {
    fill_bytes(*static_cast<const Buffer*>(op.second)->memory, to, size, device.fill);
  } else {
    memmove(to, from, size);
  }
}

// Runs a fill: writes the word `number` to `z` bytes at offset `y` of the buffer `second`.
void run_fill(const Op& op) {
  uint64_t size = op.z;
  uint8_t* bytes = find_bytes(op.second, op.y, &size);
  if (bytes == nullptr) return;
  const auto byte = static_cast<uint8_t>(op.number);
  if (op.number == byte * 0x01010101U) {
    fill_bytes(*static_cast<const Buffer*>(op.second)->memory, bytes, size, byte);
    return;
  }
  for (uint64_t offset = 0; offset + sizeof op.number <= size; offset += sizeof op.number) {
    memcpy(bytes + offset, &op.number, sizeof op.number);
  }
}

// Returns a query of the pool `first`; null beyond its end.
Query* find_query(const Op& op, uint64_t index) {
  auto* pool = static_cast<QueryPool*>(op.first);
  return index < pool->count ? &pool->queries[index] : nullptr;
}

// Writes the results of `number` queries, from `x` on, to the buffer `second`: at offset `y`, each
// `z` bytes after the other. Results that do not fit are left out.
void run_copy_queries(const Op& op) {
  const auto* pool = static_cast<const QueryPool*>(op.first);
  const uint64_t result_size = query_size(*pool, op.flags);
  for (uint32_t i = 0; i < op.number; ++i) {
    const Query* query = find_query(op, op.x + i);
    uint64_t room = result_size;
    uint8_t* result = find_bytes(op.second, op.y + i * op.z, &room);
    if (query != nullptr && result != nullptr && room == result_size) {
      write_query(*pool, *query, op.flags, result);
    }
  }
}

// Cuts ticks to the bits that timestamps of the queue have.
uint64_t valid_ticks(const Queue& queue, uint64_t ticks) {
  VkQueueFamilyProperties family{};
  read_queue_family(queue.device->physical->twin, queue.family, &family);
  const uint32_t bits = family.timestampValidBits;
  return bits == 0 || bits >= 64 ? ticks : ticks & ((uint64_t{1} << bits) - 1);
}

// Runs one command of a command buffer; false if it has to wait for an event. OpKind says what
// each of its members is.
bool run_op(Queue* queue, const Op& op) {
  switch (op.kind) {
    case k_copy:
      run_copy(*queue->device, op);
      break;
    case k_fill:
      run_fill(op);
      break;
    case k_update: {
      uint64_t size = op.z;
      uint8_t* to = find_bytes(op.second, op.y, &size);
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
        if (Query* query = find_query(op, op.x + i)) *query = {};
      }
      break;
    case k_end_query:
      if (Query* query = find_query(op, op.x)) *query = {true, 0};
      break;
    case k_write_time:
      if (Query* query = find_query(op, op.x)) {
        *query = {true, valid_ticks(*queue, next_ticks(queue->device))};
      }
      break;
    case k_copy_queries:
      run_copy_queries(op);
      break;
  }
  return true;
}

bool can_start(const Batch& batch) {
  for (uint32_t i = 0; i < batch.wait_count; ++i) {
    const SemaphoreValue& wait = batch.waits[i];
    if (wait.semaphore->value < (wait.semaphore->timeline ? wait.value : 1)) return false;
  }
  return true;
}

// Runs a batch (one submission) from where it stopped before. False if it has to wait for a
// semaphore or an event.
bool run_batch(Queue* queue, Batch* batch) {
  if (!batch->started) {
    if (!can_start(*batch)) return false;
    for (uint32_t i = 0; i < batch->wait_count; ++i) {
      if (!batch->waits[i].semaphore->timeline) batch->waits[i].semaphore->value = 0;
    }
    batch->started = true;
  }
  while (batch->next_buffer < batch->buffer_count) {
    const CommandBuffer& buffer = *batch->buffers[batch->next_buffer];
    for (; batch->next_op < buffer.count; ++batch->next_op) {
      if (!run_op(queue, buffer.ops[batch->next_op])) return false;
    }
    ++batch->next_buffer;
    batch->next_op = 0;
  }
  for (uint32_t i = 0; i < batch->signal_count; ++i) {
    const SemaphoreValue& signal = batch->signals[i];
    signal.semaphore->value = signal.semaphore->timeline ? signal.value : 1;
  }
  if (batch->fence != nullptr) batch->fence->signaled = true;
  return true;
}

// Allocates a batch (one submission) with room for its arrays; null without memory.
Batch* allocate_batch(uint32_t waits, uint32_t buffers, uint32_t signals) {
  const size_t values = size_t{waits} + signals;
  auto* bytes = static_cast<uint8_t*>(calloc(
      1, sizeof(Batch) + values * sizeof(SemaphoreValue) + buffers * sizeof(CommandBuffer*)));
  if (bytes == nullptr) return nullptr;
  auto* batch = reinterpret_cast<Batch*>(bytes);
  batch->waits = reinterpret_cast<SemaphoreValue*>(bytes + sizeof(Batch));
  batch->signals = batch->waits + waits;
  batch->buffers = reinterpret_cast<CommandBuffer**>(batch->signals + signals);
  batch->wait_count = waits;
  batch->buffer_count = buffers;
  batch->signal_count = signals;
  return batch;
}
// Allocates a batch that only signals its fence.
Batch* allocate_empty_batch() { return allocate_batch(/*waits=*/0, /*buffers=*/0, /*signals=*/0); }

// Makes a batch of a submission; null without memory. Values of timeline semaphores may be chained
// to `info`.
Batch* make_batch(const VkSubmitInfo& info) {
  Batch* batch =
      allocate_batch(info.waitSemaphoreCount, info.commandBufferCount, info.signalSemaphoreCount);
  if (batch == nullptr) return nullptr;
  VkTimelineSemaphoreSubmitInfo none{};
  const auto* values = in_chain<VkTimelineSemaphoreSubmitInfo>(
      info.pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  if (values == nullptr) values = &none;
  const auto set = [](SemaphoreValue* out, uint32_t count, const VkSemaphore* semaphores,
                      uint32_t number_count, const uint64_t* numbers) {
    for (uint32_t i = 0; i < count; ++i) {
      out[i] = {object<Semaphore>(semaphores[i]), i < number_count ? numbers[i] : 0};
    }
  };
  set(batch->waits, info.waitSemaphoreCount, info.pWaitSemaphores, values->waitSemaphoreValueCount,
      values->pWaitSemaphoreValues);
  set(batch->signals, info.signalSemaphoreCount, info.pSignalSemaphores,
      values->signalSemaphoreValueCount, values->pSignalSemaphoreValues);
  for (uint32_t i = 0; i < info.commandBufferCount; ++i) {
    batch->buffers[i] = object<CommandBuffer>(info.pCommandBuffers[i]);
  }
  return batch;
}

// Makes a batch of a submission of the newer form; null without memory.
Batch* make_batch(const VkSubmitInfo2& info) {
  Batch* batch = allocate_batch(info.waitSemaphoreInfoCount, info.commandBufferInfoCount,
                                info.signalSemaphoreInfoCount);
  if (batch == nullptr) return nullptr;
  const auto set = [](SemaphoreValue* out, uint32_t count, const VkSemaphoreSubmitInfo* infos) {
    for (uint32_t i = 0; i < count; ++i) {
      out[i] = {object<Semaphore>(infos[i].semaphore), infos[i].value};
    }
  };
  set(batch->waits, info.waitSemaphoreInfoCount, info.pWaitSemaphoreInfos);
  set(batch->signals, info.signalSemaphoreInfoCount, info.pSignalSemaphoreInfos);
  for (uint32_t i = 0; i < info.commandBufferInfoCount; ++i) {
    batch->buffers[i] = object<CommandBuffer>(info.pCommandBufferInfos[i].commandBuffer);
  }
  return batch;
}

// Makes a batch of the semaphores alone: a twin has no sparse memory, so bindings do nothing.
Batch* make_batch(const VkBindSparseInfo& info) {
  VkSubmitInfo submission{};
  submission.pNext = info.pNext;
  submission.waitSemaphoreCount = info.waitSemaphoreCount;
  submission.pWaitSemaphores = info.pWaitSemaphores;
  submission.signalSemaphoreCount = info.signalSemaphoreCount;
  submission.pSignalSemaphores = info.pSignalSemaphores;
  return make_batch(submission);
}

// A list of batches.
struct BatchList {
  Batch *first = nullptr, *last = nullptr;

  // False for no batch.
  bool append(Batch* batch) {
    if (batch == nullptr) return false;
    if (first == nullptr) {
      first = batch;
    } else {
      last->next = batch;
    }
    last = batch;
    return true;
  }
  void free_all() {
    while (first != nullptr) {
      Batch* next = first->next;
      free(first);
      first = next;
    }
  }
};

// Makes an empty file which tells that work went past weir's layer, once a process, if counts are
// taken.
void report_uncounted_work() {
  static pid_t reported_by = 0;
  const weir_probe::KeepErrno keep;
  const pid_t process = getpid();
  if (__atomic_exchange_n(&reported_by, process, __ATOMIC_RELAXED) == process) return;
  const char* folder = weir_probe::environment(WEIR_PROBE_DIR_VARIABLE);
  if (folder == nullptr || *folder == '\0') return;
  uint64_t random = 0;
  (void)weir_probe::random_number(&random);
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/" WEIR_PROBE_UNCOUNTED "-%ld-%016llx" WEIR_PROBE_SUFFIX, folder,
           static_cast<long>(process), static_cast<unsigned long long>(random));
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file >= 0) close(file);
}

// Appends submissions to the queue and runs it as far as possible. The fence is signaled after the
// last one; without any it gets a batch of its own. Without memory nothing is submitted.
template <class Info>
VkResult submit_all(VkQueue handle, uint32_t count, const Info* infos, VkFence fence) {
  auto* queue = object<Queue>(handle);
  BatchList batches;
  bool has_memory = true;
  for (uint32_t i = 0; i < count && has_memory; ++i) {
    has_memory = batches.append(make_batch(infos[i]));
  }
  if (count == 0 && fence != VK_NULL_HANDLE) has_memory = batches.append(allocate_empty_batch());
  if (!has_memory) {
    batches.free_all();
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  if (batches.first == nullptr) return VK_SUCCESS;
  batches.last->fence = object<Fence>(fence);
  Device* device = queue->device;
  if (!device->is_counted) report_uncounted_work();
  const weir_probe::Locked locked(&device->lock);
  if (queue->first == nullptr) {
    queue->first = batches.first;
  } else {
    queue->last->next = batches.first;
  }
  queue->last = batches.last;
  run_ready_batches(device);
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

// Runs the batches (submissions) of all queues as far as possible, and wakes the threads that
// wait.
void run_ready_batches(Device* device) {
  // A finished batch may signal what another queue waits for: repeat until nothing finishes.
  bool has_finished = true;
  while (has_finished) {
    has_finished = false;
    for (uint32_t i = 0; i < device->queue_count; ++i) {
      Queue* queue = &device->queues[i];
      while (queue->first != nullptr && run_batch(queue, queue->first)) {
        Batch* finished = queue->first;
        queue->first = finished->next;
        free(finished);
        has_finished = true;
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
