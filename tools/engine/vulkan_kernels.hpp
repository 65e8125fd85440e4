// The shaders in shaders/, compiled by glslc when this is built, as kernels of a device.
#pragma once

#include "gate/model/tensor_type.hpp"

#include "tools/engine/vulkan_device.hpp"

namespace weir::engine {

struct VulkanKernels {
  struct KernelsOfType {
    model::TensorType type;
    Kernel multiply, gate_up;
  };
  std::vector<KernelsOfType> of_type;
  Kernel rms_norm, rotate, attend, activate, choose, share;

  // REQUIRES: vulkan_multiplies(type).
  [[nodiscard]] const KernelsOfType& for_type(model::TensorType type) const;
};

[[nodiscard]] bool vulkan_multiplies(model::TensorType type);
[[nodiscard]] Result<VulkanKernels> make_vulkan_kernels(VulkanDevice& device);
// A planted fault: products by one thread a row, "multiply_f16_serial", with the same results.
[[nodiscard]] Result<void> use_serial_kernels(VulkanDevice& device, VulkanKernels& kernels);

}  // namespace weir::engine
