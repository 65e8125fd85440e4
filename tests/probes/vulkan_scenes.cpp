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

#include "tests/probes/vulkan_program.hpp"

namespace weir::probes {
namespace {

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

// Beside the 4096 bytes that every scene has: 64 KiB in two buffers, then 16 KiB more while work is
// submitted; all of it is given back before the end.
void memory() {
  Vulkan vk;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = 8192;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer parts[2];
  for (VkBuffer& part : parts) CHECK(vkCreateBuffer(vk.device, &info, nullptr, &part));
  VkMemoryAllocateInfo memory_info{};
  memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory_info.allocationSize = 64 << 10;
  VkDeviceMemory large, small;
  CHECK(vkAllocateMemory(vk.device, &memory_info, nullptr, &large));
  VkBindBufferMemoryInfo binds[2]{};
  for (int i = 0; i < 2; ++i) {
    binds[i].sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO;
    binds[i].buffer = parts[i];
    binds[i].memory = large;
    binds[i].memoryOffset = static_cast<VkDeviceSize>(i) * 8192;
  }
  CHECK(vkBindBufferMemory2(vk.device, 2, binds));
  for (VkBuffer part : parts) vkDestroyBuffer(vk.device, part, nullptr);
  vkFreeMemory(vk.device, large, nullptr);
  memory_info.allocationSize = 16 << 10;
  CHECK(vkAllocateMemory(vk.device, &memory_info, nullptr, &small));
  memory_info.allocationSize = VkDeviceSize{1} << 50;
  if (vkAllocateMemory(vk.device, &memory_info, nullptr, &large) == VK_SUCCESS) {
    check(VK_ERROR_UNKNOWN, "there is no such memory");
  }
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  vkFreeMemory(vk.device, small, nullptr);
  vk.destroy();
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

// Polls as llama.cpp does: waits on an "almost ready" fence, then spins on the last one.
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

// Names that are labels: around unnamed pipelines and a named one, one inside another.
void labels() {
  Vulkan vk;
  const VkPipeline unnamed = vk.pipeline(8, nullptr);
  const auto open = reinterpret_cast<PFN_vkCmdBeginDebugUtilsLabelEXT>(
      vkGetDeviceProcAddr(vk.device, "vkCmdBeginDebugUtilsLabelEXT"));
  const auto close = reinterpret_cast<PFN_vkCmdEndDebugUtilsLabelEXT>(
      vkGetDeviceProcAddr(vk.device, "vkCmdEndDebugUtilsLabelEXT"));
  const VkCommandBuffer work = vk.begin();
  const auto label = [&](const char* name) {
    VkDebugUtilsLabelEXT info{};
    info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT;
    info.pLabelName = name;
    open(work, &info);
  };
  Vulkan::dispatch(work, unnamed, 1);  // by its hash
  label("layer");
  vkCmdDispatch(work, 1, 1, 1);  // the bound pipeline under the label
  Vulkan::dispatch(work, vk.add, 1);
  label("norm");
  Vulkan::dispatch(work, unnamed, 3);
  close(work);
  Vulkan::dispatch(work, unnamed, 1);
  close(work);
  close(work);  // one too many: opened in an earlier buffer, as far as anybody knows
  Vulkan::dispatch(work, unnamed, 1);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
}

// Push constants of changing sizes, workgroups, each kind of barrier.
void details() {
  Vulkan vk;
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 64};
  VkPipelineLayoutCreateInfo layout_info{};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &range;
  VkPipelineLayout layout;
  CHECK(vkCreatePipelineLayout(vk.device, &layout_info, nullptr, &layout));
  const VkCommandBuffer work = vk.begin();
  const uint32_t values[16] = {1, 2, 3};
  vkCmdBindPipeline(work, VK_PIPELINE_BIND_POINT_COMPUTE, vk.add);
  vkCmdDispatch(work, 2, 3, 4);
  vkCmdPushConstants(work, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 12, values);
  vkCmdDispatch(work, 5, 1, 1);
  vkCmdPushConstants(work, layout, VK_SHADER_STAGE_COMPUTE_BIT, 12, 8, values);
  vkCmdDispatch(work, 1, 1, 1);
  Vulkan::barrier(work);
  vkCmdPipelineBarrier(work, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                       VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, nullptr, 0, nullptr, 0, nullptr);
  VkBufferMemoryBarrier of_buffer{};
  of_buffer.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER;
  of_buffer.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  of_buffer.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
  of_buffer.srcQueueFamilyIndex = of_buffer.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  of_buffer.buffer = vk.buffer;
  of_buffer.size = VK_WHOLE_SIZE;
  vkCmdFillBuffer(work, vk.buffer, 0, 512, 0);
  vkCmdPipelineBarrier(work, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0,
                       nullptr, 1, &of_buffer, 0, nullptr);
  const VkBufferCopy region{0, 2048, 256};
  vkCmdCopyBuffer(work, vk.buffer, vk.buffer, 1, &region);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  vkDestroyPipelineLayout(vk.device, layout, nullptr);
}

// Something that the validation layer must report: a copy of nothing.
void invalid() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  const VkBufferCopy region{0, 2048, 0};
  vkCmdCopyBuffer(work, vk.buffer, vk.buffer, 1, &region);
  CHECK(vkEndCommandBuffer(work));
}

// A program that asks for more than there is, and does with less.
void refused() {
  Vulkan vk;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan13Features features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  features.textureCompressionASTC_HDR = VK_TRUE;  // which lavapipe does not have
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  VkDevice more;
  if (vkCreateDevice(vk.physical, &info, nullptr, &more) != VK_ERROR_FEATURE_NOT_PRESENT) {
    std::_Exit(3);
  }
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
}

// Two fences of one queue in one wait, and a timeline semaphore that is polled until it is there.
void several() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  const VkFence fences[] = {vk.fence(), vk.fence()};
  for (const VkFence fence : fences) vk.submit({work}, fence);
  CHECK(vkWaitForFences(vk.device, 2, fences, VK_TRUE, UINT64_MAX));
}

