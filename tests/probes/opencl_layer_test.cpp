// The OpenCL layer on PoCL: known counts, and a program that nobody here wrote.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/locate.hpp"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace opencl_layer_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using Env = std::map<std::string, std::string>;

const std::string k_layer = WEIR_BINARY_DIR "/lib/weir/probes/libweir_opencl.so";

// PoCL alone, whatever else is installed; its compiled kernels stay with the build.
Env pocl() {
  return {{"OCL_ICD_VENDORS", "/etc/OpenCL/vendors/pocl.icd"},
          {"POCL_CACHE_DIR", WEIR_BINARY_DIR "/pocl-cache"}};
}

struct Played {
  Ran ran;
  std::vector<ProbeFile> files;
  profile::ProbeCounts counts;

  explicit Played(const std::vector<std::string>& argv) {
    const Folder folder;
    Env env = pocl();
    env["WEIR_PROBE_DIR"] = folder.path();
    env["OPENCL_LAYERS"] = k_layer;
    ran = run(argv, env);
    files = probe_files(folder.path());
    counts = merge("opencl", files);
  }
};

TEST(OpenClLayer, CountsWhatReachesTheQueues) {
  const Played played({WEIR_OPENCL_SCENES, "all"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.ran.err, "");
  auto counts = played.counts.counts;
  EXPECT_GE(counts.at("polls"), 1);  // as many as it takes
  counts.erase("polls");
  const std::map<std::string, std::int64_t> expected = {
      {"dispatches", 10},  // 5 + 3 + 1, and 1 on the second queue
      {"barriers", 2},
      {"copies", 6},   // write, fill, copy, 2 reads, map
      {"submits", 7},  // see the scene: 6 and 1
      {"syncs", 7},    // 6 and 1
      {"waits", 9},    // finish 4, wait for events 2, blocking: write, read, map
      {"markers", 3},
      {"indirect_dispatches", 0},
      {"device_copied_bytes", 6 * 64 * 4},
      {"allocations", 2},
      {"device_memory_peak_bytes", 2 * 64 * 4},
      {"device_memory_steady_bytes", 2 * 64 * 4},
      {"command_buffers", 0},
  };
  EXPECT_EQ(counts, expected);
  EXPECT_EQ(played.counts.kernels,
            (std::map<std::string, std::int64_t>{{"scale", 5}, {"add", 3}, {"nothing", 2}}));
  EXPECT_TRUE(played.counts.kernels_named);
  EXPECT_THAT(played.counts.warnings, IsEmpty());
  ASSERT_THAT(played.counts.devices, SizeIs(1));
  EXPECT_EQ(played.counts.devices[0].api, "opencl");
  EXPECT_EQ(played.counts.devices[0].type, "cpu");
  EXPECT_THAT(played.counts.devices[0].device_class,
              testing::MatchesRegex("opencl(-[0-9a-f]+){5}"));
}

TEST(OpenClLayer, CountsTheMemoryThatDevicesAreAskedFor) {
  const Played played({WEIR_OPENCL_SCENES, "memory"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  const auto& counts = played.counts.counts;
  EXPECT_EQ(counts.at("allocations"), 4);  // two buffers, an image, shared memory
  EXPECT_EQ(counts.at("device_memory_peak_bytes"), 600 + 64 + 3000);
  EXPECT_EQ(counts.at("device_memory_steady_bytes"), 600 + 64);
}

TEST(OpenClLayer, TellsTheSizesOfEachLaunch) {
  const Played played({WEIR_OPENCL_SCENES, "all"});
  ASSERT_THAT(played.files, SizeIs(1));
  const ProbeFile& file = played.files[0];
  std::vector<std::string> lines;
  for (const ProbeLaunch& launch : file.launches) {
    if (launch.count == 0) continue;
    lines.push_back(fmt::format("{} {} {}x{}x{} by {} x{}", file.kernels[launch.kernel].name,
                                launch.dimensions, launch.global[0], launch.global[1],
                                launch.global[2], launch.local[0], launch.count));
  }
  EXPECT_THAT(
      lines, testing::UnorderedElementsAre("scale 1 64x1x1 by 16 x5", "add 2 8x8x1 by 0 x3",
                                           "nothing 1 1x1x1 by 1 x1", "nothing 1 64x1x1 by 16 x1"));
}

// Each way of making the program was launched another number of times.
TEST(OpenClLayer, KnowsCodeBySourceOptionsAndHeadersOfItsProgram) {
  const Played first({WEIR_OPENCL_SCENES, "codes"}), second({WEIR_OPENCL_SCENES, "codes"});
  ASSERT_EQ(first.ran.status, 0) << first.ran.err;
  std::map<std::int64_t, std::string> codes;
  for (const auto& [key, count] : first.counts.codes) {
    EXPECT_EQ(profile::kernel_of_code(key), "work");
    EXPECT_EQ(first.counts.code_groups.at(key), count * 64 / 16);
    codes[count] = key;
  }
  std::vector<std::int64_t> counts;
  for (const auto& [count, key] : codes) counts.push_back(count);
  EXPECT_THAT(counts, ElementsAre(1 + 2, 4, 8, 16, 32, 64, 128, 256, 512));
  // The contents of a binary depend on PoCL.
  for (const auto& [count, key] : codes) {
    if (count == 512) continue;
    ASSERT_TRUE(second.counts.codes.contains(key)) << count;
    EXPECT_EQ(second.counts.codes.at(key), count);
  }
}

TEST(OpenClLayer, CountsNoGroupsWhereTheDriverDecides) {
  const Played played({WEIR_OPENCL_SCENES, "all"});
  std::map<std::string, std::int64_t> groups;
  for (const auto& [key, count] : played.counts.code_groups) {
    groups[std::string(profile::kernel_of_code(key))] = count;
  }
  // 5 of 64 by 16; 3 without a group's size; a task, and 64 by 16
  EXPECT_EQ(groups, (std::map<std::string, std::int64_t>{
                        {"scale", 5 * 4}, {"add", 0}, {"nothing", 1 + 4}}));
}

TEST(OpenClLayer, LosesNothingToEightThreads) {
  const Played played({WEIR_OPENCL_SCENES, "threads"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("dispatches"), 8 * 100);
  EXPECT_EQ(played.counts.counts.at("syncs"), 8 * 10);
  EXPECT_EQ(played.counts.counts.at("submits"), 8 * 10);
  EXPECT_EQ(played.counts.kernels.at("nothing"), 8 * 100);
}

TEST(OpenClLayer, FollowsHandlesThatAreUsedAgain) {
  const Played played({WEIR_OPENCL_SCENES, "churn"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("dispatches"), 300);
  EXPECT_EQ(played.counts.counts.at("syncs"), 300);
  EXPECT_EQ(played.counts.kernels.at("nothing"), 300);
}

TEST(OpenClLayer, KeepsTheCountsOfAProcessThatIsKilled) {
  const Played played({WEIR_OPENCL_SCENES, "killed"});
  EXPECT_EQ(played.ran.status, 128 + SIGKILL);
  EXPECT_EQ(played.counts.counts.at("dispatches"), 10);
  EXPECT_EQ(played.counts.counts.at("syncs"), 1);
}

TEST(OpenClLayer, KeepsCountingAfterAForkAndMakesNoFileForAnIdleChild) {
  const Played played({WEIR_OPENCL_SCENES, "forking"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  ASSERT_THAT(played.files, SizeIs(1));
  EXPECT_EQ(played.counts.counts.at("dispatches"), 4 + 3);
}

TEST(OpenClLayer, TellsADeviceThatWasMadeAndLeftIdle) {
  const Played played({WEIR_OPENCL_SCENES, "idle"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(played.counts.devices, SizeIs(1));
  EXPECT_EQ(played.counts.counts.at("dispatches"), 0);
}

TEST(OpenClLayer, SaysThatCallsOfExtensionsPassItBy) {
  const Played played({WEIR_OPENCL_SCENES, "extension"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  // PoCL has command buffers from 3.0 on; where they are not there nothing is to be said.
  const bool there = played.ran.out == "there\n";
  EXPECT_EQ(played.ran.err.find("clEnqueueCommandBufferKHR") != std::string::npos, there);
  EXPECT_THAT(played.counts.warnings, SizeIs(there ? 1 : 0));
}

TEST(OpenClLayer, LetsTheProgramRunWhereItCannotCount) {
  const Folder folder;
  const struct {
    const char* what;
    std::string dir;
    const char* says;
  } cases[] = {
      {"missing folder", folder.path() + "/no/such", "No such file or directory"},
      {"no folder named", "", "no folder in WEIR_PROBE_DIR"},
  };
  for (const auto& c : cases) {
    Env env = pocl();
    env["WEIR_PROBE_DIR"] = c.dir;
    env["OPENCL_LAYERS"] = k_layer;
    const Ran ran = run({WEIR_OPENCL_SCENES, "all"}, env);
    EXPECT_EQ(ran.status, 0) << c.what << ": " << ran.err;
    EXPECT_THAT(text::lines(text::trim(ran.err)), ElementsAre(HasSubstr(c.says))) << c.what;
  }
}

// Debian's clpeak, unmodified: it launches one kernel of its own twice to warm up, then 20 000
// times, each with a clFinish, but for the second launch of the warm-up.
TEST(OpenClLayer, CountsAProgramThatNobodyHereWrote) {
  const Played played({"clpeak", "--kernel-latency"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("dispatches"), 20002);
  EXPECT_EQ(played.counts.counts.at("waits"), 20001);
  EXPECT_EQ(played.counts.counts.at("syncs"), 20001);
  EXPECT_EQ(played.counts.counts.at("submits"), 20001);
  EXPECT_THAT(played.counts.kernels, SizeIs(1));
}

TEST(OpenClLayer, IsAttachedByTheEnvironmentThatIsNamedForIt) {
  const sys::RealFiles files;
  const auto places = locate(files);
  ASSERT_TRUE(places) << places.error().message;
  const Folder folder;
  const auto env = environment_for("opencl", *places, folder.path(), files,
                                   [](std::string_view) { return std::nullopt; });
  ASSERT_TRUE(env) << env.error().message;
  Env all = pocl();
  all.insert(env->begin(), env->end());
  EXPECT_EQ(run({WEIR_OPENCL_SCENES, "killed"}, all).status, 128 + SIGKILL);
  EXPECT_EQ(merge("opencl", probe_files(folder.path())).counts.at("dispatches"), 10);
  EXPECT_THAT(probe_devices().at("opencl"), ElementsAre("opencl"));
}

TEST(OpenClLayer, KnowsItsDeviceByTheClassThatWeirDevicesTells) {
  const Ran ran = run({WEIR_BINARY_DIR "/libexec/weir/weir-devices", "opencl"}, pocl());
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto json = parse_json(ran.out, {.bytes = 1 << 20, .depth = 8});
  ASSERT_TRUE(json) << json.error().message;
  ASSERT_EQ(json->at("opencl").size(), 1U);
  EXPECT_FALSE(json->contains("vulkan"));
  const Played played({WEIR_OPENCL_SCENES, "idle"});
  ASSERT_THAT(played.counts.devices, SizeIs(1));
  EXPECT_EQ(played.counts.devices[0].device_class,
            json->at("opencl")[0]["class"].get<std::string>());
  EXPECT_EQ(played.counts.devices[0].name, json->at("opencl")[0]["name"].get<std::string>());
  EXPECT_EQ(json->at("opencl")[0]["type"], "cpu");
}

TEST(OpenClLayer, NeedsLibcAloneAndExportsOnlyWhatTheLoaderAsksFor) {
  EXPECT_THAT(expect_loads_on_old_systems(k_layer, k_libc_alone),
              testing::UnorderedElementsAre("clGetLayerInfo", "clInitLayer"));
}

}  // namespace opencl_layer_test
}  // namespace weir::probes
