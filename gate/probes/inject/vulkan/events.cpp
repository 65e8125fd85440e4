// Records the commands of a command buffer as events, and writes them when it is submitted.
#include <string.h>

#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {
namespace {

constexpr uint32_t k_max_recording = 32U << 20;

constexpr uint32_t padded(uint32_t bytes) { return (bytes + 7U) & ~7U; }

// Makes room for `bytes` and `dispatches` more, and returns the place of the bytes. Null when the
// recording is as long as it may become.
char* make_recording_room(Recording* recording, uint32_t bytes, uint32_t dispatches) {
  if (make_room(&recording->bytes, &recording->capacity, uint64_t{recording->used} + bytes, 4096,
                k_max_recording) &&
      make_room(&recording->dispatches, &recording->dispatch_capacity,
                uint64_t{recording->dispatch_count} + dispatches, 64, k_max_recording)) {
    return recording->bytes + recording->used;
  }
  set_events_flag(WEIR_EVENTS_DROPPED);
  return nullptr;
}

// Appends one event with `tail` behind its body, padded to 8 bytes. Drops it where there is no
// room.
template <class Body>
void append(Recording* recording, uint16_t kind, const Body& body, const void* tail = nullptr,
            uint32_t tail_bytes = 0) {
  const uint32_t bytes = sizeof(weir_event) + padded(sizeof body + tail_bytes);
  char* at = make_recording_room(recording, bytes, kind == WEIR_EVENT_DISPATCH ? 1 : 0);
  if (at == nullptr) return;
  const weir_event event = {kind, static_cast<uint16_t>(bytes / 8), 0};
  memset(at + bytes - 8, 0, 8);
  memcpy(at, &event, sizeof event);
  memcpy(at + sizeof event, &body, sizeof body);
  if (tail_bytes != 0) memcpy(at + sizeof event + sizeof body, tail, tail_bytes);
  recording->used += bytes;
  ++recording->commands;
}

// Returns the end of the longest piece from `from` on that holds whole records in at most
// `max_bytes` bytes.
uint32_t end_of_whole_records(const Recording* recording, uint32_t from, uint32_t max_bytes) {
  if (recording->used - from <= max_bytes) return recording->used;
  uint32_t end = from;
  while (end < recording->used) {
    const auto* event = reinterpret_cast<const weir_event*>(recording->bytes + end);
    if (end + event->words * 8U - from > max_bytes) break;
    end += event->words * 8U;
  }
  return end;
}

}  // namespace

void log_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t flags) {
  const SampledOwnTimeScope own_time_scope;
  Recording* recording = buffer->recording;
  const weir_event_dispatch body = {x, y, z, flags, enter_group(buffer), recording->push_bytes};
  const uint32_t at = recording->used;
  append(recording, WEIR_EVENT_DISPATCH, body, recording->push, body.push_bytes);
  if (recording->used == at) return;
  const DispatchTally* bound = buffer->bound;
  recording->dispatches[recording->dispatch_count++] = {
      bound == nullptr ? nullptr : bound->pipeline, bound == nullptr ? nullptr : bound->label, at};
}

void log_barrier(CommandBuffer* buffer, const weir_event_barrier& barrier) {
  const SampledOwnTimeScope own_time_scope;
  close_group(buffer);
  append(buffer->recording, WEIR_EVENT_BARRIER, barrier);
}

// Sets push constants of the following dispatches; a push at offset 0 starts them anew.
void log_push(CommandBuffer* buffer, uint32_t offset, uint32_t size, const void* values) {
  Recording* recording = buffer->recording;
  if (offset >= sizeof recording->push || size > sizeof recording->push - offset) return;
  memcpy(recording->push + offset, values, size);
  const uint32_t end = offset + size;
  if (offset == 0 || end > recording->push_bytes) recording->push_bytes = end;
}

void log_copy(CommandBuffer* buffer, uint32_t kind, uint64_t bytes) {
  const SampledOwnTimeScope own_time_scope;
  const weir_event_copy body = {bytes, kind, enter_group(buffer)};
  append(buffer->recording, WEIR_EVENT_COPY, body);
}

