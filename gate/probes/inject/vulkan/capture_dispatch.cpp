// Captures dispatches for replay: the sets bound in a command buffer, and the works made of them.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

// The parts of a dispatch's record while it is put together.
struct WorkBuilder {
  weir_kernels_work head;
  weir_kernels_buffer buffers[WEIR_KERNELS_DESCRIPTORS];
  uint64_t handles[WEIR_KERNELS_DESCRIPTORS];
  uint64_t first[WEIR_KERNELS_DESCRIPTORS], end[WEIR_KERNELS_DESCRIPTORS];
  weir_kernels_descriptor descriptors[WEIR_KERNELS_DESCRIPTORS];
};

Table g_works;  // hash -> CapturedWork
uint32_t g_next_place;

// Returns true if the shader declares a descriptor at that set and binding.
bool declares(const ShaderCode& code, uint32_t set, uint32_t binding) {
  for (uint32_t i = 0; i < code.declared_count; ++i) {
    if (code.declared[i].set == set && code.declared[i].binding == binding) return true;
  }
  return false;
}

// Returns the buffer's index among those of the dispatch, adding it if it is new. Extends the part
// in use to the bytes from `offset` to `end`.
uint32_t add_buffer(WorkBuilder* builder, uint64_t handle, const BufferInfo& buffer,
                    uint64_t offset, uint64_t end) {
  uint32_t index = 0;
  while (index < builder->head.buffers && builder->handles[index] != handle) ++index;
  if (index == builder->head.buffers) {
    ++builder->head.buffers;  // no more than descriptors
    builder->handles[index] = handle;
    builder->first[index] = offset;
    builder->end[index] = end;
    builder->buffers[index] = {0, buffer.size, buffer.usage, 0};
  }
  if (offset < builder->first[index]) builder->first[index] = offset;
  if (end > builder->end[index]) builder->end[index] = end;
  return index;
}

// Adds a bound buffer, `slot`, to the dispatch. `dynamic` is added to its offset. Returns why the
// dispatch cannot be captured, or k_nothing_left_out.
uint32_t add_descriptor(const DeviceCapture& capture, const Descriptor& slot, uint64_t dynamic,
                        weir_kernels_descriptor descriptor, WorkBuilder* builder) {
  if (!slot.is_written) return WEIR_LEFT_UNBOUND;
  if (builder->head.descriptors == WEIR_KERNELS_DESCRIPTORS) return WEIR_LEFT_ROOM;
  descriptor.buffer = UINT32_MAX;
  if (slot.buffer != 0) {
    const auto* buffer = capture.buffers.get<const BufferInfo>(slot.buffer);
    if (buffer == nullptr) return WEIR_LEFT_UNBOUND;
    descriptor.offset = slot.offset + dynamic;
    if (descriptor.offset >= buffer->size) return WEIR_LEFT_UNBOUND;
    const uint64_t available = buffer->size - descriptor.offset;
    descriptor.range = slot.range == VK_WHOLE_SIZE ? available : slot.range;
    if (descriptor.range > available) return WEIR_LEFT_UNBOUND;
    descriptor.buffer = add_buffer(builder, slot.buffer, *buffer, descriptor.offset,
                                   descriptor.offset + descriptor.range);
  }
  builder->descriptors[builder->head.descriptors++] = descriptor;
  return k_nothing_left_out;
}

// Adds those buffers of descriptor set `index` that the shader declares. Returns why the dispatch
// cannot be captured, or k_nothing_left_out. Dynamic offsets are in the order of the layout's
// bindings, those of undeclared bindings included.
uint32_t add_set(const Device* device, const ShaderCode& code, const SetLayout& layout,
                 const CommandCapture::Bound& bound, uint32_t index, WorkBuilder* builder) {
  const DescriptorSet* set = bound.is_pushed
                                 ? bound.pushed_set
                                 : device->capture->sets.get<const DescriptorSet>(bound.set);
  uint32_t next_dynamic = 0;
  for (uint32_t i = 0; i < layout.bindings; ++i) {
    const SetLayout::Binding& binding = layout.binding[i];
    const bool is_dynamic = weir_kernels_is_dynamic(binding.type);
    if (!declares(code, index, binding.binding)) {
      if (is_dynamic) next_dynamic += binding.count;
      continue;
    }
    if (set == nullptr || set->layout != &layout) return WEIR_LEFT_UNBOUND;
    for (uint32_t element = 0; element < binding.count; ++element) {
      uint64_t offset = 0;
      if (is_dynamic) {
        if (next_dynamic >= bound.dynamic_offset_count) return WEIR_LEFT_UNBOUND;
        offset = bound.dynamic[next_dynamic];
        ++next_dynamic;
      }
      const uint32_t reason =
          add_descriptor(*device->capture, set->slot[binding.first + element], offset,
                         {index, binding.binding, element, binding.type, 0, 0, 0, 0}, builder);
      if (reason != k_nothing_left_out) return reason;
    }
  }
  return k_nothing_left_out;
}

