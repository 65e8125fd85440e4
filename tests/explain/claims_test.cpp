// Tests which judgements of a cell are claimed by which finding.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/find.hpp"

#include "tests/explain/build.hpp"
#include "tests/explain/judged.hpp"

namespace weir::explain {
namespace claims_test {

using test::JudgedCell;
using testing::Contains;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using verdict::Outcome;

std::vector<Finding> explained(const verdict::CellVerdict& cell) {
  return explain(make_evidence(cell), nullptr, {default_bands(), {}}).findings;
}

const Finding& of_kind(const std::vector<Finding>& findings, const char* kind) {
  static const Finding k_none;
  const auto* match = find_first(findings, [&](const auto& entry) { return entry.kind == kind; });
  return match == nullptr ? k_none : *match;
}

TEST(Claims, WorkThatMovedToTheCpuClaimsWaitsMemoryKernelsAndTheRate) {
  JudgedCell cell("vulkan");
  cell.count("dispatches_per_token", 200, 176)
      .count("syncs_per_token", 1, 49)
      .count("splits_per_token", 2, 50)
      .count("dispatches_fixed", 90, 66)
      .count("allocations_per_token", 0, 1)
      .count("compute_bytes", 4096, 8192)
      .rate("decode_tokens_per_second", 40, 20)
      .kernel("set_rows_f32_f16_i64", 24, 0)
      .op("SET_ROWS", 0, 24);
  const auto findings = explained(cell.verdict);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().kind, "work_moved_to_cpu");
  EXPECT_THAT(findings.front().claims,
              UnorderedElementsAre("dispatches_per_token", "syncs_per_token", "splits_per_token",
                                   "dispatches_fixed", "allocations_per_token", "compute_bytes",
                                   "decode_tokens_per_second", "kernels", "placement"));
}

TEST(Claims, CudaGraphsThatAreLostBesideWorkThatMovedFollowFromIt) {
  JudgedCell cell("cuda");
  cell.count("dispatches_per_token", 200, 176)
      .count("graph_launches_per_token", 1, 0)
      .count("submits_per_token", 1, 176)
      .count("syncs_per_token", 1, 49)
      .rate("decode_tokens_per_second", 40, 20)
      .op("SET_ROWS", 0, 24);
  const auto findings = explained(cell.verdict);
  EXPECT_THAT(of_kind(findings, "graphs_lost").headline, testing::HasSubstr("no longer used"));
  EXPECT_THAT(of_kind(findings, "graphs_lost").claims, IsEmpty());
  EXPECT_THAT(
      of_kind(findings, "work_moved_to_cpu").claims,
      UnorderedElementsAre("dispatches_per_token", "graph_launches_per_token", "submits_per_token",
                           "syncs_per_token", "decode_tokens_per_second", "placement"));
}

// llama.cpp with `-fa 0` on an MI300X's twin: a prompt of 64.
TEST(Claims, AFusionThatIsLostClaimsCallsOfTheLibraryAndFixupsThatAreGone) {
  JudgedCell cell("hip", "tiny", "prefill");
  cell.count("dispatches_per_prefill", 94, 118)
      .count("hipblas_calls_per_prefill", 25, 33)
      .kernel("convert_unary_cont_vec4<__half, float>", 0, 4)
      .kernel("convert_unary_cont_vec4<float, __half>", 25, 29)
      .kernel("cpy_scalar<&(void cpy_1_scalar<float, float>(char const*, char*))>", 0, 4)
      .kernel("flash_attn_ext_f16<64, 64, 32, 2, false, false, false>", 4, 0)
      .kernel("flash_attn_stream_k_fixup_uniform<64, 32, 2>", 4, 0)
      .kernel("hipblasGemmBatchedEx", 0, 8)
      .kernel("k_compute_batched_ptrs", 0, 8)
      .kernel("soft_max_f32<true, 256, 256, float>", 0, 4);
  const auto findings = explained(cell.verdict);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().kind, "fusion_lost");
  EXPECT_THAT(
      findings.front().claims,
      UnorderedElementsAre("dispatches_per_prefill", "hipblas_calls_per_prefill", "kernels"));
  EXPECT_EQ(of_kind(findings, "stream_k_changed").kind, "");
}

