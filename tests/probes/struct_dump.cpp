// Prints the answers of the first Vulkan device itself, byte for byte, asked through the loader:
// "KEY HEX" lines. KEY is the number of a structure type, or a name if it has none.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include "gate/probes/twin/structs.h"

#include "tests/probes/vulkan_program.hpp"

namespace {

void print(const char* key, const void* bytes, std::size_t size) {
  std::printf("%s ", key);
  for (std::size_t i = 0; i < size; ++i)
    std::printf("%02x", static_cast<const unsigned char*>(bytes)[i]);
  std::printf("\n");
}

}  // namespace

int main() {
  using weir::probes::check;
  const weir::probes::Vulkan vulkan;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  vkGetPhysicalDeviceProperties2(vulkan.physical, &properties);
  print("properties", &properties.properties, sizeof properties.properties);
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  vkGetPhysicalDeviceFeatures2(vulkan.physical, &features);
  print("features", &features.features, sizeof features.features);
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(vulkan.physical, &memory);
  print("memory", &memory, sizeof memory);
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(vulkan.physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(vulkan.physical, &count, families.data());
  print("families", families.data(), sizeof families[0] * count);
  for (std::uint32_t i = 0; i < weir_struct_count; ++i) {
    const weir_struct& entry = weir_structs[i];
    if (entry.chain == WEIR_CHAIN_NONE) continue;
    std::vector<std::uint64_t> room((entry.size + 7) / 8);
    std::memcpy(room.data(), &entry.type, sizeof entry.type);
    if (entry.chain == WEIR_CHAIN_FEATURES) {
      features.pNext = room.data();
      vkGetPhysicalDeviceFeatures2(vulkan.physical, &features);
    } else {
      properties.pNext = room.data();
      vkGetPhysicalDeviceProperties2(vulkan.physical, &properties);
    }
    print(std::to_string(entry.type).c_str(), room.data(), entry.size);
  }
  std::fflush(stdout);
  std::_Exit(0);
}
