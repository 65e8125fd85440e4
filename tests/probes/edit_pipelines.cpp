// VK_LAYER_TEST_edit_pipelines: changes the code of an engine's kernels on its way to the driver,
// as a commit to a shader would: same names, same dispatches. An implicit layer: it stands in front
// of weir's. XDG_DATA_HOME names the folder that it is found below, and
//
//   EDIT_PIPELINES_ENABLE=1    switches it on
//   EDIT_PIPELINES_NAMES=FILE  without EDIT_PIPELINES: appends "HASH NAME" for each pipeline that
//                              the program names, after it made it. With it: read
//   EDIT_PIPELINES="NAME: EDIT, EDIT; NAME: EDIT"
//                              changes those that had this name then. Edits: "constant 2=128",
//                              "subgroup 32", "code FILE" (SPIR-V that takes its place) and
//                              those of edit_spirv.hpp
//   EDIT_PIPELINES_DUMP=DIR    where edited SPIR-V is left, as NAME.spv
//   EDIT_SUBMITS=allocate      before each submission memory is taken, and given back
//   EDIT_SUBMITS="pipeline N"  before the Nth one a pipeline is made
//
// One instance and one device at work is all it is made for. An edit that changes nothing is told
// of on standard error.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "tests/probes/edit_spirv.hpp"

namespace {

using weir::edit::Words;

// The functions below.
PFN_vkGetInstanceProcAddr next_get_instance;
PFN_vkGetDeviceProcAddr next_get_device;
PFN_vkCreateDevice next_create_device;
PFN_vkCreateShaderModule next_create_module;
PFN_vkDestroyShaderModule next_destroy_module;
PFN_vkCreateComputePipelines next_create_pipelines;
PFN_vkSetDebugUtilsObjectNameEXT next_name_object;
PFN_vkQueueSubmit next_submit;
PFN_vkAllocateMemory next_allocate;
PFN_vkFreeMemory next_free;
PFN_vkCreatePipelineLayout next_create_layout;

VkDevice the_device;

std::mutex lock;
std::map<VkShaderModule, Words> modules;
std::map<VkPipeline, std::string> hashes;  // hashes of the code as it came

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    const std::size_t first = part.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    parts.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
  }
  return parts;
}

struct Plan {
  std::map<std::string, std::string> names;               // hash -> name, of an earlier run
  std::map<std::string, std::vector<std::string>> edits;  // by name
  bool lists = false;

  Plan() {
    const std::string text = variable("EDIT_PIPELINES");
    lists = text.empty();
    for (const std::string& entry : split(text, ';')) {
      const std::size_t at = entry.find(':');
      if (at != std::string::npos) edits[entry.substr(0, at)] = split(entry.substr(at + 1), ',');
    }
    std::ifstream file(variable("EDIT_PIPELINES_NAMES"));
    for (std::string hash, name; file >> hash >> name;) names[hash] = name;
  }
};
const Plan& plan() {
  static const Plan k_plan;
  return k_plan;
}

// A stage as the program asked for it, copied so that it can be changed.
struct Stage {
  VkPipelineShaderStageCreateInfo info;
  Words code;
  VkSpecializationInfo special{};
  std::vector<VkSpecializationMapEntry> entries;
  std::string data;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};

  Stage(const VkPipelineShaderStageCreateInfo& from, Words words)
      : info(from), code(std::move(words)) {
    if (from.pSpecializationInfo != nullptr) {
      const VkSpecializationInfo& given = *from.pSpecializationInfo;
      entries.assign(given.pMapEntries, given.pMapEntries + given.mapEntryCount);
      data.assign(static_cast<const char*>(given.pData), given.dataSize);
    }
    for (auto* at = static_cast<const VkBaseInStructure*>(from.pNext); at != nullptr;
         at = at->pNext) {
      if (at->sType == VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO) {
        std::memcpy(&subgroup, at, sizeof subgroup);
      }
    }
  }

  [[nodiscard]] std::string hash() const {
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a
    const auto add = [&](const void* bytes, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) {
        hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211U;
      }
    };
    add(code.data(), code.size() * 4);
    for (const auto& entry : entries) {
      add(&entry.constantID, sizeof entry.constantID);
      add(data.data() + entry.offset, entry.size);
    }
    add(&subgroup.requiredSubgroupSize, sizeof subgroup.requiredSubgroupSize);
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
  }

  bool set_constant(std::uint32_t id, std::uint32_t value) {
    auto entry = std::find_if(entries.begin(), entries.end(),
                              [&](const auto& constant) { return constant.constantID == id; });
    if (entry == entries.end()) {
      entries.push_back({id, static_cast<std::uint32_t>(data.size()), 4});
      data.append(4, '\0');
      entry = entries.end() - 1;
    }
    const bool is_changed = std::memcmp(data.data() + entry->offset, &value, 4) != 0;
    std::memcpy(data.data() + entry->offset, &value, 4);
    return is_changed;
  }

  bool edit(const std::string& how) {
    std::vector<std::string> words = split(how, ' ');
    if (words[0] == "constant") {
      const std::vector<std::string> both = split(words.at(1), '=');
      return set_constant(weir::edit::parse_number(both.at(0)),
                          weir::edit::parse_number(both.at(1)));
    }
    if (words[0] == "subgroup") {
      const std::uint32_t was = subgroup.requiredSubgroupSize;
      subgroup.requiredSubgroupSize = weir::edit::parse_number(words.at(1));
      return subgroup.requiredSubgroupSize != was;
    }
    if (words[0] == "code") {
      const Words was = code;
      std::ifstream file(words.at(1), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      code.resize(bytes.size() / 4);
      std::memcpy(code.data(), bytes.data(), code.size() * 4);
      return code != was;
    }
    weir::edit::Module module(code);
    const bool changed = weir::edit::apply(module, words);
    code = module.words();
    return changed;
  }

  // Behind it, the info points at what is kept here.
  void finish() {
    special = {static_cast<std::uint32_t>(entries.size()), entries.data(), data.size(),
               data.data()};
    info.pSpecializationInfo = entries.empty() ? nullptr : &special;
    // Other structs of the chain are kept after it, but not a second one of its type.
    const auto* first = static_cast<const VkBaseInStructure*>(info.pNext);
    subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
    const bool was_first = first != nullptr && first->sType == subgroup.sType;
    subgroup.pNext =
        was_first ? const_cast<VkBaseInStructure*>(first->pNext) : const_cast<void*>(info.pNext);
    info.pNext = subgroup.requiredSubgroupSize == 0 ? subgroup.pNext : &subgroup;
  }
};

VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                                             const VkAllocationCallbacks* allocator,
                                             VkShaderModule* out) {
  const VkResult result = next_create_module(device, info, allocator, out);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard<std::mutex> locked(lock);
  modules[*out].assign(info->pCode, info->pCode + info->codeSize / 4);
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice device, VkShaderModule module,
                                          const VkAllocationCallbacks* allocator) {
  next_destroy_module(device, module, allocator);
  const std::lock_guard<std::mutex> locked(lock);
  modules.erase(module);
}

VkResult create_pipeline(VkDevice device, VkPipelineCache cache,
                         const VkComputePipelineCreateInfo& given,
                         const VkAllocationCallbacks* allocator, VkPipeline* out) {
  Words words;
  {
    const std::lock_guard<std::mutex> locked(lock);
    words = modules[given.stage.module];
  }
  VkComputePipelineCreateInfo info = given;
  Stage stage(info.stage, words);
  const std::string hash = stage.hash();
  const auto named = plan().names.find(hash);
  const std::string name = named == plan().names.end() ? "" : named->second;
  const auto edits = plan().edits.find(name);
  VkShaderModule edited = VK_NULL_HANDLE;
  if (edits != plan().edits.end()) {
    for (const std::string& edit : edits->second) {
      if (!stage.edit(edit)) {
        std::fprintf(stderr, "edit_pipelines: nothing to do for \"%s\" in %s\n", edit.c_str(),
                     name.c_str());
      }
    }
    const std::string dump = variable("EDIT_PIPELINES_DUMP");
    if (!dump.empty()) {
      std::ofstream(dump + "/" + name + ".spv", std::ios::binary)
          .write(reinterpret_cast<const char*>(stage.code.data()),
                 static_cast<std::streamsize>(stage.code.size() * 4));
    }
    stage.finish();
    if (stage.code != words) {
      VkShaderModuleCreateInfo module{};
      module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
      module.codeSize = stage.code.size() * 4;
      module.pCode = stage.code.data();
      const VkResult created = next_create_module(device, &module, allocator, &edited);
      if (created != VK_SUCCESS) return created;
      stage.info.module = edited;
    }
    info.stage = stage.info;
  }
  const VkResult result = next_create_pipelines(device, cache, 1, &info, allocator, out);
  if (edited != VK_NULL_HANDLE) next_destroy_module(device, edited, allocator);
  const std::lock_guard<std::mutex> locked(lock);
  hashes[*out] = hash;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
                                                std::uint32_t count,
                                                const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks* allocator,
                                                VkPipeline* out) {
  VkResult result = VK_SUCCESS;
  for (std::uint32_t i = 0; i < count; ++i) {
    const VkResult created = create_pipeline(device, cache, infos[i], allocator, &out[i]);
    if (created != VK_SUCCESS) result = created;
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL name_object(VkDevice device,
                                           const VkDebugUtilsObjectNameInfoEXT* info) {
  if (plan().lists && info->objectType == VK_OBJECT_TYPE_PIPELINE) {
    const std::lock_guard<std::mutex> locked(lock);
    const auto match = hashes.find(reinterpret_cast<VkPipeline>(info->objectHandle));
    std::ofstream file(variable("EDIT_PIPELINES_NAMES"), std::ios::app);
    if (match != hashes.end()) file << match->second << " " << info->pObjectName << "\n";
  }
  return next_name_object(device, info);
}

// void main() {}, for compute.
constexpr std::uint32_t k_empty_kernel[] = {
    0x07230203, 0x00010000, 0, 5,          0,         0x00020011, 1,          0x0003000e, 0, 1,
    0x0005000f, 5,          3, 0x6e69616d, 0,         0x00060010, 3,          17,         1, 1,
    1,          0x00020013, 1, 0x00030021, 2,         1,          0x00050036, 1,          3, 0,
    2,          0x000200f8, 4, 0x000100fd, 0x00010038};

void make_pipeline() {
  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = sizeof k_empty_kernel;
  code.pCode = k_empty_kernel;
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  VkPipeline out{};
  next_create_module(the_device, &code, nullptr, &info.stage.module);
  next_create_layout(the_device, &layout, nullptr, &info.layout);
  next_create_pipelines(the_device, VK_NULL_HANDLE, 1, &info, nullptr, &out);
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos,
                                      VkFence fence) {
  static const std::vector<std::string> k_words = split(variable("EDIT_SUBMITS"), ' ');
  static std::atomic<std::uint32_t> submits{0};
  const std::uint32_t number = ++submits;
  if (!k_words.empty() && k_words[0] == "allocate") {
    VkMemoryAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = 4096;
    VkDeviceMemory memory{};
    if (next_allocate(the_device, &info, nullptr, &memory) == VK_SUCCESS) {
      next_free(the_device, memory, nullptr);
    }
  }
  if (k_words.size() == 2 && number == weir::edit::parse_number(k_words[1])) make_pipeline();
  return next_submit(queue, count, infos, fence);
}

template <class Info>
Info* link_in(const void* chain, VkStructureType type) {
  for (auto at = static_cast<const Info*>(chain); at != nullptr;
       at = static_cast<const Info*>(at->pNext)) {
    if (at->sType == type && at->function == VK_LAYER_LINK_INFO) return const_cast<Info*>(at);
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* out) {
  auto* link = link_in<VkLayerInstanceCreateInfo>(info->pNext,
                                                  VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  next_get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(next_get_instance(nullptr, "vkCreateInstance"));
  const VkResult result = create(info, allocator, out);
  if (result != VK_SUCCESS) return result;
  next_create_device =
      reinterpret_cast<PFN_vkCreateDevice>(next_get_instance(*out, "vkCreateDevice"));
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* out) {
  auto* link =
      link_in<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = next_create_device(physical, info, allocator, out);
  if (result != VK_SUCCESS) return result;
  next_get_device = get;
  const auto fetch = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(get(*out, name));
  };
  fetch(next_create_module, "vkCreateShaderModule");
  fetch(next_destroy_module, "vkDestroyShaderModule");
  fetch(next_create_pipelines, "vkCreateComputePipelines");
  fetch(next_name_object, "vkSetDebugUtilsObjectNameEXT");
  fetch(next_submit, "vkQueueSubmit");
  fetch(next_allocate, "vkAllocateMemory");
  fetch(next_free, "vkFreeMemory");
  fetch(next_create_layout, "vkCreatePipelineLayout");
  the_device = *out;
  return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice device, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance(VkInstance instance, const char* name);

template <class Function>
PFN_vkVoidFunction as_void(Function function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

PFN_vkVoidFunction ours(const char* name) {
  const std::map<std::string, PFN_vkVoidFunction> all = {
      {"vkCreateShaderModule", as_void(&create_module)},
      {"vkDestroyShaderModule", as_void(&destroy_module)},
      {"vkCreateComputePipelines", as_void(&create_pipelines)},
      {"vkQueueSubmit", as_void(&submit)},
      {"vkSetDebugUtilsObjectNameEXT", as_void(&name_object)}};
  const auto match = all.find(name);
  return match == all.end() ? nullptr : match->second;
}

PFN_vkVoidFunction get_device(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return as_void(&get_device);
  const PFN_vkVoidFunction below = next_get_device(device, name);
  const PFN_vkVoidFunction own = ours(name);
  return below != nullptr && own != nullptr ? own : below;
}

PFN_vkVoidFunction get_instance(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) return as_void(&get_instance);
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return as_void(&get_device);
  if (std::strcmp(name, "vkCreateInstance") == 0) return as_void(&create_instance);
  if (std::strcmp(name, "vkCreateDevice") == 0) return as_void(&create_device);
  if (instance == nullptr) return nullptr;
  const PFN_vkVoidFunction below = next_get_instance(instance, name);
  const PFN_vkVoidFunction own = ours(name);
  return below != nullptr && own != nullptr ? own : below;
}

}  // namespace

extern "C" VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = get_instance;
  version->pfnGetDeviceProcAddr = get_device;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