// Makes offsets relative to the first byte bound of each buffer, aligned down to 256, which all
// devices accept. So dispatches of a model's layers become one work.
void make_offsets_relative(WorkBuilder* builder) {
  constexpr uint64_t k_alignment = 256;
  for (uint32_t i = 0; i < builder->head.buffers; ++i) {
    builder->first[i] &= ~(k_alignment - 1);
    builder->buffers[i].span = builder->end[i] - builder->first[i];
  }
  for (uint32_t i = 0; i < builder->head.descriptors; ++i) {
    weir_kernels_descriptor& descriptor = builder->descriptors[i];
    if (descriptor.buffer != UINT32_MAX) descriptor.offset -= builder->first[descriptor.buffer];
  }
}

// Returns true if two captured dispatches do the same. The sizes of the program's whole buffers
// may differ: the bytes in use may lie in any of them.
bool is_same_work(const CapturedWork* one, const CapturedWork* other) {
  if (one->pipeline != other->pipeline || one->bytes != other->bytes) return false;
  if (memcmp(one->body, other->body, sizeof(weir_kernels_work)) != 0) return false;
  weir_kernels_work head;
  memcpy(&head, one->body, sizeof head);
  const size_t descriptors_at = sizeof head + head.buffers * sizeof(weir_kernels_buffer);
  for (uint32_t i = 0; i < head.buffers; ++i) {
    weir_kernels_buffer a, b;
    memcpy(&a, one->body + sizeof head + i * sizeof a, sizeof a);
    memcpy(&b, other->body + sizeof head + i * sizeof b, sizeof b);
    if (a.span != b.span || a.usage != b.usage) return false;
  }
  return memcmp(one->body + descriptors_at, other->body + descriptors_at,
                one->bytes - descriptors_at) == 0;
}

// Returns the stored dispatch that equals `builder`'s, storing it if it is new. Null when memory,
// or what may be stored, is used up.
CapturedWork* find_or_add_work(PipelineCapture* pipeline, const WorkBuilder& builder,
                               const char* push) {
  const size_t bytes = sizeof builder.head + builder.head.buffers * sizeof(weir_kernels_buffer) +
                       builder.head.descriptors * sizeof(weir_kernels_descriptor) +
                       builder.head.push_bytes;
  auto* work = static_cast<CapturedWork*>(calloc(1, sizeof(CapturedWork) + bytes));
  if (work == nullptr) return nullptr;
  work->pipeline = pipeline;
  work->kernel = k_not_written;
  work->place = k_not_written;
  work->bytes = static_cast<uint32_t>(bytes);
  Body body = {work->body};
  body.put(&builder.head, 1);
  body.put(builder.buffers, builder.head.buffers);
  const char* const descriptors = body.at;
  body.put(builder.descriptors, builder.head.descriptors);
  body.put(push, builder.head.push_bytes);
  uint64_t hash = hash_bytes(pipeline->hash, &builder.head, sizeof builder.head);
  hash = hash_bytes(hash, descriptors, static_cast<size_t>(body.at - descriptors));
  pthread_mutex_lock(&g_capture_lock);
  auto* first = g_works.get<CapturedWork>(hash);
  CapturedWork* match = first;
  while (match != nullptr && !is_same_work(match, work)) match = match->next;
  if (match == nullptr && reserve_capture_memory(sizeof *work + bytes)) {
    work->next = first;
    if (g_works.insert(hash, work)) match = work;
  }
  pthread_mutex_unlock(&g_capture_lock);
  if (match != work) free(work);
  return match;
}

// Returns the entry of `work` for the kernel name with index `kernel` in the file; a new name gets
// a copy. An entry that is not in the file has no name as yet, so it can take this one. Null when
// memory is out. Needs g_capture_lock.
CapturedWork* find_or_add_named_work(CapturedWork* work, uint32_t kernel) {
  for (CapturedWork* entry = work; entry != nullptr; entry = entry->other_name) {
    const bool has_no_name_yet = entry->kernel == k_not_written;
    if (entry->kernel == kernel || has_no_name_yet) return entry;
  }
  const size_t bytes = sizeof(CapturedWork) + work->bytes;
  if (!reserve_capture_memory(bytes)) return nullptr;
  auto* copy = static_cast<CapturedWork*>(malloc(bytes));
  if (copy == nullptr) return nullptr;
  memcpy(copy, work, bytes);
  copy->kernel = k_not_written;
  copy->place = k_not_written;
  copy->next = nullptr;
  copy->other_name = work->other_name;
  work->other_name = copy;
  return copy;
}

