// Reads descriptions of GPUs: documents of Khronos profiles, and the older form of vulkaninfo.
#include "gate/probes/read/twins.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/runtime_api.hpp"
#include "gate/probes/read/twin_values.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_max_heaps = 16, k_max_types = 32;
constexpr std::uint64_t k_gibibyte = std::uint64_t{1} << 30;

// Returns a list of objects with their keys renamed; keys not in `keys` are dropped. An entry that
// is no object becomes an empty one.
Json rename_keys(const Json& list,
                 std::initializer_list<std::pair<const char*, const char*>> keys) {
  Json renamed_list = Json::array();
  for (const Json& entry : list) {
    Json renamed = Json::object();
    for (const auto& [from, to] : keys) {
      if (const Json& value = member_or_null(entry, from); !value.is_null()) renamed[to] = value;
    }
    renamed_list.push_back(std::move(renamed));
  }
  return renamed_list;
}

// True if there are heaps and types, and each type lies in one of the heaps.
bool is_consistent(const Json& heaps, const Json& types) {
  return !heaps.empty() && !types.empty() && std::ranges::all_of(types, [&](const Json& type) {
    const Json& heap = member_or_null(type, "heapIndex");
    return heap.is_number_unsigned() && heap.get<std::uint64_t>() < heaps.size();
  });
}

// Sets the memory of a twin (a simulated GPU) that describes none: 8 GiB of the device's, and 16
// GiB of the host's, plain and cached.
void set_default_memory(Json& heaps, Json& types) {
  const Json visible = {"VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT",
                        "VK_MEMORY_PROPERTY_HOST_COHERENT_BIT"};
  Json cached = visible;
  cached.push_back("VK_MEMORY_PROPERTY_HOST_CACHED_BIT");
  const Json local = Json::array({"VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT"});
  heaps = Json::array();
  heaps.push_back(
      {{"size", 8 * k_gibibyte}, {"flags", Json::array({"VK_MEMORY_HEAP_DEVICE_LOCAL_BIT"})}});
  heaps.push_back({{"size", 16 * k_gibibyte}, {"flags", Json::array()}});
  types = Json::array();
  types.push_back({{"heapIndex", 0U}, {"propertyFlags", local}});
  types.push_back({{"heapIndex", 1U}, {"propertyFlags", visible}});
  types.push_back({{"heapIndex", 1U}, {"propertyFlags", cached}});
}

// The least limits that Vulkan requires (specification, "Required Limits"): those fields of
// VkPhysicalDeviceLimits that compute programs read.
Json minimum_limits() {
  const Json samples = {"VK_SAMPLE_COUNT_1_BIT", "VK_SAMPLE_COUNT_4_BIT"};
  return {
      {"maxImageDimension1D", 4096},
      {"maxImageDimension2D", 4096},
      {"maxTexelBufferElements", 65536},
      {"maxUniformBufferRange", 16384},
      {"maxStorageBufferRange", 134217728},
      {"maxPushConstantsSize", 128},
      {"maxMemoryAllocationCount", 4096},
      {"maxSamplerAllocationCount", 4000},
      {"bufferImageGranularity", 131072},
      {"maxBoundDescriptorSets", 4},
      {"maxPerStageDescriptorSamplers", 16},
      {"maxPerStageDescriptorUniformBuffers", 12},
      {"maxPerStageDescriptorStorageBuffers", 4},
      {"maxPerStageDescriptorSampledImages", 16},
      {"maxPerStageDescriptorStorageImages", 4},
      {"maxPerStageResources", 128},
      {"maxDescriptorSetSamplers", 96},
      {"maxDescriptorSetUniformBuffers", 72},
      {"maxDescriptorSetUniformBuffersDynamic", 8},
      {"maxDescriptorSetStorageBuffers", 24},
      {"maxDescriptorSetStorageBuffersDynamic", 4},
      {"maxDescriptorSetSampledImages", 96},
      {"maxDescriptorSetStorageImages", 24},
      {"maxComputeSharedMemorySize", 16384},
      {"maxComputeWorkGroupCount", {65535, 65535, 65535}},
      {"maxComputeWorkGroupInvocations", 128},
      {"maxComputeWorkGroupSize", {128, 128, 64}},
      {"minMemoryMapAlignment", 64},
      {"minTexelBufferOffsetAlignment", 256},
      {"minUniformBufferOffsetAlignment", 256},
      {"minStorageBufferOffsetAlignment", 256},
      {"timestampPeriod", 1},
      {"discreteQueuePriorities", 2},
      {"optimalBufferCopyOffsetAlignment", 1},
      {"optimalBufferCopyRowPitchAlignment", 1},
      {"nonCoherentAtomSize", 256},
      // Limits of graphics, which WebGPU wants even if it only computes. These are not the least
      // that Vulkan requires, but every GPU of the last ten years has them.
      {"maxViewportDimensions", {16384, 16384}},
      {"viewportBoundsRange", {-32768, 32767}},
      {"maxFramebufferWidth", 16384},
      {"maxFramebufferHeight", 16384},
      {"maxFramebufferLayers", 256},
      {"framebufferColorSampleCounts", samples},
      {"framebufferDepthSampleCounts", samples},
      {"framebufferStencilSampleCounts", samples},
      {"framebufferNoAttachmentsSampleCounts", samples},
      {"maxColorAttachments", 8},
      {"maxVertexInputAttributes", 16},
      {"maxVertexInputBindings", 16},
      {"maxVertexInputAttributeOffset", 2047},
      {"maxVertexInputBindingStride", 2048},
      {"maxVertexOutputComponents", 124},
      {"maxFragmentInputComponents", 124},
      {"maxFragmentOutputAttachments", 4},
      {"maxFragmentCombinedOutputResources", 4},
      {"maxImageDimension3D", 256},
      {"maxImageDimensionCube", 4096},
      {"maxImageArrayLayers", 256},
      {"maxSamplerAnisotropy", 1},
  };
}

