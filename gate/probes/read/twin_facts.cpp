#include "gate/probes/read/twin_facts.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/twin_values.hpp"

namespace weir::probes {
namespace {

constexpr const char* k_device = "VkPhysicalDeviceProperties";
constexpr const char* k_properties_11 = "VkPhysicalDeviceVulkan11Properties";
constexpr const char* k_properties_12 = "VkPhysicalDeviceVulkan12Properties";
constexpr const char* k_properties_13 = "VkPhysicalDeviceVulkan13Properties";
constexpr const char* k_features_11 = "VkPhysicalDeviceVulkan11Features";
constexpr const char* k_features_12 = "VkPhysicalDeviceVulkan12Features";

std::uint64_t number(const Json& value) { return whole_number(value).value_or(0); }

std::string word(const Json& value) {
  return value.is_string() ? text::printable(value.get_ref<const std::string&>()) : std::string();
}

// A field as Twin::value() has it; null where it is not described.
const Json& value_in(const Twin& twin, const char* of_struct, const std::string& field) {
  static const Json k_nothing;
  const Json* found = twin.value(of_struct, field);
  return found == nullptr ? k_nothing : *found;
}

std::string version_words(const Twin& twin) {
  const std::uint64_t version = number(value_in(twin, k_device, "apiVersion"));
  return fmt::format("{}.{}.{}", version >> 22 & 0x7f, version >> 12 & 0x3ff, version & 0xfff);
}

// "mesa-radv" of "VK_DRIVER_ID_MESA_RADV".
std::string short_name(std::string name, std::string_view prefix) {
  if (name.starts_with(prefix)) name = name.substr(prefix.size());
  for (const std::string_view end : {"_BIT", "_KHR", "_NV", "_EXT"}) {
    if (name.size() > end.size() && name.ends_with(end)) name.erase(name.size() - end.size());
  }
  std::ranges::replace(name, '_', '-');
  return text::lower(name);
}

std::string size_words(const Json& size) {
  const auto bytes = whole_number(size);
  if (!bytes) return "not described";
  constexpr std::uint64_t k_kib = 1024, k_mib = k_kib << 10, k_one_gib = k_mib << 10;
  if (*bytes < k_kib) return fmt::format("{} bytes", *bytes);
  if (*bytes < k_mib) return fmt::format("{:.4g} KiB", static_cast<double>(*bytes) / k_kib);
  if (*bytes < k_one_gib) return fmt::format("{:.4g} MiB", static_cast<double>(*bytes) / k_mib);
  return fmt::format("{:.4g} GiB", static_cast<double>(*bytes) / k_one_gib);
}

std::string flag_words(const Json& flags, std::string_view prefix) {
  std::vector<std::string> out;
  if (flags.is_array()) {
    for (const Json& flag : flags) {
      if (flag.is_string()) out.push_back(short_name(word(flag), prefix));
    }
  }
  return out.empty() ? "nothing" : text::join(out, " ");
}

class Facts {
 public:
  explicit Facts(const Twin& twin) : twin_(twin) {}

  std::vector<std::pair<std::string, std::string>> collect() {
    identity();
    groups();
    sizes();
    types();
    matrices();
    cores();
    memory();
    queues();
    add("extensions", fmt::format("{}", twin_.extensions.size()));
    return std::move(out_);
  }

 private:
  void add(const char* subject, std::string what) { out_.emplace_back(subject, std::move(what)); }
  [[nodiscard]] const Json& value(const char* of_struct, const std::string& field) const {
    return value_in(twin_, of_struct, field);
  }
  [[nodiscard]] const Json& limit(const char* name) const {
    return value(k_device, std::string("limits.") + name);
  }
  [[nodiscard]] bool yes(const char* of_struct, const char* field) const {
    return value(of_struct, field) == Json(true);
  }
  [[nodiscard]] bool has(const char* extension) const {
    return twin_.extensions.contains(extension);
  }

  void identity() {
    add("device",
        fmt::format("{} ({})", word(value(k_device, "deviceName")),
                    short_name(word(value(k_device, "deviceType")), "VK_PHYSICAL_DEVICE_TYPE_")));
    add("ids", fmt::format("vendor {:#06x}, device {:#06x}", number(value(k_device, "vendorID")),
                           number(value(k_device, "deviceID"))));
    add("driver", fmt::format("{} ({}), {}", word(value(k_properties_12, "driverName")),
                              short_name(word(value(k_properties_12, "driverID")), "VK_DRIVER_ID_"),
                              word(value(k_properties_12, "driverInfo"))));
    add("Vulkan", version_words(twin_));
  }

