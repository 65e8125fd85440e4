// Describes this machine's Vulkan devices in full (weir-devices --describe), by the table of
// structs.
//
// Each struct is queried alone, filled with a pattern first. A struct that the driver does not
// write is unknown to it, and left out. So are UUIDs and LUIDs.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/probes/devices/devices.hpp"
#include "gate/probes/inject/vulkan/class.h"
#include "gate/probes/read/twin_values.hpp"

namespace weir::probes {
namespace {

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t load_unsigned(const weir_field& field, const char* at) {
  switch (field.element_size) {
    case 8:
      return load<std::uint64_t>(at);
    case 4:
      return load<std::uint32_t>(at);
    default:
      return load<std::uint8_t>(at);
  }
}

// Returns the names of the set flags as a JSON list; bits without a name become one number at its
// end.
Json flags_to_json(const weir_field& field, std::uint64_t bits) {
  Json names = Json::array();
  for (const weir_value& value : enum_values(field.of)) {
    const auto bit = static_cast<std::uint64_t>(value.value);
    // Skips names of several bits; of several names for one bit the first counts.
    if (!std::has_single_bit(bit) || (bits & bit) == 0) continue;
    names.push_back(value.name);
    bits &= ~bit;
  }
  if (bits != 0) names.push_back(bits);
  return names;
}

// The name of an enum's value; the number if it has none.
Json enum_to_json(const weir_field& field, std::int32_t number) {
  for (const weir_value& value : enum_values(field.of)) {
    if (value.value == number) return value.name;
  }
  return number;
}

// A number with as few digits as identify the float. Infinity and NaN, which JSON lacks, become 0.
Json float_to_json(float value) {
  const double rounded = text::to_double(fmt::format("{:.9g}", value)).value_or(0);
  return number_to_json(std::isfinite(rounded) ? rounded : 0);
}

Json struct_to_json(const weir_struct& type, const char* bytes);

// Returns the value at `at` as JSON. `at` points to the field, or to one element of an array.
Json value_to_json(const weir_field& field, const char* at) {
  switch (field.kind) {
    case WEIR_FIELD_BOOL:
      return load<std::uint32_t>(at) != 0;
    case WEIR_FIELD_SIGNED:
      return load<std::int32_t>(at);
    case WEIR_FIELD_FLOAT:
      return float_to_json(load<float>(at));
    case WEIR_FIELD_ENUM:
      return enum_to_json(field, load<std::int32_t>(at));
    case WEIR_FIELD_FLAGS:
      return flags_to_json(field, load_unsigned(field, at));
    case WEIR_FIELD_STRUCT:
      return struct_to_json(weir_structs[field.of], at);
    default:
      return load_unsigned(field, at);
  }
}

// Returns a Vulkan struct's fields as JSON, by name. UUIDs and LUIDs, which differ between equal
// devices, are left out.
Json struct_to_json(const weir_struct& type, const char* bytes) {
  Json object = Json::object();
  for (const weir_field& field : struct_fields(type)) {
    if (is_identity_field(field.name)) continue;
    const char* field_bytes = bytes + field.offset;
    Json& value = object[field.name];
    if (field.kind == WEIR_FIELD_TEXT) {
      value = std::string(field_bytes, strnlen(field_bytes, field.count));
    } else if (field.array) {
      value = Json::array();
      for (std::uint32_t i = 0; i < field.count; ++i) {
        value.push_back(value_to_json(field, field_bytes + std::size_t{i} * field.element_size));
      }
    } else {
      value = value_to_json(field, field_bytes);
    }
  }
  return object;
}

Json named_struct(const char* name, const void* bytes) {
  return struct_to_json(*find_struct(name), static_cast<const char*>(bytes));
}

// Describes one device.
class Description {
 public:
  Description(const VulkanDevices& all, VkPhysicalDevice device) : all_(all), device_(device) {}

  // A document as read_twin() (gate/probes/read/twins.hpp) takes it.
  Json describe() {
    Json extensions = describe_extensions();
    const VkPhysicalDeviceFeatures features = query_features(nullptr);
    const VkPhysicalDeviceProperties properties = query_properties(nullptr);
    Json weir = {
        {"schema", "weir.device/1"}, {"source", "recorded"}, {"memory", describe_memory()}};
    if (extensions.contains("VK_KHR_cooperative_matrix")) {
      add_list("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
               "VkCooperativeMatrixPropertiesKHR", "cooperative_matrices", weir);
    }
    if (extensions.contains("VK_NV_cooperative_matrix2")) {
      add_list("vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV",
               "VkCooperativeMatrixFlexibleDimensionsPropertiesNV", "flexible_matrices", weir);
    }
    return {{"capabilities",
             {{"device",
               {{"extensions", std::move(extensions)},
                {"features",
                 describe_chain("VkPhysicalDeviceFeatures", &features, WEIR_CHAIN_FEATURES)},
                {"properties",
                 describe_chain("VkPhysicalDeviceProperties", &properties, WEIR_CHAIN_PROPERTIES)},
                {"queueFamiliesProperties", describe_families()},
                {"formats", describe_formats()}}}}},
            {"weir", std::move(weir)}};
  }

 private:
  VkPhysicalDeviceFeatures query_features(void* next) {
    VkPhysicalDeviceFeatures2 out{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, next, {}};
    all_.call.vkGetPhysicalDeviceFeatures2(device_, &out);
    return out.features;
  }
  VkPhysicalDeviceProperties query_properties(void* next) {
    VkPhysicalDeviceProperties2 out{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, next, {}};
    all_.call.vkGetPhysicalDeviceProperties2(device_, &out);
    return out.properties;
  }

