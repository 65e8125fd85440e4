// The Vulkan layer in front of lavapipe, Mesa's software device: scenes with known counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/kernel_names.hpp"
#include "gate/probes/read/locate.hpp"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"
#include "tests/probes/vulkan_program.hpp"
#include "tests/support/memory_files.hpp"

namespace weir::probes {
namespace vulkan_layer_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;
using Counts = std::map<std::string, std::int64_t>;

const std::string k_layers = WEIR_BINARY_DIR "/lib/weir/probes";
const std::string k_devices = WEIR_BINARY_DIR "/libexec/weir/weir-devices";

std::map<std::string, std::string> environment(const std::string& folder) {
  return {{"WEIR_PROBE_DIR", folder},
          {"VK_LAYER_PATH", k_layers},
          {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
          {"VK_LOADER_DRIVERS_SELECT", "*lvp*"}};
}

struct Played {
  Ran ran;
  profile::ProbeCounts counts;
  std::vector<ProbeFile> files;
};
Played play(const std::string& scene) {
  const Folder folder;
  Played out;
  out.ran = run({WEIR_SCENES, scene}, environment(folder.path()));
  out.files = probe_files(folder.path());
  out.counts = merge("vulkan", out.files);
  return out;
}

TEST(VulkanLayer, CountsWhatASceneSends) {
  struct Case {
    const char* scene;
    Counts counts;
    std::map<std::string, std::int64_t> kernels;
    const char* why;
  };
  // dispatches, barriers, copies, submits, command buffers, indirect, syncs, waits
  const auto counts = [](int d, int b, int c, int s, int cb, int i, int sy, int w) {
    return Counts{{"dispatches", d},       {"barriers", b},
                  {"copies", c},           {"submits", s},
                  {"command_buffers", cb}, {"indirect_dispatches", i},
                  {"syncs", sy},           {"waits", w}};
  };
  const Case cases[] = {
      {"many",
       counts(16, 8, 12, 4, 4, 0, 4, 4),
       {{"add", 12}, {"mul", 4}},
       "one buffer with 3 + 1 dispatches, 2 barriers and 3 copies, submitted 4 times"},
      {"1.1", counts(16, 8, 12, 4, 4, 0, 4, 4), {{"add", 12}, {"mul", 4}}, "the same, Vulkan 1.1"},
      {"1.0", counts(16, 8, 12, 4, 4, 0, 4, 4), {{"add", 12}, {"mul", 4}}, "the same, Vulkan 1.0"},
      {"secondary",
       counts(10, 4, 0, 1, 2, 0, 1, 1),
       {{"add", 8}, {"mul", 2}},
       "(2 x 2 + 1) dispatches, the primary buffer twice in one submit"},
      {"indirect", counts(3, 1, 1, 1, 1, 2, 1, 1), {{"add", 3}}, "2 indirect and 1 with a base"},
      {"timeline",
       counts(4, 0, 0, 4, 4, 0, 3, 3),
       {{"add", 4}},
       "syncs: wait for 1, wait for 3 (of 2 and 3), poll of 4"},
      {"polls",
       counts(11, 0, 0, 11, 11, 0, 6, 5),
       {{"add", 11}},
       "5 tokens of two fences and one sync, then a wait with timeout 0 that succeeds"},
      {"idle",
       counts(2, 0, 0, 2, 2, 0, 2, 4),
       {{"add", 2}},
       "4 waits, of which 2 had a submission since the last sync"},
      {"again",
       counts(7, 0, 0, 3, 3, 0, 3, 3),
       {{"add", 3}, {"mul", 4}},
       "1 after recording anew, 2 after a pool reset, 4 in a buffer that was freed and made again"},
      {"killed", counts(30, 0, 0, 10, 10, 0, 10, 10), {{"add", 30}}, "10 x 3, then SIGKILL"},
      {"twice", counts(3, 0, 0, 2, 2, 0, 2, 2), {{"add", 3}}, "1 + 2 over two instances"},
      {"fork",
       counts(14, 0, 0, 4, 4, 0, 4, 4),
       {{"add", 14}},
       "2 and 4 in the parent, 3 in a forked child, 5 in one that called exec"},
      {"made", counts(0, 0, 0, 0, 0, 0, 0, 0), {}, "a device without work"},
  };
  for (const Case& c : cases) {
    Played played = play(c.scene);
    EXPECT_EQ(played.ran.status, std::string(c.scene) == "killed" ? 137 : 0)
        << c.scene << ": " << played.ran.err;
    // As many polls as it takes; those with names of their own have a test of theirs.
    std::erase_if(played.counts.counts, [&](const auto& count) {
      return count.first == "polls" || played.files.front().counters.contains(count.first);
    });
    EXPECT_EQ(played.counts.counts, c.counts) << c.scene << ": " << c.why;
    EXPECT_EQ(played.counts.kernels, c.kernels) << c.scene;
    EXPECT_THAT(played.counts.warnings, SizeIs(0)) << c.scene;
    EXPECT_THAT(played.counts.devices, SizeIs(1)) << c.scene;
  }
}

// The scene: 4 KiB for every one, 64 KiB and 16 KiB in turn, 16 KiB beside 4 when work goes down.
TEST(VulkanLayer, CountsMemoryAndWhatIsMadeOfShaders) {
  const Played played = play("memory");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  Counts named;
  for (const auto& [name, value] : played.files.front().counters) {
    named[name] = static_cast<std::int64_t>(value);
  }
  EXPECT_EQ(named, (Counts{{"device_memory_peak_bytes", (64 + 4) << 10},
                           {"device_memory_steady_bytes", (16 + 4) << 10},
                           {"host_heap_peak_bytes", 0},  // lavapipe has one heap, its own
                           {"bound_buffer_peak_bytes", 4096 + 2 * 8192},
                           {"allocations", 3},  // and one that failed
                           {"pipelines", 2},
                           {"shader_modules", 2}}));
  EXPECT_EQ(play("made").counts.counts.at("allocations"), 0) << "a device without work";
  EXPECT_EQ(play("twice").counts.counts.at("device_memory_peak_bytes"), 4096)
      << "one device after the other, the first without giving back";
}

TEST(VulkanLayer, LosesNothingWhenThreadsSubmit) {
  const Played played = play("threads");
  EXPECT_EQ(played.ran.status, 0) << played.ran.err;
  // 4 threads x 50 submissions x (2 + 1) dispatches and 1 barrier.
  EXPECT_EQ(played.counts.counts.at("dispatches"), 600);
  EXPECT_EQ(played.counts.counts.at("barriers"), 200);
  EXPECT_EQ(played.counts.counts.at("submits"), 200);
  EXPECT_EQ(played.counts.counts.at("waits"), 200);
  EXPECT_EQ(
      played.counts.kernels,
      (Counts{{"add", 400}, {"thread0", 50}, {"thread1", 50}, {"thread2", 50}, {"thread3", 50}}));
  // One queue: threads that wait at the same time share a sync, never more than one a submission.
  EXPECT_LE(played.counts.counts.at("syncs"), 200);
  EXPECT_GE(played.counts.counts.at("syncs"), 50);
}

TEST(VulkanLayer, TakesTheNameGivenBeforeTheDispatchIsReachedElseAHash) {
  const Played played = play("names");
  ASSERT_THAT(played.files, SizeIs(1));
  std::map<std::string, std::uint64_t> named;
  std::vector<std::uint64_t> hashed;
  for (const ProbeKernel& kernel : played.files[0].kernels) {
    if (kernel.named) {
      named[kernel.name] = kernel.dispatches;
    } else if (kernel.dispatches != 0) {
      EXPECT_THAT(kernel.name, testing::MatchesRegex("main@[0-9a-f]+"));
      hashed.push_back(kernel.dispatches);
    }
  }
  EXPECT_THAT(named, ElementsAre(Pair("add", 1), Pair("named after recording", 2)));
  // Two pipelines of the same code are one kernel (3 + 4), another specialization is another one.
  EXPECT_THAT(hashed, testing::UnorderedElementsAre(7, 5));
  EXPECT_FALSE(played.counts.kernels_named);
  EXPECT_TRUE(play("many").counts.kernels_named);
}

TEST(VulkanLayer, TellsTheCodeOfNamedKernelsWithItsGroups) {
  const profile::ProbeCounts counts = play("many").counts;
  std::map<std::string, std::int64_t> calls;
  for (const auto& [key, count] : counts.codes) {
    calls[std::string(profile::kernel_of_code(key))] += count;
  }
  EXPECT_EQ(counts.code_groups, counts.codes) << "each dispatch is of one group";
  EXPECT_EQ(calls, counts.kernels);
  // The same program has the same code in each process.
  EXPECT_EQ(play("many").counts.codes, counts.codes);
}

TEST(VulkanLayer, GivesKernelsWithoutNamesThoseOfTheirFiles) {
  sys::MemoryFiles files;
  for (const auto& [name, size] :
       {std::pair{"/src/shaders/eight.spv", 8U}, {"/src/shaders/deep/er/two.spv", 2U}}) {
    const std::vector<uint32_t> words = empty_shader(size);
    files.put(name, {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]});
  }
  files.put("/src/shaders/readme", "no shader");
  const auto shaders = find_shaders(files, "/src/shaders/**/*.spv");
  ASSERT_TRUE(shaders) << shaders.error().message;
  ASSERT_THAT(*shaders, SizeIs(2));
  EXPECT_EQ((*shaders)[0].name, "deep/er/two");
  profile::ProbeCounts counts = play("names").counts;
  name_kernels(*shaders, counts);
  EXPECT_EQ(counts.kernels.at("eight"), 7);  // 3 + 4, of two pipelines
  EXPECT_FALSE(counts.kernels_named) << "one has constants of its own, which no file tells";
  std::erase_if(counts.kernels,
                [](const auto& entry) { return entry.first.find('@') != std::string::npos; });
  name_kernels(*shaders, counts);
  EXPECT_TRUE(counts.kernels_named);
  counts.kernels = {{"(other)", 1}, {"eight", 2}};
  counts.kernels_named = false;
  name_kernels(*shaders, counts);
  EXPECT_FALSE(counts.kernels_named);
  EXPECT_EQ(find_shaders(files, "/src/shader/*.spv").error().code, Code::config);
}

TEST(VulkanLayer, GivesEachProcessItsOwnFile) {
  const Played played = play("fork");
  std::multiset<std::int64_t> dispatches;
  for (const ProbeFile& file : played.files) {
    dispatches.insert(merge("vulkan", std::vector{file}).counts.at("dispatches"));
  }
  // The child that did nothing of Vulkan has none.
  EXPECT_THAT(dispatches, ElementsAre(3, 5, 6));
}

TEST(VulkanLayer, LeavesNoDescriptorOpen) { EXPECT_EQ(play("descriptors").ran.out, "0\n"); }

TEST(VulkanLayer, LetsTheProgramRunWhereItCannotCount) {
  const Folder folder;
  const std::string file = folder.path() + "/a-file";
  std::ofstream(file) << "x";
  const auto with_dir = [](const std::string& dir) {
    auto env = environment(dir);
    return env;
  };
  const struct {
    const char* what;
    std::map<std::string, std::string> env;
    std::uint64_t file_size_limit;
    const char* says;
  } cases[] = {
      {"missing folder", with_dir(folder.path() + "/no/such"), 0, "No such file or directory"},
      {"a file for a folder", with_dir(file), 0, "Not a directory"},
      {"no folder named", with_dir(""), 0, "no folder in WEIR_PROBE_DIR"},
      {"a file size limit", with_dir(folder.path()), 4096, "limit on file sizes"},
      {"too long a path", with_dir(std::string(5000, 'x')), 0, "name is too long"},
  };
  for (const auto& c : cases) {
    const Ran ran = run({WEIR_SCENES, "many"}, c.env, c.file_size_limit);
    EXPECT_EQ(ran.status, 0) << c.what << ": " << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(c.says)) << c.what;
    EXPECT_THAT(text::lines(text::trim(ran.err)), SizeIs(1)) << c.what;
    EXPECT_THAT(probe_files(folder.path()), SizeIs(0)) << c.what;
  }
}

