// Counts the work of a command buffer while it is recorded; it is done each time it is submitted.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

constexpr uint32_t k_first_tallies = 16;

// Returns the slot of (pipeline, label) in a hash table of tallies (counts of dispatches), or the
// free slot for it. The capacity is a power of 2.
DispatchTally* find_slot(DispatchTally* tallies, uint32_t capacity, Pipeline* pipeline,
                         Label* label) {
  const uint64_t mixed =
      (reinterpret_cast<uint64_t>(pipeline) ^ (reinterpret_cast<uint64_t>(label) << 1)) *
      0x9e3779b97f4a7c15ULL;
  uint32_t index = static_cast<uint32_t>(mixed >> 40) & (capacity - 1);
  while (tallies[index].pipeline != nullptr &&
         (tallies[index].pipeline != pipeline || tallies[index].label != label)) {
    index = (index + 1) & (capacity - 1);
  }
  return &tallies[index];
}

// Doubles the buffer's hash table of tallies (counts of dispatches). False when memory is out.
bool grow_tallies(CommandBuffer* buffer) {
  const uint32_t capacity =
      buffer->tally_capacity == 0 ? k_first_tallies : buffer->tally_capacity * 2;
  DispatchTally* fresh = static_cast<DispatchTally*>(calloc(capacity, sizeof(DispatchTally)));
  if (fresh == nullptr) return false;
  for (uint32_t i = 0; i < buffer->tally_capacity; ++i) {
    if (buffer->tallies[i].pipeline == nullptr) continue;
    const DispatchTally& old = buffer->tallies[i];
    *find_slot(fresh, capacity, old.pipeline, old.label) = old;
  }
  free(buffer->tallies);
  buffer->tallies = fresh;
  buffer->tally_capacity = capacity;
  return true;
}

// Removes a command buffer's record from its pool and the table, and frees it.
void forget_buffer(CommandBuffer* buffer) {
  g.command_buffers.remove(handle_key(buffer->handle));
  unlink_record(&buffer->pool->first, buffer);
  free_recording(buffer);
  free_capture(buffer);
  free(buffer->tallies);
  free(buffer);
}

// Adds a record of a new command buffer to its pool. Without memory it sets a flag in the file.
void add_command_buffer(Device* device, CommandPool* pool, VkCommandBuffer handle,
                        bool is_secondary) {
  auto* buffer = static_cast<CommandBuffer*>(calloc(1, sizeof(CommandBuffer)));
  if (buffer == nullptr || !g.command_buffers.insert(handle_key(handle), buffer)) {
    free(buffer);
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return;
  }
  buffer->device = device;
  buffer->pool = pool;
  buffer->handle = handle;
  buffer->reset_count = pool->reset_count;
  buffer->secondary = is_secondary;
  link_record(&pool->first, buffer);
}

void note_pool(Device* device, const VkCommandPoolCreateInfo* info, const VkAllocationCallbacks*,
               VkCommandPool* out) {
  auto* pool = replace_record<CommandPool>(&device->pools, handle_key(*out));
  if (pool == nullptr) return set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  pool->device = device;
  pool->family = info->queueFamilyIndex;
}

void forget_pool(Device* device, VkCommandPool pool, const VkAllocationCallbacks*) {
  auto* record = static_cast<CommandPool*>(device->pools.remove(handle_key(pool)));
  if (record != nullptr) free_pool(record);
}

// Resets a pool: reads the times of its buffers first, and makes their recordings invalid.
VkResult reset_command_pool(VkDevice handle, VkCommandPool pool, VkCommandPoolResetFlags flags) {
  Device* device = find_device(handle);
  CommandPool* record = device->pools.get<CommandPool>(handle_key(pool));
  for (CommandBuffer* buffer = record == nullptr ? nullptr : record->first; buffer != nullptr;
       buffer = buffer->next) {
    if (buffer->recording != nullptr) retire_stamps(buffer);
  }
  const VkResult result = device->next.ResetCommandPool(handle, pool, flags);
  if (record != nullptr && result == VK_SUCCESS) ++record->reset_count;
  return result;
}

