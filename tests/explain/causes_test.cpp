// Tests that one change of an engine is reported as one cause, in however many cells it shows.
#include "gate/explain/causes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/find.hpp"

#include "tests/explain/judged.hpp"

namespace weir::explain {
namespace causes_test {

using test::JudgedCell;
using test::lost;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using verdict::Carrier;
using verdict::Cause;
using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::Outcome;
using verdict::Unexplained;

// Returns a failed gate with its causes. If `explained`, the cells are explained here; else they
// bring their findings.
GateVerdict make_gate(std::vector<JudgedCell> cells, bool explained = true) {
  GateVerdict gate;
  gate.verdict = Outcome::fail;
  for (JudgedCell& cell : cells) {
    if (explained) {
      cell.verdict.findings =
          explain(make_evidence(cell.verdict), nullptr, {default_bands(), {}}).findings;
    }
    gate.cells.push_back(std::move(cell.verdict));
  }
  find_causes(gate);
  return gate;
}

Finding finding(const char* kind, std::vector<std::string> ops, std::vector<std::string> claims) {
  Finding finding;
  finding.kind = kind;
  finding.headline = std::string("A sentence with ") + kind + ".";
  finding.ops = std::move(ops);
  finding.claims = std::move(claims);
  return finding;
}

std::vector<std::string> names(const GateVerdict& gate) {
  return collect<std::string>(gate.cells, [](const CellVerdict& cell) { return cell.cell.str(); });
}

// SET_ROWS moved to the CPU (llama.cpp -nkvo 1). Each of two models (12 and 22 layers) has a cache
// of keys and one of values. Five backends run two prompts that decode and two that do not.
std::vector<JudgedCell> moved_to_cpu() {
  constexpr std::pair<const char*, const char*> k_backends[] = {
      {"vulkan", "set_rows_f32_f16_i64"},
      {"cuda", "void k_set_rows<float, long, __half>"},
      {"metal", "kernel_set_rows_f16_i64"},
      {"opencl", "kernel_set_rows_f16_i32"},
      {"hip", "k_set_rows_quant"}};
  std::vector<JudgedCell> cells;
  for (const auto& [model, layers] : {std::pair("small", 12), {"large", 22}}) {
    for (const auto& [backend, kernel] : k_backends) {
      for (const char* prompt : {"decode", "chat", "prefill", "long"}) {
        const bool decodes = prompt[0] == 'd' || prompt[0] == 'c';
        const std::string per = decodes ? "_per_token" : "_per_prefill";
        JudgedCell& cell = cells.emplace_back(backend, model, prompt);
        cell.count("dispatches" + per, 20 * layers, 18 * layers)
            .count("syncs" + per, 1, 1 + 2 * layers)
            .kernel(kernel, 2 * layers, 0)
            .op("SET_ROWS", 0, 2 * layers);
        if (decodes) cell.rate("decode_tokens_per_second", 100, 60 + layers);
      }
    }
  }
  return cells;
}

TEST(Causes, OneChangeInFortyCellsIsOneWhateverItsNumbersAndKernelsAre) {
  const GateVerdict gate = make_gate(moved_to_cpu());
  ASSERT_EQ(gate.cells.size(), 40U);
  ASSERT_EQ(gate.causes.size(), 1U);
  const Cause& cause = gate.causes.front();
  EXPECT_EQ(cause.kind, "work_moved_to_cpu");
  EXPECT_EQ(cause.headline, "Work moved to the CPU: SET_ROWS.") << "24 and 44 times";
  EXPECT_EQ(cause.cells, names(gate));
  // Models of 12 and of 22 layers: two dispatches each gone, two waits each new; half of the cells
  // decode.
  EXPECT_THAT(cause.carriers, ElementsAre(Carrier{"dispatches_per_token", -44, -24, 20},
                                          Carrier{"syncs_per_token", 24, 44, 20},
                                          Carrier{"decode_tokens_per_second", -28, -18, 20}));
  EXPECT_EQ(cause.follow, 2) << "dispatches and syncs per prefill";
  EXPECT_THAT(cause.cause, testing::HasSubstr("the backend lacks a kernel"));
  EXPECT_THAT(gate.unexplained, IsEmpty());
  EXPECT_THAT(lost(gate), IsEmpty());
}

TEST(Causes, WhereAllCellsSayTheSameTheHeadlineIsThat) {
  std::vector<JudgedCell> cells;
  for (const char* model : {"a", "b"}) {
    cells.emplace_back("vulkan", model).count("syncs_per_token", 1, 3);
  }
  const GateVerdict gate = make_gate(std::move(cells));
  ASSERT_EQ(gate.causes.size(), 1U);
  EXPECT_EQ(gate.causes[0].headline, gate.cells[0].findings.front().headline);
}

// As often as the models have such weights, which differs by cell.
TEST(Causes, KeepWhereMatrixMultiplicationsMoved) {
  std::vector<JudgedCell> cells;
  for (const auto& [model, times] : {std::pair("llama-3.1-8b", 31), {"tiny-gemma3", 3}}) {
    JudgedCell cell("hip", model, "prefill");
    cell.count("hipblas_calls_per_prefill", 0, times)
        .kernel("mul_mat_q<(ggml_type)14, 128, false>", times, 0)
        .kernel("hipblasGemmEx", 0, times);
    cells.push_back(cell);
  }
  const GateVerdict gate = make_gate(cells);
  ASSERT_EQ(gate.causes.size(), 1U);
  EXPECT_EQ(gate.causes[0].headline.find("Matrix multiplications moved to the vendor's library"),
            0U)
      << gate.causes[0].headline;
  EXPECT_EQ(gate.causes[0].cells.size(), 2U);
}

TEST(Causes, TwoChangesAtOnceAreTwoThoseOfMostCellsFirst) {
  std::vector<JudgedCell> cells;
  for (const char* model : {"a", "b", "c"}) {
    JudgedCell& cell = cells.emplace_back("vulkan", model);
    cell.count("dispatches_per_token", 65, 77).count("syncs_per_token", 1, 3);
    cell.verdict.findings = {finding("sync_added", {}, {"syncs_per_token"})};
    if (model[0] == 'a') continue;
    cell.verdict.findings.insert(
        cell.verdict.findings.begin(),
        finding("fusion_lost", {"rms_norm_mul_f32", "rms_norm_f32"}, {"dispatches_per_token"}));
  }
  const GateVerdict gate = make_gate(std::move(cells), false);
  EXPECT_THAT(collect<std::string>(gate.causes, &Cause::kind),
              ElementsAre("sync_added", "fusion_lost"));
  EXPECT_THAT(gate.unexplained,
              ElementsAre(Unexplained{"dispatches_per_token", {names(gate).front()}}));
  EXPECT_THAT(lost(gate), IsEmpty());
}

// It may follow from the cause or be a change of its own: one number does not tell.
TEST(Causes, NameWhatElseTheirCellsHave) {
  std::vector<JudgedCell> cells;
  for (const char* model : {"a", "b"}) {
    JudgedCell& cell = cells.emplace_back("vulkan", model);
    cell.count("dispatches_per_token", 65, 77).count("copies_per_token", 1, 2);
    cell.verdict.findings = {
        finding("batching_lost", {"mul_mat"}, {"dispatches_per_token", "copies_per_token"}),
        finding("extra_copies", {}, {}), finding("memory_changed", {}, {})};
  }
  const GateVerdict gate = make_gate(std::move(cells), false);
  ASSERT_EQ(gate.causes.size(), 1U);
  EXPECT_THAT(gate.causes[0].beside, ElementsAre("More is copied between memories"));
}

TEST(Causes, GoByTheWorkOfKernelsNotByTheirNames) {
  struct Row {
    const char *name, *a, *b;
    std::size_t causes;
  };
  constexpr Row k_rows[] = {
      {"types", "mul_mat_vec_q8_0_f32_f32", "mul_mat_vec_q4_k_f32_f32", 1},
      {"backends", "mul_mat_vec_q8_0_f32_f32", "void mul_mat_vec_q<(ggml_type)8, 1>", 1},
      {"an op with shapes", "MUL_MAT q8_0,f32->f32 256x64,256->64", "mul_mat_vec_f16_f32", 1},
      {"attention of Intel's own", "xe_fa_decode_ph1", "flash_attn_f32_f16_aligned", 1},
      {"no names", "main@ec2ac0f063322dd0", "main@0123456789abcdef", 1},
      {"no name beside one", "main@ec2ac0f063322dd0", "mul_mat_vec_f16_f32", 1},
      {"other work", "mul_mat_vec_q8_0_f32_f32", "rms_norm_f32", 2},
  };
  for (const Row& row : k_rows) {
    std::vector<JudgedCell> cells;
    for (const char* op : {row.a, row.b}) {
      JudgedCell& cell = cells.emplace_back("vulkan", std::to_string(cells.size()));
      cell.kernel(op, 1, 2).verdict.findings = {finding("variant_changed", {op}, {"kernels"})};
    }
    const GateVerdict gate = make_gate(std::move(cells), false);
    EXPECT_EQ(gate.causes.size(), row.causes) << row.name;
    EXPECT_THAT(lost(gate), IsEmpty()) << row.name;
  }
}

// A prefill and a token move different ops, and different kernels disappear.
TEST(Causes, WorkThatMovedIsOneCauseWhereCellsShareAnyOpOfIt) {
  struct Row {
    const char* name;
    std::vector<std::vector<std::string>> ops;  // ops of each cell's finding, the largest first
    std::size_t causes;
  };
  const Row rows[] = {
      {"llama.cpp -ot attn_q=CPU of gemma3 and llama",
       {{"MUL", "MUL_MAT", "mul_mat_vec_q4_k_f32_f32", "rms_norm_mul_rope_f32_f32"},
        {"MUL_MAT", "mul_mat_vec_f16_f32_f32"}},
       1},
      {"one op among others", {{"MUL_MAT", "ADD", "ROPE"}, {"CPY", "RMS_NORM", "MUL_MAT"}}, 1},
      {"by a cell in between", {{"MUL_MAT"}, {"ROPE"}, {"ROPE", "MUL_MAT"}}, 1},
      {"an op and its kernel", {{"SET_ROWS", "rope_norm_f32"}, {"set_rows_f32_f16_i64"}}, 1},
      {"other ops", {{"MUL_MAT", "ADD"}, {"SET_ROWS", "CPY"}}, 2},
  };
  for (const Row& row : rows) {
    std::vector<JudgedCell> cells;
    for (const auto& ops : row.ops) {
      JudgedCell& cell = cells.emplace_back("vulkan", std::to_string(cells.size()));
      cell.op("MUL_MAT", 0, 1).verdict.findings = {
          finding("work_moved_to_cpu", ops, {"placement"})};
    }
    const GateVerdict gate = make_gate(std::move(cells), false);
    EXPECT_EQ(gate.causes.size(), row.causes) << row.name;
    EXPECT_THAT(lost(gate), IsEmpty()) << row.name;
  }
}

// Regression "unbatched-qkv" of the reference engine: ops on the CPU have ggml's names, kernels
// have their own.
TEST(Causes, AreOneForADeviceWhoseKernelsHaveNamesThatNobodyKnows) {
  struct Row {
    const char *name, *engine, *backend, *kernel;
    std::size_t causes;
  };
  constexpr Row k_rows[] = {
      {"another device", "llama.cpp", "vulkan", "multiply_q8_0", 1},
      {"the same device", "llama.cpp", "cpu", "multiply_q8_0", 2},
      {"another engine", "agave", "vulkan", "multiply_q8_0", 2},
      {"a known name", "llama.cpp", "vulkan", "rms_norm_f32", 2},
  };
  for (const Row& row : k_rows) {
    std::vector<JudgedCell> cells;
    for (const bool first : {true, false}) {
      JudgedCell& cell = cells.emplace_back(first ? "cpu" : row.backend, first ? "a" : "b");
      const std::string op = first ? "MUL_MAT" : row.kernel;
      cell.kernel(op, 25, 37).verdict.findings = {finding("batching_lost", {op}, {"kernels"})};
      cell.verdict.findings.front().headline += op;
      if (!first) cell.verdict.cell.engine = row.engine;
    }
    const GateVerdict gate = make_gate(std::move(cells), false);
    EXPECT_EQ(gate.causes.size(), row.causes) << row.name;
    if (row.causes == 1) {
      EXPECT_EQ(gate.causes.front().headline, "Batching lost: MUL_MAT.");
    }
    EXPECT_THAT(lost(gate), IsEmpty()) << row.name;
  }
}

// The second cell has one finding that names the works of both.
TEST(Causes, StayApartWhereACellTellsThemApart) {
  std::vector<JudgedCell> cells;
  JudgedCell& judged_cell = cells.emplace_back("vulkan", "a");
  judged_cell.count("dispatches_per_token", 65, 77).count("barriers_per_token", 65, 77);
  judged_cell.verdict.findings = {finding("fusion_lost", {"rms_norm"}, {"dispatches_per_token"}),
                                  finding("fusion_lost", {"rope"}, {"barriers_per_token"})};
  JudgedCell& both = cells.emplace_back("vulkan", "b");
  both.count("dispatches_per_token", 65, 77);
  both.verdict.findings = {finding("fusion_lost", {"rms_norm", "rope"}, {"dispatches_per_token"})};
  EXPECT_EQ(make_gate(std::move(cells), false).causes.size(), 2U);
}

TEST(Causes, MakeNoneOfWhatClaimsNothingThatFailed) {
  JudgedCell cell("vulkan");
  cell.count("dispatches_per_token", 65, 77).count("syncs_per_token", 3, 1, Outcome::improved);
  Finding also = finding("sync_per_layer", {}, {"dispatches_per_token"});
  also.also = true;
  cell.verdict.findings = {also, finding("op_added", {"add"}, {"dispatches_per_token"}),
                           finding("fusion_lost", {"mul"}, {"dispatches_per_token"}),
                           finding("sync_removed", {}, {"syncs_per_token"})};
  const GateVerdict gate = make_gate({cell}, false);
  EXPECT_THAT(collect<std::string>(gate.causes, &Cause::kind), ElementsAre("op_added"));
  EXPECT_THAT(gate.unexplained, IsEmpty());
}

TEST(Causes, WhatFailedForNoFindingIsUnexplainedBeforeWhatIsNotDecided) {
  std::vector<JudgedCell> cells;
  for (const char* model : {"a", "b"}) {
    JudgedCell& cell = cells.emplace_back("vulkan", model);
    cell.rate("decode_tokens_per_second", 40, 39, Outcome::inconclusive)
        .count("syncs_per_token", 1, 3)
        .count("dispatches_per_token", 65, 77);
    cell.verdict.findings = {finding("sync_added", {}, {"syncs_per_token"})};
  }
  const GateVerdict gate = make_gate(cells, false);
  const std::vector<std::string> both = names(gate);
  EXPECT_THAT(gate.unexplained, ElementsAre(Unexplained{"dispatches_per_token", both},
                                            Unexplained{"decode_tokens_per_second", both}));
  EXPECT_THAT(lost(gate), IsEmpty());
}

// llama.cpp's GGML_VK_DISABLE_FUSION=1: 4 and 6 layers.
TEST(Causes, SayWhatIsLostWithoutTheNumbersOfACell) {
  std::vector<JudgedCell> cells;
  for (const auto& [model, layers] : {std::pair("small", 4), {"large", 6}}) {
    JudgedCell& cell = cells.emplace_back("vulkan", model);
    cell.count("dispatches_per_token", 20 * layers, 22 * layers)
        .count("submits_fixed", layers, layers + 1, Outcome::info)
        .kernel("rms_norm_mul_f32", 2 * layers, 0)
        .kernel("rms_norm_f32", 0, 2 * layers)
        .kernel("mul_f32_f32_f32_norepeat", 0, 2 * layers);
  }
  const GateVerdict gate = make_gate(std::move(cells));
  ASSERT_EQ(gate.causes.size(), 1U);
  EXPECT_EQ(gate.causes[0].headline,
            "Fusion lost: rms_norm_mul ran as one kernel; now rms_norm and mul run apart.");
  EXPECT_THAT(gate.causes[0].carriers, ElementsAre(Carrier{"dispatches_per_token", 8, 12, 2}))
      << "submits_fixed broke no limit";
}

// llama.cpp's `-fa 0` on a CPU and on Vulkan, whose kernels have names of their own.
TEST(Causes, NameWhatRanAsOneWhereItsPartsHaveOtherNames) {
  std::vector<JudgedCell> cells;
  for (const char* backend : {"cpu", "vulkan"}) {
    JudgedCell& cell = cells.emplace_back(backend);
    cell.count("dispatches_per_token", 65, 73);
    const bool cpu = backend[0] == 'c';
    cell.verdict.findings = {
        finding("fusion_lost",
                cpu ? std::vector<std::string>{"FLASH_ATTN_EXT", "SOFT_MAX"}
                    : std::vector<std::string>{"flash_attn_f32_f16", "soft_max_f32", "cpy_f32"},
                {"dispatches_per_token"})};
    cell.verdict.findings.front().headline += backend;
  }
  const GateVerdict gate = make_gate(std::move(cells), false);
  ASSERT_EQ(gate.causes.size(), 1U);
  EXPECT_EQ(gate.causes[0].headline, "Fusion lost: FLASH_ATTN_EXT now runs in parts.");
}

TEST(Causes, CountTheOpsThatAHeadlineHasNoRoomFor) {
  std::vector<JudgedCell> cells;
  for (const char* model : {"a", "b"}) {
    JudgedCell& cell = cells.emplace_back("vulkan", model);
    cell.count("dispatches_per_token", 65, 21)
        .count("cpu_ops_per_token", 1, 57)
        .count("backend_syncs_per_token", 8, 9);
    cell.verdict.findings = {
        finding("work_moved_to_cpu", {"MUL_MAT", "MUL", "RMS_NORM", "ROPE", "ADD"},
                {"cpu_ops_per_token", "dispatches_per_token", "backend_syncs_per_token"})};
    cell.verdict.findings.front().headline += model;
  }
  const GateVerdict gate = make_gate(std::move(cells), false);
  ASSERT_EQ(gate.causes.size(), 1U);
  EXPECT_EQ(gate.causes[0].headline, "Work moved to the CPU: MUL_MAT, MUL, RMS_NORM and 2 more.");
  EXPECT_THAT(collect<std::string>(gate.causes[0].carriers, &Carrier::metric),
              ElementsAre("cpu_ops_per_token", "dispatches_per_token", "backend_syncs_per_token"));
}

TEST(Causes, SayWhetherTheSameWorkTakesLonger) {
  for (const bool slower : {true, false}) {
    std::vector<JudgedCell> cells;
    for (const char* prompt : {"decode", "prefill"}) {
      JudgedCell& cell = cells.emplace_back("cpu", "tiny", prompt);
      const std::string rate = prompt + std::string("_tokens_per_second");
      const std::string count = prompt[0] == 'd' ? "cpu_ops_per_token" : "cpu_ops_per_prefill";
      cell.count(count, 163, 163, Outcome::pass).rate(rate, 100, slower ? 20 : 300);
    }
    const GateVerdict gate = make_gate(std::move(cells));
    ASSERT_EQ(gate.causes.size(), 1U);
    EXPECT_EQ(gate.causes[0].headline,
              slower ? "The same work takes longer." : "The same work takes less time.");
  }
}

TEST(Causes, AGateThatPassesHasNone) {
  JudgedCell cell("vulkan");
  cell.count("syncs_per_token", 3, 1, Outcome::improved);
  cell.verdict.verdict = Outcome::improved;
  const GateVerdict gate = make_gate({cell});
  EXPECT_FALSE(gate.cells[0].findings.empty());
  EXPECT_THAT(gate.causes, IsEmpty());
  EXPECT_THAT(gate.unexplained, IsEmpty());
}

TEST(Causes, SayNothingThatIsNotTrueOfEachCell) {
  std::vector<JudgedCell> cells;
  for (const char* model : {"a", "b"}) {
    JudgedCell& cell = cells.emplace_back("vulkan", model);
    cell.count("cpu_ops_per_token", 0, 4);
    Finding moved = finding("work_moved_to_cpu", {"SET_ROWS", "ROPE"}, {"cpu_ops_per_token"});
    moved.headline += model;
    moved.cause = "the same";
    moved.look_at = model;
    if (model[0] == 'b') moved.ops = {"SET_ROWS", "ADD"};
    cell.verdict.findings = {moved};
  }
  const GateVerdict gate = make_gate(std::move(cells), false);
  ASSERT_EQ(gate.causes.size(), 1U);
  EXPECT_THAT(gate.causes[0], AllOf(Field(&Cause::headline, "Work moved to the CPU: SET_ROWS."),
                                    Field(&Cause::ops, ElementsAre("SET_ROWS", "ROPE", "ADD")),
                                    Field(&Cause::cause, "the same"), Field(&Cause::look_at, "")));
}

}  // namespace causes_test
}  // namespace weir::explain
