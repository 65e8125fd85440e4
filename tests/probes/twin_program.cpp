// Plays what a twin must bear, for twin_driver_test.cpp.
//
//   twin_program record NAME PATH   describes the first device; NAME "discrete": as a card of 16
//   GiB
#include <map>
#include <string>

#include "tests/probes/twin_blob.hpp"
#include "tests/probes/vulkan_program.hpp"

namespace weir::probes {
namespace {

// Memory of its own, a small open window, and the host's, as discrete cards have it.
void make_discrete(const Change& change) {
  constexpr VkMemoryPropertyFlags k_host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  change.properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  std::strcpy(change.properties->deviceName, "Twin of a card");
  VkPhysicalDeviceMemoryProperties& memory = *change.memory;
  memory = {};
  memory.memoryHeapCount = 2;
  memory.memoryHeaps[0] = {VkDeviceSize{16} << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  memory.memoryHeaps[1] = {VkDeviceSize{8} << 30, 0};
  memory.memoryTypeCount = 3;
  memory.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  memory.memoryTypes[1] = {k_host, 1};
  memory.memoryTypes[2] = {k_host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1};
}

int record(const std::string& name, const std::string& path) {
  const Vulkan vk;
  const std::string blob = describe(vk.physical, name, [&](const Change& change) {
    if (name == "discrete") make_discrete(change);
  });
  std::ofstream(path, std::ios::binary) << blob;
  return 0;
}

}  // namespace
}  // namespace weir::probes

int main(int argc, char** argv) {
  using namespace weir::probes;
  if (argc == 4 && std::string(argv[1]) == "record") return record(argv[2], argv[3]);
  return 2;
}
