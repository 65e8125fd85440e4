// What reaches the device while the model runs: recorded here, handed over at once, waited for.
// Each of these calls is counted where it is made; nothing else records, submits or waits.
//
// Recording begins by itself with the first call after finish(). One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tools/engine/counts.hpp"
#include "tools/engine/vulkan_device.hpp"
#include "tools/engine/vulkan_times.hpp"

namespace weir::engine {

class VulkanStream {
 public:
  VulkanStream(VulkanDevice& device, Counts& counts)
      : device_(device), counts_(counts), times_(device, counts) {}

  // What command buffers hold from the next one on (a literal).
  void label(const char* text) { label_ = text; }

  // `groups` workgroups of a kernel; `push` at most k_push_bytes.
  void dispatch(const Kernel& kernel, std::span<const VkBuffer> buffers,
                std::span<const std::uint32_t> push, std::uint32_t groups);
  // What was recorded before is done and seen, by the host as well, before what comes after.
  void barrier();
  // Bytes into a buffer, by way of the command buffer; a multiple of 4.
  void update(const Buffer& to, std::span<const std::byte> bytes);
  void copy(const Buffer& from, const Buffer& to, Copy kind, std::uint64_t bytes,
            std::uint64_t to_offset = 0);

  // Submits what was recorded and waits for it; nothing recorded: nothing done. What went wrong
  // since the last finish() comes out here, and recording begins anew.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] bool begin();
  [[nodiscard]] Result<void> submit_and_wait();
  [[nodiscard]] VkDescriptorSet set_of(std::span<const VkBuffer> buffers);

  VulkanDevice& device_;
  Counts& counts_;
  VulkanTimes times_;
  const char* label_ = "weights";
  std::map<std::vector<VkBuffer>, VkDescriptorSet> sets_;
  bool recording_ = false;
  Result<void> so_far_;  // the first failure while recording
};

}  // namespace weir::engine
