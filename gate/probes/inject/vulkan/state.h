// The layer's records of the program's Vulkan objects, and the functions that its files share.
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
struct ShaderCode;  // capture.h, as are the next three
struct CommandCapture;
struct DeviceCapture;
struct PipelineCapture;

// --- Device times (timing.cpp): timestamps of the layer's own in the program's command buffers.
//
// Commands between two barriers may overlap; they form one group with two timestamps. Every buffer
// has one timestamp at its begin and one at its end. They are read when the program itself has
// learned that the work is done: the layer waits for nothing. Queries are reset inside the buffer,
// so that it can be submitted again and no feature has to be switched on.

constexpr uint32_t k_chunk_queries = 256;

// A piece of a recording's queries.
struct QueryChunk {
  VkQueryPool pool;
  QueryChunk* next;
};

// The timestamps of one command buffer. Query 0 is its begin, then two for each group, then its
// end.
struct Stamps {
  bool enabled;     // this recording is timed
  bool group_open;  // work was recorded since the last barrier
  uint32_t groups;
  uint32_t queries;  // used, in all chunks together
  QueryChunk* chunks;
  // The submission whose times have not been read yet.
  bool in_flight;     // atomic; changed under the timer's lock
  bool may_be_stale;  // queries may hold older times: read them only when all work is done
  uint64_t serial;
  uint32_t order;
  Queue* queue;
  CommandBuffer* next_in_flight;
  uint64_t last_begin;  // ticks, of the submission read last; 0: none
};

// The timestamps of one device.
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
  uint64_t code;   // hash of that, flags and layout: everything that is compiled
  uint64_t name_hash;
  uint32_t kernel;           // atomic; k_unresolved after creation and naming
  bool named;                // atomic; changed under g.lock
  PipelineCapture* capture;  // null: nothing is recorded, or not of it
  char entry_point[40];
  char name[k_name_size];
};

// A debug label that the program gives to the following commands of a buffer. Lives as long as its
// device.
struct Label {
  Label* next;
  uint64_t hash;
  uint32_t kernel;  // atomic; of unnamed pipelines under it
  char name[k_name_size];
};

struct ShaderModule {
  uint64_t hash;
  ShaderCode* code;        // null: nothing is recorded
  char name[k_name_size];  // "" when the program gave none
};

// How often a command buffer dispatches one pipeline under one label.
struct DispatchTally {
  Pipeline* pipeline;  // null: a free slot
  Label* label;        // null: none
  uint64_t dispatches;
  uint64_t groups;  // in all these dispatches
};

struct CommandPool;

// A dispatch in a recording: its kernel is looked up when it reaches the device.
struct UnresolvedDispatch {
  Pipeline* pipeline;  // null: nothing known was bound
  Label* label;
  uint32_t offset;  // of its record in the recording
};

// The commands of a command buffer, one by one; only with events.
struct Recording {
  char* bytes;  // records as in the event file, but for the kernels of dispatches
  uint32_t used;
  uint32_t capacity;
  uint32_t commands;
  UnresolvedDispatch* dispatches;
  uint32_t dispatch_count;
  uint32_t dispatch_capacity;
  uint32_t push_bytes;  // end of the push constants set so far
  char push[256];
  Stamps stamps;
};

// The counters that a queue adds up from command buffers: dispatches, indirect ones, barriers,
// copies.
constexpr uint32_t k_counted = WEIR_COUNT_COPIES + 1;

// Counted while recording, multiplied out at submission. Vulkan wants one thread at a time here.
struct CommandBuffer {
  Device* device;
  DispatchTally* bound;          // for the pipeline bound for compute, or null
  uint64_t counters[k_counted];  // by weir_probe_counter
  uint64_t unknown_dispatches;   // nothing known was bound
  DispatchTally* tallies;        // open addressing, tally_capacity slots (a power of two)
  uint32_t tally_capacity;
  uint32_t tally_used;
  uint32_t reset_count;  // its pool.s when last begun: a pool reset empties all its buffers
  CommandPool* pool;
  CommandBuffer* next;
  CommandBuffer* previous;
  VkCommandBuffer handle;
  static constexpr uint32_t k_labels = 8;
  Label* labels[k_labels];  // open ones; those nested deeper share the last
  uint32_t label_depth;
  bool secondary;
  Recording* recording;     // null: no events
  CommandCapture* capture;  // null: no kernels are recorded
};

