// Records, submits and waits for Vulkan commands, and counts each.
#include "tools/engine/vulkan_stream.hpp"

#include <algorithm>
#include <utility>

namespace weir::engine {

constexpr std::uint64_t k_update_bytes = 65536;  // vkCmdUpdateBuffer takes no more

bool VulkanStream::ensure_recording() {
  if (!first_error_) return false;
  if (recording_) return true;
  const VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                      VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  first_error_ = WEIR_VULKAN(vkBeginCommandBuffer, device_.command_buffer(), &info);
  recording_ = first_error_.has_value();
  if (recording_) times_.begin(label_);
  return recording_;
}

// Returns a descriptor set of these buffers. Each token uses the same buffers, so sets are kept.
VkDescriptorSet VulkanStream::find_or_make_set(std::span<const VkBuffer> buffers) {
  std::vector<VkBuffer> key(buffers.begin(), buffers.end());
  if (const auto match = sets_.find(key); match != sets_.end()) return match->second;
  auto set = device_.make_set(buffers);
  if (!set) {
    first_error_ = tl::unexpected(std::move(set).error());
    return VK_NULL_HANDLE;
  }
  sets_[std::move(key)] = *set;
  return *set;
}

// Records a dispatch of `groups` workgroups, and counts it. Does nothing after an error.
void VulkanStream::dispatch(const Kernel& kernel, std::span<const VkBuffer> buffers,
                            std::span<const std::uint32_t> push, std::uint32_t groups) {
  if (!ensure_recording()) return;
  const VkDescriptorSet set = find_or_make_set(buffers);
  if (!first_error_) return;
  const VkCommandBuffer commands = device_.command_buffer();
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, device_.layout(), 0, 1, &set, 0,
                          nullptr);
  vkCmdPushConstants(commands, device_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                     static_cast<std::uint32_t>(push.size_bytes()), push.data());
  times_.before_dispatch();
  vkCmdDispatch(commands, groups, 1, 1);
  times_.after_dispatch();
  counts_.dispatch(kernel.name, groups);
}

// Records a barrier: work after it, and the host, see all that work before it wrote.
void VulkanStream::barrier() {
  if (!ensure_recording()) return;
  constexpr VkAccessFlags k_written = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkAccessFlags k_read =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_HOST_READ_BIT;
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, k_written,
                               k_written | k_read};
  const VkPipelineStageFlags work =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  vkCmdPipelineBarrier(device_.command_buffer(), work, work | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                       &memory, 0, nullptr, 0, nullptr);
  counts_.barrier();
}

void VulkanStream::update(const Buffer& to, std::span<const std::byte> bytes) {
  if (!ensure_recording()) return;
  for (std::uint64_t at = 0; at < bytes.size(); at += k_update_bytes) {
    const std::uint64_t size = std::min<std::uint64_t>(k_update_bytes, bytes.size() - at);
    vkCmdUpdateBuffer(device_.command_buffer(), to.handle, at, size, bytes.data() + at);
    counts_.copy(Copy::to_device, size);
  }
}

void VulkanStream::copy(const Buffer& from, const Buffer& to, Copy kind, std::uint64_t bytes,
                        std::uint64_t to_offset) {
  if (!ensure_recording()) return;
  const VkBufferCopy region{0, to_offset, bytes};
  vkCmdCopyBuffer(device_.command_buffer(), from.handle, to.handle, 1, &region);
  counts_.copy(kind, bytes);
}

Result<void> VulkanStream::finish() {
  Result<void> recorded = std::exchange(first_error_, {});
  const bool is_empty = !std::exchange(recording_, false);
  if (is_empty || !recorded) return recorded;
  return submit_and_wait();
}

// Submits the recorded commands, waits until they are done, and reads their times.
Result<void> VulkanStream::submit_and_wait() {
  const VkCommandBuffer commands = device_.command_buffer();
  const VkFence fence = device_.fence();
  times_.end();
  WEIR_CHECK(WEIR_VULKAN(vkEndCommandBuffer, commands));
  const VkSubmitInfo info{
      VK_STRUCTURE_TYPE_SUBMIT_INFO, nullptr, 0, nullptr, nullptr, 1, &commands, 0, nullptr};
  WEIR_CHECK(WEIR_VULKAN(vkQueueSubmit, device_.queue(), 1, &info, fence));
  counts_.submit(times_.buffer());
  counts_.wait_begins();
  WEIR_CHECK(WEIR_VULKAN(vkWaitForFences, device_.handle(), 1, &fence, VK_TRUE, UINT64_MAX));
  counts_.wait_ended();
  WEIR_CHECK(times_.read());
  return WEIR_VULKAN(vkResetFences, device_.handle(), 1, &fence);
}

}  // namespace weir::engine
