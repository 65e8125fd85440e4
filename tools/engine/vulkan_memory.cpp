// The buffers of VulkanDevice, and the descriptor sets by which kernels get them.
#include <algorithm>
#include <array>

#include "tools/engine/vulkan_device.hpp"

namespace weir::engine {

constexpr std::uint32_t k_sets_in_pool = 128;

// Returns the index of the first allowed type of memory that lies on the device, or that the host
// can map. Bit i of `allowed` allows type i.
Result<std::uint32_t> VulkanDevice::memory_type(std::uint32_t allowed, Memory where) const {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  const VkMemoryPropertyFlags wanted =
      where == Memory::device
          ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
          : VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const bool fits = (memory.memoryTypes[i].propertyFlags & wanted) == wanted;
    if (fits && (allowed >> i & 1U) != 0) return i;
  }
  return fail(Code::io, "vulkan: {} has no fitting memory", name());
}

// Creates a buffer with memory of its own. Memory of the host stays mapped.
Result<Buffer> VulkanDevice::make_buffer(std::uint64_t bytes, Memory where) {
  Buffer buffer;
  buffer.bytes = std::max<std::uint64_t>(bytes, 4);
  constexpr VkBufferUsageFlags k_usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                nullptr,
                                0,
                                buffer.bytes,
                                k_usage,
                                VK_SHARING_MODE_EXCLUSIVE,
                                0,
                                nullptr};
  WEIR_CHECK(WEIR_VULKAN(vkCreateBuffer, device_, &info, nullptr, &buffer.handle));
  buffers_.push_back(buffer.handle);
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(device_, buffer.handle, &needs);
  WEIR_TRY(const std::uint32_t type, memory_type(needs.memoryTypeBits, where));
  const VkMemoryAllocateInfo allocation{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size,
                                        type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  WEIR_CHECK(WEIR_VULKAN(vkAllocateMemory, device_, &allocation, nullptr, &memory));
  memories_.push_back(memory);
  WEIR_CHECK(WEIR_VULKAN(vkBindBufferMemory, device_, buffer.handle, memory, 0));
  if (where == Memory::host) {
    WEIR_CHECK(WEIR_VULKAN(vkMapMemory, device_, memory, 0, VK_WHOLE_SIZE, 0, &buffer.mapped));
  }
  return buffer;
}

// Allocates a descriptor set from the last pool, or from a new one if that is full.
Result<VkDescriptorSet> VulkanDevice::allocate_set() {
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                   VK_NULL_HANDLE, 1, &set_layout_};
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (!set_pools_.empty()) {
    info.descriptorPool = set_pools_.back();
    if (vkAllocateDescriptorSets(device_, &info, &set) == VK_SUCCESS) return set;
  }
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, k_sets_in_pool * k_bindings};
  const VkDescriptorPoolCreateInfo pool{
      VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, k_sets_in_pool, 1, &size};
  WEIR_CHECK(WEIR_VULKAN(vkCreateDescriptorPool, device_, &pool, nullptr, &info.descriptorPool));
  set_pools_.push_back(info.descriptorPool);
  WEIR_CHECK(WEIR_VULKAN(vkAllocateDescriptorSets, device_, &info, &set));
  return set;
}

// Makes a descriptor set that binds the buffers in their order.
Result<VkDescriptorSet> VulkanDevice::make_set(std::span<const VkBuffer> buffers) {
  WEIR_TRY(const VkDescriptorSet set, allocate_set());
  std::array<VkDescriptorBufferInfo, k_bindings> infos{};
  std::array<VkWriteDescriptorSet, k_bindings> writes{};
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    infos[i] = {buffers[i], 0, VK_WHOLE_SIZE};
    writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set,       i,      0, 1,
                 VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,      nullptr, &infos[i], nullptr};
  }
  vkUpdateDescriptorSets(device_, static_cast<std::uint32_t>(buffers.size()), writes.data(), 0,
                         nullptr);
  return set;
}

}  // namespace weir::engine