struct CommandPool {
  CommandBuffer* first;
  uint32_t reset_count;
  uint32_t family;
  Device* device;
};

struct Queue {
  Device* device;
  VkQueue handle;
  weir_probe_queue* entry;
  uint32_t pending;  // atomic; 1: a submission since its last counted sync
  uint32_t family;
  PollStart polled;
};

// A timeline semaphore: which queue was to signal which value.
struct Timeline {
  static constexpr uint32_t k_signals = 64;
  struct Signal {
    uint64_t value;
    Queue* queue;
  };
  pthread_mutex_t lock;
  uint64_t highest;  // highest value that a wait or poll reported
  uint32_t count;
  Signal signals[k_signals];  // the newest, in rising order of value
};

// Functions that a later version adopted from an extension, and those with a variant that takes
// structs.
#define WEIR_IN_TWO(X, how, name, ...) X(how, name, __VA_ARGS__) X(how, name##KHR, __VA_ARGS__)
#define WEIR_IN_THREE(X, how, name, ...) \
  X(how, name, __VA_ARGS__) X(how, name##2, __VA_ARGS__) X(how, name##2KHR, __VA_ARGS__)

// The functions that the layer intercepts, by the file that handles them: how (hooks.h), name
// without "vk", function, when.
#define WEIR_DEVICE_HOOKS(X)                     \
  X(HOOK, DestroyDevice, destroy_device, always) \
  X(AFTER, GetDeviceQueue, note_queue, always)   \
  X(AFTER, GetDeviceQueue2, note_queue2, always)
#define WEIR_SUBMIT_HOOKS(X)                             \
  WEIR_IN_THREE(X, THROUGH, QueueSubmit, submit, always) \
  X(THROUGH, QueueBindSparse, submit, always)
#define WEIR_SYNC_HOOKS(X)                                                  \
  X(HOOK, QueueWaitIdle, queue_wait_idle, always)                           \
  X(HOOK, DeviceWaitIdle, device_wait_idle, always)                         \
  X(BEFORE, DestroyFence, forget_fence, always)                             \
  X(HOOK, WaitForFences, wait_for_fences, always)                           \
  X(HOOK, GetFenceStatus, get_fence_status, always)                         \
  X(AFTER, CreateSemaphore, note_semaphore, always)                         \
  X(BEFORE, DestroySemaphore, forget<&Device::timelines>, always)           \
  WEIR_IN_TWO(X, THROUGH, WaitSemaphores, wait_semaphores, always)          \
  WEIR_IN_TWO(X, THROUGH, GetSemaphoreCounterValue, poll_semaphore, always) \
  WEIR_IN_TWO(X, BEFORE, SignalSemaphore, note_host_signal, always)
#define WEIR_KERNEL_HOOKS(X)                                        \
  X(AFTER, CreateShaderModule, note_module, always)                 \
  X(BEFORE, DestroyShaderModule, forget<&Device::modules>, always)  \
  X(HOOK, CreateComputePipelines, create_compute_pipelines, always) \
  X(BEFORE, DestroyPipeline, forget_pipeline, always)               \
  X(BEFORE, SetDebugUtilsObjectNameEXT, note_object_name, always)   \
  X(BEFORE, DebugMarkerSetObjectNameEXT, note_marker_name, always)  \
  X(BEFORE, CmdBeginDebugUtilsLabelEXT, begin_label, always)        \
  X(BEFORE, CmdEndDebugUtilsLabelEXT, close_label, always)          \
  X(BEFORE, CmdDebugMarkerBeginEXT, begin_marker, always)           \
  X(BEFORE, CmdDebugMarkerEndEXT, close_label, always)
#define WEIR_BUFFER_HOOKS(X)                                \
  X(AFTER, CreateCommandPool, note_pool, always)            \
  X(BEFORE, DestroyCommandPool, forget_pool, always)        \
  X(HOOK, ResetCommandPool, reset_command_pool, always)     \
  X(AFTER, AllocateCommandBuffers, note_buffers, always)    \
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
#define WEIR_OBJECT_HOOKS(X)                                                                       \
  X(AFTER, CreateBuffer, with_capture<note_buffer>, with_kernels)                                  \
  X(BEFORE, DestroyBuffer, forget_buffer, always)                                                  \
  X(AFTER, AllocateDescriptorSets, with_capture<note_sets>, with_kernels)                          \
  X(BEFORE, FreeDescriptorSets, with_capture<forget_sets>, with_kernels)                           \
  X(BEFORE, ResetDescriptorPool, with_capture<empty_pool>, with_kernels)                           \
  X(BEFORE, DestroyDescriptorPool, with_capture<forget_pool>, with_kernels)                        \
  X(BEFORE, UpdateDescriptorSets, with_capture<update_sets>, with_kernels)                         \
  WEIR_IN_TWO(X, AFTER, CreateDescriptorUpdateTemplate, with_capture<note_template>, with_kernels) \
  WEIR_IN_TWO(X, BEFORE, DestroyDescriptorUpdateTemplate,                                          \
              with_capture<forget<&DeviceCapture::templates>>, with_kernels)                       \
  WEIR_IN_TWO(X, BEFORE, UpdateDescriptorSetWithTemplate, with_capture<update_with_template>,      \
              with_kernels)                                                                        \
  X(BEFORE, CmdPushDescriptorSetKHR, push_set, with_kernels)                                       \
  X(BEFORE, CmdPushDescriptorSetWithTemplateKHR, push_with_template, with_kernels)
#define WEIR_PIPELINE_HOOKS(X)                                               \
  X(AFTER, CreateDescriptorSetLayout, with_capture<note_set_layout>, always) \
  X(AFTER, CreatePipelineLayout, with_capture<note_pipeline_layout>, always) \
  X(BEFORE, DestroyPipelineLayout, with_capture<forget<&DeviceCapture::pipeline_layouts>>, always)
#define WEIR_MEMORY_HOOKS(X)                        \
  X(AFTER, AllocateMemory, note_allocation, always) \
  X(BEFORE, FreeMemory, note_free, always)          \
  X(AFTER, BindBufferMemory, note_binding, always)  \
  WEIR_IN_TWO(X, AFTER, BindBufferMemory2, note_bindings, always)
#define WEIR_BINDING_HOOKS(X) X(BEFORE, CmdBindDescriptorSets, bind_sets, with_kernels)
#define WEIR_INTERCEPTED_DEVICE_FUNCTIONS(X) \
  WEIR_DEVICE_HOOKS(X)                       \
  WEIR_SUBMIT_HOOKS(X)                       \
  WEIR_SYNC_HOOKS(X)                         \
  WEIR_KERNEL_HOOKS(X)                       \
  WEIR_BUFFER_HOOKS(X)                       \
  WEIR_COMMAND_HOOKS(X)                      \
  WEIR_OBJECT_HOOKS(X) WEIR_PIPELINE_HOOKS(X) WEIR_MEMORY_HOOKS(X) WEIR_BINDING_HOOKS(X)

// Further functions that the layer itself calls.
#define WEIR_ASKED_FUNCTIONS(X)    \
  X(, GetBufferMemoryRequirements) \
  X(, CreateQueryPool)             \
  X(, DestroyQueryPool)            \
  X(, GetQueryPoolResults)         \
  X(, CmdResetQueryPool)           \
  X(, CmdWriteTimestamp)

// The functions below this layer, fetched once when a device is created. Members and not a table,
// as recording a command reads one.
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
  Table memories;       // VkDeviceMemory -> Memory (memory.cpp)
  Table bound_buffers;  // VkBuffer -> bytes that it takes up in memory, in place of a pointer
  VkPhysicalDeviceMemoryProperties memory_properties;
  pthread_mutex_t pipelines_lock;
  Pipeline* free_pipelines;
  Pipeline* slabs;
  Label* labels;  // all; under g.lock
  Timer timer;
  DeviceCapture* capture;  // null: memory was out
};

