// What stands in where a description of a device says nothing. Pure.
#pragma once

#include "gate/base/json.hpp"
#include "gate/probes/read/twin_values.hpp"

namespace weir::probes {

// The least that Vulkan requires (specification, "Required Limits"), of what computing needs:
// fields of VkPhysicalDeviceLimits.
[[nodiscard]] const Json& least_limits();

// A VkPhysicalDeviceMemoryProperties that holds together: from {"heaps": [{"size", "flags"}],
// "types":
// [{"heap", "flags"}]}, else from Vulkan's own struct (either may be null), else 8 GiB of the
// device's and 16 GiB of the host's.
[[nodiscard]] Json memory_of(const Json* weir_memory, const Json* vulkan_memory,
                             Warnings& warnings);

}  // namespace weir::probes
