// Tests which finding comes first if several match: the one that moved the counts. Cases are
// releases of llama.cpp whose causes were looked up in its sources (docs/evidence/atlas.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace order_test {

using test::explained;
using test::side;

struct Case {
  const char* what;
  Side before, after;
  const char *kind, *headline;  // the first finding's; the headline's beginning
};

const Case k_cases[] = {
    {"b6845 to b7324, CUDA: keys are rotated and stored by one kernel; another size of blocks",
     side({{"dispatches", 65}}, {{"mul_mat_vec_f<__half, __half, 1, 32, false>", 4},
                                 {"rope_norm<true, false, float>", 8},
                                 {"k_set_rows<float, long, __half>", 8}}),
     side({{"dispatches", 61}}, {{"mul_mat_vec_f<__half, __half, 1, 128, false>", 4},
                                 {"rope_norm<true, false, float, __half>", 4},
                                 {"rope_norm<true, false, float, float>", 4},
                                 {"k_set_rows<float, long, __half>", 4}}),
     "fusion_gained", "Fusion seems gained: rope_norm runs as one kernel 8 times a token"},
    {"b5640 to b6122, CUDA: mul_mat_vec got another name, and norms are joined with products",
     side({{"dispatches", 47}}, {{"mul_mat_vec<__half, __half>", 25},
                                 {"mul_mat_vec<__half, float>", 4},
                                 {"rms_norm_f32<32>", 9},
                                 {"k_bin_bcast<&op_mul, float>", 9}}),
     side({{"dispatches", 38}}, {{"mul_mat_vec_f<__half, __half, 1, 128>", 25},
                                 {"mul_mat_vec_f<__half, __half, 1, 192>", 4},
                                 {"rms_norm_f32<32, true>", 9}}),
     "fusion_gained", "Fusion seems gained: rms_norm runs as one kernel 9 times a token"},
    {"b6301 to b6431, CUDA: seven additions are one",
     side({{"dispatches", 22}}, {{"k_bin_bcast<&op_add, float>", 18}, {"rms_norm_f32<32>", 4}}),
     side({{"dispatches", 10}},
          {{"k_bin_bcast<&op_add, float, float*>", 6}, {"rms_norm_f32<256, true>", 4}}),
     "fusion_gained", "Fusion seems gained: "},
    {"b6133 to b6301: fewer barriers, and a shorter name",
     side({{"dispatches", 90}, {"barriers", 93}}, {{"mul_mat_vec_q4_0_f32_f32_1", 4}}),
     side({{"dispatches", 90}, {"barriers", 83}}, {{"mul_mat_vec_q4_0_f32_f32", 4}}),
     "batching_gained", "Batching gained: −10 barriers a token between the same dispatches."},
    {"b8179 to b8352: the GPU copies an input, and is waited for",
     side({{"dispatches", 90}, {"syncs", 1}, {"copies", 2}, {"tensor_sets", 8}}),
     side({{"dispatches", 90}, {"syncs", 2}, {"copies", 3}, {"tensor_sets", 7}}), "sync_added",
     "The CPU waits for the GPU more often in a token: once per new copy."},
    {"b7347 to b7698: another layer stays on the CPU",
     side({{"dispatches", 90}, {"syncs", 26}, {"splits", 25}}),
     side({{"dispatches", 90}, {"syncs", 37}, {"splits", 35}}), "splits_changed",
     "The graph is cut into more parts between backends a token."},
    {"b5640 to b6122, half of it on the CPU: fusions on both, and nothing moved",
     side({{"dispatches", 52}, {"syncs", 9}, {"backend_syncs", 14}}, {}, {{"SILU", 2}, {"MUL", 2}}),
     side({{"dispatches", 44}, {"syncs", 9}, {"backend_syncs", 16}}, {}, {{"GLU", 2}}),
     "fusion_gained", "Fewer dispatches do the work: it is fused."},
    {"b7347 to b7698: weights are uploaded through buffers for it",
     side({{"copies_fixed", 3},
           {"syncs_fixed", 6},
           {"allocations_fixed", 10},
           {"weights_bytes", 3566656}}),
     side({{"copies_fixed", 41},
           {"syncs_fixed", 42},
           {"allocations_fixed", 15},
           {"weights_bytes", 270394528}}),
     "fixed_cost_changed", "Only what is done once changed"},
    {"b10361 to v0.4.0, CUDA: one more allocation; attention got a parameter that is off",
     side({{"allocations_fixed", 4}, {"device_memory_peak_bytes", 10004992}},
          {{"flash_attn_ext_f16<64, 64, 16, 2, false, false>", 4}}),
     side({{"allocations_fixed", 5}, {"device_memory_peak_bytes", 14199296}},
          {{"flash_attn_ext_f16<64, 64, 16, 2, false, false, false>", 4}}),
     "memory_changed", "The engine takes more memory."},
    {"b4291 to b4435: kernels without names have other code; more pipelines are made at the start",
     side({{"pipelines_fixed", 252}},
          {{"main@2b1183cd6aa8d53c", 25}, {"main@19ccb5f5ce645dca", 8}}),
     side({{"pipelines_fixed", 435}},
          {{"main@80dffec9e5f0120d", 25}, {"main@c604e928d8a86cbd", 8}}),
     "fixed_cost_changed", "What is done once changed"},
    {"wqkv apart: three products for one are no other kernel for it",
     side({{"dispatches", 100}}, {{"wqkv_gemv", 24}}),
     side({{"dispatches", 148}}, {{"wq_gemv", 24}, {"wk_gemv", 24}, {"wv_gemv", 24}}),
     "fusion_lost", "Fusion seems lost: wqkv_gemv ran as one kernel 24 times a token"},
    {"GGML_CUDA_CUBLAS_COMPUTE_TYPE=f32: another product, and nothing is converted for it",
     side({{"dispatches", 150}},
          {{"cublasGemmEx", 25}, {"convert_unary_cont_vec4<float, __half>", 25}}),
     side({{"dispatches", 125}}, {{"cublasSgemm_v2", 25}}), "variant_changed",
     "Another kernel does the same work: cublas_sgemm_v2, 25 times a token."},
    {"tfjs, other products; one of them, and what it needs, become a convolution",
     side({{"dispatches", 34}}, {{"MatMulSmallOutputSizeProgram", 33}, {"Im2ColProgram", 1}}),
     side({{"dispatches", 33}}, {{"MatMulSmallOutputSizeProgram", 4},
                                 {"MatMulPackedProgram", 28},
                                 {"Conv2DMMProgram", 1}}),
     "variant_changed", "Another kernel does the same work: matmul_packed_program, 28 times"},
    {"GGML_CUDA_DISABLE_FUSION=1: the rest of a fusion that is known is element by element",
     side({{"dispatches", 20}}, {{"topk_moe_cuda<8, false>", 4}, {"rms_norm_f32<32, true>", 16}}),
     side({{"dispatches", 48}}, {{"soft_max_f32<true, 0, 0, float>", 4},
                                 {"k_argsort_f32_i32<(ggml_sort_order)1>", 4},
                                 {"k_get_rows_float<float, float>", 4},
                                 {"rms_norm_f32<32, false>", 16},
                                 {"k_bin_bcast<&op_mul, float>", 20}}),
     "fusion_lost", "Fusion lost: topk_moe_cuda ran as one kernel 4 times a token"},
    {"b6431 to b6673, CUDA: kernels copy what the driver copied, and rows have a type in their "
     "name",
     side({{"dispatches", 61}, {"copies", 8}}, {{"k_set_rows<float, __half>", 8}}),
     side({{"dispatches", 65}, {"copies", 4}},
          {{"k_set_rows<float, long, __half>", 8}, {"cpy_flt<cpy_1_flt<float, float>>", 4}}),
     "copies_removed", "Less is copied between memories a token."},
    {"-fa 0 on an Arc B580, whose attention while decoding is two kernels and a conversion",
     side({{"dispatches", 69}}, {{"xe_fa_decode_ph1", 4},
                                 {"xe_fa_decode_ph2", 4},
                                 {"f32_to_f16", 4},
                                 {"mul_mat_vec_f16_f32_f32", 29}}),
     side({{"dispatches", 73}}, {{"soft_max_f32", 4},
                                 {"contig_cpy_f32_f32", 4},
                                 {"mul_mat_vec_p021_f16_f322", 4},
                                 {"mul_mat_vec_f16_f32_f32", 33}}),
     "fusion_lost", "Fusion lost: xe_fa_decode_ph1 ran as one kernel 4 times a token; now "},
    {"sizes of blocks alone",
     side({{"dispatches", 90}}, {{"mul_mat_vec_f<__half, __half, 1, 32, false>", 4}}),
     side({{"dispatches", 90}}, {{"mul_mat_vec_f<__half, __half, 1, 128, false>", 4}}),
     "variant_changed", "Another kernel does the same work: mul_mat_vec_f, 4 times a token."},
};

TEST(FirstFinding, IsWhatMovedTheCounts) {
  for (const Case& test_case : k_cases) {
    SCOPED_TRACE(test_case.what);
    const auto why = explained(test_case.before, test_case.after);
    ASSERT_FALSE(why.findings.empty());
    EXPECT_EQ(why.findings.front().kind, test_case.kind);
    EXPECT_THAT(why.findings.front().headline, testing::StartsWith(test_case.headline));
  }
}

}  // namespace order_test
}  // namespace weir::explain