  void groups() {
    const auto size = whole_number(value(k_properties_11, "subgroupSize"));
    const auto least = whole_number(value(k_properties_13, "minSubgroupSize"));
    const auto most = whole_number(value(k_properties_13, "maxSubgroupSize"));
    std::string words = size ? fmt::format("{}", *size) : "not described";
    if (least && most && *least != *most)
      words += fmt::format(", from {} to {} on request", *least, *most);
    add("subgroup size", words);
    add("subgroup ops",
        flag_words(value(k_properties_11, "subgroupSupportedOperations"), "VK_SUBGROUP_FEATURE_"));
    add("workgroup",
        fmt::format("{} invocations at most", number(limit("maxComputeWorkGroupInvocations"))));
  }

  void sizes() {
    add("shared memory", size_words(limit("maxComputeSharedMemorySize")));
    add("push constants", size_words(limit("maxPushConstantsSize")));
    add("storage buffer", size_words(limit("maxStorageBufferRange")) + " at most");
    add("allocation", size_words(value(k_properties_11, "maxMemoryAllocationSize")) + " at most");
  }

  void types() {
    std::vector<std::string> can;
    if (yes(k_features_12, "shaderFloat16")) can.emplace_back("float16");
    if (yes("VkPhysicalDeviceShaderBfloat16FeaturesKHR", "shaderBFloat16Type"))
      can.emplace_back("bfloat16");
    if (yes("VkPhysicalDeviceShaderFloat8FeaturesEXT", "shaderFloat8")) can.emplace_back("float8");
    if (yes("VkPhysicalDeviceFeatures", "shaderFloat64")) can.emplace_back("float64");
    if (yes(k_features_12, "shaderInt8")) can.emplace_back("int8");
    if (yes("VkPhysicalDeviceFeatures", "shaderInt16")) can.emplace_back("int16");
    if (yes("VkPhysicalDeviceFeatures", "shaderInt64")) can.emplace_back("int64");
    add("computes with", "float32 int32 " + text::join(can, " "));
    std::vector<std::string> stores;
    if (yes(k_features_12, "storageBuffer8BitAccess")) stores.emplace_back("8-bit");
    if (yes(k_features_11, "storageBuffer16BitAccess")) stores.emplace_back("16-bit");
    add("stores", stores.empty() ? "32-bit alone" : text::join(stores, " "));
    const bool dot = has("VK_KHR_shader_integer_dot_product") &&
                     yes(k_properties_13, "integerDotProduct4x8BitPackedSignedAccelerated");
    add("integer dot", dot ? "accelerated (4x8 bit packed)" : "not accelerated");
  }

  void matrices() {
    std::map<std::string, std::size_t> shapes;
    std::vector<std::string> order;
    for (const Json& one : twin_.cooperative_matrices) {
      const auto type = [&](const char* field) {
        return short_name(word(below(one, field)), "VK_COMPONENT_TYPE_");
      };
      const std::string words = fmt::format(
          "{}x{}x{} {}\u2192{}", number(below(one, "MSize")), number(below(one, "NSize")),
          number(below(one, "KSize")), type("AType"), type("ResultType"));
      if (shapes[words]++ == 0) order.push_back(words);
    }
    add("matrix cores", order.empty() ? "none" : text::join(order));
    if (!twin_.flexible_matrices.empty()) {
      add("flexible matrices",
          fmt::format("{} (VK_NV_cooperative_matrix2{})", twin_.flexible_matrices.size(),
                      has("VK_NV_cooperative_matrix2") ? "" : " is not offered"));
    }
  }

  void cores() {
    const auto of_struct = [&](const char* name, const char* field) {
      return number(value(name, field));
    };
    constexpr const char* k_nv = "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV";
    constexpr const char* k_amd = "VkPhysicalDeviceShaderCoreProperties2AMD";
    constexpr const char* k_arm = "VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM";
    if (const std::uint64_t sms = of_struct(k_nv, "shaderSMCount"); sms > 0) {
      add("cores",
          fmt::format("{} multiprocessors of {} warps", sms, of_struct(k_nv, "shaderWarpsPerSM")));
    } else if (const std::uint64_t units = of_struct(k_amd, "activeComputeUnitCount"); units > 0) {
      add("cores",
          fmt::format("{} compute units, {} wavefronts a SIMD", units,
                      of_struct("VkPhysicalDeviceShaderCorePropertiesAMD", "wavefrontsPerSimd")));
    } else if (const std::uint64_t cores = of_struct(k_arm, "shaderCoreCount"); cores > 0) {
      add("cores", fmt::format("{} shader cores of {} warps", cores,
                               of_struct(k_arm, "shaderWarpsPerCore")));
    }
  }

