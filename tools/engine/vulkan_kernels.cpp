#include "tools/engine/vulkan_kernels.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "gate/base/find.hpp"

namespace weir::engine {
namespace {

using model::TensorType;

struct Shader {
  const char* name;
  std::span<const std::uint32_t> words;  // SPIR-V
};
#include "shaders/all.inc"  // k_shaders (CMakeLists.txt)

// The types that have kernels of their own, and what their names end in.
constexpr std::pair<TensorType, std::string_view> k_types[] = {{TensorType::f32, "f32"},
                                                               {TensorType::f16, "f16"},
                                                               {TensorType::q8_0, "q8_0"},
                                                               {TensorType::q4_0, "q4_0"}};

Result<Kernel> make(VulkanDevice& device, std::string_view name) {
  const Shader* shader = find_named(k_shaders, name);
  if (shader == nullptr) return fail(Code::internal, "vulkan: there is no shader {}", name);
  return device.make_kernel(shader->name, shader->words);
}

}  // namespace

bool vulkan_multiplies(TensorType type) {
  return std::ranges::any_of(k_types, [&](const auto& one) { return one.first == type; });
}

const VulkanKernels::OfType& VulkanKernels::of(TensorType type) const {
  return *std::ranges::find(of_type, type, &OfType::type);
}

Result<VulkanKernels> make_vulkan_kernels(VulkanDevice& device) {
  VulkanKernels kernels;
  for (const auto& [type, name] : k_types) {
    VulkanKernels::OfType made{type, {}, {}};
    WEIR_TRY(made.multiply, make(device, fmt::format("multiply_{}", name)));
    WEIR_TRY(made.gate_up, make(device, fmt::format("gate_up_{}", name)));
    kernels.of_type.push_back(made);
  }
  WEIR_TRY(kernels.rms_norm, make(device, "rms_norm"));
  WEIR_TRY(kernels.rotate, make(device, "rotate"));
  WEIR_TRY(kernels.attend, make(device, "attend"));
  WEIR_TRY(kernels.activate, make(device, "activate"));
  WEIR_TRY(kernels.choose, make(device, "choose"));
  WEIR_TRY(kernels.share, make(device, "share"));
  return kernels;
}

Result<void> take_serial_kernels(VulkanDevice& device, VulkanKernels& kernels) {
  for (VulkanKernels::OfType& one : kernels.of_type) {
    WEIR_TRY(one.multiply, make(device, fmt::format("{}_serial", one.multiply.name)));
  }
  return {};
}

}  // namespace weir::engine