  // Queries a struct of a pNext chain. Returns its bytes, valid until the next call, or null if the
  // driver did not write it.
  const char* query(const weir_struct& type) {
    VkBaseOutStructure head{static_cast<VkStructureType>(type.type), nullptr};
    if (type.size < sizeof head) return nullptr;
    buffer_.assign((type.size + 7) / 8, 0xa5a5a5a5a5a5a5a5);
    std::memcpy(buffer_.data(), &head, sizeof head);
    if (type.chain == WEIR_CHAIN_FEATURES) {
      query_features(buffer_.data());
    } else {
      query_properties(buffer_.data());
    }
    const char* bytes = reinterpret_cast<const char*>(buffer_.data());
    const bool is_written =
        std::any_of(bytes + sizeof head, bytes + type.size, [](char c) { return c != '\xa5'; });
    return is_written ? bytes : nullptr;
  }

  // The core struct, and all structs of the chain that the driver knows.
  Json describe_chain(const char* core_name, const void* core, weir_chain chain) {
    Json out = {{core_name, named_struct(core_name, core)}};
    for (const weir_struct& type : all_structs()) {
      const char* bytes = type.chain == chain ? query(type) : nullptr;
      if (bytes != nullptr) out[type.name] = struct_to_json(type, bytes);
    }
    return out;
  }

  Json describe_extensions() {
    Json out = Json::object();
    std::uint32_t count = 0;
    VkExtensionProperties* extensions = weir_probe::list_extensions(
        all_.call.vkEnumerateDeviceExtensionProperties, device_, &count);
    for (std::uint32_t i = 0; extensions != nullptr && i < count; ++i) {
      out[extensions[i].extensionName] = extensions[i].specVersion;
    }
    std::free(extensions);
    return out;
  }

  Json describe_families() {
    Json out = Json::array();
    VkQueueFamilyProperties families[32];
    std::uint32_t count = 32;
    all_.call.vkGetPhysicalDeviceQueueFamilyProperties(device_, &count, families);
    for (const VkQueueFamilyProperties& family : std::span(families, count)) {
      out.push_back(
          {{"VkQueueFamilyProperties", named_struct("VkQueueFamilyProperties", &family)}});
    }
    return out;
  }

  // The features of each format that has any.
  Json describe_formats() {
    Json out = Json::object();
    std::set<std::int64_t> queried;
    for (const weir_value& format : enum_values(find_enum("VkFormat"))) {
      if (!queried.insert(format.value).second) continue;  // another name of the same format
      VkFormatProperties properties{};
      all_.call.vkGetPhysicalDeviceFormatProperties(device_, static_cast<VkFormat>(format.value),
                                                    &properties);
      if ((properties.linearTilingFeatures | properties.optimalTilingFeatures |
           properties.bufferFeatures) == 0) {
        continue;
      }
      out[format.name] = {{"VkFormatProperties", named_struct("VkFormatProperties", &properties)}};
    }
    return out;
  }

  // The heaps and types of memory, with the names of their flags.
  Json describe_memory() {
    VkPhysicalDeviceMemoryProperties memory{};
    all_.call.vkGetPhysicalDeviceMemoryProperties(device_, &memory);
    Json heaps = Json::array(), types = Json::array();
    const weir_field& heap_flags = *find_field(*find_struct("VkMemoryHeap"), "flags");
    const weir_field& type_flags = *find_field(*find_struct("VkMemoryType"), "propertyFlags");
    for (const VkMemoryHeap& heap : std::span(memory.memoryHeaps, memory.memoryHeapCount)) {
      heaps.push_back({{"size", heap.size}, {"flags", flags_to_json(heap_flags, heap.flags)}});
    }
    for (const VkMemoryType& type : std::span(memory.memoryTypes, memory.memoryTypeCount)) {
      types.push_back(
          {{"heap", type.heapIndex}, {"flags", flags_to_json(type_flags, type.propertyFlags)}});
    }
    return {{"heaps", std::move(heaps)}, {"types", std::move(types)}};
  }

  // Adds the list of structs that a function returns: cooperative matrices of either kind.
  void add_list(const char* function, const char* struct_name, const char* key, Json& weir) {
    using List = VkResult (*)(VkPhysicalDevice, std::uint32_t*, void*);
    const auto list = reinterpret_cast<List>(all_.get(all_.instance, function));
    const weir_struct* type = find_struct(struct_name);
    std::uint32_t count = 0;
    if (list == nullptr || type == nullptr || list(device_, &count, nullptr) < 0 || count > 4096) {
      return;
    }
    std::vector<char> bytes(std::size_t{count} * type->size);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(bytes.data() + i * type->size, &type->type, sizeof type->type);
    }
    if (count == 0 || list(device_, &count, bytes.data()) < 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      weir[key].push_back(struct_to_json(*type, bytes.data() + i * type->size));
    }
  }

  const VulkanDevices& all_;
  VkPhysicalDevice device_;
  std::vector<std::uint64_t> buffer_;  // result of query()
};

}  // namespace

Result<Json> describe_vulkan_devices() {
  WEIR_TRY(const VulkanDevices all, open_vulkan(k_program, VK_API_VERSION_1_3));
  if (all.call.vkGetPhysicalDeviceProperties2 == nullptr ||
      all.call.vkGetPhysicalDeviceFeatures2 == nullptr) {
    return fail(Code::unavailable, "this machine's Vulkan loader is older than 1.1");
  }
  Json out = Json::array();
  for (VkPhysicalDevice device : all.devices) out.push_back(Description(all, device).describe());
  return out;
}

}  // namespace weir::probes
