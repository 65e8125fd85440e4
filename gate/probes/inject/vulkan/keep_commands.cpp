// What a command buffer has bound, and what it dispatches.
#include <string.h>

#include "gate/probes/inject/vulkan/events.h"
#include "gate/probes/inject/vulkan/keep.h"
#include "gate/probes/inject/vulkan/record.h"
#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {
namespace {

KeptDispatch* fresh_dispatch(KeptCommands* commands) {
  if (commands->count == commands->capacity) {
    const uint32_t capacity = commands->capacity == 0 ? 64 : commands->capacity * 2;
    auto* grown = capacity > (1U << 24)
                      ? nullptr
                      : static_cast<KeptDispatch*>(
                            realloc(commands->dispatches, capacity * sizeof(KeptDispatch)));
    if (grown == nullptr) {
      ++commands->no_room;
      return nullptr;
    }
    commands->dispatches = grown;
    commands->capacity = capacity;
  }
  return &commands->dispatches[commands->count++];
}

void note(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z, uint32_t left_out) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer == nullptr || buffer->kept == nullptr) return;
  KeptDispatch* dispatch = fresh_dispatch(buffer->kept);
  if (dispatch == nullptr) return;
  *dispatch = {nullptr, left_out, nullptr, nullptr};
  const Tally* bound = buffer->bound;
  if (left_out != k_nothing_left_out) return;
  KeptPipeline* pipeline = bound == nullptr ? nullptr : bound->pipeline->kept;
  dispatch->left_out = pipeline == nullptr ? uint32_t{WEIR_LEFT_UNKNOWN} : pipeline->left_out;
  if (dispatch->left_out != k_nothing_left_out) return;
  dispatch->pipeline = bound->pipeline;
  dispatch->label = bound->label;
  dispatch->work = work_of(buffer, pipeline, x, y, z, &dispatch->left_out);
}

}  // namespace

void begin_kept(CommandBuffer* buffer) {
  if (buffer->device->kept == nullptr) return;
  if (buffer->kept == nullptr) {
    buffer->kept = static_cast<KeptCommands*>(calloc(1, sizeof(KeptCommands)));
    if (buffer->kept == nullptr) return;
  }
  KeptCommands* commands = buffer->kept;
  commands->count = commands->push_bytes = 0;
  commands->no_room = 0;
  for (KeptCommands::Bound& bound : commands->bound) {
    bound.set = 0;
    bound.is_pushed = false;
    bound.dynamic_count = 0;
  }
}

void join_kept(CommandBuffer* buffer, const CommandBuffer* secondary) {
  if (buffer->kept == nullptr || secondary->kept == nullptr) return;
  buffer->kept->no_room += secondary->kept->no_room;
  for (uint32_t i = 0; i < secondary->kept->count; ++i) {
    if (KeptDispatch* dispatch = fresh_dispatch(buffer->kept)) {
      *dispatch = secondary->kept->dispatches[i];
    }
  }
}

void free_kept(CommandBuffer* buffer) {
  if (buffer->kept == nullptr) return;
  for (KeptCommands::Bound& bound : buffer->kept->bound) free(bound.pushed);
  free(buffer->kept->dispatches);
  free(buffer->kept);
  buffer->kept = nullptr;
}

void submit_kept(const CommandBuffer* buffer, uint64_t sign) {
  const KeptCommands* commands = buffer->kept;
  if (commands == nullptr) return;
  if (commands->no_room != 0) count_left_out(WEIR_LEFT_ROOM, commands->no_room * sign);
  for (uint32_t i = 0; i < commands->count; ++i) {
    const KeptDispatch& dispatch = commands->dispatches[i];
    if (dispatch.work == nullptr) {
      count_left_out(dispatch.left_out, sign);
      continue;
    }
    const uint32_t kernel = resolve_kernel(buffer->device, dispatch.pipeline, dispatch.label);
    const uint32_t place = place_of(dispatch.work, kernel, g.file.kernels[kernel].name);
    if (place == k_not_written) {
      count_left_out(WEIR_LEFT_ROOM, sign);
    } else {
      count_kept(place, sign);
    }
  }
}

