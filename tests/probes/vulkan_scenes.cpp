// Runs one small scene of Vulkan compute work whose counts are known, for vulkan_layer_test.cpp.
//
//   vulkan_scenes NAME     exit 0: the scene was played; 1: Vulkan refused; 2: no such scene
//
// Nothing here knows of the layer. What each scene must count stands in the test beside its name.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

namespace {

void check(VkResult result, const char* what) {
  if (result >= 0) return;
  std::fprintf(stderr, "%s: %d\n", what, result);
  std::_Exit(1);
}
#define CHECK(call) check(call, #call)

// void main() {} with local size (size, 1, 1): the least that can be dispatched.
std::vector<uint32_t> empty_shader(uint32_t size) {
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
  explicit Vulkan(uint32_t api = VK_API_VERSION_1_3) {
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
    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info{};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
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
    VkCommandPool made;
    CHECK(vkCreateCommandPool(device, &info, nullptr, &made));
    return made;
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
    VkPipeline made;
    CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &made));
    vkDestroyShaderModule(device, module, nullptr);
    if (name != nullptr) rename(made, name);
    return made;
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
    VkCommandBuffer made;
    CHECK(vkAllocateCommandBuffers(device, &info, &made));
    begin_again(made, secondary);
    return made;
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
    VkFence made;
    CHECK(vkCreateFence(device, &info, nullptr, &made));
    return made;
  }

  void submit(const std::vector<VkCommandBuffer>& buffers, VkFence done = VK_NULL_HANDLE) const {
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = static_cast<uint32_t>(buffers.size());
    info.pCommandBuffers = buffers.data();
    CHECK(vkQueueSubmit(queue, buffers.empty() ? 0 : 1, &info, done));
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
    VkBuffer made;
    CHECK(vkCreateBuffer(device, &info, nullptr, &made));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, made, &needs);
    VkMemoryAllocateInfo memory_info{};
    memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory_info.allocationSize = needs.size;
    CHECK(vkAllocateMemory(device, &memory_info, nullptr, &memory));
    CHECK(vkBindBufferMemory(device, made, memory, 0));
    return made;
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

void many(uint32_t api) {
  Vulkan vk(api);
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 3);
  Vulkan::barrier(work);
  Vulkan::barrier(work);
  Vulkan::dispatch(work, vk.mul, 1);
  vkCmdFillBuffer(work, vk.buffer, 0, 1024, 0);
  const VkBufferCopy region{0, 2048, 1024};
  vkCmdCopyBuffer(work, vk.buffer, vk.buffer, 1, &region);
  const uint32_t word = 7;
  vkCmdUpdateBuffer(work, vk.buffer, 0, sizeof word, &word);
  CHECK(vkEndCommandBuffer(work));
  const VkFence done = vk.fence();
  for (int i = 0; i < 4; ++i) {
    vk.submit({work}, done);
    vk.wait(done);
  }
}

void secondary() {
  Vulkan vk;
  const VkCommandBuffer inner = vk.begin(vk.pool, true);
  Vulkan::dispatch(inner, vk.add, 2);
  Vulkan::barrier(inner);
  CHECK(vkEndCommandBuffer(inner));
  const VkCommandBuffer outer = vk.begin();
  const VkCommandBuffer twice[] = {inner, inner};
  vkCmdExecuteCommands(outer, 2, twice);
  Vulkan::dispatch(outer, vk.mul, 1);
  CHECK(vkEndCommandBuffer(outer));
  vk.submit({outer, outer});
  CHECK(vkQueueWaitIdle(vk.queue));
}

void indirect() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  vkCmdFillBuffer(work, vk.buffer, 0, 1024, 1);
  VkMemoryBarrier2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  memory.srcStageMask = memory.dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  memory.srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT;
  VkDependencyInfo dependency{};
  dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &memory;
  vkCmdPipelineBarrier2(work, &dependency);
  vkCmdBindPipeline(work, VK_PIPELINE_BIND_POINT_COMPUTE, vk.add);
  vkCmdDispatchIndirect(work, vk.buffer, 0);
  vkCmdDispatchIndirect(work, vk.buffer, 16);
  vkCmdDispatchBase(work, 0, 0, 0, 1, 1, 1);
  CHECK(vkEndCommandBuffer(work));
  VkCommandBufferSubmitInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO;
  buffer_info.commandBuffer = work;
  VkSubmitInfo2 info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
  info.commandBufferInfoCount = 1;
  info.pCommandBufferInfos = &buffer_info;
  CHECK(vkQueueSubmit2(vk.queue, 1, &info, VK_NULL_HANDLE));
  CHECK(vkDeviceWaitIdle(vk.device));
}

void timeline() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  VkSemaphore semaphore;
  CHECK(vkCreateSemaphore(vk.device, &create, nullptr, &semaphore));
  const auto submit = [&](uint64_t value) {
    VkTimelineSemaphoreSubmitInfo values{};
    values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    values.signalSemaphoreValueCount = 1;
    values.pSignalSemaphoreValues = &value;
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &values;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &work;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &semaphore;
    CHECK(vkQueueSubmit(vk.queue, 1, &info, VK_NULL_HANDLE));
  };
  const auto wait = [&](uint64_t value) {
    VkSemaphoreWaitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore;
    info.pValues = &value;
    CHECK(vkWaitSemaphores(vk.device, &info, UINT64_MAX));
  };
  submit(1);
  wait(1);  // sync 1
  submit(2);
  submit(3);
  wait(3);  // sync 2
  wait(2);  // nothing was submitted since
  submit(4);
  uint64_t value = 0;
  while (value < 4) CHECK(vkGetSemaphoreCounterValue(vk.device, semaphore, &value));  // sync 3
  CHECK(vkGetSemaphoreCounterValue(vk.device, semaphore, &value));  // tells nothing new
}

