// The loader's entry points, and the instance: its devices are the twins that WEIR_TWIN names.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

#define WEIR_EXTENSION(name) \
  { VK_##name##_EXTENSION_NAME, VK_##name##_SPEC_VERSION }
const VkExtensionProperties k_instance_extensions[] = {
    WEIR_EXTENSION(EXT_DEBUG_UTILS),
    WEIR_EXTENSION(EXT_DEBUG_REPORT),
    WEIR_EXTENSION(KHR_DEVICE_GROUP_CREATION),
    WEIR_EXTENSION(KHR_EXTERNAL_FENCE_CAPABILITIES),
    WEIR_EXTENSION(KHR_EXTERNAL_MEMORY_CAPABILITIES),
    WEIR_EXTENSION(KHR_EXTERNAL_SEMAPHORE_CAPABILITIES),
    WEIR_EXTENSION(KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2),
    WEIR_EXTENSION(KHR_PORTABILITY_ENUMERATION),
};

constexpr uint32_t k_instance_extension_count =
    sizeof k_instance_extensions / sizeof k_instance_extensions[0];

constexpr uint32_t k_max_twins = 64;

// Opens the descriptions of twins in a list of paths with ':' between them. Those that cannot be
// opened are left out.
void open_twins(Instance* instance, const char* paths) {
  while (instance->count < k_max_twins) {
    const char* end = strchrnul(paths, ':');
    Physical* physical = &instance->physical[instance->count];
    if (end != paths && open_twin(paths, static_cast<size_t>(end - paths), &physical->twin)) {
      set_loader_magic_value(physical);
      physical->instance = instance;
      physical->index = instance->count;
      ++instance->count;
    }
    if (*end == '\0') return;
    paths = end + 1;
  }
}

const Command* find_command(const char* name) {
  for (uint32_t i = 0; i < k_command_count; ++i) {
    if (strcmp(g_commands[i].name, name) == 0) return &g_commands[i];
  }
  return nullptr;
}

}  // namespace

uint64_t make_handle() {
  static uint64_t last = uint64_t{0x7717} << 48;  // no address of a program
  return __atomic_add_fetch(&last, 16, __ATOMIC_RELAXED);
}

void refuse(bool* reported, const char* function, const char* name) {
  if (__atomic_exchange_n(reported, true, __ATOMIC_RELAXED)) return;
  char begin[128];
  snprintf(begin, sizeof begin, "%s is for compute alone: ", name);
  log_line(begin, function, " is refused");
}

}  // namespace weir_twin

using namespace weir_twin;

VkResult vkEnumerateInstanceExtensionProperties(const char*, uint32_t* count,
                                                VkExtensionProperties* out) {
  return write_list(
      k_instance_extension_count, count, out,
      [](uint32_t i, VkExtensionProperties* entry) { *entry = k_instance_extensions[i]; });
}

VkResult vkEnumerateInstanceVersion(uint32_t* version) {
  *version = VK_API_VERSION_1_3;
  return VK_SUCCESS;
}

// Makes an instance with the twins that the variable WEIR_TWIN names. Fails for an extension that
// no instance has.
VkResult vkCreateInstance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks*,
                          VkInstance* out) {
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    bool is_available = false;
    for (const VkExtensionProperties& extension : k_instance_extensions) {
      if (strcmp(extension.extensionName, info->ppEnabledExtensionNames[i]) == 0) {
        is_available = true;
      }
    }
    if (!is_available) return VK_ERROR_EXTENSION_NOT_PRESENT;
  }
  auto* instance = make_object<Instance>(out, k_max_twins * sizeof(Physical));
  if (instance == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  set_loader_magic_value(instance);
  const char* paths = weir_probe::environment(WEIR_TWIN_VARIABLE);
  if (paths == nullptr || *paths == '\0') {
    log_line("no description is named in ", WEIR_TWIN_VARIABLE, ", so there is no device");
  } else {
    open_twins(instance, paths);
  }
  return VK_SUCCESS;
}

void vkDestroyInstance(VkInstance handle, const VkAllocationCallbacks*) {
  auto* instance = object<Instance>(handle);
  if (instance == nullptr) return;
  for (uint32_t i = 0; i < instance->count; ++i) close_twin(&instance->physical[i].twin);
  free(instance);
}

VkResult vkEnumeratePhysicalDevices(VkInstance handle, uint32_t* count, VkPhysicalDevice* out) {
  auto* instance = object<Instance>(handle);
  return write_list(instance->count, count, out, [&](uint32_t i, VkPhysicalDevice* entry) {
    *entry = to_handle<VkPhysicalDevice>(&instance->physical[i]);
  });
}

VkResult vkEnumeratePhysicalDeviceGroups(VkInstance handle, uint32_t* count,
                                         VkPhysicalDeviceGroupProperties* out) {
  auto* instance = object<Instance>(handle);
  return write_list(
      instance->count, count, out, [&](uint32_t i, VkPhysicalDeviceGroupProperties* entry) {
        entry->physicalDeviceCount = 1;
        entry->physicalDevices[0] = to_handle<VkPhysicalDevice>(&instance->physical[i]);
        entry->subsetAllocation = VK_FALSE;
      });
}

PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance, const char* name) {
  const Command* entry = find_command(name);
  return entry == nullptr ? nullptr : entry->function;
}

// Looks up a function. Null if it is of a later version, or of an extension that is not enabled.
// Also notes if weir's layer counts the device.
PFN_vkVoidFunction vkGetDeviceProcAddr(VkDevice handle, const char* name) {
  auto* device = object<Device>(handle);
  if (strcmp(name, WEIR_PROBE_COUNTED_DEVICE) == 0) {
    device->is_counted = true;
    return nullptr;
  }
  const Command* entry = find_command(name);
  if (entry == nullptr || entry->level != k_device) return nullptr;
  const Twin& twin = device->physical->twin;
  if (entry->core != 0) {
    const uint32_t since = VK_MAKE_API_VERSION(0, 1, entry->core - 1U, 0);
    return twin.properties.apiVersion >= since ? entry->function : nullptr;
  }
  if (entry->extension == nullptr) return entry->function;
  const int extension = find_extension(twin, entry->extension);
  return extension >= 0 && device->enabled[extension] ? entry->function : nullptr;
}

#define WEIR_EXPORTED extern "C" __attribute__((visibility("default")))

WEIR_EXPORTED VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version) {
  if (*version < 5) return VK_ERROR_INCOMPATIBLE_DRIVER;
  *version = 5;
  return VK_SUCCESS;
}

WEIR_EXPORTED PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char* name) {
  return vkGetInstanceProcAddr(instance, name);
}

// Returns functions of physical devices only. The loader learns from it that the first argument of
// a function is a physical device.
WEIR_EXPORTED PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(VkInstance, const char* name) {
  const Command* entry = find_command(name);
  return entry != nullptr && entry->level == k_physical ? entry->function : nullptr;
}
