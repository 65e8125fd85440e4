// Recording. Binds, push constants, dispatches and barriers leave nothing behind; a secondary
// buffer's commands become the primary's own.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

void forget(CommandBuffer* buffer) {
  for (uint32_t i = 0; i < buffer->count; ++i) free(buffer->ops[i].data);
  buffer->count = 0;
  buffer->out_of_memory = false;
}

void release(CommandBuffer* buffer) {
  forget(buffer);
  free(buffer->ops);
  free(buffer);
}

Op* add_op(CommandBuffer* buffer, OpKind kind) {
  if (!weir_probe::make_room(&buffer->ops, &buffer->capacity, uint64_t{buffer->count} + 1, 16,
                             UINT32_MAX)) {
    buffer->out_of_memory = true;
    return nullptr;
  }
  Op* op = &buffer->ops[buffer->count++];
  memset(op, 0, sizeof *op);
  op->kind = kind;
  return op;
}

Op* add_op(VkCommandBuffer buffer, OpKind kind) {
  return add_op(object<CommandBuffer>(buffer), kind);
}

void add_copy(VkCommandBuffer into, VkBuffer from, VkBuffer to, uint64_t x, uint64_t y,
              uint64_t z) {
  Op* op = add_op(into, k_copy);
  if (op == nullptr) return;
  op->first = object<Buffer>(from);
  op->second = object<Buffer>(to);
  op->x = x;
  op->y = y;
  op->z = z;
}

void add_event(VkCommandBuffer into, OpKind kind, VkEvent event) {
  Op* op = add_op(into, kind);
  if (op != nullptr) op->first = object<Event>(event);
}

Op* add_query(VkCommandBuffer into, OpKind kind, VkQueryPool pool, uint32_t which) {
  Op* op = add_op(into, kind);
  if (op == nullptr) return nullptr;
  op->first = object<QueryPool>(pool);
  op->x = which;
  op->y = 1;
  return op;
}

}  // namespace

const char* name_of(VkCommandBuffer buffer) {
  return object<CommandBuffer>(buffer)->pool->device->physical->twin.name;
}

}  // namespace weir_twin

using namespace weir_twin;

VkResult vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo*,
                             const VkAllocationCallbacks*, VkCommandPool* out) {
  return create<CommandPool>(out,
                             [&](CommandPool* pool) { pool->device = object<Device>(device); });
}

void vkDestroyCommandPool(VkDevice, VkCommandPool which, const VkAllocationCallbacks*) {
  auto* pool = object<CommandPool>(which);
  if (pool == nullptr) return;
  while (pool->first != nullptr) {
    CommandBuffer* next = pool->first->next;
    release(pool->first);
    pool->first = next;
  }
  free(pool);
}

VkResult vkResetCommandPool(VkDevice, VkCommandPool which, VkCommandPoolResetFlags) {
  for (CommandBuffer* at = object<CommandPool>(which)->first; at != nullptr; at = at->next) {
    forget(at);
  }
  return VK_SUCCESS;
}

void vkFreeCommandBuffers(VkDevice, VkCommandPool which, uint32_t count,
                          const VkCommandBuffer* handles) {
  auto* pool = object<CommandPool>(which);
  for (uint32_t i = 0; i < count; ++i) {
    auto* buffer = object<CommandBuffer>(handles[i]);
    if (buffer == nullptr) continue;
    weir_probe::unlink_one(&pool->first, buffer);
    release(buffer);
  }
}

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
    weir_probe::link_first(&pool->first, buffer);
  }
  return VK_SUCCESS;
}

VkResult vkBeginCommandBuffer(VkCommandBuffer buffer, const VkCommandBufferBeginInfo*) {
  forget(object<CommandBuffer>(buffer));
  return VK_SUCCESS;
}

VkResult vkEndCommandBuffer(VkCommandBuffer buffer) {
  return object<CommandBuffer>(buffer)->out_of_memory ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS;
}

VkResult vkResetCommandBuffer(VkCommandBuffer buffer, VkCommandBufferResetFlags) {
  forget(object<CommandBuffer>(buffer));
  return VK_SUCCESS;
}

