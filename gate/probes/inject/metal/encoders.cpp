// Hooks compute and blit encoders: counts their commands, to be added when the buffer is committed.

#include "gate/probes/inject/metal/state.h"

namespace weir_probe::metal {
namespace {

// Adds a dispatch (kernel launch) to the buffer's list, or counts it with the last one if that is
// equal. False when memory is out.
bool append(Buffer* buffer, weir_probe_kernel* kernel, weir_probe_launch* launch) {
  Dispatch* last =
      buffer->dispatch_count == 0 ? nullptr : &buffer->dispatches[buffer->dispatch_count - 1];
  if (last != nullptr && last->kernel == kernel && last->launch == launch) {
    ++last->times;
    return true;
  }
  if (!make_room(&buffer->dispatches, &buffer->dispatch_room, buffer->dispatch_count + 1, 64,
                 UINT32_MAX)) {
    return false;
  }
  buffer->dispatches[buffer->dispatch_count++] = {kernel, launch, 1};
  return true;
}

// Counts a dispatch (kernel launch) with `threads` threads in groups of `group`. `threads` is null
// if the GPU decides the number.
void count_dispatch(id self, const Size* threads, const Size& group) {
  Encoder* encoder = find_encoder(self);
  if (encoder == nullptr) {
    return report_uncounted(k_uncounted_encoders,
                            "what goes through encoders made out of sight of Metal");
  }
  Buffer* buffer = encoder->buffer;
  ++buffer->counters[WEIR_COUNT_DISPATCHES];
  if (threads == nullptr) ++buffer->counters[WEIR_COUNT_INDIRECT_DISPATCHES];
  weir_probe_launch sizes{};
  sizes.kernel = static_cast<uint32_t>(encoder->kernel - g.file.kernels);
  const Size threads_or_none = threads == nullptr ? Size{} : *threads;
  const unsigned long global[3] = {threads_or_none.width, threads_or_none.height,
                                   threads_or_none.depth};
  const unsigned long local[3] = {group.width, group.height, group.depth};
  sizes.dimensions = 1;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    sizes.global[axis] = global[axis];
    sizes.local[axis] = local[axis];
    if (global[axis] > 1 || local[axis] > 1) sizes.dimensions = axis + 1;
  }
  for (const uint64_t bytes : encoder->shared) sizes.shared += bytes;
  if (!append(buffer, encoder->kernel, g.launches.find_or_add(&g.file, &g.lock, sizes))) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  }
}

void dispatch_threads(const Call<void, Size, Size>& call, Size threads, Size group) {
  call(threads, group);
  count_dispatch(call.self, &threads, group);
}

void dispatch_groups(const Call<void, Size, Size>& call, Size groups, Size group) {
  call(groups, group);
  const Size threads{groups.width * group.width, groups.height * group.height,
                     groups.depth * group.depth};
  count_dispatch(call.self, &threads, group);
}

void dispatch_indirect(const Call<void, id, unsigned long, Size>& call, id buffer,
                       unsigned long offset, Size group) {
  call(buffer, offset, group);
  count_dispatch(call.self, nullptr, group);
}

template <class... A>
void execute_commands(const Call<void, id, A...>& call, id commands, A... which) {
  call(commands, which...);
  report_uncounted(k_uncounted_commands,
                   "the dispatches of indirect command buffers, run by executeCommandsInBuffer");
}

void set_pipeline(const Call<void, id>& call, id pipeline) {
  call(pipeline);
  Encoder* encoder = find_encoder(call.self);
  if (encoder != nullptr)
    encoder->kernel = find_or_add_kernel(pipeline, encoder->buffer->queue->device);
}

void set_shared(const Call<void, unsigned long, unsigned long>& call, unsigned long bytes,
                unsigned long index) {
  call(bytes, index);
  Encoder* encoder = find_encoder(call.self);
  if (encoder != nullptr && index < Encoder::k_max_shared) encoder->shared[index] = bytes;
}

void end_encoding(const Call<void>& call) {
  // Before the call: afterwards the object may be freed and its address used for another encoder.
  if (Encoder* encoder = find_encoder(call.self)) encoder->buffer = nullptr;
  call();
}

