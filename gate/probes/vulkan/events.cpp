#include "gate/probes/vulkan/events.h"

#include <string.h>

namespace weir_probe {
namespace {

constexpr uint32_t k_most_recording = 32U << 20;

// A dispatch in a recording: its pipeline and label stand before the record, because its kernel is
// looked up when it reaches the device.
struct Unresolved {
  Pipeline* pipeline;  // null: nothing known was bound
  Label* label;
};

constexpr uint32_t padded(uint32_t bytes) { return (bytes + 7U) & ~7U; }

// Room for `bytes` more, or null when the recording is as long as it may become.
char* room(Recording* recording, uint32_t bytes) {
  if (recording->used + bytes > recording->capacity) {
    uint32_t capacity = recording->capacity == 0 ? 4096 : recording->capacity * 2;
    while (capacity < recording->used + bytes) capacity *= 2;
    char* grown = capacity > k_most_recording
                      ? nullptr
                      : static_cast<char*>(realloc(recording->bytes, capacity));
    if (grown == nullptr) {
      set_events_flag(WEIR_EVENTS_DROPPED);
      return nullptr;
    }
    recording->bytes = grown;
    recording->capacity = capacity;
  }
  char* at = recording->bytes + recording->used;
  recording->used += bytes;
  ++recording->commands;
  return at;
}

template <class Body>
char* put(char* at, uint16_t kind, const Body& body, uint32_t tail_bytes) {
  const uint32_t bytes = sizeof(weir_event) + padded(sizeof body + tail_bytes);
  const weir_event event = {kind, static_cast<uint16_t>(bytes / 8), 0};
  memset(at + bytes - 8, 0, 8);
  memcpy(at, &event, sizeof event);
  memcpy(at + sizeof event, &body, sizeof body);
  return at + sizeof event + sizeof body;
}

template <class Body>
void append(Recording* recording, uint16_t kind, const Body& body) {
  char* at = room(recording, sizeof(weir_event) + padded(sizeof body));
  if (at != nullptr) put(at, kind, body, 0);
}

// Visits each record: visit(record, dispatch's pipeline and label or null).
template <class Visit>
void each(const Recording* recording, Visit visit) {
  for (uint32_t at = 0; at < recording->used;) {
    char* here = recording->bytes + at;
    const auto* event = reinterpret_cast<weir_event*>(here);
    Unresolved* unresolved = nullptr;
    if (event->kind == WEIR_EVENT_DISPATCH) {
      unresolved = reinterpret_cast<Unresolved*>(here + sizeof(weir_event));
      here += sizeof(weir_event) + sizeof(Unresolved);
      at += static_cast<uint32_t>(sizeof(weir_event) + sizeof(Unresolved));
      event = reinterpret_cast<weir_event*>(here);
    }
    visit(reinterpret_cast<weir_event*>(here), unresolved);
    at += event->words * 8U;
  }
}

uint32_t queue_index(const Queue* queue) {
  return queue == nullptr ? UINT32_MAX : static_cast<uint32_t>(queue->entry - g.file.queues);
}

}  // namespace

void log_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t flags) {
  Recording* recording = buffer->recording;
  const weir_event_dispatch body = {x, y, z, flags, enter_group(buffer), recording->push_bytes};
  const Unresolved unresolved = {buffer->bound == nullptr ? nullptr : buffer->bound->pipeline,
                                 buffer->bound == nullptr ? nullptr : buffer->bound->label};
  const uint32_t bytes = sizeof(weir_event) + padded(sizeof body + body.push_bytes);
  char* at = room(recording, sizeof(weir_event) + sizeof unresolved + bytes);
  if (at == nullptr) return;
  // A record without a length of its own marks what follows as a dispatch.
  const weir_event mark = {WEIR_EVENT_DISPATCH, 0, 0};
  memcpy(at, &mark, sizeof mark);
  memcpy(at + sizeof mark, &unresolved, sizeof unresolved);
  char* push =
      put(at + sizeof mark + sizeof unresolved, WEIR_EVENT_DISPATCH, body, body.push_bytes);
  memcpy(push, recording->push, body.push_bytes);
}

