// Records command buffers. Binds, push constants, dispatches and barriers are not recorded; the
// commands of a secondary buffer are copied to the primary.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

// Removes all ops.
void clear(CommandBuffer* buffer) {
  for (uint32_t i = 0; i < buffer->count; ++i) free(buffer->ops[i].data);
  buffer->count = 0;
  buffer->out_of_memory = false;
}

void free_buffer(CommandBuffer* buffer) {
  clear(buffer);
  free(buffer->ops);
  free(buffer);
}

// Appends an op; false without memory.
bool add_op(VkCommandBuffer into, const Op& op) {
  auto* buffer = object<CommandBuffer>(into);
  if (!weir_probe::make_room(&buffer->ops, &buffer->capacity, uint64_t{buffer->count} + 1, 16,
                             UINT32_MAX)) {
    buffer->out_of_memory = true;
    return false;
  }
  buffer->ops[buffer->count++] = op;
  return true;
}

template <class Region>
void add_copies(VkCommandBuffer into, VkBuffer from, VkBuffer to, uint32_t count,
                const Region* regions) {
  for (uint32_t i = 0; i < count; ++i) {
    add_op(into, {k_copy, object<Buffer>(from), object<Buffer>(to), regions[i].srcOffset,
                  regions[i].dstOffset, regions[i].size});
  }
}

void add_event(VkCommandBuffer into, OpKind kind, VkEvent event) {
  add_op(into, {kind, object<Event>(event)});
}

void add_query(VkCommandBuffer into, OpKind kind, VkQueryPool pool, uint32_t first,
               uint32_t count = 1) {
  add_op(into, {kind, object<QueryPool>(pool), nullptr, first, count});
}

// Appends an op with a copy of `data`, op.z bytes.
void add_update(VkCommandBuffer into, Op op, const void* data) {
  op.data = malloc(op.z);
  if (op.data != nullptr) memcpy(op.data, data, op.z);
  if (op.data != nullptr && add_op(into, op)) return;
  free(op.data);
  object<CommandBuffer>(into)->out_of_memory = true;
}

}  // namespace

}  // namespace weir_twin

using namespace weir_twin;

VkResult vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo*,
                             const VkAllocationCallbacks*, VkCommandPool* out) {
  return create<CommandPool>(out,
                             [&](CommandPool* pool) { pool->device = object<Device>(device); });
}

void vkDestroyCommandPool(VkDevice, VkCommandPool handle, const VkAllocationCallbacks*) {
  auto* pool = object<CommandPool>(handle);
  if (pool == nullptr) return;
  while (pool->first != nullptr) {
    CommandBuffer* next = pool->first->next;
    free_buffer(pool->first);
    pool->first = next;
  }
  free(pool);
}

VkResult vkResetCommandPool(VkDevice, VkCommandPool handle, VkCommandPoolResetFlags) {
  for (CommandBuffer* at = object<CommandPool>(handle)->first; at != nullptr; at = at->next) {
    clear(at);
  }
  return VK_SUCCESS;
}

void vkFreeCommandBuffers(VkDevice, VkCommandPool handle, uint32_t count,
                          const VkCommandBuffer* handles) {
  auto* pool = object<CommandPool>(handle);
  for (uint32_t i = 0; i < count; ++i) {
    auto* buffer = object<CommandBuffer>(handles[i]);
    if (buffer == nullptr) continue;
    weir_probe::unlink_record(&pool->first, buffer);
    free_buffer(buffer);
  }
}

// Makes command buffers in the pool: all of them, or none when memory is out.
VkResult vkAllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                  VkCommandBuffer* out) {
  auto* pool = object<CommandPool>(info->commandPool);
  for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
    auto* buffer = make_object<CommandBuffer>(&out[i]);
    if (buffer == nullptr) {
      vkFreeCommandBuffers(device, info->commandPool, i, out);
      return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    set_loader_magic_value(buffer);
    buffer->pool = pool;
    weir_probe::link_record(&pool->first, buffer);
  }
  return VK_SUCCESS;
}

VkResult vkBeginCommandBuffer(VkCommandBuffer buffer, const VkCommandBufferBeginInfo*) {
  clear(object<CommandBuffer>(buffer));
  return VK_SUCCESS;
}

VkResult vkEndCommandBuffer(VkCommandBuffer buffer) {
  return object<CommandBuffer>(buffer)->out_of_memory ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS;
}