// Captures a dispatch of x·y·z groups with all that is bound, so that it can be run again. Null if
// that cannot be done; `left_out_reason` then says why.
CapturedWork* build_work(const CommandBuffer* buffer, PipelineCapture* pipeline, uint32_t x,
                         uint32_t y, uint32_t z, uint32_t* left_out_reason) {
  const CommandCapture& commands = *buffer->capture;
  WorkBuilder builder;
  memset(&builder.head, 0, sizeof builder.head);
  builder.head.x = x;
  builder.head.y = y;
  builder.head.z = z;
  const uint32_t declared_bytes = pipeline->layout.push_bytes;
  if (commands.push_bytes == 0 && declared_bytes != 0) {  // set by a call that we do not intercept
    *left_out_reason = WEIR_LEFT_UNBOUND;
    return nullptr;
  }
  builder.head.push_bytes =
      commands.push_bytes < declared_bytes ? commands.push_bytes : declared_bytes;
  for (uint32_t i = 0; i < pipeline->layout.sets; ++i) {
    const SetLayout* layout = pipeline->layout.set[i];
    if (layout == nullptr) continue;
    *left_out_reason =
        add_set(buffer->device, *pipeline->code, *layout, commands.bound[i], i, &builder);
    if (*left_out_reason != k_nothing_left_out) return nullptr;
  }
  make_offsets_relative(&builder);
  CapturedWork* work = find_or_add_work(pipeline, builder, commands.push);
  if (work == nullptr) *left_out_reason = WEIR_LEFT_ROOM;
  return work;
}

// Returns where the file counts this dispatch, writing its record on first use. k_not_written when
// there is no room.
uint32_t find_or_write_place(CapturedWork* work, uint32_t kernel, const char* name) {
  const Locked locked(&g_capture_lock);
  work = find_or_add_named_work(work, kernel);
  if (work != nullptr && work->kernel == k_not_written) {
    work->kernel = kernel;
    if (g_next_place < WEIR_KERNELS_WORKS && write_pipeline(work->pipeline)) {
      weir_kernels_work head;
      memcpy(&head, work->body, sizeof head);
      head.pipeline = work->pipeline->written;
      head.kernel = kernel;
      copy_text(head.name, sizeof head.name, name);
      if (write_capture_record(WEIR_KERNELS_WORK, g_next_place, &head, sizeof head,
                               work->body + sizeof head, work->bytes - sizeof head)) {
        work->place = g_next_place++;
      }
    }
  }
  return work == nullptr ? k_not_written : work->place;
}

// Returns a new dispatch at the end; null, and counted, when memory is out.
CapturedDispatch* append_dispatch(CommandCapture* commands) {
  if (!make_room(&commands->dispatches, &commands->capacity, uint64_t{commands->count} + 1, 64,
                 1U << 24)) {
    ++commands->no_room;
    return nullptr;
  }
  return &commands->dispatches[commands->count++];
}

// Notes the descriptor sets and dynamic offsets that a command binds. All sets' offsets follow
// each other: those behind a set that is not known cannot be assigned.
void bind_sets(CommandBuffer* buffer, VkPipelineBindPoint point, VkPipelineLayout, uint32_t first,
               uint32_t count, const VkDescriptorSet* sets, uint32_t dynamic_offset_count,
               const uint32_t* dynamic) {
  if (buffer->capture == nullptr || point != VK_PIPELINE_BIND_POINT_COMPUTE) return;
  uint32_t used = 0;
  for (uint32_t i = 0; i < count && i < WEIR_KERNELS_MAX_SETS && first < WEIR_KERNELS_MAX_SETS - i;
       ++i) {
    CommandCapture::Bound& bound = buffer->capture->bound[first + i];
    bound.set = handle_key(sets[i]);
    bound.is_pushed = false;
    bound.dynamic_offset_count = 0;
    const auto* set = buffer->device->capture->sets.get<const DescriptorSet>(bound.set);
    if (set == nullptr) {
      used = dynamic_offset_count;  // the remaining offsets cannot be assigned to sets
      continue;
    }
    for (uint32_t j = 0; j < set->layout->bindings; ++j) {
      if (!weir_kernels_is_dynamic(set->layout->binding[j].type)) continue;
      for (uint32_t k = 0; k < set->layout->binding[j].count && used < dynamic_offset_count; ++k) {
        if (bound.dynamic_offset_count < CommandCapture::k_dynamic) {
          bound.dynamic[bound.dynamic_offset_count++] = dynamic[used];
        } else {
          bound.set = 0;  // too many offsets: take the set as unknown
        }
        ++used;
      }
    }
  }
}

