// The Metal probe's code on GNU's Objective-C runtime, with a stand-in for Metal: counts known by
// hand. On a Mac it has not run.
#ifdef WEIR_METAL_SCENES
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace metal_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Played {
  Ran ran;
  std::vector<ProbeFile> files;
  profile::ProbeCounts counts;

  explicit Played(const std::string& scene, std::map<std::string, std::string> env = {}) {
    const Folder folder;
    env.emplace("WEIR_PROBE_DIR", folder.path());
    env.emplace("LD_PRELOAD", WEIR_METAL_PROBE);
    ran = run({WEIR_METAL_SCENES, scene}, env);
    files = probe_files(folder.path());
    counts = merge("metal", files);
  }
};

TEST(MetalProbe, CountsWhatAProgramAsksItsQueuesFor) {
  const Played played("all");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.ran.err, "");
  const std::map<std::string, std::int64_t> expected = {
      {"dispatches", 11},          // 5 + 2 + 1 and 3; not the 100 that were never committed
      {"indirect_dispatches", 1},  //
      {"barriers", 3},             // two by scope, one by resources
      {"copies", 3},               // a copy, a fill, one to a texture
      {"submits", 3},              // the three of five commits that had an encoder
      {"command_buffers", 5},      //
      {"syncs", 3},                // a: waited for, polled; b: by the shared event's value
      {"waits", 4},                // scheduled, completed twice; the event
      {"polls", 8},                // status 1 + 3 + 1; the event's value twice, a time-out
      {"encoders", 3},             //
      {"fence_updates", 1},        //
      {"fence_waits", 1},          //
      {"event_signals", 1},        //
      {"event_waits", 1},          //
      {"completed_handlers", 1},   //
      {"gpu_nanoseconds", 0},      // not asked for
  };
  EXPECT_EQ(played.counts.counts, expected);
  EXPECT_EQ(played.counts.kernels, (std::map<std::string, std::int64_t>{
                                       {"kernel_one", 8}, {"label_two", 2}, {"kernel_three", 1}}));
  EXPECT_TRUE(played.counts.kernels_named);
  ASSERT_THAT(played.counts.devices, SizeIs(1));
  EXPECT_EQ(played.counts.devices[0].name, "Apple Stand-in");
  EXPECT_THAT(played.counts.devices[0].device_class, testing::StartsWith("metal-106b-"));
  EXPECT_THAT(played.counts.warnings, IsEmpty());
}

TEST(MetalProbe, KeepsTheSizesOfLaunches) {
  const Played played("all");
  ASSERT_THAT(played.files, SizeIs(1));
  const ProbeFile& file = played.files[0];
  std::map<std::string, const ProbeLaunch*> by_kernel;
  for (const ProbeLaunch& launch : file.launches) {
    if (launch.count > 0)
      by_kernel[file.kernels[launch.kernel].name + std::to_string(launch.count)] = &launch;
  }
  ASSERT_THAT(by_kernel, testing::UnorderedElementsAre(
                             testing::Key("kernel_one5"), testing::Key("kernel_one3"),
                             testing::Key("label_two2"), testing::Key("kernel_three1")));
  const ProbeLaunch& groups = *by_kernel["kernel_one5"];
  EXPECT_THAT(groups.global, ElementsAre(4 * 32, 2, 1));
  EXPECT_THAT(groups.local, ElementsAre(32, 1, 1));
  EXPECT_EQ(groups.shared, 96U + 32U);
  EXPECT_EQ(by_kernel["kernel_one3"]->shared, 0U);  // an encoder of its own
  EXPECT_THAT(by_kernel["label_two2"]->global, ElementsAre(1000, 1, 1));
  EXPECT_THAT(by_kernel["kernel_three1"]->global, ElementsAre(0, 0, 0));  // the GPU decides
}