// Counters by name (format.h), which belong to no queue.
enum Named {
  k_device_memory_peak,    // most bytes allocated in devices' own heaps at once
  k_device_memory_steady,  // bytes allocated in them at the last submission
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
  Level local_memory, host_memory, bound_memory;  // over all devices; changed under lock
  Table command_buffers;  // VkCommandBuffer -> CommandBuffer, of all devices
};
extern Globals g;

// Makes the files before the first count, also in a forked child.
void ensure_file();

template <class Handle>
inline uint64_t handle_key(Handle handle) {
  return (uint64_t)handle;  // a pointer or a 64-bit integer, by the handle's kind
}

inline uint64_t dispatch_key(const void* dispatchable) {
  return reinterpret_cast<uint64_t>(*static_cast<void* const*>(dispatchable));
}

// Returns the device that a device, queue or command buffer belongs to. Never null: calls with
// objects that the layer did not see created do not come through it.
inline Device* find_device(const void* dispatchable) {
  return g.device_keys.get<Device>(dispatch_key(dispatchable));
}

inline CommandBuffer* command_buffer(VkCommandBuffer handle) {
  return g.command_buffers.get<CommandBuffer>(handle_key(handle));
}
inline Queue* find_queue(Device* device, VkQueue handle) {
  return device->queues.get<Queue>(handle_key(handle));
}

