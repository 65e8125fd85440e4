// What the probe keeps in mind about the program's Metal objects.
//
// Nothing is wrapped or retained. Records are found by an object's address and never freed: an
// address that comes back with a new object gets the old record, emptied, so there are never more
// of them than objects at one time.
#pragma once

#include <pthread.h>

#include "gate/probes/inject/metal/hooks.h"
#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

namespace weir_probe::metal {

// Counters by name.
enum Named : uint32_t {
  k_encoders,
  k_fence_updates,
  k_fence_waits,
  k_event_signals,
  k_event_waits,
  k_completed_handlers,
  k_gpu_nanoseconds,
  k_named
};

struct Device {
  uint32_t index;
  weir_probe_device* entry;
};

struct Queue {
  Device* device;
  weir_probe_queue* entry;
  uint32_t pending;  // atomic; 1: a submission since its last counted sync
};

struct Pipeline {
  weir_probe_kernel* kernel;  // atomic; null until it is first used
  char name[200];             // more than the file's field, so that a cut is noticed there
};

// A shared event. Under g.lock.
struct Event {
  Queue* queue;      // of the latest signal committed
  uint64_t highest;  // value committed
  uint64_t awaited;  // the lowest value that was committed and not yet seen; 0: none
};

struct Signal {
  Event* event;
  uint64_t value;
};

struct Dispatch {
  weir_probe_kernel* kernel;
  weir_probe_launch* launch;
  uint64_t times;
};

// A command buffer: what it will do once it is committed. Used by one thread at a time, as Metal
// asks of programs.
struct Buffer {
  Queue* queue;
  Dispatch* dispatches;
  size_t dispatch_count, dispatch_room;
  uint64_t counters[WEIR_COUNTERS];
  uint64_t named[k_named];
  static constexpr uint32_t k_most_signals = 8;
  Signal signals[k_most_signals];
  uint32_t signal_count;
  bool committed;
  uint32_t seen_done;  // atomic; 1: the program knows that it is done
};

struct Encoder {
  Buffer* buffer;  // null once it has ended
  weir_probe_kernel* kernel;
  static constexpr uint32_t k_most_shared = 31;  // Metal's limit
  uint64_t shared[k_most_shared];                // bytes of threadgroup memory by index
};

enum Kind : uint32_t { k_device, k_queue, k_buffer, k_encoder, k_event, k_kinds };

// Everything process-wide. Lives as long as the process: the library is never unloaded.
struct Globals : OwnFile {  // its lock is that of the records and the hooks, too
  bool timing;              // GPU times are asked for
  uint64_t* named[k_named];
  Table classes[k_kinds];  // those that are hooked
  Table devices, queues, buffers, encoders, pipelines, events;
  Launches launches;
};
extern Globals g;

// Hooks the class of an object that the program was given.
void meet(Kind kind, id object);

// Makes the file before the first count, also in a child.
void ensure_file();
// One line on standard error, once for each `reason`, and in the file: `what` is not counted.
void tell_unseen(uint32_t reason, const char* what, const char* where);
constexpr uint32_t k_unseen_commands = 1, k_unseen_queues = 2, k_unseen_encoders = 4,
                   k_unseen_classes = 8;

// Records. Null when memory is out (said in the file).
Queue* queue_of(id queue);
Buffer* new_buffer(id buffer, Queue* queue);
Buffer* buffer_of(id buffer);  // asks the object where it was made out of sight
Encoder* new_encoder(id encoder, Buffer* buffer);
inline Encoder* encoder_of(id encoder) {
  auto* known = g.encoders.get<Encoder>(key_of(encoder));
  return known == nullptr || known->buffer == nullptr ? nullptr : known;
}
void new_pipeline(id pipeline, const char* name);
weir_probe_kernel* kernel_of(id pipeline, const Device* device);
Event* new_event(id event);

void count_wait(Queue* queue);
void count_poll(Queue* queue);

// What stands in front of the methods of each kind.
extern const Hooks k_device_hooks, k_queue_hooks, k_buffer_hooks, k_encoder_hooks, k_event_hooks;

// The class of a device, its names and numbers (devices.cpp).
weir_probe_device describe(id device);

}  // namespace weir_probe::metal
