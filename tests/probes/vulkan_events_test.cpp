// Tests of the Vulkan layer with events and times, in front of lavapipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/timeline.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace vulkan_events_test {

using observed::Command;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string k_layers = WEIR_BINARY_DIR "/lib/weir/probes";

using Environment = std::map<std::string, std::string>;

Environment environment(const std::string& folder, const std::string& timing) {
  Environment out{{"WEIR_PROBE_DIR", folder},
                  {"VK_LAYER_PATH", k_layers},
                  {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
                  {"VK_LOADER_DRIVERS_SELECT", "*lvp*"}};
  if (timing == "none") return out;
  out["WEIR_PROBE_EVENTS"] = "16";
  if (timing != "off") out["WEIR_PROBE_TIMING"] = timing;
  return out;
}

struct Played {
  Ran ran;
  profile::ProbeCounts counts;
  observed::Timeline timeline;
};

Played play(const std::string& scene, const std::string& timing, const Environment& more = {}) {
  const Folder folder;
  Environment env = environment(folder.path(), timing);
  for (const auto& [name, value] : more) env[name] = value;
  Played out;
  out.ran = run({WEIR_SCENES, scene}, env);
  out.counts = merge("vulkan", probe_files(folder.path()));
  const sys::RealFiles files;
  auto timeline = collect_timeline(files, folder.path());
  EXPECT_TRUE(timeline) << timeline.error().message;
  out.timeline = std::move(*timeline);
  return out;
}

std::vector<const Command*> commands(const observed::BufferWork& buffer, Command::Kind kind) {
  std::vector<const Command*> out;
  for (const Command& command : buffer.commands) {
    if (command.kind == kind) out.push_back(&command);
  }
  return out;
}

std::map<std::string, std::int64_t> dispatches_by_name(const observed::Timeline& timeline) {
  std::map<std::string, std::int64_t> out;
  for (const observed::Process& process : timeline.processes) {
    for (const observed::Submission& submission : process.submissions) {
      for (const observed::BufferWork& buffer : submission.buffers) {
        for (const Command* command : commands(buffer, Command::Kind::dispatch)) {
          ++out[command->name];
        }
      }
    }
  }
  return out;
}

TEST(VulkanEvents, ChangeNoCount) {
  // The counts of each scene are in vulkan_layer_test.cpp.
  for (const char* scene : {"many", "1.0", "secondary", "indirect", "timeline", "idle", "again",
                            "twice", "fork", "killed", "names", "labels", "details", "threads"}) {
    Played plain = play(scene, "none");
    plain.counts.counts.erase("polls");
    plain.counts.counts.erase("syncs");  // in "threads" the number that share one is random
    for (const char* timing : {"off", "batched", "serialized"}) {
      Played played = play(scene, timing);
      EXPECT_EQ(played.ran.status, plain.ran.status) << scene << ": " << played.ran.err;
      EXPECT_EQ(played.ran.err, "") << scene;
      played.counts.counts.erase("polls");
      played.counts.counts.erase("syncs");
      EXPECT_EQ(played.counts.counts, plain.counts.counts) << scene << ", timing " << timing;
      EXPECT_EQ(played.counts.kernels, plain.counts.kernels) << scene << ", timing " << timing;
      EXPECT_EQ(played.counts.devices, plain.counts.devices) << scene << ", timing " << timing;
    }
  }
}

TEST(VulkanEvents, TellAsManyDispatchesOfEachKernelAsWereCounted) {
  for (const char* scene : {"many", "secondary", "indirect", "again", "twice", "fork", "killed",
                            "names", "labels", "threads", "timeline"}) {
    const Played played = play(scene, "batched");
    EXPECT_EQ(dispatches_by_name(played.timeline), played.counts.kernels) << scene;
    std::int64_t syncs = 0;
    for (const observed::Process& process : played.timeline.processes) {
      for (const observed::Wait& wait : process.waits) syncs += wait.sync ? 1 : 0;
    }
    EXPECT_EQ(syncs, played.counts.counts.at("syncs")) << scene;
    EXPECT_THAT(played.timeline.warnings, SizeIs(0)) << scene;
  }
}

TEST(VulkanEvents, NameUnnamedPipelinesByTheirLabel) {
  const auto kernels = play("labels", "none").counts.kernels;
  EXPECT_EQ(kernels.at("layer"), 2);
  EXPECT_EQ(kernels.at("norm"), 3);
  EXPECT_EQ(kernels.at("add"), 1);  // its own name is nearer
  EXPECT_THAT(kernels, SizeIs(4));  // and two by their hash
}

TEST(VulkanEvents, TellWorkgroupsPushConstantsAndKindsOfBarriers) {
  const Played played = play("details", "batched");
  ASSERT_THAT(played.timeline.processes, SizeIs(1));
  ASSERT_THAT(played.timeline.processes[0].submissions, SizeIs(1));
  ASSERT_THAT(played.timeline.processes[0].submissions[0].buffers, SizeIs(1));
  const observed::BufferWork& buffer = played.timeline.processes[0].submissions[0].buffers[0];
  const auto dispatches = commands(buffer, Command::Kind::dispatch);
  ASSERT_THAT(dispatches, SizeIs(3));
  EXPECT_THAT(dispatches[0]->groups, ElementsAre(2, 3, 4));
  EXPECT_EQ(dispatches[0]->push_bytes, 0U);
  EXPECT_EQ(dispatches[1]->push_bytes, 12U);
  EXPECT_EQ(dispatches[2]->push_bytes, 20U);
  std::vector<std::string> names;
  for (const Command& command : buffer.commands) names.push_back(command.name);
  EXPECT_THAT(names, ElementsAre("add", "add", "add", "memory barrier", "execution barrier", "fill",
                                 "buffer barrier", "copy buffer"));
  // Three dispatches may overlap: one group; the two copies are groups of their own.
  ASSERT_THAT(buffer.groups, SizeIs(3));
  EXPECT_EQ(dispatches[0]->group, 0U);
  EXPECT_EQ(dispatches[2]->group, 0U);
  EXPECT_EQ(commands(buffer, Command::Kind::copy)[1]->group, 2U);
  EXPECT_EQ(commands(buffer, Command::Kind::copy)[0]->bytes, 512U);
}

TEST(VulkanEvents, PlaceDeviceTimesBetweenSubmissionAndWait) {
  for (const char* timing : {"batched", "serialized"}) {
    const Played played = play("many", timing);
    ASSERT_THAT(played.timeline.processes, SizeIs(1));
    const observed::Process& process = played.timeline.processes[0];
    ASSERT_THAT(process.submissions, SizeIs(4));
    ASSERT_THAT(process.waits, SizeIs(4));
    EXPECT_EQ(played.timeline.dispatches_serialized, std::string(timing) == "serialized");
    constexpr double k_calibration = 1e-3;  // seconds; lavapipe's own clock is the CPU's
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_THAT(process.submissions[i].buffers, SizeIs(1));
      const observed::BufferWork& buffer = process.submissions[i].buffers[0];
      ASSERT_TRUE(buffer.device) << timing << " " << i;
      // 3 dispatches, then 1 and 3 copies behind two barriers; each alone when serialized.
      EXPECT_THAT(buffer.groups, SizeIs(played.timeline.dispatches_serialized ? 7 : 2));
      EXPECT_GE(buffer.device->begin, process.submissions[i].call.begin - k_calibration);
      EXPECT_LE(buffer.device->end, process.waits[i].call.end + k_calibration);
      double last = buffer.device->begin;
      for (const observed::Interval& group : buffer.groups) {
        EXPECT_GE(group.begin, last);
        EXPECT_GE(group.end, group.begin);
        last = group.end;
      }
      EXPECT_LE(last, buffer.device->end);
    }
  }
}

