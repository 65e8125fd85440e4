// Tests of the Vulkan layer with a loader, driver or disk that fails: the program goes on, and at
// most one line says what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/probes/fresh_layer.hpp"
#include "tests/probes/stand_in.hpp"

namespace weir::probes {
namespace vulkan_hostile_test {

using testing::HasSubstr;
using testing::SizeIs;

const std::string k_layer = WEIR_BINARY_DIR "/lib/weir/probes/libVkLayer_weir_probe.so";

TEST(VulkanLayerInAHostileWorld, DegradesToCountsWithOneLineWhereThereAreNoTimes) {
  struct Case {
    const char* what;
    StandInDriver driver;
    const char* says;     // "": nothing
    std::uint64_t timed;  // timed buffers, out of 3
  };
  std::vector<Case> cases(6);
  cases[0] = {"a driver that has all", {}, "", 3};
  cases[1] = {"no valid bits", {}, "the device has no timestamps", 0};
  cases[1].driver.timestamp_bits = 0;
  cases[2] = {"no function to write them", {}, "the device has no timestamps", 0};
  cases[2].driver.missing = {"vkCmdWriteTimestamp"};
  cases[3] = {"no query pool", {}, "there is no memory for timestamps", 0};
  cases[3].driver.query_pools = 0;
  // 256 queries a pool: the first buffers fit in theirs, the long last one needs a third and
  // fourth.
  cases[4] = {"two query pools", {}, "there is no memory for timestamps", 2};
  cases[4].driver.query_pools = 3;
  cases[5] = {"queries that are never ready", {}, "", 0};
  cases[5].driver.query_result = VK_NOT_READY;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const FreshLayer fresh(k_layer, "batched");
    testing::internal::CaptureStderr();
    {
      const StandIn layer(fresh.library(), c.driver);
      const VkPipeline kernel = layer.pipeline("kernel");
      const VkCommandPool pool = layer.pool();
      for (const int groups : {1, 2, 400}) {
        const VkCommandBuffer work = layer.begin(pool);
        for (int i = 0; i < groups; ++i) {
          layer.dispatch(work, kernel, 1);
          layer.vk.CmdPipelineBarrier(work, 0, 0, 0, 0, nullptr, 0, nullptr, 0, nullptr);
        }
        layer.vk.EndCommandBuffer(work);
        EXPECT_EQ(layer.submit(layer.queues[0], work), VK_SUCCESS);
        layer.vk.QueueWaitIdle(layer.queues[0]);
      }
    }
    const std::string message = testing::internal::GetCapturedStderr();
    // Also of command buffers that went with their device.
    EXPECT_EQ(StandIn::query_pools_alive, 0);
    if (c.says[0] == '\0') {
      EXPECT_EQ(message, "");
    } else {
      EXPECT_THAT(message, HasSubstr(c.says));
      EXPECT_THAT(text::lines(text::trim(message)), SizeIs(1));
    }
    EXPECT_EQ(fresh.counts().counts.at("dispatches"), 403);
    EXPECT_EQ(fresh.counts().counts.at("barriers"), 403);
    const auto timeline = fresh.timeline();
    ASSERT_TRUE(timeline) << timeline.error().message;
    EXPECT_EQ(observed::coverage(*timeline).timed, c.timed);
    EXPECT_EQ(observed::coverage(*timeline).buffers, 3U);
  }
}

TEST(VulkanLayerInAHostileWorld, PassesStructuresOnThatItDoesNotKnow) {
  const FreshLayer fresh(k_layer, "batched");
  const StandIn layer(fresh.library());
  EXPECT_EQ(StandIn::strangers, 2U);  // instance and device: the loader's own part was behind one
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{};
  size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  VkComputePipelineCreateInfo info{};
  info.pNext = behind_a_stranger(nullptr);
  info.stage.pName = "main";
  VkPipeline plain = VK_NULL_HANDLE, sized = VK_NULL_HANDLE;
  layer.vk.CreateComputePipelines(layer.device, VK_NULL_HANDLE, 1, &info, nullptr, &plain);
  EXPECT_EQ(StandIn::strangers, 3U);
  info.pNext = nullptr;
  size.requiredSubgroupSize = 32;
  info.stage.pNext = behind_a_stranger(&size);
  layer.vk.CreateComputePipelines(layer.device, VK_NULL_HANDLE, 1, &info, nullptr, &sized);
  const VkCommandBuffer work = layer.begin(layer.pool());
  layer.dispatch(work, plain, 1);
  layer.dispatch(work, sized, 2);
  layer.vk.EndCommandBuffer(work);
  VkCommandBufferSubmitInfo buffer{};
  buffer.commandBuffer = work;
  VkSubmitInfo2 submit{};
  submit.pNext = behind_a_stranger(nullptr);
  submit.commandBufferInfoCount = 1;
  submit.pCommandBufferInfos = &buffer;
  EXPECT_EQ(layer.vk.QueueSubmit2(layer.queues[0], 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  EXPECT_EQ(StandIn::strangers, 4U);
  EXPECT_EQ(fresh.counts().counts.at("dispatches"), 3);
  EXPECT_THAT(fresh.counts().kernels, SizeIs(2));  // the size behind a stranger was seen
}

TEST(VulkanLayerInAHostileWorld, FindsTimelineValuesBehindAStructureThatItDoesNotKnow) {
  const FreshLayer fresh(k_layer, "none");
  const StandIn layer(fresh.library());
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.pNext = behind_a_stranger(&type);
  VkSemaphore semaphore = VK_NULL_HANDLE;
  layer.vk.CreateSemaphore(layer.device, &create, nullptr, &semaphore);
  const std::uint64_t value = 7;
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  const VkCommandBuffer work = layer.begin(layer.pool());
  VkSubmitInfo submit{};
  submit.pNext = behind_a_stranger(&values);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &work;
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &semaphore;
  layer.vk.QueueSubmit(layer.queues[1], 1, &submit, VK_NULL_HANDLE);
  VkSemaphoreWaitInfo wait{};
  wait.semaphoreCount = 1;
  wait.pSemaphores = &semaphore;
  wait.pValues = &value;
  layer.vk.WaitSemaphores(layer.device, &wait, 1000);
  EXPECT_EQ(fresh.counts().counts.at("syncs"), 1);
}

TEST(VulkanLayerInAHostileWorld, SaysThatItCannotWorkWithALoaderThatIsTooOld) {
  void* library = dlopen(k_layer.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  const auto negotiate = reinterpret_cast<PFN_vkNegotiateLoaderLayerInterfaceVersion>(
      dlsym(library, "vkNegotiateLoaderLayerInterfaceVersion"));
  VkNegotiateLayerInterface interface {};
  interface.sType = LAYER_NEGOTIATE_INTERFACE_STRUCT;
  interface.loaderLayerInterfaceVersion = 1;
  testing::internal::CaptureStderr();
  EXPECT_EQ(negotiate(&interface), VK_ERROR_INITIALIZATION_FAILED);
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_THAT(message, HasSubstr("the vulkan probe is not counting: the Vulkan loader is too old"));
  EXPECT_THAT(text::lines(text::trim(message)), SizeIs(1));
  interface.loaderLayerInterfaceVersion = 9;  // a newer one takes what it is offered
  EXPECT_EQ(negotiate(&interface), VK_SUCCESS);
  EXPECT_EQ(interface.loaderLayerInterfaceVersion, 2U);
}

// A disk that is full from the n-th reservation on (full_disk.cpp), and the one line that says so.
TEST(VulkanLayerInAHostileWorld, LetsTheProgramRunWhereTheDiskIsFull) {
  const struct {
    int reservations;  // number of reservations that succeed
    const char* says;
    bool counted;
  } cases[] = {
      {0, "cannot reserve room for", false},                         // not even the counts
      {1, "records no more events: its file cannot be made", true},  // counts, but no event
      {3, "records no more events: its file cannot grow", true},
  };
  for (const auto& c : cases) {
    const Folder folder;
    const Ran ran =
        run({WEIR_SCENES, "much"}, {{"WEIR_PROBE_DIR", folder.path()},
                                    {"LD_PRELOAD", WEIR_FULL_DISK},
                                    {"WEIR_FULL_DISK_AFTER", std::to_string(c.reservations)},
                                    {"WEIR_PROBE_EVENTS", "16"},
                                    {"WEIR_PROBE_TIMING", "batched"},
                                    {"VK_LAYER_PATH", WEIR_BINARY_DIR "/lib/weir/probes"},
                                    {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
                                    {"VK_LOADER_DRIVERS_SELECT", "*lvp*"}});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(c.says)) << c.reservations;
    EXPECT_THAT(ran.err, HasSubstr("No space left on device")) << c.reservations;
    EXPECT_THAT(text::lines(text::trim(ran.err)), SizeIs(1)) << ran.err;
    const auto files = probe_files(folder.path());
    EXPECT_EQ(files.size(), c.counted ? 1U : 0U) << c.reservations;
    if (!c.counted) continue;
    EXPECT_EQ(merge("vulkan", files).counts.at("dispatches"), 40000);
  }
}

}  // namespace vulkan_hostile_test
}  // namespace weir::probes
