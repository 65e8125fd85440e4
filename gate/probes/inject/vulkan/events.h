// What a command buffer does, command by command, and when the program waited: with events only.
// The functions here stand in for the counting ones of record.h and count as well.
#pragma once

#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/record.h"
#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {

void log_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t flags);
void log_barrier(CommandBuffer* buffer, const weir_event_barrier& barrier);
void log_copy(CommandBuffer* buffer, uint32_t kind, uint64_t bytes);
void begin_recording(CommandBuffer* buffer);
// Makes what `secondary` does part of `buffer`.
void log_secondary(CommandBuffer* buffer, const CommandBuffer* secondary);
void free_recording(CommandBuffer* buffer);

// A submission: its buffers before it goes down, itself when it came back.
uint64_t next_serial();
void log_buffer(CommandBuffer* buffer, uint64_t serial, uint32_t order);
void log_submit(Queue* queue, uint64_t serial, uint64_t begin, uint32_t buffers);
// A wait of the program's; `queue` may be null.
void log_wait(Queue* queue, uint32_t kind, uint64_t begin, bool sync);

VKAPI_ATTR VkResult VKAPI_CALL end_command_buffer(VkCommandBuffer);
VKAPI_ATTR void VKAPI_CALL cmd_push_constants(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags,
                                              uint32_t, uint32_t, const void*);
VKAPI_ATTR void VKAPI_CALL cmd_wait_events(VkCommandBuffer, uint32_t, const VkEvent*,
                                           VkPipelineStageFlags, VkPipelineStageFlags, uint32_t,
                                           const VkMemoryBarrier*, uint32_t,
                                           const VkBufferMemoryBarrier*, uint32_t,
                                           const VkImageMemoryBarrier*);
template <auto Next>
VKAPI_ATTR void VKAPI_CALL cmd_wait_events2(VkCommandBuffer handle, uint32_t count,
                                            const VkEvent* events, const VkDependencyInfo* infos) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer != nullptr && buffer->recording != nullptr) close_group(buffer);
  (device_of(handle)->next.*Next)(handle, count, events, infos);
}

// How each command is logged: log(buffer, its arguments).
struct LogDispatch {
  static constexpr bool k_work = true;
  static void log(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z) {
    log_dispatch(buffer, x, y, z, 0);
  }
  static void log(CommandBuffer* buffer, uint32_t, uint32_t, uint32_t, uint32_t x, uint32_t y,
                  uint32_t z) {
    log_dispatch(buffer, x, y, z, 0);
  }
  static void log(CommandBuffer* buffer, VkBuffer, VkDeviceSize) {
    log_dispatch(buffer, 0, 0, 0, WEIR_DISPATCH_INDIRECT);
  }
};
struct LogBarrier {
  static constexpr bool k_work = false;
  static void log(CommandBuffer* buffer, VkPipelineStageFlags from, VkPipelineStageFlags to,
                  VkDependencyFlags flags, uint32_t memory_count, const VkMemoryBarrier*,
                  uint32_t buffer_count, const VkBufferMemoryBarrier* buffers, uint32_t image_count,
                  const VkImageMemoryBarrier* images);
  static void log(CommandBuffer* buffer, const VkDependencyInfo* info);
};
template <uint32_t Kind>
struct LogCopy {
  static constexpr bool k_work = true;
  template <class... Arguments>
  static void log(CommandBuffer* buffer, Arguments... arguments) {
    log_copy(buffer, Kind, bytes(arguments...));
  }

 private:
  static uint64_t bytes(VkBuffer, VkBuffer, uint32_t count, const VkBufferCopy* regions) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += regions[i].size;
    return sum;
  }
  static uint64_t bytes(const VkCopyBufferInfo2* info) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < info->regionCount; ++i) sum += info->pRegions[i].size;
    return sum;
  }
  static uint64_t bytes(VkBuffer, VkDeviceSize, VkDeviceSize size, uint32_t) {
    return size == VK_WHOLE_SIZE ? 0 : size;
  }
  static uint64_t bytes(VkBuffer, VkDeviceSize, VkDeviceSize size, const void*) { return size; }
  static uint64_t bytes(VkQueryPool, uint32_t, uint32_t count, VkBuffer, VkDeviceSize,
                        VkDeviceSize stride, VkQueryResultFlags) {
    return count * stride;
  }
  template <class... Arguments>
  static uint64_t bytes(Arguments...) {
    return 0;  // images: how many bytes is the driver's to know
  }
};

// logged<&NextDevice::CmdCopyBuffer, count_copy, LogCopy<…>> stands in front of vkCmdCopyBuffer.
template <auto Next, void (*Note)(CommandBuffer*), class Log, class Function>
struct Logged;
template <auto Next, void (*Note)(CommandBuffer*), class Log, class... Arguments>
struct Logged<Next, Note, Log, void(VKAPI_PTR*)(VkCommandBuffer, Arguments...)> {
  static VKAPI_ATTR void VKAPI_CALL call(VkCommandBuffer handle, Arguments... arguments) {
    CommandBuffer* buffer = command_buffer(handle);
    if (__builtin_expect(buffer == nullptr || buffer->recording == nullptr, 0)) {
      counted<Next, Note>(handle, arguments...);
      return;
    }
    Note(buffer);
    Log::log(buffer, arguments...);
    (buffer->device->next.*Next)(handle, arguments...);
    if (Log::k_work) serialize(buffer);
  }
};
template <auto Next, void (*Note)(CommandBuffer*), class Log>
constexpr auto logged = &Logged<Next, Note, Log, decltype(function_of(Next))>::call;

}  // namespace weir_probe
