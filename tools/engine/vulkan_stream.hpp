// Records the work of the device while the model runs, submits it at once and waits for it. Each
// call is counted here; nothing else records, submits or waits.
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

  // Sets the label of command buffers from the next one on (a literal).
  void label(const char* text) { label_ = text; }

  // `groups` workgroups of a kernel; `push` at most k_push_bytes.
  void dispatch(const Kernel& kernel, std::span<const VkBuffer> buffers,
                std::span<const std::uint32_t> push, std::uint32_t groups);
  // Work recorded before is done, and visible to the host too, before work recorded after.
  void barrier();
  // Bytes into a buffer, by way of the command buffer; a multiple of 4.
  void update(const Buffer& to, std::span<const std::byte> bytes);
  void copy(const Buffer& from, const Buffer& to, Copy kind, std::uint64_t bytes,
            std::uint64_t to_offset = 0);

  // Submits the recorded work, if any, and waits for it. Returns the first error since the last
  // finish(); recording begins anew.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] bool ensure_recording();
  [[nodiscard]] Result<void> submit_and_wait();
  [[nodiscard]] VkDescriptorSet find_or_make_set(std::span<const VkBuffer> buffers);

  VulkanDevice& device_;
  Counts& counts_;
  VulkanTimes times_;
  const char* label_ = "weights";
  std::map<std::vector<VkBuffer>, VkDescriptorSet> sets_;
  bool recording_ = false;
  Result<void> first_error_;  // the first failure while recording
};

}  // namespace weir::engine
