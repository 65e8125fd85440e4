// A Vulkan driver in front of another one, whose compiler goes wrong at some shaders:
//   BROKEN_COMPILER_BEFORE  the library of the real driver
//   BROKEN_COMPILER         "crash:1204,hang:980": what it does at SPIR-V of so many bytes
// "crash", "hang", "eat" (memory, bit by bit), "grab" (more of it than there is, at once).
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace {

template <class Function>
Function of_driver(const char* name) {
  static void* const k_driver = dlopen(std::getenv("BROKEN_COMPILER_BEFORE"), RTLD_NOW);
  if (k_driver == nullptr) std::fprintf(stderr, "broken compiler: %s\n", dlerror());
  return reinterpret_cast<Function>(dlsym(k_driver, name));
}

PFN_vkGetDeviceProcAddr next_device_function;
PFN_vkCreateShaderModule next_module;
PFN_vkCreateComputePipelines next_pipelines;
std::map<VkShaderModule, std::size_t> sizes;

VkResult create_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                       const VkAllocationCallbacks* allocator, VkShaderModule* module) {
  const VkResult result = next_module(device, info, allocator, module);
  sizes[*module] = info->codeSize;
  return result;
}

void go_wrong(const std::string& how) {
  if (how == "crash") raise(SIGSEGV);
  while (how == "hang") pause();
  constexpr std::size_t k_piece = std::size_t{8} << 20;
  while (how == "eat") std::memset(std::malloc(k_piece), 1, k_piece);
  if (how == "grab") delete[] new char[std::size_t{1} << 46];
}

VkResult create_pipelines(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                          const VkComputePipelineCreateInfo* infos,
                          const VkAllocationCallbacks* allocator, VkPipeline* out) {
  const std::string all = std::string(std::getenv("BROKEN_COMPILER")) + ",";
  const std::string size = ":" + std::to_string(sizes[infos->stage.module]) + ",";
  if (const auto end = all.find(size); end != std::string::npos) {
    const auto begin = end == 0 ? 0 : all.rfind(',', end) + 1;
    go_wrong(all.substr(begin, end - begin));
  }
  return next_pipelines(device, cache, count, infos, allocator, out);
}

PFN_vkVoidFunction device_function(VkDevice device, const char* name) {
  const auto next = next_device_function(device, name);
  if (std::strcmp(name, "vkCreateShaderModule") == 0) {
    next_module = reinterpret_cast<PFN_vkCreateShaderModule>(next);
    return reinterpret_cast<PFN_vkVoidFunction>(create_module);
  }
  if (std::strcmp(name, "vkCreateComputePipelines") == 0) {
    next_pipelines = reinterpret_cast<PFN_vkCreateComputePipelines>(next);
    return reinterpret_cast<PFN_vkVoidFunction>(create_pipelines);
  }
  return next;
}

}  // namespace

extern "C" {
[[gnu::visibility("default")]] VkResult vk_icdNegotiateLoaderICDInterfaceVersion(
    std::uint32_t* version) {
  using Negotiate = VkResult (*)(std::uint32_t*);
  return of_driver<Negotiate>("vk_icdNegotiateLoaderICDInterfaceVersion")(version);
}
[[gnu::visibility("default")]] PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance,
                                                                            const char* name) {
  const auto next = of_driver<PFN_vkGetInstanceProcAddr>("vk_icdGetInstanceProcAddr");
  if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return next(instance, name);
  next_device_function = reinterpret_cast<PFN_vkGetDeviceProcAddr>(next(instance, name));
  return reinterpret_cast<PFN_vkVoidFunction>(device_function);
}
[[gnu::visibility("default")]] PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(
    VkInstance instance, const char* name) {
  return of_driver<PFN_vkGetInstanceProcAddr>("vk_icdGetPhysicalDeviceProcAddr")(instance, name);
}
}