void note_buffers(Device* device, const VkCommandBufferAllocateInfo* info, VkCommandBuffer* out) {
  CommandPool* pool = device->pools.get<CommandPool>(handle_key(info->commandPool));
  const bool secondary = info->level == VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  for (uint32_t i = 0; pool != nullptr && i < info->commandBufferCount; ++i) {
    add_command_buffer(device, pool, out[i], secondary);
  }
}

void forget_buffers(Device*, VkCommandPool, uint32_t count, const VkCommandBuffer* buffers) {
  for (uint32_t i = 0; i < count; ++i) {
    if (CommandBuffer* buffer = command_buffer(buffers[i])) forget_buffer(buffer);
  }
}

// Empties the record of a command buffer's commands.
void clear(CommandBuffer* buffer, VkCommandBufferResetFlags = 0) {
  buffer->bound = nullptr;
  buffer->label_depth = 0;
  memset(buffer->counters, 0, sizeof buffer->counters);
  buffer->unknown_dispatches = 0;
  if (buffer->tally_used != 0)
    memset(buffer->tallies, 0, buffer->tally_capacity * sizeof(DispatchTally));
  buffer->tally_used = 0;
  begin_recording(buffer);
  if (captures_dispatches()) begin_capture(buffer);
}

// Stands in for vkBeginCommandBuffer: also empties the buffer's record and writes its first
// timestamp.
VkResult begin_command_buffer(VkCommandBuffer handle, const VkCommandBufferBeginInfo* info) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer != nullptr) {
    clear(buffer);
    buffer->reset_count = buffer->pool->reset_count;
  }
  const VkResult result = find_device(handle)->next.BeginCommandBuffer(handle, info);
  if (buffer != nullptr && buffer->recording != nullptr && result == VK_SUCCESS) {
    write_first_timestamp(buffer);
  }
  return result;
}

void end_buffer(CommandBuffer* buffer) {
  if (buffer->recording != nullptr) end_stamps(buffer);
}

void bind_pipeline(CommandBuffer* buffer, VkPipelineBindPoint point, VkPipeline pipeline) {
  if (point != VK_PIPELINE_BIND_POINT_COMPUTE) return;
  auto* record = buffer->device->pipelines.get<Pipeline>(handle_key(pipeline));
  buffer->bound =
      record == nullptr ? nullptr : find_or_add_tally(buffer, record, current_label(buffer));
}

// Adds what secondary command buffers counted to the primary one that runs them. They are complete
// by now: recording one again would make the primary invalid.
void execute_commands(CommandBuffer* buffer, uint32_t count, const VkCommandBuffer* secondaries) {
  for (uint32_t i = 0; i < count; ++i) {
    const CommandBuffer* secondary = command_buffer(secondaries[i]);
    if (secondary == nullptr) continue;
    for (uint32_t j = 0; j < k_counted; ++j) buffer->counters[j] += secondary->counters[j];
    buffer->unknown_dispatches += secondary->unknown_dispatches;
    log_secondary(buffer, secondary);
    if (captures_dispatches()) append_capture(buffer, secondary);
    for (uint32_t j = 0; j < secondary->tally_capacity; ++j) {
      const DispatchTally& tally = secondary->tallies[j];
      if (tally.dispatches == 0) continue;
      DispatchTally* sum = find_or_add_tally(buffer, tally.pipeline, tally.label);
      if (sum != nullptr) {
        sum->dispatches += tally.dispatches;
        sum->groups += tally.groups;
      } else {
        buffer->unknown_dispatches += tally.dispatches;
      }
    }
  }
  buffer->bound = nullptr;  // the primary's state is undefined after this
}

const Hook k_hooks[] = {WEIR_BUFFER_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_buffer_hooks = list_of(k_hooks);

// Returns the buffer's count of dispatches of `pipeline` under `label`, adding it if it is new.
// Null when memory is out.
DispatchTally* find_or_add_tally(CommandBuffer* buffer, Pipeline* pipeline, Label* label) {
  if (buffer->tally_capacity != 0) {
    DispatchTally* slot = find_slot(buffer->tallies, buffer->tally_capacity, pipeline, label);
    if (slot->pipeline == pipeline) return slot;
  }
  if ((buffer->tally_used + 1) * 2 > buffer->tally_capacity && !grow_tallies(buffer))
    return nullptr;
  DispatchTally* slot = find_slot(buffer->tallies, buffer->tally_capacity, pipeline, label);
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
