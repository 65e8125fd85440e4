// weir gate --against with the real llama.cpp on both sides and no stored baseline.
#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace against_llama_test {

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_engine = k_root + "/engines/llama.cpp/llama-bench";
using testing::HasSubstr;
constexpr const char* k_cell = "llama.cpp/tiny-llama/vulkan/decode";

class AgainstLlama : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_engine)) << "run ci/prepare test first";
    for (const char* side : {"plain", "unfused"}) fs::create_directories(scratch_ / side);
    spill_program(scratch_ / "plain/engine", "#!/bin/sh\nexec " + k_engine + " \"$@\"\n");
    spill_program(scratch_ / "unfused/engine",
                  "#!/bin/sh\nGGML_VK_DISABLE_FUSION=1 exec " + k_engine + " \"$@\"\n");
    spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  llama.cpp:
    command: [./plain/engine, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}", -o, json]
    output: llama-bench
    probes: [vulkan, ggml]
    cpu_ops_allowed: {GET_ROWS: "embedding row"}
models: {tiny-llama: )" + k_root + R"(/models/tiny-llama.gguf}
backends:
  vulkan: {args: [-ngl, "99"], env: {GGML_VK_VISIBLE_DEVICES: "0"}}
prompts:
  decode: {prompt_tokens: 0, tokens: 16}
)");
  }
  Json gate(const std::string& candidate, const std::string& base, int exit_code) {
    std::string config = slurp(scratch_ / "weir.yaml");
    for (const char* side : {"./plain/", "./unfused/"}) {
      if (const auto at = config.find(side); at != std::string::npos) {
        config.replace(at, std::string(side).size(), "./" + candidate + "/");
      }
    }
    spill(scratch_ / "weir.yaml", config);
    const sys::EnvironmentList& twin = on_twin_of_lavapipe();
    const Ended ended = weir(
        scratch_,
        {"gate", "--counts-only", "--json", "-", "--against", "--", "./" + base + "/engine", "-m",
         "{model}", "-p", "{prompt_tokens}", "-n", "{tokens}", "-r", "{repeats}", "-o", "json"},
        {twin.begin(), twin.end()});
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended);
  }

  // The point of weir explain's checklist on fusions, of the run that was judged last.
  Json fusions() {
    const Json explained = json_of(weir(scratch_, {"explain", "--json", "-"}));
    for (const Json& explanation : explained["cells"]) {
      for (const Json& point : explanation["checklist"]) {
        if (point["question"] == "Ops in a row are fused") return point;
      }
    }
    return {};
  }

  Scratch scratch_;
};

// Without fusion 20 more dispatches a token (docs/explanation/counting.md); each side agrees with
// itself over four processes, so the difference is exact.
TEST_F(AgainstLlama, ASwitchThatDiffersFailsOneWayAndIsImprovedTheOther) {
  const Json worse = cell_of(gate("unfused", "plain", 1), k_cell);
  const Json dispatches = metric_of(worse, "dispatches_per_token");
  EXPECT_EQ(dispatches["verdict"], "fail");
  EXPECT_EQ(dispatches["nature"], "exact");
  EXPECT_EQ(dispatches["baseline"], 65);
  EXPECT_EQ(dispatches["current"], 85);
  EXPECT_FALSE(metric_of(worse, "kernels")["changed"].empty());
  const std::string note = fusions().value("note", "");
  EXPECT_THAT(note, HasSubstr("RMS_NORM+MUL 9 times a token"));
  EXPECT_THAT(note, HasSubstr("at least 20 fewer dispatches a token")) << "85 - 65";

  const Json better = cell_of(gate("plain", "unfused", 0), k_cell);
  EXPECT_EQ(better["verdict"], "improved");
  EXPECT_EQ(metric_of(better, "dispatches_per_token")["verdict"], "improved");
  EXPECT_EQ(fusions().value("answer", ""), "fine") << fusions();
}

TEST_F(AgainstLlama, TheSameProgramHasTheSameCounts) {
  const Json cell = cell_of(gate("plain", "plain", 0), k_cell);
  EXPECT_EQ(cell["verdict"], "pass");
  EXPECT_EQ(metric_of(cell, "dispatches_per_token")["verdict"], "pass");
}

}  // namespace against_llama_test
}  // namespace weir::e2e
