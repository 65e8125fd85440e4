// Describes a Vulkan device and hashes its features into a device class.
#include "gate/probes/inject/vulkan/class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/writer/file.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_recipe = 1;

// Parts of the names of extensions that do not go into the class: of displays, tools, other layers
// and the kernel's driver interface. They differ between machines whose shaders are the same.
constexpr const char* k_excluded[] = {
    "swapchain",       "surface",
    "display",         "present",
    "hdr_metadata",    "_drm",
    "pci_bus_info",    "memory_budget",
    "external_fence",  "external_semaphore",
    "debug_marker",    "debug_report",
    "debug_utils",     "validation_cache",
    "tooling_info",    "calibrated_timestamps",
    "global_priority",
};

const char* type_name(VkPhysicalDeviceType type) {
  constexpr const char* k_types[] = {"other", "integrated", "discrete", "virtual", "cpu"};
  return type >= 0 && type < 5 ? k_types[type] : k_types[0];
}

// Hashes the fields from `first` to `last` of a struct, all of 32 bits.
void hash_fields(const void* first, const void* last, Hash* hash) {
  const char* from = static_cast<const char*>(first);
  const char* end = static_cast<const char*>(last) + sizeof(VkBool32);
  hash->bytes(from, static_cast<size_t>(end - from));
}

// Hashes names and versions of the device's extensions. The hashes are added up, as each driver
// has its own order. False if the extensions cannot be listed.
bool hash_extensions(const ClassFunctions& functions, VkPhysicalDevice device, Hash* hash) {
  uint32_t total = 0;
  VkExtensionProperties* extensions = list_extensions(functions.extensions, device, &total);
  if (extensions == nullptr) return false;
  uint64_t sum = 0;
  uint64_t included = 0;
  for (uint32_t i = 0; i < total; ++i) {
    bool is_excluded = false;
    for (const char* part : k_excluded) {
      is_excluded = is_excluded || strstr(extensions[i].extensionName, part) != nullptr;
    }
    if (is_excluded) continue;
    const uint64_t version = extensions[i].specVersion;
    const uint64_t name =
        hash_bytes(k_hash_seed, extensions[i].extensionName,
                   strnlen(extensions[i].extensionName, sizeof extensions[i].extensionName));
    sum += hash_bytes(name, &version, sizeof version);
    ++included;
  }
  free(extensions);
  hash->value(sum);
  hash->value(included);
  return true;
}

// Hashes the limits that an engine's choice of kernels may depend on.
void hash_limits(const VkPhysicalDeviceLimits& limits, Hash* hash) {
  hash_fields(&limits.maxComputeSharedMemorySize, &limits.maxComputeWorkGroupSize[2], hash);
  hash->value(limits.minStorageBufferOffsetAlignment);
  hash->value(limits.maxStorageBufferRange);
  hash->value(limits.maxPushConstantsSize);
  hash->value(limits.maxBoundDescriptorSets);
  hash->value(limits.maxPerStageDescriptorStorageBuffers);
  hash->value(limits.maxDescriptorSetStorageBuffers);
}

// Hashes flags and number of queues of each queue family.
void hash_queue_families(const ClassFunctions& functions, VkPhysicalDevice device, Hash* hash) {
  VkQueueFamilyProperties families[32];
  uint32_t count = 32;
  functions.queue_families(device, &count, families);
  hash->value(count);
  for (uint32_t i = 0; i < count; ++i) {
    hash->value(families[i].queueFlags);
    hash->value(families[i].queueCount);
  }
}

template <class T>
T chained(VkStructureType type, void* next) {
  T out;
  memset(&out, 0, sizeof out);
  out.sType = type;
  out.pNext = next;
  return out;
}

// Hashes all features of Vulkan 1.0 to 1.3. Structs that are newer than the device's version stay
// zero.
void hash_features(const ClassFunctions& functions, VkPhysicalDevice device, uint32_t api_version,
                   Hash* hash) {
  auto f13 = chained<VkPhysicalDeviceVulkan13Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, nullptr);
  auto f12 = chained<VkPhysicalDeviceVulkan12Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
      api_version >= VK_API_VERSION_1_3 ? &f13 : nullptr);
  auto f11 = chained<VkPhysicalDeviceVulkan11Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &f12);
  auto f10 = chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                                api_version >= VK_API_VERSION_1_2 ? &f11 : nullptr);
  if (functions.features2 != nullptr) {
    functions.features2(device, &f10);
  } else {
    functions.features(device, &f10.features);
  }
  hash_fields(&f10.features.robustBufferAccess, &f10.features.inheritedQueries, hash);
  hash_fields(&f11.storageBuffer16BitAccess, &f11.shaderDrawParameters, hash);
  hash_fields(&f12.samplerMirrorClampToEdge, &f12.subgroupBroadcastDynamicId, hash);
  hash_fields(&f13.robustImageAccess, &f13.maintenance4, hash);
}