// Returns a twin's memory as a valid VkPhysicalDeviceMemoryProperties. It comes from weir's
// {"heaps": [{"size", "flags"}], "types": [{"heap", "flags"}]}, else from Vulkan's struct. Either
// may be null; without both it is set_default_memory()'s.
Json read_memory(const Json& weir_memory, const Json& vulkan_memory, Warnings& warnings) {
  const bool is_weirs = !weir_memory.is_null();
  const Json& from = is_weirs ? weir_memory : vulkan_memory;
  Json heaps = rename_keys(list_or_empty(from, is_weirs ? "heaps" : "memoryHeaps"),
                           {{"size", "size"}, {"flags", "flags"}});
  Json types = rename_keys(list_or_empty(from, is_weirs ? "types" : "memoryTypes"),
                           {{is_weirs ? "heap" : "heapIndex", "heapIndex"},
                            {is_weirs ? "flags" : "propertyFlags", "propertyFlags"}});
  if (heaps.size() > k_max_heaps || types.size() > k_max_types) {
    warnings.add("memory: more than 16 heaps or 32 types");
    while (heaps.size() > k_max_heaps) heaps.erase(heaps.size() - 1);
    while (types.size() > k_max_types) types.erase(types.size() - 1);
  }
  if (!is_consistent(heaps, types)) {
    warnings.add("memory: not described; 8 GiB of the device's and 16 GiB of the host's stand in");
    set_default_memory(heaps, types);
  }
  Json memory = {{"memoryHeapCount", heaps.size()}, {"memoryTypeCount", types.size()}};
  memory["memoryHeaps"] = std::move(heaps);
  memory["memoryTypes"] = std::move(types);
  return memory;
}

constexpr JsonLimits k_limits{std::size_t{8} << 20, 32};
constexpr std::size_t k_max_families = 32;

// A printable text of one line and at most 1000 bytes; "" where `key` holds no text.
std::string read_text(const Json& json, const char* key) {
  const Json& value = member_or_null(json, key);
  if (!value.is_string()) return "";
  std::string text = text::printable(value.get_ref<const std::string&>());
  std::ranges::replace(text, '\n', ' ');
  return text.substr(0, 1000);
}

