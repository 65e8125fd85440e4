// The least of a Vulkan compute program: a device, a queue, two kernels that do nothing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <vulkan/vulkan.h>

namespace weir::probes {

inline void check(VkResult result, const char* what) {
  if (result >= 0) return;
  std::fprintf(stderr, "%s: %d\n", what, result);
  std::_Exit(1);
}
#define CHECK(call) check(call, #call)

// void main() {} with local size (size, 1, 1): the least that can be dispatched.
inline std::vector<uint32_t> empty_shader(uint32_t size) {
  const auto op = [](uint32_t code, uint32_t words) { return code | (words << 16); };
  return {0x07230203, 0x00010000, 0,         5,          0,     // header, ids below 5
          op(17, 2),  1,                                        // OpCapability Shader
          op(14, 3),  0,          1,                            // OpMemoryModel Logical GLSL450
          op(15, 5),  5,          1,         0x6e69616d, 0,     // OpEntryPoint GLCompute %1 "main"
          op(16, 6),  1,          17,        size,       1, 1,  // OpExecutionMode %1 LocalSize
          op(19, 2),  2,          op(33, 3), 3,          2,     // %2 = void, %3 = void()
          op(54, 5),  2,          1,         0,          3, op(248, 2), 4, op(253, 1), op(56, 1)};
}

class Vulkan {
 public:
  // With `queue_count` queues of the first family, `queue` being the first of them.
  explicit Vulkan(uint32_t api = VK_API_VERSION_1_3, uint32_t queue_count = 1) {
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = api;
    const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkInstanceCreateInfo instance_info{};
    instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance_info.pApplicationInfo = &application;
    instance_info.enabledExtensionCount = 1;
    instance_info.ppEnabledExtensionNames = &extension;
    CHECK(vkCreateInstance(&instance_info, nullptr, &instance));
    uint32_t count = 1;
    CHECK(vkEnumeratePhysicalDevices(instance, &count, &physical));
    if (count == 0) check(VK_ERROR_INITIALIZATION_FAILED, "no device");
    const std::vector<float> priorities(queue_count, 1.0F);
    VkDeviceQueueCreateInfo queue_info{};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueCount = queue_count;
    queue_info.pQueuePriorities = priorities.data();
    VkPhysicalDeviceVulkan13Features f13{};
    f13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    f13.synchronization2 = VK_TRUE;
    VkPhysicalDeviceVulkan12Features f12{};
    f12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f12.pNext = &f13;
    f12.timelineSemaphore = VK_TRUE;
    VkDeviceCreateInfo device_info{};
    device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    if (api >= VK_API_VERSION_1_3) device_info.pNext = &f12;
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    CHECK(vkCreateDevice(physical, &device_info, nullptr, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
    set_name = reinterpret_cast<PFN_vkSetDebugUtilsObjectNameEXT>(
        vkGetDeviceProcAddr(device, "vkSetDebugUtilsObjectNameEXT"));
    VkPipelineLayoutCreateInfo layout_info{};
    layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    CHECK(vkCreatePipelineLayout(device, &layout_info, nullptr, &layout));
    pool = make_pool();
    add = pipeline(1, "add");
    mul = pipeline(2, "mul");
    buffer = make_buffer();
  }

  VkCommandPool make_pool() const {
    VkCommandPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    VkCommandPool handle;
    CHECK(vkCreateCommandPool(device, &info, nullptr, &handle));
    return handle;
  }

  VkPipeline pipeline(uint32_t size, const char* name, uint32_t special = 0) const {
    const std::vector<uint32_t> words = empty_shader(size);
    VkShaderModuleCreateInfo module_info{};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = words.size() * sizeof words[0];
    module_info.pCode = words.data();
    VkShaderModule module;
    CHECK(vkCreateShaderModule(device, &module_info, nullptr, &module));
    const VkSpecializationMapEntry entry{0, 0, sizeof special};
    const VkSpecializationInfo special_info{1, &entry, sizeof special, &special};
    VkComputePipelineCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.layout = layout;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    if (special != 0) info.stage.pSpecializationInfo = &special_info;
    VkPipeline handle;
    CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &handle));
    vkDestroyShaderModule(device, module, nullptr);
    if (name != nullptr) rename(handle, name);
    return handle;
  }

