// The twin's driver: what a real driver and a twin of it have in common, and what only a twin does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/twin/blob.h"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"
#include "tests/probes/twin_of_lavapipe.hpp"

namespace weir::probes {
namespace twin_driver_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

const std::string k_probes = WEIR_BINARY_DIR "/lib/weir/probes";

// With the sanitizers where there are any: the same code.
std::string strictest() {
#ifdef WEIR_TWIN_SANITIZED
  return WEIR_TWIN_SANITIZED;
#else
  return k_twin_driver;
#endif
}

profile::ProbeCounts counted(const std::vector<std::string>& argv, Environment env,
                             int status = 0) {
  const Folder folder;
  env["WEIR_PROBE_DIR"] = folder.path();
  env["VK_LAYER_PATH"] = k_probes;
  env["VK_INSTANCE_LAYERS"] = "VK_LAYER_WEIR_probe";
  const Ran ran = run(argv, env);
  EXPECT_EQ(ran.status, status) << argv[0] << " " << argv[1] << ": " << ran.err;
  profile::ProbeCounts out = merge("vulkan", probe_files(folder.path()));
  out.counts.erase("polls");  // as many as it takes
  return out;
}

TEST(TwinDriver, CountsEachSceneAsTheRealDriverDoes) {
  for (const char* scene :
       {"many", "1.1", "1.0", "secondary", "indirect", "timeline", "polls", "idle", "again",
        "names", "labels", "details", "twice", "fork", "killed", "much", "made"}) {
    const int status = std::string(scene) == "killed" ? 137 : 0;
    const auto real = counted({WEIR_SCENES, scene}, driver(k_lavapipe), status);
    const auto same = counted({WEIR_SCENES, scene}, twin("lavapipe"), status);
    EXPECT_EQ(same.counts, real.counts) << scene;
    EXPECT_EQ(same.kernels, real.kernels) << scene;
    EXPECT_EQ(same.warnings, real.warnings) << scene;
    ASSERT_EQ(same.devices.size(), 1U) << scene;
    EXPECT_EQ(same.devices[0].device_class, real.devices[0].device_class) << scene;
  }
  const auto threads = counted({WEIR_SCENES, "threads"}, twin("lavapipe"));
  EXPECT_EQ(threads.counts.at("dispatches"), 600);  // as in vulkan_layer_test.cpp
}

// A program may turn layers off, or bring one that hides them.
TEST(TwinDriver, TellsOfWorkPastTheLayer) {
  const auto uncounted = [](const char* scene, const Environment& more) {
    const Folder folder;
    Environment env = twin("lavapipe");
    env["WEIR_PROBE_DIR"] = folder.path();
    env["VK_LAYER_PATH"] = k_probes;
    env["VK_INSTANCE_LAYERS"] = "VK_LAYER_WEIR_probe";
    for (const auto& [name, value] : more) env[name] = value;
    const Ran ran = run({WEIR_SCENES, scene}, env);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().filename().string().starts_with("uncounted-")) ++count;
    }
    return count;
  };
  for (const char* scene : {"many", "twice", "fork"}) EXPECT_EQ(uncounted(scene, {}), 0U) << scene;
  EXPECT_EQ(uncounted("made", {{"VK_INSTANCE_LAYERS", ""}}), 0U) << "nothing is submitted";
  EXPECT_EQ(uncounted("many", {{"VK_INSTANCE_LAYERS", ""}}), 1U);
  EXPECT_EQ(uncounted("twice", {{"VK_INSTANCE_LAYERS", ""}}), 1U) << "of one process";
  EXPECT_EQ(uncounted("fork", {{"VK_INSTANCE_LAYERS", ""}}), 3U) << "it, and two children";
}

profile::ProbeCounts llama(const std::string& model, const std::vector<std::string>& work,
                           Environment env) {
  const std::string engine = WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench";
  const std::string path = WEIR_SOURCE_DIR "/models/" + model;
  EXPECT_TRUE(std::filesystem::exists(engine)) << engine << " is missing: run ci/setup test";
  std::vector<std::string> argv{engine, "-m", path, "-r", "1", "-ngl", "99", "-o", "json"};
  argv.insert(argv.end(), work.begin(), work.end());
  env["GGML_VK_DEBUG_MARKERS"] = "1";
  return counted(argv, env);
}

