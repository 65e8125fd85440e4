// What command buffers are asked for: encoders, the commit, and which waits and polls were syncs.
#include <stdlib.h>

#include "gate/probes/inject/metal/state.h"

extern "C" void* _NSConcreteGlobalBlock[32];  // the class of blocks without captures

namespace weir_probe::metal {
namespace {

// --- encoders ---

// `commands`: they are looked into; those of graphics and the like are not.
template <bool commands, class... A>
id encoder(const Call<id, A...>& call, A... arguments) {
  id made = call(arguments...);
  if (made == nullptr) return made;
  Buffer* record = buffer_of(call.self);
  if (record != nullptr) ++record->named[k_encoders];
  if (!commands) return made;
  meet(k_encoder, made);
  new_encoder(made, record);
  return made;
}

// --- events between queues, or with the program ---

void encode_signal(const Call<void, id, uint64_t>& call, id event, uint64_t value) {
  call(event, value);
  Buffer* buffer = buffer_of(call.self);
  if (buffer == nullptr) return;
  ++buffer->named[k_event_signals];
  auto* shared = g.events.get<Event>(key_of(event));
  if (shared == nullptr) return;  // one that the program cannot wait for
  const uint32_t last = Buffer::k_most_signals - 1;
  const uint32_t at = buffer->signal_count < last ? buffer->signal_count++ : last;
  buffer->signals[at] = {shared, value};
  if (at == last) buffer->signal_count = Buffer::k_most_signals;
}

template <Named which, class... A>
void counted(const Call<void, A...>& call, A... arguments) {
  call(arguments...);
  if (Buffer* buffer = buffer_of(call.self)) ++buffer->named[which];
}

// --- the commit ---

// GPU times in seconds, as the completed command buffer tells them. Where single times are to be
// kept (an event file), this is the place: the buffer has its label and its queue.
void add_gpu_time(id buffer) {
  const auto from = ask<double>(buffer, "GPUStartTime");
  const auto to = ask<double>(buffer, "GPUEndTime");
  constexpr double k_longest = 1e6;  // also keeps what is no number out
  if (from > 0 && to > from && to - from < k_longest) {
    add(g.named[k_gpu_nanoseconds], static_cast<uint64_t>((to - from) * 1e9));
  }
}

// A block without captures, as the compiler would lay it out (clang's "Block ABI").
struct BlockDescriptor {
  unsigned long reserved, size;
};
struct Block {
  const void* isa;
  int flags, reserved;
  void (*invoke)(Block* self, id buffer);
  const BlockDescriptor* descriptor;
};
constexpr int k_global_block = 1 << 28;

void completed(Block*, id buffer) { add_gpu_time(buffer); }
constexpr BlockDescriptor k_completed_descriptor{0, sizeof(Block)};
Block g_completed{_NSConcreteGlobalBlock, k_global_block, 0, completed, &k_completed_descriptor};

void note_signals(Buffer* buffer) {
  if (buffer->signal_count == 0) return;
  const Locked locked(&g.lock);
  for (uint32_t i = 0; i < buffer->signal_count; ++i) {
    const Signal& signal = buffer->signals[i];
    signal.event->queue = buffer->queue;
    signal.event->highest = signal.value;
    if (signal.event->awaited == 0) signal.event->awaited = signal.value;
  }
}

// Before it goes down: at once another thread may see it done.
void count_commit(Buffer* buffer) {
  if (buffer->committed) return;
  buffer->committed = true;
  ensure_file();
  weir_probe_queue* entry = buffer->queue->entry;
  buffer->counters[WEIR_COUNT_SUBMISSIONS] = buffer->counters[WEIR_COUNT_COMMAND_BUFFERS] = 1;
  if (buffer->named[k_encoders] > 0) buffer->counters[WEIR_COUNT_SUBMITS] = 1;
  for (uint32_t i = 0; i < WEIR_COUNTERS; ++i) {
    if (buffer->counters[i] != 0) add(&entry->counters[i], buffer->counters[i]);
  }
  for (uint32_t i = 0; i < k_named; ++i) {
    if (buffer->named[i] != 0) add(g.named[i], buffer->named[i]);
  }
  for (size_t i = 0; i < buffer->dispatch_count; ++i) {
    const Dispatch& one = buffer->dispatches[i];
    add(&one.kernel->dispatches, one.times);
    if (one.launch != nullptr) add(&one.launch->count, one.times);
  }
  free(buffer->dispatches);
  buffer->dispatches = nullptr;
  buffer->dispatch_count = buffer->dispatch_room = 0;
  note_signals(buffer);
  __atomic_store_n(&buffer->queue->pending, 1, __ATOMIC_RELEASE);
}

void commit(const Call<void>& call) {
  if (Buffer* buffer = buffer_of(call.self)) {
    const bool first = !buffer->committed;
    count_commit(buffer);
    if (first && g.timing) ask<void>(call.self, "addCompletedHandler:", &g_completed);
  }
  call();
}

// --- waits and polls ---

void wait_until_completed(const Call<void>& call) {
  call();
  Buffer* buffer = buffer_of(call.self);
  if (buffer == nullptr) return;
  count_wait(buffer->queue);
  __atomic_store_n(&buffer->seen_done, 1, __ATOMIC_RELEASE);
  count_sync(buffer->queue);
}

// Until the GPU has it, not until it is done: a wait and no sync.
void wait_until_scheduled(const Call<void>& call) {
  call();
  if (Buffer* buffer = buffer_of(call.self)) count_wait(buffer->queue);
}

unsigned long status(const Call<unsigned long>& call) {
  constexpr unsigned long k_completed = 4, k_failed = 5;
  const unsigned long said = call();
  Buffer* buffer = buffer_of(call.self);
  if (buffer == nullptr) return said;
  count_poll(buffer->queue);
  if ((said == k_completed || said == k_failed) &&
      __atomic_exchange_n(&buffer->seen_done, 1, __ATOMIC_ACQ_REL) == 0) {
    count_sync(buffer->queue);
  }
  return said;
}

// The program has seen `event` at `value`, by a wait or a poll. `fresh`: that shows work done which
// it had not seen before.
void saw_event(id event, uint64_t value, bool waited) {
  auto* record = g.events.get<Event>(key_of(event));
  if (record == nullptr) return;
  const Locked locked(&g.lock);
  Queue* queue = record->queue;  // that was to signal it
  const bool fresh = record->awaited != 0 && value >= record->awaited;
  if (fresh) record->awaited = value < record->highest ? value + 1 : 0;
  if (queue == nullptr) return;
  if (waited) {
    count_wait(queue);
  } else {
    count_poll(queue);
  }
  if (waited || fresh) count_sync(queue);
}

uint64_t signaled_value(const Call<uint64_t>& call) {
  const uint64_t value = call();
  saw_event(call.self, value, false);
  return value;
}

Bool wait_until_signaled(const Call<Bool, uint64_t, uint64_t>& call, uint64_t value,
                         uint64_t milliseconds) {
  const Bool reached = call(value, milliseconds);
  saw_event(call.self, reached != 0 ? value : 0, reached != 0 && milliseconds != 0);
  return reached;
}

constexpr Hook k_of_buffers[] = {
    WEIR_HOOK("computeCommandEncoder", (encoder<true>)),
    WEIR_HOOK("computeCommandEncoderWithDispatchType:", (encoder<true, unsigned long>)),
    WEIR_HOOK("computeCommandEncoderWithDescriptor:", (encoder<true, id>)),
    WEIR_HOOK("blitCommandEncoder", (encoder<true>)),
    WEIR_HOOK("blitCommandEncoderWithDescriptor:", (encoder<true, id>)),
    WEIR_HOOK("renderCommandEncoderWithDescriptor:", (encoder<false, id>)),
    WEIR_HOOK("parallelRenderCommandEncoderWithDescriptor:", (encoder<false, id>)),
    WEIR_HOOK("resourceStateCommandEncoder", (encoder<false>)),
    WEIR_HOOK("accelerationStructureCommandEncoder", (encoder<false>)),
    WEIR_HOOK("encodeSignalEvent:value:", encode_signal),
    WEIR_HOOK("encodeWaitForEvent:value:", (counted<k_event_waits, id, uint64_t>)),
    WEIR_HOOK("commit", commit),
    WEIR_HOOK("addCompletedHandler:", (counted<k_completed_handlers, id>)),
    WEIR_HOOK("waitUntilCompleted", wait_until_completed),
    WEIR_HOOK("waitUntilScheduled", wait_until_scheduled),
    WEIR_HOOK("status", status),
};

constexpr Hook k_of_events[] = {
    WEIR_HOOK("signaledValue", signaled_value),
    WEIR_HOOK("waitUntilSignaledValue:timeoutMS:", wait_until_signaled),
};

}  // namespace

extern const Hooks k_buffer_hooks = list_of(k_of_buffers);
extern const Hooks k_event_hooks = list_of(k_of_events);

}  // namespace weir_probe::metal
