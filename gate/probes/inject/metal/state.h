// The probe's records of the program's Metal objects, and the functions that its files share.
//
// Nothing is wrapped or retained. Records are found by an object's address and never freed. A new
// object at an old address gets the old record, emptied, so there are no more of them than objects
// at one time.
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
  Queue* queue;             // queue of the latest signal that was committed
  uint64_t highest;         // highest value that was committed
  uint64_t lowest_pending;  // lowest value committed that the program has not seen; 0: none
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

// The work that a command buffer will do when it is committed. Used by one thread at a time, as
// Metal requires of programs.
struct Buffer {
  Queue* queue;
  Dispatch* dispatches;
  size_t dispatch_count, dispatch_room;
  uint64_t counters[WEIR_COUNTERS];
  uint64_t named[k_named];
  static constexpr uint32_t k_max_signals = 8;
  Signal signals[k_max_signals];
  uint32_t signal_count;
  bool committed;
  uint32_t reported_done;  // atomic; 1: the program knows that it is done
};

struct Encoder {
  Buffer* buffer;  // null once it has ended
  weir_probe_kernel* kernel;
  static constexpr uint32_t k_max_shared = 31;  // Metal's limit
  uint64_t shared[k_max_shared];                // bytes of threadgroup memory by index
};

enum Kind : uint32_t { k_device, k_queue, k_buffer, k_encoder, k_event, k_kinds };

// Everything process-wide. Lives as long as the process: the library is never unloaded.
struct Globals : OwnFile {  // its lock is that of the records and the hooks, too
  bool timing;              // GPU times are asked for
  uint64_t* named[k_named];
  Table classes[k_kinds];  // classes that are hooked already
  Table devices, queues, buffers, encoders, pipelines, events;
  Launches launches;
};
extern Globals g;

// Hooks the methods of the object's class, the first time; `object` may be null.
void hook_class(Kind kind, id object);

// Makes the file before the first count, also in a child.
void ensure_file();
// Notes in the file, and in a line on standard error once for each `reason`, that `what` is not
// counted.
void report_uncounted(uint32_t kind, const char* what);
constexpr uint32_t k_uncounted_commands = 1, k_uncounted_queues = 2, k_uncounted_encoders = 4,
                   k_uncounted_classes = 8;

// Find or add records. Null when memory is out, which sets a flag of the file.
Queue* find_or_add_queue(id queue);
Buffer* add_buffer(id buffer, Queue* queue);
Buffer* find_or_add_buffer(id buffer);  // asks the object if its creation was not seen
Encoder* add_encoder(id encoder, Buffer* buffer);
inline Encoder* find_encoder(id encoder) {
  auto* record = g.encoders.get<Encoder>(address_key(encoder));
  return record == nullptr || record->buffer == nullptr ? nullptr : record;
}
void add_pipeline(id pipeline, const char* name);
weir_probe_kernel* find_or_add_kernel(id pipeline, const Device* device);
Event* add_event(id event);

void count_wait(Queue* queue);
void count_poll(Queue* queue);

// The hooked methods of each kind of object.
extern const Hooks k_device_hooks, k_queue_hooks, k_buffer_hooks, k_encoder_hooks, k_event_hooks;

// Returns the entry of a device, with its class (devices.cpp).
weir_probe_device describe_device(id device);

}  // namespace weir_probe::metal
