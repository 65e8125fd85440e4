// Whole descriptions of the Vulkan devices (weir-devices --describe), by the table of structs.
//
// Each struct is asked for alone, filled with a pattern first: what a driver leaves as it was it
// does not know, and is not described. UUIDs and LUIDs are left out.
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

std::uint64_t unsigned_at(const weir_field& field, const char* at) {
  return field.element_size == 8   ? load<std::uint64_t>(at)
         : field.element_size == 4 ? load<std::uint32_t>(at)
                                   : load<std::uint8_t>(at);
}

Json flags_of(const weir_field& field, std::uint64_t bits) {
  Json out = Json::array();
  for (const weir_value& value : values_of(field.of)) {
    const auto bit = static_cast<std::uint64_t>(value.value);
    // One bit a name, and the first of several names for it.
    if (!std::has_single_bit(bit) || (bits & bit) == 0) continue;
    out.push_back(value.name);
    bits &= ~bit;
  }
  if (bits != 0) out.push_back(bits);
  return out;
}

Json enum_of(const weir_field& field, std::int32_t number) {
  for (const weir_value& value : values_of(field.of)) {
    if (value.value == number) return value.name;
  }
  return number;
}

// As few digits as tell it from other floats; JSON has no NaN.
Json float_of(float value) {
  const double read = text::to_double(fmt::format("{:.9g}", value)).value_or(0);
  return number_to_json(std::isfinite(read) ? read : 0);
}

Json struct_of(const weir_struct& as, const char* bytes);

Json value_of(const weir_field& field, const char* at) {
  switch (field.kind) {
    case WEIR_FIELD_BOOL:
      return load<std::uint32_t>(at) != 0;
    case WEIR_FIELD_SIGNED:
      return load<std::int32_t>(at);
    case WEIR_FIELD_FLOAT:
      return float_of(load<float>(at));
    case WEIR_FIELD_ENUM:
      return enum_of(field, load<std::int32_t>(at));
    case WEIR_FIELD_FLAGS:
      return flags_of(field, unsigned_at(field, at));
    case WEIR_FIELD_STRUCT:
      return struct_of(weir_structs[field.of], at);
    default:
      return unsigned_at(field, at);
  }
}

Json struct_of(const weir_struct& as, const char* bytes) {
  Json out = Json::object();
  for (const weir_field& field : fields_of(as)) {
    if (is_identity_field(field.name)) continue;
    const char* at = bytes + field.offset;
    Json& value = out[field.name];
    if (field.kind == WEIR_FIELD_TEXT) {
      value = std::string(at, strnlen(at, field.count));
    } else if (field.array) {
      value = Json::array();
      for (std::uint32_t i = 0; i < field.count; ++i) {
        value.push_back(value_of(field, at + std::size_t{i} * field.element_size));
      }
    } else {
      value = value_of(field, at);
    }
  }
  return out;
}

Json named_struct(const char* name, const void* bytes) {
  return struct_of(*find_struct(name), static_cast<const char*>(bytes));
}

class Description {
 public:
  Description(const VulkanDevices& all, VkPhysicalDevice device) : all_(all), device_(device) {}

  Json whole() {
    Json extensions = extensions_of();
    const VkPhysicalDeviceFeatures features = ask_features(nullptr);
    const VkPhysicalDeviceProperties properties = ask_properties(nullptr);
    Json weir = {{"schema", "weir.device/1"}, {"source", "recorded"}, {"memory", memory()}};
    if (extensions.contains("VK_KHR_cooperative_matrix")) {
      add_list("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
               "VkCooperativeMatrixPropertiesKHR", "cooperative_matrices", weir);
    }
    if (extensions.contains("VK_NV_cooperative_matrix2")) {
      add_list("vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV",
               "VkCooperativeMatrixFlexibleDimensionsPropertiesNV", "flexible_matrices", weir);
    }
    return {
        {"capabilities",
         {{"device",
           {{"extensions", std::move(extensions)},
            {"features", chain("VkPhysicalDeviceFeatures", &features, WEIR_CHAIN_FEATURES)},
            {"properties", chain("VkPhysicalDeviceProperties", &properties, WEIR_CHAIN_PROPERTIES)},
            {"queueFamiliesProperties", families()},
            {"formats", formats()}}}}},
        {"weir", std::move(weir)}};
  }

