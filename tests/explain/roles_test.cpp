// Roles of names of kernels and ops.
#include <gtest/gtest.h>

#include "gate/profile/kernel_name.hpp"

#include "tests/explain/planted.hpp"

namespace weir::explain {
namespace roles_test {

using profile::parse_role;
using profile::Role;

TEST(Role, IsTheSameWhateverTheTypeTheBackendAndTheEngine) {
  struct Case {
    const char* work;
    std::vector<const char*> names;
  };
  // Names used by ggml's graph, llama.cpp's Vulkan, Metal and CUDA backends, Agave, MLX and
  // PyTorch.
  const Case cases[] = {
      {"MUL_MAT",
       {"MUL_MAT", "MUL_MAT_VEC", "mul_mat_vec_q4_0_f32_f32", "mul_mat_vec_q8_0_f32_f32",
        "kernel_mul_mv_q8_0_f32", "kernel_mul_mm_q4_K_f32", "matmul_q4_k_f32_aligned_l",
        "void mul_mat_vec_q<(ggml_type)12, 1>(void const*)", "gemv_ffn", "lm_head_gemv",
        "aten::addmm", "affine_qmv", "Xgemm", "cublasSgemm_v2", "Conv2DMatMul"}},
      {"MUL_MAT_ID", {"MUL_MAT_ID", "mul_mat_vec_id_q4_k_f32", "kernel_mul_mm_id_q8_0_f32"}},
      {"FLASH_ATTN_EXT",
       {"FLASH_ATTN_EXT", "flash_attn_f32_f16_aligned", "kernel_flash_attn_ext_vec_f16_dk128_dv128",
        "xe_fa_decode_ph1", "xe_fa_decode_ph2", "sdpa"}},
      {"RMS_NORM", {"RMS_NORM", "rms_norm_f32", "ggml_cuda::rms_norm_f32<1024, false>", "rmsNorm"}},
      {"NORM", {"NORM", "LayerNorm", "LayerNormalization"}},
      {"RMS_NORM_MUL", {"RMS_NORM_MUL", "rms_norm_mul_f32", "rms_norm_mul_partials_f32"}},
      {"ROPE", {"ROPE", "rope_norm_f32", "rope_neox_f32_f16", "kernel_rope_norm_f32", "rope"}},
      {"ROPE_VIEW_SET_ROWS", {"ROPE_VIEW_SET_ROWS"}},
      {"GLU", {"GLU", "swiglu_f32", "silu_mul"}},
      {"GET_ROWS", {"GET_ROWS", "get_rows_f32_f32", "kernel_get_rows_q8_0", "emb_lookup"}},
      {"CPY", {"CPY", "CONT", "contig_cpy_f32_f32", "cpy_f32_f16", "f32_to_f16"}},
      {"SOFT_MAX", {"SOFT_MAX", "softmax", "soft_max_f32_wg512"}},
  };
  for (const Case& entry : cases) {
    for (const char* name : entry.names) EXPECT_EQ(parse_role(name).work, entry.work) << name;
  }
}

TEST(Role, HasEachOpOfAFusedKernel) {
  const std::vector<std::string> norm_and_rope{"RMS_NORM", "MUL", "ROPE"};
  EXPECT_EQ(parse_role("rms_norm_mul_rope_f32_f16").works, norm_and_rope);
  EXPECT_EQ(parse_role("mul_mat_vec_id_q4_k_f32").works, std::vector<std::string>{"MUL_MAT_ID"});
  EXPECT_EQ(parse_role("quantize_q8_1_x4").works, std::vector<std::string>{});
}

TEST(Role, SaysWhatOfTheWorkANameMeans) {
  EXPECT_EQ(parse_role("gemv_ffn"), (Role{"MUL_MAT", "ffn", "", {"MUL_MAT"}}));
  EXPECT_EQ(parse_role("lm_head_gemv"), (Role{"MUL_MAT", "lm_head", "", {"MUL_MAT"}}));
  EXPECT_EQ(parse_role("mul_mat_vec_q4_0_f32"), (Role{"MUL_MAT", "vec", "q4_0_f32", {"MUL_MAT"}}));
}

TEST(Role, OfWorkThatWasTimedTogetherIsThatOfEach) {
  EXPECT_EQ(parse_role("rope_norm_f32, rope_norm_f32_f16, set_rows_f32_f16_i64 x 2").work,
            "ROPE+SET_ROWS");
  // Row as printed with GGML_VK_PERF_LOGGER_CONCURRENT=1.
  EXPECT_EQ(parse_role("MUL_MAT_VEC q8_0 m=64 n=1 k=256, RMS_NORM_MUL RMS_NORM(64,1,1,1)").work,
            "MUL_MAT+RMS_NORM_MUL");
  EXPECT_EQ(parse_role("SCALE, RMS_NORM_MUL RMS_NORM(64,1,1,1)").work, "SCALE+RMS_NORM_MUL");
  EXPECT_EQ(parse_role("FLASH_ATTN_EXT dst(64,4,1,1),  q(64,1,4,1)").work, "FLASH_ATTN_EXT");
  EXPECT_EQ(parse_role("void gemv<float, 4>(int, int)").work, "MUL_MAT") << "one name";
}

TEST(Role, IsANamesOwnWhereNothingIsKnownOfIt) {
  EXPECT_EQ(parse_role("topk_moe_f32"), (Role{"TOPK_MOE", "", "f32"}));
  EXPECT_EQ(parse_role("quantize_mul_x"), (Role{"QUANTIZE_MUL_X", "", ""})) << "no multiplication";
  EXPECT_EQ(parse_role(""), (Role{}));
}

TEST(Role, TakesAnyBytes) {
  test::Dice dice(5);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes;
    for (std::int64_t k = dice.roll(60); k > 0; --k) {
      const char* alphabet = "_f32 mul_mat<(:)>\x80\xffid-gemv_norm";
      bytes += dice.roll(6) == 0 ? static_cast<char>(dice.roll(256)) : alphabet[dice.roll(31)];
    }
    const Role role = parse_role(bytes);
    EXPECT_LE(role.work.size() + role.part.size(), 2000U) << "of 512 bytes at most";
  }
}

}  // namespace roles_test
}  // namespace weir::explain
