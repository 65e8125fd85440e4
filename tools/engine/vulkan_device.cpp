#include "tools/engine/vulkan_device.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::engine {
namespace {

VkApplicationInfo application() {
  auto info = vulkan_struct<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  info.pApplicationName = info.pEngineName = "weir-engine";
  info.apiVersion = VK_API_VERSION_1_1;
  return info;
}

bool has_debug_utils() {
  std::uint32_t count = 0;
  vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vkEnumerateInstanceExtensionProperties(nullptr, &count, all.data());
  return std::ranges::any_of(all, [](const VkExtensionProperties& one) {
    return std::strcmp(one.extensionName, VK_EXT_DEBUG_UTILS_EXTENSION_NAME) == 0;
  });
}

bool has_extension(VkPhysicalDevice device, const char* name) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return std::ranges::any_of(all, [&](const VkExtensionProperties& one) {
    return std::strcmp(one.extensionName, name) == 0;
  });
}

}  // namespace

Result<void> vulkan_check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return {};
  return fail(Code::io, "vulkan: {} answers {}", call, static_cast<int>(result));
}

Result<std::unique_ptr<VulkanDevice>> VulkanDevice::open(unsigned index) {
  std::unique_ptr<VulkanDevice> device(new VulkanDevice);
  WEIR_CHECK(open_vulkan_loader());
  WEIR_CHECK(device->make_instance());
  WEIR_CHECK(device->pick(index));
  WEIR_CHECK(device->make_device());
  WEIR_CHECK(device->make_layouts());
  return device;
}

const char* VulkanDevice::type() const {
  switch (properties_.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    default:
      return "other";
  }
}

Result<void> VulkanDevice::make_instance() {
  const VkApplicationInfo app = application();
  names_ = has_debug_utils();
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  auto info = vulkan_struct<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &app;
  info.enabledExtensionCount = names_ ? 1 : 0;
  info.ppEnabledExtensionNames = &extension;
  return vulkan_check(vkCreateInstance(&info, nullptr, &instance_), "vkCreateInstance");
}

