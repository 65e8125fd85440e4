// Vulkan's functions, from the loader, and a device as near as possible to a recorded one.
//
// The loader is opened at run time: a machine without one has no such devices, which is an answer.
// Nothing is destroyed at the end but by the end of the process: drivers that crash do so there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/probes/devices/devices.hpp"
#include "gate/probes/read/read_kernels.hpp"

#include "tools/replay/program/program.hpp"

namespace weir::replay {

using Functions = probes::VulkanFunctions;

// A struct of Vulkan's, of T's C type, with its type set: of_type<vk::FenceCreateInfo>().
template <class T>
typename T::NativeType of_type() {
  typename T::NativeType out{};
  out.sType = static_cast<VkStructureType>(T::structureType);
  return out;
}
// The same with all its members, in their order.
template <class T, class... Members>
requires(sizeof...(Members) > 0) typename T::NativeType of_type(Members... members) {
  return {static_cast<VkStructureType>(T::structureType), nullptr, members...};
}

// What a function answered, as a Result.
[[nodiscard]] inline Result<void> check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return {};
  return fail(Code::io, "{} answers {}", call, static_cast<int>(result));
}
#define WEIR_REPLAY_CALL(call, name, ...) check((call).vk##name(__VA_ARGS__), "vk" #name)
// A function of the device that makes one thing, `made`, as `info` says.
#define WEIR_REPLAY_MAKE(device, name, info, made) \
  WEIR_REPLAY_CALL((device).call, name, (device).handle, info, nullptr, made)

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
  std::uint32_t least_subgroup = 0, most_subgroup = 0;  // 0: cannot be asked for
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
  bool lost = false;            // the device cannot be used any more
};

// Buffers hold zeros in every byte before the first run, what the kernel wrote itself after it. One
// run comes first that is not in the answer.
[[nodiscard]] Outcome replay(const Device& device, const probes::RecordedKernels& recorded,
                             const probes::RecordedWork& work, const Wishes& wishes);

}  // namespace weir::replay