TEST(Claims, TwoChangesClaimTheirOwnAndTheRateIsOfTheFirst) {
  JudgedCell cell("vulkan");
  cell.count("dispatches_per_token", 65, 77)
      .count("syncs_per_token", 1, 3)
      .rate("decode_tokens_per_second", 40, 30)
      .kernel("rms_norm_mul_f32", 12, 0)
      .kernel("rms_norm_f32", 0, 12)
      .kernel("mul_f32_f32_f32", 0, 12);
  const auto findings = explained(cell.verdict);
  const Finding& fusion = of_kind(findings, "fusion_lost");
  const Finding& sync = of_kind(findings, "sync_added");
  EXPECT_THAT(fusion.claims, Contains("dispatches_per_token"));
  EXPECT_THAT(fusion.claims, Contains("kernels"));
  EXPECT_THAT(fusion.claims, testing::Not(Contains("syncs_per_token")));
  EXPECT_THAT(sync.claims, Contains("syncs_per_token"));
  EXPECT_THAT(findings.front().claims, Contains("decode_tokens_per_second"));
}

// Injected regressions of the reference engine, in a model of 6 layers. tests/e2e/planted_test.cpp
// lists what each changes alone. Query, key and value are two more dispatches in each layer.
TEST(Claims, TwoInjectedRegressionsClaimEachTheirOwn) {
  struct Case {
    const char* what;
    JudgedCell cell;
    std::map<std::string, std::vector<std::string>> claims;  // by kind
  };
  const Case cases[] = {
      {"slow-kernel, unbatched-qkv",
       JudgedCell("vulkan")
           .count("dispatches_per_token", 57, 69)
           .count("barriers_per_token", 58, 70)
           .kernel("multiply_q8_0", 25, 0)
           .kernel("multiply_q8_0_serial", 0, 37),
       {{"variant_changed", {"kernels"}},
        {"batching_lost", {"barriers_per_token", "dispatches_per_token"}}}},
      {"the same of two types, one of them for the logits alone",
       JudgedCell("vulkan")
           .count("dispatches_per_token", 57, 69)
           .count("barriers_per_token", 58, 70)
           .kernel("multiply_q4_0", 24, 0)
           .kernel("multiply_f16", 1, 0)
           .kernel("multiply_q4_0_serial", 0, 36)
           .kernel("multiply_f16_serial", 0, 1),
       {{"variant_changed", {"kernels"}},
        {"batching_lost", {"barriers_per_token", "dispatches_per_token"}}}},
      {"op-on-cpu, unbatched-qkv: 6 dispatches are gone and 12 are new",
       JudgedCell("vulkan")
           .count("dispatches_per_token", 57, 63)
           .count("barriers_per_token", 58, 82)
           .count("syncs_per_token", 1, 7)
           .count("copies_per_token", 1, 19)
           .count("cpu_ops_per_token", 1, 7)
           .kernel("activate", 6, 0)
           .kernel("multiply_q8_0", 25, 37)
           .op("SWIGLU", 0, 6),
       {{"work_moved_to_cpu",
         {"barriers_per_token", "copies_per_token", "cpu_ops_per_token", "placement",
          "syncs_per_token"}},
        {"batching_lost", {"dispatches_per_token", "kernels"}}}},
      {"llama.cpp with -nkvo 1 and GGML_VK_DISABLE_FUSION=1, 4 layers",
       JudgedCell("vulkan")
           .count("dispatches_per_token", 65, 77)
           .count("barriers_per_token", 46, 74)
           .count("syncs_per_token", 1, 13)
           .count("copies_per_token", 2, 14)
           .count("splits_per_token", 2, 10)
           .count("cpu_ops_per_token", 1, 9)
           .kernel("add_f32_f32_f32_norepeat", 0, 8)
           .kernel("add_rms_f32_f32_f32_norepeat", 1, 0)
           .kernel("mul_f32_f32_f32_norepeat", 0, 9)
           .kernel("rms_norm_f32", 0, 9)
           .kernel("rms_norm_mul_f32", 8, 0)
           .kernel("rms_norm_mul_partials_f32", 1, 0)
           .kernel("rope_norm_f32", 4, 8)
           .kernel("rope_norm_f32_f16", 4, 0)
           .kernel("set_rows_f32_f16_i64", 4, 0)
           .op("SET_ROWS", 0, 8),
       {{"work_moved_to_cpu",
         {"barriers_per_token", "copies_per_token", "cpu_ops_per_token", "placement",
          "splits_per_token", "syncs_per_token"}},
        {"fusion_lost", {"dispatches_per_token", "kernels"}}}},
      {"RMS_NORM on the CPU: what multiplied with it runs alone",
       JudgedCell("vulkan")
           .count("syncs_per_token", 1, 9)
           .kernel("rms_norm_mul_f32", 8, 0)
           .kernel("mul_f32_f32_f32_norepeat", 0, 8)
           .op("RMS_NORM", 0, 8),
       {{"work_moved_to_cpu", {"kernels", "placement", "syncs_per_token"}}}},
      {"llama.cpp -ngl 2, gemma3: RMS_NORM of the joined kernel moved",
       JudgedCell("vulkan")
           .count("dispatches_per_token", 125, 40)
           .kernel("rms_norm_mul_f32", 20, 0)
           .kernel("rms_norm_mul_add_f32", 10, 0)
           .kernel("matmul_quant_f32_f16acc_aligned_0", 61, 0)
           .kernel("mul_f32_f32_f32", 0, 5)
           .kernel("add_f32_f32_f32_norepeat", 0, 1)
           .op("MUL_MAT", 0, 61)
           .op("RMS_NORM", 0, 30)
           .op("MUL", 0, 25),
       {{"work_moved_to_cpu", {"dispatches_per_token", "kernels", "placement"}}}},
      {"more is gone from the device than came",
       JudgedCell("vulkan")
           .count("dispatches_per_token", 57, 53)
           .count("syncs_per_token", 1, 7)
           .kernel("activate", 6, 0)
           .kernel("multiply_q8_0", 25, 27)
           .op("SWIGLU", 0, 6),
       {{"work_moved_to_cpu", {"dispatches_per_token", "placement", "syncs_per_token"}},
        {"batching_lost", {"kernels"}}}},
  };
  for (const Case& entry : cases) {
    std::map<std::string, std::vector<std::string>> claims;
    for (Finding& finding : explained(entry.cell.verdict)) {
      if (finding.claims.empty()) continue;
      std::ranges::sort(finding.claims);
      claims[finding.kind] = finding.claims;
    }
    EXPECT_EQ(claims, entry.claims) << entry.what;
  }
}

