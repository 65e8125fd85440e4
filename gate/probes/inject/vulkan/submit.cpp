// Submission: recorded work is multiplied out.
#include "gate/probes/inject/vulkan/hooks.h"
#include "gate/probes/inject/writer/hold.h"

namespace weir_probe {
namespace {

// All that one call brings to a queue. Added before the call goes down, since another thread may
// see its fence, and record the buffers anew, before the call is back; taken away when it failed.
class Work {
 public:
  explicit Work(Queue* queue) : queue_(queue), device_(queue->device) {}

  void take(const CommandBuffer* buffer, uint64_t sign) {
    ++buffers_;
    if (buffer == nullptr) return;
    for (uint32_t i = 0; i < k_counted; ++i) counters_[i] += buffer->counters[i];
    if (buffer->unknown_dispatches != 0) {
      add(&g.file.kernels[0].dispatches, buffer->unknown_dispatches * sign);
    }
    for (uint32_t i = 0; i < buffer->tally_capacity; ++i) {
      const Tally& tally = buffer->tallies[i];
      if (tally.dispatches == 0) continue;
      const uint32_t kernel = resolve_kernel(device_, tally.pipeline, tally.label);
      add(&g.file.kernels[kernel].dispatches, tally.dispatches * sign);
      g.codes.count(&g.file, &g.lock, kernel, tally.pipeline->code, tally.dispatches * sign,
                    tally.groups * sign);
      if (keeping_code()) note_dispatched(tally.pipeline->kept);
    }
    if (keeping()) submit_kept(buffer, sign);
  }

  void write(uint64_t sign) const {
    uint64_t* counters = queue_->entry->counters;
    count(counters, WEIR_COUNT_SUBMISSIONS, sign);
    if (buffers_ == 0) return;
    count(counters, WEIR_COUNT_SUBMITS, sign);
    count(counters, WEIR_COUNT_COMMAND_BUFFERS, buffers_ * sign);
    for (uint32_t i = 0; i < k_counted; ++i) {
      if (counters_[i] != 0) count(counters, i, counters_[i] * sign);
    }
  }

 private:
  Queue* queue_;
  Device* device_;
  uint64_t buffers_ = 0;
  uint64_t counters_[k_counted] = {};
};

constexpr uint64_t k_plus = 1;
constexpr uint64_t k_minus = UINT64_MAX;  // -1, modulo 2^64

VkCommandBuffer buffer_of(const VkSubmitInfo& submit, uint32_t index) {
  return index < submit.commandBufferCount ? submit.pCommandBuffers[index] : VK_NULL_HANDLE;
}
VkCommandBuffer buffer_of(const VkSubmitInfo2& submit, uint32_t index) {
  return index < submit.commandBufferInfoCount ? submit.pCommandBufferInfos[index].commandBuffer
                                               : VK_NULL_HANDLE;
}
VkCommandBuffer buffer_of(const VkBindSparseInfo&, uint32_t) { return VK_NULL_HANDLE; }

// Calls visit(buffer, its place in the whole call) for each buffer; null for one that is not known,
// or was reset with its pool. How many buffers the call has.
template <class Submit, class Visit>
uint32_t each_buffer(const Submit* submits, uint32_t submit_count, Visit visit) {
  uint32_t order = 0;
  for (uint32_t i = 0; i < submit_count; ++i) {
    for (uint32_t j = 0; VkCommandBuffer handle = buffer_of(submits[i], j); ++j, ++order) {
      CommandBuffer* buffer = command_buffer(handle);
      const bool live = buffer != nullptr && buffer->generation == buffer->pool->generation;
      visit(live ? buffer : nullptr, order);
    }
  }
  return order;
}

// Adds what a call brings to its queue, or takes it away.
template <class Submit>
void count_work(Queue* queue, const Submit* submits, uint32_t submit_count, uint64_t sign) {
  Work work(queue);
  each_buffer(submits, submit_count,
              [&](const CommandBuffer* buffer, uint32_t) { work.take(buffer, sign); });
  work.write(sign);
}

void note_signals(Queue* queue, const VkSubmitInfo2& submit) {
  for (uint32_t i = 0; i < submit.signalSemaphoreInfoCount; ++i) {
    const VkSemaphoreSubmitInfo& signal = submit.pSignalSemaphoreInfos[i];
    note_signal(queue->device, signal.semaphore, signal.value, queue);
  }
}
template <class Submit>
void note_signals(Queue* queue, const Submit& submit) {
  const auto* values = in_chain<VkTimelineSemaphoreSubmitInfo>(
      submit.pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  if (values == nullptr) return;
  for (uint32_t i = 0; i < submit.signalSemaphoreCount && i < values->signalSemaphoreValueCount;
       ++i) {
    note_signal(queue->device, submit.pSignalSemaphores[i], values->pSignalSemaphoreValues[i],
                queue);
  }
}

template <class Next, class Submit>
VkResult submit(VkQueue handle, uint32_t submit_count, const Submit* submits, VkFence fence) {
  Device* device = device_of(handle);
  const auto next = Next::of(device);
  Queue* queue = queue_of(device, handle);
  // No work and nothing to wait for: nothing happens on the queue.
  if (queue == nullptr || (submit_count == 0 && fence == VK_NULL_HANDLE)) {
    return next(handle, submit_count, submits, fence);
  }
  ensure_file();
  if (submit_count != 0) hold_back(&g.file);
  const bool events = events_on();
  uint64_t serial = 0;
  uint64_t begin = 0;
  uint32_t buffers = 0;
  if (events) {
    serial = next_serial();
    buffers = each_buffer(submits, submit_count, [&](CommandBuffer* buffer, uint32_t order) {
      if (buffer == nullptr || buffer->recording == nullptr) return;
      log_buffer(buffer, serial, order);
      note_flight(buffer, queue, serial, order);
    });
    begin = now_nanoseconds();
  }
  count_work(queue, submits, submit_count, k_plus);
  for (uint32_t i = 0; i < submit_count; ++i) note_signals(queue, submits[i]);
  if (fence != VK_NULL_HANDLE && device->fences.find(number(fence)) != queue) {
    device->fences.insert(number(fence), queue);
  }
  const uint32_t was_pending = __atomic_exchange_n(&queue->pending, 1, __ATOMIC_ACQ_REL);

  const VkResult result = next(handle, submit_count, submits, fence);
  if (result == VK_SUCCESS) note_memory();
  if (events && result == VK_SUCCESS) log_submit(queue, serial, begin, buffers);
  if (result != VK_SUCCESS) {
    if (events) {
      each_buffer(submits, submit_count, [&](CommandBuffer* buffer, uint32_t) {
        if (buffer != nullptr && buffer->recording != nullptr) forget_flight(buffer, serial);
      });
    }
    count_work(queue, submits, submit_count, k_minus);
    if (was_pending == 0) __atomic_store_n(&queue->pending, 0, __ATOMIC_RELEASE);
  }
  return result;
}

const Hook k_hooks[] = {WEIR_SUBMIT_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_submit_hooks = list_of(k_hooks);

}  // namespace weir_probe
