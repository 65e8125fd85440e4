// The unmodified llama.cpp on GPUs that are not here, through weir gate.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;

const std::vector<std::string>& twins() {
  static const std::vector<std::string> k_twins{
      "amd-rx-580",      "amd-rx-6900-xt",   "amd-rx-7900-xtx", "intel-arc-a770",
      "intel-arc-b580",  "nvidia-rtx-2080",  "nvidia-rtx-3090", "nvidia-rtx-4090",
      "nvidia-rtx-5090", "apple-m2-moltenvk"};
  return k_twins;
}

class Twins : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_root + "/engines/llama.cpp/llama-bench"))
        << "run ci/prepare test first";
    std::string yaml =
        "version: 1\nengines:\n  llama.cpp:\n    command: [" + k_root +
        "/engines/llama.cpp/llama-bench, -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, "
        "'{repeats}', -t, '{threads}', -o, json]\n"
        "    output: llama-bench\n    probes: [vulkan, ggml]\n"
        "    counted_env: {GGML_VK_DEBUG_MARKERS: '1'}\n"
        "    cpu_ops_allowed: {GET_ROWS: 'one look-up is cheaper than a dispatch'}\n"
        "models:\n  tiny-llama: " +
        k_root + "/models/tiny-llama.gguf\n  tiny-gemma3: " + k_root +
        "/models/tiny-gemma3.gguf\nbackends:\n";
    for (const std::string& twin : twins()) {
      yaml += "  " + twin + ": {device: vulkan, twin: " + twin + ", args: [-ngl, '99']}\n";
    }
    yaml +=
        "prompts: {decode: {prompt_tokens: 0, tokens: 16}, prefill: {prompt_tokens: 64, tokens: "
        "0}}\n";
    spill(scratch_ / "weir.yaml", yaml);
  }

  Ended gate(const std::vector<std::string>& more,
             const std::map<std::string, std::string>& env = {}) {
    std::vector<std::string> words{"gate", "--json", "-", "--baselines", "base"};
    words.insert(words.end(), more.begin(), more.end());
    return weir(scratch_, words, env);
  }

  Scratch scratch_;
};

