// What a command buffer has bound, what it dispatches, and what that takes to be made again.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

// As much as one dispatch can need; the record's body is put together from it.
struct Drawn {
  weir_kernels_work head;
  weir_kernels_buffer buffers[WEIR_KERNELS_DESCRIPTORS];
  uint64_t handles[WEIR_KERNELS_DESCRIPTORS];
  uint64_t first[WEIR_KERNELS_DESCRIPTORS], end[WEIR_KERNELS_DESCRIPTORS];
  weir_kernels_descriptor descriptors[WEIR_KERNELS_DESCRIPTORS];
};

Table g_works;  // hash -> KeptWork
uint32_t g_next_place;

bool declares(const KeptCode& code, uint32_t set, uint32_t binding) {
  for (uint32_t i = 0; i < code.declared_count; ++i) {
    if (code.declared[i].set == set && code.declared[i].binding == binding) return true;
  }
  return false;
}

// The buffer's place among those of the dispatch, its span grown to hold these bytes.
uint32_t place_of_buffer(Drawn* out, uint64_t handle, const KeptBuffer& buffer, uint64_t offset,
                         uint64_t end) {
  uint32_t at = 0;
  while (at < out->head.buffers && out->handles[at] != handle) ++at;
  if (at == out->head.buffers) {
    ++out->head.buffers;  // no more than descriptors
    out->handles[at] = handle;
    out->first[at] = offset;
    out->end[at] = end;
    out->buffers[at] = {0, buffer.size, buffer.usage, 0};
  }
  if (offset < out->first[at]) out->first[at] = offset;
  if (end > out->end[at]) out->end[at] = end;
  return at;
}

// One descriptor; why it cannot be kept, or k_nothing_left_out.
uint32_t draw(const KeptDevice& kept, const KeptSlot& slot, uint64_t dynamic,
              weir_kernels_descriptor one, Drawn* out) {
  if (!slot.known) return WEIR_LEFT_UNBOUND;
  if (out->head.descriptors == WEIR_KERNELS_DESCRIPTORS) return WEIR_LEFT_ROOM;
  one.buffer = UINT32_MAX;
  if (slot.buffer != 0) {
    const auto* buffer = kept.buffers.get<const KeptBuffer>(slot.buffer);
    if (buffer == nullptr) return WEIR_LEFT_UNBOUND;
    one.offset = slot.offset + dynamic;
    if (one.offset >= buffer->size) return WEIR_LEFT_UNBOUND;
    const uint64_t left = buffer->size - one.offset;
    one.range = slot.range == VK_WHOLE_SIZE ? left : slot.range;
    if (one.range > left) return WEIR_LEFT_UNBOUND;
    one.buffer = place_of_buffer(out, slot.buffer, *buffer, one.offset, one.offset + one.range);
  }
  out->descriptors[out->head.descriptors++] = one;
  return k_nothing_left_out;
}

uint32_t draw_set(const Device* device, const KeptCode& code, const KeptLayout& layout,
                  const KeptCommands::Bound& bound, uint32_t index, Drawn* out) {
  const KeptSet* set =
      bound.is_pushed ? bound.pushed : device->kept->sets.get<const KeptSet>(bound.set);
  uint32_t dynamic = 0;
  for (uint32_t i = 0; i < layout.bindings; ++i) {
    const KeptLayout::Binding& binding = layout.binding[i];
    const bool moves = weir_kernels_is_dynamic(binding.type);
    if (!declares(code, index, binding.binding)) {
      if (moves) dynamic += binding.count;
      continue;
    }
    if (set == nullptr || set->layout != &layout) return WEIR_LEFT_UNBOUND;
    for (uint32_t element = 0; element < binding.count; ++element) {
      uint64_t moved = 0;
      if (moves) {
        if (dynamic >= bound.dynamic_count) return WEIR_LEFT_UNBOUND;
        moved = bound.dynamic[dynamic++];
      }
      const uint32_t reason =
          draw(*device->kept, set->slot[binding.first + element], moved,
               {index, binding.binding, element, binding.type, 0, 0, 0, 0}, out);
      if (reason != k_nothing_left_out) return reason;
    }
  }
  return k_nothing_left_out;
}

