// Objects that are little more than a handle: nothing is compiled, nothing is bound.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

struct DescriptorPool {
  uint32_t max_sets, used;
};

using Slot = weir_probe::Table;

}  // namespace
}  // namespace weir_twin

using namespace weir_twin;

// Gives a new handle for each pipeline, as nothing is compiled. If the program wants feedback, it
// says that it took no time.
VkResult vkCreateComputePipelines(VkDevice, VkPipelineCache, uint32_t count,
                                  const VkComputePipelineCreateInfo* infos,
                                  const VkAllocationCallbacks*, VkPipeline* out) {
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = reinterpret_cast<VkPipeline>(make_handle());
    const auto* feedback = in_chain<VkPipelineCreationFeedbackCreateInfo>(
        infos[i].pNext, VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO);
    if (feedback == nullptr) continue;
    *feedback->pPipelineCreationFeedback = {VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT, 0};
    for (uint32_t k = 0; k < feedback->pipelineStageCreationFeedbackCount; ++k) {
      feedback->pPipelineStageCreationFeedbacks[k] = {VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT, 0};
    }
  }
  return VK_SUCCESS;
}

// Gives a pipeline cache as the header that the specification requires, without data.
VkResult vkGetPipelineCacheData(VkDevice handle, VkPipelineCache, size_t* size, void* out) {
  Physical* physical = object<Device>(handle)->physical;
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(to_handle<VkPhysicalDevice>(physical), &properties);
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

VkResult vkGetPipelineExecutablePropertiesKHR(VkDevice, const VkPipelineInfoKHR*, uint32_t* count,
                                              VkPipelineExecutablePropertiesKHR* out) {
  return write_list(1, count, out, [](uint32_t, VkPipelineExecutablePropertiesKHR* entry) {
    entry->stages = VK_SHADER_STAGE_COMPUTE_BIT;
    memset(entry->name, 0, sizeof entry->name);
    memset(entry->description, 0, sizeof entry->description);
    memcpy(entry->name, "twin", sizeof "twin");
    entry->subgroupSize = 0;
  });
}

// Refuses the call, and sets all handles to null as the specification requires.
VkResult vkCreateGraphicsPipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                   const VkGraphicsPipelineCreateInfo* infos,
                                   const VkAllocationCallbacks* allocation, VkPipeline* out) {
  for (uint32_t i = 0; i < count; ++i) out[i] = VK_NULL_HANDLE;
  return Refusal<PFN_vkCreateGraphicsPipelines, "vkCreateGraphicsPipelines">::call(
      device, cache, count, infos, allocation, out);
}

VkResult vkCreateDescriptorPool(VkDevice, const VkDescriptorPoolCreateInfo* info,
                                const VkAllocationCallbacks*, VkDescriptorPool* out) {
  return create<DescriptorPool>(out, [&](DescriptorPool* pool) { pool->max_sets = info->maxSets; });
}

VkResult vkResetDescriptorPool(VkDevice, VkDescriptorPool pool, VkDescriptorPoolResetFlags) {
  object<DescriptorPool>(pool)->used = 0;
  return VK_SUCCESS;
}

VkResult vkAllocateDescriptorSets(VkDevice, const VkDescriptorSetAllocateInfo* info,
                                  VkDescriptorSet* out) {
  auto* pool = object<DescriptorPool>(info->descriptorPool);
  const bool has_room = info->descriptorSetCount <= pool->max_sets - pool->used;
  if (has_room) pool->used += info->descriptorSetCount;
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
    out[i] = has_room ? reinterpret_cast<VkDescriptorSet>(make_handle()) : VK_NULL_HANDLE;
  }
  return has_room ? VK_SUCCESS : VK_ERROR_OUT_OF_POOL_MEMORY;
}

VkResult vkFreeDescriptorSets(VkDevice, VkDescriptorPool from, uint32_t count,
                              const VkDescriptorSet* sets) {
  auto* pool = object<DescriptorPool>(from);
  for (uint32_t i = 0; i < count; ++i) {
    if (sets[i] != VK_NULL_HANDLE && pool->used > 0) --pool->used;
  }
  return VK_SUCCESS;
}

void vkGetDescriptorSetLayoutSupport(VkDevice, const VkDescriptorSetLayoutCreateInfo*,
                                     VkDescriptorSetLayoutSupport* out) {
  out->supported = VK_TRUE;
  if (auto* support = find_output<VkDescriptorSetVariableDescriptorCountLayoutSupport>(
          out->pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_LAYOUT_SUPPORT)) {
    support->maxVariableDescriptorCount = 1U << 20;
  }
}

VkResult vkCreatePrivateDataSlot(VkDevice, const VkPrivateDataSlotCreateInfo*,
                                 const VkAllocationCallbacks*, VkPrivateDataSlot* out) {
  return create<Slot>(out, [](Slot*) {});  // an empty table is all zeros
}

void vkDestroyPrivateDataSlot(VkDevice, VkPrivateDataSlot handle, const VkAllocationCallbacks*) {
  auto* slot = object<Slot>(handle);
  if (slot != nullptr) slot->free_all();
  free(slot);
}

VkResult vkSetPrivateData(VkDevice, VkObjectType, uint64_t handle, VkPrivateDataSlot slot,
                          uint64_t data) {
  return object<Slot>(slot)->insert(handle, reinterpret_cast<void*>(data))
             ? VK_SUCCESS
             : VK_ERROR_OUT_OF_HOST_MEMORY;
}

void vkGetPrivateData(VkDevice, VkObjectType, uint64_t handle, VkPrivateDataSlot slot,
                      uint64_t* out) {
  *out = reinterpret_cast<uint64_t>(object<Slot>(slot)->find(handle));
}

VkResult vkGetDeviceFaultInfoEXT(VkDevice, VkDeviceFaultCountsEXT* counts, VkDeviceFaultInfoEXT*) {
  counts->addressInfoCount = 0;
  counts->vendorInfoCount = 0;
  counts->vendorBinarySize = 0;
  return VK_SUCCESS;
}