void log_barrier(CommandBuffer* buffer, const weir_event_barrier& barrier) {
  close_group(buffer);
  append(buffer->recording, WEIR_EVENT_BARRIER, barrier);
}

void LogBarrier::log(CommandBuffer* buffer, VkPipelineStageFlags from, VkPipelineStageFlags to,
                     VkDependencyFlags flags, uint32_t memory_count, const VkMemoryBarrier*,
                     uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
                     uint32_t image_count, const VkImageMemoryBarrier* images) {
  weir_event_barrier body = {memory_count, buffer_count, image_count, 0, from, to};
  if ((flags & VK_DEPENDENCY_BY_REGION_BIT) != 0) body.flags |= WEIR_BARRIER_BY_REGION;
  for (uint32_t i = 0; i < buffer_count; ++i) {
    if (buffers[i].srcQueueFamilyIndex != buffers[i].dstQueueFamilyIndex) {
      body.flags |= WEIR_BARRIER_TRANSFER;
    }
  }
  for (uint32_t i = 0; i < image_count; ++i) {
    if (images[i].oldLayout != images[i].newLayout) body.flags |= WEIR_BARRIER_LAYOUT;
    if (images[i].srcQueueFamilyIndex != images[i].dstQueueFamilyIndex) {
      body.flags |= WEIR_BARRIER_TRANSFER;
    }
  }
  log_barrier(buffer, body);
}

void LogBarrier::log(CommandBuffer* buffer, const VkDependencyInfo* info) {
  weir_event_barrier body = {info->memoryBarrierCount,
                             info->bufferMemoryBarrierCount,
                             info->imageMemoryBarrierCount,
                             0,
                             0,
                             0};
  if ((info->dependencyFlags & VK_DEPENDENCY_BY_REGION_BIT) != 0) {
    body.flags |= WEIR_BARRIER_BY_REGION;
  }
  for (uint32_t i = 0; i < info->memoryBarrierCount; ++i) {
    body.from |= info->pMemoryBarriers[i].srcStageMask;
    body.to |= info->pMemoryBarriers[i].dstStageMask;
  }
  const auto owned = [&](const auto& barrier) {
    body.from |= barrier.srcStageMask;
    body.to |= barrier.dstStageMask;
    if (barrier.srcQueueFamilyIndex != barrier.dstQueueFamilyIndex) {
      body.flags |= WEIR_BARRIER_TRANSFER;
    }
  };
  for (uint32_t i = 0; i < info->bufferMemoryBarrierCount; ++i) {
    owned(info->pBufferMemoryBarriers[i]);
  }
  for (uint32_t i = 0; i < info->imageMemoryBarrierCount; ++i) {
    const VkImageMemoryBarrier2& image = info->pImageMemoryBarriers[i];
    owned(image);
    if (image.oldLayout != image.newLayout) body.flags |= WEIR_BARRIER_LAYOUT;
  }
  log_barrier(buffer, body);
}

void log_copy(CommandBuffer* buffer, uint32_t kind, uint64_t bytes) {
  const weir_event_copy body = {bytes, kind, enter_group(buffer)};
  append(buffer->recording, WEIR_EVENT_COPY, body);
}

void begin_recording(CommandBuffer* buffer) {
  if (buffer->recording == nullptr) {
    if (!events_on()) return;
    buffer->recording = static_cast<Recording*>(calloc(1, sizeof(Recording)));
    if (buffer->recording == nullptr) {
      set_events_flag(WEIR_EVENTS_DROPPED);
      return;
    }
  }
  retire_stamps(buffer);
  buffer->recording->used = buffer->recording->commands = buffer->recording->push_bytes = 0;
}