TEST(VulkanEvents, KeepWhatWasRecordedWhenTheProcessIsKilled) {
  const Played played = play("killed", "batched");
  EXPECT_EQ(played.ran.status, 137);
  ASSERT_THAT(played.timeline.processes, SizeIs(1));
  EXPECT_THAT(played.timeline.processes[0].submissions, SizeIs(10));
  // The times of the last one may not have been read yet.
  EXPECT_GE(observed::coverage(played.timeline).timed, 9U);
}

TEST(VulkanEvents, GiveEachProcessAFileOfItsOwn) {
  const Played played = play("fork", "batched");
  std::multiset<std::int64_t> dispatches;
  for (const observed::Process& process : played.timeline.processes) {
    observed::Timeline alone;
    alone.processes.push_back(process);
    dispatches.insert(dispatches_by_name(alone)["add"]);
  }
  EXPECT_THAT(dispatches, ElementsAre(3, 5, 6));
}

TEST(VulkanEvents, EndWithOneLineWhereTheFileCannotGrow) {
  // 400 x 100 dispatches take more than one MiB of records.
  const Played full = play("much", "batched", {{"WEIR_PROBE_EVENTS", "1"}});
  EXPECT_EQ(full.ran.status, 0);
  EXPECT_THAT(full.ran.err, HasSubstr("records no more events"));
  EXPECT_THAT(text::lines(text::trim(full.ran.err)), SizeIs(1));
  EXPECT_EQ(full.counts.kernels.at("add"), 40000);
  EXPECT_THAT(full.timeline.warnings, testing::Contains(HasSubstr("the timeline ends early")));

  // A limit on file sizes that the counts fit in would else end the program with a signal.
  const Folder folder;
  const std::uint64_t limit = std::uint64_t{1200} << 10;
  const Ran ran = run({WEIR_SCENES, "much"}, environment(folder.path(), "batched"), limit);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("the limit on file sizes is reached"));
  EXPECT_EQ(merge("vulkan", probe_files(folder.path())).counts.at("dispatches"), 40000);
}

