// Whole descriptions of the Vulkan devices (weir-devices --describe), by the table of structs.
//
// Each struct is asked for alone, filled with a pattern first: what a driver leaves as it was it
// does not know, and is not described. UUIDs and LUIDs are left out.
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#include "gate/probes/devices/print.h"
#include "gate/probes/inject/vulkan/class.h"
#include "gate/probes/twin/structs.h"

namespace weir_probe {
namespace {

constexpr unsigned char k_pattern = 0xa5;

bool ends_with(const char* name, const char* end) {
  const size_t length = strlen(name), tail = strlen(end);
  return length >= tail && strcmp(name + length - tail, end) == 0;
}

bool is_identity(const char* name) {
  return ends_with(name, "UUID") || ends_with(name, "LUID") || ends_with(name, "LUIDValid");
}

const weir_struct* struct_named(const char* name) {
  for (uint32_t i = 0; i < weir_struct_count; ++i) {
    if (strcmp(weir_structs[i].name, name) == 0) return &weir_structs[i];
  }
  return nullptr;
}

template <class T>
T load(const unsigned char* at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}

void print_flags(const weir_field& field, uint64_t bits) {
  printf("[");
  bool first = true;
  if (field.of >= 0) {
    const weir_enum& names = weir_enums[field.of];
    for (uint32_t i = 0; i < names.count; ++i) {
      const uint64_t bit = static_cast<uint64_t>(names.values[i].value);
      // One bit a name, and the first of several names for it.
      if (bit == 0 || (bit & (bit - 1)) != 0 || (bits & bit) == 0) continue;
      printf("%s\"%s\"", first ? "" : ", ", names.values[i].name);
      first = false;
      bits &= ~bit;
    }
  }
  if (bits != 0) printf("%s%llu", first ? "" : ", ", static_cast<unsigned long long>(bits));
  printf("]");
}

void print_enum(const weir_field& field, int32_t value) {
  const weir_enum& names = weir_enums[field.of];
  for (uint32_t i = 0; i < names.count; ++i) {
    if (names.values[i].value != value) continue;
    printf("\"%s\"", names.values[i].name);
    return;
  }
  printf("%d", value);
}

void print_struct(const weir_struct& as, const unsigned char* bytes);

void print_value(const weir_field& field, const unsigned char* at) {
  switch (field.kind) {
    case WEIR_FIELD_BOOL:
      printf(load<uint32_t>(at) != 0 ? "true" : "false");
      return;
    case WEIR_FIELD_SIGNED:
      printf("%d", load<int32_t>(at));
      return;
    case WEIR_FIELD_FLOAT: {
      const float value = load<float>(at);
      printf("%.9g", value - value == 0 ? static_cast<double>(value) : 0.0);  // JSON has no NaN
      return;
    }
    case WEIR_FIELD_ENUM:
      print_enum(field, load<int32_t>(at));
      return;
    case WEIR_FIELD_FLAGS:
      print_flags(field, field.element_size == 8 ? load<uint64_t>(at) : load<uint32_t>(at));
      return;
    case WEIR_FIELD_STRUCT:
      print_struct(weir_structs[field.of], at);
      return;
    default:
      break;
  }
  const uint64_t value = field.element_size == 8   ? load<uint64_t>(at)
                         : field.element_size == 4 ? load<uint32_t>(at)
                                                   : *at;
  printf("%llu", static_cast<unsigned long long>(value));
}

void print_struct(const weir_struct& as, const unsigned char* bytes) {
  printf("{");
  bool first = true;
  for (uint32_t i = 0; i < as.field_count; ++i) {
    const weir_field& field = as.fields[i];
    if (is_identity(field.name)) continue;
    printf("%s\"%s\": ", first ? "" : ", ", field.name);
    first = false;
    if (field.kind == WEIR_FIELD_TEXT) {
      char text[512] = {};
      const size_t size = field.count < sizeof text ? field.count : sizeof text;
      memcpy(text, bytes + field.offset, size - 1);
      print_string(text);
      continue;
    }
    if (!field.array) {
      print_value(field, bytes + field.offset);
      continue;
    }
    printf("[");
    for (uint32_t j = 0; j < field.count; ++j) {
      if (j > 0) printf(", ");
      print_value(field, bytes + field.offset + j * field.element_size);
    }
    printf("]");
  }
  printf("}");
}

struct Functions {
  PFN_vkGetPhysicalDeviceProperties2 properties;
  PFN_vkGetPhysicalDeviceFeatures2 features;
  PFN_vkGetPhysicalDeviceMemoryProperties memory;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
  PFN_vkEnumerateDeviceExtensionProperties extensions;
  PFN_vkGetPhysicalDeviceFormatProperties formats;
};

// The largest struct of the table fits.
union Room {
  uint64_t aligned;
  unsigned char bytes[8192];
};
Room g_room;

// Whether the driver wrote it. `room` holds it then, without what it began with.
bool ask(const Functions& ask_for, VkPhysicalDevice device, const weir_struct& one) {
  if (one.size > sizeof g_room.bytes || one.size < 16) return false;
  memset(g_room.bytes, k_pattern, one.size);
  memset(g_room.bytes, 0, 16);
  memcpy(g_room.bytes, &one.type, sizeof one.type);
  if (one.chain == WEIR_CHAIN_FEATURES) {
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = g_room.bytes;
    ask_for.features(device, &features);
  } else {
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = g_room.bytes;
    ask_for.properties(device, &properties);
  }
  for (uint32_t i = 16; i < one.size; ++i) {
    if (g_room.bytes[i] != k_pattern) return true;
  }
  return false;
}

void print_chain(const Functions& ask_for, VkPhysicalDevice device, weir_chain chain) {
  for (uint32_t i = 0; i < weir_struct_count; ++i) {
    const weir_struct& one = weir_structs[i];
    if (one.chain != chain || !ask(ask_for, device, one)) continue;
    printf(",\n   \"%s\": ", one.name);
    print_struct(one, g_room.bytes);
  }
}

void print_plain(const char* name, const void* bytes) {
  const weir_struct* as = struct_named(name);
  if (as == nullptr) {
    printf("{}");
  } else {
    print_struct(*as, static_cast<const unsigned char*>(bytes));
  }
}

// Cooperative matrices of either kind: structs of the table in a list that a function fills.
void print_matrices(PFN_vkGetInstanceProcAddr get, VkInstance instance, VkPhysicalDevice device,
                    const char* function, const char* struct_name, const char* key) {
  using List = VkResult (*)(VkPhysicalDevice, uint32_t*, void*);
  const List list = reinterpret_cast<List>(get(instance, function));
  const weir_struct* as = struct_named(struct_name);
  uint32_t count = 0;
  if (list == nullptr || as == nullptr || list(device, &count, nullptr) < 0 || count == 0 ||
      count > 4096) {
    return;
  }
  auto* bytes = static_cast<unsigned char*>(calloc(count, as->size));
  if (bytes == nullptr) return;
  for (uint32_t i = 0; i < count; ++i)
    memcpy(bytes + static_cast<size_t>(i) * as->size, &as->type, sizeof as->type);
  if (list(device, &count, bytes) >= 0) {
    printf(",\n  \"%s\": [", key);
    for (uint32_t i = 0; i < count; ++i) {
      printf("%s\n   ", i == 0 ? "" : ",");
      print_struct(*as, bytes + static_cast<size_t>(i) * as->size);
    }
    printf("]");
  }
  free(bytes);
}

void print_memory(const Functions& ask_for, VkPhysicalDevice device) {
  VkPhysicalDeviceMemoryProperties memory{};
  ask_for.memory(device, &memory);
  printf("\"memory\": {\"heaps\": [");
  const weir_struct* heap = struct_named("VkMemoryHeap");
  const weir_struct* type = struct_named("VkMemoryType");
  if (heap == nullptr || type == nullptr) return;
  // By their places in the table: size, flags; propertyFlags, heapIndex.
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    printf("%s{\"size\": %llu, \"flags\": ", i == 0 ? "" : ", ",
           static_cast<unsigned long long>(memory.memoryHeaps[i].size));
    print_flags(heap->fields[1], memory.memoryHeaps[i].flags);
    printf("}");
  }
  printf("], \"types\": [");
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    printf("%s{\"heap\": %u, \"flags\": ", i == 0 ? "" : ", ", memory.memoryTypes[i].heapIndex);
    print_flags(type->fields[0], memory.memoryTypes[i].propertyFlags);
    printf("}");
  }
  printf("]}");
}