void log_secondary(CommandBuffer* buffer, const CommandBuffer* secondary) {
  Recording* recording = buffer->recording;
  if (recording == nullptr || secondary->recording == nullptr) return;
  const uint32_t group = enter_group(buffer);
  each(secondary->recording, [&](const weir_event* event, const Unresolved* unresolved) {
    const uint32_t bytes = event->words * 8U;
    const uint32_t before =
        unresolved == nullptr ? 0U : static_cast<uint32_t>(sizeof(weir_event) + sizeof *unresolved);
    char* at = room(recording, before + bytes);
    if (at == nullptr) return;
    memcpy(at, reinterpret_cast<const char*>(event) - before, before + bytes);
    // One time for all that a secondary buffer does.
    char* body = at + before + sizeof(weir_event);
    if (event->kind == WEIR_EVENT_DISPATCH) {
      memcpy(body + offsetof(weir_event_dispatch, group), &group, sizeof group);
    } else if (event->kind == WEIR_EVENT_COPY) {
      memcpy(body + offsetof(weir_event_copy, group), &group, sizeof group);
    }
  });
}

void free_recording(CommandBuffer* buffer) {
  if (buffer->recording == nullptr) return;
  free_stamps(buffer);
  free(buffer->recording->bytes);
  free(buffer->recording);
  buffer->recording = nullptr;
}

uint64_t next_serial() {
  static uint64_t last = 0;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

void log_buffer(CommandBuffer* buffer, uint64_t serial, uint32_t order) {
  const Recording* recording = buffer->recording;
  if (recording == nullptr) return;
  const weir_event_buffer body = {serial, order, recording->commands};
  if (!write_event(WEIR_EVENT_BUFFER, 0, &body, sizeof body)) return;
  each(recording, [&](const weir_event* event, const Unresolved* unresolved) {
    uint32_t kernel = 0;
    if (unresolved != nullptr && unresolved->pipeline != nullptr) {
      kernel = resolve_kernel(buffer->device, unresolved->pipeline, unresolved->label);
    }
    write_event(event->kind, kernel, event + 1,
                event->words * 8U - static_cast<uint32_t>(sizeof *event));
  });
}

void log_submit(Queue* queue, uint64_t serial, uint64_t begin, uint32_t buffers) {
  const weir_event_submit body = {serial, begin, now_nanoseconds(), buffers, 0};
  write_event(WEIR_EVENT_SUBMIT, queue_index(queue), &body, sizeof body);
}

void log_wait(Queue* queue, uint32_t kind, uint64_t begin, bool sync) {
  const weir_event_wait body = {begin, now_nanoseconds(), kind, sync ? WEIR_WAIT_SYNC : 0};
  write_event(WEIR_EVENT_WAIT, queue_index(queue), &body, sizeof body);
}

VKAPI_ATTR VkResult VKAPI_CALL end_command_buffer(VkCommandBuffer handle) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer != nullptr && buffer->recording != nullptr) end_stamps(buffer);
  return device_of(handle)->next.EndCommandBuffer(handle);
}

VKAPI_ATTR void VKAPI_CALL cmd_push_constants(VkCommandBuffer handle, VkPipelineLayout layout,
                                              VkShaderStageFlags stages, uint32_t offset,
                                              uint32_t size, const void* values) {
  CommandBuffer* buffer = command_buffer(handle);
  Recording* recording = buffer == nullptr ? nullptr : buffer->recording;
  if (recording != nullptr && offset < sizeof recording->push &&
      size <= sizeof recording->push - offset) {
    memcpy(recording->push + offset, values, size);
    const uint32_t end = offset + size;
    if (offset == 0 || end > recording->push_bytes) recording->push_bytes = end;
  }
  device_of(handle)->next.CmdPushConstants(handle, layout, stages, offset, size, values);
}

VKAPI_ATTR void VKAPI_CALL cmd_wait_events(VkCommandBuffer handle, uint32_t count,
                                           const VkEvent* events, VkPipelineStageFlags from,
                                           VkPipelineStageFlags to, uint32_t memory_count,
                                           const VkMemoryBarrier* memory, uint32_t buffer_count,
                                           const VkBufferMemoryBarrier* buffers,
                                           uint32_t image_count,
                                           const VkImageMemoryBarrier* images) {
  CommandBuffer* buffer = command_buffer(handle);
  if (buffer != nullptr && buffer->recording != nullptr) close_group(buffer);
  device_of(handle)->next.CmdWaitEvents(handle, count, events, from, to, memory_count, memory,
                                        buffer_count, buffers, image_count, images);
}

}  // namespace weir_probe
