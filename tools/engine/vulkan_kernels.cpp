#include "tools/engine/vulkan_kernels.hpp"

#include <algorithm>

namespace weir::engine {
namespace {

using model::TensorType;

// SPIR-V as a C initialiser each: glslc -mfmt=c (CMakeLists.txt).
constexpr std::uint32_t k_multiply_f32[] =
#include "shaders/multiply_f32.inc"
    ;
constexpr std::uint32_t k_multiply_f16[] =
#include "shaders/multiply_f16.inc"
    ;
constexpr std::uint32_t k_multiply_q8_0[] =
#include "shaders/multiply_q8_0.inc"
    ;
constexpr std::uint32_t k_multiply_q4_0[] =
#include "shaders/multiply_q4_0.inc"
    ;
constexpr std::uint32_t k_gate_up_f32[] =
#include "shaders/gate_up_f32.inc"
    ;
constexpr std::uint32_t k_gate_up_f16[] =
#include "shaders/gate_up_f16.inc"
    ;
constexpr std::uint32_t k_gate_up_q8_0[] =
#include "shaders/gate_up_q8_0.inc"
    ;
constexpr std::uint32_t k_gate_up_q4_0[] =
#include "shaders/gate_up_q4_0.inc"
    ;
constexpr std::uint32_t k_multiply_f32_serial[] =
#include "shaders/multiply_f32_serial.inc"
    ;
constexpr std::uint32_t k_multiply_f16_serial[] =
#include "shaders/multiply_f16_serial.inc"
    ;
constexpr std::uint32_t k_multiply_q8_0_serial[] =
#include "shaders/multiply_q8_0_serial.inc"
    ;
constexpr std::uint32_t k_multiply_q4_0_serial[] =
#include "shaders/multiply_q4_0_serial.inc"
    ;
constexpr std::uint32_t k_rms_norm[] =
#include "shaders/rms_norm.inc"
    ;
constexpr std::uint32_t k_rotate[] =
#include "shaders/rotate.inc"
    ;
constexpr std::uint32_t k_attend[] =
#include "shaders/attend.inc"
    ;
constexpr std::uint32_t k_activate[] =
#include "shaders/activate.inc"
    ;
constexpr std::uint32_t k_choose[] =
#include "shaders/choose.inc"
    ;
constexpr std::uint32_t k_share[] =
#include "shaders/share.inc"
    ;

struct Source {
  TensorType type;
  const char *multiply_name, *gate_up_name, *serial_name;
  std::span<const std::uint32_t> multiply, gate_up, serial;
};
constexpr Source k_sources[] = {
    {TensorType::f32, "multiply_f32", "gate_up_f32", "multiply_f32_serial", k_multiply_f32,
     k_gate_up_f32, k_multiply_f32_serial},
    {TensorType::f16, "multiply_f16", "gate_up_f16", "multiply_f16_serial", k_multiply_f16,
     k_gate_up_f16, k_multiply_f16_serial},
    {TensorType::q8_0, "multiply_q8_0", "gate_up_q8_0", "multiply_q8_0_serial", k_multiply_q8_0,
     k_gate_up_q8_0, k_multiply_q8_0_serial},
    {TensorType::q4_0, "multiply_q4_0", "gate_up_q4_0", "multiply_q4_0_serial", k_multiply_q4_0,
     k_gate_up_q4_0, k_multiply_q4_0_serial},
};

}  // namespace

bool vulkan_multiplies(TensorType type) {
  return std::ranges::any_of(k_sources, [&](const Source& source) { return source.type == type; });
}

const VulkanKernels::OfType& VulkanKernels::of(TensorType type) const {
  return *std::ranges::find(of_type, type, &OfType::type);
}

Result<VulkanKernels> make_vulkan_kernels(VulkanDevice& device) {
  VulkanKernels kernels;
  for (const Source& source : k_sources) {
    VulkanKernels::OfType made{source.type, {}, {}};
    WEIR_TRY(made.multiply, device.make_kernel(source.multiply_name, source.multiply));
    WEIR_TRY(made.gate_up, device.make_kernel(source.gate_up_name, source.gate_up));
    kernels.of_type.push_back(made);
  }
  WEIR_TRY(kernels.rms_norm, device.make_kernel("rms_norm", k_rms_norm));
  WEIR_TRY(kernels.rotate, device.make_kernel("rotate", k_rotate));
  WEIR_TRY(kernels.attend, device.make_kernel("attend", k_attend));
  WEIR_TRY(kernels.activate, device.make_kernel("activate", k_activate));
  WEIR_TRY(kernels.choose, device.make_kernel("choose", k_choose));
  WEIR_TRY(kernels.share, device.make_kernel("share", k_share));
  return kernels;
}

Result<void> take_serial_kernels(VulkanDevice& device, VulkanKernels& kernels) {
  for (const Source& source : k_sources) {
    auto& of_type = *std::ranges::find(kernels.of_type, source.type, &VulkanKernels::OfType::type);
    WEIR_TRY(of_type.multiply, device.make_kernel(source.serial_name, source.serial));
  }
  return {};
}

}  // namespace weir::engine
