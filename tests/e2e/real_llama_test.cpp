// The unmodified llama.cpp on lavapipe, through the reference config.
#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace real_llama_test {

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_engine = k_root + "/engines/llama.cpp/llama-bench";

class RealLlama : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_engine))
        << "run ci/prepare test first: it gets llama.cpp and the models";
    ASSERT_TRUE(fs::exists(k_root + "/models/tiny-llama.gguf")) << "run ci/models first";
  }

  // The reference config with llama-bench behind a wrapper that does `script` first.
  void write_config(const std::string& script) {
    spill_program(scratch_ / "engine", "#!/bin/sh\n" + script + "\n");
    std::string text = slurp(k_root + "/configs/llama.cpp.yaml");
    const auto replace = [&](const std::string& from, const std::string& to) {
      const auto at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    };
    replace("../engines/llama.cpp/llama-bench", "./engine");
    for (const char* model : {"tiny-llama.gguf", "tiny-gemma3.gguf"}) {
      replace(std::string("../models/") + model, k_root + "/models/" + model);
    }
    spill(scratch_ / "weir.yaml", text);
  }

  // On a twin of lavapipe, as all here where lavapipe itself is not asked for.
  Ended accept(const std::string& baselines, const std::string& globs,
               const sys::EnvironmentList& device = on_twin_of_lavapipe()) {
    return weir(scratch_,
                {"baseline", "accept", "--counts-only", "--baselines", baselines, "--cell", globs},
                {device.begin(), device.end()});
  }

  // Baselines "base" of the cell as the config has it, counted once for all tests.
  void have_base(const std::string& cell) {
    write_config(pass_through_);
    static const Scratch k_cache;
    const fs::path cached = k_cache / cell;
    if (!fs::exists(cached)) {
      ASSERT_EQ(accept("base", cell).exit_code, 0);
      fs::create_directories(cached.parent_path());
      fs::rename(scratch_ / "base", cached);
    }
    fs::copy(cached, scratch_ / "base", fs::copy_options::recursive);
  }

  Json gate(const std::string& cells, int exit_code, std::map<std::string, std::string> env = {},
            const sys::EnvironmentList& device = on_twin_of_lavapipe()) {
    env.insert(device.begin(), device.end());
    const Ended ended =
        weir(scratch_,
             {"gate", "--counts-only", "--json", "-", "--baselines", "base", "--cell", cells}, env);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended);
  }

  const std::string pass_through_ = "exec " + k_engine + " \"$@\"";
  Scratch scratch_;
};

constexpr const char* k_llama_decode = "llama.cpp/tiny-llama/vulkan/decode";
constexpr const char* k_llama_prefill = "llama.cpp/tiny-llama/vulkan/prefill";
constexpr const char* k_cpu_decode = "llama.cpp/tiny-llama/cpu/decode";
constexpr const char* k_gemma_decode = "llama.cpp/tiny-gemma3/vulkan/decode";

// 65/46/1 and 125/96/1: docs/explanation/counting.md, "Reference counts".
TEST_F(RealLlama, HasTheReferenceCountsPerToken) {
  write_config(pass_through_);
  const Json verdict = gate("*/vulkan/decode", 0, {}, on_lavapipe());
  const auto expect = [&](const char* cell, double dispatches, double barriers, double syncs) {
    const Json judged = cell_of(verdict, cell);
    EXPECT_EQ(metric_of(judged, "dispatches_per_token")["current"], dispatches);
    EXPECT_EQ(metric_of(judged, "barriers_per_token")["current"], barriers);
    EXPECT_EQ(metric_of(judged, "syncs_per_token")["current"], syncs);
  };
  expect(k_llama_decode, 65, 46, 1);
  expect(k_gemma_decode, 125, 96, 1);
}

TEST_F(RealLlama, GivesByteForByteTheSameBaselinesOnLavapipeAndOnItsTwin) {
  write_config(pass_through_);
  ASSERT_EQ(accept("base", "*/tiny-llama/vulkan/*", on_lavapipe()).exit_code, 0);
  ASSERT_EQ(accept("again", "*/tiny-llama/vulkan/*").exit_code, 0);
  EXPECT_EQ(relative_files(scratch_ / "base"), relative_files(scratch_ / "again"));
  EXPECT_NE(relative_files(scratch_ / "base"), "");
}