// What llama.cpp's source says each device must take (ggml-vulkan.cpp): flash attention on
// cooperative matrices where the device has VK_KHR_cooperative_matrix in a shape it uses (cm1) or
// VK_NV_cooperative_matrix2 (cm2), else the plain one; the fused add_rms where the driver is not
// Intel's.
TEST_F(Twins, TakeTheKernelsThatTheEngineHasForThem) {
  const std::map<std::string, std::string> flash_attention{
      {"amd-rx-580", ""},       {"amd-rx-6900-xt", ""},      {"amd-rx-7900-xtx", "_cm1"},
      {"intel-arc-a770", ""},   {"nvidia-rtx-4090", "_cm2"}, {"nvidia-rtx-5090", "_cm2"},
      {"apple-m2-moltenvk", ""}};
  const Ended ended =
      weir(scratch_, {"run", "--counts-only", "--json", "-", "--cell", "*/tiny-llama/*/decode"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::size_t seen = 0;
  const Json measured = json_of(ended);
  for (const Json& profile : measured["profiles"]) {
    const std::string cell = profile["cell"];
    const std::string device_class = profile["provenance"]["device_class"];
    EXPECT_EQ(profile["placement"]["state"], "shown") << cell;
    for (const auto& [twin, kind] : flash_attention) {
      if (device_class != "twin-" + twin) continue;
      ++seen;
      std::string flash;
      bool add_rms = false;
      for (const auto& [kernel, count] : profile["kernels"]["counts"].items()) {
        if (kernel.rfind("flash_attn", 0) == 0) flash = kernel;
        add_rms = add_rms || kernel.rfind("add_rms", 0) == 0;
      }
      const std::string tail = flash.size() > 4 ? flash.substr(flash.size() - 4) : "";
      EXPECT_EQ(tail == "_cm1" || tail == "_cm2" ? tail : "", kind) << cell << ": " << flash;
      EXPECT_EQ(add_rms, twin.rfind("intel", 0) != 0) << cell;
    }
  }
  EXPECT_EQ(seen, flash_attention.size());
}

TEST_F(Twins, AreGatedExactlyAndFailWhereOnlyTheirPathChanges) {
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines",
                                         "base", "--cell", "*/tiny-llama/*/decode"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_THAT(relative_files(scratch_ / "base"), HasSubstr("twin-amd-rx-7900-xtx.json"));

  const Json green = json_of(gate({"--cell", "*/tiny-llama/*/decode"}));
  EXPECT_EQ(green["verdict"], "pass") << green.dump(1);

  // A switch that takes cooperative matrices away concerns exactly the devices that have them.
  const Ended red = gate({"--cell", "*/tiny-llama/*/decode"}, {{"GGML_VK_DISABLE_COOPMAT", "1"}});
  EXPECT_EQ(red.exit_code, 1) << red.err;
  std::set<std::string> failed;
  const Json verdict = json_of(red);
  for (const Json& cell : verdict["cells"]) {
    if (cell["verdict"] == "fail") failed.insert(cell["cell"].get<std::string>());
  }
  EXPECT_EQ(failed.count("llama.cpp/tiny-llama/amd-rx-7900-xtx/decode"), 1U);
  for (const char* without : {"amd-rx-580", "amd-rx-6900-xt", "apple-m2-moltenvk"}) {
    EXPECT_EQ(failed.count(std::string("llama.cpp/tiny-llama/") + without + "/decode"), 0U)
        << without;
  }
}

TEST_F(Twins, AreProfiledWithoutTimes) {
  const Ended ended =
      weir(scratch_, {"profile", "--json", "-", "llama.cpp/tiny-llama/amd-rx-7900-xtx/decode"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["command_buffers_timed"], 0);
  EXPECT_EQ(json["alignment"]["dispatches_left"], 0) << json["alignment"].dump(1);
  EXPECT_THAT(json["warnings"].dump(), HasSubstr("a twin runs nothing"));
}

TEST_F(Twins, StandSideBySideInAMatrixOfDevices) {
  const Ended ended = weir(scratch_, {"device", "matrix", "--cell", "*/tiny-llama/*/decode",
                                      "--twin", "amd-*", "--html", "page.html"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("amd-rx-580, amd-rx-6900-xt"));
  EXPECT_THAT(ended.out, HasSubstr("flash_attn_f32_f16_aligned_cm1"));
  EXPECT_THAT(slurp(scratch_ / "page.html"), HasSubstr("amd-rx-7900-xtx"));
  const Ended none = weir(scratch_, {"device", "matrix", "--twin", "voodoo-*"});
  EXPECT_EQ(none.exit_code, 2) << none.err;
}

// lavapipe is the one real Vulkan device that every machine has which runs these tests.
TEST_F(Twins, AreHeldAgainstTheRealDeviceWhereItIsThere) {
  const Ended recorded =
      weir(scratch_, {"device", "record", "--out", "configs/devices/own.json", "--name", "own"});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  // The same without subgroup arithmetic, which ggml-vulkan asks for before it takes flash
  // attention and its fused norms.
  Json doctored = Json::parse(slurp(scratch_ / "configs/devices/own.json"));
  doctored["weir"]["name"] = "doctored";
  for (Json& block : doctored["capabilities"]) {
    Json& properties = block["properties"];
    const Json basic = {"VK_SUBGROUP_FEATURE_BASIC_BIT"};
    properties["VkPhysicalDeviceSubgroupProperties"]["supportedOperations"] = basic;
    properties["VkPhysicalDeviceVulkan11Properties"]["subgroupSupportedOperations"] = basic;
  }
  spill(scratch_ / "configs/devices/doctored.json", doctored.dump());
  std::string yaml = slurp(scratch_ / "weir.yaml");
  const std::string rest = "args: [-ngl, '99'], env: {GGML_VK_VISIBLE_DEVICES: '0'}}\n";
  yaml.insert(yaml.find("backends:\n") + 10,
              "  vulkan: {" + rest + "  own: {device: vulkan, twin: own, " + rest +
                  "  doctored: {device: vulkan, twin: doctored, " + rest);
  spill(scratch_ / "weir.yaml", yaml);
  const Ended ended = gate({"--counts-only", "--cell", "*/tiny-llama/vulkan/*", "--cell",
                            "*/tiny-llama/own/*", "--cell", "*/tiny-llama/doctored/*"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;  // a difference is a doubt, no verdict
  EXPECT_THAT(ended.err, HasSubstr("twin own against the real llvmpipe"));
  std::size_t equal = 0, unequal = 0;
  const Json verdict = json_of(ended);
  for (const Json& cell : verdict["cells"]) {
    const Json& check = cell["twin_check"];
    ASSERT_EQ(check.is_null(), cell["backend"] == "vulkan") << cell["cell"];
    if (check.is_null()) continue;
    EXPECT_TRUE(check["kernels_compared"].get<bool>()) << cell["cell"];
    EXPECT_GT(check["compared"], 10) << cell["cell"];
    if (cell["backend"] == "own") {
      equal += check["equal"] == true ? 1U : 0U;
      EXPECT_EQ(check["about"], Json::array()) << check.dump(1);
    } else {
      unequal += check["equal"] == false ? 1U : 0U;
      EXPECT_THAT(check["kernels"].dump(), HasSubstr("soft_max"));
      EXPECT_THAT(cell["warnings"].dump(), HasSubstr("doctored does not count as the real device"));
    }
  }
  EXPECT_EQ(equal, 2U) << verdict.dump(1);
  EXPECT_EQ(unequal, 2U);
}

TEST_F(Twins, ShowAliasesOfPrivateNamesInTheMatrixOfDevices) {
  std::string yaml = slurp(scratch_ / "weir.yaml");
  const std::string plain = "tiny-llama: " + k_root + "/models/tiny-llama.gguf";
  ASSERT_NE(yaml.find(plain), std::string::npos);
  yaml.replace(yaml.find(plain), plain.size(),
               "acme-13b: {path: " + k_root + "/models/tiny-llama.gguf, private: true}");
  spill(scratch_ / "weir.yaml", yaml);
  const Ended ended = weir(scratch_, {"device", "matrix", "--cell", "*/acme-13b/*/decode", "--twin",
                                      "amd-*", "--html", "page.html", "--json", "matrix.json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::string page = slurp(scratch_ / "page.html");
  EXPECT_THAT(ended.out, HasSubstr("flash_attn_f32_f16_aligned_cm1"));
  EXPECT_THAT(page, HasSubstr("flash_attn_f32_f16_aligned_cm1"));
  for (const std::string& shown : {ended.out, ended.err, page, slurp(scratch_ / "matrix.json")}) {
    EXPECT_THAT(shown, testing::Not(HasSubstr("acme")));
    EXPECT_THAT(shown, testing::Not(HasSubstr("tiny-llama")));
  }
}

TEST_F(Twins, RunTheWholeMatrixWithoutTimes) {
  const Ended ended = gate({});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json verdict = json_of(ended);
  EXPECT_EQ(verdict["cells"].size(), twins().size() * 2 * 2);
  for (const Json& cell : verdict["cells"]) {
    EXPECT_NE(cell["verdict"], "error") << cell.dump(1);
    for (const Json& metric : cell["metrics"]) {
      EXPECT_EQ(metric["metric"].get<std::string>().find("per_second"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace weir::e2e
