// Which judgements of a cell follow from which finding.
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
  return explain(evidence_of(cell), nullptr, {default_bands(), {}}).findings;
}

const Finding& of_kind(const std::vector<Finding>& findings, const char* kind) {
  static const Finding k_none;
  const auto* found = first_of(findings, [&](const auto& one) { return one.kind == kind; });
  return found == nullptr ? k_none : *found;
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

// The reference engine's injected regressions, of a model of 6 layers (tests/e2e/planted_test.cpp
// has what each changes alone): query, key and value are two dispatches more in each layer.
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
  for (const Case& one : cases) {
    std::map<std::string, std::vector<std::string>> claims;
    for (Finding& finding : explained(one.cell.verdict)) {
      if (finding.claims.empty()) continue;
      std::ranges::sort(finding.claims);
      claims[finding.kind] = finding.claims;
    }
    EXPECT_EQ(claims, one.claims) << one.what;
  }
}

// Beside it dispatches would say that work came to the device.
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

// llama.cpp's prefill with -ot attn_q=CPU: the weights of 32 layers are sent each time.
TEST(Claims, AStepOfTheCpuInEachLayerClaimsThePartsThatItCutsTheGraphInto) {
  JudgedCell cell("vulkan");
  cell.count("syncs_per_prefill", 1, 33)
      .count("copies_per_prefill", 2, 34)
      .count("splits_per_prefill", 2, 34)
      .count("backend_syncs_per_prefill", 8, 104);
  const ModelFacts model = test::plain_model(32);
  const auto findings = explain(evidence_of(cell.verdict), &model, {default_bands(), {}}).findings;
  EXPECT_THAT(of_kind(findings, "sync_per_layer").claims, Contains("splits_per_prefill"));
  EXPECT_THAT(of_kind(findings, "splits_changed").claims, IsEmpty());
}

// A device's dispatches are a CPU's ops.
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
  for (const Case& one : cases) {
    EXPECT_THAT(of_kind(explained(one.cell.verdict), one.kind).claims,
                UnorderedElementsAre("cpu_ops_per_token", "kernels"))
        << one.kind;
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

TEST(Claims, WithoutAGateNothingIsClaimed) {
  JudgedCell cell("vulkan");
  cell.count("syncs_per_token", 1, 3);
  Evidence evidence = evidence_of(cell.verdict);
  evidence.gate.reset();
  const auto findings = explain(evidence, nullptr, {default_bands(), {}}).findings;
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings.front().claims, IsEmpty());
}

}  // namespace claims_test
}  // namespace weir::explain
