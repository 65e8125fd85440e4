// Tests that fewer dispatches are an improvement only if the kernels explain them.
#include "gate/verdict/kernel_paths.hpp"

#include <gmock/gmock.h>

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace kernel_paths_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Kernels = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;  // base, candidate

std::vector<Changed> changed(const Kernels& kernels) {
  std::vector<Changed> all;
  for (const auto& [name, counts] : kernels) {
    Changed change{name, {}, {}};
    if (counts.first != 0) change.baseline = counts.first;
    if (counts.second != 0) change.current = counts.second;
    all.push_back(change);
  }
  return all;
}

std::string summary(const KernelPaths& paths) {
  std::string text;
  for (const auto& [work, times] : paths.replaced) text += work + " " + times.str() + "; ";
  for (const std::string& name : paths.unexplained) text += "? " + name + "; ";
  return text;
}

// Ops of the tiny llama for a token, with any types (llama.cpp v0.5.0).
const Numbers k_llama{{"ADD", 8},  {"FLASH_ATTN_EXT", 4}, {"GET_ROWS", 2},
                      {"MUL", 9},  {"MUL_MAT", 29},       {"RMS_NORM", 9},
                      {"ROPE", 8}, {"SET_ROWS", 8},       {"SWIGLU", 4}};

struct Case {
  const char* what;
  Kernels kernels;
  const char* summary;
};

// Counts on device twins with llama.cpp v0.5.0: the effects of a switch of its Vulkan backend.
TEST(KernelPaths, TellAnotherPathFromAFusion) {
  const Case cases[] = {
      {"GGML_VK_DISABLE_COOPMAT2, RTX 4090, prefill: 85 to 71 dispatches",
       {{"contig_cpy_f32_f16", {14, 0}},
        {"flash_attn_f32_f16_aligned_cm1", {0, 4}},
        {"flash_attn_f32_f16_aligned_f32acc_cm2", {4, 0}},
        {"matmul_f16_f16acc_aligned_0", {25, 0}},
        {"matmul_f16_f32_f16acc_aligned_1", {0, 25}}},
       "FLASH_ATTN_EXT 4; MUL_MAT 25; "},
      {"GGML_VK_DISABLE_INTEGER_DOT_PRODUCT, A770, prefill of q4_0: 85 to 71",
       {{"matmul_q4_0_q8_1_1", {25, 0}},
        {"matmul_quant_f32_f16acc_aligned_1", {0, 25}},
        {"quantize_q8_1_x4", {14, 0}}},
       "MUL_MAT 25; "},
      {"GGML_VK_FORCE_MMVQ no longer set, decode of q4_0: 82 to 65",
       {{"mul_mat_vec_q4_0_f32_f32", {0, 29}},
        {"mul_mat_vec_q4_0_q8_1_f32", {29, 0}},
        {"quantize_q8_1_x4", {17, 0}}},
       "MUL_MAT 29; "},
      {"GGML_VK_DISABLE_FUSION no longer set, RX 7900 XTX, prefill: 85 to 71. Rope with set_rows "
       "and an add with the norm's partial sums are other variants of what they were",
       {{"add_f32_f32_f32_norepeat", {8, 6}},
        {"add_rms_f32_f32_f32_norepeat", {0, 1}},
        {"mul_f32_f32_f32", {7, 0}},
        {"mul_f32_f32_f32_norepeat", {2, 0}},
        {"rms_norm_f32", {9, 0}},
        {"rms_norm_mul_f32", {0, 8}},
        {"rms_norm_mul_partials_f32", {0, 1}},
        {"rope_norm_f32", {8, 4}},
        {"rope_norm_f32_f16", {0, 4}},
        {"set_rows_f32_f16_i64", {8, 4}}},
       ""},
      {"the same, and the products by other kernels",
       {{"matmul_f16_f32_f16acc_aligned_1", {25, 0}},
        {"matmul_f16_f32_aligned_1", {0, 25}},
        {"mul_f32_f32_f32", {9, 0}},
        {"rms_norm_f32", {9, 0}},
        {"rms_norm_mul_f32", {0, 9}}},
       "MUL_MAT 25; "},
      {"small kernels by others, and none fused",
       {{"rope_norm_f32", {8, 4}}, {"rope_norm_f32_f16", {0, 4}}, {"contig_cpy_f32_f16", {2, 0}}},
       "ROPE 4; "},
      {"a kernel that the graph has no op for",
       {{"contig_cpy_f32_f16", {14, 0}}, {"quantize_q8_1_x4", {0, 3}}},
       "? quantize_q8_1_x4; "},
      {"one kernel for several ops, whose name tells nothing",
       {{"add_f32", {8, 0}}, {"mul_f32", {9, 0}}, {"k_17", {0, 8}}},
       ""},
      {"more of the same work than the graph asks for",
       {{"contig_cpy_f32_f16", {14, 0}}, {"swiglu_f32", {4, 8}}},
       "? swiglu_f32; "},
      {"tiles that got numbers for letters (llama.cpp b10361 to v0.5.0)",
       {{"matmul_f16_f16acc_aligned_s", {25, 0}},
        {"matmul_f16_f16acc_aligned_0", {0, 25}},
        {"contig_cpy_f32_f16", {14, 0}}},
       ""},
      {"products by other names of other engines",
       {{"affine_qmv_f16_cm1", {9, 0}}, {"affine_qmv_f16", {0, 9}}, {"add_f32", {8, 0}}},
       "MUL_MAT 9; "},
      {"attention of CUDA, beside fused additions",
       {{"fattn_f16_cm1", {4, 0}}, {"fattn_f16", {0, 4}}, {"add_f32", {8, 0}}},
       "FLASH_ATTN_EXT 4; "},
      {"products of a library, by another kernel, beside fused additions",
       {{"cutlass_80_tensorop_f16_s16816gemm_f16", {3, 0}},
        {"ampere_sgemm_128x64_tn", {0, 3}},
        {"add_f32", {8, 0}}},
       "? ampere_sgemm_128x64_tn; "},
      {"all products, by fewer kernels whose name tells nothing",
       {{"mul_mat_vec_f16_f32_f32", {29, 0}}, {"mystery", {0, 8}}},
       "? mystery; "},
      {"products that went, and nothing that computes them",
       {{"mul_mat_vec_f16_f32_f32", {29, 21}}},
       "? MUL_MAT; "},
      {"products of gate and up with what follows them in one kernel",
       {{"mul_mat_vec_f16", {29, 21}}, {"mul_mat_vec_swiglu_f16", {0, 4}}, {"swiglu_f32", {4, 0}}},
       ""},
      {"nothing but work that went", {{"contig_cpy_f32_f16", {14, 0}}}, ""},
  };
  for (const Case& test_case : cases) {
    // The graph has each op as often as before; an op that is not printed did not change.
    EXPECT_EQ(summary(find_kernel_paths(changed(test_case.kernels), &k_llama, &k_llama, true)),
              test_case.summary)
        << test_case.what;
  }
}