VKAPI_ATTR void VKAPI_CALL keep_bind_sets(VkCommandBuffer handle, VkPipelineBindPoint point,
                                          VkPipelineLayout layout, uint32_t first, uint32_t count,
                                          const VkDescriptorSet* sets, uint32_t dynamic_count,
                                          const uint32_t* dynamic) {
  CommandBuffer* buffer = command_buffer(handle);
  const bool follow =
      buffer != nullptr && buffer->kept != nullptr && point == VK_PIPELINE_BIND_POINT_COMPUTE;
  uint32_t taken = 0;
  for (uint32_t i = 0;
       follow && i < count && i < WEIR_KERNELS_SETS && first < WEIR_KERNELS_SETS - i; ++i) {
    KeptCommands::Bound& bound = buffer->kept->bound[first + i];
    bound.set = number(sets[i]);
    bound.is_pushed = false;
    bound.dynamic_count = 0;
    const auto* set = static_cast<const KeptSet*>(buffer->device->kept->sets.find(bound.set));
    if (set == nullptr) {
      taken = dynamic_count;  // whose the others are can not be told
      continue;
    }
    for (uint32_t j = 0; j < set->layout->bindings; ++j) {
      if (!is_dynamic(set->layout->binding[j].type)) continue;
      for (uint32_t k = 0; k < set->layout->binding[j].count && taken < dynamic_count; ++k) {
        if (bound.dynamic_count < KeptCommands::k_dynamic) {
          bound.dynamic[bound.dynamic_count++] = dynamic[taken];
        } else {
          bound.set = 0;  // more than are followed: what it binds is not known
        }
        ++taken;
      }
    }
  }
  device_of(handle)->next.CmdBindDescriptorSets(handle, point, layout, first, count, sets,
                                                dynamic_count, dynamic);
}

VKAPI_ATTR void VKAPI_CALL keep_push_constants(VkCommandBuffer handle, VkPipelineLayout layout,
                                               VkShaderStageFlags stages, uint32_t offset,
                                               uint32_t size, const void* values) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer != nullptr && buffer->kept != nullptr && offset < WEIR_KERNELS_PUSH_BYTES &&
      size <= WEIR_KERNELS_PUSH_BYTES - offset) {
    KeptCommands* commands = buffer->kept;
    if (offset > commands->push_bytes) {
      memset(commands->push + commands->push_bytes, 0, offset - commands->push_bytes);
    }
    memcpy(commands->push + offset, values, size);
    // What was pushed before still holds; a pipeline takes as much of it as its layout has.
    const uint32_t end = offset + size;
    if (end > commands->push_bytes) commands->push_bytes = end;
  }
  (events_on() ? cmd_push_constants : device_of(handle)->next.CmdPushConstants)(
      handle, layout, stages, offset, size, values);
}

VKAPI_ATTR void VKAPI_CALL keep_dispatch(VkCommandBuffer handle, uint32_t x, uint32_t y,
                                         uint32_t z) {
  note(handle, x, y, z, k_nothing_left_out);
  constexpr auto plain = counted<&NextDevice::CmdDispatch, count_dispatch>;
  constexpr auto events = logged<&NextDevice::CmdDispatch, count_dispatch, LogDispatch>;
  (events_on() ? events : plain)(handle, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL keep_dispatch_base(VkCommandBuffer handle, uint32_t from_x,
                                              uint32_t from_y, uint32_t from_z, uint32_t x,
                                              uint32_t y, uint32_t z) {
  const bool from_zero = from_x == 0 && from_y == 0 && from_z == 0;
  note(handle, x, y, z, from_zero ? k_nothing_left_out : uint32_t{WEIR_LEFT_BASE});
  constexpr auto plain = counted<&NextDevice::CmdDispatchBase, count_dispatch>;
  constexpr auto events = logged<&NextDevice::CmdDispatchBase, count_dispatch, LogDispatch>;
  constexpr auto plain_khr = counted<&NextDevice::CmdDispatchBaseKHR, count_dispatch>;
  constexpr auto events_khr = logged<&NextDevice::CmdDispatchBaseKHR, count_dispatch, LogDispatch>;
  const bool core = device_of(handle)->next.CmdDispatchBase != nullptr;
  (core ? (events_on() ? events : plain) : (events_on() ? events_khr : plain_khr))(
      handle, from_x, from_y, from_z, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL keep_dispatch_indirect(VkCommandBuffer handle, VkBuffer buffer,
                                                  VkDeviceSize offset) {
  note(handle, 0, 0, 0, WEIR_LEFT_INDIRECT);
  constexpr auto plain = counted<&NextDevice::CmdDispatchIndirect, count_indirect>;
  constexpr auto events = logged<&NextDevice::CmdDispatchIndirect, count_indirect, LogDispatch>;
  (events_on() ? events : plain)(handle, buffer, offset);
}

}  // namespace weir_probe
