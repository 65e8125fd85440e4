// What the layer keeps in mind about the program's Vulkan objects.
//
// Nothing here wraps a handle: the program's handles stay the driver's. Objects are freed with the
// program's own; pipeline records stay until their device goes, as recordings point at them.
#pragma once

#include <stdint.h>
#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/next.h"
#include "gate/probes/inject/vulkan/timing.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

namespace weir_probe {

constexpr uint32_t k_unresolved = UINT32_MAX;
constexpr size_t k_name_size = 200;  // more than the file's field, so that a cut is noticed there

struct Device;
struct KeptCode;  // keep.h, as are the next three
struct KeptCommands;
struct KeptDevice;
struct KeptPipeline;

// One pipeline object. `kernel` is its entry in the file, looked up when a dispatch first reaches
// the device, since a program may name the pipeline at any time before.
struct Pipeline {
  Pipeline* next;  // all of a device, or its free ones
  uint64_t hash;   // SPIR-V, entry point, specialization
  uint64_t name_hash;
  uint32_t kernel;     // atomic; k_unresolved after creation and naming
  bool named;          // atomic; changed under g.lock
  KeptPipeline* kept;  // null: nothing is recorded, or not of it
  char entry_point[40];
  char name[k_name_size];
};

// What the program says of the commands that follow in a buffer, until it says otherwise. Kept as
// long as its device.
struct Label {
  Label* next;
  uint64_t hash;
  uint32_t kernel;  // atomic; of unnamed pipelines under it
  char name[k_name_size];
};

struct ShaderModule {
  uint64_t hash;
  KeptCode* code;          // null: nothing is recorded
  char name[k_name_size];  // "" when the program gave none
};

// How often a command buffer dispatches one pipeline under one label.
struct Tally {
  Pipeline* pipeline;  // null: a free slot
  Label* label;        // null: none
  uint64_t dispatches;
};

struct CommandPool;

// A dispatch in a recording: its kernel is looked up when it reaches the device.
struct Unresolved {
  Pipeline* pipeline;  // null: nothing known was bound
  Label* label;
  uint32_t at;  // of its record in the recording
};

// What a command buffer will do, command by command: only with events.
struct Recording {
  char* bytes;  // records as in the event file, but for the kernels of dispatches
  uint32_t used;
  uint32_t capacity;
  uint32_t commands;
  Unresolved* dispatches;
  uint32_t dispatch_count;
  uint32_t dispatch_capacity;
  uint32_t push_bytes;  // of the push constants set so far
  char push[256];
  Stamps stamps;
};

// Counted while recording, multiplied out at submission. Vulkan wants one thread at a time here.
struct CommandBuffer {
  Device* device;
  Tally* bound;  // of the pipeline bound for compute, or null
  uint64_t dispatches;
  uint64_t indirect;
  uint64_t barriers;
  uint64_t copies;
  uint64_t unknown_dispatches;  // nothing known was bound
  Tally* tallies;               // open addressing, tally_capacity slots (a power of two)
  uint32_t tally_capacity;
  uint32_t tally_used;
  uint32_t generation;  // of its pool when last begun: a pool reset empties all its buffers
  CommandPool* pool;
  CommandBuffer* next;
  CommandBuffer* previous;
  VkCommandBuffer handle;
  Label* labels[8];  // open ones; those nested deeper share the last
  uint32_t label_depth;
  bool secondary;
  Recording* recording;  // null: no events
  KeptCommands* kept;    // null: no kernels are recorded
};

struct CommandPool {
  CommandBuffer* first;
  uint32_t generation;
  uint32_t family;
  Device* device;
};

struct Queue {
  Device* device;
  VkQueue handle;
  weir_probe_queue* entry;
  uint32_t pending;  // atomic; 1: a submission since its last counted sync
  uint32_t family;
  uint64_t
      polled_since;  // atomic; CPU time of the first "not ready" since the last answer; 0: none
};

// A timeline semaphore: which queue was to signal which value.
struct Timeline {
  static constexpr uint32_t k_signals = 64;
  struct Signal {
    uint64_t value;
    Queue* queue;
  };
  pthread_mutex_t lock;
  uint64_t seen;  // the highest value that a wait or poll reported
  uint32_t count;
  Signal signals[k_signals];  // the newest, in rising order of value
};

struct Device {
  Device* next_device;
  VkDevice handle;
  uint64_t key;  // the loader's dispatch pointer, shared by the device's queues and command buffers
  NextDevice next;
  uint32_t index;
  weir_probe_device* entry;
  VkQueueFlags family_flags[32];
  Table queues;     // VkQueue -> Queue
  Table fences;     // VkFence -> Queue, from its latest submission
  Table timelines;  // VkSemaphore -> Timeline
  Table modules;    // VkShaderModule -> ShaderModule
  Table pipelines;  // VkPipeline -> Pipeline
  Table pools;      // VkCommandPool -> CommandPool
  pthread_mutex_t pipelines_lock;
  Pipeline* free_pipelines;
  Pipeline* slabs;
  Label* labels;  // all; under g.lock
  Timer timer;
  KeptDevice* kept;  // null: no kernels are recorded
};

// Everything process-wide. Lives as long as the process: the library is never unloaded.
struct Globals {
  pthread_mutex_t lock;  // of the file's tables and of the list of devices
  File file;
  Device* devices;
  Table device_keys;      // dispatch key -> Device
  Table command_buffers;  // VkCommandBuffer -> CommandBuffer, of all devices
};
extern Globals g;

template <class Handle>
inline uint64_t number(Handle handle) {
  return (uint64_t)handle;  // a pointer or a 64-bit integer, by the handle's kind
}

inline uint64_t dispatch_key(const void* dispatchable) {
  return reinterpret_cast<uint64_t>(*static_cast<void* const*>(dispatchable));
}

// The device that a device, queue or command buffer belongs to. Not null: what the layer did not
// see made is not sent through it.
inline Device* device_of(const void* dispatchable) {
  return static_cast<Device*>(g.device_keys.find(dispatch_key(dispatchable)));
}

inline CommandBuffer* command_buffer(VkCommandBuffer handle) {
  return static_cast<CommandBuffer*>(g.command_buffers.find(number(handle)));
}
inline Queue* queue_of(Device* device, VkQueue handle) {
  return static_cast<Queue*>(device->queues.find(number(handle)));
}

inline void count(uint64_t* counters, uint32_t which, uint64_t amount = 1) {
  add(&counters[which], amount);
}

// Counts a sync when `queue` (may be null) had a submission since the last one counted. True when
// it did.
bool maybe_sync(Queue* queue);

inline Label* label_of(const CommandBuffer* buffer) {
  constexpr uint32_t k_most = sizeof buffer->labels / sizeof buffer->labels[0];
  if (buffer->label_depth == 0) return nullptr;
  return buffer->labels[buffer->label_depth < k_most ? buffer->label_depth - 1 : k_most - 1];
}

// Ends what is known of a command buffer's recording.
void clear(CommandBuffer* buffer);
// The slot of `pipeline` under `label` in the buffer's tallies; null when memory is out.
Tally* tally_of(CommandBuffer* buffer, Pipeline* pipeline, Label* label);
void free_pool(CommandPool* pool);

void free_pipelines(Device* device);
// The entry in the file for dispatches of `pipeline` under `label` (may be null).
uint32_t resolve_kernel(Device* device, Pipeline* pipeline, Label* label);

}  // namespace weir_probe
