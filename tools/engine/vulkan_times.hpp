// When the device ran what was recorded: time stamps around each command buffer and, where that is
// asked for, each dispatch in it (WEIR_PROFILE=cb, dispatch). While nobody asks, nothing of this is
// recorded or made.
//
// Each stamp is taken when all that was recorded before it is done, so dispatches that could have
// overlapped do not: their times are those of one after the other. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/engine/counts.hpp"
#include "tools/engine/vulkan_device.hpp"

namespace weir::engine {

class VulkanTimes {
 public:
  VulkanTimes(VulkanDevice& device, Counts& counts) : device_(device), counts_(counts) {}

  // The first into a command buffer, whose kind is `label` (a literal).
  void begin(const char* label);
  void before_dispatch();
  void after_dispatch();
  // The last.
  void end();
  [[nodiscard]] std::uint64_t buffer() const {
    return buffer_;
  }  // as marks know it; 0: nobody asks
  // Hands on what the device wrote. It is done with the buffer.
  [[nodiscard]] Result<void> read();

 private:
  void stamp();

  VulkanDevice& device_;
  Counts& counts_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
  std::uint64_t buffer_ = 0;
  std::uint32_t used_ = 0;
  bool has_tried_queries_ = false, timed_ = false, each_dispatch_ = false, clock_reported_ = false;
  std::vector<std::uint64_t> ticks_;
};

}  // namespace weir::engine