// A buffer is freed and another one takes its queries, while older work is still waited for.
void recycled() {
  Vulkan vk;
  for (int i = 0; i < 20; ++i) {
    const VkFence first = vk.fence();
    VkCommandBuffer first_work = vk.begin();
    Vulkan::dispatch(first_work, vk.add, 2);
    CHECK(vkEndCommandBuffer(first_work));
    vk.submit({first_work}, first);
    vk.wait(first);
    vkFreeCommandBuffers(vk.device, vk.pool, 1, &first_work);
    VkCommandBuffer second_work = vk.begin();
    Vulkan::dispatch(second_work, vk.mul, 1);
    CHECK(vkEndCommandBuffer(second_work));
    vk.submit({}, first);
    vk.submit({second_work});
    vk.wait(first);  // for the work before `second_work`
    CHECK(vkQueueWaitIdle(vk.queue));
    vkFreeCommandBuffers(vk.device, vk.pool, 1, &second_work);
    vkDestroyFence(vk.device, first, nullptr);
  }
}

// More dispatches than a file of one MiB has room for.
void much() {
  Vulkan vk;
  const VkCommandBuffer work = vk.begin();
  Vulkan::dispatch(work, vk.add, 100);
  CHECK(vkEndCommandBuffer(work));
  for (int i = 0; i < 400; ++i) vk.submit({work});
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
  for (std::thread& thread : all) thread.join();
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
}  // namespace weir::probes

int main(int argc, char** argv) {
  using namespace weir::probes;
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
      {"labels", labels},
      {"details", details},
      {"much", much},
      {"invalid", invalid},
      {"refused", refused},
      {"several", several},
      {"recycled", recycled},
      {"twice", twice},
      {"threads", threads},
      {"fork", forks},
      {"exec", [] { submit_once(5); }},
      {"killed", killed},
      {"descriptors", open_descriptors},
      {"made", [] { Vulkan vk; }},
      {"memory", memory},
  };
  const auto scene = argc == 2 ? scenes.find(argv[1]) : scenes.end();
  if (scene == scenes.end()) {
    for (const auto& [name, play] : scenes) std::fprintf(stderr, "%s\n", name.c_str());
    return 2;
  }
  scene->second();
}
