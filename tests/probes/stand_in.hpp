// A Vulkan driver that does nothing, and a loader that puts the layer in front of it: for what a
// real driver cannot be brought to do (refuse a submission, have two queues, number its handles
// from 1), and for measuring the layer's own cost.
//
// One StandIn at a time in a process, since the functions below the layer are plain functions. The
// driver may be called by many threads, as Vulkan allows; a test steers it while none is in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/state.h"

namespace weir::probes {

// The settings by which a test steers the driver.
struct StandInDriver {
  VkResult submit_result = VK_SUCCESS;
  VkResult wait_result = VK_SUCCESS;
  std::set<VkFence> done;                  // for vkGetFenceStatus
  std::uint64_t counter = 0;               // value of every timeline semaphore
  std::set<std::string> missing;           // functions that it does not have
  std::uint32_t timestamp_bits = 64;       // timestamp bits of its queues; 0: no timestamps
  std::uint32_t query_pools = UINT32_MAX;  // so many can be made, then memory is out
  VkResult query_result = VK_SUCCESS;      // result of reading times, which are 1, 2, 3, …
};

// A structure that no version of Vulkan knows: what stands behind it in a chain must be found, and
// it must reach the driver.
inline VkBaseInStructure k_stranger{static_cast<VkStructureType>(0x7ead0001), nullptr};
inline const void* behind_a_stranger(const void* next) {
  static thread_local VkBaseInStructure stranger;
  stranger = {k_stranger.sType, static_cast<const VkBaseInStructure*>(next)};
  return &stranger;
}

class StandIn {
 public:
  inline static StandInDriver driver;