// Hashes those properties beyond features that shaders rely on: subgroups, rounding, integer dot
// products. Also fills in the driver's id and name.
void hash_properties(const ClassFunctions& functions, VkPhysicalDevice device, uint32_t api_version,
                     weir_probe_device* out, Hash* hash) {
  auto p13 = chained<VkPhysicalDeviceVulkan13Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES, nullptr);
  auto p12 = chained<VkPhysicalDeviceVulkan12Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES,
      api_version >= VK_API_VERSION_1_3 ? &p13 : nullptr);
  auto subgroup = chained<VkPhysicalDeviceSubgroupProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
      api_version >= VK_API_VERSION_1_2 ? &p12 : nullptr);
  auto p10 =
      chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           api_version >= VK_API_VERSION_1_1 ? &subgroup : nullptr);
  if (functions.properties2 != nullptr) functions.properties2(device, &p10);
  hash->value(subgroup.subgroupSize);
  hash->value(subgroup.supportedStages);
  hash->value(subgroup.supportedOperations);
  hash->value(subgroup.quadOperationsInAllStages);
  hash_fields(&p12.denormBehaviorIndependence, &p12.shaderRoundingModeRTZFloat64, hash);
  hash_fields(&p13.minSubgroupSize, &p13.requiredSubgroupSizeStages, hash);
  hash_fields(&p13.integerDotProduct8BitUnsignedAccelerated,
              &p13.integerDotProductAccumulatingSaturating64BitMixedSignednessAccelerated, hash);
  out->driver_id = static_cast<uint32_t>(p12.driverID);
  snprintf(out->driver, sizeof out->driver, "%.*s: %.*s",
           static_cast<int>(strnlen(p12.driverName, sizeof p12.driverName)), p12.driverName,
           static_cast<int>(strnlen(p12.driverInfo, sizeof p12.driverInfo)), p12.driverInfo);
}

}  // namespace

VkExtensionProperties* list_extensions(PFN_vkEnumerateDeviceExtensionProperties enumerate,
                                       VkPhysicalDevice device, uint32_t* count) {
  *count = 0;
  if (enumerate == nullptr || enumerate(device, nullptr, count, nullptr) != VK_SUCCESS)
    return nullptr;
  auto* list =
      static_cast<VkExtensionProperties*>(calloc(*count + 1U, sizeof(VkExtensionProperties)));
  if (list != nullptr && enumerate(device, nullptr, count, list) >= 0) return list;
  free(list);
  return nullptr;
}

// Looks up the instance functions that describe_device() needs; those not found under their names
// are looked up under former ones.
ClassFunctions fetch_class_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance) {
  ClassFunctions functions{};
  const auto fetch = [&](auto* into, const char* name) {
    if (*into == nullptr) *into = reinterpret_cast<decltype(+*into)>(get(instance, name));
  };
  fetch(&functions.properties, "vkGetPhysicalDeviceProperties");
  fetch(&functions.properties2, "vkGetPhysicalDeviceProperties2");
  fetch(&functions.properties2, "vkGetPhysicalDeviceProperties2KHR");
  fetch(&functions.features, "vkGetPhysicalDeviceFeatures");
  fetch(&functions.features2, "vkGetPhysicalDeviceFeatures2");
  fetch(&functions.features2, "vkGetPhysicalDeviceFeatures2KHR");
  fetch(&functions.queue_families, "vkGetPhysicalDeviceQueueFamilyProperties");
  fetch(&functions.memory, "vkGetPhysicalDeviceMemoryProperties");
  fetch(&functions.extensions, "vkEnumerateDeviceExtensionProperties");
  fetch(&functions.time_domains, "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
  return functions;
}

// Fills in a device's names and numbers, and a class: a text that is equal for devices with equal
// features. False, without a class, if functions are missing or memory is out.
bool describe_device(const ClassFunctions& functions, VkPhysicalDevice device,
                     weir_probe_device* out) {
  memset(out, 0, sizeof *out);
  copy_text(out->api, sizeof out->api, "vulkan");
  copy_text(out->type, sizeof out->type, "other");
  if (functions.properties == nullptr || functions.features == nullptr ||
      functions.queue_families == nullptr || functions.extensions == nullptr) {
    return false;
  }
  VkPhysicalDeviceProperties properties;
  memset(&properties, 0, sizeof properties);
  functions.properties(device, &properties);
  out->vendor = properties.vendorID;
  out->device = properties.deviceID;
  out->driver_version = properties.driverVersion;
  copy_text(out->type, sizeof out->type, type_name(properties.deviceType));
  copy_text(out->name, sizeof out->name, properties.deviceName);

  Hash hash(k_recipe);
  const uint32_t api = properties.apiVersion;
  hash.value(VK_API_VERSION_MAJOR(api));
  hash.value(VK_API_VERSION_MINOR(api));
  hash.value(properties.deviceType);
  hash_limits(properties.limits, &hash);
  hash_queue_families(functions, device, &hash);
  hash_features(functions, device, api, &hash);
  hash_properties(functions, device, api, out, &hash);
  if (!hash_extensions(functions, device, &hash)) return false;
  out->feature_hash = hash.get();
  snprintf(out->device_class, sizeof out->device_class, "vulkan-%04x-%04x-%x-%x-%016llx",
           out->vendor, out->device, out->driver_id, out->driver_version,
           static_cast<unsigned long long>(out->feature_hash));
  return true;
}

}  // namespace weir_probe
