// VK_LAYER_TEST_independent: a second count of what reaches the driver, for tests and benchmarks.
// It shares no code with weir's layer, stands below it, and adds up calls as they come through:
// what a command buffer holds counts when it is recorded, once.
//
// One driver and one queue at work is all it is made for: the functions below are the same for
// every instance and device, and a sync needs no queue. When the library goes, "name value" lines
// are appended to the file that WEIR_INDEPENDENT_COUNTS names.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

namespace {

enum Counter {
  barriers,
  dispatches,
  copies,
  timestamps,
  submits,
  waits,
  done_polls,
  syncs,
  k_counters
};
constexpr const char* k_names[k_counters] = {"barriers", "dispatches", "copies",     "timestamps",
                                             "submits",  "waits",      "done_polls", "syncs"};

// Function without "vk", what a call counts as.
#define COUNTED_FUNCTIONS(X)          \
  X(CmdPipelineBarrier, barriers)     \
  X(CmdPipelineBarrier2, barriers)    \
  X(CmdPipelineBarrier2KHR, barriers) \
  X(CmdDispatch, dispatches)          \
  X(CmdDispatchBase, dispatches)      \
  X(CmdDispatchIndirect, dispatches)  \
  X(CmdCopyBuffer, copies)            \
  X(CmdFillBuffer, copies)            \
  X(CmdUpdateBuffer, copies)          \
  X(CmdWriteTimestamp, timestamps)    \
  X(QueueSubmit, submits)             \
  X(WaitForFences, waits)             \
  X(QueueWaitIdle, waits)             \
  X(DeviceWaitIdle, waits)            \
  X(GetFenceStatus, done_polls)

struct Counts {
  std::atomic<std::uint64_t> of[k_counters] = {};
  std::atomic<bool> pending = false;

  void add(Counter which) {
    ++of[which];
    if (which == submits) pending = true;
    if ((which == waits || which == done_polls) && pending.exchange(false)) ++of[syncs];
  }
  ~Counts() {
    const char* path = std::getenv("WEIR_INDEPENDENT_COUNTS");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    for (int i = 0; i < k_counters; ++i) {
      std::fprintf(file, "%s %llu\n", k_names[i], static_cast<unsigned long long>(of[i]));
    }
    std::fclose(file);
  }
};
Counts counts;

// The functions below.
PFN_vkGetInstanceProcAddr next_get_instance;
PFN_vkGetDeviceProcAddr next_get_device;
PFN_vkCreateDevice next_create_device;
#define DECLARE_NEXT(name, counter) PFN_vk##name next_##name;
COUNTED_FUNCTIONS(DECLARE_NEXT)

// With nothing in it a submission is only a way to signal.
bool counts_at_all(Counter, ...) { return true; }
bool counts_at_all(Counter, VkQueue, std::uint32_t count, const VkSubmitInfo* infos, VkFence) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (infos[i].commandBufferCount != 0) return true;
  }
  return false;
}

template <auto* Next, Counter Which, class Function>
struct Through;
template <auto* Next, Counter Which, class R, class... A>
struct Through<Next, Which, R(VKAPI_PTR*)(A...)> {
  static VKAPI_ATTR R VKAPI_CALL call(A... arguments) {
    if constexpr (std::is_void_v<R>) {
      counts.add(Which);
      (*Next)(arguments...);
    } else {
      const R result = (*Next)(arguments...);
      if (result == VK_SUCCESS && counts_at_all(Which, arguments...)) counts.add(Which);
      return result;
    }
  }
};

template <class Info>
Info* link_in(const void* chain, VkStructureType type) {
  for (auto at = static_cast<const Info*>(chain); at != nullptr;
       at = static_cast<const Info*>(at->pNext)) {
    if (at->sType == type && at->function == VK_LAYER_LINK_INFO) return const_cast<Info*>(at);
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* out) {
  auto* link = link_in<VkLayerInstanceCreateInfo>(info->pNext,
                                                  VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  next_get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(next_get_instance(nullptr, "vkCreateInstance"));
  const VkResult result = create(info, allocator, out);
  if (result != VK_SUCCESS) return result;
  next_create_device =
      reinterpret_cast<PFN_vkCreateDevice>(next_get_instance(*out, "vkCreateDevice"));
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* out) {
  auto* link =
      link_in<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = next_create_device(physical, info, allocator, out);
  if (result != VK_SUCCESS) return result;
  next_get_device = get;
#define FETCH_NEXT(name, counter) \
  next_##name = reinterpret_cast<PFN_vk##name>(get(*out, "vk" #name));
  COUNTED_FUNCTIONS(FETCH_NEXT)
  return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice device, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance(VkInstance instance, const char* name);

PFN_vkVoidFunction ours(const char* name) {
#define RETURN_OURS(function, counter)                                \
  if (std::strcmp(name, "vk" #function) == 0) {                       \
    return reinterpret_cast<PFN_vkVoidFunction>(                      \
        &Through<&next_##function, counter, PFN_vk##function>::call); \
  }
  COUNTED_FUNCTIONS(RETURN_OURS)
  return nullptr;
}

PFN_vkVoidFunction get_device(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&get_device);
  }
  const PFN_vkVoidFunction below = next_get_device(device, name);
  const PFN_vkVoidFunction own = ours(name);
  return below != nullptr && own != nullptr ? own : below;
}

PFN_vkVoidFunction get_instance(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&get_instance);
  }
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&get_device);
  }
  if (std::strcmp(name, "vkCreateInstance") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&create_instance);
  }
  if (std::strcmp(name, "vkCreateDevice") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&create_device);
  }
  if (instance == nullptr) return nullptr;
  const PFN_vkVoidFunction below = next_get_instance(instance, name);
  const PFN_vkVoidFunction own = ours(name);
  return below != nullptr && own != nullptr ? own : below;
}

}  // namespace

extern "C" VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = get_instance;
  version->pfnGetDeviceProcAddr = get_device;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
