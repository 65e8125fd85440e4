// What the layer keeps in mind about the program's Vulkan objects.
//
// Nothing here wraps a handle: the program's handles stay the driver's. Objects are freed with the
// program's own; pipeline records stay until their device goes, as recordings point at them.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/class.h"
#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/inject/writer/events.h"
#include "gate/probes/table.h"

namespace weir_probe {

constexpr uint32_t k_unresolved = UINT32_MAX;
constexpr size_t k_name_size = 200;  // more than the file's field, so that a cut is noticed there

struct CommandBuffer;
struct Device;
struct Queue;
struct KeptCode;  // keep.h, as are the next three
struct KeptCommands;
struct KeptDevice;
struct KeptPipeline;

// --- Device times (timing.cpp): timestamps of the layer's own in the program's command buffers.
//
// What lies between two barriers may overlap and is one group with two timestamps; every buffer has
// one at its begin and one at its end. They are read when the program itself has learned that the
// work is done: the layer waits for nothing. Queries are reset inside the buffer, so that it can be
// submitted again and no feature has to be switched on.

constexpr uint32_t k_chunk_queries = 256;

// A piece of a recording's queries.
struct QueryChunk {
  VkQueryPool pool;
  QueryChunk* next;
};

// The timestamps of one command buffer. Query 0 is its begin, then two for each group, then its
// end.
struct Stamps {
  bool on;          // this recording is timed
  bool group_open;  // work was recorded since the last barrier
  uint32_t groups;
  uint32_t queries;  // used, in all chunks together
  QueryChunk* chunks;
  // The submission whose times have not been read yet.
  bool in_flight;  // atomic; changed under the timer's lock
  bool unsure;  // older times may still stand in the queries: only to be read when all work is done
  uint64_t serial;
  uint32_t order;
  Queue* queue;
  CommandBuffer* next_in_flight;
  uint64_t last_begin;  // ticks, of the submission read last; 0: none
};

// A device's part in it.
struct Timer {
  Timing mode;  // off: nothing below is set
  pthread_mutex_t lock;
  double tick_seconds;
  uint32_t valid_bits[32];  // by queue family
  bool calibrated;
  uint64_t last_calibration;  // CPU nanoseconds
  QueryChunk* free_chunks;
  CommandBuffer* in_flight;  // oldest first
  CommandBuffer** last;
  PFN_vkGetCalibratedTimestampsEXT calibrate;
};

// One pipeline object. `kernel` is its entry in the file, looked up when a dispatch first reaches
// the device, since a program may name the pipeline at any time before.
struct Pipeline {
  Pipeline* next;  // all of a device, or its free ones
  uint64_t hash;   // SPIR-V, entry point, specialization
  uint64_t code;   // that, flags and layout: all that is compiled
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
  uint64_t groups;  // of all of them
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

// Dispatches, indirect ones, barriers, copies: what a queue counts of command buffers.
constexpr uint32_t k_counted = WEIR_COUNT_COPIES + 1;

// Counted while recording, multiplied out at submission. Vulkan wants one thread at a time here.
struct CommandBuffer {
  Device* device;
  Tally* bound;                  // of the pipeline bound for compute, or null
  uint64_t counters[k_counted];  // by weir_probe_counter
  uint64_t unknown_dispatches;   // nothing known was bound
  Tally* tallies;                // open addressing, tally_capacity slots (a power of two)
  uint32_t tally_capacity;
  uint32_t tally_used;
  uint32_t generation;  // of its pool when last begun: a pool reset empties all its buffers
  CommandPool* pool;
  CommandBuffer* next;
  CommandBuffer* previous;
  VkCommandBuffer handle;
  static constexpr uint32_t k_labels = 8;
  Label* labels[k_labels];  // open ones; those nested deeper share the last
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
  Polled polled;
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

// Functions that a later version took over, and those that one has with structs for arguments.
#define WEIR_IN_TWO(X, how, name, ...) X(how, name, __VA_ARGS__) X(how, name##KHR, __VA_ARGS__)
#define WEIR_IN_THREE(X, how, name, ...) \
  X(how, name, __VA_ARGS__) X(how, name##2, __VA_ARGS__) X(how, name##2KHR, __VA_ARGS__)

// Where the layer stands in front, by the file whose functions take note: how (hooks.h), name
// without "vk", function, when.
#define WEIR_DEVICE_HOOKS(X)                     \
  X(HOOK, DestroyDevice, destroy_device, always) \
  X(AFTER, GetDeviceQueue, made_queue, always)   \
  X(AFTER, GetDeviceQueue2, made_queue2, always)
#define WEIR_SUBMIT_HOOKS(X)                             \
  WEIR_IN_THREE(X, THROUGH, QueueSubmit, submit, always) \
  X(THROUGH, QueueBindSparse, submit, always)
#define WEIR_SYNC_HOOKS(X)                                                  \
  X(HOOK, QueueWaitIdle, queue_wait_idle, always)                           \
  X(HOOK, DeviceWaitIdle, device_wait_idle, always)                         \
  X(BEFORE, DestroyFence, forget_fence, always)                             \
  X(HOOK, WaitForFences, wait_for_fences, always)                           \
  X(HOOK, GetFenceStatus, get_fence_status, always)                         \
  X(AFTER, CreateSemaphore, made_semaphore, always)                         \
  X(BEFORE, DestroySemaphore, forget<&Device::timelines>, always)           \
  WEIR_IN_TWO(X, THROUGH, WaitSemaphores, wait_semaphores, always)          \
  WEIR_IN_TWO(X, THROUGH, GetSemaphoreCounterValue, poll_semaphore, always) \
  WEIR_IN_TWO(X, BEFORE, SignalSemaphore, host_signals, always)
#define WEIR_KERNEL_HOOKS(X)                                        \
  X(AFTER, CreateShaderModule, made_module, always)                 \
  X(BEFORE, DestroyShaderModule, forget<&Device::modules>, always)  \
  X(HOOK, CreateComputePipelines, create_compute_pipelines, always) \
  X(BEFORE, DestroyPipeline, forget_pipeline, always)               \
  X(BEFORE, SetDebugUtilsObjectNameEXT, named_object, always)       \
  X(BEFORE, DebugMarkerSetObjectNameEXT, marked_object, always)     \
  X(BEFORE, CmdBeginDebugUtilsLabelEXT, begin_label, always)        \
  X(BEFORE, CmdEndDebugUtilsLabelEXT, close_label, always)          \
  X(BEFORE, CmdDebugMarkerBeginEXT, begin_marker, always)           \
  X(BEFORE, CmdDebugMarkerEndEXT, close_label, always)
#define WEIR_BUFFER_HOOKS(X)                                \
  X(AFTER, CreateCommandPool, made_pool, always)            \
  X(BEFORE, DestroyCommandPool, forget_pool, always)        \
  X(HOOK, ResetCommandPool, reset_command_pool, always)     \
  X(AFTER, AllocateCommandBuffers, made_buffers, always)    \
  X(BEFORE, FreeCommandBuffers, forget_buffers, always)     \
  X(HOOK, BeginCommandBuffer, begin_command_buffer, always) \
  X(BEFORE, ResetCommandBuffer, clear, always)              \
  X(BEFORE, EndCommandBuffer, end_buffer, with_events)      \
  X(BEFORE, CmdBindPipeline, bind_pipeline, always)         \
  X(BEFORE, CmdExecuteCommands, execute_commands, always)
#define WEIR_COMMAND_HOOKS(X)                                                   \
  X(BEFORE, CmdDispatch, dispatch, always)                                      \
  WEIR_IN_TWO(X, BEFORE, CmdDispatchBase, dispatch_base, always)                \
  X(BEFORE, CmdDispatchIndirect, dispatch_indirect, always)                     \
  X(BEFORE, CmdPushConstants, push_constants, with_either)                      \
  WEIR_IN_THREE(X, BEFORE, CmdWaitEvents, wait_events, with_events)             \
  WEIR_IN_THREE(X, BEFORE, CmdPipelineBarrier, barrier, always)                 \
  WEIR_IN_THREE(X, BEFORE, CmdCopyBuffer, copy<WEIR_COPY_BUFFER>, always)       \
  WEIR_IN_THREE(X, BEFORE, CmdCopyImage, copy<WEIR_COPY_IMAGE>, always)         \
  WEIR_IN_THREE(X, BEFORE, CmdCopyBufferToImage, copy<WEIR_COPY_IMAGE>, always) \
  WEIR_IN_THREE(X, BEFORE, CmdCopyImageToBuffer, copy<WEIR_COPY_IMAGE>, always) \
  WEIR_IN_THREE(X, BEFORE, CmdBlitImage, copy<WEIR_COPY_IMAGE>, always)         \
  WEIR_IN_THREE(X, BEFORE, CmdResolveImage, copy<WEIR_COPY_IMAGE>, always)      \
  X(BEFORE, CmdCopyQueryPoolResults, copy<WEIR_COPY_QUERY>, always)             \
  X(BEFORE, CmdFillBuffer, copy<WEIR_COPY_FILL>, always)                        \
  X(BEFORE, CmdUpdateBuffer, copy<WEIR_COPY_UPDATE>, always)
#define WEIR_OBJECT_HOOKS(X)                                                                    \
  X(AFTER, CreateBuffer, kept<made_buffer>, with_kernels)                                       \
  X(BEFORE, DestroyBuffer, forget_buffer, always)                                               \
  X(AFTER, AllocateDescriptorSets, kept<made_sets>, with_kernels)                               \
  X(BEFORE, FreeDescriptorSets, kept<forget_sets>, with_kernels)                                \
  X(BEFORE, ResetDescriptorPool, kept<empty_pool>, with_kernels)                                \
  X(BEFORE, DestroyDescriptorPool, kept<forget_pool>, with_kernels)                             \
  X(BEFORE, UpdateDescriptorSets, kept<update_sets>, with_kernels)                              \
  WEIR_IN_TWO(X, AFTER, CreateDescriptorUpdateTemplate, kept<made_template>, with_kernels)      \
  WEIR_IN_TWO(X, BEFORE, DestroyDescriptorUpdateTemplate, kept<forget<&KeptDevice::templates>>, \
              with_kernels)                                                                     \
  WEIR_IN_TWO(X, BEFORE, UpdateDescriptorSetWithTemplate, kept<update_with_template>,           \
              with_kernels)                                                                     \
  X(BEFORE, CmdPushDescriptorSetKHR, push_set, with_kernels)                                    \
  X(BEFORE, CmdPushDescriptorSetWithTemplateKHR, push_with_template, with_kernels)
#define WEIR_PIPELINE_HOOKS(X)                                       \
  X(AFTER, CreateDescriptorSetLayout, kept<made_set_layout>, always) \
  X(AFTER, CreatePipelineLayout, kept<made_pipeline_layout>, always) \
  X(BEFORE, DestroyPipelineLayout, kept<forget<&KeptDevice::pipeline_layouts>>, always)
#define WEIR_MEMORY_HOOKS(X)                  \
  X(AFTER, AllocateMemory, allocated, always) \
  X(BEFORE, FreeMemory, freed, always)        \
  X(AFTER, BindBufferMemory, bound, always)   \
  WEIR_IN_TWO(X, AFTER, BindBufferMemory2, bound_many, always)
#define WEIR_BINDING_HOOKS(X) X(BEFORE, CmdBindDescriptorSets, bind_sets, with_kernels)
#define WEIR_INTERCEPTED_DEVICE_FUNCTIONS(X) \
  WEIR_DEVICE_HOOKS(X)                       \
  WEIR_SUBMIT_HOOKS(X)                       \
  WEIR_SYNC_HOOKS(X)                         \
  WEIR_KERNEL_HOOKS(X)                       \
  WEIR_BUFFER_HOOKS(X)                       \
  WEIR_COMMAND_HOOKS(X)                      \
  WEIR_OBJECT_HOOKS(X) WEIR_PIPELINE_HOOKS(X) WEIR_MEMORY_HOOKS(X) WEIR_BINDING_HOOKS(X)

// What the layer itself asks of a driver besides.
#define WEIR_ASKED_FUNCTIONS(X)    \
  X(, GetBufferMemoryRequirements) \
  X(, CreateQueryPool)             \
  X(, DestroyQueryPool)            \
  X(, GetQueryPoolResults)         \
  X(, CmdResetQueryPool)           \
  X(, CmdWriteTimestamp)

// The functions below this layer, fetched once when a device is made. Each at a place that is known
// when this is compiled: recording a command reads one.
struct NextDevice {
#define WEIR_DECLARE(how, name, ...) PFN_vk##name name;
  WEIR_INTERCEPTED_DEVICE_FUNCTIONS(WEIR_DECLARE)
  WEIR_ASKED_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
};

struct Device {
  Device* next_device;
  VkDevice handle;
  uint64_t key;  // the loader's dispatch pointer, shared by the device's queues and command buffers
  PFN_vkGetDeviceProcAddr get;  // below this layer
  NextDevice next;
  uint32_t index;
  weir_probe_device* entry;
  VkQueueFamilyProperties families[32];
  Table queues;         // VkQueue -> Queue
  Table fences;         // VkFence -> Queue, from its latest submission
  Table timelines;      // VkSemaphore -> Timeline
  Table modules;        // VkShaderModule -> ShaderModule
  Table pipelines;      // VkPipeline -> Pipeline
  Table pools;          // VkCommandPool -> CommandPool
  Table memories;       // VkDeviceMemory -> what it takes
  Table bound_buffers;  // VkBuffer -> bytes that it takes up of some memory, for a pointer
  VkPhysicalDeviceMemoryProperties memory_properties;
  pthread_mutex_t pipelines_lock;
  Pipeline* free_pipelines;
  Pipeline* slabs;
  Label* labels;  // all; under g.lock
  Timer timer;
  KeptDevice* kept;  // null: memory was out
};

// Counts by name (format.h), as no queue brings them about.
enum Named {
  k_device_memory_peak,    // the most that was taken of devices' own heaps at once
  k_device_memory_steady,  // what was taken of them at the last submission
  k_host_heap_peak,        // as the first, of the other heaps
  k_bound_peak,            // by buffers, of any heap
  k_allocations,
  k_pipelines,
  k_shader_modules,
  k_named
};

// Everything process-wide. Lives as long as the process: the library is never unloaded.
struct Globals : OwnFile {  // its lock is that of the list of devices, too
  Device* devices;
  Table device_keys;  // dispatch key -> Device
  Codes codes;
  uint64_t* named[k_named];
  Level local_memory, host_memory, bound_memory;  // of all devices; changed under lock
  Table command_buffers;  // VkCommandBuffer -> CommandBuffer, of all devices
};
extern Globals g;

// Makes the files before the first count, also in a forked child.
void ensure_file();

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
  return g.device_keys.get<Device>(dispatch_key(dispatchable));
}

inline CommandBuffer* command_buffer(VkCommandBuffer handle) {
  return g.command_buffers.get<CommandBuffer>(number(handle));
}
inline Queue* queue_of(Device* device, VkQueue handle) {
  return device->queues.get<Queue>(number(handle));
}

// In the file.
inline uint32_t queue_index(const Queue* queue) {
  return static_cast<uint32_t>(queue->entry - g.file.queues);
}

inline void count(uint64_t* counters, uint32_t which, uint64_t amount = 1) {
  add(&counters[which], amount);
}

inline void count_named(Named which, uint64_t amount = 1) { add(g.named[which], amount); }

// A submission went down. A buffer goes; a device does, with all that it has.
void note_memory();
void unbind(Device* device, VkBuffer buffer);
void forget_memory(Device* device);

inline Label* label_of(const CommandBuffer* buffer) {
  const uint32_t depth = buffer->label_depth;
  if (depth == 0) return nullptr;
  return buffer->labels[(depth < buffer->k_labels ? depth : buffer->k_labels) - 1];
}

// The slot of `pipeline` under `label` in the buffer's tallies; null when memory is out.
Tally* tally_of(CommandBuffer* buffer, Pipeline* pipeline, Label* label);
void free_pool(CommandPool* pool);

void free_pipelines(Device* device);
// The entry in the file for dispatches of `pipeline` under `label` (may be null).
uint32_t resolve_kernel(Device* device, Pipeline* pipeline, Label* label);

// Notes that `queue` (null: the host) is to bring the semaphore to `value`. Binary ones are
// ignored.
void note_signal(Device* device, VkSemaphore semaphore, uint64_t value, Queue* queue);

// Whether `physical` can tie its ticks to CLOCK_MONOTONIC; then the device is to be made with
// VK_EXT_calibrated_timestamps.
[[nodiscard]] bool can_calibrate(const ClassFunctions& functions, VkPhysicalDevice physical);
void start_timer(Device* device, const ClassFunctions& functions, VkPhysicalDevice physical,
                 bool calibrated);
// Reads what is left, gives the queries back. Before the device goes.
void stop_timer(Device* device);

// Of a recording. The group that the next command is part of, or WEIR_NO_GROUP.
void begin_stamps(CommandBuffer* buffer);
uint32_t enter_group(CommandBuffer* buffer);
void close_group(CommandBuffer* buffer);
void end_stamps(CommandBuffer* buffer);
// In serialized timing: nothing that comes later starts before this.
void serialize(CommandBuffer* buffer);
// The buffer's times are read if they are there, its queries are free again. It is not pending.
void retire_stamps(CommandBuffer* buffer);
void free_stamps(CommandBuffer* buffer);

// A submission of `buffer` is about to go down; it failed; the program learned that work is done on
// `queue` (or on all of them, when null; `idle`: all of its work).
void note_flight(CommandBuffer* buffer, Queue* queue, uint64_t serial, uint32_t order);
void forget_flight(CommandBuffer* buffer, uint64_t serial);
void read_times(Device* device, Queue* queue, bool idle);

// --- What a command buffer does, command by command, and when the program waited (events.cpp):
// with events only.
void log_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t flags);
void log_barrier(CommandBuffer* buffer, const weir_event_barrier& barrier);
// Sets what the push constants of the dispatches to come are.
void log_push(CommandBuffer* buffer, uint32_t offset, uint32_t size, const void* values);
void log_copy(CommandBuffer* buffer, uint32_t kind, uint64_t bytes);
void begin_recording(CommandBuffer* buffer);
// Makes what `secondary` does part of `buffer`.
void log_secondary(CommandBuffer* buffer, const CommandBuffer* secondary);
void free_recording(CommandBuffer* buffer);

// A submission: its buffers before it goes down, itself when it came back.
uint64_t next_serial();
void log_buffer(CommandBuffer* buffer, uint64_t serial, uint32_t order);
void log_submit(Queue* queue, uint64_t serial, uint64_t begin, uint32_t buffers);

}  // namespace weir_probe