// Offsets from the first byte bound on. Aligned as all devices ask for, so that what is left of
// them fits a device that the whole ones fit.
void pull_together(Drawn* out) {
  constexpr uint64_t k_alignment = 256;
  for (uint32_t i = 0; i < out->head.buffers; ++i) {
    out->first[i] &= ~(k_alignment - 1);
    out->buffers[i].span = out->end[i] - out->first[i];
  }
  for (uint32_t i = 0; i < out->head.descriptors; ++i) {
    weir_kernels_descriptor& one = out->descriptors[i];
    if (one.buffer != UINT32_MAX) one.offset -= out->first[one.buffer];
  }
}

// The same work whichever of several buffers of the program the bytes lie in: not compared is how
// large that one is.
bool same(const KeptWork* one, const KeptWork* other) {
  if (one->pipeline != other->pipeline || one->bytes != other->bytes) return false;
  if (memcmp(one->body, other->body, sizeof(weir_kernels_work)) != 0) return false;
  weir_kernels_work head;
  memcpy(&head, one->body, sizeof head);
  const size_t behind = sizeof head + head.buffers * sizeof(weir_kernels_buffer);
  for (uint32_t i = 0; i < head.buffers; ++i) {
    weir_kernels_buffer a, b;
    memcpy(&a, one->body + sizeof head + i * sizeof a, sizeof a);
    memcpy(&b, other->body + sizeof head + i * sizeof b, sizeof b);
    if (a.span != b.span || a.usage != b.usage) return false;
  }
  return memcmp(one->body + behind, other->body + behind, one->bytes - behind) == 0;
}

KeptWork* keep_work(KeptPipeline* pipeline, const Drawn& drawn, const char* push) {
  const size_t bytes = sizeof drawn.head + drawn.head.buffers * sizeof(weir_kernels_buffer) +
                       drawn.head.descriptors * sizeof(weir_kernels_descriptor) +
                       drawn.head.push_bytes;
  auto* made = static_cast<KeptWork*>(calloc(1, sizeof(KeptWork) + bytes));
  if (made == nullptr) return nullptr;
  made->pipeline = pipeline;
  made->kernel = made->place = k_not_written;
  made->bytes = static_cast<uint32_t>(bytes);
  Body body = {made->body};
  body.put(&drawn.head, 1);
  body.put(drawn.buffers, drawn.head.buffers);
  const char* const behind = body.at;
  body.put(drawn.descriptors, drawn.head.descriptors);
  body.put(push, drawn.head.push_bytes);
  uint64_t hash = hash_bytes(pipeline->hash, &drawn.head, sizeof drawn.head);
  hash = hash_bytes(hash, behind, static_cast<size_t>(body.at - behind));
  pthread_mutex_lock(&g_kept_lock);
  auto* first = g_works.get<KeptWork>(hash);
  KeptWork* known = first;
  while (known != nullptr && !same(known, made)) known = known->next;
  if (known == nullptr && take_kept_bytes(sizeof *made + bytes)) {
    made->next = first;
    if (g_works.insert(hash, made)) known = made;
  }
  pthread_mutex_unlock(&g_kept_lock);
  if (known != made) free(made);
  return known;
}

// The same work under that name; made where it is the first time. Under g_kept_lock.
KeptWork* named(KeptWork* work, uint32_t kernel) {
  for (KeptWork* at = work; at != nullptr; at = at->other_name) {
    if (at->kernel == kernel || at->kernel == k_not_written) return at;
  }
  const size_t bytes = sizeof(KeptWork) + work->bytes;
  if (!take_kept_bytes(bytes)) return nullptr;
  auto* made = static_cast<KeptWork*>(malloc(bytes));
  if (made == nullptr) return nullptr;
  memcpy(made, work, bytes);
  made->kernel = made->place = k_not_written;
  made->next = nullptr;
  made->other_name = work->other_name;
  work->other_name = made;
  return made;
}