TEST(TwinDriver, TakesLlamaThroughTheSameKernelsAsTheRealDriver) {
  for (const char* model : {"tiny-llama.gguf", "tiny-gemma3.gguf"}) {
    for (const auto& work : {std::vector<std::string>{"-p", "0", "-n", "4"},
                             std::vector<std::string>{"-p", "64", "-n", "0"}}) {
      Environment real = driver(k_lavapipe), same = twin("lavapipe");
      // A device of type CPU, which it leaves out by itself.
      real["GGML_VK_VISIBLE_DEVICES"] = same["GGML_VK_VISIBLE_DEVICES"] = "0";
      const auto on_real = llama(model, work, real);
      const auto on_twin = llama(model, work, same);
      EXPECT_EQ(on_twin.counts, on_real.counts) << model << work[1];
      EXPECT_EQ(on_twin.kernels, on_real.kernels) << model << work[1];
    }
  }
}

TEST(TwinDriver, TakesLlamaThroughACardByTheWayItsMemoryIsReached) {
  const auto decode = [](const Environment& env, const char* tokens) {
    return llama("tiny-llama.gguf", {"-p", "0", "-n", tokens}, env);
  };
  const struct {
    const char* name;
    std::int64_t dispatches, barriers, copies;
    const char* why;
  } cases[] = {
      {"open", 65, 46, 2, "the host reaches it, as lavapipe's: the reference of llama_test.cpp"},
      {"discrete", 65, 52, 8, "six inputs more go by a copy, each behind a barrier"},
  };
  for (const auto& c : cases) {
    const auto few = decode(twin(c.name), "4");
    const auto more = decode(twin(c.name), "9");
    const auto each = [&](const char* name) { return more.counts.at(name) - few.counts.at(name); };
    EXPECT_EQ(each("dispatches"), 5 * c.dispatches) << c.name << ": " << c.why;
    EXPECT_EQ(each("barriers"), 5 * c.barriers) << c.name << ": " << c.why;
    EXPECT_EQ(each("copies"), 5 * c.copies) << c.name << ": " << c.why;
    EXPECT_TRUE(more.kernels_named) << c.name;
    ASSERT_EQ(more.devices.size(), 1U) << c.name;
    EXPECT_EQ(more.devices[0].name, "Twin of a card");
    // Whatever memory reads as, this engine's counts do not depend on it.
    Environment filled = twin(c.name);
    filled["WEIR_TWIN_FILL"] = "127";
    const auto refilled = decode(filled, "9");
    EXPECT_EQ(refilled.counts, more.counts) << c.name;
    EXPECT_EQ(refilled.kernels, more.kernels) << c.name;
  }
}

TEST(TwinDriver, BearsTenThousandRandomSequencesOfCommands) {
  for (const char* fill : {"0", "165"}) {
    for (const char* name : {"discrete", "open"}) {
      Environment env = twin(name, strictest());
      env["WEIR_TWIN_FILL"] = fill;
      const Ran ran = run({WEIR_TWIN_PROGRAM, "random", "0", "2500"}, env);
      EXPECT_EQ(ran.status, 0) << name << " " << fill << ": " << ran.err;
    }
  }
}

TEST(TwinDriver, IsSilentUnderTheValidationLayer) {
  for (const char* name : {"discrete", "open"}) {
    Environment env = twin(name);
    env["VK_LAYER_PATH"] = "/usr/share/vulkan/explicit_layer.d";
    env["VK_INSTANCE_LAYERS"] = "VK_LAYER_KHRONOS_validation";
    const Ran ran = run({WEIR_TWIN_PROGRAM, "random", "0", "600"}, env);
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ((ran.out + ran.err).substr(0, 2000), "") << name;
    for (const char* scene : {"many", "indirect", "details", "threads"}) {
      const Ran played = run({WEIR_SCENES, scene}, env);
      EXPECT_EQ((played.out + played.err).substr(0, 2000), "") << scene;
    }
    EXPECT_THAT(run({WEIR_SCENES, "invalid"}, env).out, HasSubstr("VkBufferCopy"));
  }
}

TEST(TwinDriver, KeepsItsPromises) {
  std::vector<const char*> scenes{"heap", "offers", "host event"};
#ifndef WEIR_TWIN_SANITIZED  // whose own memory these would measure
  scenes.insert(scenes.end(), {"open memory", "untouched"});
#endif
  for (const char* scene : scenes) {
    for (const char* fill : {"0", "9"}) {
      Environment env = twin("open");
      env["WEIR_TWIN_FILL"] = fill;
      const Ran ran = run({WEIR_TWIN_PROGRAM, scene}, env);
      EXPECT_EQ(ran.status, 0) << scene << " " << fill;
      EXPECT_EQ(ran.err, "") << scene;
    }
  }
}

