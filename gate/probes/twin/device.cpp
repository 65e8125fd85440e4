// Devices and queues. What the description offers can be asked for, nothing else.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

// Feature structs are VK_TRUEs and VK_FALSEs up to `size`. The padding behind an odd number of them
// holds what was on the program's stack, and is no wish.
bool offered(const void* wished, const uint8_t* have, size_t from, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(wished);
  for (size_t at = from; at + sizeof(VkBool32) <= size; at += sizeof(VkBool32)) {
    VkBool32 wish = 0, offer = 0;
    memcpy(&wish, bytes + at, sizeof wish);
    if (have != nullptr) memcpy(&offer, have + at, sizeof offer);
    if (wish == VK_TRUE && offer == VK_FALSE) return false;
  }
  return true;
}

bool features_offered(const Twin& twin, const VkDeviceCreateInfo* info) {
  const auto* have = reinterpret_cast<const uint8_t*>(&twin.features);
  if (info->pEnabledFeatures != nullptr &&
      !offered(info->pEnabledFeatures, have, 0, sizeof twin.features)) {
    return false;
  }
  for (auto* at = static_cast<const VkBaseInStructure*>(info->pNext); at != nullptr;
       at = at->pNext) {
    Described described{};
    if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) {
      if (!offered(at + 1, have, 0, sizeof twin.features)) return false;
    } else if (find_struct(twin, at->sType, &described) &&
               !offered(at, described.bytes, sizeof *at, described.used)) {
      return false;
    }
  }
  return true;
}

VkResult enable_extensions(Device* device, const VkDeviceCreateInfo* info) {
  const Section& have = device->physical->twin.extensions;
  device->enabled = static_cast<bool*>(calloc(have.count + 1, sizeof(bool)));
  if (device->enabled == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    const int found = find_extension(device->physical->twin, info->ppEnabledExtensionNames[i]);
    if (found < 0) return VK_ERROR_EXTENSION_NOT_PRESENT;
    device->enabled[found] = true;
  }
  return VK_SUCCESS;
}

VkResult make_queues(Device* device, const VkDeviceCreateInfo* info) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < info->queueCreateInfoCount; ++i) {
    const VkDeviceQueueCreateInfo& wish = info->pQueueCreateInfos[i];
    VkQueueFamilyProperties family;
    if (!queue_family(device->physical->twin, wish.queueFamilyIndex, &family) ||
        wish.queueCount > family.queueCount) {
      return VK_ERROR_INITIALIZATION_FAILED;
    }
    all += wish.queueCount;
  }
  device->queues = static_cast<Queue*>(calloc(all + 1, sizeof(Queue)));
  if (device->queues == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  for (uint32_t i = 0; i < info->queueCreateInfoCount; ++i) {
    const VkDeviceQueueCreateInfo& wish = info->pQueueCreateInfos[i];
    for (uint32_t k = 0; k < wish.queueCount; ++k) {
      Queue* queue = &device->queues[device->queue_count++];
      *queue = {{}, device, wish.flags, wish.queueFamilyIndex, k, nullptr, nullptr};
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

uint64_t ticks_of(const Twin& twin, uint64_t nanoseconds) {
  return static_cast<uint64_t>(static_cast<double>(nanoseconds) /
                               static_cast<double>(twin.properties.limits.timestampPeriod));
}

uint64_t next_ticks(Device* device) {
  const uint64_t now = ticks_of(device->physical->twin, now_nanoseconds());
  if (now > device->last_ticks) device->last_ticks = now;
  return device->last_ticks;
}

}  // namespace weir_twin

using namespace weir_twin;

VkResult vkCreateDevice(VkPhysicalDevice handle, const VkDeviceCreateInfo* info,
                        const VkAllocationCallbacks*, VkDevice* out) {
  auto* physical = object<Physical>(handle);
  if (!features_offered(physical->twin, info)) return VK_ERROR_FEATURE_NOT_PRESENT;
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
  *out = handle_of<VkDevice>(device);
  return VK_SUCCESS;
}

void vkDestroyDevice(VkDevice handle, const VkAllocationCallbacks*) {
  if (handle == VK_NULL_HANDLE) return;
  drop_pending(object<Device>(handle));
  free_device(object<Device>(handle));
}

void vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue* out) {
  *out = handle_of<VkQueue>(find_queue(object<Device>(device), 0, family, index));
}

void vkGetDeviceQueue2(VkDevice device, const VkDeviceQueueInfo2* info, VkQueue* out) {
  *out = handle_of<VkQueue>(
      find_queue(object<Device>(device), info->flags, info->queueFamilyIndex, info->queueIndex));
}

VkResult vkGetCalibratedTimestampsEXT(VkDevice handle, uint32_t count,
                                      const VkCalibratedTimestampInfoEXT* infos, uint64_t* out,
                                      uint64_t* deviation) {
  auto* device = object<Device>(handle);
  const Twin& twin = device->physical->twin;
  const uint64_t now = now_nanoseconds();
  for (uint32_t i = 0; i < count; ++i) {
    const bool ticks = infos[i].timeDomain == VK_TIME_DOMAIN_DEVICE_EXT;
    out[i] = ticks ? ticks_of(twin, now) : now;
  }
  *deviation =
      static_cast<uint64_t>(static_cast<double>(twin.properties.limits.timestampPeriod)) + 1;
  return VK_SUCCESS;
}
