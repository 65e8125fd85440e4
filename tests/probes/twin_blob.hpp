// A description made of what a real driver answers: the driver's own twin. With the loader alone,
// so that the layer in front of it and what else is installed do not matter.
#pragma once

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include "gate/probes/twin/blob.h"

namespace weir::probes {

// Type and struct: all of them that lavapipe 22.3 and llama.cpp know. A driver leaves a struct that
// it does not know as it is, here 0.
// clang-format off
#define WEIR_TWIN_TEST_STRUCTS(FEATURES, PROPERTIES) \
  FEATURES(16BitStorageFeatures, 16BIT_STORAGE_FEATURES) \
  FEATURES(4444FormatsFeaturesEXT, 4444_FORMATS_FEATURES_EXT) \
  FEATURES(8BitStorageFeatures, 8BIT_STORAGE_FEATURES) \
  FEATURES(AttachmentFeedbackLoopLayoutFeaturesEXT, ATTACHMENT_FEEDBACK_LOOP_LAYOUT_FEATURES_EXT) \
  FEATURES(BorderColorSwizzleFeaturesEXT, BORDER_COLOR_SWIZZLE_FEATURES_EXT) \
  FEATURES(BufferDeviceAddressFeatures, BUFFER_DEVICE_ADDRESS_FEATURES) \
  FEATURES(ColorWriteEnableFeaturesEXT, COLOR_WRITE_ENABLE_FEATURES_EXT) \
  FEATURES(ConditionalRenderingFeaturesEXT, CONDITIONAL_RENDERING_FEATURES_EXT) \
  FEATURES(CustomBorderColorFeaturesEXT, CUSTOM_BORDER_COLOR_FEATURES_EXT) \
  FEATURES(DepthClipControlFeaturesEXT, DEPTH_CLIP_CONTROL_FEATURES_EXT) \
  FEATURES(DepthClipEnableFeaturesEXT, DEPTH_CLIP_ENABLE_FEATURES_EXT) \
  FEATURES(DescriptorIndexingFeatures, DESCRIPTOR_INDEXING_FEATURES) \
  FEATURES(DynamicRenderingFeatures, DYNAMIC_RENDERING_FEATURES) \
  FEATURES(ExtendedDynamicState2FeaturesEXT, EXTENDED_DYNAMIC_STATE_2_FEATURES_EXT) \
  FEATURES(ExtendedDynamicState3FeaturesEXT, EXTENDED_DYNAMIC_STATE_3_FEATURES_EXT) \
  FEATURES(ExtendedDynamicStateFeaturesEXT, EXTENDED_DYNAMIC_STATE_FEATURES_EXT) \
  FEATURES(GraphicsPipelineLibraryFeaturesEXT, GRAPHICS_PIPELINE_LIBRARY_FEATURES_EXT) \
  FEATURES(HostQueryResetFeatures, HOST_QUERY_RESET_FEATURES) \
  FEATURES(Image2DViewOf3DFeaturesEXT, IMAGE_2D_VIEW_OF_3D_FEATURES_EXT) \
  FEATURES(ImageRobustnessFeatures, IMAGE_ROBUSTNESS_FEATURES) \
  FEATURES(ImagelessFramebufferFeatures, IMAGELESS_FRAMEBUFFER_FEATURES) \
  FEATURES(IndexTypeUint8FeaturesEXT, INDEX_TYPE_UINT8_FEATURES_EXT) \
  FEATURES(InlineUniformBlockFeatures, INLINE_UNIFORM_BLOCK_FEATURES) \
  FEATURES(LineRasterizationFeaturesEXT, LINE_RASTERIZATION_FEATURES_EXT) \
  FEATURES(Maintenance4Features, MAINTENANCE_4_FEATURES) \
  FEATURES(MemoryPriorityFeaturesEXT, MEMORY_PRIORITY_FEATURES_EXT) \
  FEATURES(MultiDrawFeaturesEXT, MULTI_DRAW_FEATURES_EXT) \
  FEATURES(MultisampledRenderToSingleSampledFeaturesEXT, MULTISAMPLED_RENDER_TO_SINGLE_SAMPLED_FEATURES_EXT) \
  FEATURES(MultiviewFeatures, MULTIVIEW_FEATURES) \
  FEATURES(NonSeamlessCubeMapFeaturesEXT, NON_SEAMLESS_CUBE_MAP_FEATURES_EXT) \
  FEATURES(PipelineCreationCacheControlFeatures, PIPELINE_CREATION_CACHE_CONTROL_FEATURES) \
  FEATURES(PipelineRobustnessFeaturesEXT, PIPELINE_ROBUSTNESS_FEATURES_EXT) \
  FEATURES(PrimitiveTopologyListRestartFeaturesEXT, PRIMITIVE_TOPOLOGY_LIST_RESTART_FEATURES_EXT) \
  FEATURES(PrimitivesGeneratedQueryFeaturesEXT, PRIMITIVES_GENERATED_QUERY_FEATURES_EXT) \
  FEATURES(PrivateDataFeatures, PRIVATE_DATA_FEATURES) \
  FEATURES(ProtectedMemoryFeatures, PROTECTED_MEMORY_FEATURES) \
  FEATURES(ProvokingVertexFeaturesEXT, PROVOKING_VERTEX_FEATURES_EXT) \
  FEATURES(RasterizationOrderAttachmentAccessFeaturesEXT, RASTERIZATION_ORDER_ATTACHMENT_ACCESS_FEATURES_EXT) \
  FEATURES(Robustness2FeaturesEXT, ROBUSTNESS_2_FEATURES_EXT) \
  FEATURES(SamplerYcbcrConversionFeatures, SAMPLER_YCBCR_CONVERSION_FEATURES) \
  FEATURES(ScalarBlockLayoutFeatures, SCALAR_BLOCK_LAYOUT_FEATURES) \
  FEATURES(SeparateDepthStencilLayoutsFeatures, SEPARATE_DEPTH_STENCIL_LAYOUTS_FEATURES) \
  FEATURES(ShaderAtomicFloat2FeaturesEXT, SHADER_ATOMIC_FLOAT_2_FEATURES_EXT) \
  FEATURES(ShaderAtomicFloatFeaturesEXT, SHADER_ATOMIC_FLOAT_FEATURES_EXT) \
  FEATURES(ShaderAtomicInt64Features, SHADER_ATOMIC_INT64_FEATURES) \
  FEATURES(ShaderClockFeaturesKHR, SHADER_CLOCK_FEATURES_KHR) \
  FEATURES(ShaderDemoteToHelperInvocationFeatures, SHADER_DEMOTE_TO_HELPER_INVOCATION_FEATURES) \
  FEATURES(ShaderDrawParametersFeatures, SHADER_DRAW_PARAMETERS_FEATURES) \
  FEATURES(ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES) \
  FEATURES(ShaderIntegerDotProductFeatures, SHADER_INTEGER_DOT_PRODUCT_FEATURES) \
  FEATURES(ShaderSubgroupExtendedTypesFeatures, SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES) \
  FEATURES(ShaderTerminateInvocationFeatures, SHADER_TERMINATE_INVOCATION_FEATURES) \
  FEATURES(SubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES) \
  FEATURES(Synchronization2Features, SYNCHRONIZATION_2_FEATURES) \
  FEATURES(TexelBufferAlignmentFeaturesEXT, TEXEL_BUFFER_ALIGNMENT_FEATURES_EXT) \
  FEATURES(TextureCompressionASTCHDRFeatures, TEXTURE_COMPRESSION_ASTC_HDR_FEATURES) \
  FEATURES(TimelineSemaphoreFeatures, TIMELINE_SEMAPHORE_FEATURES) \
  FEATURES(TransformFeedbackFeaturesEXT, TRANSFORM_FEEDBACK_FEATURES_EXT) \
  FEATURES(UniformBufferStandardLayoutFeatures, UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES) \
  FEATURES(VariablePointersFeatures, VARIABLE_POINTERS_FEATURES) \
  FEATURES(VertexAttributeDivisorFeaturesEXT, VERTEX_ATTRIBUTE_DIVISOR_FEATURES_EXT) \
  FEATURES(VertexInputDynamicStateFeaturesEXT, VERTEX_INPUT_DYNAMIC_STATE_FEATURES_EXT) \
  FEATURES(Vulkan11Features, VULKAN_1_1_FEATURES) \
  FEATURES(Vulkan12Features, VULKAN_1_2_FEATURES) \
  FEATURES(Vulkan13Features, VULKAN_1_3_FEATURES) \
  FEATURES(VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES) \
  FEATURES(ZeroInitializeWorkgroupMemoryFeatures, ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES) \
  PROPERTIES(CustomBorderColorPropertiesEXT, CUSTOM_BORDER_COLOR_PROPERTIES_EXT) \
  PROPERTIES(DepthStencilResolveProperties, DEPTH_STENCIL_RESOLVE_PROPERTIES) \
  PROPERTIES(DescriptorIndexingProperties, DESCRIPTOR_INDEXING_PROPERTIES) \
  PROPERTIES(DriverProperties, DRIVER_PROPERTIES) \
  PROPERTIES(ExtendedDynamicState3PropertiesEXT, EXTENDED_DYNAMIC_STATE_3_PROPERTIES_EXT) \
  PROPERTIES(ExternalMemoryHostPropertiesEXT, EXTERNAL_MEMORY_HOST_PROPERTIES_EXT) \
  PROPERTIES(FloatControlsProperties, FLOAT_CONTROLS_PROPERTIES) \
  PROPERTIES(GraphicsPipelineLibraryPropertiesEXT, GRAPHICS_PIPELINE_LIBRARY_PROPERTIES_EXT) \
  PROPERTIES(IDProperties, ID_PROPERTIES) \
  PROPERTIES(InlineUniformBlockProperties, INLINE_UNIFORM_BLOCK_PROPERTIES) \
  PROPERTIES(LineRasterizationPropertiesEXT, LINE_RASTERIZATION_PROPERTIES_EXT) \
  PROPERTIES(Maintenance3Properties, MAINTENANCE_3_PROPERTIES) \
  PROPERTIES(Maintenance4Properties, MAINTENANCE_4_PROPERTIES) \
  PROPERTIES(MultiDrawPropertiesEXT, MULTI_DRAW_PROPERTIES_EXT) \
  PROPERTIES(MultiviewProperties, MULTIVIEW_PROPERTIES) \
  PROPERTIES(PCIBusInfoPropertiesEXT, PCI_BUS_INFO_PROPERTIES_EXT) \
  PROPERTIES(PipelineRobustnessPropertiesEXT, PIPELINE_ROBUSTNESS_PROPERTIES_EXT) \
  PROPERTIES(PointClippingProperties, POINT_CLIPPING_PROPERTIES) \
  PROPERTIES(ProtectedMemoryProperties, PROTECTED_MEMORY_PROPERTIES) \
  PROPERTIES(ProvokingVertexPropertiesEXT, PROVOKING_VERTEX_PROPERTIES_EXT) \
  PROPERTIES(PushDescriptorPropertiesKHR, PUSH_DESCRIPTOR_PROPERTIES_KHR) \
  PROPERTIES(Robustness2PropertiesEXT, ROBUSTNESS_2_PROPERTIES_EXT) \
  PROPERTIES(SamplerFilterMinmaxProperties, SAMPLER_FILTER_MINMAX_PROPERTIES) \
  PROPERTIES(ShaderIntegerDotProductProperties, SHADER_INTEGER_DOT_PRODUCT_PROPERTIES) \
  PROPERTIES(SubgroupProperties, SUBGROUP_PROPERTIES) \
  PROPERTIES(SubgroupSizeControlProperties, SUBGROUP_SIZE_CONTROL_PROPERTIES) \
  PROPERTIES(TexelBufferAlignmentProperties, TEXEL_BUFFER_ALIGNMENT_PROPERTIES) \
  PROPERTIES(TimelineSemaphoreProperties, TIMELINE_SEMAPHORE_PROPERTIES) \
  PROPERTIES(TransformFeedbackPropertiesEXT, TRANSFORM_FEEDBACK_PROPERTIES_EXT) \
  PROPERTIES(VertexAttributeDivisorPropertiesEXT, VERTEX_ATTRIBUTE_DIVISOR_PROPERTIES_EXT) \
  PROPERTIES(Vulkan11Properties, VULKAN_1_1_PROPERTIES) \
  PROPERTIES(Vulkan12Properties, VULKAN_1_2_PROPERTIES) \
  PROPERTIES(Vulkan13Properties, VULKAN_1_3_PROPERTIES)
// clang-format on

class BlobWriter {
 public:
  explicit BlobWriter(const std::string& name) : bytes_(sizeof(weir_twin_header), 0) {
    std::memcpy(header_.magic, WEIR_TWIN_MAGIC, sizeof header_.magic);
    header_.version = WEIR_TWIN_VERSION;
    std::strncpy(header_.name, name.c_str(), sizeof header_.name - 1);
  }
  template <class T>
  void section(std::uint32_t kind, const std::vector<T>& entries) {
    section(kind, sizeof(T), static_cast<std::uint32_t>(entries.size()), entries.data());
  }
  void section(std::uint32_t kind, std::uint32_t size, std::uint32_t count, const void* entries) {
    weir_twin_section& section = header_.sections[header_.section_count++];
    section = {kind, size, append(entries, std::size_t{size} * count), count, 0};
  }
  // Fills a struct that lies in the blob; written by finish().
  void described(VkStructureType type, const void* bytes, std::uint32_t size) {
    // One whose padding a test looks at (twin_program.cpp); of the others nothing lies there.
    const bool padded = type == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT;
    const std::uint32_t used = padded ? size - 4 : size;
    structs_.push_back({static_cast<std::uint32_t>(type), size, append(bytes, size), used, 0});
  }
  std::string finish() {
    section(WEIR_TWIN_STRUCTS, structs_);
    header_.size = bytes_.size();
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    return {bytes_.begin(), bytes_.end()};
  }
  weir_twin_header& header() { return header_; }

