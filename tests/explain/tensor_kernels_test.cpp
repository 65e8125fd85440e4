// Tests findings by the names of PyTorch's and vLLM's kernels, as transformers and vLLM ran them.
#include <gmock/gmock.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace tensor_kernels_test {

using testing::HasSubstr;

Finding first_finding(const test::Counts& before, const test::Counts& after,
                      std::int64_t more_copies = 0) {
  const auto sum = [](const test::Counts& counts) {
    Rational total;
    for (const auto& [name, count] : counts) total = total.plus(count).value();
    return total;
  };
  const auto side = [&](const test::Counts& counts, std::int64_t copies) {
    return test::side({{"dispatches", sum(counts)}, {"copies", copies}, {"syncs", 1}}, counts);
  };
  Evidence evidence = test::evidence(side(before, 3), side(after, 3 + more_copies));
  evidence.device = "cuda";
  const Explanation explanation = explain(evidence, nullptr, {default_bands(), {}});
  return explanation.findings.empty() ? Finding() : explanation.findings.front();
}

// Attention of transformers on an RTX 4090 twin, "sdpa" before and "eager" after; what ran as often
// is left out.
TEST(TensorKernels, OfAttentionThatIsNoLongerFusedAreAMathFallback) {
  const Finding finding = first_finding(
      {{"elementwise_kernel_with_index<i32>", 1},
       {"flash_fwd_kernel<Flash_fwd_kernel_traits, false, false, false, false, false, true>", 2},
       {"vectorized_elementwise_kernel<Mul, bf16>", 7},
       {"vectorized_elementwise_kernel<converting_copy, bf16>", 6},
       {"vectorized_elementwise_kernel<converting_copy, f32>", 7}},
      {{"cublasGemmStridedBatchedEx", 4},
       {"elementwise_kernel<Compare, i64>", 1},
       {"elementwise_kernel<add, bf16>", 2},
       {"elementwise_kernel<direct_copy, bf16>", 4},
       {"elementwise_kernel<where, bool>", 1},
       {"elementwise_kernel_with_index<i32>", 5},
       {"softmax_warp_forward<f32>", 2},
       {"vectorized_elementwise_kernel<Fill, bf16>", 1},
       {"vectorized_elementwise_kernel<Mul, bf16>", 9},
       {"vectorized_elementwise_kernel<converting_copy, bf16>", 8},
       {"vectorized_elementwise_kernel<converting_copy, f32>", 9}},
      /*more_copies=*/1);
  EXPECT_EQ(finding.kind, "attention_unfused");
  EXPECT_THAT(finding.headline, HasSubstr("Math fallback: attention runs without a fused kernel"));
  EXPECT_THAT(finding.headline, HasSubstr("flash_fwd"));
}

// Llama of transformers 4.53.1 and 4.55.0 on an RTX 2080 Ti twin, whose fused kernels take no
// grouped queries. Steps of all kinds are new, and the CPU did none of them.
TEST(TensorKernels, OfAttentionThatFallsBackDoNotComeFromTheCpu) {
  const Finding finding = first_finding({{"elementwise_kernel<direct_copy, f16>", 4},
                                         {"fmha_cutlassF_f16_aligned_64x64_rf_sm75", 2},
                                         {"cublasGemmEx", 15},
                                         {"unrolled_elementwise_kernel<direct_copy, f32>", 6},
                                         {"vectorized_elementwise_kernel<Mul, f32>", 2},
                                         {"vectorized_elementwise_kernel<float16_copy, f32>", 7}},
                                        {{"cublasSgemmStridedBatched", 4},
                                         {"elementwise_kernel<direct_copy, f32>", 4},
                                         {"elementwise_kernel<where, bool>", 2},
                                         {"cublasGemmEx", 15},
                                         {"reduce_kernel<and, bool>", 2},
                                         {"softmax_warp_forward<f32>", 2},
                                         {"unrolled_elementwise_kernel<direct_copy, f32>", 12},
                                         {"vectorized_elementwise_kernel<Fill, f32>", 2},
                                         {"vectorized_elementwise_kernel<Mul, f32>", 6},
                                         {"vectorized_elementwise_kernel<float16_copy, f32>", 11},
                                         {"vectorized_elementwise_kernel<isneginf, f32>", 2}});
  EXPECT_EQ(finding.kind, "attention_unfused");
}

