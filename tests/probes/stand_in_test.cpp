// The layer in front of a driver that does as it is told: what lavapipe cannot be brought to do.
#include "tests/probes/stand_in.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace stand_in_test {

using testing::ElementsAre;
using testing::HasSubstr;

// The library stays loaded and writes one file a process: each test reads the part that its own
// device added.
class VulkanLayerOverAStandIn : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    setenv("WEIR_PROBE_DIR", folder_->path().c_str(), 1);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  // Syncs (or another counter) of the two queues of the newest device.
  static std::vector<std::uint64_t> of_queues(weir_probe_counter which) {
    const ProbeFile file = read();
    std::vector<std::uint64_t> out;
    for (const ProbeQueue& queue : file.queues) {
      if (queue.device + 1 == file.devices.size()) out.push_back(queue.counters[which]);
    }
    return out;
  }
  static std::uint64_t of_device(weir_probe_counter which) {
    return read().devices.back().counters[which];
  }
  static ProbeFile read() {
    const std::vector<ProbeFile> files = probe_files(folder_->path());
    EXPECT_EQ(files.size(), 1U);
    return files.empty() ? ProbeFile{} : files[0];
  }
  static std::uint64_t dispatches_of(const std::string& kernel) {
    const ProbeFile file = read();
    std::uint64_t sum = 0;
    for (const ProbeKernel& entry : file.kernels) {
      const bool here = entry.device + 1 == file.devices.size() || entry.name == "(other)";
      if (here && entry.name == kernel) sum += entry.dispatches;
    }
    return sum;
  }

  static inline Folder* folder_ = nullptr;
  StandIn layer_{WEIR_BINARY_DIR "/lib/weir/probes/libVkLayer_weir_probe.so"};
};

const VkFence k_first = (VkFence)101;
const VkFence k_second = (VkFence)102;

TEST_F(VulkanLayerOverAStandIn, TakesBackWhatARefusedSubmissionWouldHaveSent) {
  const VkCommandBuffer work = layer_.begin(layer_.pool());
  layer_.dispatch(work, layer_.pipeline("refused"), 5);
  StandIn::driver.submit_result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  EXPECT_EQ(layer_.submit(layer_.queues[0], work), VK_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(layer_.vk.QueueWaitIdle(layer_.queues[0]), VK_SUCCESS);
  EXPECT_THAT(of_queues(WEIR_COUNT_DISPATCHES), ElementsAre(0, 0));
  EXPECT_THAT(of_queues(WEIR_COUNT_SUBMITS), ElementsAre(0, 0));
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(0, 0));
  EXPECT_EQ(dispatches_of("refused"), 0U);
  StandIn::driver.submit_result = VK_SUCCESS;
  EXPECT_EQ(layer_.submit(layer_.queues[0], work), VK_SUCCESS);
  EXPECT_THAT(of_queues(WEIR_COUNT_DISPATCHES), ElementsAre(5, 0));
  EXPECT_EQ(dispatches_of("refused"), 5U);
}

TEST_F(VulkanLayerOverAStandIn, CountsASyncOnTheQueueWhoseFenceItWas) {
  const VkCommandBuffer work = layer_.begin(layer_.pool());
  const VkFence both[] = {k_first, k_second};
  const auto wait = [&](std::uint32_t count, VkBool32 all, std::uint64_t timeout) {
    return layer_.vk.WaitForFences(layer_.device, count, both, all, timeout);
  };
  layer_.submit(layer_.queues[0], work, k_first);
  layer_.submit(layer_.queues[1], work, k_second);
  StandIn::driver.wait_result = VK_TIMEOUT;
  wait(2, VK_TRUE, 1000);  // timed out: a poll
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(0, 0));
  StandIn::driver.wait_result = VK_SUCCESS;
  StandIn::driver.done = {k_second};
  wait(2, VK_FALSE, 1000);  // one of them, and only the second is done
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(0, 1));
  wait(2, VK_TRUE, 1000);  // both; the second queue has had no submission since
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(1, 1));
  // The fence changes queues: its latest submission decides.
  layer_.submit(layer_.queues[1], work, k_first);
  EXPECT_EQ(wait(1, VK_TRUE, 0), VK_SUCCESS);  // timeout 0: a poll that reports done
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(1, 2));
  EXPECT_EQ(of_device(WEIR_COUNT_WAITS), 2U);
  EXPECT_EQ(of_device(WEIR_COUNT_POLLS), 2U);
  EXPECT_THAT(of_queues(WEIR_COUNT_WAITS), ElementsAre(1, 2));
}

TEST_F(VulkanLayerOverAStandIn, CountsADeviceWaitOnEveryQueueThatHadWork) {
  const VkCommandBuffer work = layer_.begin(layer_.pool());
  layer_.submit(layer_.queues[0], work);
  layer_.submit(layer_.queues[1], work);
  layer_.vk.DeviceWaitIdle(layer_.device);
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(1, 1));
  EXPECT_EQ(of_device(WEIR_COUNT_WAITS), 1U);
}

