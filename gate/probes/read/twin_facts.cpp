// Describes a twin in words for people, and writes its description as a document.
#include "gate/probes/read/twin_facts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/runtime_api.hpp"
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

std::string name_text(const Json& value) {
  return value.is_string() ? text::printable(value.get_ref<const std::string&>()) : std::string();
}

// The value of a field; null where it is not described.
const Json& read_value(const Twin& twin, const char* struct_name, const std::string& field) {
  static const Json k_nothing;
  const Json* value = twin.value(struct_name, field);
  return value == nullptr ? k_nothing : *value;
}

// "1.3.230"
std::string version_text(const Twin& twin) {
  const std::uint64_t version = number(read_value(twin, k_device, "apiVersion"));
  return fmt::format("{}.{}.{}", version >> 22 & 0x7f, version >> 12 & 0x3ff, version & 0xfff);
}

// Removes the prefix and the extension's suffix: "mesa-radv" of "VK_DRIVER_ID_MESA_RADV".
std::string short_name(std::string name, std::string_view prefix) {
  if (name.starts_with(prefix)) name = name.substr(prefix.size());
  for (const std::string_view suffix : {"_BIT", "_KHR", "_NV", "_EXT"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      name.erase(name.size() - suffix.size());
    }
  }
  std::ranges::replace(name, '_', '-');
  return text::lower(name);
}

std::string size_text(const Json& size) {
  const auto bytes = whole_number(size);
  if (!bytes) return "not described";
  constexpr std::uint64_t k_kib = 1024, k_mib = k_kib << 10, k_one_gib = k_mib << 10;
  if (*bytes < k_kib) return fmt::format("{} bytes", *bytes);
  if (*bytes < k_mib) return fmt::format("{:.4g} KiB", static_cast<double>(*bytes) / k_kib);
  if (*bytes < k_one_gib) return fmt::format("{:.4g} MiB", static_cast<double>(*bytes) / k_mib);
  return fmt::format("{:.4g} GiB", static_cast<double>(*bytes) / k_one_gib);
}

// Short names of the flags; "nothing" where there are none.
std::string flags_text(const Json& flags, std::string_view prefix) {
  std::vector<std::string> names;
  if (flags.is_array()) {
    for (const Json& flag : flags) {
      if (flag.is_string()) names.push_back(short_name(name_text(flag), prefix));
    }
  }
  return names.empty() ? "nothing" : text::join(names, " ");
}

// Collects what people want to know of a Vulkan device: pairs of a subject and a text.
class Facts {
 public:
  explicit Facts(const Twin& twin) : twin_(twin) {}

  // Returns all facts, in the order in which people read them.
  std::vector<std::pair<std::string, std::string>> collect() {
    add_identity();
    add_groups();
    add_sizes();
    add_types();
    add_matrices();
    add_cores();
    add_memory();
    add_queues();
    add("extensions", fmt::format("{}", twin_.extensions.size()));
    return std::move(out_);
  }

 private:
  void add(const char* subject, std::string text) { out_.emplace_back(subject, std::move(text)); }
  [[nodiscard]] const Json& value(const char* struct_name, const std::string& field) const {
    return read_value(twin_, struct_name, field);
  }
  [[nodiscard]] const Json& limit(const char* name) const {
    return value(k_device, std::string("limits.") + name);
  }
  [[nodiscard]] bool is_true(const char* struct_name, const char* field) const {
    return value(struct_name, field) == Json(true);
  }
  [[nodiscard]] bool has_extension(const char* extension) const {
    return twin_.extensions.contains(extension);
  }

  // Adds names and ids of the device and its driver.
  void add_identity() {
    add("device", fmt::format("{} ({})", name_text(value(k_device, "deviceName")),
                              short_name(name_text(value(k_device, "deviceType")),
                                         "VK_PHYSICAL_DEVICE_TYPE_")));
    add("ids", fmt::format("vendor {:#06x}, device {:#06x}", number(value(k_device, "vendorID")),
                           number(value(k_device, "deviceID"))));
    add("driver",
        fmt::format("{} ({}), {}", name_text(value(k_properties_12, "driverName")),
                    short_name(name_text(value(k_properties_12, "driverID")), "VK_DRIVER_ID_"),
                    name_text(value(k_properties_12, "driverInfo"))));
    add("Vulkan", version_text(twin_));
  }

  // Adds sizes of subgroups and workgroups.
  void add_groups() {
    const auto size = whole_number(value(k_properties_11, "subgroupSize"));
    const auto min_size = whole_number(value(k_properties_13, "minSubgroupSize"));
    const auto max_size = whole_number(value(k_properties_13, "maxSubgroupSize"));
    std::string text = size ? fmt::format("{}", *size) : "not described";
    if (min_size && max_size && *min_size != *max_size)
      text += fmt::format(", from {} to {} on request", *min_size, *max_size);
    add("subgroup size", text);
    add("subgroup ops",
        flags_text(value(k_properties_11, "subgroupSupportedOperations"), "VK_SUBGROUP_FEATURE_"));
    add("workgroup",
        fmt::format("{} invocations at most", number(limit("maxComputeWorkGroupInvocations"))));
  }

