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

// Returns a Vulkan struct of T's C type with its sType set: of_type<vk::FenceCreateInfo>().
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

// Turns a VkResult into a Result.
[[nodiscard]] inline Result<void> check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return {};
  return fail(Code::io, "{} answers {}", call, static_cast<int>(result));
}
#define WEIR_REPLAY_CALL(call, name, ...) check((call).vk##name(__VA_ARGS__), "vk" #name)
// Calls a function of the device that makes one object, `made`, from `info`.
#define WEIR_REPLAY_MAKE(device, name, info, out) \
  WEIR_REPLAY_CALL((device).call, name, (device).handle, info, nullptr, out)

constexpr std::uint32_t k_max_runs = 200;  // limit for one kernel
constexpr std::uint32_t k_queries = 2 * k_max_runs;

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
  std::uint32_t min_subgroup = 0, max_subgroup = 0;  // 0: cannot be asked for
  std::uint32_t family = 0;                          // the queue's
  std::uint32_t stamp_bits = 0;
  std::string name, driver, driver_info;
  std::vector<std::string> extensions;  // all that it has
  std::vector<std::string> lacks;       // features of the recorded one, by name
  std::vector<std::string> warnings;    // features and extensions of the recorded one that it lacks
};

// `wanted`: the part of a name, or a number; "": the first one. Code::unavailable where there is
// none, or none that can time where that is asked for.
[[nodiscard]] Result<Device> pick_device(std::uint32_t api_version, const std::string& wanted,
                                         const char* program);
// The same, ready for work.
[[nodiscard]] Result<Device> open_device(const probes::RecordedDevice& recorded,
                                         const std::string& wanted, const char* program,
                                         bool timed);

// Checks that the device has what the capabilities of the SPIR-V need; "needs
// VK_KHR_cooperative_matrix" if not. Drivers are then not asked to compile it, as some crash.
[[nodiscard]] Result<void> check_capabilities(const Device& device,
                                              const std::vector<std::uint32_t>& words);

// --- a recorded pipeline on a device (pipeline.cpp); given back at the end

class PipelineObjects {
 public:
  PipelineObjects(const Device& device, const probes::RecordedKernels& recorded,
                  const probes::RecordedPipeline& pipeline)
      : device_(device), pipeline_(pipeline), code_(recorded.codes[pipeline.head.code]) {}
  PipelineObjects(const PipelineObjects&) = delete;
  PipelineObjects& operator=(const PipelineObjects&) = delete;
  ~PipelineObjects();

  // Returns an error with the first thing that this device cannot do.
  [[nodiscard]] Result<void> fits() const;
  // Adds `flags` to those that it was recorded with.
  [[nodiscard]] Result<void> make(VkPipelineCreateFlags flags = 0);

  [[nodiscard]] VkPipeline handle() const { return pipeline_handle_; }
  [[nodiscard]] VkPipelineLayout layout() const { return layout_; }
  [[nodiscard]] const std::vector<VkDescriptorSetLayout>& set_layouts() const {
    return set_layouts_;
  }
  [[nodiscard]] std::uint32_t dynamic() const { return dynamic_bindings_; }
  [[nodiscard]] std::uint32_t push_bytes() const { return (pipeline_.head.push_bytes + 3) & ~3U; }

 private:
  [[nodiscard]] Result<void> make_layout();
  [[nodiscard]] Result<void> make_pipeline(VkPipelineCreateFlags flags);

  const Device& device_;
  const probes::RecordedPipeline& pipeline_;
  const probes::RecordedCode& code_;
  std::vector<VkDescriptorSetLayout> set_layouts_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkShaderModule module_ = VK_NULL_HANDLE;
  VkPipeline pipeline_handle_ = VK_NULL_HANDLE;
  std::uint32_t dynamic_bindings_ = 0;  // descriptors of dynamic offset, in all sets
};

template <class List>
std::uint32_t size_of(const List& list) {
  return static_cast<std::uint32_t>(list.size());
}

// --- one recorded work on a device: made, run, timed, destroyed (work.cpp)

struct RunLimits {
  std::uint32_t runs = 30;            // timed ones, at most k_max_runs
  double seconds = 1;                 // for the runs of one work; fewer runs where it takes longer
  std::uint64_t memory = 2ULL << 30;  // bytes that one work may take
};

struct Outcome {
  std::vector<double> seconds;  // one for each run
  std::string left_out;         // the reason if there are none
  bool lost = false;            // the device cannot be used any more
};

// Buffers hold zeros in every byte before the first run, what the kernel wrote itself after it. One
// run comes first that is not in the answer.
[[nodiscard]] Outcome replay(const Device& device, const probes::RecordedKernels& recorded,
                             const probes::RecordedWork& work, const RunLimits& limits);

}  // namespace weir::replay
