// The Vulkan kernels, built from the SPIR-V of shaders/.
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

Result<Kernel> make_kernel(VulkanDevice& device, std::string_view name) {
  const Shader* shader = find_named(k_shaders, name);
  if (shader == nullptr) return fail(Code::internal, "vulkan: there is no shader {}", name);
  return device.make_kernel(shader->name, shader->words);
}

}  // namespace

bool vulkan_multiplies(TensorType type) {
  return std::ranges::any_of(k_types, [&](const auto& entry) { return entry.first == type; });
}

const VulkanKernels::KernelsOfType& VulkanKernels::for_type(TensorType type) const {
  return *std::ranges::find(of_type, type, &KernelsOfType::type);
}

// Makes all kernels. Those that multiply by weights exist once for each type of weights.
Result<VulkanKernels> make_vulkan_kernels(VulkanDevice& device) {
  VulkanKernels kernels;
  for (const auto& [type, name] : k_types) {
    VulkanKernels::KernelsOfType of_type{type, {}, {}};
    WEIR_TRY(of_type.multiply, make_kernel(device, fmt::format("multiply_{}", name)));
    WEIR_TRY(of_type.gate_up, make_kernel(device, fmt::format("gate_up_{}", name)));
    kernels.of_type.push_back(of_type);
  }
  WEIR_TRY(kernels.rms_norm, make_kernel(device, "rms_norm"));
  WEIR_TRY(kernels.rotate, make_kernel(device, "rotate"));
  WEIR_TRY(kernels.attend, make_kernel(device, "attend"));
  WEIR_TRY(kernels.activate, make_kernel(device, "activate"));
  WEIR_TRY(kernels.choose, make_kernel(device, "choose"));
  WEIR_TRY(kernels.share, make_kernel(device, "share"));
  return kernels;
}

Result<void> use_serial_kernels(VulkanDevice& device, VulkanKernels& kernels) {
  for (VulkanKernels::KernelsOfType& of_type : kernels.of_type) {
    WEIR_TRY(of_type.multiply,
             make_kernel(device, fmt::format("{}_serial", of_type.multiply.name)));
  }
  return {};
}

}  // namespace weir::engine
