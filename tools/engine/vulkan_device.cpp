// Opens a Vulkan device, makes its kernels and reads its clocks.
#include "tools/engine/vulkan_device.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::engine {
namespace {

// Returns the items of one of Vulkan's lists: `list` is called for their number, then for them.
template <class T, class List>
std::vector<T> read_list(const List& list) {
  std::uint32_t count = 0;
  list(&count, nullptr);
  std::vector<T> all(count);
  list(&count, all.data());
  all.resize(count);
  return all;
}

template <class List>
bool has_extension(const char* name, const List& list) {
  return std::ranges::any_of(read_list<VkExtensionProperties>(list), [&](const auto& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
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
  constexpr std::array k_types{"other", "integrated", "discrete", "virtual", "cpu"};  // Vulkan's
  const auto type = static_cast<std::size_t>(properties_.deviceType);
  return k_types[type < k_types.size() ? type : 0];
}

// Creates the Vulkan instance, with the extension that names objects if there is one.
Result<void> VulkanDevice::make_instance() {
  constexpr const char* k_name = "weir-engine";
  const VkApplicationInfo app{
      VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, k_name, 0, k_name, 0, VK_API_VERSION_1_1};
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  can_name_objects_ =
      has_extension(extension, [](std::uint32_t* count, VkExtensionProperties* all) {
        vkEnumerateInstanceExtensionProperties(nullptr, count, all);
      });
  const std::uint32_t extensions = can_name_objects_ ? 1 : 0;
  const VkInstanceCreateInfo info{
      VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &app, 0, nullptr, extensions, &extension};
  return WEIR_VULKAN(vkCreateInstance, &info, nullptr, &instance_);
}

// Picks device number `index`, and its first family of queues that can compute.
Result<void> VulkanDevice::pick(unsigned index) {
  const auto devices =
      read_list<VkPhysicalDevice>([&](std::uint32_t* count, VkPhysicalDevice* all) {
        vkEnumeratePhysicalDevices(instance_, count, all);
      });
  if (index >= devices.size()) {
    return fail(Code::io, "vulkan: there is no device {} ({} found)", index, devices.size());
  }
  physical_ = devices[index];
  vkGetPhysicalDeviceProperties(physical_, &properties_);
  const auto families =
      read_list<VkQueueFamilyProperties>([&](std::uint32_t* count, VkQueueFamilyProperties* all) {
        vkGetPhysicalDeviceQueueFamilyProperties(physical_, count, all);
      });
  for (family_ = 0; family_ < families.size(); ++family_) {
    if ((families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    stamp_bits_ = families[family_].timestampValidBits;
    return {};
  }
  return fail(Code::io, "vulkan: {} has no queue for compute", name());
}

// Creates the device with one queue, a command buffer and a fence, and with calibrated clocks if it
// has them.
Result<void> VulkanDevice::make_device() {
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue{
      VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family_, 1, &priority};
  const char* extension = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME;
  has_calibrated_clocks_ =
      has_extension(extension, [&](std::uint32_t* count, VkExtensionProperties* all) {
        vkEnumerateDeviceExtensionProperties(physical_, nullptr, count, all);
      });
  const std::uint32_t extensions = has_calibrated_clocks_ ? 1 : 0;
  constexpr auto k_type = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  const VkDeviceCreateInfo info{k_type, nullptr, 0,          1,          &queue,
                                0,      nullptr, extensions, &extension, nullptr};
  WEIR_CHECK(WEIR_VULKAN(vkCreateDevice, physical_, &info, nullptr, &device_));
  vkGetDeviceQueue(device_, family_, 0, &queue_);

  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                     VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, family_};
  WEIR_CHECK(WEIR_VULKAN(vkCreateCommandPool, device_, &pool, nullptr, &command_pool_));
  const VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             nullptr, command_pool_,
                                             VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  WEIR_CHECK(WEIR_VULKAN(vkAllocateCommandBuffers, device_, &commands, &commands_));
  const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
  return WEIR_VULKAN(vkCreateFence, device_, &fence, nullptr, &fence_);
}

// Creates the layout that all kernels share: storage buffers, and a range of push constants.
Result<void> VulkanDevice::make_layouts() {
  std::array<VkDescriptorSetLayoutBinding, k_bindings> bindings{};
  for (std::uint32_t i = 0; i < k_bindings; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  const VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                            nullptr, 0, k_bindings, bindings.data()};
  WEIR_CHECK(WEIR_VULKAN(vkCreateDescriptorSetLayout, device_, &set, nullptr, &set_layout_));
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, k_push_bytes};
  const VkPipelineLayoutCreateInfo info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &set_layout_, 1, &push};
  return WEIR_VULKAN(vkCreatePipelineLayout, device_, &info, nullptr, &layout_);
}

// Makes a compute pipeline of the code, whose entry point is "main". `name` is for profilers.
Result<Kernel> VulkanDevice::make_kernel(const char* name, std::span<const std::uint32_t> spirv) {
  const VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0,
                                      spirv.size_bytes(), spirv.data()};
  VkShaderModule module = VK_NULL_HANDLE;
  WEIR_CHECK(WEIR_VULKAN(vkCreateShaderModule, device_, &code, nullptr, &module));
  const VkPipelineShaderStageCreateInfo stage{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                              nullptr,
                                              0,
                                              VK_SHADER_STAGE_COMPUTE_BIT,
                                              module,
                                              "main",
                                              nullptr};
  const VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                         nullptr,
                                         0,
                                         stage,
                                         layout_,
                                         VK_NULL_HANDLE,
                                         0};
  Kernel kernel{name, VK_NULL_HANDLE};
  const VkResult result =
      vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &kernel.pipeline);
  vkDestroyShaderModule(device_, module, nullptr);
  WEIR_CHECK(vulkan_check(result, "vkCreateComputePipelines"));
  pipelines_.push_back(kernel.pipeline);
  set_name(kernel.pipeline, name);
  return kernel;
}

