#include "gate/probes/read/twin_defaults.hpp"

#include <algorithm>

namespace weir::probes {
namespace {

constexpr std::size_t k_most_heaps = 16, k_most_types = 32;
constexpr std::uint64_t k_gibibyte = std::uint64_t{1} << 30;

const Json* at(const Json* json, const char* key) {
  if (json == nullptr || !json->is_object()) return nullptr;
  const auto found = json->find(key);
  return found == json->end() || found->is_null() ? nullptr : &*found;
}

// One object of Vulkan's for each in a list: its keys from weir's shorter ones. What is no object
// becomes an empty one.
Json list_of(const Json* list, std::initializer_list<std::pair<const char*, const char*>> keys) {
  Json out = Json::array();
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& entry : *list) {
    Json one = Json::object();
    for (const auto& [from, to] : keys) {
      if (const Json* value = at(&entry, from)) one[to] = *value;
    }
    out.push_back(std::move(one));
  }
  return out;
}

bool fits(const Json& heaps, const Json& types) {
  return !heaps.empty() && !types.empty() &&
         std::all_of(types.begin(), types.end(), [&](const Json& type) {
           const Json* heap = at(&type, "heapIndex");
           return heap != nullptr && heap->is_number_unsigned() &&
                  heap->get<std::uint64_t>() < heaps.size();
         });
}

void stand_in(Json& heaps, Json& types) {
  const Json seen = {"VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT", "VK_MEMORY_PROPERTY_HOST_COHERENT_BIT"};
  const Json cached = {"VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT",
                       "VK_MEMORY_PROPERTY_HOST_COHERENT_BIT",
                       "VK_MEMORY_PROPERTY_HOST_CACHED_BIT"};
  const Json local = Json::array({"VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT"});
  heaps = Json::array();
  heaps.push_back(
      {{"size", 8 * k_gibibyte}, {"flags", Json::array({"VK_MEMORY_HEAP_DEVICE_LOCAL_BIT"})}});
  heaps.push_back({{"size", 16 * k_gibibyte}, {"flags", Json::array()}});
  types = Json::array();
  types.push_back({{"heapIndex", 0U}, {"propertyFlags", local}});
  types.push_back({{"heapIndex", 1U}, {"propertyFlags", seen}});
  types.push_back({{"heapIndex", 1U}, {"propertyFlags", cached}});
}

}  // namespace

const Json& least_limits() {
  static const Json k_least{
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
  };
  return k_least;
}

Json memory_of(const Json* weir_memory, const Json* vulkan_memory, Warnings& warnings) {
  Json heaps, types;
  if (weir_memory != nullptr) {
    heaps = list_of(at(weir_memory, "heaps"), {{"size", "size"}, {"flags", "flags"}});
    types = list_of(at(weir_memory, "types"), {{"heap", "heapIndex"}, {"flags", "propertyFlags"}});
  } else {
    heaps = list_of(at(vulkan_memory, "memoryHeaps"), {{"size", "size"}, {"flags", "flags"}});
    types = list_of(at(vulkan_memory, "memoryTypes"),
                    {{"heapIndex", "heapIndex"}, {"propertyFlags", "propertyFlags"}});
  }
  if (heaps.size() > k_most_heaps || types.size() > k_most_types) {
    warnings.add("memory: more than 16 heaps or 32 types");
    while (heaps.size() > k_most_heaps) heaps.erase(heaps.size() - 1);
    while (types.size() > k_most_types) types.erase(types.size() - 1);
  }
  if (!fits(heaps, types)) {
    warnings.add("memory: not described; 8 GiB of the device's and 16 GiB of the host's stand in");
    stand_in(heaps, types);
  }
  Json out = {{"memoryHeapCount", heaps.size()}, {"memoryTypeCount", types.size()}};
  out["memoryHeaps"] = std::move(heaps);
  out["memoryTypes"] = std::move(types);
  return out;
}

}  // namespace weir::probes
