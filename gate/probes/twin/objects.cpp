// Objects that nothing is known of but their handle: nothing is compiled, nothing is bound.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/table.h"
#include "gate/probes/twin/entries.h"

namespace weir_twin {
namespace {

template <class Info, class Handle>
VKAPI_ATTR VkResult VKAPI_CALL create_any(VkDevice, const Info*, const VkAllocationCallbacks*,
                                          Handle* out) {
  *out = reinterpret_cast<Handle>(made_up());
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice, VkPipelineCache, uint32_t count,
                                                const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks*, VkPipeline* out) {
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = reinterpret_cast<VkPipeline>(made_up());
    const auto* feedback = find_in_chain<VkPipelineCreationFeedbackCreateInfo>(
        infos[i].pNext, VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO);
    if (feedback == nullptr) continue;
    *feedback->pPipelineCreationFeedback = {VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT, 0};
    for (uint32_t k = 0; k < feedback->pipelineStageCreationFeedbackCount; ++k) {
      feedback->pPipelineStageCreationFeedbacks[k] = {VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT, 0};
    }
  }
  return VK_SUCCESS;
}

// The head that the specification asks for, and nothing behind it.
VKAPI_ATTR VkResult VKAPI_CALL get_cache_data(VkDevice handle, VkPipelineCache, size_t* size,
                                              void* out) {
  Physical* physical = object<Device>(handle)->physical;
  VkPhysicalDeviceProperties properties;
  reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(instance_function(
      "vkGetPhysicalDeviceProperties"))(handle_of<VkPhysicalDevice>(physical), &properties);
  VkPipelineCacheHeaderVersionOne head{};
  head.headerSize = sizeof head;
  head.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  head.vendorID = properties.vendorID;
  head.deviceID = properties.deviceID;
  memcpy(head.pipelineCacheUUID, properties.pipelineCacheUUID, VK_UUID_SIZE);
  if (out != nullptr && *size < sizeof head) {
    *size = 0;
    return VK_INCOMPLETE;
  }
  if (out != nullptr) memcpy(out, &head, sizeof head);
  *size = sizeof head;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL get_executables(VkDevice, const VkPipelineInfoKHR*, uint32_t* count,
                                               VkPipelineExecutablePropertiesKHR* out) {
  return answer(1, count, out, [](uint32_t, VkPipelineExecutablePropertiesKHR* one) {
    one->stages = VK_SHADER_STAGE_COMPUTE_BIT;
    memset(one->name, 0, sizeof one->name);
    memset(one->description, 0, sizeof one->description);
    memcpy(one->name, "twin", sizeof "twin");
    one->subgroupSize = 0;
  });
}
template <class T>
VKAPI_ATTR VkResult VKAPI_CALL get_no_statistics(VkDevice, const VkPipelineExecutableInfoKHR*,
                                                 uint32_t* count, T*) {
  *count = 0;
  return VK_SUCCESS;
}

struct DescriptorPool {
  uint32_t most, used;
};
VKAPI_ATTR VkResult VKAPI_CALL create_descriptor_pool(VkDevice,
                                                      const VkDescriptorPoolCreateInfo* info,
                                                      const VkAllocationCallbacks*,
                                                      VkDescriptorPool* out) {
  auto* pool = static_cast<DescriptorPool*>(calloc(1, sizeof(DescriptorPool)));
  if (pool == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  pool->most = info->maxSets;
  *out = handle_of<VkDescriptorPool>(pool);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_descriptor_pool(VkDevice, VkDescriptorPool pool,
                                                   const VkAllocationCallbacks*) {
  free(object<DescriptorPool>(pool));
}
VKAPI_ATTR VkResult VKAPI_CALL reset_descriptor_pool(VkDevice, VkDescriptorPool pool,
                                                     VkDescriptorPoolResetFlags) {
  object<DescriptorPool>(pool)->used = 0;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL allocate_sets(VkDevice, const VkDescriptorSetAllocateInfo* info,
                                             VkDescriptorSet* out) {
  auto* pool = object<DescriptorPool>(info->descriptorPool);
  const bool room = info->descriptorSetCount <= pool->most - pool->used;
  if (room) pool->used += info->descriptorSetCount;
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
    out[i] = room ? reinterpret_cast<VkDescriptorSet>(made_up()) : VK_NULL_HANDLE;
  }
  return room ? VK_SUCCESS : VK_ERROR_OUT_OF_POOL_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL free_sets(VkDevice, VkDescriptorPool from, uint32_t count,
                                         const VkDescriptorSet* sets) {
  auto* pool = object<DescriptorPool>(from);
  for (uint32_t i = 0; i < count; ++i) {
    if (sets[i] != VK_NULL_HANDLE && pool->used > 0) --pool->used;
  }
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL get_layout_support(VkDevice, const VkDescriptorSetLayoutCreateInfo*,
                                              VkDescriptorSetLayoutSupport* out) {
  out->supported = VK_TRUE;
  for (auto* at = static_cast<VkBaseOutStructure*>(out->pNext); at != nullptr; at = at->pNext) {
    if (at->sType != VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_LAYOUT_SUPPORT) {
      continue;
    }
    reinterpret_cast<VkDescriptorSetVariableDescriptorCountLayoutSupport*>(at)
        ->maxVariableDescriptorCount = 1U << 20;
  }
}

using Slot = weir_probe::Table;
VKAPI_ATTR VkResult VKAPI_CALL create_slot(VkDevice, const VkPrivateDataSlotCreateInfo*,
                                           const VkAllocationCallbacks*, VkPrivateDataSlot* out) {
  auto* slot = static_cast<Slot*>(malloc(sizeof(Slot)));
  if (slot == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  const Slot empty{};
  memcpy(static_cast<void*>(slot), &empty, sizeof empty);
  *out = handle_of<VkPrivateDataSlot>(slot);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_slot(VkDevice, VkPrivateDataSlot which,
                                        const VkAllocationCallbacks*) {
  auto* slot = object<Slot>(which);
  if (slot != nullptr) slot->free_all();
  free(slot);
}
VKAPI_ATTR VkResult VKAPI_CALL set_private(VkDevice, VkObjectType, uint64_t handle,
                                           VkPrivateDataSlot slot, uint64_t data) {
  return object<Slot>(slot)->insert(handle, reinterpret_cast<void*>(data))
             ? VK_SUCCESS
             : VK_ERROR_OUT_OF_HOST_MEMORY;
}
VKAPI_ATTR void VKAPI_CALL get_private(VkDevice, VkObjectType, uint64_t handle,
                                       VkPrivateDataSlot slot, uint64_t* out) {
  *out = reinterpret_cast<uint64_t>(object<Slot>(slot)->find(handle));
}

VKAPI_ATTR VkResult VKAPI_CALL get_fault(VkDevice, VkDeviceFaultCountsEXT* counts,
                                         VkDeviceFaultInfoEXT*) {
  counts->addressInfoCount = counts->vendorInfoCount = 0;
  counts->vendorBinarySize = 0;
  return VK_SUCCESS;
}

}  // namespace

Entries object_entries() {
#define WEIR_TWIN_IGNORED(name) WEIR_TWIN_CORE(0, name, Swallow<PFN_vk##name>::call)
  constexpr auto k_executables = "VK_KHR_pipeline_executable_properties";
  constexpr auto k_templates = "VK_KHR_descriptor_update_template";
  constexpr auto k_private = "VK_EXT_private_data";
  static const Entry entries[] = {
      WEIR_TWIN_CORE(0, CreateShaderModule, create_any),
      WEIR_TWIN_IGNORED(DestroyShaderModule),
      WEIR_TWIN_CORE(0, CreateComputePipelines, create_pipelines),
      WEIR_TWIN_IGNORED(DestroyPipeline),
      WEIR_TWIN_CORE(0, CreatePipelineLayout, create_any),
      WEIR_TWIN_IGNORED(DestroyPipelineLayout),
      WEIR_TWIN_CORE(0, CreatePipelineCache, create_any),
      WEIR_TWIN_IGNORED(DestroyPipelineCache),
      WEIR_TWIN_CORE(0, GetPipelineCacheData, get_cache_data),
      WEIR_TWIN_IGNORED(MergePipelineCaches),
      WEIR_TWIN_EXTENSION(k_executables, GetPipelineExecutablePropertiesKHR, get_executables),
      WEIR_TWIN_EXTENSION(k_executables, GetPipelineExecutableStatisticsKHR, get_no_statistics),
      WEIR_TWIN_EXTENSION(k_executables, GetPipelineExecutableInternalRepresentationsKHR,
                          get_no_statistics),
      WEIR_TWIN_CORE(0, CreateSampler, create_any),
      WEIR_TWIN_IGNORED(DestroySampler),
      WEIR_TWIN_CORE(0, CreateBufferView, create_any),
      WEIR_TWIN_IGNORED(DestroyBufferView),
      WEIR_TWIN_CORE(0, CreateDescriptorSetLayout, create_any),
      WEIR_TWIN_IGNORED(DestroyDescriptorSetLayout),
      WEIR_TWIN_CORE(0, CreateDescriptorPool, create_descriptor_pool),
      WEIR_TWIN_CORE(0, DestroyDescriptorPool, destroy_descriptor_pool),
      WEIR_TWIN_CORE(0, ResetDescriptorPool, reset_descriptor_pool),
      WEIR_TWIN_CORE(0, AllocateDescriptorSets, allocate_sets),
      WEIR_TWIN_CORE(0, FreeDescriptorSets, free_sets),
      WEIR_TWIN_IGNORED(UpdateDescriptorSets),
      WEIR_TWIN_CORE(1, GetDescriptorSetLayoutSupport, get_layout_support),
      WEIR_TWIN_EXTENSION("VK_KHR_maintenance3", GetDescriptorSetLayoutSupportKHR,
                          get_layout_support),
      WEIR_TWIN_CORE(1, CreateDescriptorUpdateTemplate, create_any),
      WEIR_TWIN_CORE(1, DestroyDescriptorUpdateTemplate,
                     Swallow<PFN_vkDestroyDescriptorUpdateTemplate>::call),
      WEIR_TWIN_CORE(1, UpdateDescriptorSetWithTemplate,
                     Swallow<PFN_vkUpdateDescriptorSetWithTemplate>::call),
      WEIR_TWIN_EXTENSION(k_templates, CreateDescriptorUpdateTemplateKHR, create_any),
      WEIR_TWIN_EXTENSION(k_templates, DestroyDescriptorUpdateTemplateKHR,
                          Swallow<PFN_vkDestroyDescriptorUpdateTemplateKHR>::call),
      WEIR_TWIN_EXTENSION(k_templates, UpdateDescriptorSetWithTemplateKHR,
                          Swallow<PFN_vkUpdateDescriptorSetWithTemplateKHR>::call),
      WEIR_TWIN_CORE(3, CreatePrivateDataSlot, create_slot),
      WEIR_TWIN_CORE(3, DestroyPrivateDataSlot, destroy_slot),
      WEIR_TWIN_CORE(3, SetPrivateData, set_private),
      WEIR_TWIN_CORE(3, GetPrivateData, get_private),
      WEIR_TWIN_EXTENSION(k_private, CreatePrivateDataSlotEXT, create_slot),
      WEIR_TWIN_EXTENSION(k_private, DestroyPrivateDataSlotEXT, destroy_slot),
      WEIR_TWIN_EXTENSION(k_private, SetPrivateDataEXT, set_private),
      WEIR_TWIN_EXTENSION(k_private, GetPrivateDataEXT, get_private),
      WEIR_TWIN_EXTENSION("VK_EXT_device_fault", GetDeviceFaultInfoEXT, get_fault),
  };
#undef WEIR_TWIN_IGNORED
  return all_of(entries);
}

}  // namespace weir_twin
