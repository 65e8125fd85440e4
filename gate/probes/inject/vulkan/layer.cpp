// VK_LAYER_WEIR_probe: stands between an unmodified program and the driver, passes every call on
// unchanged, and counts. Where it is entered: the loader negotiates at the bottom of this file.
#include <string.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/hooks.h"
#include "gate/probes/inject/writer/hold.h"

namespace weir_probe {

Globals g = {};

namespace {

struct Instance {
  VkInstance handle;
  PFN_vkGetInstanceProcAddr get;
  PFN_vkDestroyInstance destroy;
  uint32_t api_version;  // that the program asked for
  ClassFunctions functions;
};
Table g_instances;  // dispatch key -> Instance

constexpr Capacity k_capacity{16, 128, 4096, k_named, 0, 0, 0, 0, 2048};
constexpr const char* k_names[k_named] = {"device_memory_peak_bytes",
                                          "device_memory_steady_bytes",
                                          "host_heap_peak_bytes",
                                          "bound_buffer_peak_bytes",
                                          "allocations",
                                          "pipelines",
                                          "shader_modules"};

void in_child() {
  for (Device* device = g.devices; device != nullptr; device = device->next_device) {
    pthread_mutex_init(&device->pipelines_lock, nullptr);
    pthread_mutex_init(&device->timer.lock, nullptr);
  }
  detach_events_after_fork();
  detach_kept_after_fork();
}

}  // namespace

void ensure_file() {
  if (is_ready(g)) return;
  const Locked locked(&g.lock);
  const auto open = [] {
    open_file(&g.file, "vulkan", k_capacity);
    for (int i = 0; i < k_named; ++i) g.named[i] = add_counter(&g.file, k_names[i]);
    may_hold(&g.file);
    open_events(g.file);
    open_kept(g.file);
  };
  make_ready(&g, open, in_child, make_forked_events);
}

namespace {

// The loader puts a link for each layer into the chain of structures of the create call.
template <class Info>
Info* link_in(const void* next, VkStructureType type) {
  for (auto at = static_cast<const Info*>(next); at != nullptr;
       at = static_cast<const Info*>(at->pNext)) {
    if (at->sType == type && at->function == VK_LAYER_LINK_INFO) return const_cast<Info*>(at);
  }
  return nullptr;
}

void fetch_next(NextDevice* next, PFN_vkGetDeviceProcAddr get, VkDevice device) {
#define WEIR_FETCH(how, name, ...) \
  next->name = reinterpret_cast<PFN_vk##name>(get(device, "vk" #name));
  WEIR_INTERCEPTED_DEVICE_FUNCTIONS(WEIR_FETCH)
  WEIR_ASKED_FUNCTIONS(WEIR_FETCH)
#undef WEIR_FETCH
}

void write_device_entry(Device* device, const Instance& instance, VkPhysicalDevice physical) {
  weir_probe_device entry;
  (void)describe_device(instance.functions, physical, &entry);
  uint32_t families = 32;
  if (instance.functions.queue_families != nullptr) {
    instance.functions.queue_families(physical, &families, device->families);
  }
  if (instance.functions.memory != nullptr) {
    instance.functions.memory(physical, &device->memory_properties);
  }
  const Locked locked(&g.lock);
  device->index = add_device(&g.file, entry);
  device->entry = &g.file.devices[device->index];
  device->next_device = g.devices;
  g.devices = device;
}

VkResult create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                         VkInstance* out) {
  auto* link = link_in<VkLayerInstanceCreateInfo>(info->pNext,
                                                  VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = create(info, allocator, out);
  if (result != VK_SUCCESS) return result;
  ensure_file();
  const auto destroy = reinterpret_cast<PFN_vkDestroyInstance>(get(*out, "vkDestroyInstance"));
  auto* instance = fresh_record<Instance>(&g_instances, dispatch_key(*out));
  if (instance == nullptr) {
    destroy(*out, allocator);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  instance->handle = *out;
  instance->get = get;
  instance->destroy = destroy;
  instance->api_version = VK_API_VERSION_1_0;
  if (info->pApplicationInfo != nullptr && info->pApplicationInfo->apiVersion != 0) {
    instance->api_version = info->pApplicationInfo->apiVersion;
  }
  instance->functions = fetch_class_functions(get, *out);
  return result;
}

void destroy_instance(VkInstance handle, const VkAllocationCallbacks* allocator) {
  if (handle == VK_NULL_HANDLE) return;
  auto* instance = static_cast<Instance*>(g_instances.remove(dispatch_key(handle)));
  if (instance == nullptr) return;
  instance->destroy(handle, allocator);
  free(instance);
}

// The same device with one extension more: only where times were asked for. As the program asked
// for it when that is refused.
VkResult create_with_clock(PFN_vkCreateDevice create, VkPhysicalDevice physical,
                           const VkDeviceCreateInfo* info, const VkAllocationCallbacks* allocator,
                           VkDevice* out) {
  const uint32_t count = info->enabledExtensionCount;
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(info->ppEnabledExtensionNames[i], VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) ==
        0) {
      return create(physical, info, allocator, out);
    }
  }
  const char** names = static_cast<const char**>(calloc(count + 1, sizeof(char*)));
  if (names == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  if (count != 0) memcpy(names, info->ppEnabledExtensionNames, count * sizeof(char*));
  names[count] = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME;
  VkDeviceCreateInfo more = *info;
  more.ppEnabledExtensionNames = names;
  more.enabledExtensionCount = count + 1;
  const VkResult result = create(physical, &more, allocator, out);
  free(names);
  return result;
}

VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                       const VkAllocationCallbacks* allocator, VkDevice* out) {
  auto* link =
      link_in<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  auto* instance = g_instances.get<Instance>(dispatch_key(physical));
  if (link == nullptr || instance == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(get_instance(instance->handle, "vkCreateDevice"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  VkLayerDeviceLink* const below = link->u.pLayerInfo->pNext;
  link->u.pLayerInfo = below;
  VkResult result = VK_ERROR_EXTENSION_NOT_PRESENT;
  if (can_calibrate(instance->functions, physical))
    result = create_with_clock(create, physical, info, allocator, out);
  const bool with_clock = result == VK_SUCCESS;
  if (!with_clock) {
    link->u.pLayerInfo = below;  // a first call has moved it on, layer by layer
    result = create(physical, info, allocator, out);
  }
  if (result != VK_SUCCESS) return result;
  ensure_file();
  Device* device = static_cast<Device*>(calloc(1, sizeof(Device)));
  if (device == nullptr || !g.device_keys.insert(dispatch_key(*out), device)) {
    free(device);
    reinterpret_cast<PFN_vkDestroyDevice>(get(*out, "vkDestroyDevice"))(*out, allocator);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  device->handle = *out;
  device->key = dispatch_key(*out);
  pthread_mutex_init(&device->pipelines_lock, nullptr);
  device->get = get;
  fetch_next(&device->next, get, *out);
  write_device_entry(device, *instance, physical);
  keep_device(device, info, instance->api_version);
  start_timer(device, instance->functions, physical, with_clock);
  return result;
}

void destroy_device(VkDevice handle, const VkAllocationCallbacks* allocator) {
  if (handle == VK_NULL_HANDLE) return;
  Device* device = device_of(handle);
  stop_timer(device);
  g.device_keys.remove(device->key);
  device->next.DestroyDevice(handle, allocator);
  {
    const Locked locked(&g.lock);
    Device** at = &g.devices;
    while (*at != device) at = &(*at)->next_device;
    *at = device->next_device;
  }
  forget_memory(device);
  device->pools.each([](void* pool) { free_pool(static_cast<CommandPool*>(pool)); });
  device->queues.each(free);
  device->timelines.each(free);
  device->modules.each(free);
  Table* const tables[] = {&device->queues,  &device->fences,    &device->timelines,
                           &device->modules, &device->pipelines, &device->pools};
  for (Table* table : tables) table->free_all();
  free_pipelines(device);
  forget_kept_device(device);
  free(device);
}

void remember_queue(Device* device, VkQueue handle, uint32_t family, uint32_t index) {
  if (handle == VK_NULL_HANDLE) return;
  const Locked locked(&g.lock);
  if (queue_of(device, handle) != nullptr) return;
  auto* queue = fresh_record<Queue>(&device->queues, number(handle));
  if (queue == nullptr) return set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  queue->device = device;
  queue->handle = handle;
  queue->family = family;
  const uint32_t flags = family < 32 ? device->families[family].queueFlags : 0;
  queue->entry = &g.file.queues[add_queue(&g.file, device->index, family, index, flags)];
}

void made_queue(Device* device, uint32_t family, uint32_t index, VkQueue* out) {
  remember_queue(device, *out, family, index);
}

void made_queue2(Device* device, const VkDeviceQueueInfo2* info, VkQueue* out) {
  remember_queue(device, *out, info->queueFamilyIndex, info->queueIndex);
}

bool is_on(When when) {
  const bool events = events_on(), kernels = keeping();
  return when == When::always || (events && when != When::with_kernels) ||
         (kernels && when != When::with_events);
}

PFN_vkVoidFunction device_function(const char* name) {
  const Hooks all[] = {k_device_hooks,  k_submit_hooks,  k_sync_hooks,   k_kernel_hooks,
                       k_buffer_hooks,  k_command_hooks, k_object_hooks, k_pipeline_hooks,
                       k_binding_hooks, k_memory_hooks};
  for (const Hooks& hooks : all) {
    for (const Hook& hook : hooks) {
      if (strcmp(hook.name, name) == 0) return is_on(hook.when) ? hook.function : nullptr;
    }
  }
  return nullptr;
}

PFN_vkVoidFunction get_device_proc_addr(VkDevice handle, const char* name) {
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) return untyped(get_device_proc_addr);
  Device* device = device_of(handle);
  const PFN_vkVoidFunction below = device->get(handle, name);
  const PFN_vkVoidFunction ours = device_function(name);
  if (ours == nullptr) return below;
  // What the driver lacks stays absent; names alone are worth having even where nobody listens.
  const bool names = strcmp(name, "vkSetDebugUtilsObjectNameEXT") == 0 ||
                     strcmp(name, "vkCmdBeginDebugUtilsLabelEXT") == 0 ||
                     strcmp(name, "vkCmdEndDebugUtilsLabelEXT") == 0;
  return below != nullptr || names ? ours : nullptr;
}

PFN_vkVoidFunction get_instance_proc_addr(VkInstance handle, const char* name) {
  static const Hook hooks[] = {
      WEIR_HOOK(GetInstanceProcAddr, get_instance_proc_addr, always),
      WEIR_HOOK(GetDeviceProcAddr, get_device_proc_addr, always),
      WEIR_HOOK(CreateInstance, create_instance, always),
      WEIR_HOOK(DestroyInstance, destroy_instance, always),
      WEIR_HOOK(CreateDevice, create_device, always),
  };
  for (const Hook& hook : hooks) {
    if (strcmp(hook.name, name) == 0) return hook.function;
  }
  if (handle == VK_NULL_HANDLE) return nullptr;
  auto* instance = g_instances.get<Instance>(dispatch_key(handle));
  const PFN_vkVoidFunction below = instance == nullptr ? nullptr : instance->get(handle, name);
  const PFN_vkVoidFunction ours = device_function(name);
  return ours != nullptr && below != nullptr ? ours : below;
}

const Hook k_hooks[] = {WEIR_DEVICE_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_device_hooks = list_of(k_hooks);

}  // namespace weir_probe

extern "C" VK_LAYER_EXPORT VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  if (version == nullptr || version->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  if (version->loaderLayerInterfaceVersion < 2) {
    weir_probe::complain("vulkan", "the Vulkan loader is", "too old", 0);
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = weir_probe::get_instance_proc_addr;
  version->pfnGetDeviceProcAddr = weir_probe::get_device_proc_addr;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
