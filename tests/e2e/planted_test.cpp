// Planted regressions of the reference engine: the gate fails by the right count, and what explains
// it comes first.
#include <gmock/gmock.h>

#include "tests/e2e/planted_scene.hpp"

namespace weir::e2e {
namespace planted_test {

using ::testing::HasSubstr;

// `marked` tells weir of its ops, `plain` is seen by the Vulkan layer alone, as an engine is that
// nobody instrumented and whose report nobody reads.
class Planted : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch() = new Scratch;
    make_tiny_model(*scratch(), "tiny.gguf");
    const std::string engine = WEIR_BINARY_DIR "/weir-engine";
    spill(*scratch() / "weir.yaml",
          planted_config(planted_engine("marked", engine, "vulkan, instrument") +
                         planted_engine("plain", engine, "vulkan")) +
              "variants: {default: {}, fused: {args: [--fused-ffn]}}\n");
    const Ended accepted = weir(*scratch(), {"baseline", "accept", "--counts-only"});
    ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  }
  static void TearDownTestSuite() {
    delete scratch();
    scratch() = nullptr;
  }
  static Scratch*& scratch() {
    static Scratch* instance = nullptr;
    return instance;
  }

  static Ended gated(const std::string& plant, const std::string& cell) {
    return weir(*scratch(), {"gate", "--counts-only", "--json", "-", "--cell", cell},
                {{"WEIR_ENGINE_PLANT", plant}});
  }
};

struct Count {
  const char* metric;
  int more;  // than in the baseline
};
struct Case {
  const char *plant, *cell;
  std::vector<Count> failed;  // and nothing else of what is gated changed
  const char* kind;           // kind of the first finding
  const char* text = "";      // its headline or lines
};

constexpr int n = k_layers;

// By hand from faults.cpp; tests/engine/counts_test.cpp has the same numbers a layer. A barrier
// stands behind each dispatch and each copy.
const std::vector<Case>& cases() {
  static const std::vector<Case> k_cases = {
      {"cpu-split",
       "marked/tiny/vulkan/decode",
       {{"syncs_per_token", n},
        {"submits_per_token", n},
        {"copies_per_token", 2 * n},
        {"barriers_per_token", 2 * n}},
       "sync_per_layer",
       "once in each layer"},
      {"cpu-split",
       "plain/tiny/vulkan/decode",
       {{"syncs_per_token", n},
        {"submits_per_token", n},
        {"copies_per_token", 2 * n},
        {"barriers_per_token", 2 * n}},
       "sync_per_layer",
       "once in each layer"},
      {"op-on-cpu",
       "marked/tiny/vulkan/decode",
       {{"cpu_ops_per_token", n},
        {"syncs_per_token", n},
        {"submits_per_token", n},
        {"copies_per_token", 3 * n},
        {"barriers_per_token", 2 * n},
        {"dispatches_per_token", -n}},
       "work_moved_to_cpu",
       "SWIGLU"},
      {"op-on-cpu",
       "plain/tiny/vulkan/decode",
       {{"syncs_per_token", n},
        {"submits_per_token", n},
        {"copies_per_token", 3 * n},
        {"barriers_per_token", 2 * n},
        {"dispatches_per_token", -n}},
       "work_moved_to_cpu",
       "activate"},
      {"unbatched-qkv",
       "marked/tiny/vulkan/decode",
       {{"dispatches_per_token", 2 * n}, {"barriers_per_token", 2 * n}},
       "batching_lost",
       "multiply"},
      {"unbatched-qkv",
       "plain/tiny/vulkan/decode",
       {{"dispatches_per_token", 2 * n}, {"barriers_per_token", 2 * n}},
       "batching_lost",
       "multiply"},
      {"unbatched-qkv", "marked/tiny/cpu/decode", {}, "batching_lost", "MUL_MAT"},
      {"lost-fusion",
       "marked@fused/tiny/vulkan/decode",
       {{"dispatches_per_token", n}, {"barriers_per_token", n}},
       "fusion_lost",
       "gate_up"},
      {"lost-fusion",
       "plain@fused/tiny/vulkan/decode",
       {{"dispatches_per_token", n}, {"barriers_per_token", n}},
       "fusion_lost",
       "gate_up"},
      {"lost-fusion", "marked@fused/tiny/cpu/decode", {}, "fusion_lost", "GATE_UP"},
      {"extra-barriers",
       "marked/tiny/vulkan/decode",
       {{"barriers_per_token", 9 * n + 4}},
       "batching_lost",
       "between the same dispatches"},
      {"extra-barriers",
       "plain@fused/tiny/vulkan/decode",
       {{"barriers_per_token", 8 * n + 4}},
       "batching_lost",
       "between the same dispatches"},
      {"extra-copy",
       "marked/tiny/vulkan/decode",
       {{"copies_per_token", 1}, {"barriers_per_token", 1}},
       "extra_copies"},
      {"extra-copy",
       "plain@fused/tiny/vulkan/decode",
       {{"copies_per_token", 1}, {"barriers_per_token", 1}},
       "extra_copies"},
      {"slow-kernel", "marked/tiny/vulkan/decode", {}, "variant_changed", "multiply_q8_0_serial"},
      {"slow-kernel", "plain/tiny/vulkan/decode", {}, "variant_changed", "multiply_q8_0_serial"},
  };
  return k_cases;
}