VkResult vkResetCommandBuffer(VkCommandBuffer buffer, VkCommandBufferResetFlags) {
  clear(object<CommandBuffer>(buffer));
  return VK_SUCCESS;
}

// Copies the commands of secondary command buffers to the primary one.
void vkCmdExecuteCommands(VkCommandBuffer buffer, uint32_t count, const VkCommandBuffer* handles) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto* inner = object<CommandBuffer>(handles[i]);
    for (uint32_t k = 0; k < inner->count; ++k) {
      const Op& op = inner->ops[k];
      if (op.data != nullptr) {
        add_update(buffer, op, op.data);
      } else {
        add_op(buffer, op);
      }
    }
  }
}

void vkCmdCopyBuffer(VkCommandBuffer into, VkBuffer from, VkBuffer to, uint32_t count,
                     const VkBufferCopy* regions) {
  add_copies(into, from, to, count, regions);
}

void vkCmdCopyBuffer2(VkCommandBuffer into, const VkCopyBufferInfo2* info) {
  add_copies(into, info->srcBuffer, info->dstBuffer, info->regionCount, info->pRegions);
}

void vkCmdFillBuffer(VkCommandBuffer into, VkBuffer to, VkDeviceSize offset, VkDeviceSize size,
                     uint32_t word) {
  auto* buffer = object<Buffer>(to);
  if (size == VK_WHOLE_SIZE) {
    size = offset < buffer->size ? (buffer->size - offset) / 4 * 4 : 0;
  }
  add_op(into, {k_fill, nullptr, buffer, 0, offset, size, word});
}

void vkCmdUpdateBuffer(VkCommandBuffer into, VkBuffer to, VkDeviceSize offset, VkDeviceSize size,
                       const void* data) {
  add_update(into, {k_update, nullptr, object<Buffer>(to), 0, offset, size}, data);
}

// Stages do not matter, since commands run in order.
#define WEIR_CHANGES_EVENT(name, How, kind) \
  void name(VkCommandBuffer into, VkEvent event, How) { add_event(into, kind, event); }
WEIR_CHANGES_EVENT(vkCmdSetEvent, VkPipelineStageFlags, k_set_event)
WEIR_CHANGES_EVENT(vkCmdSetEvent2, const VkDependencyInfo*, k_set_event)
WEIR_CHANGES_EVENT(vkCmdResetEvent, VkPipelineStageFlags, k_reset_event)
WEIR_CHANGES_EVENT(vkCmdResetEvent2, VkPipelineStageFlags2, k_reset_event)

void vkCmdWaitEvents2(VkCommandBuffer into, uint32_t count, const VkEvent* events,
                      const VkDependencyInfo*) {
  for (uint32_t i = 0; i < count; ++i) add_event(into, k_wait_event, events[i]);
}

void vkCmdWaitEvents(VkCommandBuffer into, uint32_t count, const VkEvent* events,
                     VkPipelineStageFlags, VkPipelineStageFlags, uint32_t, const VkMemoryBarrier*,
                     uint32_t, const VkBufferMemoryBarrier*, uint32_t,
                     const VkImageMemoryBarrier*) {
  vkCmdWaitEvents2(into, count, events, nullptr);
}

void vkCmdResetQueryPool(VkCommandBuffer into, VkQueryPool pool, uint32_t first, uint32_t count) {
  add_query(into, k_reset_queries, pool, first, count);
}

void vkCmdEndQuery(VkCommandBuffer into, VkQueryPool pool, uint32_t index) {
  add_query(into, k_end_query, pool, index);
}

void vkCmdWriteTimestamp(VkCommandBuffer into, VkPipelineStageFlagBits, VkQueryPool pool,
                         uint32_t index) {
  add_query(into, k_write_time, pool, index);
}

void vkCmdWriteTimestamp2(VkCommandBuffer into, VkPipelineStageFlags2, VkQueryPool pool,
                          uint32_t index) {
  add_query(into, k_write_time, pool, index);
}

void vkCmdCopyQueryPoolResults(VkCommandBuffer into, VkQueryPool pool, uint32_t first,
                               uint32_t count, VkBuffer to, VkDeviceSize offset,
                               VkDeviceSize stride, VkQueryResultFlags flags) {
  add_op(into, {k_copy_queries, object<QueryPool>(pool), object<Buffer>(to), first, offset, stride,
                count, flags});
}