void print_formats(const Functions& ask_for, VkPhysicalDevice device) {
  const weir_enum* formats = nullptr;
  for (uint32_t i = 0; i < weir_enum_count; ++i) {
    if (strcmp(weir_enums[i].name, "VkFormat") == 0) formats = &weir_enums[i];
  }
  bool first = true;
  for (uint32_t i = 0; formats != nullptr && i < formats->count; ++i) {
    bool seen = false;  // under another name
    for (uint32_t j = 0; j < i && !seen; ++j)
      seen = formats->values[j].value == formats->values[i].value;
    if (seen) continue;
    VkFormatProperties properties{};
    ask_for.formats(device, static_cast<VkFormat>(formats->values[i].value), &properties);
    if ((properties.linearTilingFeatures | properties.optimalTilingFeatures |
         properties.bufferFeatures) == 0)
      continue;
    printf("%s\n   \"%s\": {\"VkFormatProperties\": ", first ? "" : ",", formats->values[i].name);
    print_plain("VkFormatProperties", &properties);
    printf("}");
    first = false;
  }
}

void describe(PFN_vkGetInstanceProcAddr get, VkInstance instance, const Functions& ask_for,
              VkPhysicalDevice device) {
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  ask_for.features(device, &features);
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  ask_for.properties(device, &properties);
  uint32_t extension_count = 0;
  VkExtensionProperties* extensions = list_extensions(ask_for.extensions, device, &extension_count);
  bool matrices = false, flexible = false;
  printf(" {\"capabilities\": {\"device\": {\"extensions\": {");
  for (uint32_t i = 0; extensions != nullptr && i < extension_count; ++i) {
    printf("%s", i == 0 ? "" : ", ");
    print_string(extensions[i].extensionName);
    printf(": %u", extensions[i].specVersion);
    matrices |= strcmp(extensions[i].extensionName, "VK_KHR_cooperative_matrix") == 0;
    flexible |= strcmp(extensions[i].extensionName, "VK_NV_cooperative_matrix2") == 0;
  }
  free(extensions);
  printf("},\n  \"features\": {\"VkPhysicalDeviceFeatures\": ");
  print_plain("VkPhysicalDeviceFeatures", &features.features);
  print_chain(ask_for, device, WEIR_CHAIN_FEATURES);
  printf("},\n  \"properties\": {\"VkPhysicalDeviceProperties\": ");
  print_plain("VkPhysicalDeviceProperties", &properties.properties);
  print_chain(ask_for, device, WEIR_CHAIN_PROPERTIES);
  printf("},\n  \"queueFamiliesProperties\": [");
  VkQueueFamilyProperties families[32];
  uint32_t family_count = 32;
  ask_for.families(device, &family_count, families);
  for (uint32_t i = 0; i < family_count; ++i) {
    printf("%s{\"VkQueueFamilyProperties\": ", i == 0 ? "" : ", ");
    print_plain("VkQueueFamilyProperties", &families[i]);
    printf("}");
  }
  printf("],\n  \"formats\": {");
  print_formats(ask_for, device);
  printf("}}},\n  \"weir\": {\"schema\": \"weir.device/1\", \"source\": \"recorded\",\n  ");
  print_memory(ask_for, device);
  if (matrices) {
    print_matrices(get, instance, device, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
                   "VkCooperativeMatrixPropertiesKHR", "cooperative_matrices");
  }
  if (flexible) {
    print_matrices(get, instance, device,
                   "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV",
                   "VkCooperativeMatrixFlexibleDimensionsPropertiesNV", "flexible_matrices");
  }
  printf("}}");
}

}  // namespace

const char* describe_vulkan_devices() {
  VulkanDevices all;
  if (const char* error = open_vulkan(&all)) return error;
  Functions ask_for;
  const auto fetch = [&](auto* into, const char* name) {
    *into = reinterpret_cast<decltype(+*into)>(all.get(all.instance, name));
    return *into != nullptr;
  };
  if (!fetch(&ask_for.properties, "vkGetPhysicalDeviceProperties2") ||
      !fetch(&ask_for.features, "vkGetPhysicalDeviceFeatures2") ||
      !fetch(&ask_for.memory, "vkGetPhysicalDeviceMemoryProperties") ||
      !fetch(&ask_for.families, "vkGetPhysicalDeviceQueueFamilyProperties") ||
      !fetch(&ask_for.extensions, "vkEnumerateDeviceExtensionProperties") ||
      !fetch(&ask_for.formats, "vkGetPhysicalDeviceFormatProperties")) {
    return "this machine's Vulkan loader is older than 1.1";
  }
  for (uint32_t i = 0; i < all.count; ++i) {
    printf("%s\n", i == 0 ? "" : ",");
    describe(all.get, all.instance, ask_for, all.devices[i]);
  }
  return nullptr;
}

}  // namespace weir_probe