  void add_sizes() {
    add("shared memory", size_text(limit("maxComputeSharedMemorySize")));
    add("push constants", size_text(limit("maxPushConstantsSize")));
    add("storage buffer", size_text(limit("maxStorageBufferRange")) + " at most");
    add("allocation", size_text(value(k_properties_11, "maxMemoryAllocationSize")) + " at most");
  }

  // Adds the types of numbers that shaders compute with, and the widths that buffers hold.
  void add_types() {
    std::vector<std::string> computes;
    if (is_true(k_features_12, "shaderFloat16")) computes.emplace_back("float16");
    if (is_true("VkPhysicalDeviceShaderBfloat16FeaturesKHR", "shaderBFloat16Type"))
      computes.emplace_back("bfloat16");
    if (is_true("VkPhysicalDeviceShaderFloat8FeaturesEXT", "shaderFloat8"))
      computes.emplace_back("float8");
    if (is_true("VkPhysicalDeviceFeatures", "shaderFloat64")) computes.emplace_back("float64");
    if (is_true(k_features_12, "shaderInt8")) computes.emplace_back("int8");
    if (is_true("VkPhysicalDeviceFeatures", "shaderInt16")) computes.emplace_back("int16");
    if (is_true("VkPhysicalDeviceFeatures", "shaderInt64")) computes.emplace_back("int64");
    add("computes with", "float32 int32 " + text::join(computes, " "));
    std::vector<std::string> stores;
    if (is_true(k_features_12, "storageBuffer8BitAccess")) stores.emplace_back("8-bit");
    if (is_true(k_features_11, "storageBuffer16BitAccess")) stores.emplace_back("16-bit");
    add("stores", stores.empty() ? "32-bit alone" : text::join(stores, " "));
    const bool is_accelerated =
        has_extension("VK_KHR_shader_integer_dot_product") &&
        is_true(k_properties_13, "integerDotProduct4x8BitPackedSignedAccelerated");
    add("integer dot", is_accelerated ? "accelerated (4x8 bit packed)" : "not accelerated");
  }

  // Adds the shapes and types of the matrices that matrix cores multiply, each once.
  void add_matrices() {
    std::vector<std::string> shapes;
    for (const Json& matrix : twin_.cooperative_matrices) {
      const auto type = [&](const char* field) {
        return short_name(name_text(member_or_null(matrix, field)), "VK_COMPONENT_TYPE_");
      };
      const std::string shape =
          fmt::format("{}x{}x{} {}\u2192{}", number(member_or_null(matrix, "MSize")),
                      number(member_or_null(matrix, "NSize")),
                      number(member_or_null(matrix, "KSize")), type("AType"), type("ResultType"));
      if (!holds(shapes, shape)) shapes.push_back(shape);
    }
    add("matrix cores", shapes.empty() ? "none" : text::join(shapes));
    if (!twin_.flexible_matrices.empty()) {
      add("flexible matrices",
          fmt::format("{} (VK_NV_cooperative_matrix2{})", twin_.flexible_matrices.size(),
                      has_extension("VK_NV_cooperative_matrix2") ? "" : " is not offered"));
    }
  }

  // Adds the number of cores, which each vendor describes in a struct of its own.
  void add_cores() {
    const auto count = [&](const char* struct_name, const char* field) {
      return number(value(struct_name, field));
    };
    constexpr const char* k_nv = "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV";
    constexpr const char* k_amd = "VkPhysicalDeviceShaderCoreProperties2AMD";
    constexpr const char* k_arm = "VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM";
    if (const std::uint64_t sms = count(k_nv, "shaderSMCount"); sms > 0) {
      add("cores",
          fmt::format("{} multiprocessors of {} warps", sms, count(k_nv, "shaderWarpsPerSM")));
    } else if (const std::uint64_t units = count(k_amd, "activeComputeUnitCount"); units > 0) {
      add("cores",
          fmt::format("{} compute units, {} wavefronts a SIMD", units,
                      count("VkPhysicalDeviceShaderCorePropertiesAMD", "wavefrontsPerSimd")));
    } else if (const std::uint64_t cores = count(k_arm, "shaderCoreCount"); cores > 0) {
      add("cores",
          fmt::format("{} shader cores of {} warps", cores, count(k_arm, "shaderWarpsPerCore")));
    }
  }