// New dispatches next to this move would mean that work came to the device.
TEST(Claims, WorkThatMovedDoesNotTellOfDispatchesThatOtherKernelsMade) {
  JudgedCell cell("vulkan");
  cell.count("dispatches_per_token", 57, 63)
      .count("syncs_per_token", 1, 7)
      .kernel("activate", 6, 0)
      .kernel("multiply_q8_0", 25, 37)
      .op("SWIGLU", 0, 6);
  const auto findings = explained(cell.verdict);
  const Finding& moved = of_kind(findings, "work_moved_to_cpu");
  EXPECT_THAT(moved.text(), testing::HasSubstr("+6 syncs"));
  EXPECT_THAT(moved.text(), testing::Not(testing::HasSubstr("dispatches")));
  EXPECT_THAT(of_kind(findings, "batching_lost").text(), testing::HasSubstr("+12 multiply_q8_0"));
}

// Prefill of llama.cpp with -ot attn_q=CPU: the weights of 32 layers are sent each time.
TEST(Claims, AStepOfTheCpuInEachLayerClaimsThePartsThatItCutsTheGraphInto) {
  JudgedCell cell("vulkan");
  cell.count("syncs_per_prefill", 1, 33)
      .count("copies_per_prefill", 2, 34)
      .count("splits_per_prefill", 2, 34)
      .count("backend_syncs_per_prefill", 8, 104);
  const ModelFacts model = test::plain_model(32);
  const auto findings =
      explain(make_evidence(cell.verdict), &model, {default_bands(), {}}).findings;
  EXPECT_THAT(of_kind(findings, "sync_per_layer").claims, Contains("splits_per_prefill"));
  EXPECT_THAT(of_kind(findings, "splits_changed").claims, IsEmpty());
}

