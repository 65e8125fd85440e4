// The device class of a Vulkan device: what an engine's choice of kernels depends on.
//
// The same for every machine with the same GPU and driver, and after a reboot: no UUIDs, no memory
// sizes, nothing of displays, nothing that other layers add. Shared by the layer and weir-devices.
#pragma once

#include <stdint.h>
#include <vulkan/vulkan.h>

namespace weir_probe {

// Fetched where the instance is made: later look-ups may answer with the top of the layer chain.
struct ClassFunctions {
  PFN_vkGetPhysicalDeviceProperties properties;
  PFN_vkGetPhysicalDeviceProperties2 properties2;  // null: the driver is 1.0
  PFN_vkGetPhysicalDeviceFeatures features;
  PFN_vkGetPhysicalDeviceFeatures2 features2;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties queue_families;
  PFN_vkEnumerateDeviceExtensionProperties extensions;
};

struct DeviceClass {
  uint32_t vendor;
  uint32_t device;
  uint32_t driver_id;  // 0 where the driver does not tell
  uint32_t driver_version;
  uint64_t feature_hash;
  const char* type;  // "cpu", "discrete", "integrated", "virtual" or "other"
  char name[256];
  char driver[256];  // "llvmpipe: Mesa 22.3.6 (LLVM 15.0.6)"
  char text[128];    // "vulkan-10005-0000-d-1-0123456789abcdef"
};

ClassFunctions fetch_class_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance);

// False when the functions that every driver has are missing or memory is out.
bool describe_device(const ClassFunctions& functions, VkPhysicalDevice device, DeviceClass* out);

}  // namespace weir_probe
