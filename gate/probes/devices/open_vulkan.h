// The loader, opened, and an instance of the newest version that it has up to 1.3.
#pragma once

#include <vulkan/vulkan.h>

namespace weir_probe {

// An error in words, or null. The instance is left to the end of the process: drivers that crash do
// so on the way out.
const char* open_vulkan(PFN_vkGetInstanceProcAddr* get, VkInstance* instance);

}  // namespace weir_probe