// What is dispatched now; null with the reason why it is left out.
KeptWork* work_of(const CommandBuffer* buffer, KeptPipeline* pipeline, uint32_t x, uint32_t y,
                  uint32_t z, uint32_t* left_out) {
  const KeptCommands& commands = *buffer->kept;
  Drawn drawn;
  memset(&drawn.head, 0, sizeof drawn.head);
  drawn.head.x = x;
  drawn.head.y = y;
  drawn.head.z = z;
  const uint32_t most = pipeline->layout.push_bytes;
  if (commands.push_bytes == 0 && most != 0) {  // by a call that is not seen
    *left_out = WEIR_LEFT_UNBOUND;
    return nullptr;
  }
  drawn.head.push_bytes = commands.push_bytes < most ? commands.push_bytes : most;
  for (uint32_t i = 0; i < pipeline->layout.sets; ++i) {
    const KeptLayout* layout = pipeline->layout.set[i];
    if (layout == nullptr) continue;
    *left_out = draw_set(buffer->device, *pipeline->code, *layout, commands.bound[i], i, &drawn);
    if (*left_out != k_nothing_left_out) return nullptr;
  }
  pull_together(&drawn);
  KeptWork* work = keep_work(pipeline, drawn, commands.push);
  if (work == nullptr) *left_out = WEIR_LEFT_ROOM;
  return work;
}

// The place of a work among the counts, written now if it was not yet; k_not_written: no room.
uint32_t place_of(KeptWork* work, uint32_t kernel, const char* name) {
  const Locked locked(&g_kept_lock);
  work = named(work, kernel);
  if (work != nullptr && work->kernel == k_not_written) {
    work->kernel = kernel;
    if (g_next_place < WEIR_KERNELS_WORKS && write_pipeline(work->pipeline)) {
      weir_kernels_work head;
      memcpy(&head, work->body, sizeof head);
      head.pipeline = work->pipeline->written;
      head.kernel = kernel;
      copy_text(head.name, sizeof head.name, name);
      if (write_kept(WEIR_KERNELS_WORK, g_next_place, &head, sizeof head, work->body + sizeof head,
                     work->bytes - sizeof head)) {
        work->place = g_next_place++;
      }
    }
  }
  return work == nullptr ? k_not_written : work->place;
}

KeptDispatch* fresh_dispatch(KeptCommands* commands) {
  if (!make_room(&commands->dispatches, &commands->capacity, uint64_t{commands->count} + 1, 64,
                 1U << 24)) {
    ++commands->no_room;
    return nullptr;
  }
  return &commands->dispatches[commands->count++];
}

void bind_sets(CommandBuffer* buffer, VkPipelineBindPoint point, VkPipelineLayout, uint32_t first,
               uint32_t count, const VkDescriptorSet* sets, uint32_t dynamic_count,
               const uint32_t* dynamic) {
  if (buffer->kept == nullptr || point != VK_PIPELINE_BIND_POINT_COMPUTE) return;
  uint32_t taken = 0;
  for (uint32_t i = 0; i < count && i < WEIR_KERNELS_SETS && first < WEIR_KERNELS_SETS - i; ++i) {
    KeptCommands::Bound& bound = buffer->kept->bound[first + i];
    bound.set = number(sets[i]);
    bound.is_pushed = false;
    bound.dynamic_count = 0;
    const auto* set = buffer->device->kept->sets.get<const KeptSet>(bound.set);
    if (set == nullptr) {
      taken = dynamic_count;  // whose the others are cannot be told
      continue;
    }
    for (uint32_t j = 0; j < set->layout->bindings; ++j) {
      if (!weir_kernels_is_dynamic(set->layout->binding[j].type)) continue;
      for (uint32_t k = 0; k < set->layout->binding[j].count && taken < dynamic_count; ++k) {
        if (bound.dynamic_count < KeptCommands::k_dynamic) {
          bound.dynamic[bound.dynamic_count++] = dynamic[taken];
        } else {
          bound.set = 0;  // more than are followed: what it binds is not known
        }
        ++taken;
      }
    }
  }
}