void vkCmdExecuteCommands(VkCommandBuffer buffer, uint32_t count, const VkCommandBuffer* handles) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto* inner = object<CommandBuffer>(handles[i]);
    for (uint32_t k = 0; k < inner->count; ++k) {
      Op copied = inner->ops[k];
      if (copied.data != nullptr) {
        void* data = malloc(copied.z);
        if (data != nullptr) memcpy(data, copied.data, copied.z);
        copied.data = data;
      }
      Op* op = add_op(buffer, copied.kind);
      if (op != nullptr && (copied.data != nullptr || inner->ops[k].data == nullptr)) {
        *op = copied;
      } else {
        free(copied.data);
        object<CommandBuffer>(buffer)->out_of_memory = true;
      }
    }
  }
}

void vkCmdCopyBuffer(VkCommandBuffer into, VkBuffer from, VkBuffer to, uint32_t count,
                     const VkBufferCopy* regions) {
  for (uint32_t i = 0; i < count; ++i) {
    add_copy(into, from, to, regions[i].srcOffset, regions[i].dstOffset, regions[i].size);
  }
}

void vkCmdCopyBuffer2(VkCommandBuffer into, const VkCopyBufferInfo2* info) {
  for (uint32_t i = 0; i < info->regionCount; ++i) {
    const VkBufferCopy2& region = info->pRegions[i];
    add_copy(into, info->srcBuffer, info->dstBuffer, region.srcOffset, region.dstOffset,
             region.size);
  }
}

void vkCmdFillBuffer(VkCommandBuffer into, VkBuffer to, VkDeviceSize offset, VkDeviceSize size,
                     uint32_t word) {
  Op* op = add_op(into, k_fill);
  if (op == nullptr) return;
  auto* buffer = object<Buffer>(to);
  const uint64_t rest = offset < buffer->size ? (buffer->size - offset) / 4 * 4 : 0;
  op->second = buffer;
  op->y = offset;
  op->z = size == VK_WHOLE_SIZE ? rest : size;
  op->number = word;
}

void vkCmdUpdateBuffer(VkCommandBuffer into, VkBuffer to, VkDeviceSize offset, VkDeviceSize size,
                       const void* data) {
  Op* op = add_op(into, k_update);
  if (op == nullptr) return;
  op->second = object<Buffer>(to);
  op->y = offset;
  op->z = size;
  op->data = malloc(size);
  if (op->data == nullptr) {
    object<CommandBuffer>(into)->out_of_memory = true;
    op->z = 0;
  } else {
    memcpy(op->data, data, size);
  }
}

void vkCmdSetEvent(VkCommandBuffer into, VkEvent event, VkPipelineStageFlags) {
  add_event(into, k_set_event, event);
}

void vkCmdSetEvent2(VkCommandBuffer into, VkEvent event, const VkDependencyInfo*) {
  add_event(into, k_set_event, event);
}

void vkCmdResetEvent(VkCommandBuffer into, VkEvent event, VkPipelineStageFlags) {
  add_event(into, k_reset_event, event);
}

void vkCmdResetEvent2(VkCommandBuffer into, VkEvent event, VkPipelineStageFlags2) {
  add_event(into, k_reset_event, event);
}

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
  Op* op = add_query(into, k_reset_queries, pool, first);
  if (op != nullptr) op->y = count;
}

void vkCmdEndQuery(VkCommandBuffer into, VkQueryPool pool, uint32_t which) {
  add_query(into, k_end_query, pool, which);
}

void vkCmdWriteTimestamp(VkCommandBuffer into, VkPipelineStageFlagBits, VkQueryPool pool,
                         uint32_t which) {
  add_query(into, k_write_time, pool, which);
}

void vkCmdWriteTimestamp2(VkCommandBuffer into, VkPipelineStageFlags2, VkQueryPool pool,
                          uint32_t which) {
  add_query(into, k_write_time, pool, which);
}

void vkCmdCopyQueryPoolResults(VkCommandBuffer into, VkQueryPool pool, uint32_t first,
                               uint32_t count, VkBuffer to, VkDeviceSize offset,
                               VkDeviceSize stride, VkQueryResultFlags flags) {
  Op* op = add_query(into, k_copy_queries, pool, first);
  if (op == nullptr) return;
  op->number = count;
  op->second = object<Buffer>(to);
  op->y = offset;
  op->z = stride;
  op->flags = flags;
}
