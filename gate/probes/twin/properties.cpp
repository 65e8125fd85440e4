// Properties of a twin: those of its description, and a few that are computed.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

const Twin& get_twin(VkPhysicalDevice handle) { return object<Physical>(handle)->twin; }

// Makes a UUID from the twin's name, its index and `kind`. Descriptions have no UUIDs, but programs
// distinguish devices by them.
void make_uuid(const Physical& physical, const char* kind, uint8_t* out) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  const char* texts[] = {physical.twin.name, kind};
  for (const char* text : texts) {
    for (; *text != '\0'; ++text) hash = (hash ^ static_cast<uint8_t>(*text)) * 0x100000001b3ULL;
  }
  memcpy(out, "weirtwn", 7);
  out[7] = static_cast<uint8_t>(physical.index);
  memcpy(out + 8, &hash, sizeof hash);
}

// Makes a UUID if `out` has none.
void make_missing_uuid(const Physical& physical, const char* kind, uint8_t* out) {
  constexpr uint8_t k_none[VK_UUID_SIZE] = {};
  if (memcmp(out, k_none, sizeof k_none) == 0) make_uuid(physical, kind, out);
}

void fill_budget(const Physical& physical, VkPhysicalDeviceMemoryBudgetPropertiesEXT* budget) {
  for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; ++i) {
    const bool has_heap = i < physical.twin.memory.memoryHeapCount;
    budget->heapBudget[i] = has_heap ? physical.twin.memory.memoryHeaps[i].size : 0;
    budget->heapUsage[i] = has_heap ? __atomic_load_n(&physical.heap_used[i], __ATOMIC_RELAXED) : 0;
  }
}

// Fills in what no description has: UUIDs, places on the PCI bus, and budgets of memory.
void fill_computed(const Physical& physical, VkBaseOutStructure* fields) {
  const auto fill_ids = [&](auto* ids) {
    make_uuid(physical, "device", ids->deviceUUID);
    make_missing_uuid(physical, "driver", ids->driverUUID);
  };
  switch (fields->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES:
      return fill_ids(reinterpret_cast<VkPhysicalDeviceVulkan11Properties*>(fields));
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES:
      return fill_ids(reinterpret_cast<VkPhysicalDeviceIDProperties*>(fields));
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT: {
      auto* bus = reinterpret_cast<VkPhysicalDevicePCIBusInfoPropertiesEXT*>(fields);
      if (bus->pciDomain + bus->pciBus + bus->pciDevice + bus->pciFunction == 0) {
        bus->pciBus = physical.index + 1;
      }
      break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT:
      fill_budget(physical, reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(fields));
      break;
    default:
      break;
  }
}

// Fills in each known struct of a pNext chain with the description's values; the others get zeros.
void fill_chain(const Physical& physical, void* chain) {
  for (auto* fields = static_cast<VkBaseOutStructure*>(chain); fields != nullptr;
       fields = fields->pNext) {
    StructValues described{};
    if (find_struct(physical.twin, fields->sType, &described)) {
      auto* body = reinterpret_cast<uint8_t*>(fields) + sizeof *fields;
      const size_t size = described.size - sizeof *fields;
      if (described.bytes != nullptr) {
        memcpy(body, described.bytes + sizeof *fields, size);
      } else {
        memset(body, 0, size);
      }
    }
    fill_computed(physical, fields);
  }
}

// Copies matrices to the program's structs, whose sType and pNext stay.
VkResult copy_matrices(const Section& matrices, uint32_t* count, void* out) {
  auto* bytes = static_cast<uint8_t*>(out);
  return write_list(matrices.count, count, bytes, [&](uint32_t i, uint8_t*) {
    const size_t at = size_t{i} * matrices.entry_size;
    memcpy(bytes + at + sizeof(VkBaseInStructure), matrices.at + at + sizeof(VkBaseInStructure),
           matrices.entry_size - sizeof(VkBaseInStructure));
  });
}

}  // namespace

VkResult get_matrices(VkPhysicalDevice handle, uint32_t* count, void* out) {
  return copy_matrices(get_twin(handle).matrices, count, out);
}

VkResult get_flexible_matrices(VkPhysicalDevice handle, uint32_t* count, void* out) {
  return copy_matrices(get_twin(handle).flexible_matrices, count, out);
}

}  // namespace weir_twin

using namespace weir_twin;

void vkGetPhysicalDeviceProperties(VkPhysicalDevice handle, VkPhysicalDeviceProperties* out) {
  *out = get_twin(handle).properties;
  make_missing_uuid(*object<Physical>(handle), "cache", out->pipelineCacheUUID);
}

void vkGetPhysicalDeviceFeatures(VkPhysicalDevice handle, VkPhysicalDeviceFeatures* out) {
  *out = get_twin(handle).features;
}

void vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice handle,
                                         VkPhysicalDeviceMemoryProperties* out) {
  *out = get_twin(handle).memory;
}

// The newer functions take structs with a pNext chain.
void vkGetPhysicalDeviceProperties2(VkPhysicalDevice handle, VkPhysicalDeviceProperties2* out) {
  vkGetPhysicalDeviceProperties(handle, &out->properties);
  fill_chain(*object<Physical>(handle), out->pNext);
}