  void memory() {
    const Json& heaps = list_in(twin_.memory, "memoryHeaps");
    for (std::size_t i = 0; i < heaps.size(); ++i) {
      std::vector<std::string> kinds;
      for (const Json& type : list_in(twin_.memory, "memoryTypes")) {
        if (number(below(type, "heapIndex")) == i)
          kinds.push_back(flag_words(below(type, "propertyFlags"), "VK_MEMORY_PROPERTY_"));
      }
      add(i == 0 ? "memory" : "",
          fmt::format("{}: {}", size_words(below(heaps[i], "size")), text::join(kinds, "; ")));
    }
  }

  void queues() {
    std::vector<std::string> out;
    for (const Json& family : twin_.queue_families) {
      out.push_back(fmt::format("{}x {}", number(below(family, "queueCount")),
                                flag_words(below(family, "queueFlags"), "VK_QUEUE_")));
    }
    add("queues", text::join(out, "; "));
  }

  const Twin& twin_;
  std::vector<std::pair<std::string, std::string>> out_;
};

// What Khronos' form has a place for.
void put_vulkan(const Twin& twin, Json& out, Json& weir) {
  Json features = Json::object(), properties = Json::object();
  for (const auto& [name, values] : twin.structs) {
    if (name == "VkPhysicalDeviceMemoryProperties") continue;
    const weir_struct* known = find_struct(name);
    const bool feature = name == "VkPhysicalDeviceFeatures" ||
                         (known != nullptr && known->chain == WEIR_CHAIN_FEATURES);
    Json kept = values;
    for (const auto& [key, value] : values.items()) {
      if (is_identity_field(key)) kept.erase(key);
    }
    Json& place = feature ? features : properties;
    place[name] = std::move(kept);
  }
  Json families = Json::array();
  for (const Json& family : twin.queue_families)
    families.push_back({{"VkQueueFamilyProperties", family}});
  Json formats = Json::object();
  for (const auto& [name, format] : twin.formats) formats[name] = {{"VkFormatProperties", format}};
  Json heaps = Json::array(), types = Json::array();
  for (const Json& heap : list_in(twin.memory, "memoryHeaps"))
    heaps.push_back(
        {{"size", heap.value("size", Json(0))}, {"flags", heap.value("flags", Json::array())}});
  for (const Json& type : list_in(twin.memory, "memoryTypes"))
    types.push_back({{"heap", type.value("heapIndex", Json(0))},
                     {"flags", type.value("propertyFlags", Json::array())}});
  out["$schema"] = "https://schema.khronos.org/vulkan/profiles-0.8-latest.json";
  out["capabilities"]["device"] = {{"extensions", twin.extensions},
                                   {"features", std::move(features)},
                                   {"properties", std::move(properties)},
                                   {"formats", std::move(formats)},
                                   {"queueFamiliesProperties", std::move(families)}};
  out["profiles"]["VP_WEIR_device"] = {{"version", 1},
                                       {"api-version", version_words(twin)},
                                       {"label", twin.title},
                                       {"description", twin.source},
                                       {"capabilities", {"device"}}};
  weir["memory"] = {{"heaps", std::move(heaps)}, {"types", std::move(types)}};
  if (!twin.cooperative_matrices.empty()) weir["cooperative_matrices"] = twin.cooperative_matrices;
  if (!twin.flexible_matrices.empty()) weir["flexible_matrices"] = twin.flexible_matrices;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> facts_of(const Twin& twin) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (twin.has_vulkan()) facts = Facts(twin).collect();
  for (const auto& [key, value] : twin.cuda.items()) {
    if (key != "attributes")
      facts.emplace_back("CUDA " + key, value.is_string()
                                            ? text::printable(value.get<std::string>())
                                            : value.dump());
  }
  return facts;
}

Json document_of(const Twin& twin) {
  Json out;
  Json weir = {{"schema", "weir.device/1"},
               {"name", twin.name},
               {"title", twin.title},
               {"source", twin.source}};
  if (!twin.assumed.empty()) weir["assumed"] = twin.assumed;
  if (twin.has_vulkan()) put_vulkan(twin, out, weir);
  if (twin.cuda.is_object()) weir["cuda"] = twin.cuda;
  out["weir"] = std::move(weir);
  return out;
}

}  // namespace weir::probes
