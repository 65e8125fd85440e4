// The devices of this machine, for the lists and descriptions of weir-devices, and for
// weir-replay-vulkan and weir-compile-vulkan.
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

// The loader is opened at run time: a machine without one has no such devices, which is an answer.
// The instance is left to the end of the process: drivers that crash do so on the way out.
struct VulkanDevices {
  PFN_vkGetInstanceProcAddr get;
  VkInstance instance;
  VulkanFunctions call;
  std::vector<VkPhysicalDevice> devices;
};
// An instance of that version, of 1.0 where the loader knows no other. Code::unavailable where
// there is none.
[[nodiscard]] Result<VulkanDevices> open_vulkan(const char* program, std::uint32_t version);

inline constexpr const char* k_program = "weir-devices";

// Whole descriptions of them (gate/probes/read/twins.hpp reads them).
[[nodiscard]] Result<Json> describe_vulkan_devices();
// The sections "cuda" of the GPUs that CUDA's driver has here; none where there is no driver.
[[nodiscard]] Json describe_cuda_devices();

}  // namespace weir::probes