// Names a pipeline, so that whoever watches the driver's calls sees names in place of hashes.
void VulkanDevice::set_name(VkPipeline pipeline, const char* name) const {
  if (!can_name_objects_) return;
  const auto call = reinterpret_cast<PFN_vkSetDebugUtilsObjectNameEXT>(
      vkGetInstanceProcAddr(instance_, "vkSetDebugUtilsObjectNameEXT"));
  if (call == nullptr) return;
  const VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                           nullptr, VK_OBJECT_TYPE_PIPELINE,
                                           reinterpret_cast<std::uint64_t>(pipeline), name};
  call(device_, &info);
}

VkQueryPool VulkanDevice::make_stamps(std::uint32_t count) {
  if (stamp_bits_ == 0 || stamps_ != VK_NULL_HANDLE) return stamps_;
  const VkQueryPoolCreateInfo info{
      VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, count, 0};
  if (vkCreateQueryPool(device_, &info, nullptr, &stamps_) != VK_SUCCESS) stamps_ = VK_NULL_HANDLE;
  return stamps_;
}

// Reads the CPU's monotonic clock and the device's at one moment; nullopt if the device cannot.
std::optional<BothClocks> VulkanDevice::both_clocks() const {
  if (!has_calibrated_clocks_) return std::nullopt;
  const auto call = reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(
      vkGetDeviceProcAddr(device_, "vkGetCalibratedTimestampsEXT"));
  if (call == nullptr) return std::nullopt;
  constexpr auto k_type = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
  const std::array infos{
      VkCalibratedTimestampInfoEXT{k_type, nullptr, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT},
      VkCalibratedTimestampInfoEXT{k_type, nullptr, VK_TIME_DOMAIN_DEVICE_EXT}};
  std::array<std::uint64_t, 2> stamps{};
  std::uint64_t deviation = 0;
  if (call(device_, 2, infos.data(), stamps.data(), &deviation) != VK_SUCCESS) return std::nullopt;
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
