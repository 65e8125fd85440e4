// 64 threads that submit to the queues of one device, in front of a driver that does nothing. A
// program of its own, so that the layer can be built with the thread sanitizer: what ci/test --all
// runs. In other builds it is the layer as it is installed.
#include <array>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/fresh_layer.hpp"
#include "tests/probes/stand_in.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_threads = 64;
constexpr std::size_t k_waves = 2;  // the second takes over from the first
constexpr std::size_t k_rounds = 20;
constexpr std::size_t k_queues = 4;

struct Shared {
  const StandIn& layer;
  VkPipeline kernel;
  std::array<VkQueue, k_queues> queues{};
  std::array<std::mutex, k_queues> locks{};  // Vulkan wants one thread at a time at a queue
};

void record(const StandIn& layer, VkCommandBuffer work, VkPipeline shared, VkPipeline own) {
  const VkCommandBufferBeginInfo info{};
  layer.vk.BeginCommandBuffer(work, &info);
  VkDebugUtilsLabelEXT label{};
  label.pLabelName = "layer";
  layer.vk.CmdBeginDebugUtilsLabelEXT(work, &label);
  layer.dispatch(work, shared, 2);
  layer.vk.CmdEndDebugUtilsLabelEXT(work);
  layer.vk.CmdPipelineBarrier(work, 0, 0, 0, 0, nullptr, 0, nullptr, 0, nullptr);
  layer.dispatch(work, own, 1);
  layer.vk.CmdFillBuffer(work, VK_NULL_HANDLE, 0, 16, 0);
  layer.vk.EndCommandBuffer(work);
}

// Each round: 2 + 1 dispatches, a barrier and a fill, submitted once, or twice before the wait.
void play(Shared& shared, std::size_t thread) {
  const StandIn& layer = shared.layer;
  const std::size_t at = thread % k_queues;
  const auto fence = (VkFence)(1000 + thread);
  VkCommandPool pool = layer.pool();
  VkPipeline own = layer.pipeline("thread" + std::to_string(thread));
  VkCommandBuffer work = layer.begin(pool);
  for (std::size_t round = 0; round < k_rounds; ++round) {
    record(layer, work, shared.kernel, own);
    for (std::size_t times = 0; times < 1 + round % 2; ++times) {
      const std::lock_guard<std::mutex> guard(shared.locks[at]);
      EXPECT_EQ(layer.submit(shared.queues[at], work, fence), VK_SUCCESS);
    }
    switch ((thread + round) % 4) {
      case 0: {
        const std::lock_guard<std::mutex> guard(shared.locks[at]);
        layer.vk.QueueWaitIdle(shared.queues[at]);
        break;
      }
      case 1:
        layer.vk.GetFenceStatus(layer.device, fence);
        [[fallthrough]];
      default:
        layer.vk.WaitForFences(layer.device, 1, &fence, VK_TRUE, 1000);
    }
    switch (round % 5) {
      case 1:
        layer.vk.ResetCommandPool(layer.device, pool, 0);
        break;
      case 2:
        layer.vk.FreeCommandBuffers(layer.device, pool, 1, &work);
        work = layer.begin(pool);
        break;
      case 0:
        if (thread == 0) layer.name(shared.kernel, "shared");  // anew, while others submit it
        break;
      case 3:
        layer.vk.DestroyPipeline(layer.device, own, nullptr);
        own = layer.pipeline("thread" + std::to_string(thread));
        break;
      case 4:
        layer.vk.DestroyCommandPool(layer.device, pool, nullptr);
        pool = layer.pool();
        work = layer.begin(pool);
        break;
      default:
        break;
    }
  }
  if (thread % 8 != 0) return;
  std::scoped_lock all(shared.locks[0], shared.locks[1], shared.locks[2], shared.locks[3]);
  layer.vk.DeviceWaitIdle(layer.device);
}

void play_all(Shared& shared) {
  for (std::size_t wave = 0; wave < k_waves; ++wave) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < k_threads; ++i) {
      threads.emplace_back([&shared, i] { play(shared, i); });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(VulkanThreads, LoseNoCountAndNoEvent) {
  constexpr std::int64_t k_submits = k_waves * k_threads * (k_rounds + k_rounds / 2);
  for (const std::string timing : {"none", "off", "batched", "serialized"}) {
    SCOPED_TRACE("timing " + timing);
    const FreshLayer fresh(WEIR_CHECKED_LAYER, timing);
    {
      const StandIn layer(fresh.library());
      Shared shared{layer, layer.pipeline("shared")};
      for (std::uint32_t i = 0; i < k_queues; ++i) {
        layer.vk.GetDeviceQueue(layer.device, 0, i, &shared.queues[i]);
      }
      play_all(shared);
    }
    const profile::ProbeCounts counts = fresh.counts();
    EXPECT_THAT(counts.warnings, testing::IsEmpty());
    for (const auto& [name, each] :
         {std::pair{"submits", 1}, std::pair{"dispatches", 3}, std::pair{"barriers", 1},
          std::pair{"copies", 1}, std::pair{"command_buffers", 1}}) {
      EXPECT_EQ(counts.counts.at(name), each * k_submits) << name;
    }
    // A sync needs a submission; how many of them share one is chance.
    EXPECT_LE(counts.counts.at("syncs"), k_submits);
    EXPECT_EQ(counts.kernels.at("shared"), 2 * k_submits);
    for (std::size_t i = 0; i < k_threads; ++i) {
      EXPECT_EQ(counts.kernels.at("thread" + std::to_string(i)),
                k_submits / static_cast<std::int64_t>(k_threads));
    }
    if (timing == "none") continue;
    const auto timeline = fresh.timeline();
    ASSERT_TRUE(timeline) << timeline.error().message;
    ASSERT_THAT(timeline->processes, testing::SizeIs(1));
    const observed::Process& process = timeline->processes[0];
    EXPECT_EQ(process.submissions.size(), k_submits);
    std::int64_t dispatches = 0;
    for (const observed::Submission& submission : process.submissions) {
      for (const observed::BufferWork& buffer : submission.buffers) {
        for (const observed::Command& command : buffer.commands) {
          dispatches += command.kind == observed::Command::Kind::dispatch ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(dispatches, 3 * k_submits);
  }
}

}  // namespace
}  // namespace weir::probes