TEST_F(RealLlama, NamesMetricValuesAndKernelsWhenAnInheritedSwitchLosesAFusion) {
  have_base(k_llama_decode);
  const Json verdict = gate(k_llama_decode, 1, {{"GGML_VK_DISABLE_FUSION", "1"}});
  const Json cell = cell_of(verdict, k_llama_decode);
  EXPECT_EQ(cell["verdict"], "fail");
  const Json dispatches = metric_of(cell, "dispatches_per_token");
  EXPECT_EQ(dispatches["verdict"], "fail");
  EXPECT_EQ(dispatches["baseline"], 65);
  EXPECT_GT(dispatches["current"], 65);
  bool fused_kernel_named = false;
  for (const Json changed = metric_of(cell, "kernels")["changed"]; const Json& kernel : changed) {
    fused_kernel_named = fused_kernel_named || kernel["name"] == "rms_norm_mul_f32";
  }
  EXPECT_TRUE(fused_kernel_named) << cell["judgements"];
}

TEST_F(RealLlama, NoticesAWrapperThatPutsTheWorkOnTheCpu) {
  have_base(k_llama_decode);
  // The last of repeated device options wins in llama-bench only by adding a test; so drop "-ngl
  // 99".
  write_config("for a do shift; [ \"$a\" = 99 ] && a=0; set -- \"$@\" \"$a\"; done\n" +
               pass_through_);
  const Json cell = cell_of(gate(k_llama_decode, 1), k_llama_decode);
  EXPECT_EQ(cell["verdict"], "fail");
  EXPECT_EQ(metric_of(cell, "placement")["verdict"], "fail") << cell.dump(1);
}

TEST_F(RealLlama, NamesTheOpsThatPartialOffloadMovesToTheCpu) {
  have_base(k_llama_decode);
  // -ngl 2 keeps the last layer and the output on the device: three of the four layers move.
  write_config("for a do shift; [ \"$a\" = 99 ] && a=2; set -- \"$@\" \"$a\"; done\n" +
               pass_through_);
  const Json cell = cell_of(gate(k_llama_decode, 1), k_llama_decode);
  EXPECT_EQ(metric_of(cell, "placement")["verdict"], "fail") << cell.dump(1);
  EXPECT_THAT(metric_of(cell, "placement")["reason"].get<std::string>(),
              testing::AllOf(testing::HasSubstr("MUL_MAT 21 times (256x"),  // 7 a layer
                             testing::HasSubstr("FLASH_ATTN_EXT 3 times")));
  std::map<std::string, std::int64_t> moved;
  for (const Json changed = metric_of(cell, "placement")["changed"]; const Json& op : changed) {
    moved[op["name"]] = op["current"];
  }
  EXPECT_EQ(moved["MUL_MAT"], 21);
  EXPECT_EQ(moved["SWIGLU"], 3);
  EXPECT_FALSE(moved.contains("GET_ROWS")) << "was there before";

  const Ended left_out = accept("again", k_llama_decode);
  EXPECT_EQ(left_out.exit_code, 3);
  EXPECT_THAT(left_out.out,
              testing::HasSubstr("cpu_ops_allowed: {ADD: &ops1 {match: {backend: vulkan}, why: "));
}

TEST_F(RealLlama, CallsAFusionGainedAnImprovementSinceAllWorkStayed) {
  write_config("GGML_VK_DISABLE_FUSION=1\nexport GGML_VK_DISABLE_FUSION\n" + pass_through_);
  ASSERT_EQ(accept("base", k_llama_decode).exit_code, 0);
  write_config(pass_through_);
  const Json verdict = gate(k_llama_decode, 0);
  EXPECT_EQ(verdict["verdict"], "improved");
  const Json cell = cell_of(verdict, k_llama_decode);
  EXPECT_EQ(metric_of(cell, "dispatches_per_token")["verdict"], "improved") << cell.dump(1);
  EXPECT_EQ(metric_of(cell, "dispatches_per_token")["current"], 65);
  EXPECT_EQ(metric_of(cell, "kernels")["verdict"], "improved");
  EXPECT_EQ(metric_of(cell, "placement")["verdict"], "pass");
}

