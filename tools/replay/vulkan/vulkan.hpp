// Vulkan's functions, from the loader, and a device as near as possible to a recorded one.
//
// The loader is opened at run time: a machine without one has no such devices, which is an answer.
// Nothing is destroyed at the end but by the end of the process: drivers that crash do so there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include "gate/probes/read/read_kernels.hpp"

#include "tools/replay/program/program.hpp"

namespace weir::replay {

#define WEIR_REPLAY_INSTANCE_FUNCTIONS(X)   \
  X(EnumeratePhysicalDevices)               \
  X(GetPhysicalDeviceProperties2)           \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceMemoryProperties)      \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(EnumerateDeviceExtensionProperties)     \
  X(CreateDevice)                           \
  X(GetDeviceProcAddr)
#define WEIR_REPLAY_DEVICE_FUNCTIONS(X) \
  X(GetDeviceQueue)                     \
  X(CreateShaderModule)                 \
  X(DestroyShaderModule)                \
  X(CreateDescriptorSetLayout)          \
  X(DestroyDescriptorSetLayout)         \
  X(CreatePipelineLayout)               \
  X(DestroyPipelineLayout)              \
  X(CreateComputePipelines)             \
  X(DestroyPipeline)                    \
  X(CreateBuffer)                       \
  X(DestroyBuffer)                      \
  X(GetBufferMemoryRequirements)        \
  X(AllocateMemory)                     \
  X(FreeMemory)                         \
  X(BindBufferMemory)                   \
  X(CreateDescriptorPool)               \
  X(DestroyDescriptorPool)              \
  X(AllocateDescriptorSets)             \
  X(UpdateDescriptorSets)               \
  X(CreateCommandPool)                  \
  X(AllocateCommandBuffers)             \
  X(BeginCommandBuffer)                 \
  X(EndCommandBuffer)                   \
  X(CreateQueryPool)                    \
  X(GetQueryPoolResults)                \
  X(CreateFence)                        \
  X(ResetFences)                        \
  X(WaitForFences)                      \
  X(QueueSubmit)                        \
  X(CmdBindPipeline)                    \
  X(CmdBindDescriptorSets)              \
  X(CmdPushConstants)                   \
  X(CmdDispatch)                        \
  X(CmdFillBuffer)                      \
  X(CmdPipelineBarrier)                 \
  X(CmdResetQueryPool)                  \
  X(CmdWriteTimestamp)

struct Functions {
#define WEIR_DECLARE(name) PFN_vk##name name = nullptr;
  WEIR_REPLAY_INSTANCE_FUNCTIONS(WEIR_DECLARE)
  WEIR_REPLAY_DEVICE_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
};

// A struct of Vulkan's with its type set.
template <class T>
T of_type(VkStructureType type) {
  T out{};
  out.sType = type;
  return out;
}

// What a function answered, as a Result.
[[nodiscard]] inline Result<void> check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return {};
  return fail(Code::io, "{} answers {}", call, static_cast<int>(result));
}
#define WEIR_REPLAY_CALL(call, name, ...) check((call).name(__VA_ARGS__), "vk" #name)

constexpr std::uint32_t k_most_runs = 200;  // of one kernel
constexpr std::uint32_t k_queries = 2 * k_most_runs;

struct Device {
  Functions call;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  VkPhysicalDeviceLimits limits{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::uint32_t least_subgroup = 0, most_subgroup = 0;  // 0: can not be asked for
  std::uint32_t stamp_bits = 0;
  std::string name, driver;
  std::vector<std::string> warnings;  // what it has not that the recorded one had
};

// --- one recorded work on a device: made, run, timed, taken away (work.cpp)

struct Wishes {
  std::uint32_t runs = 30;            // timed ones, at most k_most_runs
  double seconds = 1;                 // for the runs of one work; fewer runs where it takes longer
  std::uint64_t memory = 2ULL << 30;  // bytes that one work may take
};

struct Outcome {
  std::vector<double> seconds;  // of each run
  std::string left_out;         // why there are none
  bool lost = false;            // the device can not be used any more
};

// Buffers hold zeros in every byte before the first run, what the kernel wrote itself after it. One
// run comes first that is not in the answer.
[[nodiscard]] Outcome replay(const Device& device, const probes::RecordedKernels& recorded,
                             const probes::RecordedWork& work, const Wishes& wishes);

}  // namespace weir::replay