TEST_F(VulkanLayerOverAStandIn, FindsTheQueueThatWasToSignalATimelineValue) {
  const VkCommandBuffer work = layer_.begin(layer_.pool());
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  layer_.vk.CreateSemaphore(layer_.device, &create, nullptr, &semaphore);
  const auto submit = [&](int queue, std::uint64_t value) {
    VkCommandBufferSubmitInfo buffer{};
    buffer.commandBuffer = work;
    VkSemaphoreSubmitInfo signal{};
    signal.semaphore = semaphore;
    signal.value = value;
    VkSubmitInfo2 info{};
    info.commandBufferInfoCount = 1;
    info.pCommandBufferInfos = &buffer;
    info.signalSemaphoreInfoCount = 1;
    info.pSignalSemaphoreInfos = &signal;
    layer_.vk.QueueSubmit2(layer_.queues[queue], 1, &info, VK_NULL_HANDLE);
  };
  const auto wait = [&](std::uint64_t value) {
    VkSemaphoreWaitInfo info{};
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore;
    info.pValues = &value;
    layer_.vk.WaitSemaphores(layer_.device, &info, 1000);
  };
  const auto poll = [&](std::uint64_t answer) {
    StandIn::driver.counter = answer;
    std::uint64_t value = 0;
    layer_.vk.GetSemaphoreCounterValue(layer_.device, semaphore, &value);
    EXPECT_EQ(value, answer);
  };
  submit(0, 10);
  submit(1, 20);
  poll(5);  // neither is reached: not ready
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(0, 0));
  wait(15);  // brought about by the signal of 20
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(0, 1));
  wait(10);
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(1, 1));
  submit(0, 30);
  poll(20);  // nothing new about queue 0
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(1, 1));
  poll(30);
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(2, 1));
  // The host's own signal is nobody's work.
  submit(0, 50);
  VkSemaphoreSignalInfo signal{};
  signal.semaphore = semaphore;
  signal.value = 40;
  layer_.vk.SignalSemaphore(layer_.device, &signal);
  wait(40);
  EXPECT_THAT(of_queues(WEIR_COUNT_SYNCS), ElementsAre(2, 1));
}

TEST_F(VulkanLayerOverAStandIn, NeedsNoPointersForHandles) {
  const VkCommandPool pool = layer_.pool();
  const VkPipeline small = layer_.pipeline("small");
  EXPECT_LE((std::uint64_t)small, 4U);  // this driver counts its handles from 1
  const VkCommandBuffer work = layer_.begin(pool);
  layer_.dispatch(work, small, 3);
  layer_.submit(layer_.queues[0], work);
  EXPECT_EQ(dispatches_of("small"), 3U);
}

TEST_F(VulkanLayerOverAStandIn, KeepsUpWithManyCommandBuffers) {
  const VkPipeline kernel = layer_.pipeline("many buffers");
  const VkCommandPool pool = layer_.pool();
  std::vector<VkCommandBuffer> buffers;
  for (int i = 0; i < 20000; ++i) {
    buffers.push_back(layer_.begin(pool));
    layer_.dispatch(buffers.back(), kernel, 1);
    if (i % 2 == 0) continue;
    layer_.vk.FreeCommandBuffers(layer_.device, pool, 1, &buffers.back());
    buffers.pop_back();
  }
  for (const VkCommandBuffer work : buffers) layer_.submit(layer_.queues[0], work);
  EXPECT_EQ(dispatches_of("many buffers"), 10000U);
  // A reset of the pool empties all of them.
  layer_.vk.ResetCommandPool(layer_.device, pool, 0);
  layer_.submit(layer_.queues[0], buffers[0]);
  EXPECT_EQ(dispatches_of("many buffers"), 10000U);
}

TEST_F(VulkanLayerOverAStandIn, CutsALongKernelNameAndSaysSo) {
  const std::string name(300, 'n');
  const VkCommandBuffer work = layer_.begin(layer_.pool());
  layer_.dispatch(work, layer_.pipeline(name), 1);
  layer_.submit(layer_.queues[0], work);
  EXPECT_NE(read().flags & WEIR_PROBE_NAMES_TRUNCATED, 0U);
}

TEST_F(VulkanLayerOverAStandIn, CountsKernelsBeyondItsTableTogether) {
  const VkCommandPool pool = layer_.pool();
  constexpr int k_kernels = 5000;  // the table holds 4096
  const VkCommandBuffer work = layer_.begin(pool);
  for (int i = 0; i < k_kernels; ++i) {
    layer_.dispatch(work, layer_.pipeline("kernel " + std::to_string(i)), 2);
  }
  const std::uint64_t before = dispatches_of("(other)");
  layer_.submit(layer_.queues[0], work);
  const ProbeFile file = read();
  std::uint64_t named_dispatches = 0;
  for (const ProbeKernel& kernel : file.kernels) {
    if (kernel.device + 1 == file.devices.size() && kernel.named)
      named_dispatches += kernel.dispatches;
  }
  EXPECT_GT(dispatches_of("(other)") - before, 0U);
  EXPECT_EQ(named_dispatches + dispatches_of("(other)") - before, 2U * k_kernels);
  EXPECT_NE(file.flags & WEIR_PROBE_KERNELS_OVERFLOWED, 0U);
}

TEST_F(VulkanLayerOverAStandIn, LeavesAbsentWhatTheDriverLacks) {
  EXPECT_NE(layer_.get("vkQueueSubmit2KHR"), nullptr);
  StandIn::driver.missing = {"vkQueueSubmit2KHR", "vkSetDebugUtilsObjectNameEXT"};
  EXPECT_EQ(layer_.get("vkQueueSubmit2KHR"), nullptr);
  EXPECT_EQ(layer_.get("vkNoSuchFunction"), nullptr);
  // Names are taken even where nobody below listens.
  EXPECT_NE(layer_.get("vkSetDebugUtilsObjectNameEXT"), nullptr);
}

}  // namespace stand_in_test
}  // namespace weir::probes