// 82 ops: docs/explanation/counting.md, "Reference counts".
TEST_F(RealLlama, CountsAndGatesTheOpsOfCpuCells) {
  have_base(k_cpu_decode);
  Json cell = cell_of(gate(k_cpu_decode, 0), k_cpu_decode);
  EXPECT_EQ(metric_of(cell, "cpu_ops_per_token")["current"], 82);
  EXPECT_EQ(metric_of(cell, "graphs_per_token")["current"], 1);
  EXPECT_EQ(metric_of(cell, "tensor_copies_per_token")["current"], 0);
  EXPECT_EQ(metric_of(cell, "kernels")["verdict"], "pass");
  EXPECT_EQ(metric_of(cell, "placement")["verdict"], "pass");
  // Attention by single products in place of the fused op: more of them, and others.
  write_config(pass_through_ + " -fa 0");
  cell = cell_of(gate(k_cpu_decode, 1), k_cpu_decode);
  EXPECT_GT(metric_of(cell, "cpu_ops_per_token")["current"], 82);
  bool named = false;
  for (const Json changed = metric_of(cell, "kernels")["changed"]; const Json& op : changed) {
    named = named || op["name"].get<std::string>().starts_with("FLASH_ATTN_EXT ");
  }
  EXPECT_TRUE(named) << cell["judgements"];
}

// An engine with one CPU library takes that on every processor: x86-64-v1, v2 and v3.
TEST_F(RealLlama, IsJudgedOnEachCpuByTheBaselinesOfAnother) {
  const std::string installed = k_root + "/engines/llama.cpp";
  for (const std::string variant : {"x64", "sse42", "haswell"}) {
    const std::string library = "libggml-cpu-" + variant + ".so";
    const fs::path folder = scratch_ / variant;
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(installed)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("libggml-cpu-") && name != library) continue;
      // Copied: ggml looks for its libraries where the program's file lies.
      if (fs::is_regular_file(entry)) fs::copy_file(entry, folder / name);
    }
    write_config("exec " + (folder / "llama-bench").string() + " \"$@\"");
    const Ended ended = weir(scratch_, {"gate", "--counts-only", "--json", "-", "--baselines",
                                        k_root + "/baselines", "--cell", "*/cpu/*"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    const Json verdict = json_of(ended);
    EXPECT_EQ(verdict["cells"].size(), 4U);
    for (const Json& cell : verdict["cells"]) {
      EXPECT_EQ(cell["verdict"], "pass") << cell.dump(1);
      EXPECT_EQ(cell["device_class"], "cpu-" + variant);
      EXPECT_EQ(cell["base"], "nearest: cpu-zen4");
    }
  }
}

TEST_F(RealLlama, FailsWhenTheSameTotalIsMadeOfOtherKernels) {
  have_base(k_llama_prefill);
  // Without 16-bit arithmetic llama.cpp takes other variants of the same kernels, one for one.
  const Json cell =
      cell_of(gate(k_llama_prefill, 1, {{"GGML_VK_DISABLE_F16", "1"}}), k_llama_prefill);
  EXPECT_EQ(metric_of(cell, "dispatches_per_prefill")["verdict"], "pass");
  EXPECT_EQ(metric_of(cell, "kernels")["verdict"], "fail");
  EXPECT_FALSE(metric_of(cell, "kernels")["changed"].empty());
}

TEST_F(RealLlama, SaysThatNothingWasRunWhereThereIsNoVulkanDevice) {
  write_config(pass_through_);
  const Ended ended =
      weir(scratch_, {"gate", "--counts-only", "--baselines", "base", "--cell", k_llama_decode},
           {{"VK_DRIVER_FILES", "/nonexistent.json"}, {"VK_ICD_FILENAMES", "/nonexistent.json"}});
  EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("no Vulkan device"), std::string::npos) << ended.out;
}

// As it is published, it has no debug information: that is known of it, and not taken for "runs
// nothing".
TEST_F(RealLlama, IsRecordedAsAProgramOfUnknownReach) {
  const Ended ended = weir(scratch_, {"reach", "--record", "-c", k_root + "/configs/llama.cpp.yaml",
                                      "--cell", k_cpu_decode});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, testing::HasSubstr(" source files, 0 of them found below"));
  const Json stored =
      *parse_json(slurp(scratch_ / ("weir-out/reach/" + std::string(k_cpu_decode) + ".json")));
  EXPECT_THAT(stored["blind"].dump(), testing::AllOf(testing::HasSubstr("llama-bench"),
                                                     testing::HasSubstr("libggml-base")));
}

}  // namespace real_llama_test
}  // namespace weir::e2e
