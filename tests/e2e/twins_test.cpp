// The unmodified llama.cpp on GPUs that are not here, through weir gate.
#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"
#include "tests/e2e/llama_rules.hpp"

namespace weir::e2e {
namespace twins_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;

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
    for (const std::string& twin : shipped_twins()) {
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

// The cells for which the engine decides otherwise without the feature: by its source's conditions
// and the descriptions alone.
std::set<std::string> cells_that_concerns(const std::string& variable) {
  std::set<std::string> cells;
  for (const std::string& name : shipped_twins()) {
    const auto twin = probes::read_twin(slurp(k_root + "/configs/devices/" + name + ".json"));
    EXPECT_TRUE(twin) << name;
    if (!twin) continue;
    for (const char* model : {"tiny-llama", "tiny-gemma3"}) {
      for (const auto& [prompt, tokens] : {std::pair{"decode", 0U}, std::pair{"prefill", 64U}}) {
        const Work work{model, tokens};
        const auto with = decisions(engine_view(*twin), work);
        const auto without = decisions(engine_view(*twin, {variable}), work);
        if (std::equal(with.begin(), with.end(), without.begin(),
                       [](const auto& x, const auto& y) { return x.chosen == y.chosen; })) {
          continue;
        }
        cells.insert(std::string("llama.cpp/") + model + "/" + name + "/" + prompt);
      }
    }
  }
  return cells;
}

// Returns the cells with another verdict.
std::set<std::string> cells_beside(const Json& gate, const std::string& verdict) {
  std::set<std::string> cells;
  for (const Json& cell : gate["cells"]) {
    if (cell["verdict"] != verdict) cells.insert(cell["cell"].get<std::string>());
  }
  return cells;
}

TEST_F(Twins, AreGatedExactlyAndFailWhereOnlyTheirPathChanges) {
  const Ended accepted =
      weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_THAT(relative_files(scratch_ / "base"), HasSubstr("twin-amd-rx-7900-xtx.json"));

  const Json green = json_of(gate({}));
  EXPECT_EQ(green["verdict"], "pass") << green.dump(1);
  const std::size_t count = shipped_twins().size() * 2 * 2;
  EXPECT_EQ(green["cells"].size(), count);
  for (const Json& cell : green["cells"]) {
    EXPECT_EQ(metric_of(cell, "placement")["verdict"], "pass") << cell["cell"];
    for (const Json& metric : cell["judgements"]) {  // no times, though they were asked for
      EXPECT_EQ(metric["subject"].get<std::string>().find("per_second"), std::string::npos);
    }
  }

  const struct {
    const char* variable;
    std::size_t cells;  // so many of the 48
    const char* why;
  } cases[] = {
      {"GGML_VK_DISABLE_COOPMAT", 5,
       "RDNA 3 in flash attention and quantized matrices: all four; Xe2 in quantized matrices "
       "alone; the GeForces use NV_cooperative_matrix2, which it leaves on"},
      {"GGML_VK_DISABLE_INTEGER_DOT_PRODUCT", 4,
       "RDNA 2 and Xe in quantized matrices without cooperative ones; Xe2 in vectors by Q6_K, "
       "decoding and behind a prefill; others want longer rows than these models have"},
  };
  // Without integer dot products there are fewer dispatches, as nothing is quantized first: the
  // products by other kernels fail all the same.
  for (const auto& c : cases) {
    const std::set<std::string> expected = cells_that_concerns(c.variable);
    EXPECT_EQ(expected.size(), c.cells) << c.variable << ": " << c.why;
    const Ended red = gate({}, {{c.variable, "1"}});
    EXPECT_EQ(red.exit_code, 1) << red.err;
    const Json verdict = json_of(red);
    EXPECT_EQ(cells_beside(verdict, "pass"), expected) << c.variable;
    EXPECT_EQ(cells_beside(verdict, "fail").size(), count - expected.size()) << c.variable;
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

// By hand, as docs/reference/devices.md has it: the words are the program's, "env" among them.
TEST_F(Twins, AreProfiledWithoutTimesOutsideOfCellsToo) {
  const Ended compiled =
      weir(scratch_, {"device", "compile", "amd-rx-7900-xtx", "--output", "card.twin"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  std::vector<std::string> words{"profile", "--json", "-", "--", "env"};
  std::istringstream variables(compiled.out);
  for (std::string variable; variables >> variable;) words.push_back(variable);
  words.insert(words.end(),
               {k_root + "/engines/llama.cpp/llama-bench", "-m", k_root + "/models/tiny-llama.gguf",
                "-ngl", "99", "-p", "0", "-n", "2", "-r", "1", "-t", "1"});
  const Ended ended = weir(scratch_, words);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["command_buffers_timed"], 0);
  EXPECT_GT(json["command_buffers"], 0);
  EXPECT_THAT(json["warnings"].dump(), HasSubstr("a twin runs nothing"));
}

// Products of half precision take cooperative matrices or not under one name, as often.
TEST_F(Twins, TellOtherCodeBehindTheSameKernels) {
  const std::string yaml = slurp(scratch_ / "weir.yaml");
  const std::size_t args = yaml.find("backends:");
  spill(scratch_ / "weir.yaml", yaml.substr(0, args) +
                                    "backends:\n  amd: {device: vulkan, twin: amd-rx-7900-xtx, "
                                    "args: [-ngl, '99', -fa, '0']}\n" +
                                    yaml.substr(yaml.find("prompts:")));
  const std::vector<std::string> some{"--counts-only", "--cell", "*/tiny-llama/*"};
  ASSERT_EQ(
      weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base"}).exit_code, 0);
  EXPECT_THAT(json_of(gate(some))["not_judged"].dump(), testing::Not(HasSubstr("code")));
  const Ended changed = gate(some, {{"GGML_VK_DISABLE_COOPMAT", "1"}});
  EXPECT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_THAT(json_of(changed)["not_judged"].dump(), HasSubstr("2 kernels have other code"));
  spill(scratch_ / "weir.yaml",
        slurp(scratch_ / "weir.yaml") + "limits: [{metrics: kernel_code, exact: true}]\n");
  EXPECT_EQ(gate(some).exit_code, 0);
  const Ended red = gate(some, {{"GGML_VK_DISABLE_COOPMAT", "1"}});
  EXPECT_EQ(red.exit_code, 1) << red.err;
  const Json verdict = json_of(red);
  EXPECT_EQ(cell_of(verdict, "llama.cpp/tiny-llama/amd/decode")["verdict"], "pass");
  const Json code = metric_of(cell_of(verdict, "llama.cpp/tiny-llama/amd/prefill"), "kernel_code");
  EXPECT_EQ(code["reason"],
            "2 kernels have other code: matmul_f16_aligned_1, matmul_f16_f32_f16acc_aligned_1");
  EXPECT_EQ(code["code"][1]["calls"], 29);
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
      weir(scratch_, {"device", "record", "--output", "configs/devices/own.json", "--name", "own"});
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

}  // namespace twins_test
}  // namespace weir::e2e