  void rename(VkPipeline which, const char* name) const {
    VkDebugUtilsObjectNameInfoEXT info{};
    info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT;
    info.objectType = VK_OBJECT_TYPE_PIPELINE;
    info.objectHandle = (uint64_t)which;
    info.pObjectName = name;
    CHECK(set_name(device, &info));
  }

  VkCommandBuffer begin(VkCommandPool from, bool secondary = false) const {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = from;
    info.level = secondary ? VK_COMMAND_BUFFER_LEVEL_SECONDARY : VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    VkCommandBuffer handle;
    CHECK(vkAllocateCommandBuffers(device, &info, &handle));
    begin_again(handle, secondary);
    return handle;
  }
  VkCommandBuffer begin() const { return begin(pool); }

  static void begin_again(VkCommandBuffer buffer, bool secondary = false) {
    VkCommandBufferInheritanceInfo inheritance{};
    inheritance.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO;
    VkCommandBufferBeginInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    if (secondary) info.pInheritanceInfo = &inheritance;
    CHECK(vkBeginCommandBuffer(buffer, &info));
  }

  static void dispatch(VkCommandBuffer into, VkPipeline which, int times) {
    vkCmdBindPipeline(into, VK_PIPELINE_BIND_POINT_COMPUTE, which);
    for (int i = 0; i < times; ++i) vkCmdDispatch(into, 1, 1, 1);
  }
  static void barrier(VkCommandBuffer into) {
    VkMemoryBarrier memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT;
    vkCmdPipelineBarrier(into, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }

  VkFence fence() const {
    VkFenceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence handle;
    CHECK(vkCreateFence(device, &info, nullptr, &handle));
    return handle;
  }

  void submit(const std::vector<VkCommandBuffer>& buffers, VkFence done = VK_NULL_HANDLE) const {
    submit_to(queue, buffers, done);
  }
  static void submit_to(VkQueue to, const std::vector<VkCommandBuffer>& buffers, VkFence done) {
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = static_cast<uint32_t>(buffers.size());
    info.pCommandBuffers = buffers.data();
    CHECK(vkQueueSubmit(to, buffers.empty() ? 0 : 1, &info, done));
  }
  void wait(VkFence which) const {
    CHECK(vkWaitForFences(device, 1, &which, VK_TRUE, UINT64_MAX));
    CHECK(vkResetFences(device, 1, &which));
  }
  void poll(VkFence which) const {
    while (vkGetFenceStatus(device, which) == VK_NOT_READY) std::this_thread::yield();
  }

  VkBuffer make_buffer() {
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = 4096;
    info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
    VkBuffer handle;
    CHECK(vkCreateBuffer(device, &info, nullptr, &handle));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, handle, &needs);
    VkMemoryAllocateInfo memory_info{};
    memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory_info.allocationSize = needs.size;
    CHECK(vkAllocateMemory(device, &memory_info, nullptr, &memory));
    CHECK(vkBindBufferMemory(device, handle, memory, 0));
    return handle;
  }

  void destroy() const {
    vkDestroyCommandPool(device, pool, nullptr);
    vkDestroyPipeline(device, add, nullptr);
    vkDestroyPipeline(device, mul, nullptr);
    vkDestroyPipelineLayout(device, layout, nullptr);
    vkDestroyBuffer(device, buffer, nullptr);
    vkFreeMemory(device, memory, nullptr);
    vkDestroyDevice(device, nullptr);
    vkDestroyInstance(instance, nullptr);
  }

  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkPipeline add = VK_NULL_HANDLE, mul = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  PFN_vkSetDebugUtilsObjectNameEXT set_name = nullptr;
};

}  // namespace weir::probes