// Returns a device's name as that of a file: "AMD Radeon RX 7900 XTX (RADV NAVI31)" gives
// "amd-radeon-rx-7900-xtx-radv-navi31".
std::string make_twin_name(std::string_view title) {
  std::string name;
  for (const char c : text::lower(title)) {
    if (text::is_alphanumeric(c)) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  name = name.substr(0, 63);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "device" : name;
}

// Fills a twin from a description.
class Reader {
 public:
  explicit Reader(Twin& twin) : twin_(twin), warnings_(twin.warnings) {}

  // Fails with Code::data where the document describes neither a Vulkan device nor one of a
  // runtime.
  Result<void> read(const Json& document) {
    if (!document.is_object()) return fail(Code::data, "no description: not an object");
    const Json& weir = member_or_null(document, "weir");
    const std::string schema = read_text(weir, "schema");
    if (!weir.is_null() && schema != "weir.device/1") {
      return fail(Code::data, "\"weir\": schema \"{}\", known here: weir.device/1", schema);
    }
    if (member_or_null(document, "capabilities").is_null()) {
      read_flat(document);
    } else {
      read_profile(document);
    }
    for (const RuntimeApi* api : runtime_apis()) {
      const Json& section = member_or_null(weir, api->name);
      if (section.is_object()) twin_.*api->section = section;
    }
    if (!twin_.has_vulkan() && !twin_.apis().empty()) {
      read_weir(weir);
      return {};
    }
    if (!twin_.structs.contains("VkPhysicalDeviceProperties")) {
      return fail(Code::data,
                  "no description: VkPhysicalDeviceProperties is nowhere in it (vulkaninfo --json "
                  "and the export of public databases as a profile have it)");
    }
    read_weir(weir);
    twin_.memory =
        read_memory(member_or_null(weir, "memory"),
                    look_up(twin_.structs, "VkPhysicalDeviceMemoryProperties", Json()), warnings_);
    set_defaults();
    agree(twin_.structs, warnings_);
    return {};
  }

 private:
  // Reads a profiles document: "capabilities": {NAME: {"extensions", "features", "properties",
  // "formats", "queueFamiliesProperties"}}. The first profile names the blocks that count; in a
  // list of alternatives the first counts. If it names none, all blocks do.
  void read_profile(const Json& document) {
    const Json& capabilities = member_or_null(document, "capabilities");
    if (!capabilities.is_object()) return warnings_.add("capabilities: no object");
    bool has_block = false;
    if (const Json& profiles = member_or_null(document, "profiles");
        profiles.is_object() && !profiles.empty()) {
      const Json& profile = profiles.begin().value();
      api_version_ = read_text(profile, "api-version");
      for (const Json& entry : list_or_empty(profile, "capabilities")) {
        const Json& name = entry.is_array() && !entry.empty() ? entry[0] : entry;
        if (!name.is_string()) continue;
        const Json& block =
            member_or_null(capabilities, name.get_ref<const std::string&>().c_str());
        if (block.is_null()) {
          warnings_.add("capabilities." + text::printable(name.get<std::string>()) +
                        ": named by the profile, and not there");
        } else {
          read_block(block);
          has_block = true;
        }
      }
    }
    if (has_block) return;
    for (const auto& [name, block] : capabilities.items()) read_block(block);
  }

  // Reads one block of capabilities into the twin.
  void read_block(const Json& block) {
    for (const char* kind : {"features", "properties"}) {
      const Json& structs = member_or_null(block, kind);
      if (structs.is_object()) {
        for (const auto& [name, values] : structs.items()) add_struct(name, values);
      } else if (!structs.is_null()) {
        warnings_.add(std::string(kind) + ": no object");
      }
    }
    if (const Json& extensions = member_or_null(block, "extensions"); extensions.is_object()) {
      for (const auto& [name, revision] : extensions.items()) add_extension(name, revision);
    }
    if (const Json& formats = member_or_null(block, "formats"); formats.is_object()) {
      for (const auto& [name, format] : formats.items()) add_format(name, format);
    }
    for (const Json& family : list_or_empty(block, "queueFamiliesProperties")) {
      const Json* properties = &member_or_null(family, "VkQueueFamilyProperties");
      for (const char* newer : {"VkQueueFamilyProperties2", "VkQueueFamilyProperties2KHR"}) {
        if (properties->is_null()) {
          properties = &member_or_null(member_or_null(family, newer), "queueFamilyProperties");
        }
      }
      add_family(properties->is_null() ? family : *properties);
    }
  }

  // Reads the older form of vulkaninfo --json: structs at the top of the document.
  void read_flat(const Json& document) {
    for (const auto& [key, value] : document.items()) {
      if (key.rfind("VkPhysicalDevice", 0) == 0) add_struct(key, value);
      if (!value.is_array()) continue;
      if (key == "ArrayOfVkQueueFamilyProperties") {
        for (const Json& family : value) add_family(family);
      } else if (key == "ArrayOfVkExtensionProperties") {
        for (const Json& extension : value) {
          const Json& revision = member_or_null(extension, "specVersion");
          add_extension(read_text(extension, "extensionName"),
                        revision.is_null() ? Json(1) : revision);
        }
      }
    }
  }

  // Adds the values of one struct; later values replace earlier ones.
  void add_struct(const std::string& name, const Json& values) {
    // VkPhysicalDeviceFeatures2 wraps a VkPhysicalDeviceFeatures in its field "features", …
    for (const auto& [wrapper, field] :
         {std::pair{"VkPhysicalDeviceFeatures2", "features"},
          std::pair{"VkPhysicalDeviceProperties2", "properties"},
          std::pair{"VkPhysicalDeviceMemoryProperties2", "memoryProperties"}}) {
      if (name != wrapper && name != std::string(wrapper) + "KHR") continue;
      const std::string wrapped = std::string(wrapper, std::string_view(wrapper).size() - 1);
      if (const Json& inner = member_or_null(values, field); !inner.is_null())
        add_struct(wrapped, inner);
      return;
    }
    const weir_struct* known_struct = find_struct(name);
    if (known_struct == nullptr) return warnings_.add(text::printable(name) + ": unknown");
    if (!values.is_object()) return warnings_.add(text::printable(name) + ": no object");
    Json& target = twin_.structs[known_struct->name];
    if (!target.is_object()) target = Json::object();
    target.update(values);
  }

  // Adds an extension of the device; instance extensions, which vulkaninfo lists too, are skipped.
  void add_extension(const std::string& name, const Json& revision) {
    if (holds(std::span(weir_instance_extensions, weir_instance_extension_count), name)) return;
    const std::string shown = "extensions." + text::printable(name);
    if (name.rfind("VK_", 0) != 0 || name.size() > 255 || text::printable(name) != name) {
      return warnings_.add(shown + ": no name of an extension");
    }
    if (twin_.extensions.size() >= k_max_twin_entries) return warnings_.add(shown + ": too many");
    const bool is_number =
        revision.is_number_unsigned() && revision.get<std::uint64_t>() <= 0xffffffff;
    if (!is_number) warnings_.add(shown + ": its revision is no number");
    twin_.extensions[name] = is_number ? revision.get<std::uint32_t>() : 1;
  }

  // Adds a format's features: from VkFormatProperties, else those of the 64-bit
  // VkFormatProperties3 that have a 32-bit flag.
  void add_format(const std::string& name, const Json& format) {
    if (twin_.formats.size() >= k_max_twin_entries)
      return warnings_.add("formats." + text::printable(name) + ": too many");
    if (const Json& plain = member_or_null(format, "VkFormatProperties"); !plain.is_null()) {
      twin_.formats[name] = plain;
      return;
    }
    const Json* wide = &member_or_null(format, "VkFormatProperties3");
    if (wide->is_null()) wide = &member_or_null(format, "VkFormatProperties3KHR");
    if (!wide->is_object()) return;
    Json narrow = Json::object();
    for (const auto& [key, features] : wide->items()) {
      Json names = Json::array();
      for (const Json& feature : features) {
        if (!feature.is_string()) continue;
        std::string flag = feature.get<std::string>();
        constexpr std::string_view k_wide = "VK_FORMAT_FEATURE_2_";
        if (flag.rfind(k_wide, 0) == 0) flag = "VK_FORMAT_FEATURE_" + flag.substr(k_wide.size());
        if (find_enum_value(find_enum("VkFormatFeatureFlagBits"), flag)) names.push_back(flag);
      }
      narrow[key] = std::move(names);
    }
    twin_.formats[name] = std::move(narrow);
  }

  void add_family(const Json& family) {
    if (!family.is_object() || twin_.queue_families.size() >= k_max_families)
      return warnings_.add("queueFamiliesProperties: left out what is no family, or one too many");
    twin_.queue_families.push_back(family);
  }

  // Reads the section "weir": name, title, source and assumptions, and lists that profiles lack.
  void read_weir(const Json& weir) {
    const Json& runtime = twin_.cuda.is_null() ? twin_.hip : twin_.cuda;
    const std::string device_name =
        twin_.has_vulkan() ? read_text(properties(), "deviceName") : read_text(runtime, "name");
    twin_.title = read_text(weir, "title");
    if (twin_.title.empty()) twin_.title = device_name;
    twin_.name = read_text(weir, "name");
    if (!is_twin_name(twin_.name)) {
      if (!twin_.name.empty())
        warnings_.add("weir.name: only small letters, digits and \"-._\", at most 63");
      twin_.name = make_twin_name(twin_.name.empty() ? twin_.title : twin_.name);
    }
    if (twin_.title.empty()) twin_.title = twin_.name;
    twin_.source = read_text(weir, "source");
    twin_.compile = read_text(weir, "compile");
    for (const Json& assumption : list_or_empty(weir, "assumed")) {
      if (assumption.is_string() && twin_.assumed.size() < 100)
        twin_.assumed.push_back(text::printable(assumption.get<std::string>()).substr(0, 1000));
    }
    read_list(weir, "cooperative_matrices", twin_.cooperative_matrices);
    read_list(weir, "flexible_matrices", twin_.flexible_matrices);
    for (const auto& [key, value] : weir.items()) {
      constexpr std::string_view k_known[] = {"schema",
                                              "name",
                                              "title",
                                              "source",
                                              "assumed",
                                              "memory",
                                              "cooperative_matrices",
                                              "flexible_matrices",
                                              "compile"};
      if (!holds(k_known, key) && find_runtime_api(key) == nullptr)
        warnings_.add("weir." + text::printable(key) + ": unknown");
    }
  }

  // Appends the list under `key` to `out`.
  void read_list(const Json& weir, const char* key, std::vector<Json>& out) {
    const Json& list = member_or_null(weir, key);
    if (list.is_null()) return;
    if (!list.is_array()) return warnings_.add(fmt::format("weir.{}: no list", key));
    for (const Json& entry : list) {
      if (out.size() >= k_max_twin_entries)
        return warnings_.add(fmt::format("weir.{}: too many", key));
      out.push_back(entry);
    }
  }

  Json& properties() { return twin_.structs["VkPhysicalDeviceProperties"]; }

  // Sets defaults for missing values that every program needs.
  void set_defaults() {
    Json& device = properties();
    if (member_or_null(device, "deviceName").is_null())
      device["deviceName"] = twin_.title.substr(0, 255);
    if (member_or_null(device, "deviceType").is_null())
      device["deviceType"] = "VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU";
    if (member_or_null(device, "apiVersion").is_null()) device["apiVersion"] = version_number();
    Json limits = minimum_limits();
    if (const Json& described = member_or_null(device, "limits"); described.is_object()) {
      limits.update(described);
    } else {
      warnings_.add("limits: not described; the least that Vulkan requires stands in");
    }
    device["limits"] = std::move(limits);
    // A device has to support a format with depth and stencil (specification, "Required Format
    // Support"). WebGPU fails without one.
    twin_.formats.try_emplace(
        "VK_FORMAT_D32_SFLOAT_S8_UINT",
        Json{{"optimalTilingFeatures",
              {"VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT", "VK_FORMAT_FEATURE_TRANSFER_SRC_BIT",
               "VK_FORMAT_FEATURE_TRANSFER_DST_BIT",
               "VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT"}}});
    if (twin_.queue_families.empty()) {
      warnings_.add("queueFamiliesProperties: not described; one queue for everything stands in");
      twin_.queue_families.push_back(
          {{"queueFlags",
            {"VK_QUEUE_GRAPHICS_BIT", "VK_QUEUE_COMPUTE_BIT", "VK_QUEUE_TRANSFER_BIT"}},
           {"queueCount", 1},
           {"timestampValidBits", 64},
           {"minImageTransferGranularity", {{"width", 1}, {"height", 1}, {"depth", 1}}}});
    }
  }

  // Packs "1.3.230" as Vulkan does; 1.3.0 where the document has no version.
  std::uint32_t version_number() const {
    std::uint32_t parts[3] = {1, 3, 0};
    const std::vector<std::string> words = text::split(api_version_, '.');
    for (std::size_t i = 0; i < 3 && i < words.size() && !api_version_.empty(); ++i) {
      const auto number = text::to_int(words[i]);
      if (number && *number >= 0 && *number < 4096) parts[i] = static_cast<std::uint32_t>(*number);
    }
    return (parts[0] & 0x7f) << 22 | (parts[1] & 0x3ff) << 12 | parts[2];
  }

  Twin& twin_;
  Warnings warnings_;
  std::string api_version_;
};

}  // namespace

bool is_twin_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 63 && letter(name[0]) &&
         std::ranges::all_of(name,
                             [&](char c) { return letter(c) || c == '-' || c == '.' || c == '_'; });
}

std::vector<std::string> Twin::apis() const {
  std::vector<std::string> names;
  if (has_vulkan()) names.emplace_back("vulkan");
  for (const RuntimeApi* api : runtime_apis()) {
    if ((this->*api->section).is_object()) names.emplace_back(api->name);
  }
  return names;
}

const Json* Twin::value(const std::string& struct_name, const std::string& field) const {
  const Json* values = look_up(structs, struct_name);
  if (values == nullptr) return nullptr;
  const std::size_t dot = field.find('.');
  if (dot != std::string::npos) values = &member_or_null(*values, field.substr(0, dot).c_str());
  const Json& value = member_or_null(*values, field.substr(dot + 1).c_str());  // npos + 1 is 0
  return value.is_null() ? nullptr : &value;
}

Result<Twin> read_twin(std::string_view text) {
  WEIR_TRY(const Json document, parse_json(text, k_limits));
  Twin twin;
  WEIR_CHECK(Reader(twin).read(document));
  return twin;
}

}  // namespace weir::probes
