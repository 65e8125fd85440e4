// No probe changes what an engine sends: the real llama.cpp with and without each of them, on top
// of a second count that shares no code with ours (independent_layer.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/independent_count.hpp"
#include "tests/probes/support.hpp"
#include "tests/probes/twin_of_lavapipe.hpp"

namespace weir::probes {
namespace same_work_test {

using Counts = std::map<std::string, std::int64_t>;

struct Sent {
  Counts independent;           // calls that reached the driver
  profile::ProbeCounts vulkan;  // counts of our layer
};

struct Attached {
  const char* what;
  bool vulkan;
  Environment env;
};

Sent bench(const char* model, const Attached& attached, const Environment& device) {
  const Folder folder;
  const std::string file = folder.path() + "/independent";
  Environment env = attached.env;
  env.insert(device.begin(), device.end());
  env.insert(
      {{"WEIR_INDEPENDENT_COUNTS", file},
       {"WEIR_PROBE_DIR", folder.path()},
       {"VK_LAYER_PATH", WEIR_BINARY_DIR "/lib/weir/probes:" WEIR_INDEPENDENT_LAYER},
       {"VK_INSTANCE_LAYERS", std::string(attached.vulkan ? "VK_LAYER_WEIR_probe:" : "") +
                                  k_independent_layer},  // the last one is next to the driver
       {"GGML_VK_VISIBLE_DEVICES", "0"}});
  const Ran ran = run({WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench", "-m",
                       WEIR_SOURCE_DIR "/models/" + std::string(model), "-p", "9", "-n", "2", "-r",
                       "1", "-ngl", "99", "-o", "json"},
                      env);
  EXPECT_EQ(ran.status, 0) << attached.what << ": " << ran.err;
  return {independent_counts(file), merge("vulkan", probe_files(folder.path()))};
}

const std::string k_preload = WEIR_BINARY_DIR "/lib/weir/probes/libweir_ggml.so";

TEST(SameWork, ReachesTheDriverUnderEveryProbe) {
  const Attached cases[] = {
      {"counting", true, {}},
      {"events", true, {{"WEIR_PROBE_EVENTS", "64"}}},
      {"batched timing", true, {{"WEIR_PROBE_EVENTS", "64"}, {"WEIR_PROBE_TIMING", "batched"}}},
      {"ggml", false, {{"LD_PRELOAD", k_preload}}},
      {"ggml and counting", true, {{"LD_PRELOAD", k_preload}}},
  };
  for (const auto& [model, device] : {std::pair{"tiny-llama.gguf", driver(k_lavapipe)},
                                      std::pair{"tiny-gemma3.gguf", twin("lavapipe")}}) {
    const Counts plain = bench(model, {"nothing", false, {}}, device).independent;
    ASSERT_FALSE(plain.empty()) << "the second count did not run";
    ASSERT_GT(plain.at("barriers"), 0);
    EXPECT_EQ(plain.at("timestamps"), 0);
    for (const Attached& attached : cases) {
      Sent sent = bench(model, attached, device);
      // Timestamps are what batched timing adds, and no more than that.
      if (attached.env.contains("WEIR_PROBE_TIMING")) {
        EXPECT_GT(sent.independent.at("timestamps"), 0) << model;
        sent.independent["timestamps"] = 0;
      }
      EXPECT_EQ(sent.independent, plain) << model << ", " << attached.what;
      if (!attached.vulkan) continue;
      // ggml submits each buffer that it records once, so both counts must agree.
      for (const char* name : {"dispatches", "barriers", "copies", "submits", "waits", "syncs"}) {
        EXPECT_EQ(sent.vulkan.counts.at(name), plain.at(name))
            << model << ", " << attached.what << ": " << name;
      }
    }
  }
}

TEST(SameWork, GetsABarrierBehindEachDispatchAndCopyWhenSerialized) {
  const Counts plain =
      bench("tiny-llama.gguf", {"nothing", false, {}}, driver(k_lavapipe)).independent;
  Sent sent = bench("tiny-llama.gguf",
                    {"serialized timing",
                     true,
                     {{"WEIR_PROBE_EVENTS", "64"}, {"WEIR_PROBE_TIMING", "serialized"}}},
                    driver(k_lavapipe));
  ASSERT_FALSE(plain.empty());
  EXPECT_EQ(sent.independent.at("barriers"),
            plain.at("barriers") + plain.at("dispatches") + plain.at("copies"));
  // The extra barriers are the layer's own: it does not count them, and everything else is
  // unchanged.
  EXPECT_EQ(sent.vulkan.counts.at("barriers"), plain.at("barriers"));
  for (const char* name : {"dispatches", "copies", "submits", "waits", "done_polls", "syncs"}) {
    EXPECT_EQ(sent.independent.at(name), plain.at(name)) << name;
  }
}

}  // namespace same_work_test
}  // namespace weir::probes