 private:
  VkPhysicalDeviceFeatures ask_features(void* next) {
    VkPhysicalDeviceFeatures2 out{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, next, {}};
    all_.call.vkGetPhysicalDeviceFeatures2(device_, &out);
    return out.features;
  }
  VkPhysicalDeviceProperties ask_properties(void* next) {
    VkPhysicalDeviceProperties2 out{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, next, {}};
    all_.call.vkGetPhysicalDeviceProperties2(device_, &out);
    return out.properties;
  }

  // Null where the driver did not write it.
  const char* ask(const weir_struct& one) {
    VkBaseOutStructure head{static_cast<VkStructureType>(one.type), nullptr};
    if (one.size < sizeof head) return nullptr;
    room_.assign((one.size + 7) / 8, 0xa5a5a5a5a5a5a5a5);
    std::memcpy(room_.data(), &head, sizeof head);
    if (one.chain == WEIR_CHAIN_FEATURES) {
      ask_features(room_.data());
    } else {
      ask_properties(room_.data());
    }
    const char* bytes = reinterpret_cast<const char*>(room_.data());
    const bool written =
        std::any_of(bytes + sizeof head, bytes + one.size, [](char c) { return c != '\xa5'; });
    return written ? bytes : nullptr;
  }

  Json chain(const char* core_name, const void* core, weir_chain chain) {
    Json out = {{core_name, named_struct(core_name, core)}};
    for (const weir_struct& one : all_structs()) {
      const char* bytes = one.chain == chain ? ask(one) : nullptr;
      if (bytes != nullptr) out[one.name] = struct_of(one, bytes);
    }
    return out;
  }

  Json extensions_of() {
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

  Json families() {
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

  Json formats() {
    Json out = Json::object();
    std::set<std::int64_t> seen;
    for (const weir_value& format : values_of(find_enum("VkFormat"))) {
      if (!seen.insert(format.value).second) continue;  // under another name
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

  Json memory() {
    VkPhysicalDeviceMemoryProperties memory{};
    all_.call.vkGetPhysicalDeviceMemoryProperties(device_, &memory);
    Json heaps = Json::array(), types = Json::array();
    const weir_field& heap_flags = *find_field(*find_struct("VkMemoryHeap"), "flags");
    const weir_field& type_flags = *find_field(*find_struct("VkMemoryType"), "propertyFlags");
    for (const VkMemoryHeap& heap : std::span(memory.memoryHeaps, memory.memoryHeapCount)) {
      heaps.push_back({{"size", heap.size}, {"flags", flags_of(heap_flags, heap.flags)}});
    }
    for (const VkMemoryType& type : std::span(memory.memoryTypes, memory.memoryTypeCount)) {
      types.push_back(
          {{"heap", type.heapIndex}, {"flags", flags_of(type_flags, type.propertyFlags)}});
    }
    return {{"heaps", std::move(heaps)}, {"types", std::move(types)}};
  }

  // Structs of the table in a list that a function fills: cooperative matrices of either kind.
  void add_list(const char* function, const char* struct_name, const char* key, Json& weir) {
    using List = VkResult (*)(VkPhysicalDevice, std::uint32_t*, void*);
    const auto list = reinterpret_cast<List>(all_.get(all_.instance, function));
    const weir_struct* as = find_struct(struct_name);
    std::uint32_t count = 0;
    if (list == nullptr || as == nullptr || list(device_, &count, nullptr) < 0 || count > 4096) {
      return;
    }
    std::vector<char> bytes(std::size_t{count} * as->size);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(bytes.data() + i * as->size, &as->type, sizeof as->type);
    }
    if (count == 0 || list(device_, &count, bytes.data()) < 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      weir[key].push_back(struct_of(*as, bytes.data() + i * as->size));
    }
  }

  const VulkanDevices& all_;
  VkPhysicalDevice device_;
  std::vector<std::uint64_t> room_;  // of the struct that was asked for last
};

}  // namespace

Result<Json> describe_vulkan_devices() {
  WEIR_TRY(const VulkanDevices all, open_vulkan(k_program, VK_API_VERSION_1_3));
  if (all.call.vkGetPhysicalDeviceProperties2 == nullptr ||
      all.call.vkGetPhysicalDeviceFeatures2 == nullptr) {
    return fail(Code::unavailable, "this machine's Vulkan loader is older than 1.1");
  }
  Json out = Json::array();
  for (VkPhysicalDevice device : all.devices) out.push_back(Description(all, device).whole());
  return out;
}

}  // namespace weir::probes