// Conv3d of torch 2.8.0 and 2.9.0: cuDNN is not asked for bf16 any more.
TEST(TensorKernels, OfAnUnrolledImageAreAConvolution) {
  const Finding finding =
      first_finding({{"cudnnBackendExecute", 1}, {"elementwise_kernel<add, bf16>", 1}},
                    {{"cublasGemmEx", 4}, {"vol2col_kernel<bf16>", 4}},
                    /*more_copies=*/128);
  EXPECT_EQ(finding.kind, "convolution_unfused");
  EXPECT_THAT(finding.headline, HasSubstr("where cudnn_backend_execute ran once a token"));
}

// Attention by formula in torch 2.4.1 and 2.6.0: half types are computed in float32.
TEST(TensorKernels, OfAWiderTypeAreNamedAsThat) {
  const Finding finding = first_finding({{"cublasGemmStridedBatchedEx", 2},
                                         {"softmax_warp_forward<f16>", 1},
                                         {"vectorized_elementwise_kernel<Mul, f16>", 2}},
                                        {{"cublasSgemmStridedBatched", 2},
                                         {"elementwise_kernel<where, bool>", 1},
                                         {"reduce_kernel<and, bool>", 1},
                                         {"softmax_warp_forward<f32>", 1},
                                         {"unrolled_elementwise_kernel<direct_copy, f32>", 3},
                                         {"vectorized_elementwise_kernel<Mul, f32>", 2},
                                         {"vectorized_elementwise_kernel<float16_copy, f32>", 2}});
  EXPECT_EQ(finding.kind, "wider_type");
  EXPECT_EQ(
      finding.headline,
      "Work is computed in a wider type: vectorized_elementwise_kernel<Mul, f32> where it was "
      "vectorized_elementwise_kernel<Mul, f16>.");
}

// Between transformers 4.53.0 and 4.53.1: GPTNeoX built its mask in each forward.
TEST(TensorKernels, OfAMaskAreNamedAsOne) {
  const Finding finding = first_finding({{"vectorized_elementwise_kernel<add, bf16>", 8}},
                                        {{"vectorized_elementwise_kernel<add, bf16>", 8},
                                         {"tensor_kernel_scan_innermost_dim<i64, plus>", 1},
                                         {"elementwise_kernel<where, bf16>", 2},
                                         {"vectorized_elementwise_kernel<CompareEq, i64>", 1}});
  EXPECT_EQ(finding.kind, "mask_built");
  EXPECT_EQ(finding.headline, "A mask is built each token: elementwise_kernel<where, bf16>.");
}

TEST(TensorKernels, OfANormThatIsComputedByStepsAreThatNorm) {
  const Finding finding =
      first_finding({{"fused_add_rms_norm_kernel<bf16, 8, true>", 4}},
                    {{"vectorized_elementwise_kernel<add, bf16>", 4},
                     {"vectorized_elementwise_kernel<pow_tensor_scalar, f32>", 4},
                     {"reduce_kernel<Mean, f32>", 4},
                     {"vectorized_elementwise_kernel<rsqrt, f32>", 4},
                     {"elementwise_kernel<Mul, f32>", 4}});
  EXPECT_EQ(finding.kind, "norm_unfused");
  EXPECT_THAT(finding.headline, HasSubstr("A norm is no longer fused"));
}

TEST(TensorKernels, OfOtherTypesAloneAreConversions) {
  const test::Counts before = {{"vectorized_elementwise_kernel<converting_copy, f32>", 7}};
  const Finding finding =
      first_finding(before, {{"vectorized_elementwise_kernel<converting_copy, f32>", 9},
                             {"vectorized_elementwise_kernel<converting_copy, bf16>", 2}});
  EXPECT_EQ(finding.kind, "conversion_added");
  EXPECT_THAT(finding.headline, HasSubstr("Values are converted to another type, 4 times a token"));
  EXPECT_NE(first_finding(before, {{"vectorized_elementwise_kernel<converting_copy, f32>", 8},
                                   {"elementwise_kernel<sin, f32>", 1}})
                .kind,
            "conversion_added");
}

}  // namespace tensor_kernels_test
}  // namespace weir::explain