const Hook k_hooks[] = {WEIR_BINDING_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_binding_hooks = list_of(k_hooks);

// Adds a dispatch of x·y·z groups to the buffer's capture: all that is needed to run it again, or
// the reason why it cannot be.
void capture_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z,
                      uint32_t left_out_reason) {
  CapturedDispatch* dispatch = append_dispatch(buffer->capture);
  if (dispatch == nullptr) return;
  *dispatch = {nullptr, left_out_reason, nullptr, nullptr};
  const DispatchTally* bound = buffer->bound;
  if (left_out_reason != k_nothing_left_out) return;
  PipelineCapture* pipeline = bound == nullptr ? nullptr : bound->pipeline->capture;
  dispatch->left_out_reason =
      pipeline == nullptr ? uint32_t{WEIR_LEFT_UNKNOWN} : pipeline->left_out_reason;
  if (dispatch->left_out_reason != k_nothing_left_out) return;
  dispatch->pipeline = bound->pipeline;
  dispatch->label = bound->label;
  dispatch->work = build_work(buffer, pipeline, x, y, z, &dispatch->left_out_reason);
}

void capture_push_constants(CommandCapture* commands, uint32_t offset, uint32_t size,
                            const void* values) {
  if (offset >= WEIR_KERNELS_PUSH_BYTES || size > WEIR_KERNELS_PUSH_BYTES - offset) return;
  if (offset > commands->push_bytes) {
    memset(commands->push + commands->push_bytes, 0, offset - commands->push_bytes);
  }
  memcpy(commands->push + offset, values, size);
  // Bytes pushed earlier stay valid; a pipeline takes as many as its layout declares.
  const uint32_t end = offset + size;
  if (end > commands->push_bytes) commands->push_bytes = end;
}

// Empties the buffer's capture for a new recording, creating it if there is none. Does nothing if
// dispatches of this device are not captured; without memory the buffer stays without a capture.
void begin_capture(CommandBuffer* buffer) {
  if (buffer->device->capture == nullptr) return;
  if (buffer->capture == nullptr) {
    buffer->capture = static_cast<CommandCapture*>(calloc(1, sizeof(CommandCapture)));
    if (buffer->capture == nullptr) return;
  }
  CommandCapture* commands = buffer->capture;
  commands->count = 0;
  commands->push_bytes = 0;
  commands->no_room = 0;
  for (CommandCapture::Bound& bound : commands->bound) {
    bound.set = 0;
    bound.is_pushed = false;
    bound.dynamic_offset_count = 0;
  }
}

void append_capture(CommandBuffer* buffer, const CommandBuffer* secondary) {
  if (buffer->capture == nullptr || secondary->capture == nullptr) return;
  buffer->capture->no_room += secondary->capture->no_room;
  for (uint32_t i = 0; i < secondary->capture->count; ++i) {
    if (CapturedDispatch* dispatch = append_dispatch(buffer->capture)) {
      *dispatch = secondary->capture->dispatches[i];
    }
  }
}

void free_capture(CommandBuffer* buffer) {
  if (buffer->capture == nullptr) return;
  for (CommandCapture::Bound& bound : buffer->capture->bound) free(bound.pushed_set);
  free(buffer->capture->dispatches);
  free(buffer->capture);
  buffer->capture = nullptr;
}

// Counts the captured dispatches of a submission: `sign` 1 adds them, -1 (modulo 2^64) takes them
// back. Writes those to the file that were not submitted before.
void submit_capture(const CommandBuffer* buffer, uint64_t sign) {
  const CommandCapture* commands = buffer->capture;
  if (commands == nullptr) return;
  if (commands->no_room != 0) count_left_out(WEIR_LEFT_ROOM, commands->no_room * sign);
  for (uint32_t i = 0; i < commands->count; ++i) {
    const CapturedDispatch& dispatch = commands->dispatches[i];
    if (dispatch.work == nullptr) {
      count_left_out(dispatch.left_out_reason, sign);
      continue;
    }
    const uint32_t kernel = resolve_kernel(buffer->device, dispatch.pipeline, dispatch.label);
    const uint32_t place = find_or_write_place(dispatch.work, kernel, g.file.kernels[kernel].name);
    if (place == k_not_written) {
      count_left_out(WEIR_LEFT_ROOM, sign);
    } else {
      count_captured_work(place, sign);
    }
  }
}

}  // namespace weir_probe