TEST(MetalProbe, CountsOnceWhatAMethodPassesToItsSuperclassOrToTheObjectBehindIt) {
  const Played played("inherited");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("dispatches"), 3 * 11);
  EXPECT_EQ(played.counts.counts.at("barriers"), 3);
  EXPECT_EQ(played.counts.counts.at("submits"), 3);
  EXPECT_EQ(played.counts.counts.at("waits"), 3);
  EXPECT_EQ(played.counts.counts.at("polls"), 0);  // polls within a wait do not count
  EXPECT_EQ(played.counts.counts.at("syncs"), 3);
  EXPECT_EQ(played.counts.kernels.at("kernel_one"), 3 * 11);
}

TEST(MetalProbe, KeepsDevicesApart) {
  const Played played("two_devices");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  ASSERT_THAT(played.files, SizeIs(1));
  const ProbeFile& file = played.files[0];
  ASSERT_THAT(file.devices, SizeIs(2));
  EXPECT_EQ(file.devices[0].type, "integrated");
  EXPECT_EQ(file.devices[1].type, "discrete");
  EXPECT_THAT(file.devices[1].device_class, testing::StartsWith("metal-1002-"));
  ASSERT_THAT(file.queues, SizeIs(2));
  EXPECT_EQ(file.queues[0].counters[WEIR_COUNT_DISPATCHES], 2U);
  EXPECT_EQ(file.queues[1].counters[WEIR_COUNT_DISPATCHES], 3U);
}

TEST(MetalProbe, LosesNothingToSixteenThreads) {
  const Played played("threads");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("dispatches"), 10 + 16 * 1000);
  EXPECT_EQ(played.counts.counts.at("submits"), 1 + 16 * 100);
  EXPECT_EQ(played.counts.counts.at("syncs"), 1 + 16 * 100);
  EXPECT_EQ(played.counts.kernels.at("kernel_two"), 16 * 500);
}

TEST(MetalProbe, KeepsTheCountsOfAProcessThatIsKilled) {
  const Played played("killed");
  EXPECT_EQ(played.ran.status, 128 + SIGKILL);
  EXPECT_EQ(played.counts.counts.at("dispatches"), 10);
}

TEST(MetalProbe, LetsTheProgramRunWhereItCannotCount) {
  const Played played("all", {{"WEIR_PROBE_DIR", "/no/such"}});
  EXPECT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(text::lines(text::trim(played.ran.err)), ElementsAre(HasSubstr("/no/such")));
}

TEST(MetalProbe, AddsUpTheTimesOfCommandBuffersWhereThatIsAskedFor) {
  const Played played("threads", {{"WEIR_PROBE_TIMING", "on"}});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  // 2^-10 s each, by the stand-in's clock.
  EXPECT_EQ(played.counts.counts.at("gpu_nanoseconds"), (1 + 16 * 100) * 976562);
  EXPECT_EQ(played.counts.counts.at("completed_handlers"), 0);  // the probe's own is none
  const Played off("threads", {{"WEIR_PROBE_TIMING", "off"}});
  EXPECT_EQ(off.counts.counts.at("gpu_nanoseconds"), 0);
  for (const char* same : {"dispatches", "submits", "syncs", "waits", "polls"}) {
    EXPECT_EQ(played.counts.counts.at(same), off.counts.counts.at(same)) << same;
  }
}

TEST(MetalProbe, SaysWhatItCannotSee) {
  const Played played("unseen");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(text::lines(text::trim(played.ran.err)),
              ElementsAre(HasSubstr("Metal 4"), HasSubstr("executeCommandsInBuffer")));
  ASSERT_THAT(played.files, SizeIs(1));
  EXPECT_NE(played.files[0].flags & WEIR_PROBE_CALLS_UNSEEN, 0U);
  EXPECT_EQ(played.counts.counts.at("dispatches"), 1);
}

TEST(MetalProbe, SaysWhenThereAreMoreClassesThanItHasRoomFor) {
  const Played played("many_classes");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(text::lines(text::trim(played.ran.err)), ElementsAre(HasSubstr("not every class")));
  ASSERT_THAT(played.files, SizeIs(1));
  EXPECT_NE(played.files[0].flags & WEIR_PROBE_CALLS_UNSEEN, 0U);
  EXPECT_EQ(played.counts.counts.at("dispatches"), 8);
}

}  // namespace metal_test
}  // namespace weir::probes
#endif