std::map<std::string, int> failed_counts(const Json& cell) {
  std::map<std::string, int> changes;
  for (const Json& judgement : cell.value("judgements", Json::array())) {
    const std::string name = judgement.value("subject", "");
    if (judgement.value("verdict", "") != "fail" || !name.ends_with("_per_token")) continue;
    changes[name] = judgement.value("current", 0) - judgement.value("baseline", 0);
  }
  return changes;
}

TEST_F(Planted, AreCaughtByTheCountsThatTheyChangeAndExplainedByTheirCause) {
  for (const Case& test_case : cases()) {
    SCOPED_TRACE(std::string(test_case.plant) + " " + test_case.cell);
    const Ended ended = gated(test_case.plant, test_case.cell);
    EXPECT_EQ(ended.exit_code, 1) << ended.err;
    const Json cell = cell_of(json_of(ended), test_case.cell);
    EXPECT_EQ(cell.value("verdict", ""), "fail");
    std::map<std::string, int> expected;
    for (const Count& count : test_case.failed) expected[count.metric] = count.more;
    if (!expected.empty()) {
      EXPECT_EQ(failed_counts(cell), expected);
    }
    const Json findings = cell.value("findings", Json::array());
    ASSERT_FALSE(findings.empty()) << cell.dump(1);
    EXPECT_EQ(findings[0].value("kind", ""), test_case.kind) << findings.dump(1);
    const std::string text = findings[0].value("text", "");
    EXPECT_THAT(text, HasSubstr(test_case.text)) << findings.dump(1);
    // The reason appears in the report below the cell, and in `weir explain` of the run just
    // judged.
    EXPECT_THAT(ended.err, HasSubstr("why: " + text.substr(0, 30)));
    const Json explained = json_of(weir(*scratch(), {"explain", "--json", "-"}));
    ASSERT_FALSE(explained.value("findings", Json::array()).empty());
    EXPECT_EQ(explained["findings"][0].value("kind", ""), test_case.kind);
  }
}

TEST_F(Planted, AreACauseEachWhereTwoAreInOneCellAndLeaveNothingUnexplained) {
  struct Mix {
    const char *plants, *cell;
    std::vector<std::string> kinds;  // kinds of the causes
  };
  const Mix mixes[] = {
      {"slow-kernel,unbatched-qkv",
       "marked/tiny/vulkan/decode",
       {"batching_lost", "variant_changed"}},
      {"op-on-cpu,unbatched-qkv",
       "marked/tiny/vulkan/decode",
       {"batching_lost", "work_moved_to_cpu"}},
      {"unbatched-qkv", "marked/tiny/cpu/decode", {"batching_lost"}},
      {"lost-fusion", "marked@fused/tiny/cpu/decode", {"fusion_lost"}},
  };
  for (const Mix& mix : mixes) {
    const Json verdict = json_of(gated(mix.plants, mix.cell));
    std::vector<std::string> kinds;
    for (const Json& cause : verdict.value("causes", Json::array())) {
      kinds.push_back(cause.value("kind", ""));
    }
    EXPECT_THAT(kinds, ::testing::UnorderedElementsAreArray(mix.kinds)) << mix.plants;
    EXPECT_FALSE(verdict.contains("unexplained")) << verdict["unexplained"].dump(1);
  }
}

TEST_F(Planted, AreGoneWhenTheyAreTakenOut) {
  for (const char* cell : {"*/vulkan/decode", "*/cpu/decode"}) {
    const Ended ended = weir(*scratch(), {"gate", "--counts-only", "--cell", cell});
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  }
}

TEST_F(Planted, OpOnTheCpuIsAlsoRefusedByItsPlacement) {
  const Json cell = cell_of(json_of(gated("op-on-cpu", "marked/tiny/vulkan/decode")),
                            "marked/tiny/vulkan/decode");
  EXPECT_EQ(metric_of(cell, "placement").value("verdict", ""), "fail")
      << metric_of(cell, "placement").dump(1);
  EXPECT_THAT(metric_of(cell, "placement").dump(), HasSubstr("SWIGLU"));
  EXPECT_EQ(cell["not_allowed"], Json::array({"SWIGLU"}));
}

TEST_F(Planted, ThatTheCellCanNotHaveAreToldAsAnErrorOfTheEngine) {
  const Ended ended = gated("extra-copy", "marked/tiny/cpu/decode");
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("--inject extra-copy"));
}

}  // namespace planted_test
}  // namespace weir::e2e
