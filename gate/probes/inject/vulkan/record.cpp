#include "gate/probes/inject/vulkan/record.h"

#include <string.h>

#include "gate/probes/inject/vulkan/events.h"
#include "gate/probes/inject/vulkan/keep.h"

namespace weir_probe {
namespace {

constexpr uint32_t k_first_tallies = 16;

Tally* slot_of(Tally* tallies, uint32_t capacity, Pipeline* pipeline, Label* label) {
  const uint64_t mixed =
      (reinterpret_cast<uint64_t>(pipeline) ^ (reinterpret_cast<uint64_t>(label) << 1)) *
      0x9e3779b97f4a7c15ULL;
  uint32_t at = static_cast<uint32_t>(mixed >> 40) & (capacity - 1);
  while (tallies[at].pipeline != nullptr &&
         (tallies[at].pipeline != pipeline || tallies[at].label != label)) {
    at = (at + 1) & (capacity - 1);
  }
  return &tallies[at];
}

bool grow(CommandBuffer* buffer) {
  const uint32_t capacity =
      buffer->tally_capacity == 0 ? k_first_tallies : buffer->tally_capacity * 2;
  Tally* fresh = static_cast<Tally*>(calloc(capacity, sizeof(Tally)));
  if (fresh == nullptr) return false;
  for (uint32_t i = 0; i < buffer->tally_capacity; ++i) {
    if (buffer->tallies[i].pipeline == nullptr) continue;
    const Tally& old = buffer->tallies[i];
    *slot_of(fresh, capacity, old.pipeline, old.label) = old;
  }
  free(buffer->tallies);
  buffer->tallies = fresh;
  buffer->tally_capacity = capacity;
  return true;
}

void forget(CommandBuffer* buffer) {
  g.command_buffers.remove(number(buffer->handle));
  if (buffer->previous != nullptr) {
    buffer->previous->next = buffer->next;
  } else {
    buffer->pool->first = buffer->next;
  }
  if (buffer->next != nullptr) buffer->next->previous = buffer->previous;
  free_recording(buffer);
  free_kept(buffer);
  free(buffer->tallies);
  free(buffer);
}

void remember(Device* device, CommandPool* pool, VkCommandBuffer handle, bool secondary) {
  CommandBuffer* buffer = static_cast<CommandBuffer*>(calloc(1, sizeof(CommandBuffer)));
  if (buffer != nullptr) {
    buffer->device = device;
    buffer->pool = pool;
    buffer->handle = handle;
    buffer->generation = pool->generation;
    buffer->secondary = secondary;
    if (g.command_buffers.insert(number(handle), buffer)) {
      buffer->next = pool->first;
      if (pool->first != nullptr) pool->first->previous = buffer;
      pool->first = buffer;
      return;
    }
    free(buffer);
  }
  set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
}

CommandPool* pool_of(Device* device, VkCommandPool handle) {
  return static_cast<CommandPool*>(device->pools.find(number(handle)));
}

}  // namespace

void clear(CommandBuffer* buffer) {
  buffer->bound = nullptr;
  buffer->label_depth = 0;
  buffer->dispatches = buffer->indirect = buffer->barriers = buffer->copies = 0;
  buffer->unknown_dispatches = 0;
  if (buffer->tally_used != 0) memset(buffer->tallies, 0, buffer->tally_capacity * sizeof(Tally));
  buffer->tally_used = 0;
}

Tally* tally_of(CommandBuffer* buffer, Pipeline* pipeline, Label* label) {
  if (buffer->tally_capacity != 0) {
    Tally* slot = slot_of(buffer->tallies, buffer->tally_capacity, pipeline, label);
    if (slot->pipeline == pipeline) return slot;
  }
  if ((buffer->tally_used + 1) * 2 > buffer->tally_capacity && !grow(buffer)) return nullptr;
  Tally* slot = slot_of(buffer->tallies, buffer->tally_capacity, pipeline, label);
  slot->pipeline = pipeline;
  slot->label = label;
  ++buffer->tally_used;
  return slot;
}

void free_pool(CommandPool* pool) {
  while (pool->first != nullptr) forget(pool->first);
  free(pool);
}

VKAPI_ATTR VkResult VKAPI_CALL create_command_pool(VkDevice handle,
                                                   const VkCommandPoolCreateInfo* info,
                                                   const VkAllocationCallbacks* allocator,
                                                   VkCommandPool* out) {
  Device* device = device_of(handle);
  const VkResult result = device->next.CreateCommandPool(handle, info, allocator, out);
  if (result != VK_SUCCESS) return result;
  CommandPool* pool = static_cast<CommandPool*>(calloc(1, sizeof(CommandPool)));
  if (pool == nullptr || !device->pools.insert(number(*out), pool)) {
    free(pool);
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  } else {
    pool->device = device;
    pool->family = info->queueFamilyIndex;
  }
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_command_pool(VkDevice handle, VkCommandPool pool,
                                                const VkAllocationCallbacks* allocator) {
  Device* device = device_of(handle);
  auto* known = static_cast<CommandPool*>(device->pools.remove(number(pool)));
  if (known != nullptr) free_pool(known);
  device->next.DestroyCommandPool(handle, pool, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL reset_command_pool(VkDevice handle, VkCommandPool pool,
                                                  VkCommandPoolResetFlags flags) {
  Device* device = device_of(handle);
  CommandPool* known = pool_of(device, pool);
  for (CommandBuffer* at = known == nullptr ? nullptr : known->first; at != nullptr;
       at = at->next) {
    if (at->recording != nullptr) retire_stamps(at);
  }
  const VkResult result = device->next.ResetCommandPool(handle, pool, flags);
  if (known != nullptr && result == VK_SUCCESS) ++known->generation;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_command_buffers(VkDevice handle,
                                                        const VkCommandBufferAllocateInfo* info,
                                                        VkCommandBuffer* out) {
  Device* device = device_of(handle);
  const VkResult result = device->next.AllocateCommandBuffers(handle, info, out);
  if (result != VK_SUCCESS) return result;
  if (CommandPool* pool = pool_of(device, info->commandPool)) {
    const bool secondary = info->level == VK_COMMAND_BUFFER_LEVEL_SECONDARY;
    for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
      remember(device, pool, out[i], secondary);
    }
  }
  return result;
}

VKAPI_ATTR void VKAPI_CALL free_command_buffers(VkDevice handle, VkCommandPool pool, uint32_t count,
                                                const VkCommandBuffer* buffers) {
  for (uint32_t i = 0; i < count; ++i) {
    if (buffers[i] == VK_NULL_HANDLE) continue;
    if (CommandBuffer* buffer = command_buffer(buffers[i])) forget(buffer);
  }
  device_of(handle)->next.FreeCommandBuffers(handle, pool, count, buffers);
}

VKAPI_ATTR VkResult VKAPI_CALL begin_command_buffer(VkCommandBuffer handle,
                                                    const VkCommandBufferBeginInfo* info) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer != nullptr) {
    clear(buffer);
    buffer->generation = buffer->pool->generation;
    begin_recording(buffer);
    if (keeping()) begin_kept(buffer);
  }
  const VkResult result = device_of(handle)->next.BeginCommandBuffer(handle, info);
  if (buffer != nullptr && buffer->recording != nullptr && result == VK_SUCCESS) {
    begin_stamps(buffer);
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL reset_command_buffer(VkCommandBuffer handle,
                                                    VkCommandBufferResetFlags flags) {
  if (CommandBuffer* buffer = command_buffer(handle)) {
    clear(buffer);
    begin_recording(buffer);
    if (keeping()) begin_kept(buffer);
  }
  return device_of(handle)->next.ResetCommandBuffer(handle, flags);
}

VKAPI_ATTR void VKAPI_CALL cmd_bind_pipeline(VkCommandBuffer handle, VkPipelineBindPoint point,
                                             VkPipeline pipeline) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer == nullptr) {
    device_of(handle)->next.CmdBindPipeline(handle, point, pipeline);
    return;
  }
  Device* device = buffer->device;
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE) {
    auto* record = static_cast<Pipeline*>(device->pipelines.find(number(pipeline)));
    buffer->bound = record == nullptr ? nullptr : tally_of(buffer, record, label_of(buffer));
  }
  device->next.CmdBindPipeline(handle, point, pipeline);
}

// The secondary buffers are complete by now, and recording one again makes this one invalid: their
// counts can be taken over here.
VKAPI_ATTR void VKAPI_CALL cmd_execute_commands(VkCommandBuffer handle, uint32_t count,
                                                const VkCommandBuffer* secondaries) {
  CommandBuffer* buffer = command_buffer(handle);
  for (uint32_t i = 0; buffer != nullptr && i < count; ++i) {
    const CommandBuffer* secondary = command_buffer(secondaries[i]);
    if (secondary == nullptr) continue;
    buffer->dispatches += secondary->dispatches;
    buffer->indirect += secondary->indirect;
    buffer->barriers += secondary->barriers;
    buffer->copies += secondary->copies;
    buffer->unknown_dispatches += secondary->unknown_dispatches;
    log_secondary(buffer, secondary);
    if (keeping()) join_kept(buffer, secondary);
    for (uint32_t j = 0; j < secondary->tally_capacity; ++j) {
      const Tally& theirs = secondary->tallies[j];
      if (theirs.dispatches == 0) continue;
      Tally* ours = tally_of(buffer, theirs.pipeline, theirs.label);
      if (ours != nullptr) {
        ours->dispatches += theirs.dispatches;
      } else {
        buffer->unknown_dispatches += theirs.dispatches;
      }
    }
  }
  if (buffer != nullptr) buffer->bound = nullptr;  // the primary's state is undefined after this
  device_of(handle)->next.CmdExecuteCommands(handle, count, secondaries);
  if (buffer != nullptr && buffer->recording != nullptr) serialize(buffer);
}

}  // namespace weir_probe
