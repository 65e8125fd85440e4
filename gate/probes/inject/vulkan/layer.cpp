// VK_LAYER_WEIR_probe: stands between an unmodified program and the driver, passes every call on
// unchanged, and counts. The loader enters at the bottom of this file.
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
  uint32_t api_version;  // requested by the program
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

// Runs in the child of a fork: frees locks that another thread of the parent may have held.
void reset_after_fork() {
  for (Device* device = g.devices; device != nullptr; device = device->next_device) {
    pthread_mutex_init(&device->pipelines_lock, nullptr);
    pthread_mutex_init(&device->timer.lock, nullptr);
  }
  detach_events_after_fork();
  detach_capture_after_fork();
}

}  // namespace

// Creates the probe's files before the first count of a process. A forked child gets files of its
// own.
void ensure_file() {
  if (is_ready(g)) return;
  const Locked locked(&g.lock);
  const auto open = [] {
    open_file(&g.file, "vulkan", k_capacity);
    for (int i = 0; i < k_named; ++i) g.named[i] = add_counter(&g.file, k_names[i]);
    allow_holds(&g.file);
    open_events(g.file);
    open_capture(g.file);
  };
  ensure_initialized(&g, open, reset_after_fork, make_forked_events);
}

namespace {

// Returns this layer's link in the structure chain of a create call; the loader puts one in for
// each layer. Null if there is none.
template <class Info>
Info* find_layer_link(const void* next, VkStructureType type) {
  for (auto link = static_cast<const Info*>(next); link != nullptr;
       link = static_cast<const Info*>(link->pNext)) {
    if (link->sType == type && link->function == VK_LAYER_LINK_INFO) return const_cast<Info*>(link);
  }
  return nullptr;
}

// Looks up all functions of the layer below that this layer calls.
void fetch_next_functions(NextDevice* next, PFN_vkGetDeviceProcAddr get, VkDevice device) {
#define WEIR_FETCH(how, name, ...) \
  next->name = reinterpret_cast<PFN_vk##name>(get(device, "vk" #name));
  WEIR_INTERCEPTED_DEVICE_FUNCTIONS(WEIR_FETCH)
  WEIR_ASKED_FUNCTIONS(WEIR_FETCH)
#undef WEIR_FETCH
}

// Adds a device to the file and to the list of devices, with its queue families and heaps.
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

// Stands in for vkCreateInstance: calls the layer below, and keeps the functions that weir's layer
// needs.
VkResult create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                         VkInstance* out) {
  auto* link = find_layer_link<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
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
  auto* instance = replace_record<Instance>(&g_instances, dispatch_key(*out));
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

// Creates the device with VK_EXT_calibrated_timestamps added to the program's extensions. If that
// is refused, the caller creates it as the program asked.
VkResult create_calibrated_device(PFN_vkCreateDevice create, VkPhysicalDevice physical,
                                  const VkDeviceCreateInfo* info,
                                  const VkAllocationCallbacks* allocator, VkDevice* out) {
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
  VkDeviceCreateInfo extended_info = *info;
  extended_info.ppEnabledExtensionNames = names;
  extended_info.enabledExtensionCount = count + 1;
  const VkResult result = create(physical, &extended_info, allocator, out);
  free(names);
  return result;
}

// Stands in for vkCreateDevice: calls the layer below, and sets up weir's record of the device.
// Adds calibrated timestamps where times were requested and can be had.
VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                       const VkAllocationCallbacks* allocator, VkDevice* out) {
  auto* link = find_layer_link<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  auto* instance = g_instances.get<Instance>(dispatch_key(physical));
  if (link == nullptr || instance == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(get_instance(instance->handle, "vkCreateDevice"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  VkLayerDeviceLink* const below_link = link->u.pLayerInfo->pNext;
  link->u.pLayerInfo = below_link;
  VkResult result = VK_ERROR_EXTENSION_NOT_PRESENT;
  if (can_calibrate(instance->functions, physical)) {
    result = create_calibrated_device(create, physical, info, allocator, out);
  }
  const bool is_calibrated = result == VK_SUCCESS;
  if (!is_calibrated) {
    link->u.pLayerInfo = below_link;  // the first call has advanced it, layer by layer
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
  fetch_next_functions(&device->next, get, *out);
  (void)get(*out, WEIR_PROBE_COUNTED_DEVICE);
  write_device_entry(device, *instance, physical);
  capture_device(device, info, instance->api_version);
  start_timer(device, instance->functions, physical, is_calibrated);
  return result;
}

// Stands in for vkDestroyDevice: also frees every record that belongs to the device.
void destroy_device(VkDevice handle, const VkAllocationCallbacks* allocator) {
  if (handle == VK_NULL_HANDLE) return;
  Device* device = find_device(handle);
  stop_timer(device);
  g.device_keys.remove(device->key);
  device->next.DestroyDevice(handle, allocator);
  {
    const Locked locked(&g.lock);
    Device** link = &g.devices;
    while (*link != device) link = &(*link)->next_device;
    *link = device->next_device;
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
  free_device_capture(device);
  free(device);
}

// Adds a record of a queue when the program fetches it for the first time.
void add_queue_record(Device* device, VkQueue handle, uint32_t family, uint32_t index) {
  if (handle == VK_NULL_HANDLE) return;
  const Locked locked(&g.lock);
  if (find_queue(device, handle) != nullptr) return;
  auto* queue = replace_record<Queue>(&device->queues, handle_key(handle));
  if (queue == nullptr) return set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  queue->device = device;
  queue->handle = handle;
  queue->family = family;
  const uint32_t flags = family < 32 ? device->families[family].queueFlags : 0;
  queue->entry = &g.file.queues[add_queue(&g.file, device->index, family, index, flags)];
}

void note_queue(Device* device, uint32_t family, uint32_t index, VkQueue* out) {
  add_queue_record(device, *out, family, index);
}

void note_queue2(Device* device, const VkDeviceQueueInfo2* info, VkQueue* out) {
  add_queue_record(device, *out, info->queueFamilyIndex, info->queueIndex);
}

// Returns true if a hook of that condition is in use in this run.
bool is_active(When when) {
  const bool events = is_recording_events(), kernels = captures_dispatches();
  return when == When::always || (events && when != When::with_kernels) ||
         (kernels && when != When::with_events);
}

// Returns the layer's function of that name; null if it does not intercept it in this run.
PFN_vkVoidFunction find_hook(const char* name) {
  const Hooks all_hooks[] = {k_device_hooks,  k_submit_hooks,  k_sync_hooks,   k_kernel_hooks,
                             k_buffer_hooks,  k_command_hooks, k_object_hooks, k_pipeline_hooks,
                             k_binding_hooks, k_memory_hooks};
  for (const Hooks& hooks : all_hooks) {
    for (const Hook& hook : hooks) {
      if (strcmp(hook.name, name) == 0) return is_active(hook.when) ? hook.function : nullptr;
    }
  }
  return nullptr;
}

// Stands in for vkGetDeviceProcAddr: gives weir's own function where it has one and the driver
// does too.
PFN_vkVoidFunction get_device_proc_addr(VkDevice handle, const char* name) {
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) return untyped(get_device_proc_addr);
  Device* device = find_device(handle);
  const PFN_vkVoidFunction below = device->get(handle, name);
  const PFN_vkVoidFunction ours = find_hook(name);
  if (ours == nullptr) return below;
  // A function that the driver lacks stays absent, except those that give names: we use the names
  // even if nothing below does.
  const bool gives_names = strcmp(name, "vkSetDebugUtilsObjectNameEXT") == 0 ||
                           strcmp(name, "vkCmdBeginDebugUtilsLabelEXT") == 0 ||
                           strcmp(name, "vkCmdEndDebugUtilsLabelEXT") == 0;
  return below != nullptr || gives_names ? ours : nullptr;
}

// Stands in for vkGetInstanceProcAddr, which also gives device functions.
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
  const PFN_vkVoidFunction ours = find_hook(name);
  return ours != nullptr && below != nullptr ? ours : below;
}

const Hook k_hooks[] = {WEIR_DEVICE_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_device_hooks = list_of(k_hooks);

}  // namespace weir_probe

// The loader's entry: agrees on version 2 of the interface and gives it the layer's look-up
// functions.
extern "C" VK_LAYER_EXPORT VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  if (version == nullptr || version->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  if (version->loaderLayerInterfaceVersion < 2) {
    weir_probe::report_not_counting("vulkan", "the Vulkan loader is too old", "", 0);
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = weir_probe::get_instance_proc_addr;
  version->pfnGetDeviceProcAddr = weir_probe::get_device_proc_addr;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
