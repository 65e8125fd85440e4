// Reads the capabilities of SPIR-V, which is not trusted.
#include <span>
#include <string_view>

#include "gate/base/find.hpp"

#include "tools/replay/vulkan/vulkan.hpp"

namespace weir::replay {
namespace {

// A range of SPIR-V's capabilities, and the extension or feature that a device must have for them.
// Capabilities of every Vulkan device and those that compute shaders cannot use are left out.
struct Need {
  std::uint32_t first, last;  // capabilities
  std::string_view what;
};
constexpr Need k_needs[] = {
    {9, 9, "shaderFloat16"},
    {10, 10, "shaderFloat64"},
    {11, 11, "shaderInt64"},
    {12, 12, "shaderBufferInt64Atomics"},
    {22, 22, "shaderInt16"},
    {39, 39, "shaderInt8"},
    {4174, 4174, "VK_ARM_tensors"},
    {4212, 4213, "VK_EXT_shader_float8"},
    {4428, 4430, "VK_KHR_workgroup_memory_explicit_layout"},
    {4433, 4433, "storageBuffer16BitAccess"},
    {4434, 4434, "uniformAndStorageBuffer16BitAccess"},
    {4435, 4435, "storagePushConstant16"},
    {4448, 4448, "storageBuffer8BitAccess"},
    {4449, 4449, "uniformAndStorageBuffer8BitAccess"},
    {4450, 4450, "storagePushConstant8"},
    {4472, 4472, "VK_KHR_ray_query"},
    {4473, 4473, "VK_KHR_shader_untyped_pointers"},
    {5055, 5055, "VK_KHR_shader_clock"},
    {5116, 5118, "VK_KHR_shader_bfloat16"},
    {5345, 5345, "vulkanMemoryModel"},
    {5346, 5346, "vulkanMemoryModelDeviceScope"},
    {5347, 5347, "bufferDeviceAddress"},
    {5357, 5357, "VK_NV_cooperative_matrix"},
    {5394, 5394, "VK_NV_cooperative_vector"},
    {5404, 5404, "VK_NV_shader_atomic_float16_vector"},
    {5430, 5434, "VK_NV_cooperative_matrix2"},
    {5435, 5435, "VK_NV_cooperative_vector"},
    {5439, 5439, "VK_NV_cooperative_matrix2"},
    {5612, 5616, "VK_EXT_shader_atomic_float2"},
    {5629, 5629, "VK_KHR_shader_expect_assume"},
    {6016, 6019, "VK_KHR_shader_integer_dot_product"},
    {6022, 6022, "VK_KHR_cooperative_matrix"},
    {6024, 6024, "VK_EXT_shader_replicated_composites"},
    {6026, 6026, "VK_KHR_shader_subgroup_rotate"},
    {6029, 6029, "VK_KHR_shader_float_controls2"},
    {6033, 6034, "VK_EXT_shader_atomic_float"},
    {6095, 6095, "VK_EXT_shader_atomic_float2"},
};

bool has(const Device& device, std::string_view what) {
  return what.starts_with("VK_") ? holds(device.extensions, what) : !holds(device.lacks, what);
}

using Words = std::span<const std::uint32_t>;

// Calls take(operation, operands) for each instruction after the header, until it returns false.
template <class Take>
void each_instruction(Words words, const Take& take) {
  constexpr std::size_t k_header = 5;
  for (words = words.subspan(std::min(k_header, words.size())); !words.empty();) {
    const std::size_t length = words.front() >> 16;
    if (length == 0 || length > words.size()) return;
    if (!take(words.front() & 0xffff, words.subspan(1, length - 1))) return;
    words = words.subspan(length);
  }
}

}  // namespace

// Fails if the code needs a capability that the device lacks. Some drivers would crash on it.
Result<void> check_capabilities(const Device& device, const std::vector<std::uint32_t>& words) {
  Result<void> result;
  each_instruction(words, [&](std::uint32_t operation, Words operands) {
    constexpr std::uint32_t k_capability = 17;  // they come first
    if (operation != k_capability || operands.empty()) return false;
    const auto* need = find_first(k_needs, [&](const Need& range) {
      return range.first <= operands[0] && operands[0] <= range.last;
    });
    if (need != nullptr && !has(device, need->what))
      result = left_out_error("needs {}", need->what);
    return result.has_value();
  });
  return result;
}

}  // namespace weir::replay
