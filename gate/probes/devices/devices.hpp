// The Vulkan devices of this machine, for the lists and descriptions of weir-devices.
#pragma once

#include <vector>

#define VULKAN_HPP_DISPATCH_LOADER_DYNAMIC 1
#define VULKAN_HPP_DISABLE_ENHANCED_MODE
#define VULKAN_HPP_NO_SMART_HANDLE
#include <vulkan/vulkan.hpp>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"

namespace weir::probes {

// The instance, of the newest version up to 1.3 that the loader has, is left to the end of the
// process: drivers that crash do so on the way out.
struct VulkanDevices {
  PFN_vkGetInstanceProcAddr get;
  VkInstance instance;
  VULKAN_HPP_DEFAULT_DISPATCHER_TYPE call;
  std::vector<VkPhysicalDevice> devices;
};
[[nodiscard]] Result<VulkanDevices> open_vulkan();

// Whole descriptions of them (gate/probes/read/twins.hpp reads them).
[[nodiscard]] Result<Json> describe_vulkan_devices();

}  // namespace weir::probes