TEST(TwinDriver, RefusesGraphicsOnceAFunctionAndGoesOn) {
  const Ran ran = run({WEIR_TWIN_PROGRAM, "graphics"}, twin("discrete"));
  EXPECT_EQ(ran.status, 0);
  std::string expected;
  for (const char* name : {"vkCreateGraphicsPipelines", "vkCreateRenderPass", "vkCreateImage",
                           "vkCmdDraw", "vkCmdEndRenderPass"}) {
    expected += "weir twin: discrete is for compute alone: " + std::string(name) + " is refused\n";
  }
  EXPECT_EQ(ran.err, expected);
}

TEST(TwinDriver, ShowsSeveralTwinsEachWithAUuidOfItsOwn) {
  // The loader puts cards before a device of type CPU.
  const Ran ran = run({WEIR_TWIN_PROGRAM, "list"}, twin("lavapipe:discrete:open"));
  const auto lines = text::lines(text::trim(ran.out));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("Twin of a card"), HasSubstr("Twin of a card"),
                                 HasSubstr("llvmpipe")));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[0], lines[1]);
}

TEST(TwinDriver, LeavesOutWhatIsNoDescription) {
  const Folder folder;
  const std::string good = slurp(description("discrete"));
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder.path() + "/" + name, std::ios::binary) << bytes;
    return folder.path() + "/" + name;
  };
  const auto with = [&](std::size_t at, std::uint64_t value, std::size_t size) {
    std::string out = good;
    out.replace(at, size, std::string(reinterpret_cast<const char*>(&value), size));
    return out;
  };
  const std::size_t first = offsetof(weir_twin_header, sections);
  const struct {
    std::string bytes;
    const char* says;
  } cases[] = {
      {"", "no such device"},
      {"short", "too short"},
      {with(0, 0, 8), "no description"},
      {with(offsetof(weir_twin_header, version), 9, 4), "another version"},
      {good.substr(0, good.size() - 1), "cut off"},
      {with(offsetof(weir_twin_header, section_count), 17, 4), "too many parts"},
      {with(first + offsetof(weir_twin_section, offset), ~std::uint64_t{0}, 8), "outside of it"},
      {with(first + offsetof(weir_twin_section, count), 0x7fffffff, 4), "outside of it"},
      {with(first + offsetof(weir_twin_section, kind), 77, 4), "not of its size"},
  };
  for (const auto& c : cases) {
    Environment env = twin("discrete");
    env["WEIR_TWIN"] = write("bad", c.bytes) + ":" + description("discrete");
    const Ran ran = run({WEIR_TWIN_PROGRAM, "list"}, env);
    EXPECT_EQ(ran.status, 0) << c.says;
    EXPECT_THAT(ran.err, HasSubstr(c.says));
    EXPECT_THAT(ran.out, MatchesRegex("Twin of a card [0-9a-f]+\n")) << c.says;
  }
}

TEST(TwinDriver, BearsDamagedDescriptions) {
  const Folder folder;
  const std::string good = slurp(description("discrete"));
  std::uint64_t random = 7;
  const auto next = [&] {
    return random = random * 6364136223846793005ULL + 1442695040888963407ULL;
  };
  for (int i = 0; i < 200; ++i) {
    std::string bytes = good;
    // Half of them in the head, where the parts' places are.
    for (int k = 0; k < 4; ++k) {
      const std::size_t end = k % 2 == 0 ? sizeof(weir_twin_header) : bytes.size();
      bytes[8 + (next() >> 33) % (end - 8)] = static_cast<char>(next() >> 40);
    }
    const std::string path = folder.path() + "/damaged";
    std::ofstream(path, std::ios::binary) << bytes;
    Environment env = twin("discrete", strictest());
    env["WEIR_TWIN"] = path;
    // In the program the loader asks for nearly everything.
    EXPECT_LT(run({WEIR_TWIN_PROGRAM, "list"}, env).status, 128) << i;
  }
}

TEST(TwinDriver, NeedsLibcAlone) {
  EXPECT_THAT(expect_loads_on_old_systems(k_probes + "/libVk_weir_twin.so",
                                          "\\[(libc\\.so|libpthread\\.so|ld-linux)"),
              testing::UnorderedElementsAre("vk_icdNegotiateLoaderICDInterfaceVersion",
                                            "vk_icdGetInstanceProcAddr",
                                            "vk_icdGetPhysicalDeviceProcAddr"));
}

}  // namespace twin_driver_test
}  // namespace weir::probes
