// The functions below this layer that it calls, fetched once when a device is made.
#pragma once

#include <vulkan/vulkan.h>

namespace weir_probe {

// Where the layer stands in front: name without "vk".
#define WEIR_INTERCEPTED_DEVICE_FUNCTIONS(X) \
  X(DestroyDevice)                           \
  X(GetDeviceQueue)                          \
  X(GetDeviceQueue2)                         \
  X(QueueSubmit)                             \
  X(QueueSubmit2)                            \
  X(QueueSubmit2KHR)                         \
  X(QueueBindSparse)                         \
  X(QueueWaitIdle)                           \
  X(DeviceWaitIdle)                          \
  X(DestroyFence)                            \
  X(WaitForFences)                           \
  X(GetFenceStatus)                          \
  X(CreateSemaphore)                         \
  X(DestroySemaphore)                        \
  X(WaitSemaphores)                          \
  X(WaitSemaphoresKHR)                       \
  X(GetSemaphoreCounterValue)                \
  X(GetSemaphoreCounterValueKHR)             \
  X(SignalSemaphore)                         \
  X(SignalSemaphoreKHR)                      \
  X(CreateShaderModule)                      \
  X(DestroyShaderModule)                     \
  X(CreateComputePipelines)                  \
  X(DestroyPipeline)                         \
  X(CreateCommandPool)                       \
  X(DestroyCommandPool)                      \
  X(ResetCommandPool)                        \
  X(AllocateCommandBuffers)                  \
  X(FreeCommandBuffers)                      \
  X(BeginCommandBuffer)                      \
  X(ResetCommandBuffer)                      \
  X(EndCommandBuffer)                        \
  X(CmdPushConstants)                        \
  X(CmdWaitEvents)                           \
  X(CmdWaitEvents2)                          \
  X(CmdWaitEvents2KHR)                       \
  X(CmdBeginDebugUtilsLabelEXT)              \
  X(CmdEndDebugUtilsLabelEXT)                \
  X(CmdDebugMarkerBeginEXT)                  \
  X(CmdDebugMarkerEndEXT)                    \
  X(CmdBindPipeline)                         \
  X(CmdDispatch)                             \
  X(CmdDispatchIndirect)                     \
  X(CmdDispatchBase)                         \
  X(CmdDispatchBaseKHR)                      \
  X(CmdPipelineBarrier)                      \
  X(CmdPipelineBarrier2)                     \
  X(CmdPipelineBarrier2KHR)                  \
  X(CmdCopyBuffer)                           \
  X(CmdCopyBuffer2)                          \
  X(CmdCopyBuffer2KHR)                       \
  X(CmdCopyImage)                            \
  X(CmdCopyImage2)                           \
  X(CmdCopyImage2KHR)                        \
  X(CmdCopyBufferToImage)                    \
  X(CmdCopyBufferToImage2)                   \
  X(CmdCopyBufferToImage2KHR)                \
  X(CmdCopyImageToBuffer)                    \
  X(CmdCopyImageToBuffer2)                   \
  X(CmdCopyImageToBuffer2KHR)                \
  X(CmdCopyQueryPoolResults)                 \
  X(CmdBlitImage)                            \
  X(CmdBlitImage2)                           \
  X(CmdBlitImage2KHR)                        \
  X(CmdResolveImage)                         \
  X(CmdResolveImage2)                        \
  X(CmdResolveImage2KHR)                     \
  X(CmdFillBuffer)                           \
  X(CmdUpdateBuffer)                         \
  X(CmdExecuteCommands)                      \
  X(CreateBuffer)                            \
  X(DestroyBuffer)                           \
  X(CreateDescriptorSetLayout)               \
  X(CreatePipelineLayout)                    \
  X(DestroyPipelineLayout)                   \
  X(AllocateDescriptorSets)                  \
  X(FreeDescriptorSets)                      \
  X(ResetDescriptorPool)                     \
  X(DestroyDescriptorPool)                   \
  X(UpdateDescriptorSets)                    \
  X(CreateDescriptorUpdateTemplate)          \
  X(CreateDescriptorUpdateTemplateKHR)       \
  X(DestroyDescriptorUpdateTemplate)         \
  X(DestroyDescriptorUpdateTemplateKHR)      \
  X(UpdateDescriptorSetWithTemplate)         \
  X(UpdateDescriptorSetWithTemplateKHR)      \
  X(CmdBindDescriptorSets)                   \
  X(CmdPushDescriptorSetKHR)                 \
  X(CmdPushDescriptorSetWithTemplateKHR)     \
  X(SetDebugUtilsObjectNameEXT)              \
  X(DebugMarkerSetObjectNameEXT)

struct NextDevice {
  PFN_vkGetDeviceProcAddr GetDeviceProcAddr;
#define WEIR_DECLARE(name) PFN_vk##name name;
  WEIR_INTERCEPTED_DEVICE_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
};

}  // namespace weir_probe