// What llama.cpp does: waits on an "almost ready" fence, then spins on the last one.
void polls() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  const VkFence almost = vk.fence();
  const VkFence last = vk.fence();
  for (int token = 0; token < 5; ++token) {
    vk.submit({work}, almost);
    vk.submit({work});
    vk.submit({}, last);  // no command buffer: a submission, yet no submit
    vk.wait(almost);      // the sync of this token
    vk.poll(last);        // the same work: no other sync
    CHECK(vkResetFences(vk.device, 1, &last));
  }
  vk.submit({work}, last);
  while (vkWaitForFences(vk.device, 1, &last, VK_TRUE, 0) == VK_TIMEOUT) std::this_thread::yield();
}

void idle() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  CHECK(vkQueueWaitIdle(vk.queue));  // a wait, but for nothing
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  CHECK(vkQueueWaitIdle(vk.queue));
  vk.submit({work});
  CHECK(vkDeviceWaitIdle(vk.device));
}

void again() {
  Vulkan vk;
  VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 50);
  CHECK(vkEndCommandBuffer(work));
  Vulkan::begin_again(work);  // forgets the 50
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  CHECK(vkResetCommandPool(vk.device, vk.pool, 0));
  Vulkan::begin_again(work);
  Vulkan::dispatch(work, vk.add, 2);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  vkFreeCommandBuffers(vk.device, vk.pool, 1, &work);
  work = vk.begin();  // likely the same handle
  Vulkan::dispatch(work, vk.mul, 4);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  vk.destroy();
}

void names() {
  Vulkan vk;
  const VkPipeline late = vk.pipeline(4, nullptr);
  const VkPipeline unnamed = vk.pipeline(8, nullptr);
  const VkPipeline same = vk.pipeline(8, nullptr);
  const VkPipeline special = vk.pipeline(8, nullptr, 1);
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 1);
  Vulkan::dispatch(work, late, 2);
  Vulkan::dispatch(work, unnamed, 3);
  Vulkan::dispatch(work, same, 4);
  Vulkan::dispatch(work, special, 5);
  CHECK(vkEndCommandBuffer(work));
  vk.rename(late, "named after recording");
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
}

// A second life after the loader closed its layers.
void twice() {
  for (int life = 0; life < 2; ++life) {
    Vulkan vk;
    const VkCommandBuffer work = vk.begin();
    Vulkan::dispatch(work, vk.add, 1 + life);
    CHECK(vkEndCommandBuffer(work));
    vk.submit({work});
    CHECK(vkQueueWaitIdle(vk.queue));
    vk.destroy();
  }
}

void threads() {
  Vulkan vk;
  std::mutex queue_lock;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&, t] {
      const VkCommandPool pool = vk.make_pool();
      const VkFence done = vk.fence();
      const std::string name = "thread" + std::to_string(t);
      const VkPipeline own = vk.pipeline(1, name.c_str());
      for (int i = 0; i < 50; ++i) {
        VkCommandBuffer work = vk.begin(pool);
        Vulkan::dispatch(work, vk.add, 2);
        Vulkan::dispatch(work, own, 1);
        Vulkan::barrier(work);
        CHECK(vkEndCommandBuffer(work));
        {
          const std::lock_guard<std::mutex> hold(queue_lock);
          vk.submit({work}, done);
        }
        vk.wait(done);
        vkFreeCommandBuffers(vk.device, pool, 1, &work);
      }
      vkDestroyPipeline(vk.device, own, nullptr);
      vkDestroyCommandPool(vk.device, pool, nullptr);
    });
  }
  for (std::thread& one : all) one.join();
}

void submit_once(int dispatches) {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, dispatches);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
}

// A child with work of its own, one without, and one that calls exec.
void forks() {
  submit_once(2);
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (child == 0) submit_once(3);
      if (child == 2) execl("/proc/self/exe", "vulkan_scenes", "exec", nullptr);
      _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) std::_Exit(1);
  }
  submit_once(4);
}

void killed() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 3);
  CHECK(vkEndCommandBuffer(work));
  const VkFence done = vk.fence();
  for (int i = 0; i < 10; ++i) {
    vk.submit({work}, done);
    vk.wait(done);
  }
  kill(getpid(), SIGKILL);
}

void open_descriptors() {
  submit_once(1);
  // The probe leaves nothing open that a child would inherit.
  int open_ones = 0;
  for (int fd = 3; fd < 256; ++fd) {
    char target[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    open_ones += std::strstr(target, ".weirprobe") != nullptr;
  }
  std::printf("%d\n", open_ones);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> scenes{
      {"many", [] { many(VK_API_VERSION_1_3); }},
      {"1.1", [] { many(VK_API_VERSION_1_1); }},
      {"1.0", [] { many(VK_API_VERSION_1_0); }},
      {"secondary", secondary},
      {"indirect", indirect},
      {"timeline", timeline},
      {"polls", polls},
      {"idle", idle},
      {"again", again},
      {"names", names},
      {"twice", twice},
      {"threads", threads},
      {"fork", forks},
      {"exec", [] { submit_once(5); }},
      {"killed", killed},
      {"descriptors", open_descriptors},
      {"made", [] { Vulkan vk; }},
  };
  const auto scene = argc == 2 ? scenes.find(argv[1]) : scenes.end();
  if (scene == scenes.end()) {
    for (const auto& [name, play] : scenes) std::fprintf(stderr, "%s\n", name.c_str());
    return 2;
  }
  scene->second();
}