  // Adds a line for each heap: its size, and the properties of its types.
  void add_memory() {
    const Json& heaps = list_or_empty(twin_.memory, "memoryHeaps");
    for (std::size_t i = 0; i < heaps.size(); ++i) {
      std::vector<std::string> kinds;
      for (const Json& type : list_or_empty(twin_.memory, "memoryTypes")) {
        if (number(member_or_null(type, "heapIndex")) == i)
          kinds.push_back(flags_text(member_or_null(type, "propertyFlags"), "VK_MEMORY_PROPERTY_"));
      }
      add(i == 0 ? "memory" : "", fmt::format("{}: {}", size_text(member_or_null(heaps[i], "size")),
                                              text::join(kinds, "; ")));
    }
  }

  void add_queues() {
    std::vector<std::string> families;
    for (const Json& family : twin_.queue_families) {
      families.push_back(
          fmt::format("{}x {}", number(member_or_null(family, "queueCount")),
                      flags_text(member_or_null(family, "queueFlags"), "VK_QUEUE_")));
    }
    add("queues", text::join(families, "; "));
  }

  const Twin& twin_;
  std::vector<std::pair<std::string, std::string>> out_;
};

// Writes the Vulkan device of a twin (a simulated GPU) as a Khronos profile to `out`. Values that
// such a profile cannot hold go to `weir`.
void write_vulkan(const Twin& twin, Json& out, Json& weir) {
  Json features = Json::object(), properties = Json::object();
  for (const auto& [name, values] : twin.structs) {
    if (name == "VkPhysicalDeviceMemoryProperties") continue;
    const weir_struct* entry = find_struct(name);
    const bool is_features = name == "VkPhysicalDeviceFeatures" ||
                             (entry != nullptr && entry->chain == WEIR_CHAIN_FEATURES);
    Json shared_values = values;
    for (const auto& [key, value] : values.items()) {
      if (is_identity_field(key)) shared_values.erase(key);
    }
    Json& target = is_features ? features : properties;
    target[name] = std::move(shared_values);
  }
  Json families = Json::array();
  for (const Json& family : twin.queue_families)
    families.push_back({{"VkQueueFamilyProperties", family}});
  Json formats = Json::object();
  for (const auto& [name, format] : twin.formats) formats[name] = {{"VkFormatProperties", format}};
  Json heaps = Json::array(), types = Json::array();
  for (const Json& heap : list_or_empty(twin.memory, "memoryHeaps"))
    heaps.push_back(
        {{"size", heap.value("size", Json(0))}, {"flags", heap.value("flags", Json::array())}});
  for (const Json& type : list_or_empty(twin.memory, "memoryTypes"))
    types.push_back({{"heap", type.value("heapIndex", Json(0))},
                     {"flags", type.value("propertyFlags", Json::array())}});
  out["$schema"] = "https://schema.khronos.org/vulkan/profiles-0.8-latest.json";
  out["capabilities"]["device"] = {{"extensions", twin.extensions},
                                   {"features", std::move(features)},
                                   {"properties", std::move(properties)},
                                   {"formats", std::move(formats)},
                                   {"queueFamiliesProperties", std::move(families)}};
  out["profiles"]["VP_WEIR_device"] = {{"version", 1},
                                       {"api-version", version_text(twin)},
                                       {"label", twin.title},
                                       {"description", twin.source},
                                       {"capabilities", {"device"}}};
  weir["memory"] = {{"heaps", std::move(heaps)}, {"types", std::move(types)}};
  if (!twin.cooperative_matrices.empty()) weir["cooperative_matrices"] = twin.cooperative_matrices;
  if (!twin.flexible_matrices.empty()) weir["flexible_matrices"] = twin.flexible_matrices;
}

}  // namespace

// Lists the facts about a twin (a simulated GPU) that engines decide by, as subject and text:
// {"subgroup size", "64, from 32 to 64 on request"}.
std::vector<std::pair<std::string, std::string>> facts_of(const Twin& twin) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (twin.has_vulkan()) facts = Facts(twin).collect();
  for (const RuntimeApi* api : runtime_apis()) {
    for (const auto& [key, value] : (twin.*api->section).items()) {
      if (key == "attributes") continue;
      facts.emplace_back(
          fmt::format("{} {}", api->title, key),
          value.is_string() ? text::printable(value.get<std::string>()) : value.dump());
    }
  }
  return facts;
}

// Returns a description of a twin (a simulated GPU) that read_twin() reads as the same twin.
Json document_of(const Twin& twin) {
  Json description;
  Json weir = {{"schema", "weir.device/1"},
               {"name", twin.name},
               {"title", twin.title},
               {"source", twin.source}};
  if (!twin.assumed.empty()) weir["assumed"] = twin.assumed;
  if (twin.has_vulkan()) write_vulkan(twin, description, weir);
  for (const RuntimeApi* api : runtime_apis()) {
    if (const Json& section = twin.*api->section; section.is_object()) weir[api->name] = section;
  }
  description["weir"] = std::move(weir);
  return description;
}

}  // namespace weir::probes