// npm 3.18.1 to 3.20.0 on an RX 7900 XTX, decode: 73 to 65.
TEST(KernelPaths, AreExplainedByOpsThatWentFromTheGraph) {
  Numbers before = k_llama, now = k_llama;
  before.erase("FLASH_ATTN_EXT");
  before["MUL_MAT"] = 37;
  before["SOFT_MAX"] = 4;
  before["CONT"] = 4;
  const Kernels kernels{{"contig_cpy_f32_f32", {4, 0}},
                        {"fa_split_k_reduce", {0, 4}},
                        {"flash_attn_f32_f16_aligned_cm1", {0, 4}},
                        {"mul_mat_vec_f16_f32_f32", {33, 29}},
                        {"mul_mat_vec_p021_f16_f322", {4, 0}},
                        {"set_rows_f16_i64", {4, 0}},
                        {"set_rows_f32_f16_i64", {0, 4}},
                        {"soft_max_f32", {4, 0}},
                        {"swiglu_f32", {0, 4}},
                        {"swiglu_f32_rte", {4, 0}}};
  EXPECT_EQ(summary(find_kernel_paths(changed(kernels), &before, &now, true)), "");
  EXPECT_EQ(summary(find_kernel_paths(changed(kernels), &k_llama, &k_llama, true)),
            "GLU 4; SET_ROWS 4; ? flash_attn_f32_f16_aligned_cm1; ? fa_split_k_reduce; ")
      << "of the same graph nothing explains it";
}

TEST(KernelPaths, AreReadFromNamesWhereNoGraphIsKnown) {
  const auto by_names = [](const Kernels& kernels) {
    return summary(find_kernel_paths(changed(kernels), nullptr, nullptr, true));
  };
  EXPECT_EQ(by_names({{"rms_norm", {9, 0}}, {"mul", {9, 0}}, {"rms_norm_mul", {0, 9}}}), "");
  EXPECT_EQ(by_names({{"soft_max_f32", {4, 0}}, {"gemv_q", {8, 0}}, {"flash_attn_f32", {0, 4}}}),
            "");
  EXPECT_EQ(by_names({{"gemv_cm1", {9, 0}}, {"gemv_f16", {0, 9}}, {"copy", {9, 0}}}),
            "MUL_MAT 9; ");
  EXPECT_EQ(by_names({{"cublasGemmEx", {9, 0}}, {"cublasSgemm_v2", {0, 9}}, {"copy", {9, 0}}}),
            "MUL_MAT 9; ");
  EXPECT_EQ(by_names({{"tile_tensor", {4, 0}}, {"tile_naive", {0, 4}}, {"cpy", {8, 0}}}),
            "? tile_naive; ");
  EXPECT_EQ(by_names({{"k_1", {9, 0}}, {"k_2", {0, 8}}}), "? k_2; ");
}

// A lost fusion restores its parts: the total shows it.
TEST(KernelPaths, OfMoreDispatchesExplainWhatIsNoLongerFused) {
  const auto changes = changed(
      {{"rope_norm_f32", {4, 8}}, {"rope_norm_f32_f16", {4, 0}}, {"set_rows_f32_f16_i64", {4, 8}}});
  EXPECT_EQ(summary(find_kernel_paths(changes, &k_llama, &k_llama, false)), "");
}

TEST(KernelPaths, FailWhateverTheTotalDid) {
  using namespace test;
  Profile before = reference(), after = reference();
  before.placement.state = after.placement.state = profile::Placement::State::shown;
  before.kernels->counts = {{"matmul_f16_cm2", 53}, {"contig_cpy", 12}};
  after.kernels->counts = {{"matmul_f16_cm1", 53}};
  add_count(after, "dispatches_per_token", 53);
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::improved);
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::fail);
  EXPECT_EQ(cell.judgement_of("kernels").reason,
            "the same work by other kernels: MUL_MAT 53 times");
  EXPECT_EQ(cell.verdict, Outcome::fail);
}

TEST(KernelPaths, PassWhereAnEngineOnlyRenamedItsKernels) {
  using namespace test;
  Profile before = reference(), after = reference();
  before.kernels->counts = {{"matmul_f16_aligned_m", 65}};
  after.kernels->counts = {{"matmul_f16_aligned_1", 65}};
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::pass);
  EXPECT_EQ(cell.verdict, Outcome::pass);
}

}  // namespace kernel_paths_test
}  // namespace weir::verdict
