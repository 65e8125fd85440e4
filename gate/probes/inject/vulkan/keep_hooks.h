// Where recording kernels stands in front (keep.h): only with WEIR_PROBE_KERNELS.
#pragma once

#include <vulkan/vulkan.h>

namespace weir_probe {

VKAPI_ATTR VkResult VKAPI_CALL keep_create_buffer(VkDevice, const VkBufferCreateInfo*,
                                                  const VkAllocationCallbacks*, VkBuffer*);
VKAPI_ATTR void VKAPI_CALL keep_destroy_buffer(VkDevice, VkBuffer, const VkAllocationCallbacks*);
VKAPI_ATTR VkResult VKAPI_CALL keep_create_set_layout(VkDevice,
                                                      const VkDescriptorSetLayoutCreateInfo*,
                                                      const VkAllocationCallbacks*,
                                                      VkDescriptorSetLayout*);
VKAPI_ATTR VkResult VKAPI_CALL keep_create_pipeline_layout(VkDevice,
                                                           const VkPipelineLayoutCreateInfo*,
                                                           const VkAllocationCallbacks*,
                                                           VkPipelineLayout*);
VKAPI_ATTR void VKAPI_CALL keep_destroy_pipeline_layout(VkDevice, VkPipelineLayout,
                                                        const VkAllocationCallbacks*);
VKAPI_ATTR VkResult VKAPI_CALL keep_allocate_sets(VkDevice, const VkDescriptorSetAllocateInfo*,
                                                  VkDescriptorSet*);
VKAPI_ATTR VkResult VKAPI_CALL keep_free_sets(VkDevice, VkDescriptorPool, uint32_t,
                                              const VkDescriptorSet*);
VKAPI_ATTR VkResult VKAPI_CALL keep_reset_pool(VkDevice, VkDescriptorPool,
                                               VkDescriptorPoolResetFlags);
VKAPI_ATTR void VKAPI_CALL keep_destroy_pool(VkDevice, VkDescriptorPool,
                                             const VkAllocationCallbacks*);
VKAPI_ATTR void VKAPI_CALL keep_update_sets(VkDevice, uint32_t, const VkWriteDescriptorSet*,
                                            uint32_t, const VkCopyDescriptorSet*);
VKAPI_ATTR VkResult VKAPI_CALL keep_create_template(VkDevice,
                                                    const VkDescriptorUpdateTemplateCreateInfo*,
                                                    const VkAllocationCallbacks*,
                                                    VkDescriptorUpdateTemplate*);
VKAPI_ATTR void VKAPI_CALL keep_destroy_template(VkDevice, VkDescriptorUpdateTemplate,
                                                 const VkAllocationCallbacks*);
VKAPI_ATTR void VKAPI_CALL keep_update_set_with_template(VkDevice, VkDescriptorSet,
                                                         VkDescriptorUpdateTemplate, const void*);
VKAPI_ATTR void VKAPI_CALL keep_push_set(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout,
                                         uint32_t, uint32_t, const VkWriteDescriptorSet*);
VKAPI_ATTR void VKAPI_CALL keep_push_set_with_template(VkCommandBuffer, VkDescriptorUpdateTemplate,
                                                       VkPipelineLayout, uint32_t, const void*);
VKAPI_ATTR void VKAPI_CALL keep_bind_sets(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout,
                                          uint32_t, uint32_t, const VkDescriptorSet*, uint32_t,
                                          const uint32_t*);
VKAPI_ATTR void VKAPI_CALL keep_push_constants(VkCommandBuffer, VkPipelineLayout,
                                               VkShaderStageFlags, uint32_t, uint32_t, const void*);
VKAPI_ATTR void VKAPI_CALL keep_dispatch(VkCommandBuffer, uint32_t, uint32_t, uint32_t);
VKAPI_ATTR void VKAPI_CALL keep_dispatch_base(VkCommandBuffer, uint32_t, uint32_t, uint32_t,
                                              uint32_t, uint32_t, uint32_t);
VKAPI_ATTR void VKAPI_CALL keep_dispatch_indirect(VkCommandBuffer, VkBuffer, VkDeviceSize);

}  // namespace weir_probe
