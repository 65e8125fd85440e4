// Chains of structs, for the layer and the twins' driver.
#pragma once

#include <vulkan/vulkan.h>

namespace weir_probe {

// The first struct of `type` in a pNext chain, or null.
template <class T>
const T* in_chain(const void* next, VkStructureType type) {
  for (auto at = static_cast<const VkBaseInStructure*>(next); at != nullptr; at = at->pNext) {
    if (at->sType == type) return reinterpret_cast<const T*>(at);
  }
  return nullptr;
}

}  // namespace weir_probe