// Index of the queue in the file.
inline uint32_t queue_index(const Queue* queue) {
  return static_cast<uint32_t>(queue->entry - g.file.queues);
}

inline void count(uint64_t* counters, uint32_t which, uint64_t amount = 1) {
  add(&counters[which], amount);
}

inline void count_named(Named which, uint64_t amount = 1) { add(g.named[which], amount); }

// Notes the memory in use at a submission. Subtracts that of a buffer or a whole device on its
// destruction.
void record_steady_memory();
void unbind(Device* device, VkBuffer buffer);
void forget_memory(Device* device);

// The innermost open label, or null.
inline Label* current_label(const CommandBuffer* buffer) {
  const uint32_t depth = buffer->label_depth;
  if (depth == 0) return nullptr;
  return buffer->labels[(depth < buffer->k_labels ? depth : buffer->k_labels) - 1];
}

// Returns the slot of `pipeline` under `label` in the buffer's tallies; null when memory is out.
DispatchTally* find_or_add_tally(CommandBuffer* buffer, Pipeline* pipeline, Label* label);
void free_pool(CommandPool* pool);

void free_pipelines(Device* device);
// Returns the index in the file of the kernel that `pipeline` runs under `label` (may be null).
uint32_t resolve_kernel(Device* device, Pipeline* pipeline, Label* label);

// Notes that `queue` (null: the host) is to bring the semaphore to `value`. Binary ones are
// ignored.
void note_signal(Device* device, VkSemaphore semaphore, uint64_t value, Queue* queue);

// Returns true if `physical` can relate its ticks to CLOCK_MONOTONIC; then the device is to be
// created with VK_EXT_calibrated_timestamps.
[[nodiscard]] bool can_calibrate(const ClassFunctions& functions, VkPhysicalDevice physical);
void start_timer(Device* device, const ClassFunctions& functions, VkPhysicalDevice physical,
                 bool calibrated);
// Reads the remaining times and destroys the queries. To be called before the device is destroyed.
void stop_timer(Device* device);

// Begin and end the timestamps of a recording, and of a group within it. enter_group returns the
// group of the next command, or WEIR_NO_GROUP.
void write_first_timestamp(CommandBuffer* buffer);
uint32_t enter_group(CommandBuffer* buffer);
void close_group(CommandBuffer* buffer);
void end_stamps(CommandBuffer* buffer);
// In serialized timing, ends the group with a barrier, so that no later command starts before its
// end.
void serialize(CommandBuffer* buffer);
// Reads the buffer's times if they are available, and makes its queries free again. The buffer must
// not be pending.
void retire_stamps(CommandBuffer* buffer);
void free_stamps(CommandBuffer* buffer);

// add_in_flight is called before a submission of `buffer`, cancel_in_flight if it failed.
// read_times is called when the program learned that work on `queue` is done (null: on all queues;
// `idle`: all of their work).
void add_in_flight(CommandBuffer* buffer, Queue* queue, uint64_t serial, uint32_t order);
void cancel_in_flight(CommandBuffer* buffer, uint64_t serial);
void read_times(Device* device, Queue* queue, bool idle);

// --- The commands of a command buffer, one by one, and the program's waits (events.cpp); only with
// events.
void log_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t flags);
void log_barrier(CommandBuffer* buffer, const weir_event_barrier& barrier);
// Sets push constants of the following dispatches.
void log_push(CommandBuffer* buffer, uint32_t offset, uint32_t size, const void* values);
void log_copy(CommandBuffer* buffer, uint32_t kind, uint64_t bytes);
void begin_recording(CommandBuffer* buffer);
// Appends the commands of `secondary` to `buffer`.
void log_secondary(CommandBuffer* buffer, const CommandBuffer* secondary);
void free_recording(CommandBuffer* buffer);

// Write a submission's buffers before it goes down, and the submission when it came back.
uint64_t next_serial();
void log_buffer(CommandBuffer* buffer, uint64_t serial, uint32_t order);
void log_submit(Queue* queue, uint64_t serial, uint64_t begin, uint32_t buffers);

}  // namespace weir_probe
