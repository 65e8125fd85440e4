// Opens the Vulkan loader and lists its devices.
#include <dlfcn.h>

#include "gate/probes/devices/devices.hpp"

namespace weir::probes {

// Opens the loader, creates an instance of at most `version`, and lists its devices, at most 64.
Result<VulkanDevices> open_vulkan(const char* program, std::uint32_t version) {
  void* loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return fail(Code::unavailable, "no Vulkan loader (libvulkan.so.1)");
  VulkanDevices out{};
  out.get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (out.get == nullptr) {
    return fail(Code::unavailable, "libvulkan.so.1 has no vkGetInstanceProcAddr");
  }
  out.call.init(out.get);
  if (out.call.vkCreateInstance == nullptr) {
    return fail(Code::unavailable, "libvulkan.so.1 has no vkCreateInstance");
  }
  if (out.call.vkEnumerateInstanceVersion == nullptr) version = VK_API_VERSION_1_0;
  const VkApplicationInfo application{
      VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, program, 0, nullptr, 0, version};
  const VkInstanceCreateInfo info{
      VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &application, 0, nullptr, 0, nullptr};
  const VkResult result = out.call.vkCreateInstance(&info, nullptr, &out.instance);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) return fail(Code::unavailable, "no Vulkan driver");
  if (result != VK_SUCCESS) return fail(Code::unavailable, "vkCreateInstance failed");
  out.call.init(vk::Instance(out.instance));
  const auto enumerate = out.call.vkEnumeratePhysicalDevices;
  std::uint32_t count = 64;
  out.devices.resize(count);
  if (enumerate == nullptr || enumerate(out.instance, &count, out.devices.data()) < 0) {
    return fail(Code::unavailable, "vkEnumeratePhysicalDevices failed");
  }
  out.devices.resize(count);
  return out;
}

}  // namespace weir::probes
