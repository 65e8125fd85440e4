// Counts the commands of a command buffer, logs them where events are recorded, and captures
// dispatches where kernels are.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

// Counts, captures and logs a dispatch of x·y·z groups. `flags` are those of weir_event_dispatch.
// `left_out_reason`: why it cannot be run again, or k_nothing_left_out.
void note_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t flags,
                   uint32_t left_out_reason) {
  if (buffer->capture != nullptr) capture_dispatch(buffer, x, y, z, left_out_reason);
  ++buffer->counters[WEIR_COUNT_DISPATCHES];
  if (buffer->bound != nullptr) {
    ++buffer->bound->dispatches;
    buffer->bound->groups += uint64_t{x} * y * z;
  } else {
    ++buffer->unknown_dispatches;
  }
  if (buffer->recording != nullptr) log_dispatch(buffer, x, y, z, flags);
}

void dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z) {
  note_dispatch(buffer, x, y, z, 0, k_nothing_left_out);
}

void dispatch_base(CommandBuffer* buffer, uint32_t from_x, uint32_t from_y, uint32_t from_z,
                   uint32_t x, uint32_t y, uint32_t z) {
  const bool from_zero = from_x == 0 && from_y == 0 && from_z == 0;
  note_dispatch(buffer, x, y, z, 0, from_zero ? k_nothing_left_out : uint32_t{WEIR_LEFT_BASE});
}

void dispatch_indirect(CommandBuffer* buffer, VkBuffer, VkDeviceSize) {
  ++buffer->counters[WEIR_COUNT_INDIRECT_DISPATCHES];
  note_dispatch(buffer, 0, 0, 0, WEIR_DISPATCH_INDIRECT, WEIR_LEFT_INDIRECT);
}

// Adds stages and flags of one barrier of memory, a buffer or an image to the event of its command.
template <class Barrier>
void add_barrier(const Barrier& barrier, weir_event_barrier* out) {
  if constexpr (requires { barrier.srcStageMask; }) {
    out->from |= barrier.srcStageMask;
    out->to |= barrier.dstStageMask;
  }
  if constexpr (requires { barrier.srcQueueFamilyIndex; }) {
    const bool handed_over = barrier.srcQueueFamilyIndex != barrier.dstQueueFamilyIndex;
    if (handed_over) out->flags |= WEIR_BARRIER_TRANSFER;
  }
  if constexpr (requires { barrier.oldLayout; }) {
    if (barrier.oldLayout != barrier.newLayout) out->flags |= WEIR_BARRIER_LAYOUT;
  }
}

// Returns the event of a barrier command: stages, flags and the number of barriers of each kind.
template <class MemoryBarrier, class BufferBarrier, class ImageBarrier>
weir_event_barrier barrier_event(VkPipelineStageFlags from, VkPipelineStageFlags to,
                                 VkDependencyFlags flags, uint32_t memory_count,
                                 const MemoryBarrier* memory, uint32_t buffer_count,
                                 const BufferBarrier* buffers, uint32_t image_count,
                                 const ImageBarrier* images) {
  weir_event_barrier body = {memory_count, buffer_count, image_count, 0, from, to};
  if ((flags & VK_DEPENDENCY_BY_REGION_BIT) != 0) body.flags |= WEIR_BARRIER_BY_REGION;
  for (uint32_t i = 0; i < memory_count; ++i) add_barrier(memory[i], &body);
  for (uint32_t i = 0; i < buffer_count; ++i) add_barrier(buffers[i], &body);
  for (uint32_t i = 0; i < image_count; ++i) add_barrier(images[i], &body);
  return body;
}

weir_event_barrier barrier_event(const VkDependencyInfo* info) {
  return barrier_event(0, 0, info->dependencyFlags, info->memoryBarrierCount, info->pMemoryBarriers,
                       info->bufferMemoryBarrierCount, info->pBufferMemoryBarriers,
                       info->imageMemoryBarrierCount, info->pImageMemoryBarriers);
}

constexpr auto barrier = [](CommandBuffer* buffer, auto... arguments) {
  ++buffer->counters[WEIR_COUNT_BARRIERS];
  if (buffer->recording != nullptr) log_barrier(buffer, barrier_event(arguments...));
};

template <class Region>
uint64_t copied_bytes(VkBuffer, VkBuffer, uint32_t count, const Region* regions) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += regions[i].size;
  return sum;
}
uint64_t copied_bytes(const VkCopyBufferInfo2* info) {
  return copied_bytes(info->srcBuffer, info->dstBuffer, info->regionCount, info->pRegions);
}
uint64_t copied_bytes(VkBuffer, VkDeviceSize, VkDeviceSize size, uint32_t) {
  return size == VK_WHOLE_SIZE ? 0 : size;
}
uint64_t copied_bytes(VkBuffer, VkDeviceSize, VkDeviceSize size, const void*) { return size; }
uint64_t copied_bytes(VkQueryPool, uint32_t, uint32_t count, VkBuffer, VkDeviceSize,
                      VkDeviceSize stride, VkQueryResultFlags) {
  return count * stride;
}
template <class... A>
uint64_t copied_bytes(A...) {
  return 0;  // images: only the driver knows their bytes
}

template <uint32_t kind>
constexpr auto copy = [](CommandBuffer* buffer, auto... arguments) {
  ++buffer->counters[WEIR_COUNT_COPIES];
  if (buffer->recording != nullptr) log_copy(buffer, kind, copied_bytes(arguments...));
};

// Ends the group of commands that may overlap; only with events.
constexpr auto wait_events = [](CommandBuffer* buffer, auto...) {
  if (buffer->recording != nullptr) close_group(buffer);
};

void push_constants(CommandBuffer* buffer, VkPipelineLayout, VkShaderStageFlags, uint32_t offset,
                    uint32_t size, const void* values) {
  if (buffer->capture != nullptr) capture_push_constants(buffer->capture, offset, size, values);
  if (buffer->recording != nullptr) log_push(buffer, offset, size, values);
}

const Hook k_hooks[] = {WEIR_COMMAND_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_command_hooks = list_of(k_hooks);

}  // namespace weir_probe
