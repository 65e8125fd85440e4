// Time stamps of command buffers and of dispatches, while weir asks for them.
#include "tools/engine/vulkan_times.hpp"

#include <span>

namespace weir::engine {

// Two of the command buffer and two of each dispatch; dispatches beyond have no times.
constexpr std::uint32_t k_max_timestamps = 65536;

// Begins to time a command buffer, if a profiler wants its times. The first time makes the
// timestamp queries; a queue without them is not timed.
void VulkanTimes::begin(const char* label) {
  buffer_ = counts_.buffer_begins(label);
  timed_ = buffer_ != 0;
  if (!timed_) return;
  if (!has_tried_queries_) {
    has_tried_queries_ = true;
    pool_ = device_.make_stamps(k_max_timestamps);
    if (pool_ == VK_NULL_HANDLE) weir_warn_once("this queue has no time stamps");
  }
  timed_ = pool_ != VK_NULL_HANDLE;
  each_dispatch_ = timed_ && weir_profile_is_enabled(WEIR_PROFILE_DISPATCH) != 0;
  if (!timed_) return;
  used_ = 0;
  vkCmdResetQueryPool(device_.command_buffer(), pool_, 0, k_max_timestamps);
  stamp();
}

void VulkanTimes::stamp() {
  vkCmdWriteTimestamp(device_.command_buffer(), VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_,
                      used_++);
}

void VulkanTimes::before_dispatch() {
  // Room for this pair and for the buffer's end.
  if (each_dispatch_ && used_ + 3 > k_max_timestamps) {
    each_dispatch_ = false;
    weir_warn_once("a command buffer has more dispatches than time stamps: the rest have no times");
  }
  if (each_dispatch_) stamp();
}

void VulkanTimes::after_dispatch() {
  if (each_dispatch_) stamp();
}

void VulkanTimes::end() {
  if (timed_) stamp();
}

// Reads the ticks that the device wrote, and passes them to the counts. The clock is reported once.
Result<void> VulkanTimes::read() {
  if (!timed_) return {};
  ticks_.resize(used_);
  WEIR_CHECK(WEIR_VULKAN(vkGetQueryPoolResults, device_.handle(), pool_, 0, used_,
                         used_ * sizeof(std::uint64_t), ticks_.data(), sizeof(std::uint64_t),
                         VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
  if (!clock_reported_) {
    clock_reported_ = true;
    counts_.clock(device_.tick_nanoseconds(), device_.both_clocks());
  }
  const std::span<const std::uint64_t> inner(ticks_.data() + 1, used_ - 2);
  counts_.buffer_times(buffer_, ticks_.front(), ticks_.back(), inner);
  return {};
}

}  // namespace weir::engine
