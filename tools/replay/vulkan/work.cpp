// Runs one recorded kernel on a device: makes its objects, times its dispatches, destroys them.
#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "tools/replay/vulkan/vulkan.hpp"

namespace weir::replay {
namespace {

constexpr std::uint64_t k_wait_nanoseconds = 20'000'000'000;

// The objects of one work; destroyed at the end.
class KernelObjects {
 public:
  KernelObjects(const Device& device, const probes::RecordedKernels& recorded,
                const probes::RecordedWork& work)
      : device_(device),
        call_(device.call),
        work_(work),
        pipeline_(recorded.pipelines[work.pipeline]),
        pipeline_objects_(device, recorded, pipeline_) {}
  KernelObjects(const KernelObjects&) = delete;
  KernelObjects& operator=(const KernelObjects&) = delete;
  ~KernelObjects() {
    const VkDevice handle = device_.handle;
    call_.vkDestroyDescriptorPool(handle, pool_, nullptr);
    for (const VkBuffer buffer : buffers_) call_.vkDestroyBuffer(handle, buffer, nullptr);
    for (const VkDeviceMemory memory : memories_) call_.vkFreeMemory(handle, memory, nullptr);
  }

  // Returns an error with the first thing that this device cannot do.
  [[nodiscard]] Result<void> fits(std::uint64_t max_memory) const {
    std::uint64_t bytes = 0;
    for (const auto& buffer : work_.buffers) {
      if (buffer.span > max_memory - bytes) {
        return left_out_error("it needs more than {} MiB of memory", max_memory >> 20);
      }
      bytes += buffer.span;
    }
    const VkPhysicalDeviceLimits& limits = device_.limits;
    for (std::size_t i = 0; i < 3; ++i) {
      if (work_.groups[i] > limits.maxComputeWorkGroupCount[i]) {
        return left_out_error("this device has no {} groups at once", work_.groups[i]);
      }
    }
    for (const auto& descriptor : work_.descriptors) {
      if (descriptor.buffer == UINT32_MAX) continue;
      const bool uniform = descriptor.type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER ||
                           descriptor.type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
      const std::uint64_t alignment =
          uniform ? limits.minUniformBufferOffsetAlignment : limits.minStorageBufferOffsetAlignment;
      if (alignment != 0 && descriptor.offset % alignment != 0) {
        return left_out_error("this device has no buffers at offset {}", descriptor.offset);
      }
      const std::uint64_t max_range =
          uniform ? limits.maxUniformBufferRange : limits.maxStorageBufferRange;
      if (descriptor.range > max_range) {
        return left_out_error("this device binds no {} bytes", descriptor.range);
      }
    }
    return pipeline_objects_.fits();
  }
  [[nodiscard]] Result<void> make() {
    WEIR_CHECK(pipeline_objects_.make());
    WEIR_CHECK(make_buffers());
    return make_sets();
  }
  void fill() const {
    for (const VkBuffer buffer : buffers_) {
      call_.vkCmdFillBuffer(device_.commands, buffer, 0, VK_WHOLE_SIZE, 0);
    }
  }

  void bind() const {
    call_.vkCmdBindPipeline(device_.commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                            pipeline_objects_.handle());
    const std::vector<std::uint32_t> offsets(pipeline_objects_.dynamic());
    if (!sets_.empty()) {
      call_.vkCmdBindDescriptorSets(device_.commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                    pipeline_objects_.layout(), 0, size_of(sets_), sets_.data(),
                                    pipeline_objects_.dynamic(), offsets.data());
    }
    if (pipeline_objects_.push_bytes() == 0) return;
    std::array<char, WEIR_KERNELS_PUSH_BYTES> push{};
    std::copy(work_.push.begin(), work_.push.end(), push.begin());
    call_.vkCmdPushConstants(device_.commands, pipeline_objects_.layout(),
                             VK_SHADER_STAGE_COMPUTE_BIT, 0, pipeline_objects_.push_bytes(),
                             push.data());
  }
  void dispatch() const {
    call_.vkCmdDispatch(device_.commands, work_.groups[0], work_.groups[1], work_.groups[2]);
  }

