// Names of kernels: works, parts, sizes and variants.
#include <gtest/gtest.h>

#include "gate/profile/kernel_name.hpp"

#include "tests/explain/planted.hpp"

namespace weir::explain {
namespace names_test {

using profile::kernel_name;
using profile::KernelName;

TEST(KernelName, IsWhatItComputesAndAVariant) {
  struct Case {
    const char* name;
    const char* base;
    const char* variant;
  };
  // Names used by llama.cpp's Vulkan, Metal and CUDA backends.
  const Case cases[] = {
      {"rms_norm_mul_f32", "rms_norm_mul", "f32"},
      {"mul_mat_vec_q4_k_f32_f32", "mul_mat_vec", "q4_k_f32_f32"},
      {"mul_mat_vec_p021_f16_f322", "mul_mat_vec", "p021_f16_f322"},
      {"matmul_f16_f32_f16acc_aligned_2", "matmul", "f16_f32_f16acc_aligned_2"},
      {"matmul_quant_f16_aligned_0", "matmul", "quant_f16_aligned_0"},
      {"flash_attn_f32_f16_aligned_cm1", "flash_attn", "f32_f16_aligned_cm1"},
      {"kernel_mul_mv_q4_K_f32", "mul_mv", "q4_k_f32"},
      {"kernel_flash_attn_ext_vec_f16_dk128_dv128", "flash_attn_ext_vec", "f16_dk128_dv128"},
      {"void mul_mat_vec_q<(ggml_type)12, 1>(void const*)", "mul_mat_vec_q", ""},
      {"ggml_cuda::rms_norm_f32<1024, false>", "rms_norm", "f32"},
      {"MUL_MAT", "mul_mat", ""},
      // Ops of ggml with types and shapes, as a probe counts them on the CPU.
      {"MUL_MAT f16,f32->f32 64x256x2,64x1x4->256x1x4", "mul_mat",
       "f16,f32->f32 64x256x2,64x1x4->256x1x4"},
      {"RMS_NORM_MUL RMS_NORM(256,1,1,1)", "rms_norm_mul", "RMS_NORM(256,1,1,1)"},
      {"fa_split_k_reduce", "fa_split_k_reduce", ""},
      {"f32_to_f16", "f32_to_f16", ""},
      {"xe_fa_decode_ph1", "xe_fa_decode_ph1", ""},
      // Names used by TensorFlow.js and ONNX Runtime.
      {"MatMulPackedProgram", "matmul_packed_program", ""},
      {"MatMulSmallOutputSizeProgram", "matmul", "small_output_size_program"},
      {"LayerNorm", "layer_norm", ""},
      {"f32", "f32", ""},
      {"", "", ""},
  };
  for (const Case& entry : cases) {
    EXPECT_EQ(kernel_name(entry.name).base(), entry.base) << entry.name;
    EXPECT_EQ(kernel_name(entry.name).variant, entry.variant) << entry.name;
  }
}

TEST(KernelName, TellsItsParts) {
  const auto parts = [](const char* joined, std::vector<const char*> names) {
    std::vector<KernelName> parsed;
    for (const char* name : names) parsed.push_back(kernel_name(name));
    return find_fused_parts(kernel_name(joined), parsed);
  };
  using Indices = std::vector<std::size_t>;
  EXPECT_EQ(parts("rms_norm_mul_f32", {"add_f32", "rms_norm_f32", "mul_f32_f32"}), (Indices{1, 2}));
  EXPECT_EQ(parts("mul_mat_vec_f16", {"mul_f32", "add_f32"}), Indices{}) << "mul alone is chance";
  EXPECT_EQ(parts("rms_norm_f32", {"rms_norm_f16", "mul_f32"}), Indices{}) << "itself is no part";
  EXPECT_EQ(parts("flash_attn_f32", {"soft_max_f32", "rope_f32"}), (Indices{0})) << "known";
  EXPECT_EQ(parts("swiglu_f32", {"rms_norm_mul_partials_f32", "silu_f32"}), Indices{})
      << "a norm is no part of it";
  EXPECT_EQ(parts("swiglu_f32", {"silu_f32", "mul_f32"}), (Indices{0, 1}));
  EXPECT_EQ(parts("GATE_UP_SWIGLU", {"MUL_MAT", "RMS_NORM", "SWIGLU"}), (Indices{0, 2}));
  EXPECT_EQ(
      parts("FLASH_ATTN_EXT f16->f32 64x4", {"SOFT_MAX f32->f32 256x1x4", "ADD f32,f32->f32 256",
                                             "MUL_MAT f16,f32->f32 64", "CONT f32->f32 256"}),
      (Indices{0, 2, 3}));
  EXPECT_EQ(parts("Gemm", {"MatMul", "Add"}), (Indices{0, 1}));
  EXPECT_EQ(parts("gemm", {"matmul"}), Indices{}) << "another kernel for the same";
  EXPECT_EQ(parts("XgemmDirectTN", {"Xgemm", "XgemmStridedBatched"}), Indices{}) << "also others";
  EXPECT_EQ(parts("flash_attn_tile", {"convert_unary<__half, float>", "cublasGemmEx", "soft_max"}),
            (Indices{0, 1, 2}))
      << "a conversion is a copy";
}

TEST(KernelName, SaysWhetherItsWorkIsLargeOrSmall) {
  using Size = KernelName::Size;
  struct Case {
    const char* name;
    Size size;
    bool product = false;
  };
  // Names used by llama.cpp, CLBlast, TensorFlow.js, cuBLAS and CUTLASS.
  const Case cases[] = {
      {"mul_mat_vec_q4_k_f32_f32", Size::large, true},
      {"MUL_MAT_ID", Size::large, true},
      {"MatMulPackedProgram", Size::large, true},
      {"XgemmDirectTN", Size::large, true},
      {"cublasSgemm_v2", Size::large, true},
      {"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16>(Params)", Size::large},
      {"flash_attn_ext_f16<64, 64, 16, 2>", Size::large},
      {"sdpa", Size::large},
      {"rms_norm_mul_f32", Size::small},
      {"geglu_f32_rte", Size::small},
      {"BinaryOpProgram", Size::small},
      {"rms_norm_mul_rope_set_rows_f32", Size::unknown},  // too long for the name of a part
      {"CopyPadMatrix", Size::small},                     // a copy, no matmul
      {"TransposeMatrix", Size::unknown},
      {"quantize_q8_1", Size::unknown},
      {"fa_split_k_reduce", Size::unknown},
      {"", Size::unknown},
  };
  for (const Case& entry : cases) {
    const KernelName name = kernel_name(entry.name);
    EXPECT_EQ(name.size, entry.size) << entry.name;
    EXPECT_EQ(is_matmul(name), entry.product) << entry.name;
  }
  EXPECT_TRUE(is_copy(kernel_name("contig_cpy_f32_f16")));
  EXPECT_FALSE(is_copy(kernel_name("cpy_mul_f32"))) << "and multiplies";
  EXPECT_TRUE(finishes_attention(kernel_name("fa_split_k_reduce")));
  EXPECT_FALSE(finishes_attention(kernel_name("split_k_reduce"))) << "of a product";
}

TEST(KernelName, WithoutItsTuningIsTheSameForOtherSizesAndSwitchesThatAreOff) {
  using profile::untuned_name;
  const std::string attention = "flash_attn_ext_f16<64, 64, 16, 2, false, false>";
  EXPECT_EQ(untuned_name(attention), "flash_attn_ext_f16");
  for (const char* same : {"flash_attn_ext_f16<64, 64, 32, 2, 4, 2, false, false, false>",
                           "flash_attn_ext_f16<>", "flash_attn_ext_f16_1"}) {
    EXPECT_EQ(untuned_name(same), untuned_name(attention)) << same;
  }
  for (const char* different :
       {"flash_attn_ext_f16<64, 64, 16, 2, true, false>", "flash_attn_ext_f32<64, 64, 16, 2>",
        "flash_attn_ext_f16<64, (ggml_type)1>", "flash_attn_ext_f16<64, float>"}) {
    EXPECT_NE(untuned_name(different), untuned_name(attention)) << different;
  }
  // Words in a file may have any characters.
  for (const char* spaced : {" q_4", "gs _4", " _4"}) EXPECT_NE(untuned_name(spaced), "") << spaced;
  EXPECT_EQ(untuned_name("matmul_f16_aligned_m"), untuned_name("matmul_f16_aligned_1"));
  EXPECT_NE(untuned_name("matmul_f16_aligned_m"), untuned_name("matmul_f16_aligned_l"));
  EXPECT_NE(untuned_name("dequant_q4_0"), untuned_name("dequant_q4_1"));
  EXPECT_NE(untuned_name("dequantize_gs_64_b_4"), untuned_name("dequantize_gs_64_b_8"));
  EXPECT_EQ(untuned_name(""), "");
  EXPECT_EQ(untuned_name("_1"), "_1") << "a name is left";
}

// Names of ggml-cuda, ggml-metal and CUTLASS.
TEST(KernelName, TellsWhetherMatrixCoresComputeWhereTheyDo) {
  for (const char* name :
       {"flash_attn_ext_f16<64, 64, 16, 2, false, false>", "mul_mat_f<__half2, 32, 4, 4, false>",
        "kernel_flash_attn_ext_f16_dk128_dv128", "cutlass_80_tensorop_f16_s16816gemm_f16"}) {
    EXPECT_EQ(profile::uses_matrix_cores(name), true) << name;
  }
  for (const char* name :
       {"flash_attn_tile<64, 64, 32, 2, false>", "flash_attn_ext_vec<64, 1, (ggml_type)1>",
        "kernel_flash_attn_ext_vec_f16_dk128_dv128", "mul_mat_vec_f<__half, float, 1, 128>",
        "cutlass_80_simt_sgemm_128x64_8x5_nn_align1"}) {
    EXPECT_EQ(profile::uses_matrix_cores(name), false) << name;
  }
  for (const char* name :
       {"mul_mat_q<(ggml_type)12, 64, false>", "hipblasGemmEx", "rms_norm_f32"}) {
    EXPECT_EQ(profile::uses_matrix_cores(name), std::nullopt) << name;
  }
}

TEST(KernelName, TakesAnyBytes) {
  test::Dice dice(3);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes;
    const auto length = dice.roll(40);
    for (std::int64_t k = 0; k < length; ++k) {
      constexpr std::string_view k_alphabet = "_f32 mul<(:)>\x80\xff\n-./qk0";
      const auto at =
          static_cast<std::size_t>(dice.roll(static_cast<std::int64_t>(k_alphabet.size())));
      bytes += dice.roll(4) == 0 ? static_cast<char>(dice.roll(256)) : k_alphabet[at];
    }
    const KernelName name = kernel_name(bytes);
    for (const std::string& word : name.words) EXPECT_FALSE(word.empty());
    EXPECT_TRUE(find_fused_parts(name, {name}).empty() || !name.words.empty());
  }
}

TEST(ModelFactsFromConfig, TakesAnyBytes) {
  const std::string good =
      R"({"model_type":"x","num_hidden_layers":4,"layer_types":["a","b","a","b"],"num_experts":8})";
  test::Dice dice(4);
  for (int i = 0; i < 10'000; ++i) {
    std::string text = good;
    for (std::int64_t k = dice.roll(6); k >= 0; --k) {
      text[static_cast<std::size_t>(dice.roll(static_cast<std::int64_t>(text.size())))] =
          static_cast<char>(dice.roll(256));
    }
    const auto facts = model_facts_from_config(text);
    if (!facts) continue;
    EXPECT_GE(facts->layers, 1);
    EXPECT_LE(facts->layers, k_max_layers);
    for (const LayerFamily& family : facts->families) {
      EXPECT_LT(family.layers.back(), facts->layers) << text;
    }
  }
}

}  // namespace names_test
}  // namespace weir::explain
