// A Vulkan device with one compute queue, its memory and its kernels, set up once.
//
// Everything made here lives as long as the device and is destroyed with it. One thread. Failures
// are Code::io (no device, no memory) with the name of the call and its result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"

#include "tools/engine/counts.hpp"
#include "tools/engine/vulkan_loader.hpp"

namespace weir::engine {

// Fails unless `result` is VK_SUCCESS.
[[nodiscard]] Result<void> vulkan_check(VkResult result, const char* call);
#define WEIR_VULKAN(call, ...) vulkan_check(call(__VA_ARGS__), #call)

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  std::uint64_t bytes = 0;
  void* mapped = nullptr;  // null for memory that the host cannot see
};
enum class Memory { device, host };

struct Kernel {
  const char* name = "";  // its pipeline's, too: who watches from outside sees it
  VkPipeline pipeline = VK_NULL_HANDLE;
};

// All kernels take storage buffers 0 … k_bindings - 1, as many as they need, and push constants.
inline constexpr std::uint32_t k_bindings = 7;
inline constexpr std::uint32_t k_push_bytes = 32;

class VulkanDevice {
 public:
  [[nodiscard]] static Result<std::unique_ptr<VulkanDevice>> open(unsigned index);
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;

  [[nodiscard]] std::string name() const { return properties_.deviceName; }
  [[nodiscard]] const char* type() const;  // in the words of weir_device_declare: "discrete"
  [[nodiscard]] std::uint64_t max_buffer_bytes() const {
    return properties_.limits.maxStorageBufferRange;
  }
  [[nodiscard]] VkDevice handle() const { return device_; }
  [[nodiscard]] VkQueue queue() const { return queue_; }
  [[nodiscard]] VkPipelineLayout layout() const { return layout_; }
  [[nodiscard]] VkCommandBuffer command_buffer() const { return commands_; }
  [[nodiscard]] VkFence fence() const { return fence_; }

  // Filled with whatever was there; at least 4 bytes.
  [[nodiscard]] Result<Buffer> make_buffer(std::uint64_t bytes, Memory where);
  [[nodiscard]] Result<Kernel> make_kernel(const char* name, std::span<const std::uint32_t> spirv);
  // Room for `count` time stamps; null where the queue takes none.
  [[nodiscard]] VkQueryPool make_stamps(std::uint32_t count);
  [[nodiscard]] double tick_nanoseconds() const { return properties_.limits.timestampPeriod; }
  // The CPU's CLOCK_MONOTONIC and the device's, where VK_EXT_calibrated_timestamps reads both.
  [[nodiscard]] std::optional<BothClocks> both_clocks() const;
  // A descriptor set of these buffers.
  [[nodiscard]] Result<VkDescriptorSet> make_set(std::span<const VkBuffer> buffers);

 private:
  VulkanDevice() = default;
  [[nodiscard]] Result<void> make_instance();
  [[nodiscard]] Result<void> pick(unsigned index);
  [[nodiscard]] Result<void> make_device();
  [[nodiscard]] Result<void> make_layouts();
  [[nodiscard]] Result<std::uint32_t> memory_type(std::uint32_t allowed, Memory where) const;
  [[nodiscard]] Result<VkDescriptorSet> allocate_set();
  void set_name(VkPipeline pipeline, const char* name) const;

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties_{};
  VkDevice device_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0, stamp_bits_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  bool can_name_objects_ = false;       // VK_EXT_debug_utils is there
  bool has_calibrated_clocks_ = false;  // VK_EXT_calibrated_timestamps is there
  VkQueryPool stamps_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorPool> set_pools_;
  std::vector<VkPipeline> pipelines_;
  std::vector<VkBuffer> buffers_;
  std::vector<VkDeviceMemory> memories_;
};

}  // namespace weir::engine