const Hook k_hooks[] = {WEIR_BINDING_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_binding_hooks = list_of(k_hooks);

void keep_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t left_out) {
  KeptDispatch* dispatch = fresh_dispatch(buffer->kept);
  if (dispatch == nullptr) return;
  *dispatch = {nullptr, left_out, nullptr, nullptr};
  const Tally* bound = buffer->bound;
  if (left_out != k_nothing_left_out) return;
  KeptPipeline* pipeline = bound == nullptr ? nullptr : bound->pipeline->kept;
  dispatch->left_out = pipeline == nullptr ? uint32_t{WEIR_LEFT_UNKNOWN} : pipeline->left_out;
  if (dispatch->left_out != k_nothing_left_out) return;
  dispatch->pipeline = bound->pipeline;
  dispatch->label = bound->label;
  dispatch->work = work_of(buffer, pipeline, x, y, z, &dispatch->left_out);
}

void keep_push(KeptCommands* commands, uint32_t offset, uint32_t size, const void* values) {
  if (offset >= WEIR_KERNELS_PUSH_BYTES || size > WEIR_KERNELS_PUSH_BYTES - offset) return;
  if (offset > commands->push_bytes) {
    memset(commands->push + commands->push_bytes, 0, offset - commands->push_bytes);
  }
  memcpy(commands->push + offset, values, size);
  // What was pushed before still holds; a pipeline takes as much of it as its layout has.
  const uint32_t end = offset + size;
  if (end > commands->push_bytes) commands->push_bytes = end;
}

void begin_kept(CommandBuffer* buffer) {
  if (buffer->device->kept == nullptr) return;
  if (buffer->kept == nullptr) {
    buffer->kept = static_cast<KeptCommands*>(calloc(1, sizeof(KeptCommands)));
    if (buffer->kept == nullptr) return;
  }
  KeptCommands* commands = buffer->kept;
  commands->count = commands->push_bytes = 0;
  commands->no_room = 0;
  for (KeptCommands::Bound& bound : commands->bound) {
    bound.set = 0;
    bound.is_pushed = false;
    bound.dynamic_count = 0;
  }
}

void join_kept(CommandBuffer* buffer, const CommandBuffer* secondary) {
  if (buffer->kept == nullptr || secondary->kept == nullptr) return;
  buffer->kept->no_room += secondary->kept->no_room;
  for (uint32_t i = 0; i < secondary->kept->count; ++i) {
    if (KeptDispatch* dispatch = fresh_dispatch(buffer->kept)) {
      *dispatch = secondary->kept->dispatches[i];
    }
  }
}

void free_kept(CommandBuffer* buffer) {
  if (buffer->kept == nullptr) return;
  for (KeptCommands::Bound& bound : buffer->kept->bound) free(bound.pushed);
  free(buffer->kept->dispatches);
  free(buffer->kept);
  buffer->kept = nullptr;
}

void submit_kept(const CommandBuffer* buffer, uint64_t sign) {
  const KeptCommands* commands = buffer->kept;
  if (commands == nullptr) return;
  if (commands->no_room != 0) count_left_out(WEIR_LEFT_ROOM, commands->no_room * sign);
  for (uint32_t i = 0; i < commands->count; ++i) {
    const KeptDispatch& dispatch = commands->dispatches[i];
    if (dispatch.work == nullptr) {
      count_left_out(dispatch.left_out, sign);
      continue;
    }
    const uint32_t kernel = resolve_kernel(buffer->device, dispatch.pipeline, dispatch.label);
    const uint32_t place = place_of(dispatch.work, kernel, g.file.kernels[kernel].name);
    if (place == k_not_written) {
      count_left_out(WEIR_LEFT_ROOM, sign);
    } else {
      count_kept(place, sign);
    }
  }
}

}  // namespace weir_probe