 private:
  [[nodiscard]] Result<void> make_buffers() {
    for (const auto& recorded : work_.buffers) {
      constexpr VkBufferUsageFlags k_usage =
          VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
      auto info = of_type<vk::BufferCreateInfo>();
      info.size = (recorded.span + 3) & ~std::uint64_t{3};  // vkCmdFillBuffer writes words
      info.usage = (recorded.usage & k_usage) | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
      VkBuffer& buffer = buffers_.emplace_back();
      WEIR_CHECK(WEIR_REPLAY_MAKE(device_, CreateBuffer, &info, &buffer));
      VkMemoryRequirements needs{};
      call_.vkGetBufferMemoryRequirements(device_.handle, buffer, &needs);
      auto memory = of_type<vk::MemoryAllocateInfo>(needs.size, 0U);
      bool fits = false;
      for (std::uint32_t i = 0; i < device_.memory.memoryTypeCount && !fits; ++i) {
        fits = (needs.memoryTypeBits & (1U << i)) != 0 &&
               (device_.memory.memoryTypes[i].propertyFlags &
                VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
        if (fits) memory.memoryTypeIndex = i;
      }
      if (!fits) return left_out_error("the device has no memory of its own for it");
      VkDeviceMemory& allocated = memories_.emplace_back();
      WEIR_CHECK(WEIR_REPLAY_MAKE(device_, AllocateMemory, &memory, &allocated));
      WEIR_CHECK(WEIR_REPLAY_CALL(call_, BindBufferMemory, device_.handle, buffer, allocated, 0));
    }
    return {};
  }

  [[nodiscard]] Result<void> make_sets() {
    const auto& layouts = pipeline_objects_.set_layouts();
    if (layouts.empty()) return {};
    std::map<std::uint32_t, std::uint32_t> types;
    for (const auto& binding : pipeline_.bindings) types[binding.type] += binding.count;
    std::vector<VkDescriptorPoolSize> sizes;
    for (const auto& [type, count] : types) {
      sizes.push_back({static_cast<VkDescriptorType>(type), count});
    }
    if (sizes.empty()) sizes.push_back({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1});
    const auto pool =
        of_type<vk::DescriptorPoolCreateInfo>(0U, size_of(layouts), size_of(sizes), sizes.data());
    WEIR_CHECK(WEIR_REPLAY_MAKE(device_, CreateDescriptorPool, &pool, &pool_));
    const auto info = of_type<vk::DescriptorSetAllocateInfo>(pool_, pool.maxSets, layouts.data());
    sets_.resize(layouts.size());
    WEIR_CHECK(
        WEIR_REPLAY_CALL(call_, AllocateDescriptorSets, device_.handle, &info, sets_.data()));
    for (const auto& descriptor : work_.descriptors) {
      VkDescriptorBufferInfo buffer{VK_NULL_HANDLE, 0, VK_WHOLE_SIZE};
      if (descriptor.buffer != UINT32_MAX) {
        buffer = {buffers_[descriptor.buffer], descriptor.offset, descriptor.range};
      }
      const auto write = of_type<vk::WriteDescriptorSet>(
          sets_[descriptor.set], descriptor.binding, descriptor.element, 1U,
          static_cast<VkDescriptorType>(descriptor.type), nullptr, &buffer, nullptr);
      call_.vkUpdateDescriptorSets(device_.handle, 1, &write, 0, nullptr);
    }
    return {};
  }

  const Device& device_;
  const Functions& call_;
  const probes::RecordedWork& work_;
  const probes::RecordedPipeline& pipeline_;
  PipelineObjects pipeline_objects_;
  std::vector<VkBuffer> buffers_;
  std::vector<VkDeviceMemory> memories_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
};

// Records a barrier: later commands start when earlier ones are done and their writes visible.
void wait_between(const Device& device) {
  constexpr VkAccessFlags k_written = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkAccessFlags k_used = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  const auto memory = of_type<vk::MemoryBarrier>(k_written, k_used);
  const VkPipelineStageFlags work =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  device.call.vkCmdPipelineBarrier(device.commands, work, work, 0, 1, &memory, 0, nullptr, 0,
                                   nullptr);
}

// Runs `runs` timed dispatches in one submission and returns their seconds. `fill` first fills the
// buffers.
Result<std::vector<double>> run(const Device& device, const KernelObjects& objects,
                                std::uint32_t runs, bool fill) {
  const Functions& call = device.call;
  const VkCommandBuffer commands = device.commands;
  const auto begin =
      of_type<vk::CommandBufferBeginInfo>(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr);
  WEIR_CHECK(WEIR_REPLAY_CALL(call, BeginCommandBuffer, commands, &begin));
  call.vkCmdResetQueryPool(commands, device.queries, 0, 2 * runs);
  if (fill) objects.fill();
  objects.bind();
  for (std::uint32_t i = 0; i < runs; ++i) {
    wait_between(device);
    constexpr auto k_done = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
    call.vkCmdWriteTimestamp(commands, k_done, device.queries, 2 * i);
    objects.dispatch();
    call.vkCmdWriteTimestamp(commands, k_done, device.queries, 2 * i + 1);
  }
  WEIR_CHECK(WEIR_REPLAY_CALL(call, EndCommandBuffer, commands));
  const auto submit = of_type<vk::SubmitInfo>(0U, nullptr, nullptr, 1U, &commands, 0U, nullptr);
  WEIR_CHECK(WEIR_REPLAY_CALL(call, QueueSubmit, device.queue, 1, &submit, device.fence));
  WEIR_CHECK(
      check(call.vkWaitForFences(device.handle, 1, &device.fence, VK_TRUE, k_wait_nanoseconds),
            "vkWaitForFences (20 s)"));
  WEIR_CHECK(WEIR_REPLAY_CALL(call, ResetFences, device.handle, 1, &device.fence));
  std::vector<std::uint64_t> ticks(std::size_t{runs} * 2);
  WEIR_CHECK(WEIR_REPLAY_CALL(call, GetQueryPoolResults, device.handle, device.queries, 0, 2 * runs,
                              ticks.size() * 8, ticks.data(), 8,
                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
  const std::uint64_t mask =
      device.stamp_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << device.stamp_bits) - 1;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < ticks.size(); i += 2) {
    const std::uint64_t elapsed_ticks = (ticks[i + 1] - ticks[i]) & mask;
    seconds.push_back(static_cast<double>(elapsed_ticks) *
                      static_cast<double>(device.limits.timestampPeriod) * 1e-9);
  }
  return seconds;
}

}  // namespace

// Runs a captured dispatch: once to warm up, then as often as the limits allow. Returns the seconds
// of each run, or why there are none.
Outcome replay(const Device& device, const probes::RecordedKernels& recorded,
               const probes::RecordedWork& work, const RunLimits& run_limits) {
  auto owned_objects = std::make_unique<KernelObjects>(device, recorded, work);
  const KernelObjects& objects = *owned_objects;
  const auto refuse = [&owned_objects](const Error& error, bool lost) {
    if (lost) (void)owned_objects.release();  // the device may still use it: never destroyed
    return Outcome{{}, error.message, lost};
  };
  if (auto fits = objects.fits(run_limits.memory); !fits)
    return refuse(fits.error(), /*lost=*/false);
  if (auto created = owned_objects->make(); !created)
    return refuse(created.error(), /*lost=*/false);
  auto first_run = run(device, objects, 1, /*fill=*/true);
  if (!first_run) return refuse(first_run.error(), /*lost=*/true);
  const double run_seconds = std::max(first_run->front(), 1e-9);
  const double max_runs = std::clamp(run_limits.seconds / run_seconds, 3.0, double{k_max_runs});
  const std::uint32_t runs = std::clamp(run_limits.runs, 1U, static_cast<std::uint32_t>(max_runs));
  // Drivers reset a device that one submission holds for seconds.
  constexpr double k_submission_seconds = 0.5;
  const auto runs_per_submission =
      static_cast<std::uint32_t>(std::clamp(k_submission_seconds / run_seconds, 1.0, 200.0));
  Outcome out;
  while (out.seconds.size() < runs) {
    const auto remaining = runs - static_cast<std::uint32_t>(out.seconds.size());
    auto more_seconds =
        run(device, objects, std::min(runs_per_submission, remaining), /*fill=*/false);
    if (!more_seconds) return refuse(more_seconds.error(), /*lost=*/true);
    out.seconds.insert(out.seconds.end(), more_seconds->begin(), more_seconds->end());
  }
  return out;
}

}  // namespace weir::replay