  explicit StandIn(const std::string& layer, StandInDriver steered = {}) {
    driver = std::move(steered);
    last_handle = 0;
    strangers = 0;
    void* library = dlopen(layer.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fatal(dlerror());
    const auto negotiate = reinterpret_cast<PFN_vkNegotiateLoaderLayerInterfaceVersion>(
        dlsym(library, "vkNegotiateLoaderLayerInterfaceVersion"));
    VkNegotiateLayerInterface interface {};
    interface.sType = LAYER_NEGOTIATE_INTERFACE_STRUCT;
    interface.loaderLayerInterfaceVersion = 2;
    if (negotiate == nullptr || negotiate(&interface) != VK_SUCCESS) fatal("no negotiation");
    get_device_ = interface.pfnGetDeviceProcAddr;

    VkLayerInstanceLink link{nullptr, instance_function, nullptr};
    VkLayerInstanceCreateInfo chained{};
    chained.sType = VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO;
    chained.function = VK_LAYER_LINK_INFO;
    chained.u.pLayerInfo = &link;
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pNext = behind_a_stranger(&chained);
    const auto create = reinterpret_cast<PFN_vkCreateInstance>(
        interface.pfnGetInstanceProcAddr(VK_NULL_HANDLE, "vkCreateInstance"));
    if (create(&info, nullptr, &instance) != VK_SUCCESS) fatal("no instance");
    destroy_instance_ = reinterpret_cast<PFN_vkDestroyInstance>(
        interface.pfnGetInstanceProcAddr(instance, "vkDestroyInstance"));

    VkLayerDeviceLink device_link{nullptr, instance_function, device_function};
    VkLayerDeviceCreateInfo device_chained{};
    device_chained.sType = VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO;
    device_chained.function = VK_LAYER_LINK_INFO;
    device_chained.u.pLayerInfo = &device_link;
    VkDeviceCreateInfo device_info{};
    device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device_info.pNext = behind_a_stranger(&device_chained);
    const auto create_device = reinterpret_cast<PFN_vkCreateDevice>(
        interface.pfnGetInstanceProcAddr(instance, "vkCreateDevice"));
    if (create_device(reinterpret_cast<VkPhysicalDevice>(&instance_object), &device_info, nullptr,
                      &device) != VK_SUCCESS) {
      fatal("no device");
    }
#define WEIR_FETCH(how, name, ...) \
  vk.name = reinterpret_cast<PFN_vk##name>(get_device_(device, "vk" #name));
    WEIR_INTERCEPTED_DEVICE_FUNCTIONS(WEIR_FETCH)
#undef WEIR_FETCH
    for (std::uint32_t i = 0; i < 2; ++i) vk.GetDeviceQueue(device, 0, i, &queues[i]);
  }
  ~StandIn() {
    vk.DestroyDevice(device, nullptr);
    destroy_instance_(instance, nullptr);
    for (Object* object : objects) delete object;
    objects.clear();
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // A program's view: the layer's function, or null.
  [[nodiscard]] PFN_vkVoidFunction get(const char* name) const { return get_device_(device, name); }
  // Returns the function that a program would get without the layer.
  [[nodiscard]] static PFN_vkVoidFunction below(const char* name) {
    return device_function(nullptr, name);
  }

  [[nodiscard]] VkCommandPool pool() const {
    VkCommandPoolCreateInfo info{};
    VkCommandPool handle = VK_NULL_HANDLE;
    vk.CreateCommandPool(device, &info, nullptr, &handle);
    return handle;
  }
  [[nodiscard]] VkCommandBuffer begin(VkCommandPool from) const {
    VkCommandBufferAllocateInfo info{};
    info.commandPool = from;
    info.commandBufferCount = 1;
    VkCommandBuffer handle = VK_NULL_HANDLE;
    vk.AllocateCommandBuffers(device, &info, &handle);
    VkCommandBufferBeginInfo begin_info{};
    vk.BeginCommandBuffer(handle, &begin_info);
    return handle;
  }
  [[nodiscard]] VkPipeline pipeline(const std::string& name) const {
    VkComputePipelineCreateInfo info{};
    info.stage.pName = "main";
    VkPipeline handle = VK_NULL_HANDLE;
    vk.CreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &handle);
    this->name(handle, name);
    return handle;
  }
  void name(VkPipeline which, const std::string& given) const {
    VkDebugUtilsObjectNameInfoEXT naming{};
    naming.objectType = VK_OBJECT_TYPE_PIPELINE;
    naming.objectHandle = (std::uint64_t)which;
    naming.pObjectName = given.c_str();
    vk.SetDebugUtilsObjectNameEXT(device, &naming);
  }
  void dispatch(VkCommandBuffer into, VkPipeline which, int times) const {
    vk.CmdBindPipeline(into, VK_PIPELINE_BIND_POINT_COMPUTE, which);
    for (int i = 0; i < times; ++i) vk.CmdDispatch(into, 1, 1, 1);
  }
  VkResult submit(VkQueue queue, VkCommandBuffer buffer, VkFence fence = VK_NULL_HANDLE) const {
    VkSubmitInfo info{};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &buffer;
    return vk.QueueSubmit(queue, 1, &info, fence);
  }

  VkInstance instance = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queues[2] = {};
  weir_probe::NextDevice vk{};
  inline static std::atomic<std::int64_t> query_pools_alive = 0;
  inline static std::atomic<std::uint64_t> strangers = 0;  // structures unknown to it that it saw

 private:
  // A dispatchable object: the loader's pointer first.
  struct Object {
    void* key;
  };
  inline static int instance_key, device_key;
  inline static Object instance_object{&instance_key}, device_object{&device_key};
  inline static std::set<Object*> objects;  // command buffers
  static constexpr std::size_t k_queues = 4;
  inline static Object queue_objects[k_queues]{
      {&device_key}, {&device_key}, {&device_key}, {&device_key}};
  inline static std::mutex lock;  // guards `objects` and `driver.query_pools`
  inline static std::atomic<std::uint64_t> last_handle = 0;  // handles are 1, 2, 3, …
  inline static std::atomic<std::uint64_t> ticks = 0;
  inline static std::atomic<std::uint64_t> calls = 0;  // so that a call does something

  static void look_for_strangers(const void* chain) {
    for (auto at = static_cast<const VkBaseInStructure*>(chain); at != nullptr; at = at->pNext) {
      if (at->sType == k_stranger.sType) ++strangers;
    }
  }

  [[noreturn]] static void fatal(const char* what) {
    std::fprintf(stderr, "stand-in: %s\n", what);
    std::abort();
  }

  // Any function that only has to succeed.
  template <class Function>
  struct Nothing;
  template <class R, class... A>
  struct Nothing<R(VKAPI_PTR*)(A...)> {
    static VKAPI_ATTR R VKAPI_CALL call(A...) {
      // Not a step of one: that would cost more than what is measured on top of it.
      if constexpr (std::is_void_v<R>) {
        calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      }
      return R();
    }
  };
  // Any function that makes something: its last argument is where the handle goes.
  template <class Handle>
  static Handle next_handle() {
    return (Handle)(++last_handle);
  }

  static VKAPI_ATTR VkResult VKAPI_CALL make_pool(VkDevice, const VkCommandPoolCreateInfo*,
                                                  const VkAllocationCallbacks*,
                                                  VkCommandPool* out) {
    *out = next_handle<VkCommandPool>();
    return VK_SUCCESS;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL make_semaphore(VkDevice, const VkSemaphoreCreateInfo*,
                                                       const VkAllocationCallbacks*,
                                                       VkSemaphore* out) {
    *out = next_handle<VkSemaphore>();
    return VK_SUCCESS;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL make_pipelines(VkDevice, VkPipelineCache,
                                                       std::uint32_t count,
                                                       const VkComputePipelineCreateInfo* infos,
                                                       const VkAllocationCallbacks*,
                                                       VkPipeline* out) {
    for (std::uint32_t i = 0; i < count; ++i) look_for_strangers(infos[i].pNext);
    for (std::uint32_t i = 0; i < count; ++i) out[i] = next_handle<VkPipeline>();
    return VK_SUCCESS;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL make_buffers(VkDevice,
                                                     const VkCommandBufferAllocateInfo* info,
                                                     VkCommandBuffer* out) {
    const std::lock_guard<std::mutex> guard(lock);
    for (std::uint32_t i = 0; i < info->commandBufferCount; ++i) {
      out[i] = reinterpret_cast<VkCommandBuffer>(*objects.insert(new Object{&device_key}).first);
    }
    return VK_SUCCESS;
  }
  static VKAPI_ATTR void VKAPI_CALL free_buffers(VkDevice, VkCommandPool, std::uint32_t count,
                                                 const VkCommandBuffer* buffers) {
    const std::lock_guard<std::mutex> guard(lock);
    for (std::uint32_t i = 0; i < count; ++i) {
      Object* object = reinterpret_cast<Object*>(buffers[i]);
      objects.erase(object);
      delete object;
    }
  }
  static VKAPI_ATTR void VKAPI_CALL give_queue(VkDevice, std::uint32_t, std::uint32_t index,
                                               VkQueue* out) {
    *out = reinterpret_cast<VkQueue>(&queue_objects[index]);
  }
  static VKAPI_ATTR VkResult VKAPI_CALL take_submit(VkQueue, std::uint32_t, const VkSubmitInfo*,
                                                    VkFence) {
    return driver.submit_result;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL take_submit2(VkQueue, std::uint32_t count,
                                                     const VkSubmitInfo2* infos, VkFence) {
    for (std::uint32_t i = 0; i < count; ++i) look_for_strangers(infos[i].pNext);
    return driver.submit_result;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL make_query_pool(VkDevice, const VkQueryPoolCreateInfo*,
                                                        const VkAllocationCallbacks*,
                                                        VkQueryPool* out) {
    const std::lock_guard<std::mutex> guard(lock);
    if (driver.query_pools == 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    --driver.query_pools;
    ++query_pools_alive;
    *out = next_handle<VkQueryPool>();
    return VK_SUCCESS;
  }
  static VKAPI_ATTR void VKAPI_CALL end_query_pool(VkDevice, VkQueryPool,
                                                   const VkAllocationCallbacks*) {
    --query_pools_alive;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL give_times(VkDevice, VkQueryPool, std::uint32_t,
                                                   std::uint32_t count, std::size_t, void* out,
                                                   VkDeviceSize stride, VkQueryResultFlags) {
    for (std::uint32_t i = 0; i < count && driver.query_result == VK_SUCCESS; ++i) {
      const std::uint64_t tick = ++ticks;
      std::memcpy(static_cast<char*>(out) + i * stride, &tick, sizeof tick);
    }
    return driver.query_result;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL wait(VkDevice, std::uint32_t, const VkFence*, VkBool32,
                                             std::uint64_t) {
    return driver.wait_result;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL status(VkDevice, VkFence fence) {
    return driver.done.count(fence) != 0 ? VK_SUCCESS : VK_NOT_READY;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL value(VkDevice, VkSemaphore, std::uint64_t* out) {
    *out = driver.counter;
    return VK_SUCCESS;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL make_instance(const VkInstanceCreateInfo* info,
                                                      const VkAllocationCallbacks*,
                                                      VkInstance* out) {
    look_for_strangers(info->pNext);
    *out = reinterpret_cast<VkInstance>(&instance_object);
    return VK_SUCCESS;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL make_device(VkPhysicalDevice,
                                                    const VkDeviceCreateInfo* info,
                                                    const VkAllocationCallbacks*, VkDevice* out) {
    look_for_strangers(info->pNext);
    *out = reinterpret_cast<VkDevice>(&device_object);
    return VK_SUCCESS;
  }
  static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice, VkPhysicalDeviceProperties* out) {
    std::memset(out, 0, sizeof *out);
    std::strcpy(out->deviceName, "stand-in");
    out->deviceType = VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU;
    out->apiVersion = VK_API_VERSION_1_0;
    out->limits.timestampPeriod = 1;
  }
  static VKAPI_ATTR void VKAPI_CALL families(VkPhysicalDevice, std::uint32_t* count,
                                             VkQueueFamilyProperties* out) {
    *count = 1;
    if (out == nullptr) return;
    *out = {};
    out->queueFlags = VK_QUEUE_COMPUTE_BIT;
    out->queueCount = k_queues;
    out->timestampValidBits = driver.timestamp_bits;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice, const char*,
                                                   std::uint32_t* count, VkExtensionProperties*) {
    *count = 0;
    return VK_SUCCESS;
  }

  template <class Function>
  static PFN_vkVoidFunction untyped(Function function) {
    return reinterpret_cast<PFN_vkVoidFunction>(function);
  }

  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice, const char* name) {
    static const std::map<std::string, PFN_vkVoidFunction> functions = [] {
      std::map<std::string, PFN_vkVoidFunction> all;
#define WEIR_ADD(how, function, ...) \
  all["vk" #function] = untyped(&Nothing<PFN_vk##function>::call);
      WEIR_INTERCEPTED_DEVICE_FUNCTIONS(WEIR_ADD)
#undef WEIR_ADD
      all["vkCreateCommandPool"] = untyped(&make_pool);
      all["vkCreateSemaphore"] = untyped(&make_semaphore);
      all["vkCreateComputePipelines"] = untyped(&make_pipelines);
      all["vkAllocateCommandBuffers"] = untyped(&make_buffers);
      all["vkFreeCommandBuffers"] = untyped(&free_buffers);
      all["vkGetDeviceQueue"] = untyped(&give_queue);
      all["vkQueueSubmit"] = untyped(&take_submit);
      all["vkQueueSubmit2"] = untyped(&take_submit2);
      all["vkCreateQueryPool"] = untyped(&make_query_pool);
      all["vkDestroyQueryPool"] = untyped(&end_query_pool);
      all["vkGetQueryPoolResults"] = untyped(&give_times);
      all["vkCmdResetQueryPool"] = untyped(&Nothing<PFN_vkCmdResetQueryPool>::call);
      all["vkCmdWriteTimestamp"] = untyped(&Nothing<PFN_vkCmdWriteTimestamp>::call);
      all["vkWaitForFences"] = untyped(&wait);
      all["vkGetFenceStatus"] = untyped(&status);
      all["vkGetSemaphoreCounterValue"] = untyped(&value);
      return all;
    }();
    if (driver.missing.count(name) != 0) return nullptr;
    const auto match = functions.find(name);
    return match == functions.end() ? nullptr : match->second;
  }

  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance, const char* name) {
    static const std::map<std::string, PFN_vkVoidFunction> functions{
        {"vkCreateInstance", untyped(&make_instance)},
        {"vkDestroyInstance", untyped(&Nothing<PFN_vkDestroyInstance>::call)},
        {"vkCreateDevice", untyped(&make_device)},
        {"vkGetPhysicalDeviceProperties", untyped(&properties)},
        {"vkGetPhysicalDeviceFeatures", untyped(&Nothing<PFN_vkGetPhysicalDeviceFeatures>::call)},
        {"vkGetPhysicalDeviceQueueFamilyProperties", untyped(&families)},
        {"vkEnumerateDeviceExtensionProperties", untyped(&extensions)},
    };
    const auto match = functions.find(name);
    return match == functions.end() ? nullptr : match->second;
  }

  PFN_vkGetDeviceProcAddr get_device_ = nullptr;
  PFN_vkDestroyInstance destroy_instance_ = nullptr;
};

}  // namespace weir::probes
