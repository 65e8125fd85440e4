// Random, valid sequences of commands, made from a seed, with what they must leave in memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/probes/vulkan_program.hpp"

namespace weir::probes {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

// A buffer in memory of its own. `shadow` is what it must hold, where the host can see it.
struct OwnBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize size = 0;
  uint8_t* bytes = nullptr;
  std::vector<uint8_t> shadow;
};

inline OwnBuffer make_buffer(const Vulkan& vk, VkDeviceSize size, uint32_t type, bool visible) {
  OwnBuffer out;
  out.size = size;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = size;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  CHECK(vkCreateBuffer(vk.device, &info, nullptr, &out.buffer));
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(vk.device, out.buffer, &needs);
  VkMemoryAllocateInfo memory_info{};
  memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory_info.allocationSize = needs.size;
  memory_info.memoryTypeIndex = type;
  CHECK(vkAllocateMemory(vk.device, &memory_info, nullptr, &out.memory));
  CHECK(vkBindBufferMemory(vk.device, out.buffer, out.memory, 0));
  if (!visible) return out;
  void* bytes = nullptr;
  CHECK(vkMapMemory(vk.device, out.memory, 0, VK_WHOLE_SIZE, 0, &bytes));
  out.bytes = static_cast<uint8_t*>(bytes);
  out.shadow.assign(size, 0);
  return out;
}
inline void free_buffer(const Vulkan& vk, const OwnBuffer& own) {
  vkDestroyBuffer(vk.device, own.buffer, nullptr);
  vkFreeMemory(vk.device, own.memory, nullptr);
}