// Handles a method that only adds 1 to one of a buffer's counters.
template <auto counters, uint32_t which, class... A>
void count_call(const Call<void, A...>& call, A... arguments) {
  call(arguments...);
  Encoder* encoder = find_encoder(call.self);
  if (encoder == nullptr) return;
  auto& buffer_counters = encoder->buffer->*counters;
  ++buffer_counters[which];
}

using Number = unsigned long;
using Origin = Size;  // three numbers as well
template <class... A>
constexpr auto k_copy = count_call<&Buffer::counters, WEIR_COUNT_COPIES, A...>;
template <class... A>
constexpr auto k_barrier = count_call<&Buffer::counters, WEIR_COUNT_BARRIERS, A...>;

constexpr Hook k_of_encoders[] = {
    WEIR_HOOK("dispatchThreads:threadsPerThreadgroup:", dispatch_threads),
    WEIR_HOOK("dispatchThreadgroups:threadsPerThreadgroup:", dispatch_groups),
    WEIR_HOOK("dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:",
              dispatch_indirect),
    WEIR_HOOK("executeCommandsInBuffer:withRange:", (execute_commands<Range>)),
    WEIR_HOOK("executeCommandsInBuffer:indirectBuffer:indirectBufferOffset:",
              (execute_commands<id, unsigned long>)),
    WEIR_HOOK("setComputePipelineState:", set_pipeline),
    WEIR_HOOK("setThreadgroupMemoryLength:atIndex:", set_shared),
    WEIR_HOOK("endEncoding", end_encoding),
    WEIR_HOOK("memoryBarrierWithScope:", (k_barrier<Number>)),
    WEIR_HOOK("memoryBarrierWithResources:count:", (k_barrier<const id*, Number>)),
    WEIR_HOOK("updateFence:", (count_call<&Buffer::named, k_fence_updates, id>)),
    WEIR_HOOK("waitForFence:", (count_call<&Buffer::named, k_fence_waits, id>)),
    WEIR_HOOK("fillBuffer:range:value:", (k_copy<id, Range, uint8_t>)),
    WEIR_HOOK("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
              (k_copy<id, Number, id, Number, Number>)),
    WEIR_HOOK("copyFromBuffer:sourceOffset:sourceBytesPerRow:sourceBytesPerImage:sourceSize:"
              "toTexture:destinationSlice:destinationLevel:destinationOrigin:",
              (k_copy<id, Number, Number, Number, Size, id, Number, Number, Origin>)),
    WEIR_HOOK("copyFromBuffer:sourceOffset:sourceBytesPerRow:sourceBytesPerImage:sourceSize:"
              "toTexture:destinationSlice:destinationLevel:destinationOrigin:options:",
              (k_copy<id, Number, Number, Number, Size, id, Number, Number, Origin, Number>)),
    WEIR_HOOK("copyFromTexture:sourceSlice:sourceLevel:sourceOrigin:sourceSize:toBuffer:"
              "destinationOffset:destinationBytesPerRow:destinationBytesPerImage:",
              (k_copy<id, Number, Number, Origin, Size, id, Number, Number, Number>)),
    WEIR_HOOK("copyFromTexture:sourceSlice:sourceLevel:sourceOrigin:sourceSize:toBuffer:"
              "destinationOffset:destinationBytesPerRow:destinationBytesPerImage:options:",
              (k_copy<id, Number, Number, Origin, Size, id, Number, Number, Number, Number>)),
    WEIR_HOOK("copyFromTexture:sourceSlice:sourceLevel:sourceOrigin:sourceSize:toTexture:"
              "destinationSlice:destinationLevel:destinationOrigin:",
              (k_copy<id, Number, Number, Origin, Size, id, Number, Number, Origin>)),
    WEIR_HOOK("copyFromTexture:sourceSlice:sourceLevel:toTexture:destinationSlice:"
              "destinationLevel:sliceCount:levelCount:",
              (k_copy<id, Number, Number, id, Number, Number, Number, Number>)),
    WEIR_HOOK("copyFromTexture:toTexture:", (k_copy<id, id>)),
    WEIR_HOOK("generateMipmapsForTexture:", (k_copy<id>)),
    WEIR_HOOK("resolveCounters:inRange:destinationBuffer:destinationOffset:",
              (k_copy<id, Range, id, Number>)),
};

}  // namespace

extern const Hooks k_encoder_hooks = list_of(k_of_encoders);

}  // namespace weir_probe::metal