 private:
  std::uint64_t append(const void* bytes, std::size_t size) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const std::uint64_t at = bytes_.size();
    const char* from = static_cast<const char*>(bytes);
    if (size != 0) bytes_.insert(bytes_.end(), from, from + size);
    return at;
  }
  weir_twin_header header_{};
  std::vector<char> bytes_;
  std::vector<weir_twin_struct> structs_;
};

template <class T>
void copy_struct(BlobWriter& out, VkPhysicalDevice device, VkStructureType type, bool features) {
  T answer{};
  answer.sType = type;
  if (features) {
    VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &answer, {}};
    vkGetPhysicalDeviceFeatures2(device, &all);
  } else {
    VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &answer, {}};
    vkGetPhysicalDeviceProperties2(device, &all);
  }
  answer.pNext = nullptr;
  out.described(type, &answer, sizeof answer);
}

struct Change {
  VkPhysicalDeviceProperties* properties;
  VkPhysicalDeviceMemoryProperties* memory;
  std::vector<VkQueueFamilyProperties>* families;
};

// `change` may make it another device.
template <class Edit>
std::string describe(VkPhysicalDevice device, const std::string& name, Edit change) {
  BlobWriter out(name);
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(device, &properties);
  VkPhysicalDeviceFeatures features;
  vkGetPhysicalDeviceFeatures(device, &features);
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(device, &memory);
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  change(Change{&properties, &memory, &families});
  out.section(WEIR_TWIN_PROPERTIES, std::vector{properties});
  out.section(WEIR_TWIN_FEATURES, std::vector{features});
  out.section(WEIR_TWIN_MEMORY, std::vector{memory});
  out.section(WEIR_TWIN_QUEUE_FAMILIES, families);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
  out.section(WEIR_TWIN_EXTENSIONS, extensions);
  std::vector<weir_twin_format> formats;
  for (std::uint32_t format = 1; format <= VK_FORMAT_ASTC_12x12_SRGB_BLOCK; ++format) {
    VkFormatProperties format_properties;
    vkGetPhysicalDeviceFormatProperties(device, static_cast<VkFormat>(format), &format_properties);
    formats.push_back({format, format_properties.linearTilingFeatures,
                       format_properties.optimalTilingFeatures, format_properties.bufferFeatures});
  }
  out.section(WEIR_TWIN_FORMATS, formats);
#define WEIR_FEATURES(name, type) \
  copy_struct<VkPhysicalDevice##name>(out, device, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type, true);
#define WEIR_PROPERTIES(name, type) \
  copy_struct<VkPhysicalDevice##name>(out, device, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type, false);
  WEIR_TWIN_TEST_STRUCTS(WEIR_FEATURES, WEIR_PROPERTIES)
#undef WEIR_FEATURES
#undef WEIR_PROPERTIES
  return out.finish();
}

}  // namespace weir::probes
