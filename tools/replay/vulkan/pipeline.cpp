// Makes a recorded pipeline and its layouts on a device.
#include "tools/replay/vulkan/vulkan.hpp"

namespace weir::replay {

PipelineObjects::~PipelineObjects() {
  const VkDevice handle = device_.handle;
  device_.call.vkDestroyPipeline(handle, pipeline_handle_, nullptr);
  device_.call.vkDestroyShaderModule(handle, module_, nullptr);
  device_.call.vkDestroyPipelineLayout(handle, layout_, nullptr);
  for (const VkDescriptorSetLayout set : set_layouts_) {
    device_.call.vkDestroyDescriptorSetLayout(handle, set, nullptr);
  }
}

// Fails if this device cannot have the recorded layout or subgroup size.
Result<void> PipelineObjects::fits() const {
  const VkPhysicalDeviceLimits& limits = device_.limits;
  if (pipeline_.head.sets > limits.maxBoundDescriptorSets ||
      push_bytes() > limits.maxPushConstantsSize) {
    return left_out_error("this device has no such layout: {} sets, {} push constants",
                          pipeline_.head.sets, push_bytes());
  }
  const std::uint32_t subgroup = pipeline_.head.subgroup_size;
  if (subgroup != 0 && (subgroup < device_.min_subgroup || subgroup > device_.max_subgroup)) {
    return left_out_error("it asks for subgroups of {}, this device has {} to {}", subgroup,
                          device_.min_subgroup, device_.max_subgroup);
  }
  return {};
}

Result<void> PipelineObjects::make(VkPipelineCreateFlags flags) {
  WEIR_CHECK(make_layout());
  return make_pipeline(flags);
}

// Creates the layouts of all descriptor sets, and the layout of the pipeline.
Result<void> PipelineObjects::make_layout() {
  for (std::uint32_t set = 0; set < pipeline_.head.sets; ++set) {
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (const auto& binding : pipeline_.bindings) {
      if (binding.set != set) continue;
      const auto type = static_cast<VkDescriptorType>(binding.type);
      bindings.push_back(
          {binding.binding, type, binding.count, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
      if (weir_kernels_is_dynamic(binding.type)) dynamic_bindings_ += binding.count;
    }
    const auto info =
        of_type<vk::DescriptorSetLayoutCreateInfo>(0U, size_of(bindings), bindings.data());
    WEIR_CHECK(
        WEIR_REPLAY_MAKE(device_, CreateDescriptorSetLayout, &info, &set_layouts_.emplace_back()));
  }
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes()};
  const auto info = of_type<vk::PipelineLayoutCreateInfo>(
      0U, size_of(set_layouts_), set_layouts_.data(), range.size == 0 ? 0U : 1U, &range);
  return WEIR_REPLAY_MAKE(device_, CreatePipelineLayout, &info, &layout_);
}

// Creates the pipeline from the recorded code, constants and subgroup size.
Result<void> PipelineObjects::make_pipeline(VkPipelineCreateFlags flags) {
  const auto module =
      of_type<vk::ShaderModuleCreateInfo>(0U, code_.words.size() * 4, code_.words.data());
  WEIR_CHECK(WEIR_REPLAY_MAKE(device_, CreateShaderModule, &module, &module_));
  std::vector<VkSpecializationMapEntry> entries;
  for (const auto& constant : pipeline_.constants) {
    entries.push_back({constant.id, constant.offset, constant.size});
  }
  const VkSpecializationInfo special{size_of(entries), entries.data(), pipeline_.data.size(),
                                     pipeline_.data.data()};
  const VkSpecializationInfo* const constants = entries.empty() ? nullptr : &special;
  auto subgroup = of_type<vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo>();
  subgroup.requiredSubgroupSize = pipeline_.head.subgroup_size;
  auto stage = of_type<vk::PipelineShaderStageCreateInfo>(pipeline_.head.stage_flags,
                                                          VK_SHADER_STAGE_COMPUTE_BIT, module_,
                                                          pipeline_.entry_point.c_str(), constants);
  if (subgroup.requiredSubgroupSize != 0) stage.pNext = &subgroup;
  const auto info = of_type<vk::ComputePipelineCreateInfo>(pipeline_.head.flags | flags, stage,
                                                           layout_, VkPipeline{}, 0);
  return WEIR_REPLAY_CALL(device_.call, CreateComputePipelines, device_.handle, VK_NULL_HANDLE, 1,
                          &info, nullptr, &pipeline_handle_);
}

}  // namespace weir::replay
