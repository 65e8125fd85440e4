// WebGPU on GPUs that are not here: Google's Dawn, as npm has it, on every description of a Vulkan
// device.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace webgpu_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;
const char* const k_twins[] = {"amd-rx-580",        "amd-rx-6900-xt",  "amd-rx-7900-xtx",
                               "apple-m2-moltenvk", "arm-mali-g720",   "intel-arc-a770",
                               "intel-arc-b580",    "nvidia-rtx-2080", "nvidia-rtx-3090",
                               "nvidia-rtx-4090",   "nvidia-rtx-5090", "qualcomm-adreno-750"};

class WebGpu : public testing::Test {
 protected:
  void SetUp() override {
    const std::string packages = k_root + "/.cache/node-engines/node_modules";
    if (!fs::exists(packages + "/webgpu")) {
      GTEST_SKIP() << "no " << packages << "/webgpu: run ci/node-engines (x86-64 alone)";
    }
    fs::create_directory_symlink(packages, scratch_ / "node_modules");
    fs::copy_file(k_root + "/tests/engines/dawn.mjs", scratch_ / "dawn.mjs");
    spill(scratch_ / "nothing", "what it computes is in the script");
    std::string backends;
    for (const std::string twin : k_twins) {
      backends += "  " + twin + ": {device: vulkan, twin: " + twin + ", compile: 'off'}\n";
    }
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  dawn: {command: [node, dawn.mjs, '{tokens}', '{args}'], "
          "probes: [vulkan], "
          "output: generic, facts: {generated_tokens: {regex: '^(\\d+) tokens'}}, metrics: "
          "{decode_tokens_per_second: {regex: '([\\d.]+) tokens/s'}}}\nmodels: {none: nothing}\n"
          "backends:\n" +
              backends + "prompts: {decode: {prompt_tokens: 0, tokens: 16}}\n");
  }

  Scratch scratch_;
};

TEST_F(WebGpu, IsCountedExactlyOnEveryDescriptionOfAVulkanDevice) {
  const Ended accepted =
      weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  const Ended same =
      weir(scratch_, {"gate", "--counts-only", "--baselines", "base", "--json", "-"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  const Json verdict = json_of(same);
  for (const std::string twin : k_twins) {
    const Json cell = cell_of(verdict, "dawn/none/" + twin + "/decode");
    EXPECT_EQ(metric_of(cell, "dispatches_per_token")["current"], 4) << twin;
    EXPECT_EQ(metric_of(cell, "copies_per_token")["current"], 1) << twin;
  }
  // As a commit would: the norm's weight in a kernel of its own.
  std::string script = slurp(scratch_ / "dawn.mjs");
  const std::string condition = "(process.argv[3] ?? process.env.SETTINGS) === \"unfused\"";
  script.replace(script.find(condition), condition.size(), "true");
  spill(scratch_ / "dawn.mjs", script);
  const Ended red = weir(scratch_, {"gate", "--counts-only", "--baselines", "base", "--json", "-"});
  EXPECT_EQ(red.exit_code, 1) << red.err;
  for (const Json judged = json_of(red); const Json& cell : judged["cells"]) {
    EXPECT_EQ(cell["verdict"], "fail") << cell["cell"];
    EXPECT_THAT(cell["findings"][0]["text"].get<std::string>(), HasSubstr("rms_norm_mul"))
        << cell["cell"];
    EXPECT_EQ(cell["findings"][0]["kind"], "fusion_lost") << cell["cell"];
  }
}

}  // namespace webgpu_test
}  // namespace weir::e2e