Result<void> VulkanDevice::pick(unsigned index) {
  std::uint32_t count = 0;
  vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  if (index >= count) {
    return fail(Code::io, "vulkan: there is no device {} ({} found)", index, count);
  }
  physical_ = devices[index];
  vkGetPhysicalDeviceProperties(physical_, &properties_);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  for (family_ = 0; family_ < count; ++family_) {
    if ((families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    stamp_bits_ = families[family_].timestampValidBits;
    return {};
  }
  return fail(Code::io, "vulkan: {} has no queue for compute", name());
}

Result<void> VulkanDevice::make_device() {
  const float priority = 1;
  auto queue = vulkan_struct<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = vulkan_struct<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  clocks_ = has_extension(physical_, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  const char* extension = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME;
  info.enabledExtensionCount = clocks_ ? 1 : 0;
  info.ppEnabledExtensionNames = &extension;
  WEIR_CHECK(vulkan_check(vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice"));
  vkGetDeviceQueue(device_, family_, 0, &queue_);

  auto pool = vulkan_struct<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = family_;
  WEIR_CHECK(vulkan_check(vkCreateCommandPool(device_, &pool, nullptr, &command_pool_),
                          "vkCreateCommandPool"));
  auto commands =
      vulkan_struct<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  commands.commandPool = command_pool_;
  commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands.commandBufferCount = 1;
  WEIR_CHECK(vulkan_check(vkAllocateCommandBuffers(device_, &commands, &commands_),
                          "vkAllocateCommandBuffers"));
  const auto fence = vulkan_struct<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  return vulkan_check(vkCreateFence(device_, &fence, nullptr, &fence_), "vkCreateFence");
}

Result<void> VulkanDevice::make_layouts() {
  std::array<VkDescriptorSetLayoutBinding, k_bindings> bindings{};
  for (std::uint32_t i = 0; i < k_bindings; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  auto set = vulkan_struct<VkDescriptorSetLayoutCreateInfo>(
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  set.bindingCount = k_bindings;
  set.pBindings = bindings.data();
  WEIR_CHECK(vulkan_check(vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_layout_),
                          "vkCreateDescriptorSetLayout"));
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, k_push_bytes};
  auto info =
      vulkan_struct<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &push;
  return vulkan_check(vkCreatePipelineLayout(device_, &info, nullptr, &layout_),
                      "vkCreatePipelineLayout");
}

Result<Kernel> VulkanDevice::make_kernel(const char* name, std::span<const std::uint32_t> spirv) {
  auto code = vulkan_struct<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  code.codeSize = spirv.size_bytes();
  code.pCode = spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  WEIR_CHECK(
      vulkan_check(vkCreateShaderModule(device_, &code, nullptr, &module), "vkCreateShaderModule"));
  auto info =
      vulkan_struct<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = layout_;
  Kernel kernel{name, VK_NULL_HANDLE};
  const VkResult result =
      vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &kernel.pipeline);
  vkDestroyShaderModule(device_, module, nullptr);
  WEIR_CHECK(vulkan_check(result, "vkCreateComputePipelines"));
  pipelines_.push_back(kernel.pipeline);
  set_name(kernel.pipeline, name);
  return kernel;
}

// Whoever watches the driver's calls then tells kernels by their names, not by hashes.
void VulkanDevice::set_name(VkPipeline pipeline, const char* name) const {
  if (!names_) return;
  const auto call = reinterpret_cast<PFN_vkSetDebugUtilsObjectNameEXT>(
      vkGetInstanceProcAddr(instance_, "vkSetDebugUtilsObjectNameEXT"));
  if (call == nullptr) return;
  auto info = vulkan_struct<VkDebugUtilsObjectNameInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT);
  info.objectType = VK_OBJECT_TYPE_PIPELINE;
  info.objectHandle = reinterpret_cast<std::uint64_t>(pipeline);
  info.pObjectName = name;
  call(device_, &info);
}

VkQueryPool VulkanDevice::make_stamps(std::uint32_t count) {
  if (stamp_bits_ == 0 || stamps_ != VK_NULL_HANDLE) return stamps_;
  auto info = vulkan_struct<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = count;
  if (vkCreateQueryPool(device_, &info, nullptr, &stamps_) != VK_SUCCESS) stamps_ = VK_NULL_HANDLE;
  return stamps_;
}

std::optional<BothClocks> VulkanDevice::both_clocks() const {
  if (!clocks_) return std::nullopt;
  const auto call = reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(
      vkGetDeviceProcAddr(device_, "vkGetCalibratedTimestampsEXT"));
  if (call == nullptr) return std::nullopt;
  std::array<VkCalibratedTimestampInfoEXT, 2> infos{};
  for (auto& info : infos) info.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
  infos[0].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  infos[1].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  std::array<std::uint64_t, 2> stamps{};
  std::uint64_t apart = 0;
  if (call(device_, 2, infos.data(), stamps.data(), &apart) != VK_SUCCESS) return std::nullopt;
  return BothClocks{stamps[0], stamps[1]};
}

VulkanDevice::~VulkanDevice() {
  if (device_ != VK_NULL_HANDLE) {
    vkDeviceWaitIdle(device_);
    vkDestroyQueryPool(device_, stamps_, nullptr);
    for (VkPipeline pipeline : pipelines_) vkDestroyPipeline(device_, pipeline, nullptr);
    for (VkDescriptorPool pool : set_pools_) vkDestroyDescriptorPool(device_, pool, nullptr);
    for (VkBuffer buffer : buffers_) vkDestroyBuffer(device_, buffer, nullptr);
    for (VkDeviceMemory memory : memories_) vkFreeMemory(device_, memory, nullptr);
    vkDestroyPipelineLayout(device_, layout_, nullptr);
    vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
    vkDestroyFence(device_, fence_, nullptr);
    vkDestroyCommandPool(device_, command_pool_, nullptr);
    vkDestroyDevice(device_, nullptr);
  }
  if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
}

}  // namespace weir::engine
