// What a twin does not have: said once a function, with an error where one can be returned. It does
// have the functions, as the real device does: a program that asks for them finds them.
#include "gate/probes/twin/refused.h"

#include "gate/probes/twin/entries.h"

namespace weir_twin {
namespace {

VKAPI_ATTR VkResult VKAPI_CALL create_graphics(VkDevice device, VkPipelineCache cache,
                                               uint32_t count,
                                               const VkGraphicsPipelineCreateInfo* infos,
                                               const VkAllocationCallbacks* allocation,
                                               VkPipeline* out) {
  for (uint32_t i = 0; i < count; ++i) out[i] = VK_NULL_HANDLE;
  return Refusal<PFN_vkCreateGraphicsPipelines, Text("vkCreateGraphicsPipelines")>::call(
      device, cache, count, infos, allocation, out);
}

}  // namespace

Entries refused_entries() {
#define WEIR_TWIN_REFUSED_CORE(minor, name) \
  WEIR_TWIN_CORE(minor, name, (Refusal<PFN_vk##name, Text("vk" #name)>::call)),
#define WEIR_TWIN_REFUSED_EXTENSION(extension, name) \
  WEIR_TWIN_EXTENSION(extension, name, (Refusal<PFN_vk##name, Text("vk" #name)>::call)),
// Nothing was made that could be destroyed: only null comes here, which is allowed.
#define WEIR_TWIN_NEVER_MADE(minor, name) WEIR_TWIN_CORE(minor, name, Swallow<PFN_vk##name>::call)
#define WEIR_TWIN_MARKER(name) \
  WEIR_TWIN_EXTENSION("VK_EXT_debug_marker", name, Swallow<PFN_vk##name>::call)
  static const Entry entries[] = {
      WEIR_TWIN_CORE(0, CreateGraphicsPipelines, create_graphics),
      WEIR_TWIN_REFUSED(WEIR_TWIN_REFUSED_CORE, WEIR_TWIN_REFUSED_EXTENSION)
          WEIR_TWIN_NEVER_MADE(0, DestroyImage),
      WEIR_TWIN_NEVER_MADE(0, DestroyImageView),
      WEIR_TWIN_NEVER_MADE(0, DestroyFramebuffer),
      WEIR_TWIN_NEVER_MADE(0, DestroyRenderPass),
      WEIR_TWIN_NEVER_MADE(1, DestroySamplerYcbcrConversion),
      WEIR_TWIN_EXTENSION("VK_KHR_swapchain", DestroySwapchainKHR,
                          Swallow<PFN_vkDestroySwapchainKHR>::call),
      WEIR_TWIN_EXTENSION("VK_KHR_acceleration_structure", DestroyAccelerationStructureKHR,
                          Swallow<PFN_vkDestroyAccelerationStructureKHR>::call),
      WEIR_TWIN_MARKER(DebugMarkerSetObjectTagEXT),
      WEIR_TWIN_MARKER(DebugMarkerSetObjectNameEXT),
      WEIR_TWIN_MARKER(CmdDebugMarkerBeginEXT),
      WEIR_TWIN_MARKER(CmdDebugMarkerEndEXT),
      WEIR_TWIN_MARKER(CmdDebugMarkerInsertEXT),
  };
#undef WEIR_TWIN_REFUSED_CORE
#undef WEIR_TWIN_REFUSED_EXTENSION
#undef WEIR_TWIN_NEVER_MADE
#undef WEIR_TWIN_MARKER
  return all_of(entries);
}

}  // namespace weir_twin