class Sequence {
 public:
  // `queue` and `second_queue` are this sequence's alone. `fill`: what memory out of sight reads
  // as.
  Sequence(const Vulkan& vk, VkQueue queue, VkQueue second_queue, uint64_t seed, uint8_t fill)
      : vk_(vk),
        queue_(queue),
        second_queue_(second_queue),
        random_(seed),
        fill_(fill),
        seed_(seed) {
    pool_ = vk.make_pool();
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(vk.physical, &memory);
    for (int i = 0; i < 4; ++i) {
      const uint32_t type = below(memory.memoryTypeCount);
      const bool visible =
          (memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
      buffers_.push_back(make_buffer(vk, 256 + 4 * below(8192), type, visible));
      OwnBuffer& last = buffers_.back();
      for (size_t at = 0; at < last.shadow.size(); ++at) {
        if (last.bytes[at] != fill_) say("fresh memory is not what it should be");
        last.shadow[at] = last.bytes[at] = static_cast<uint8_t>(random_());
      }
    }
    VkSemaphoreTypeCreateInfo type{};
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    create.pNext = &type;
    CHECK(vkCreateSemaphore(vk.device, &create, nullptr, &timeline_));
    create.pNext = nullptr;
    CHECK(vkCreateSemaphore(vk.device, &create, nullptr, &binary_));
    VkEventCreateInfo event{};
    event.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO;
    CHECK(vkCreateEvent(vk.device, &event, nullptr, &event_));
    VkQueryPoolCreateInfo queries{};
    queries.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = k_queries;
    CHECK(vkCreateQueryPool(vk.device, &queries, nullptr, &queries_));
    fence_ = vk.fence();
  }
  ~Sequence() {
    vkDestroyFence(vk_.device, fence_, nullptr);
    vkDestroyQueryPool(vk_.device, queries_, nullptr);
    vkDestroyEvent(vk_.device, event_, nullptr);
    vkDestroySemaphore(vk_.device, binary_, nullptr);
    vkDestroySemaphore(vk_.device, timeline_, nullptr);
    vkDestroyCommandPool(vk_.device, pool_, nullptr);
    for (const OwnBuffer& own : buffers_) free_buffer(vk_, own);
  }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  void play() {
    const uint32_t rounds = 1 + below(3);
    for (uint32_t round = 0; round < rounds; ++round) {
      const Recorded work = record();
      const uint32_t times = 1 + below(2);
      for (uint32_t i = 0; i < times; ++i) {
        submit(work.buffer);
        for (const Effect& effect : work.effects) effect();
        compare();
        check_times();
      }
      if (below(2) == 0) CHECK(vkResetCommandPool(vk_.device, pool_, 0));
    }
  }

 private:
  using Effect = std::function<void()>;
  struct Recorded {
    VkCommandBuffer buffer;
    std::vector<Effect> effects;
  };
  static constexpr uint32_t k_queries = 4;

  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  [[noreturn]] void say(const std::string& what) const {
    fail("seed " + std::to_string(seed_) + ": " + what);
  }

  void add_command(VkCommandBuffer into, std::vector<Effect>& effects, bool inner = false) {
    OwnBuffer& from = buffers_[below(4)];
    OwnBuffer& to = buffers_[below(4)];
    switch (below(7)) {
      case 0:
      case 1: {
        // Halves of one buffer may be copied onto each other.
        const VkDeviceSize room = std::min(from.size, to.size) / 2;
        const VkDeviceSize size = 1 + below(static_cast<uint32_t>(room));
        const VkBufferCopy region{below(static_cast<uint32_t>(room - size + 1)),
                                  to.size - size - below(static_cast<uint32_t>(room - size + 1)),
                                  size};
        vkCmdCopyBuffer(into, from.buffer, to.buffer, 1, &region);
        effects.push_back([this, &from, &to, region] {
          if (to.bytes == nullptr) return;
          for (VkDeviceSize i = 0; i < region.size; ++i) {
            to.shadow[region.dstOffset + i] =
                from.bytes == nullptr ? fill_ : from.shadow[region.srcOffset + i];
          }
        });
        break;
      }
      case 2: {
        const VkDeviceSize offset = 4 * below(static_cast<uint32_t>(to.size / 4));
        const bool fills_rest = below(2) == 0;
        const VkDeviceSize size =
            fills_rest ? to.size - offset
                       : 4 + 4 * below(static_cast<uint32_t>((to.size - offset) / 4));
        const uint32_t word = below(2) == 0 ? 0 : static_cast<uint32_t>(random_());
        vkCmdFillBuffer(into, to.buffer, offset, fills_rest ? VK_WHOLE_SIZE : size, word);
        effects.push_back([&to, offset, size, word] {
          if (to.bytes == nullptr) return;
          for (VkDeviceSize i = 0; i < size; i += 4) std::memcpy(&to.shadow[offset + i], &word, 4);
        });
        break;
      }
      case 3: {
        std::vector<uint8_t> data(4 + 4 * below(16));
        for (uint8_t& byte : data) byte = static_cast<uint8_t>(random_());
        const VkDeviceSize offset = 4 * below(static_cast<uint32_t>((to.size - data.size()) / 4));
        vkCmdUpdateBuffer(into, to.buffer, offset, data.size(), data.data());
        effects.push_back([&to, offset, data] {
          if (to.bytes != nullptr) std::memcpy(&to.shadow[offset], data.data(), data.size());
        });
        break;
      }
      case 4:
        Vulkan::dispatch(into, below(2) == 0 ? vk_.add : vk_.mul, 1 + static_cast<int>(below(4)));
        break;
      case 5:
        Vulkan::barrier(into);
        break;
      default:
        if (inner) break;  // validation 1.3.239 takes their stages for none in secondary ones
        vkCmdSetEvent(into, event_, VK_PIPELINE_STAGE_TRANSFER_BIT);
        vkCmdWaitEvents(into, 1, &event_, VK_PIPELINE_STAGE_TRANSFER_BIT,
                        VK_PIPELINE_STAGE_TRANSFER_BIT, 0, nullptr, 0, nullptr, 0, nullptr);
        vkCmdResetEvent(into, event_, VK_PIPELINE_STAGE_TRANSFER_BIT);
        break;
    }
  }

  Recorded record() {
    Recorded out{};
    VkCommandBuffer inner = VK_NULL_HANDLE;
    std::vector<Effect> inner_effects;
    if (below(3) == 0) {
      inner = vk_.begin(pool_, true);
      for (uint32_t i = 1 + below(3); i > 0; --i) add_command(inner, inner_effects, true);
      CHECK(vkEndCommandBuffer(inner));
    }
    out.buffer = vk_.begin(pool_);
    written_ = below(k_queries + 1);
    vkCmdResetQueryPool(out.buffer, queries_, 0, k_queries);
    for (uint32_t i = 0; i < written_; ++i) {
      add_command(out.buffer, out.effects);
      vkCmdWriteTimestamp(out.buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, i);
    }
    for (uint32_t i = below(12); i > 0; --i) {
      if (inner != VK_NULL_HANDLE && below(4) == 0) {
        vkCmdExecuteCommands(out.buffer, 1, &inner);
        out.effects.insert(out.effects.end(), inner_effects.begin(), inner_effects.end());
      } else {
        add_command(out.buffer, out.effects);
      }
    }
    CHECK(vkEndCommandBuffer(out.buffer));
    return out;
  }

  void submit(VkCommandBuffer work) {
    switch (below(5)) {
      case 0:
        submit_with(queue_, work, {}, {});
        CHECK(vkQueueWaitIdle(queue_));
        break;
      case 1: {  // two queues with a binary semaphore between them
        submit_with(second_queue_, VK_NULL_HANDLE, {}, {binary_, 0});
        submit_with(queue_, work, {binary_, 0}, {}, fence_);
        vk_.wait(fence_);
        break;
      }
      case 2: {  // waits for a value that the other queue signals later
        const uint64_t value = ++value_;
        submit_with(queue_, work, {timeline_, value}, {}, fence_);
        if (vkGetFenceStatus(vk_.device, fence_) != VK_NOT_READY) say("done before its time");
        submit_with(second_queue_, VK_NULL_HANDLE, {}, {timeline_, value});
        vk_.wait(fence_);
        break;
      }
      case 3: {  // waits for the host, and tells it
        const uint64_t value = ++value_;
        submit_with(queue_, work, {timeline_, value}, {timeline_, value + 1});
        signal(value);
        wait_for(++value_);
        break;
      }
      default:
        vk_.submit_to(queue_, {work}, fence_);
        vk_.poll(fence_);
        CHECK(vkResetFences(vk_.device, 1, &fence_));
        break;
    }
    // Waits for the queue, so that its work does not disturb the next recording.
    CHECK(vkQueueWaitIdle(second_queue_));
    CHECK(vkQueueWaitIdle(queue_));
  }

  struct Point {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    uint64_t value = 0;
  };
  static void submit_with(VkQueue queue, VkCommandBuffer work, Point wait, Point signal,
                          VkFence fence = VK_NULL_HANDLE) {
    const auto info_of = [](const Point& point) {
      VkSemaphoreSubmitInfo info{};
      info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO;
      info.semaphore = point.semaphore;
      info.value = point.value;
      info.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
      return info;
    };
    const VkSemaphoreSubmitInfo wait_info = info_of(wait), signal_info = info_of(signal);
    VkCommandBufferSubmitInfo buffer{};
    buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO;
    buffer.commandBuffer = work;
    VkSubmitInfo2 info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
    info.waitSemaphoreInfoCount = wait.semaphore != VK_NULL_HANDLE ? 1 : 0;
    info.pWaitSemaphoreInfos = &wait_info;
    info.commandBufferInfoCount = work != VK_NULL_HANDLE ? 1 : 0;
    info.pCommandBufferInfos = &buffer;
    info.signalSemaphoreInfoCount = signal.semaphore != VK_NULL_HANDLE ? 1 : 0;
    info.pSignalSemaphoreInfos = &signal_info;
    CHECK(vkQueueSubmit2(queue, 1, &info, fence));
  }
  void signal(uint64_t value) const {
    VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, timeline_, value};
    CHECK(vkSignalSemaphore(vk_.device, &info));
  }
  void wait_for(uint64_t value) const {
    VkSemaphoreWaitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline_;
    info.pValues = &value;
    CHECK(vkWaitSemaphores(vk_.device, &info, UINT64_MAX));
  }

  void compare() const {
    for (const OwnBuffer& own : buffers_) {
      if (own.bytes != nullptr && std::memcmp(own.bytes, own.shadow.data(), own.size) != 0) {
        say("memory is not what the commands make of it");
      }
    }
  }
  void check_times() const {
    uint64_t ticks[k_queries] = {};
    if (written_ == 0) return;
    CHECK(vkGetQueryPoolResults(vk_.device, queries_, 0, written_, sizeof ticks, ticks, 8,
                                VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
    if (!std::is_sorted(ticks, ticks + written_)) say("timestamps fall");
  }

  const Vulkan& vk_;
  VkQueue queue_, second_queue_;
  std::mt19937_64 random_;
  uint8_t fill_;
  uint64_t seed_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<OwnBuffer> buffers_;
  VkSemaphore timeline_ = VK_NULL_HANDLE, binary_ = VK_NULL_HANDLE;
  uint64_t value_ = 0;
  VkEvent event_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  uint32_t written_ = 0;
  VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace weir::probes
