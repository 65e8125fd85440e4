// The real engine: llama.cpp as ci/setup gets it, on lavapipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace llama_test {

profile::ProbeCounts generate(const std::string& model, int tokens) {
  const Folder folder;
  const std::string engine = WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench";
  const std::string path = WEIR_SOURCE_DIR "/models/" + model;
  EXPECT_TRUE(std::filesystem::exists(engine)) << engine << " is missing: run ci/setup test";
  EXPECT_TRUE(std::filesystem::exists(path)) << path << " is missing: run ci/setup test";
  const Ran ran = run({engine, "-m", path, "-p", "0", "-n", std::to_string(tokens), "-r", "1",
                       "-ngl", "99", "-o", "json"},
                      {{"WEIR_PROBE_DIR", folder.path()},
                       {"VK_LAYER_PATH", WEIR_BINARY_DIR "/lib/weir/probes"},
                       {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
                       {"GGML_VK_VISIBLE_DEVICES", "0"},
                       {"GGML_VK_DEBUG_MARKERS", "1"},
                       {"VK_LOADER_DRIVERS_SELECT", "*lvp*"}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return merge("vulkan", probe_files(folder.path()));
}

// The reference counts of the models of this repository, by hand from several lengths up to 300:
// dispatches and barriers are proportional to tokens + 1, the warm-up being one token.
TEST(Llama, SendsTheReferenceCountsPerToken) {
  const struct {
    const char* model;
    std::int64_t dispatches, barriers, syncs;
  } cases[] = {
      {"tiny-llama.gguf", 65, 46, 1},
      {"tiny-gemma3.gguf", 125, 96, 1},
  };
  for (const auto& c : cases) {
    const profile::ProbeCounts few = generate(c.model, 4);
    const profile::ProbeCounts more = generate(c.model, 12);
    if (few.counts.empty() || more.counts.empty()) {
      ADD_FAILURE() << c.model << ": nothing was counted";
      continue;
    }
    EXPECT_EQ(few.counts.at("dispatches"), c.dispatches * 5) << c.model;
    EXPECT_EQ(few.counts.at("barriers"), c.barriers * 5) << c.model;
    for (const auto& [name, each] :
         {std::pair{"dispatches", c.dispatches}, std::pair{"barriers", c.barriers},
          std::pair{"syncs", c.syncs}}) {
      EXPECT_EQ(more.counts.at(name) - few.counts.at(name), each * 8) << c.model << " " << name;
    }
    std::int64_t kernels = 0;
    for (const auto& [name, dispatches] : more.kernels) kernels += dispatches;
    EXPECT_EQ(kernels, more.counts.at("dispatches")) << c.model;
    EXPECT_TRUE(more.kernels_named) << c.model;
  }
}

}  // namespace llama_test
}  // namespace weir::probes
