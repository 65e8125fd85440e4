// The commands of a command buffer: what each counts, what is told of it with events, and what a
// dispatch takes to be run again where kernels are recorded.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

// `flags` as in weir_event_dispatch; `left_out`: why it cannot be run again.
void dispatched(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t flags,
                uint32_t left_out) {
  if (buffer->kept != nullptr) keep_dispatch(buffer, x, y, z, left_out);
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
  dispatched(buffer, x, y, z, 0, k_nothing_left_out);
}

void dispatch_base(CommandBuffer* buffer, uint32_t from_x, uint32_t from_y, uint32_t from_z,
                   uint32_t x, uint32_t y, uint32_t z) {
  const bool from_zero = from_x == 0 && from_y == 0 && from_z == 0;
  dispatched(buffer, x, y, z, 0, from_zero ? k_nothing_left_out : uint32_t{WEIR_LEFT_BASE});
}

void dispatch_indirect(CommandBuffer* buffer, VkBuffer, VkDeviceSize) {
  ++buffer->counters[WEIR_COUNT_INDIRECT_DISPATCHES];
  dispatched(buffer, 0, 0, 0, WEIR_DISPATCH_INDIRECT, WEIR_LEFT_INDIRECT);
}

// Adds what one barrier says, of memory, a buffer or an image, to what is told of its command.
template <class Barrier>
void take(const Barrier& barrier, weir_event_barrier* out) {
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

template <class Memory, class OfBuffer, class OfImage>
weir_event_barrier told(VkPipelineStageFlags from, VkPipelineStageFlags to, VkDependencyFlags flags,
                        uint32_t memory_count, const Memory* memory, uint32_t buffer_count,
                        const OfBuffer* buffers, uint32_t image_count, const OfImage* images) {
  weir_event_barrier body = {memory_count, buffer_count, image_count, 0, from, to};
  if ((flags & VK_DEPENDENCY_BY_REGION_BIT) != 0) body.flags |= WEIR_BARRIER_BY_REGION;
  for (uint32_t i = 0; i < memory_count; ++i) take(memory[i], &body);
  for (uint32_t i = 0; i < buffer_count; ++i) take(buffers[i], &body);
  for (uint32_t i = 0; i < image_count; ++i) take(images[i], &body);
  return body;
}

weir_event_barrier told(const VkDependencyInfo* info) {
  return told(0, 0, info->dependencyFlags, info->memoryBarrierCount, info->pMemoryBarriers,
              info->bufferMemoryBarrierCount, info->pBufferMemoryBarriers,
              info->imageMemoryBarrierCount, info->pImageMemoryBarriers);
}

constexpr auto barrier = [](CommandBuffer* buffer, auto... arguments) {
  ++buffer->counters[WEIR_COUNT_BARRIERS];
  if (buffer->recording != nullptr) log_barrier(buffer, told(arguments...));
};

template <class Region>
uint64_t bytes_of(VkBuffer, VkBuffer, uint32_t count, const Region* regions) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += regions[i].size;
  return sum;
}
uint64_t bytes_of(const VkCopyBufferInfo2* info) {
  return bytes_of(info->srcBuffer, info->dstBuffer, info->regionCount, info->pRegions);
}
uint64_t bytes_of(VkBuffer, VkDeviceSize, VkDeviceSize size, uint32_t) {
  return size == VK_WHOLE_SIZE ? 0 : size;
}
uint64_t bytes_of(VkBuffer, VkDeviceSize, VkDeviceSize size, const void*) { return size; }
uint64_t bytes_of(VkQueryPool, uint32_t, uint32_t count, VkBuffer, VkDeviceSize,
                  VkDeviceSize stride, VkQueryResultFlags) {
  return count * stride;
}
template <class... A>
uint64_t bytes_of(A...) {
  return 0;  // images: how many bytes is the driver's to know
}

template <uint32_t kind>
constexpr auto copy = [](CommandBuffer* buffer, auto... arguments) {
  ++buffer->counters[WEIR_COUNT_COPIES];
  if (buffer->recording != nullptr) log_copy(buffer, kind, bytes_of(arguments...));
};

// For events alone.
constexpr auto wait_events = [](CommandBuffer* buffer, auto...) {
  if (buffer->recording != nullptr) close_group(buffer);
};

void push_constants(CommandBuffer* buffer, VkPipelineLayout, VkShaderStageFlags, uint32_t offset,
                    uint32_t size, const void* values) {
  if (buffer->kept != nullptr) keep_push(buffer->kept, offset, size, values);
  if (buffer->recording != nullptr) log_push(buffer, offset, size, values);
}

const Hook k_hooks[] = {WEIR_COMMAND_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_command_hooks = list_of(k_hooks);

}  // namespace weir_probe
