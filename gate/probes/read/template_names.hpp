// Shortens the names of kernels that are C++ templates: PyTorch's have up to 900 characters, most of
// which say how their arguments are passed. Pure.
#pragma once

#include <string>
#include <string_view>

namespace weir::probes {

// Keeps a function, what it computes and its types:
// "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, …>" ->
// "vectorized_elementwise_kernel<add, bf16>". Of other long names it drops scopes, and arguments of
// arguments. A name of at most 100 characters that is none of ATen's stays.
[[nodiscard]] std::string short_template_name(std::string_view name);

}  // namespace weir::probes