void vkGetPhysicalDeviceFeatures2(VkPhysicalDevice handle, VkPhysicalDeviceFeatures2* out) {
  vkGetPhysicalDeviceFeatures(handle, &out->features);
  fill_chain(*object<Physical>(handle), out->pNext);
}

void vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice handle,
                                          VkPhysicalDeviceMemoryProperties2* out) {
  vkGetPhysicalDeviceMemoryProperties(handle, &out->memoryProperties);
  fill_chain(*object<Physical>(handle), out->pNext);
}

void vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice handle, uint32_t* count,
                                              VkQueueFamilyProperties* out) {
  const Twin& twin = get_twin(handle);
  write_list(
      twin.queue_families.count, count, out,
      [&](uint32_t i, VkQueueFamilyProperties* entry) { read_queue_family(twin, i, entry); });
}

void vkGetPhysicalDeviceQueueFamilyProperties2(VkPhysicalDevice handle, uint32_t* count,
                                               VkQueueFamilyProperties2* out) {
  const Twin& twin = get_twin(handle);
  write_list(twin.queue_families.count, count, out,
             [&](uint32_t i, VkQueueFamilyProperties2* entry) {
               read_queue_family(twin, i, &entry->queueFamilyProperties);
             });
}

VkResult vkEnumerateDeviceExtensionProperties(VkPhysicalDevice handle, const char*, uint32_t* count,
                                              VkExtensionProperties* out) {
  const Section& extensions = get_twin(handle).extensions;
  return write_list(extensions.count, count, out, [&](uint32_t i, VkExtensionProperties* entry) {
    *entry = extensions.entry<VkExtensionProperties>(i);
    entry->extensionName[sizeof entry->extensionName - 1] = '\0';
  });
}

void vkGetPhysicalDeviceFormatProperties(VkPhysicalDevice handle, VkFormat format,
                                         VkFormatProperties* out) {
  const Section& formats = get_twin(handle).formats;
  *out = {};
  for (uint32_t i = 0; i < formats.count; ++i) {
    const auto entry = formats.entry<weir_twin_format>(i);
    if (entry.format == static_cast<uint32_t>(format)) {
      *out = {entry.linear, entry.optimal, entry.buffer};
    }
  }
}

void vkGetPhysicalDeviceFormatProperties2(VkPhysicalDevice handle, VkFormat format,
                                          VkFormatProperties2* out) {
  vkGetPhysicalDeviceFormatProperties(handle, format, &out->formatProperties);
  if (auto* wide =
          find_output<VkFormatProperties3>(out->pNext, VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_3)) {
    wide->linearTilingFeatures = out->formatProperties.linearTilingFeatures;
    wide->optimalTilingFeatures = out->formatProperties.optimalTilingFeatures;
    wide->bufferFeatures = out->formatProperties.bufferFeatures;
  }
}

VkResult vkGetPhysicalDeviceImageFormatProperties(VkPhysicalDevice, VkFormat, VkImageType,
                                                  VkImageTiling, VkImageUsageFlags,
                                                  VkImageCreateFlags,
                                                  VkImageFormatProperties* out) {
  *out = {};
  return VK_ERROR_FORMAT_NOT_SUPPORTED;
}

VkResult vkGetPhysicalDeviceImageFormatProperties2(VkPhysicalDevice,
                                                   const VkPhysicalDeviceImageFormatInfo2*,
                                                   VkImageFormatProperties2* out) {
  out->imageFormatProperties = {};
  return VK_ERROR_FORMAT_NOT_SUPPORTED;
}

void vkGetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice,
                                                 const VkPhysicalDeviceExternalBufferInfo* info,
                                                 VkExternalBufferProperties* out) {
  out->externalMemoryProperties = {};
  // A twin can import memory of the program (memory.cpp).
  if (info->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT) {
    out->externalMemoryProperties = {VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT, info->handleType,
                                     info->handleType};
  }
}

void vkGetPhysicalDeviceExternalFenceProperties(VkPhysicalDevice,
                                                const VkPhysicalDeviceExternalFenceInfo*,
                                                VkExternalFenceProperties* out) {
  out->exportFromImportedHandleTypes = 0;
  out->compatibleHandleTypes = 0;
  out->externalFenceFeatures = 0;
}

void vkGetPhysicalDeviceExternalSemaphoreProperties(VkPhysicalDevice,
                                                    const VkPhysicalDeviceExternalSemaphoreInfo*,
                                                    VkExternalSemaphoreProperties* out) {
  out->exportFromImportedHandleTypes = 0;
  out->compatibleHandleTypes = 0;
  out->externalSemaphoreFeatures = 0;
}

VkResult vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(VkPhysicalDevice, uint32_t* count,
                                                        VkTimeDomainEXT* out) {
  const VkTimeDomainEXT domains[] = {VK_TIME_DOMAIN_DEVICE_EXT, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT};
  return write_list(2, count, out,
                    [&](uint32_t i, VkTimeDomainEXT* entry) { *entry = domains[i]; });
}