// Dispatches of a device correspond to ops of a CPU.
TEST(Claims, OnACpuTheFindingOfItsOpsClaimsHowManyThereAre) {
  struct Case {
    const char* kind;
    JudgedCell cell;
  };
  const Case cases[] = {
      {"batching_lost",
       JudgedCell("cpu").count("cpu_ops_per_token", 58, 70).kernel("MUL_MAT", 25, 37)},
      {"fusion_lost", JudgedCell("cpu")
                          .count("cpu_ops_per_token", 52, 58)
                          .kernel("GATE_UP", 6, 0)
                          .kernel("MUL_MAT", 19, 25)
                          .kernel("SWIGLU", 0, 6)},
  };
  for (const Case& entry : cases) {
    EXPECT_THAT(of_kind(explained(entry.cell.verdict), entry.kind).claims,
                UnorderedElementsAre("cpu_ops_per_token", "kernels"))
        << entry.kind;
  }
}

TEST(Claims, ARateThatFellIsNotClaimedByWorkThatIsGone) {
  JudgedCell cell("vulkan");
  cell.count("syncs_per_token", 3, 1, Outcome::improved).rate("decode_tokens_per_second", 40, 30);
  for (const Finding& finding : explained(cell.verdict)) {
    EXPECT_THAT(finding.claims, testing::Not(Contains("decode_tokens_per_second")))
        << finding.text();
  }
}

TEST(Claims, ATimeAloneIsClaimedByTheFindingThatTellsIt) {
  JudgedCell cell("vulkan");
  cell.rate("decode_tokens_per_second", 40, 30);
  const auto findings = explained(cell.verdict);
  EXPECT_THAT(of_kind(findings, "time_changed").claims,
              UnorderedElementsAre("decode_tokens_per_second"));
}

TEST(Claims, NameNoCauseOfMoreDispatchesWithoutNames) {
  JudgedCell cell("vulkan");
  cell.count("dispatches_per_token", 10, 70);
  EXPECT_THAT(of_kind(explained(cell.verdict), "op_added").headline,
              testing::HasSubstr("60 more dispatches; no kernel names were counted"));
}

TEST(Claims, NameLayersThatMovedApartFromTheCacheAlone) {
  JudgedCell layers("cuda");
  layers.count("cpu_ops_per_token", 0, 36)
      .op("MUL_MAT", 0, 21)
      .op("RMS_NORM", 0, 6)
      .op("FLASH_ATTN_EXT", 0, 3)
      .op("SET_ROWS", 0, 6);
  const Finding layer_finding = of_kind(explained(layers.verdict), "work_moved_to_cpu");
  EXPECT_THAT(layer_finding.headline,
              testing::StartsWith("Work moved to the CPU: 3 layers (MUL_MAT 21 times a token, "));
  EXPECT_THAT(layer_finding.cause, testing::HasSubstr("-ngl"));
  JudgedCell cache("cuda");
  cache.count("cpu_ops_per_token", 0, 8).op("SET_ROWS", 0, 8);
  const Finding cache_finding = of_kind(explained(cache.verdict), "work_moved_to_cpu");
  EXPECT_EQ(cache_finding.headline, "Work moved to the CPU: SET_ROWS 8 times a token.");
  EXPECT_THAT(cache_finding.cause, testing::HasSubstr("-nkvo"));
}

TEST(Claims, SayWhereKernelsWereNotCompared) {
  JudgedCell cell("vulkan");
  cell.count("dispatches_per_token", 10, 70);
  cell.verdict.not_compared = "the baselines were stored with other settings: arguments changed";
  EXPECT_THAT(of_kind(explained(cell.verdict), "op_added").headline,
              testing::HasSubstr("60 more dispatches; kernels were not compared"));
}

TEST(Claims, WithoutAGateNothingIsClaimed) {
  JudgedCell cell("vulkan");
  cell.count("syncs_per_token", 1, 3);
  Evidence evidence = make_evidence(cell.verdict);
  evidence.gate.reset();
  const auto findings = explain(evidence, nullptr, {default_bands(), {}}).findings;
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings.front().claims, IsEmpty());
}

}  // namespace claims_test
}  // namespace weir::explain
