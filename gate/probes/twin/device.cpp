// Devices and queues. A program can enable the features and extensions that the description has.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

// Returns true if each feature in `requested` is in `available`: structs of VkBool32, from byte
// `from` to `size`. `size` excludes the padding of the program's struct, which may hold anything.
bool are_all_available(const void* requested, const uint8_t* available, size_t from, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(requested);
  for (size_t at = from; at + sizeof(VkBool32) <= size; at += sizeof(VkBool32)) {
    VkBool32 is_requested = 0, is_available = 0;
    memcpy(&is_requested, bytes + at, sizeof is_requested);
    if (available != nullptr) memcpy(&is_available, available + at, sizeof is_available);
    if (is_requested == VK_TRUE && is_available == VK_FALSE) return false;
  }
  return true;
}

// Returns true if the twin (the simulated GPU) has all features that a program wants to enable.
bool are_features_available(const Twin& twin, const VkDeviceCreateInfo* info) {
  const auto* features = reinterpret_cast<const uint8_t*>(&twin.features);
  if (info->pEnabledFeatures != nullptr &&
      !are_all_available(info->pEnabledFeatures, features, 0, sizeof twin.features)) {
    return false;
  }
  for (auto* extension = static_cast<const VkBaseInStructure*>(info->pNext); extension != nullptr;
       extension = extension->pNext) {
    if (extension->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) {
      const auto* features2 = reinterpret_cast<const VkPhysicalDeviceFeatures2*>(extension);
      if (!are_all_available(&features2->features, features, 0, sizeof twin.features)) return false;
      continue;
    }
    // Other structs have their features after the common header.
    StructValues recorded_struct{};
    if (!find_struct(twin, extension->sType, &recorded_struct)) continue;
    if (!are_all_available(extension, recorded_struct.bytes, sizeof *extension,
                           recorded_struct.byte_count)) {
      return false;
    }
  }
  return true;
}

// Marks the extensions that the program enables; fails for one that the twin does not have.
VkResult enable_extensions(Device* device, const VkDeviceCreateInfo* info) {
  const Section& extensions = device->physical->twin.extensions;
  device->enabled = static_cast<bool*>(calloc(extensions.count + 1, sizeof(bool)));
  if (device->enabled == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    const int index = find_extension(device->physical->twin, info->ppEnabledExtensionNames[i]);
    if (index < 0) return VK_ERROR_EXTENSION_NOT_PRESENT;
    device->enabled[index] = true;
  }
  return VK_SUCCESS;
}

// Makes the queues that the program requests. Fails if a family has fewer.
VkResult make_queues(Device* device, const VkDeviceCreateInfo* info) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < info->queueCreateInfoCount; ++i) {
    const VkDeviceQueueCreateInfo& request = info->pQueueCreateInfos[i];
    VkQueueFamilyProperties family;
    if (!read_queue_family(device->physical->twin, request.queueFamilyIndex, &family) ||
        request.queueCount > family.queueCount) {
      return VK_ERROR_INITIALIZATION_FAILED;
    }
    count += request.queueCount;
  }
  device->queues = static_cast<Queue*>(calloc(count + 1, sizeof(Queue)));
  if (device->queues == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  for (uint32_t i = 0; i < info->queueCreateInfoCount; ++i) {
    const VkDeviceQueueCreateInfo& request = info->pQueueCreateInfos[i];
    for (uint32_t k = 0; k < request.queueCount; ++k) {
      Queue* queue = &device->queues[device->queue_count];
      ++device->queue_count;
      *queue = {{}, device, request.flags, request.queueFamilyIndex, k, nullptr, nullptr};
      set_loader_magic_value(queue);
    }
  }
  return VK_SUCCESS;
}

void free_device(Device* device) {
  if (device->fill_file >= 0) close(device->fill_file);
  pthread_mutex_destroy(&device->lock);
  free(device->enabled);
  free(device->queues);
  free(device);
}

Queue* find_queue(Device* device, VkDeviceQueueCreateFlags flags, uint32_t family, uint32_t index) {
  for (uint32_t i = 0; i < device->queue_count; ++i) {
    Queue& queue = device->queues[i];
    if (queue.family == family && queue.index == index && queue.flags == flags) return &queue;
  }
  return nullptr;
}

}  // namespace

uint64_t to_ticks(const Twin& twin, uint64_t nanoseconds) {
  return static_cast<uint64_t>(static_cast<double>(nanoseconds) /
                               static_cast<double>(twin.properties.limits.timestampPeriod));
}

uint64_t next_ticks(Device* device) {
  const uint64_t now = to_ticks(device->physical->twin, now_nanoseconds());
  if (now > device->last_ticks) device->last_ticks = now;
  return device->last_ticks;
}

}  // namespace weir_twin

using namespace weir_twin;

// Makes a device with the requested features, extensions and queues. Fails if the twin (the
// simulated GPU) lacks some.
VkResult vkCreateDevice(VkPhysicalDevice handle, const VkDeviceCreateInfo* info,
                        const VkAllocationCallbacks*, VkDevice* out) {
  auto* physical = object<Physical>(handle);
  if (!are_features_available(physical->twin, info)) return VK_ERROR_FEATURE_NOT_PRESENT;
  auto* device = static_cast<Device*>(calloc(1, sizeof(Device)));
  if (device == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  set_loader_magic_value(device);
  device->physical = physical;
  device->fill_file = -1;
  if (const char* fill = weir_probe::environment(WEIR_TWIN_FILL_VARIABLE)) {
    device->fill = static_cast<uint8_t>(atoi(fill));
  }
  pthread_mutex_init(&device->lock, nullptr);
  VkResult result = enable_extensions(device, info);
  if (result == VK_SUCCESS) result = make_queues(device, info);
  if (result != VK_SUCCESS) {
    free_device(device);
    return result;
  }
  *out = to_handle<VkDevice>(device);
  return VK_SUCCESS;
}

void vkDestroyDevice(VkDevice handle, const VkAllocationCallbacks*) {
  if (handle == VK_NULL_HANDLE) return;
  drop_pending(object<Device>(handle));
  free_device(object<Device>(handle));
}

void vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue* out) {
  *out = to_handle<VkQueue>(find_queue(object<Device>(device), 0, family, index));
}

void vkGetDeviceQueue2(VkDevice device, const VkDeviceQueueInfo2* info, VkQueue* out) {
  *out = to_handle<VkQueue>(
      find_queue(object<Device>(device), info->flags, info->queueFamilyIndex, info->queueIndex));
}

// Gives one moment by each clock that `infos` ask for: the host's nanoseconds or the device's
// ticks.
VkResult vkGetCalibratedTimestampsEXT(VkDevice handle, uint32_t count,
                                      const VkCalibratedTimestampInfoEXT* infos, uint64_t* out,
                                      uint64_t* deviation) {
  auto* device = object<Device>(handle);
  const Twin& twin = device->physical->twin;
  const uint64_t now = now_nanoseconds();
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_device_time = infos[i].timeDomain == VK_TIME_DOMAIN_DEVICE_EXT;
    out[i] = is_device_time ? to_ticks(twin, now) : now;
  }
  *deviation =
      static_cast<uint64_t>(static_cast<double>(twin.properties.limits.timestampPeriod)) + 1;
  return VK_SUCCESS;
}
