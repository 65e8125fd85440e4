// Recording: what a command buffer will do each time it is submitted.
#pragma once

#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {

VKAPI_ATTR VkResult VKAPI_CALL create_command_pool(VkDevice, const VkCommandPoolCreateInfo*,
                                                   const VkAllocationCallbacks*, VkCommandPool*);
VKAPI_ATTR void VKAPI_CALL destroy_command_pool(VkDevice, VkCommandPool,
                                                const VkAllocationCallbacks*);
VKAPI_ATTR VkResult VKAPI_CALL reset_command_pool(VkDevice, VkCommandPool, VkCommandPoolResetFlags);
VKAPI_ATTR VkResult VKAPI_CALL allocate_command_buffers(VkDevice,
                                                        const VkCommandBufferAllocateInfo*,
                                                        VkCommandBuffer*);
VKAPI_ATTR void VKAPI_CALL free_command_buffers(VkDevice, VkCommandPool, uint32_t,
                                                const VkCommandBuffer*);
VKAPI_ATTR VkResult VKAPI_CALL begin_command_buffer(VkCommandBuffer,
                                                    const VkCommandBufferBeginInfo*);
VKAPI_ATTR VkResult VKAPI_CALL reset_command_buffer(VkCommandBuffer, VkCommandBufferResetFlags);

VKAPI_ATTR void VKAPI_CALL cmd_bind_pipeline(VkCommandBuffer, VkPipelineBindPoint, VkPipeline);
VKAPI_ATTR void VKAPI_CALL cmd_execute_commands(VkCommandBuffer, uint32_t, const VkCommandBuffer*);

// A dispatch, kernel by kernel.
inline void count_dispatch(CommandBuffer* buffer) {
  ++buffer->dispatches;
  if (buffer->bound != nullptr) {
    ++buffer->bound->dispatches;
  } else {
    ++buffer->unknown_dispatches;
  }
}
inline void count_indirect(CommandBuffer* buffer) {
  count_dispatch(buffer);
  ++buffer->indirect;
}
inline void count_barrier(CommandBuffer* buffer) { ++buffer->barriers; }
inline void count_copy(CommandBuffer* buffer) { ++buffer->copies; }

// counted<&NextDevice::CmdCopyBuffer, count_copy> stands in front of vkCmdCopyBuffer.
template <auto Next, void (*Note)(CommandBuffer*), class Function>
struct Counted;
template <auto Next, void (*Note)(CommandBuffer*), class... Arguments>
struct Counted<Next, Note, void(VKAPI_PTR*)(VkCommandBuffer, Arguments...)> {
  static VKAPI_ATTR void VKAPI_CALL call(VkCommandBuffer handle, Arguments... arguments) {
    CommandBuffer* buffer = command_buffer(handle);
    if (__builtin_expect(buffer == nullptr, 0)) {  // memory was out when it was made
      (device_of(handle)->next.*Next)(handle, arguments...);
      return;
    }
    Note(buffer);
    (buffer->device->next.*Next)(handle, arguments...);
  }
};
template <class Function>
Function function_of(Function NextDevice::*);
template <auto Next, void (*Note)(CommandBuffer*)>
constexpr auto counted = &Counted<Next, Note, decltype(function_of(Next))>::call;

}  // namespace weir_probe