TEST(VulkanLayer, WritesTheDeviceClassThatWeirDevicesPrints) {
  const Ran listed = run({k_devices}, {{"VK_LOADER_DRIVERS_SELECT", "*lvp*"}});
  ASSERT_EQ(listed.status, 0) << listed.err;
  const auto json = parse_json(listed.out);
  ASSERT_TRUE(json) << listed.out;
  EXPECT_EQ(json->at("schema"), "weir.devices/1");
  EXPECT_TRUE(json->at("vulkan_error").is_null());
  std::map<std::string, std::string> classes;
  for (const Json& device : json->at("vulkan")) classes[device.at("name")] = device.at("class");
  for (const char* scene : {"many", "1.1"}) {
    const Played played = play(scene);
    ASSERT_THAT(played.counts.devices, SizeIs(1));
    const profile::ProbedDevice& device = played.counts.devices[0];
    EXPECT_EQ(device.api, "vulkan");
    EXPECT_EQ(device.type, "cpu");
    EXPECT_EQ(classes[device.name], device.device_class) << scene;
    EXPECT_THAT(device.device_class,
                testing::MatchesRegex("vulkan-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"));
  }
}

TEST(VulkanLayer, NeedsLibcAlone) {
  expect_loads_on_old_systems(k_layers + "/libVkLayer_weir_probe.so", k_libc_and_libdl);
}

}  // namespace vulkan_layer_test
}  // namespace weir::probes
