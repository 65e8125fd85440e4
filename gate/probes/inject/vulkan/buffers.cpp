// Command buffers: what one will do each time it is submitted, counted while it is recorded.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

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

void forget_buffer(CommandBuffer* buffer) {
  g.command_buffers.remove(number(buffer->handle));
  unlink_one(&buffer->pool->first, buffer);
  free_recording(buffer);
  free_kept(buffer);
  free(buffer->tallies);
  free(buffer);
}

void remember(Device* device, CommandPool* pool, VkCommandBuffer handle, bool secondary) {
  auto* buffer = static_cast<CommandBuffer*>(calloc(1, sizeof(CommandBuffer)));
  if (buffer == nullptr || !g.command_buffers.insert(number(handle), buffer)) {
    free(buffer);
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return;
  }
  buffer->device = device;
  buffer->pool = pool;
  buffer->handle = handle;
  buffer->generation = pool->generation;
  buffer->secondary = secondary;
  link_first(&pool->first, buffer);
}

void made_pool(Device* device, const VkCommandPoolCreateInfo* info, const VkAllocationCallbacks*,
               VkCommandPool* out) {
  auto* pool = fresh_record<CommandPool>(&device->pools, number(*out));
  if (pool == nullptr) return set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  pool->device = device;
  pool->family = info->queueFamilyIndex;
}

void forget_pool(Device* device, VkCommandPool pool, const VkAllocationCallbacks*) {
  auto* known = static_cast<CommandPool*>(device->pools.remove(number(pool)));
  if (known != nullptr) free_pool(known);
}

VkResult reset_command_pool(VkDevice handle, VkCommandPool pool, VkCommandPoolResetFlags flags) {
  Device* device = device_of(handle);
  CommandPool* known = device->pools.get<CommandPool>(number(pool));
  for (CommandBuffer* at = known == nullptr ? nullptr : known->first; at != nullptr;
       at = at->next) {
    if (at->recording != nullptr) retire_stamps(at);
  }
  const VkResult result = device->next.ResetCommandPool(handle, pool, flags);
  if (known != nullptr && result == VK_SUCCESS) ++known->generation;
  return result;
}

void made_buffers(Device* device, const VkCommandBufferAllocateInfo* info, VkCommandBuffer* out) {
  CommandPool* pool = device->pools.get<CommandPool>(number(info->commandPool));
  const bool secondary = info->level == VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  for (uint32_t i = 0; pool != nullptr && i < info->commandBufferCount; ++i) {
    remember(device, pool, out[i], secondary);
  }
}

void forget_buffers(Device*, VkCommandPool, uint32_t count, const VkCommandBuffer* buffers) {
  for (uint32_t i = 0; i < count; ++i) {
    if (CommandBuffer* buffer = command_buffer(buffers[i])) forget_buffer(buffer);
  }
}

// Ends what is known of a command buffer's recording.
void clear(CommandBuffer* buffer, VkCommandBufferResetFlags = 0) {
  buffer->bound = nullptr;
  buffer->label_depth = 0;
  memset(buffer->counters, 0, sizeof buffer->counters);
  buffer->unknown_dispatches = 0;
  if (buffer->tally_used != 0) memset(buffer->tallies, 0, buffer->tally_capacity * sizeof(Tally));
  buffer->tally_used = 0;
  begin_recording(buffer);
  if (keeping()) begin_kept(buffer);
}

VkResult begin_command_buffer(VkCommandBuffer handle, const VkCommandBufferBeginInfo* info) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer != nullptr) {
    clear(buffer);
    buffer->generation = buffer->pool->generation;
  }
  const VkResult result = device_of(handle)->next.BeginCommandBuffer(handle, info);
  if (buffer != nullptr && buffer->recording != nullptr && result == VK_SUCCESS) {
    begin_stamps(buffer);
  }
  return result;
}

void end_buffer(CommandBuffer* buffer) {
  if (buffer->recording != nullptr) end_stamps(buffer);
}

void bind_pipeline(CommandBuffer* buffer, VkPipelineBindPoint point, VkPipeline pipeline) {
  if (point != VK_PIPELINE_BIND_POINT_COMPUTE) return;
  auto* record = buffer->device->pipelines.get<Pipeline>(number(pipeline));
  buffer->bound = record == nullptr ? nullptr : tally_of(buffer, record, label_of(buffer));
}

// The secondary buffers are complete by now, and recording one again makes this one invalid: their
// counts can be taken over here.
void execute_commands(CommandBuffer* buffer, uint32_t count, const VkCommandBuffer* secondaries) {
  for (uint32_t i = 0; i < count; ++i) {
    const CommandBuffer* secondary = command_buffer(secondaries[i]);
    if (secondary == nullptr) continue;
    for (uint32_t j = 0; j < k_counted; ++j) buffer->counters[j] += secondary->counters[j];
    buffer->unknown_dispatches += secondary->unknown_dispatches;
    log_secondary(buffer, secondary);
    if (keeping()) join_kept(buffer, secondary);
    for (uint32_t j = 0; j < secondary->tally_capacity; ++j) {
      const Tally& theirs = secondary->tallies[j];
      if (theirs.dispatches == 0) continue;
      Tally* ours = tally_of(buffer, theirs.pipeline, theirs.label);
      if (ours != nullptr) {
        ours->dispatches += theirs.dispatches;
        ours->groups += theirs.groups;
      } else {
        buffer->unknown_dispatches += theirs.dispatches;
      }
    }
  }
  buffer->bound = nullptr;  // the primary's state is undefined after this
}

const Hook k_hooks[] = {WEIR_BUFFER_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_buffer_hooks = list_of(k_hooks);

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
  while (pool->first != nullptr) forget_buffer(pool->first);
  free(pool);
}

}  // namespace weir_probe