// Empties the buffer's list of events, creating it if events are wanted and there is none.
void begin_recording(CommandBuffer* buffer) {
  if (buffer->recording == nullptr) {
    if (!is_recording_events()) return;
    buffer->recording = static_cast<Recording*>(calloc(1, sizeof(Recording)));
    if (buffer->recording == nullptr) {
      set_events_flag(WEIR_EVENTS_DROPPED);
      return;
    }
  }
  retire_stamps(buffer);
  Recording* recording = buffer->recording;
  recording->used = 0;
  recording->commands = 0;
  recording->push_bytes = 0;
  recording->dispatch_count = 0;
}

// Appends the commands of the command buffer `secondary` to `buffer`. All get one group number, as
// they share one time.
void log_secondary(CommandBuffer* buffer, const CommandBuffer* secondary) {
  Recording* recording = buffer->recording;
  if (recording == nullptr || secondary->recording == nullptr) return;
  const Recording* source = secondary->recording;
  const uint32_t start = recording->used;
  char* destination = make_recording_room(recording, source->used, source->dispatch_count);
  if (destination == nullptr) return;
  if (source->used != 0) memcpy(destination, source->bytes, source->used);
  for (uint32_t i = 0; i < source->dispatch_count; ++i) {
    UnresolvedDispatch dispatch = source->dispatches[i];
    dispatch.offset += start;
    recording->dispatches[recording->dispatch_count++] = dispatch;
  }
  const uint32_t group = enter_group(buffer);
  for (uint32_t offset = 0; offset < source->used;) {
    weir_event event;
    memcpy(&event, destination + offset, sizeof event);
    char* body = destination + offset + sizeof event;
    if (event.kind == WEIR_EVENT_DISPATCH) {
      memcpy(body + offsetof(weir_event_dispatch, group), &group, sizeof group);
    } else if (event.kind == WEIR_EVENT_COPY) {
      memcpy(body + offsetof(weir_event_copy, group), &group, sizeof group);
    }
    offset += event.words * 8U;
  }
  recording->used += source->used;
  recording->commands += source->commands;
}

void free_recording(CommandBuffer* buffer) {
  if (buffer->recording == nullptr) return;
  free_stamps(buffer);
  free(buffer->recording->bytes);
  free(buffer->recording->dispatches);
  free(buffer->recording);
  buffer->recording = nullptr;
}

uint64_t next_serial() {
  static uint64_t last = 0;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

// Writes a command buffer's events to the file, in pieces of whole records. Puts the kernels into
// its dispatches, as they are known by now.
void log_buffer(CommandBuffer* buffer, uint64_t serial, uint32_t index_in_submit) {
  const Recording* recording = buffer->recording;
  if (recording == nullptr) return;
  const OwnTimeScope own_time_scope;
  const weir_event_buffer body = {serial, index_in_submit, recording->commands};
  if (!write_event(WEIR_EVENT_BUFFER, 0, &body, sizeof body)) return;
  uint32_t dispatch_index = 0;
  for (uint32_t from = 0; from < recording->used;) {
    const uint32_t end = end_of_whole_records(recording, from, k_max_event_bytes);
    char* copy = reserve_event_bytes(end - from);
    if (copy == nullptr) return;
    memcpy(copy, recording->bytes + from, end - from);
    for (; dispatch_index < recording->dispatch_count; ++dispatch_index) {
      const UnresolvedDispatch& dispatch = recording->dispatches[dispatch_index];
      if (dispatch.offset >= end) break;
      if (dispatch.pipeline == nullptr) continue;
      const uint32_t kernel = resolve_kernel(buffer->device, dispatch.pipeline, dispatch.label);
      memcpy(copy + (dispatch.offset - from) + offsetof(weir_event, index), &kernel, sizeof kernel);
    }
    commit_event_bytes(end - from);
    from = end;
  }
}

void log_submit(Queue* queue, uint64_t serial, uint64_t begin, uint32_t buffers) {
  const weir_event_submit body = {serial, begin, now_nanoseconds(), buffers, 0};
  write_event(WEIR_EVENT_SUBMIT, queue_index(queue), &body, sizeof body);
}

}  // namespace weir_probe
