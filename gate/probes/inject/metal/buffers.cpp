// Hooks command buffers and events: counts encoders, commits, waits, polls and syncs.
#include <stdlib.h>

#include "gate/probes/inject/metal/state.h"

extern "C" void* _NSConcreteGlobalBlock[32];  // the class of blocks without captures

namespace weir_probe::metal {
namespace {

// --- encoders ---

// Creates an encoder. `has_counted_commands`: true for compute and blit encoders, whose commands
// are counted.
template <bool has_counted_commands, class... A>
id new_encoder(const Call<id, A...>& call, A... arguments) {
  id encoder = call(arguments...);
  if (encoder == nullptr) return encoder;
  Buffer* buffer = find_or_add_buffer(call.self);
  if (buffer != nullptr) ++buffer->named[k_encoders];
  if (!has_counted_commands) return encoder;
  hook_class(k_encoder, encoder);
  add_encoder(encoder, buffer);
  return encoder;
}

// --- events between queues, or with the program ---

// Notes the value that the buffer will signal. Beyond k_max_signals the last one is overwritten, so
// that the latest is kept.
void encode_signal(const Call<void, id, uint64_t>& call, id event, uint64_t value) {
  call(event, value);
  Buffer* buffer = find_or_add_buffer(call.self);
  if (buffer == nullptr) return;
  ++buffer->named[k_event_signals];
  auto* record = g.events.get<Event>(address_key(event));
  if (record == nullptr) return;  // not a shared event: the program cannot wait for it
  if (buffer->signal_count < Buffer::k_max_signals) ++buffer->signal_count;
  buffer->signals[buffer->signal_count - 1] = {record, value};
}

// Counts a call in the counter `which` of the buffer.
template <Named which, class... A>
void count_call(const Call<void, A...>& call, A... arguments) {
  call(arguments...);
  if (Buffer* buffer = find_or_add_buffer(call.self)) ++buffer->named[which];
}

// --- the commit ---

// Adds the GPU time of a completed command buffer, which it gives in seconds. An event file with
// single times would be written here: the buffer has its label and its queue.
void add_gpu_time(id buffer) {
  const auto begin = call_if_implemented<double>(buffer, "GPUStartTime");
  const auto end = call_if_implemented<double>(buffer, "GPUEndTime");
  constexpr double k_max_seconds = 1e6;  // also excludes NaN
  if (begin > 0 && end > begin && end - begin < k_max_seconds) {
    add(g.named[k_gpu_nanoseconds], static_cast<uint64_t>((end - begin) * 1e9));
  }
}

// A block without captures, laid out as by the compiler (clang's "Block ABI").
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

// Notes on their events the signals of a buffer that is committed.
void note_signals(Buffer* buffer) {
  if (buffer->signal_count == 0) return;
  const Locked locked(&g.lock);
  for (uint32_t i = 0; i < buffer->signal_count; ++i) {
    const Signal& signal = buffer->signals[i];
    signal.event->queue = buffer->queue;
    signal.event->highest = signal.value;
    if (signal.event->lowest_pending == 0) signal.event->lowest_pending = signal.value;
  }
}

// Counts a command buffer's work when it is committed the first time. Runs before the commit, as
// another thread may see it done at once.
void count_commit(Buffer* buffer) {
  if (buffer->committed) return;
  buffer->committed = true;
  ensure_file();
  weir_probe_queue* entry = buffer->queue->entry;
  buffer->counters[WEIR_COUNT_SUBMISSIONS] = 1;
  buffer->counters[WEIR_COUNT_COMMAND_BUFFERS] = 1;
  if (buffer->named[k_encoders] > 0) buffer->counters[WEIR_COUNT_SUBMITS] = 1;
  for (uint32_t i = 0; i < WEIR_COUNTERS; ++i) {
    if (buffer->counters[i] != 0) add(&entry->counters[i], buffer->counters[i]);
  }
  for (uint32_t i = 0; i < k_named; ++i) {
    if (buffer->named[i] != 0) add(g.named[i], buffer->named[i]);
  }
  for (size_t i = 0; i < buffer->dispatch_count; ++i) {
    const Dispatch& dispatch = buffer->dispatches[i];
    add(&dispatch.kernel->dispatches, dispatch.times);
    if (dispatch.launch != nullptr) add(&dispatch.launch->count, dispatch.times);
  }
  free(buffer->dispatches);
  buffer->dispatches = nullptr;
  buffer->dispatch_count = 0;
  buffer->dispatch_room = 0;
  note_signals(buffer);
  __atomic_store_n(&buffer->queue->pending, 1, __ATOMIC_RELEASE);
}

void commit(const Call<void>& call) {
  if (Buffer* buffer = find_or_add_buffer(call.self)) {
    const bool is_first = !buffer->committed;
    count_commit(buffer);
    if (is_first && g.timing)
      call_if_implemented<void>(call.self, "addCompletedHandler:", &g_completed);
  }
  call();
}

// --- waits and polls ---

void wait_until_completed(const Call<void>& call) {
  call();
  Buffer* buffer = find_or_add_buffer(call.self);
  if (buffer == nullptr) return;
  count_wait(buffer->queue);
  __atomic_store_n(&buffer->reported_done, 1, __ATOMIC_RELEASE);
  count_sync(buffer->queue);
}

// Waits until the GPU has the work, not until it is done: counts as a wait and not as a sync.
void wait_until_scheduled(const Call<void>& call) {
  call();
  if (Buffer* buffer = find_or_add_buffer(call.self)) count_wait(buffer->queue);
}

// Answers the method `status` of a command buffer, which counts as a poll. The first answer that
// reports the end counts as a sync.
unsigned long status(const Call<unsigned long>& call) {
  constexpr unsigned long k_completed = 4, k_failed = 5;
  const unsigned long status_value = call();
  Buffer* buffer = find_or_add_buffer(call.self);
  if (buffer == nullptr) return status_value;
  count_poll(buffer->queue);
  if ((status_value == k_completed || status_value == k_failed) &&
      __atomic_exchange_n(&buffer->reported_done, 1, __ATOMIC_ACQ_REL) == 0) {
    count_sync(buffer->queue);
  }
  return status_value;
}

// Counts a wait or poll by which the program saw `event` at `value`. A poll is a sync only if it
// shows signals that were not seen before.
void note_event_value(id event, uint64_t value, bool has_waited) {
  auto* record = g.events.get<Event>(address_key(event));
  if (record == nullptr) return;
  const Locked locked(&g.lock);
  Queue* queue = record->queue;  // the queue that signals it
  const bool is_new = record->lowest_pending != 0 && value >= record->lowest_pending;
  const bool has_pending = value < record->highest;
  if (is_new) record->lowest_pending = has_pending ? value + 1 : 0;
  if (queue == nullptr) return;
  if (has_waited) {
    count_wait(queue);
  } else {
    count_poll(queue);
  }
  if (has_waited || is_new) count_sync(queue);
}

uint64_t signaled_value(const Call<uint64_t>& call) {
  const uint64_t value = call();
  note_event_value(call.self, value, /*waited=*/false);
  return value;
}

Bool wait_until_signaled(const Call<Bool, uint64_t, uint64_t>& call, uint64_t value,
                         uint64_t milliseconds) {
  const Bool reached = call(value, milliseconds);
  note_event_value(call.self, reached != 0 ? value : 0, reached != 0 && milliseconds != 0);
  return reached;
}

constexpr Hook k_of_buffers[] = {
    WEIR_HOOK("computeCommandEncoder", (new_encoder<true>)),
    WEIR_HOOK("computeCommandEncoderWithDispatchType:", (new_encoder<true, unsigned long>)),
    WEIR_HOOK("computeCommandEncoderWithDescriptor:", (new_encoder<true, id>)),
    WEIR_HOOK("blitCommandEncoder", (new_encoder<true>)),
    WEIR_HOOK("blitCommandEncoderWithDescriptor:", (new_encoder<true, id>)),
    WEIR_HOOK("renderCommandEncoderWithDescriptor:", (new_encoder<false, id>)),
    WEIR_HOOK("parallelRenderCommandEncoderWithDescriptor:", (new_encoder<false, id>)),
    WEIR_HOOK("resourceStateCommandEncoder", (new_encoder<false>)),
    WEIR_HOOK("accelerationStructureCommandEncoder", (new_encoder<false>)),
    WEIR_HOOK("encodeSignalEvent:value:", encode_signal),
    WEIR_HOOK("encodeWaitForEvent:value:", (count_call<k_event_waits, id, uint64_t>)),
    WEIR_HOOK("commit", commit),
    WEIR_HOOK("addCompletedHandler:", (count_call<k_completed_handlers, id>)),
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
