// Opens the Vulkan loader and lists its devices.
#include <dlfcn.h>

#include "gate/probes/devices/devices.hpp"

namespace weir::probes {

// Opens the Vulkan loader, creates an instance of at most `version`, and lists its devices, at
// most 64. An error names what is missing.
Result<VulkanDevices> open_vulkan(const char* program, std::uint32_t version) {
  void* loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return fail(Code::unavailable, "no Vulkan loader (libvulkan.so.1)");
  VulkanDevices vulkan{};
  vulkan.get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (vulkan.get == nullptr) {
    return fail(Code::unavailable, "libvulkan.so.1 has no vkGetInstanceProcAddr");
  }
  vulkan.call.init(vulkan.get);
  if (vulkan.call.vkCreateInstance == nullptr) {
    return fail(Code::unavailable, "libvulkan.so.1 has no vkCreateInstance");
  }
  if (vulkan.call.vkEnumerateInstanceVersion == nullptr) version = VK_API_VERSION_1_0;
  const VkApplicationInfo application{
      VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, program, 0, nullptr, 0, version};
  const VkInstanceCreateInfo info{
      VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &application, 0, nullptr, 0, nullptr};
  const VkResult result = vulkan.call.vkCreateInstance(&info, nullptr, &vulkan.instance);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) return fail(Code::unavailable, "no Vulkan driver");
  if (result != VK_SUCCESS) return fail(Code::unavailable, "vkCreateInstance failed");
  vulkan.call.init(vk::Instance(vulkan.instance));
  const auto enumerate = vulkan.call.vkEnumeratePhysicalDevices;
  std::uint32_t count = 64;
  vulkan.devices.resize(count);
  if (enumerate == nullptr || enumerate(vulkan.instance, &count, vulkan.devices.data()) < 0) {
    return fail(Code::unavailable, "vkEnumeratePhysicalDevices failed");
  }
  vulkan.devices.resize(count);
  return vulkan;
}

}  // namespace weir::probes
