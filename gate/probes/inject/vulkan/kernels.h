// Which kernel a dispatch runs: pipelines, the shaders in them and the names programs give.
#pragma once

#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {

VKAPI_ATTR VkResult VKAPI_CALL create_shader_module(VkDevice, const VkShaderModuleCreateInfo*,
                                                    const VkAllocationCallbacks*, VkShaderModule*);
VKAPI_ATTR void VKAPI_CALL destroy_shader_module(VkDevice, VkShaderModule,
                                                 const VkAllocationCallbacks*);
VKAPI_ATTR VkResult VKAPI_CALL create_compute_pipelines(VkDevice, VkPipelineCache, uint32_t,
                                                        const VkComputePipelineCreateInfo*,
                                                        const VkAllocationCallbacks*, VkPipeline*);
VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*);
VKAPI_ATTR VkResult VKAPI_CALL set_debug_utils_object_name(VkDevice,
                                                           const VkDebugUtilsObjectNameInfoEXT*);
VKAPI_ATTR VkResult VKAPI_CALL debug_marker_set_object_name(VkDevice,
                                                            const VkDebugMarkerObjectNameInfoEXT*);
VKAPI_ATTR void VKAPI_CALL cmd_begin_label(VkCommandBuffer, const VkDebugUtilsLabelEXT*);
VKAPI_ATTR void VKAPI_CALL cmd_end_label(VkCommandBuffer);
VKAPI_ATTR void VKAPI_CALL cmd_begin_marker(VkCommandBuffer, const VkDebugMarkerMarkerInfoEXT*);
VKAPI_ATTR void VKAPI_CALL cmd_end_marker(VkCommandBuffer);

}  // namespace weir_probe
