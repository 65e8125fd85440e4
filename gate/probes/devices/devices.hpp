// Lists and describes the devices of this machine, for weir-devices, weir-replay-vulkan and
// weir-compile-vulkan.
#pragma once

#include <vector>

#define VULKAN_HPP_DISPATCH_LOADER_DYNAMIC 1
#define VULKAN_HPP_DISABLE_ENHANCED_MODE
#define VULKAN_HPP_NO_SMART_HANDLE
#include <vulkan/vulkan.hpp>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"

namespace weir::probes {

using VulkanFunctions = VULKAN_HPP_DEFAULT_DISPATCHER_TYPE;

// The Vulkan devices and their functions. The instance is never destroyed, as some drivers crash
// then.
struct VulkanDevices {
  PFN_vkGetInstanceProcAddr get;
  VkInstance instance;
  VulkanFunctions call;
  std::vector<VkPhysicalDevice> devices;
};
// Opens Vulkan's loader at run time, and an instance of that version, or of 1.0 if the loader knows
// no other. Fails with Code::unavailable where there is no loader or driver.
[[nodiscard]] Result<VulkanDevices> open_vulkan(const char* program, std::uint32_t version);

inline constexpr const char* k_program = "weir-devices";

// Full descriptions of the Vulkan devices (gate/probes/read/twins.hpp reads them).
[[nodiscard]] Result<Json> describe_vulkan_devices();
// The sections "cuda" of the GPUs that CUDA's driver finds; empty without a driver.
[[nodiscard]] Json describe_cuda_devices();

}  // namespace weir::probes
