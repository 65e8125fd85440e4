// Makes the engine's view of a device from its description.
#include <algorithm>
#include <tuple>

#include "tests/e2e/llama_rules.hpp"

namespace weir::e2e {
namespace {

using Architecture = EngineView::Architecture;

// A description, asked as the engine asks a device: what it does not say is 0.
class DeviceFacts {
 public:
  explicit DeviceFacts(const probes::Twin& device) : device_(device) {}

  [[nodiscard]] bool has(const std::string& extension) const {
    return device_.extensions.contains(extension);
  }
  [[nodiscard]] std::uint64_t number(const std::string& of_struct, const std::string& field) const {
    const Json* value = device_.value(of_struct, field);
    if (value == nullptr) return 0;
    if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
    if (value->is_number()) return value->get<std::uint64_t>();
    return value->is_string() ? std::stoull(value->get<std::string>(), nullptr, 0) : 0;
  }
  [[nodiscard]] bool feature(const std::string& of_struct, const std::string& field) const {
    return number("VkPhysicalDevice" + of_struct, field) != 0;
  }
  [[nodiscard]] std::string word(const std::string& of_struct, const std::string& field) const {
    const Json* value = device_.value(of_struct, field);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  [[nodiscard]] bool flag(const std::string& of_struct, const std::string& field,
                          const std::string& name) const {
    const Json* value = device_.value(of_struct, field);
    return value != nullptr && value->is_array() &&
           std::find(value->begin(), value->end(), Json(name)) != value->end();
  }

 private:
  const probes::Twin& device_;
};

constexpr const char* k_device = "VkPhysicalDeviceProperties";
constexpr const char* k_subgroups = "VkPhysicalDeviceSubgroupProperties";
constexpr const char* k_sizes = "VkPhysicalDeviceSubgroupSizeControlProperties";
constexpr const char* k_dots = "VkPhysicalDeviceShaderIntegerDotProductProperties";

// get_device_architecture.
Architecture find_architecture(const DeviceFacts& facts, std::uint32_t vendor) {
  const bool sizes = facts.has("VK_EXT_subgroup_size_control");
  const bool dots = facts.has("VK_KHR_shader_integer_dot_product");
  const std::uint64_t least = facts.number(k_sizes, "minSubgroupSize");
  const std::uint64_t most = facts.number(k_sizes, "maxSubgroupSize");
  if (vendor == k_amd && sizes && dots && facts.has("VK_AMD_shader_core_properties")) {
    if (most == 64 && least == 64) return Architecture::gcn;
    if (most != 64 || least != 32) return Architecture::other;
    if (facts.number("VkPhysicalDeviceShaderCorePropertiesAMD", "wavefrontsPerSimd") == 20) {
      return Architecture::rdna1;
    }
    const char* mixed = "integerDotProduct4x8BitPackedMixedSignednessAccelerated";
    return facts.number(k_dots, mixed) != 0 ? Architecture::rdna3 : Architecture::rdna2;
  }
  if (vendor == k_intel && sizes && dots) {
    if (least == 16) return Architecture::xe2;
    if (least == 8 && facts.number(k_dots, "integerDotProduct4x8BitPackedSignedAccelerated") != 0) {
      return Architecture::xe1;
    }
  }
  if (vendor == k_nvidia) {
    if (!facts.has("VK_KHR_cooperative_matrix")) return Architecture::pre_turing;
    if (facts.has("VK_NV_shader_sm_builtins") &&
        facts.number("VkPhysicalDeviceShaderSMBuiltinsPropertiesNV", "shaderWarpsPerSM") == 32) {
      return Architecture::turing;
    }
  }
  return Architecture::other;
}

// ggml_vk_khr_cooperative_matrix_support: where it wants them at all.
bool wants_coopmat(const DeviceFacts& facts, const EngineView& view) {
  const std::string driver = facts.word("VkPhysicalDeviceDriverProperties", "driverID");
  if (view.vendor == k_intel) {
    return view.architecture == Architecture::xe2 ||
           (view.architecture == Architecture::xe1 && view.uma &&
            driver == "VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS");
  }
  if (view.vendor == k_amd &&
      (driver == "VK_DRIVER_ID_AMD_PROPRIETARY" || driver == "VK_DRIVER_ID_AMD_OPEN_SOURCE")) {
    return view.architecture == Architecture::rdna3;
  }
  return true;
}

// ggml_vk_get_device, "Query supported shapes": the first shape with 16-bit factors is the one for
// matrices; flash attention wants 16x16x16, here always with a 32-bit accumulator, since llama.cpp
// asks for that precision.
void look_at_shapes(const probes::Twin& device, EngineView& view) {
  std::tuple<int, int, int> used{};
  bool f32acc = false, f16acc = false, flash = false;
  for (const Json& shape : device.cooperative_matrices) {
    const auto has_value = [&](const char* field, const char* value) {
      return shape[field] == value;
    };
    const std::string f16 = "VK_COMPONENT_TYPE_FLOAT16_KHR", f32 = "VK_COMPONENT_TYPE_FLOAT32_KHR";
    if (!has_value("AType", f16.c_str()) || !has_value("BType", f16.c_str())) continue;
    if (!has_value("scope", "VK_SCOPE_SUBGROUP_KHR") || shape["CType"] != shape["ResultType"])
      continue;
    if (shape["CType"] != f16 && shape["CType"] != f32) continue;
    const std::tuple<int, int, int> size{shape["MSize"], shape["NSize"], shape["KSize"]};
    if (used == std::tuple<int, int, int>{}) used = size;
    bool& accumulator = shape["CType"] == f32 ? f32acc : f16acc;
    accumulator = accumulator || size == used;
    flash = flash || (shape["CType"] == f32 && size == std::tuple{16, 16, 16});
  }
  view.coopmat = view.coopmat && f32acc;
  view.coopmat_f16acc = view.coopmat && f16acc;
  view.coopmat_flash = view.coopmat && flash;
}

// ggml_vk_get_device, coopmat2_support: all features that its shaders use, and flexible dimensions
// for workgroups of 128 and of 256 with both accumulators.
bool has_coopmat2(const probes::Twin& device, const DeviceFacts& facts) {
  const std::string features = "CooperativeMatrix2FeaturesNV";
  for (const char* feature : {"WorkgroupScope", "FlexibleDimensions", "Reductions", "Conversions",
                              "PerElementOperations", "TensorAddressing", "BlockLoads"}) {
    if (!facts.feature(features, std::string("cooperativeMatrix") + feature)) return false;
  }
  std::set<std::pair<int, std::string>> matrices;
  for (const Json& matrix : device.flexible_matrices) {
    const int threads = matrix["workgroupInvocations"];
    if (matrix["AType"] != "VK_COMPONENT_TYPE_FLOAT16_KHR" || matrix["AType"] != matrix["BType"] ||
        matrix["CType"] != matrix["ResultType"] || matrix["scope"] != "VK_SCOPE_WORKGROUP_KHR" ||
        matrix["MGranularity"] > 32 || matrix["NGranularity"] > (threads == 128 ? 16 : 32) ||
        matrix["KGranularity"] > 16) {
      continue;
    }
    matrices.emplace(threads, matrix["CType"]);
  }
  for (const int threads : {128, 256}) {
    for (const char* type : {"VK_COMPONENT_TYPE_FLOAT16_KHR", "VK_COMPONENT_TYPE_FLOAT32_KHR"}) {
      if (!matrices.contains({threads, type})) return false;
    }
  }
  return facts.feature("BufferDeviceAddressFeatures", "bufferDeviceAddress") &&
         facts.number("VkPhysicalDeviceCooperativeMatrix2PropertiesNV",
                      "cooperativeMatrixFlexibleDimensionsMaxDimension") >= 512;
}

// ggml_vk_get_device, shader_core_count, and ggml_vk_intel_shader_core_count, of which only the
// cards that come with weir are repeated here.
std::uint32_t count_cores(const DeviceFacts& facts, std::uint32_t vendor) {
  if (facts.has("VK_NV_shader_sm_builtins")) {
    return static_cast<std::uint32_t>(
        facts.number("VkPhysicalDeviceShaderSMBuiltinsPropertiesNV", "shaderSMCount"));
  }
  if (facts.has("VK_AMD_shader_core_properties2")) {
    return static_cast<std::uint32_t>(
        facts.number("VkPhysicalDeviceShaderCoreProperties2AMD", "activeComputeUnitCount"));
  }
  if (vendor != k_intel) return 0;
  const std::uint64_t device = facts.number(k_device, "deviceID");
  if (device == 0x56a0) return 32;
  return device == 0xe20b ? 20 : 0;
}

}  // namespace

EngineView engine_view(const probes::Twin& device, const std::set<std::string>& switched_off) {
  const DeviceFacts facts(device);
  const auto is_enabled = [&](const char* variable) { return !switched_off.contains(variable); };
  EngineView view;
  view.vendor = static_cast<std::uint32_t>(facts.number(k_device, "vendorID"));
  view.architecture = find_architecture(facts, view.vendor);
  view.uma = facts.word(k_device, "deviceType") == "VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU";
  view.fp16 = is_enabled("GGML_VK_DISABLE_F16") && facts.has("VK_KHR_16bit_storage") &&
              facts.has("VK_KHR_shader_float16_int8") &&
              facts.feature("ShaderFloat16Int8Features", "shaderFloat16");
  view.integer_dot = is_enabled("GGML_VK_DISABLE_INTEGER_DOT_PRODUCT") &&
                     facts.has("VK_KHR_shader_integer_dot_product") &&
                     facts.number(k_dots, "integerDotProduct4x8BitPackedSignedAccelerated") != 0;
  view.coopmat = is_enabled("GGML_VK_DISABLE_COOPMAT") && facts.has("VK_KHR_cooperative_matrix") &&
                 wants_coopmat(facts, view) &&
                 facts.feature("CooperativeMatrixFeaturesKHR", "cooperativeMatrix");
  look_at_shapes(device, view);
  view.coopmat_flash =
      view.coopmat_flash && facts.feature("SubgroupSizeControlFeatures", "computeFullSubgroups");
  view.coopmat2 = is_enabled("GGML_VK_DISABLE_COOPMAT2") &&
                  facts.has("VK_NV_cooperative_matrix2") && has_coopmat2(device, facts);
  const bool compute = facts.flag(k_subgroups, "supportedStages", "VK_SHADER_STAGE_COMPUTE_BIT");
  view.subgroup_arithmetic = compute && facts.flag(k_subgroups, "supportedOperations",
                                                   "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT");
  view.shared_memory =
      static_cast<std::uint32_t>(facts.number(k_device, "limits.maxComputeSharedMemorySize"));
  view.cores = count_cores(facts, view.vendor);
  return view;
}

}  // namespace weir::e2e
