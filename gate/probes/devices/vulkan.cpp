#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include "gate/probes/devices/open_vulkan.h"
#include "gate/probes/devices/print.h"
#include "gate/probes/inject/vulkan/class.h"

namespace weir_probe {

const char* open_vulkan(PFN_vkGetInstanceProcAddr* out_get, VkInstance* out_instance) {
  void* loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return "no Vulkan loader (libvulkan.so.1)";
  const auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (get == nullptr) return "libvulkan.so.1 has no vkGetInstanceProcAddr";
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"));
  const auto version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
      get(VK_NULL_HANDLE, "vkEnumerateInstanceVersion"));
  if (create == nullptr) return "libvulkan.so.1 has no vkCreateInstance";
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "weir-devices";
  application.apiVersion = version == nullptr ? VK_API_VERSION_1_0 : VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  VkInstance instance = VK_NULL_HANDLE;
  const VkResult created = create(&info, nullptr, &instance);
  if (created == VK_ERROR_INCOMPATIBLE_DRIVER) return "no Vulkan driver";
  if (created != VK_SUCCESS) return "vkCreateInstance failed";
  *out_get = get;
  *out_instance = instance;
  return nullptr;
}

const char* print_vulkan_devices() {
  VkInstance instance = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get = nullptr;
  if (const char* error = open_vulkan(&get, &instance)) return error;
  const auto enumerate =
      reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(get(instance, "vkEnumeratePhysicalDevices"));
  const ClassFunctions functions = fetch_class_functions(get, instance);
  constexpr uint32_t k_most = 64;
  VkPhysicalDevice devices[k_most];
  uint32_t count = k_most;
  if (enumerate == nullptr) return "vkEnumeratePhysicalDevices is missing";
  const VkResult listed = enumerate(instance, &count, devices);
  if (listed != VK_SUCCESS && listed != VK_INCOMPLETE) return "vkEnumeratePhysicalDevices failed";
  bool first = true;
  const char* error = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    DeviceClass described;
    if (!describe_device(functions, devices[i], &described)) {
      error = "a device could not be described";
      continue;
    }
    print_device(described, first);
    first = false;
  }
  // The instance is left to the end of the process: drivers that crash do so on the way out.
  return error;
}

}  // namespace weir_probe
