// Short names of kernels that are C++ templates.
#include "gate/probes/read/template_names.hpp"

#include <gtest/gtest.h>

#include "gate/probes/read/kernel_names.hpp"

namespace weir::probes {
namespace {

// Symbols of PyTorch 2.15's libtorch_cuda.so, but for the last ones.
TEST(TemplateNames, KeepTheFunctionItsWorkAndItsType) {
  struct Case {
    const char *name, *expected;
  };
  constexpr Case k_cases[] = {
      {"at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
       "std::array<char*, 3ul>, false>",
       "vectorized_elementwise_kernel<add, bf16>"},
      {"at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
       "at::native::BinaryFunctor<long, long, bool, at::native::CompareEqFunctor<long> > "
       ">(at::TensorIteratorBase&, at::native::BinaryFunctor<long, long, bool, "
       "at::native::CompareEqFunctor<long> > const&)::{lambda(int)#1}>",
       "elementwise_kernel<CompareEq, i64>"},
      {"at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool, "
       "at::native::func_wrapper_t<bool, "
       "at::native::and_kernel_cuda(at::TensorIterator&)::{lambda()#1}::operator()() "
       "const::{lambda()#12}::operator()() const::{lambda(bool, bool)#1}>, unsigned int, bool, 4, "
       "4> >",
       "reduce_kernel<and, bool>"},
      {"elementwise_kernel_with_index<int, at::native::arange_cuda_out(c10::Scalar const&, "
       "c10::Scalar const&, c10::Scalar const&, at::Tensor&)::{lambda()#1}::operator()() "
       "const::{lambda()#4}::operator()() const::{lambda(long)#1}>",
       "elementwise_kernel_with_index<i32>"},
      {"pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, "
       "false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 128, 128, 4, "
       "cutlass::bfloat16_t> >, false, false, true>",
       "flash_fwd_kernel<Flash_fwd_kernel_traits, false, false, true>"},
      {"softmax_warp_forward<float, float, float, 5, false, false, 32>",
       "softmax_warp_forward<f32>"},
      {"flash_attn_ext_f16<64, 64, 16, 4>", "flash_attn_ext_f16<64, 64, 16, 4>"},
      {"_gumbel_sample_kernel", "_gumbel_sample_kernel"},
      {"a<b", "a<b"},
      {"at::native::<", ""},
  };
  for (const auto& [name, expected] : k_cases) EXPECT_EQ(short_template_name(name), expected);
}

TEST(TemplateNames, AreMadeOfSymbols) {
  EXPECT_EQ(
      readable_kernel_name(
          "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_11FillFunctorIlEESt5arrayIPcLm"
          "1EELb0EEEviT0_T1_"),
      "vectorized_elementwise_kernel<Fill, i64>");
}

}  // namespace
}  // namespace weir::probes