// Times need a device of the layer's own asking first; the program's own request must still work
// when it is refused, whatever layers stand beside it.
TEST(VulkanEvents, LeaveARefusedDeviceToTheProgramAlsoBesideAnotherLayer) {
  for (const char* layers : {"VK_LAYER_WEIR_probe", "VK_LAYER_WEIR_probe:VK_LAYER_TEST_independent",
                             "VK_LAYER_TEST_independent:VK_LAYER_WEIR_probe"}) {
    const Folder counts;
    const Played played = play("refused", "batched",
                               {{"VK_LAYER_PATH", k_layers + ":" + WEIR_INDEPENDENT_LAYER},
                                {"VK_INSTANCE_LAYERS", layers},
                                {"WEIR_INDEPENDENT_COUNTS", counts.path() + "/counts"}});
    EXPECT_EQ(played.ran.status, 0) << layers << ": " << played.ran.err;
    EXPECT_EQ(played.counts.counts.at("dispatches"), 1) << layers;
  }
}

TEST(VulkanEvents, TellAWaitForSeveralFencesOnce) {
  const Played played = play("several", "batched");
  ASSERT_THAT(played.timeline.processes, SizeIs(1));
  EXPECT_THAT(played.timeline.processes[0].waits, SizeIs(1));
  EXPECT_EQ(played.counts.counts.at("waits"), 1);
}

TEST(VulkanEvents, GiveNoBufferTheTimesOfOneThatHadItsQueriesBefore) {
  const Played played = play("recycled", "batched");
  EXPECT_EQ(played.ran.status, 0) << played.ran.err;
  ASSERT_THAT(played.timeline.processes, SizeIs(1));
  double last = -1;
  std::size_t timed = 0;
  for (const observed::Submission& submission : played.timeline.processes[0].submissions) {
    for (const observed::BufferWork& buffer : submission.buffers) {
      if (!buffer.device) continue;
      ++timed;
      // One queue, one after the other: nobody begins where an earlier one has begun.
      EXPECT_GT(buffer.device->begin, last);
      last = buffer.device->begin;
    }
  }
  EXPECT_EQ(timed, 40U);
}

// The messages of the Khronos validation layer, which stands where `order` puts it.
std::string validated(const std::string& scene, const std::string& layers,
                      const std::string& timing) {
  const Folder folder;
  Environment env = environment(folder.path(), timing);
  env["VK_LAYER_PATH"] = k_layers + ":/usr/share/vulkan/explicit_layer.d";
  env["VK_INSTANCE_LAYERS"] = layers;
  const Ran ran = run({WEIR_SCENES, scene}, env);
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::string messages;
  for (const std::string& line : text::lines(ran.out + ran.err)) {
    if (line.find("Validation") != std::string::npos || line.find("VUID") != std::string::npos) {
      messages += line.substr(0, line.find("0x")) + "\n";
    }
  }
  return messages;
}

TEST(VulkanEvents, AddNoMessageOfTheValidationLayerAboveOrBelow) {
  const std::string khronos = "VK_LAYER_KHRONOS_validation";
  const std::string weir = "VK_LAYER_WEIR_probe";
  for (const char* scene : {"many", "secondary", "indirect", "again", "details", "timeline"}) {
    const std::string without = validated(scene, khronos, "none");
    for (const char* timing : {"none", "batched", "serialized"}) {
      EXPECT_EQ(validated(scene, khronos + ":" + weir, timing), without) << scene << timing;
      EXPECT_EQ(validated(scene, weir + ":" + khronos, timing), without) << scene << timing;
    }
  }
  EXPECT_THAT(validated("invalid", khronos, "none"), HasSubstr("VkBufferCopy"));
}

}  // namespace vulkan_events_test
}  // namespace weir::probes
