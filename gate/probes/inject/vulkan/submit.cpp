// Counts submissions: adds the recorded work of their command buffers to the counters in the file.
#include "gate/probes/inject/vulkan/hooks.h"
#include "gate/probes/inject/writer/hold.h"

namespace weir_probe {
namespace {

// The counts of one call that submits to a queue. They are added before the call goes down: another
// thread may see its fence, and record the buffers anew, before the call is back. They are taken
// back if the call fails.
class SubmittedWork {
 public:
  explicit SubmittedWork(Queue* queue) : queue_(queue), device_(queue->device) {}

  // Adds a command buffer (null: an unknown one). Its dispatches are added to the kernels in the
  // file at once, times `sign`.
  void add_buffer(const CommandBuffer* buffer, uint64_t sign) {
    ++buffers_;
    if (buffer == nullptr) return;
    for (uint32_t i = 0; i < k_counted; ++i) counters_[i] += buffer->counters[i];
    if (buffer->unknown_dispatches != 0) {
      add(&g.file.kernels[0].dispatches, buffer->unknown_dispatches * sign);
    }
    for (uint32_t i = 0; i < buffer->tally_capacity; ++i) {
      const DispatchTally& tally = buffer->tallies[i];
      if (tally.dispatches == 0) continue;
      const uint32_t kernel = resolve_kernel(device_, tally.pipeline, tally.label);
      add(&g.file.kernels[kernel].dispatches, tally.dispatches * sign);
      g.codes.count(&g.file, &g.lock, kernel, tally.pipeline->code, tally.dispatches * sign,
                    tally.groups * sign);
      if (captures_code()) write_dispatched_pipeline(tally.pipeline->capture);
    }
    if (captures_dispatches()) submit_capture(buffer, sign);
  }

  // Adds the sums of the buffers to the queue's counters, times `sign`.
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

VkCommandBuffer command_buffer_at(const VkSubmitInfo& submit, uint32_t index) {
  return index < submit.commandBufferCount ? submit.pCommandBuffers[index] : VK_NULL_HANDLE;
}
VkCommandBuffer command_buffer_at(const VkSubmitInfo2& submit, uint32_t index) {
  return index < submit.commandBufferInfoCount ? submit.pCommandBufferInfos[index].commandBuffer
                                               : VK_NULL_HANDLE;
}
VkCommandBuffer command_buffer_at(const VkBindSparseInfo&, uint32_t) { return VK_NULL_HANDLE; }

// Calls visit(buffer, its index in the whole call) for each buffer; null for one that is unknown or
// was reset with its pool. Returns the number of buffers.
template <class Submit, class Visit>
uint32_t each_buffer(const Submit* submits, uint32_t submit_count, Visit visit) {
  uint32_t order = 0;
  for (uint32_t i = 0; i < submit_count; ++i) {
    for (uint32_t j = 0; VkCommandBuffer handle = command_buffer_at(submits[i], j); ++j, ++order) {
      CommandBuffer* buffer = command_buffer(handle);
      const bool is_valid = buffer != nullptr && buffer->reset_count == buffer->pool->reset_count;
      visit(is_valid ? buffer : nullptr, order);
    }
  }
  return order;
}

// Adds the work of a call to the counters of its queue, or takes it back (`sign` k_minus).
template <class Submit>
void count_work(Queue* queue, const Submit* submits, uint32_t submit_count, uint64_t sign) {
  SubmittedWork work(queue);
  each_buffer(submits, submit_count,
              [&](const CommandBuffer* buffer, uint32_t) { work.add_buffer(buffer, sign); });
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

// Submits through the layer below. Counts the work before the call, and takes it back if that
// fails.
template <class Next, class Submit>
VkResult submit(VkQueue handle, uint32_t submit_count, const Submit* submits, VkFence fence) {
  Device* device = find_device(handle);
  const auto next = Next::of(device);
  Queue* queue = find_queue(device, handle);
  // No work and nothing to wait for: nothing happens on the queue.
  if (queue == nullptr || (submit_count == 0 && fence == VK_NULL_HANDLE)) {
    return next(handle, submit_count, submits, fence);
  }
  ensure_file();
  if (submit_count != 0) hold_back(&g.file);
  const bool events = is_recording_events();
  uint64_t serial = 0;
  uint64_t begin = 0;
  uint32_t buffers = 0;
  if (events) {
    serial = next_serial();
    buffers = each_buffer(submits, submit_count, [&](CommandBuffer* buffer, uint32_t order) {
      if (buffer == nullptr || buffer->recording == nullptr) return;
      log_buffer(buffer, serial, order);
      add_in_flight(buffer, queue, serial, order);
    });
    begin = now_nanoseconds();
  }
  count_work(queue, submits, submit_count, k_plus);
  for (uint32_t i = 0; i < submit_count; ++i) note_signals(queue, submits[i]);
  if (fence != VK_NULL_HANDLE && device->fences.find(handle_key(fence)) != queue) {
    device->fences.insert(handle_key(fence), queue);
  }
  const uint32_t was_pending = __atomic_exchange_n(&queue->pending, 1, __ATOMIC_ACQ_REL);

  const VkResult result = next(handle, submit_count, submits, fence);
  if (result == VK_SUCCESS) record_steady_memory();
  if (events && result == VK_SUCCESS) log_submit(queue, serial, begin, buffers);
  if (result != VK_SUCCESS) {
    if (events) {
      each_buffer(submits, submit_count, [&](CommandBuffer* buffer, uint32_t) {
        if (buffer != nullptr && buffer->recording != nullptr) cancel_in_flight(buffer, serial);
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
