// The device class of a Vulkan device: what an engine's choice of kernels depends on.
//
// The same for every machine with the same GPU and driver, and after a reboot: no UUIDs, no memory
// sizes, nothing of displays, nothing that other layers add. Shared by the layer and weir-devices.
#pragma once

#include <stdint.h>
#include <vulkan/vulkan.h>

#include "gate/probes/inject/writer/file.h"

namespace weir_probe {

// Fetched where the instance is made: later look-ups may answer with the top of the layer chain.
struct ClassFunctions {
  PFN_vkGetPhysicalDeviceProperties properties;
  PFN_vkGetPhysicalDeviceProperties2 properties2;  // null: the driver is 1.0
  PFN_vkGetPhysicalDeviceFeatures features;
  PFN_vkGetPhysicalDeviceFeatures2 features2;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties queue_families;
  PFN_vkGetPhysicalDeviceMemoryProperties memory;
  PFN_vkEnumerateDeviceExtensionProperties extensions;
  PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT time_domains;  // null: no calibrated clock
};

ClassFunctions fetch_class_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance);

// Fills all of `out` except its counters. A class reads "vulkan-10005-0000-d-1-0123456789abcdef", a
// driver "llvmpipe: Mesa 22.3.6 (LLVM 15.0.6)". False, and without a class, when functions that
// every driver has are missing or memory is out.
bool describe_device(const ClassFunctions& functions, VkPhysicalDevice device,
                     weir_probe_device* out);
// Returns the extensions of `device`, for the caller to free, and their number in `count`. Null if
// they cannot be listed.
VkExtensionProperties* list_extensions(PFN_vkEnumerateDeviceExtensionProperties enumerate,
                                       VkPhysicalDevice device, uint32_t* count);

}  // namespace weir_probe
