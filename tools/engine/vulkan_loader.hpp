// Vulkan's functions, looked up in libvulkan.so.1 when they are first asked for: the engine starts,
// and computes on the CPU, where no such library is.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "gate/base/result.hpp"

// clang-format off
#define WEIR_VULKAN_FUNCTIONS(X) \
  X(vkAllocateCommandBuffers) X(vkAllocateDescriptorSets) X(vkAllocateMemory) \
  X(vkBeginCommandBuffer) X(vkBindBufferMemory) X(vkCmdBindDescriptorSets) X(vkCmdBindPipeline) \
  X(vkCmdCopyBuffer) X(vkCmdDispatch) X(vkCmdPipelineBarrier) X(vkCmdPushConstants) \
  X(vkCmdResetQueryPool) X(vkCmdUpdateBuffer) X(vkCmdWriteTimestamp) X(vkCreateBuffer) \
  X(vkCreateCommandPool) X(vkCreateComputePipelines) X(vkCreateDescriptorPool) \
  X(vkCreateDescriptorSetLayout) X(vkCreateDevice) X(vkCreateFence) X(vkCreateInstance) \
  X(vkCreatePipelineLayout) X(vkCreateQueryPool) X(vkCreateShaderModule) X(vkDestroyBuffer) \
  X(vkDestroyCommandPool) X(vkDestroyDescriptorPool) X(vkDestroyDescriptorSetLayout) \
  X(vkDestroyDevice) X(vkDestroyFence) X(vkDestroyInstance) X(vkDestroyPipeline) \
  X(vkDestroyPipelineLayout) X(vkDestroyQueryPool) X(vkDestroyShaderModule) X(vkDeviceWaitIdle) \
  X(vkEndCommandBuffer) X(vkEnumerateDeviceExtensionProperties) \
  X(vkEnumerateInstanceExtensionProperties) X(vkEnumeratePhysicalDevices) X(vkFreeMemory) \
  X(vkGetBufferMemoryRequirements) X(vkGetDeviceProcAddr) X(vkGetDeviceQueue) \
  X(vkGetInstanceProcAddr) X(vkGetPhysicalDeviceMemoryProperties) \
  X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkGetQueryPoolResults) X(vkMapMemory) X(vkQueueSubmit) X(vkResetFences) \
  X(vkUpdateDescriptorSets) X(vkWaitForFences)
// clang-format on

namespace weir::engine {

#define WEIR_DECLARE(name) extern PFN_##name name;
WEIR_VULKAN_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE

// Fills them. Code::io where there is no such library, or it has not all of them.
[[nodiscard]] Result<void> open_vulkan_loader();

}  // namespace weir::engine
