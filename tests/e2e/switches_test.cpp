// Every switch of the engine that the tests and configurations know: a twin of lavapipe takes the
// kernels that lavapipe takes, in the same number.
#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace switches_test {

struct Switch {
  const char* name;  // name of the test
  std::vector<std::string> words;
  sys::EnvironmentList env;
};
void PrintTo(const Switch& setting, std::ostream* out) { *out << setting.name; }

std::vector<Switch> switches() {
  std::vector<Switch> out{{"Nothing", {}, {}}};
  // All variables that this release's ggml-vulkan.cpp takes a path by (getenv), but those that
  // choose devices or only print.
  for (const char* name : {"DISABLE_FUSION",
                           "DISABLE_F16",
                           "DISABLE_COOPMAT",
                           "DISABLE_COOPMAT2",
                           "DISABLE_COOPMAT2_DECODE_VECTOR",
                           "DISABLE_INTEGER_DOT_PRODUCT",
                           "DISABLE_BFLOAT16",
                           "DISABLE_DOT2",
                           "DISABLE_OCP_FP4",
                           "DISABLE_MULTI_ADD",
                           "DISABLE_MMVQ",
                           "FORCE_MMVQ",
                           "DISABLE_GRAPH_OPTIMIZE",
                           "DISABLE_ASYNC",
                           "DISABLE_HOST_VISIBLE_VIDMEM",
                           "PREFER_HOST_MEMORY",
                           "ALLOW_SYSMEM_FALLBACK",
                           "ALLOW_GRAPHICS_QUEUE",
                           "ASYNC_USE_TRANSFER_QUEUE",
                           "SERIALIZE_SUBMISSIONS",
                           "ENABLE_MEMORY_PRIORITY",
                           "FA_SPARSE_DISABLE"}) {
    out.push_back({name, {}, {{std::string("GGML_VK_") + name, "1"}}});
  }
  out.push_back({"MaxNodesPerSubmit", {}, {{"GGML_VK_MAX_NODES_PER_SUBMIT", "7"}}});
  out.push_back({"MaxAllocation", {}, {{"GGML_VK_FORCE_MAX_ALLOCATION_SIZE", "1048576"}}});
  out.push_back({"MaxBuffer", {}, {{"GGML_VK_FORCE_MAX_BUFFER_SIZE", "8388608"}}});
  out.push_back({"SuballocationBlock", {}, {{"GGML_VK_SUBALLOCATION_BLOCK_SIZE", "1048576"}}});
  // Arguments of llama-bench.
  out.push_back({"FlashAttentionOff", {"-fa", "0"}, {}});
  out.push_back({"FlashAttentionOn", {"-fa", "1"}, {}});
  out.push_back({"KeysAndValuesInQ8", {"-fa", "1", "-ctk", "q8_0", "-ctv", "q8_0"}, {}});
  out.push_back({"KeysAndValuesInQ4", {"-fa", "1", "-ctk", "q4_0", "-ctv", "q4_0"}, {}});
  out.push_back({"KeysInQ8ValuesInQ5", {"-fa", "1", "-ctk", "q8_0", "-ctv", "q5_1"}, {}});
  out.push_back({"SmallBatches", {"-b", "16", "-ub", "8"}, {}});
  out.push_back({"KeysAndValuesOnTheCpu", {"-nkvo", "1"}, {}});
  out.push_back({"OpsWhereTheirWeightsAre", {"-nopo", "1"}, {}});
  out.push_back({"HalfOfTheLayers", {"-ngl", "2"}, {}});
  out.push_back({"NoLayers", {"-ngl", "0"}, {}});
  out.push_back({"ModelRead", {"-lm", "none"}, {}});
  out.push_back({"ModelMapped", {"-lm", "mmap"}, {}});
  out.push_back({"Embeddings", {"-embd", "1"}, {}});
  out.push_back({"Depth", {"-d", "40"}, {}});
  return out;
}

class Switches : public testing::TestWithParam<Switch> {
 protected:
  Counted counted(const char* model, std::vector<std::string> words, sys::EnvironmentList env) {
    const Switch& on = GetParam();
    words.insert(words.end(), on.words.begin(), on.words.end());
    env.insert(env.end(), on.env.begin(), on.env.end());
    const fs::path folder = scratch_ / ("run-" + std::to_string(++runs_));
    const Benched ran = bench({model, words, env}, folder);
    EXPECT_TRUE(ran.well) << model;
    Counted out = counted_in(folder);
    fs::remove_all(folder);
    return out;
  }

 private:
  Scratch scratch_;
  int runs_ = 0;
};

TEST_P(Switches, LeadATwinOfLavapipeWhereTheyLeadLavapipe) {
  std::vector<const char*> models{"tiny-llama"};
  // Another model would show only how its own ops are fused.
  if (GetParam().env.empty() || std::string(GetParam().name).ends_with("FUSION")) {
    models.push_back("tiny-gemma3");
  }
  for (const char* model : models) {
    // Little work, for lavapipe does it; 16 columns make products of matrices, not of vectors.
    const std::vector<std::string> words{"-p", "16", "-n", "1", "--no-warmup"};
    const Counted real = counted(model, words, on_lavapipe());
    const Counted same = counted(model, words, on_twin_of_lavapipe());
    EXPECT_EQ(real.vulkan.devices.size(), 1U) << model;
    EXPECT_EQ(same.vulkan.devices, real.vulkan.devices) << model;
    EXPECT_EQ(same.vulkan.counts, real.vulkan.counts) << model;
    EXPECT_EQ(same.vulkan.kernels, real.vulkan.kernels) << model;
    EXPECT_EQ(same.ggml, real.ggml) << model;
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, Switches, testing::ValuesIn(switches()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace switches_test
}  // namespace weir::e2e
