// The objects of a twin's driver. A dispatchable handle points to an object that starts with the
// loader's data. Objects without a state have invented numbers as handles.
#pragma once

#include <stddef.h>
#include <vulkan/vk_icd.h>
#include <vulkan/vulkan.h>

#include "gate/probes/format.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/table.h"
#include "gate/probes/twin/blob.h"

namespace weir_twin {

struct Section {
  const uint8_t* at;
  uint32_t entry_size, count;

  template <class T>
  [[nodiscard]] T entry(uint32_t i) const {
    T out;
    memcpy(&out, at + size_t{i} * entry_size, sizeof out);
    return out;
  }
};

// One description, mapped and checked (blob.cpp). Read only; entries may lie at any address.
struct Twin {
  void* bytes;
  size_t size;
  char name[64];
  Section structs, queue_families, extensions, formats, matrices, flexible_matrices;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceFeatures features;
  VkPhysicalDeviceMemoryProperties memory;
};
// False after a line on standard error. `path` need not end with 0.
bool open_twin(const char* path, size_t length, Twin* out);
void close_twin(Twin* twin);
// The extension's index in the description, or -1.
int find_extension(const Twin& twin, const char* name);
// False if the description has no such family.
bool read_queue_family(const Twin& twin, uint32_t index, VkQueueFamilyProperties* out);
// Values for a struct of a pNext chain; `bytes` is null for a struct that is not described.
struct StructValues {
  const uint8_t* bytes;
  uint32_t size;
  uint32_t byte_count;  // without padding at its end
};
// False for an unknown struct.
bool find_struct(const Twin& twin, VkStructureType type, StructValues* out);

struct Instance;
struct Physical {
  VK_LOADER_DATA loader;
  Instance* instance;
  uint32_t index;
  Twin twin;
  uint64_t heap_used[VK_MAX_MEMORY_HEAPS];  // bytes, changed atomically
};
struct Instance {
  VK_LOADER_DATA loader;
  uint32_t count;
  Physical physical[];
};

struct Batch;
struct Device;
struct Queue {
  VK_LOADER_DATA loader;
  Device* device;
  VkDeviceQueueCreateFlags flags;
  uint32_t family, index;
  Batch *first, *last;  // submitted and not finished, in order
};

// `lock` guards queues and the objects that they change: fences, semaphores, events, queries.
struct Device {
  VK_LOADER_DATA loader;
  Physical* physical;
  pthread_mutex_t lock;
  uint32_t changes;  // calls of run_ready_batches(); threads wait on it by futex
  Queue* queues;
  uint32_t queue_count;
  bool* enabled;  // by the extension's index in the description
  uint64_t last_ticks;
  uint8_t fill;
  int fill_file;    // a file of memory full of `fill`; -1: not created yet
  bool is_counted;  // by weir's layer
};

struct Memory {
  uint8_t* pages;  // null: the host cannot see this memory, so that it needs no pages
  uint64_t size, mapped, address;
  uint32_t heap;
  bool imported;
  // True if pages can be discarded; they hold `initial_byte` again when they are used next.
  bool discardable;
  uint8_t initial_byte;
};
struct Buffer {
  uint64_t size;
  VkBufferUsageFlags usage;
  Memory* memory;
  uint64_t offset;
};
struct Fence {
  bool signaled;
};
struct Semaphore {
  bool timeline;
  uint64_t value;  // 0 or 1 for a binary semaphore
};
struct Event {
  bool set;
};
struct Query {
  bool available;
  uint64_t value;
};
struct QueryPool {
  uint32_t count, values;  // values each
  Query queries[];
};

// Commands that a command buffer stores: the few with an effect that the host can see.
enum OpKind : uint32_t {
  k_copy,           // first: source, second: target; x, y: offsets, z: bytes
  k_fill,           // second: target; y: offset, z: bytes, number: the word
  k_update,         // second: target; y: offset, z: bytes, data
  k_set_event,      // first: event
  k_reset_event,    // first: event
  k_wait_event,     // first: event
  k_reset_queries,  // first: pool; x, y: first and how many
  k_end_query,      // first: pool; x: index
  k_write_time,     // first: pool; x: index
  k_copy_queries,   // first: pool, second: target; x, number: first and how many; y: offset,
                    // z: stride, flags
};

struct Op {
  OpKind kind;
  void* first = nullptr;
  void* second = nullptr;
  uint64_t x = 0, y = 0, z = 0;
  uint32_t number = 0, flags = 0;
  void* data = nullptr;  // allocated by malloc; owned by the op
};

struct CommandPool;
struct CommandBuffer {
  VK_LOADER_DATA loader;
  CommandPool* pool;
  CommandBuffer *previous, *next;
  Op* ops;
  uint32_t count, capacity;
  bool out_of_memory;
};
struct CommandPool {
  Device* device;
  CommandBuffer* first;
};

template <class T, class Handle>
T* object(Handle handle) {
  return reinterpret_cast<T*>(handle);
}
template <class Handle, class T>
Handle to_handle(T* object) {
  return reinterpret_cast<Handle>(object);
}
// Makes an object, zeroed and with `more` bytes behind it, and its handle. Null without memory.
template <class T, class Handle>
T* make_object(Handle* out, size_t more = 0) {
  auto* created = static_cast<T*>(calloc(1, sizeof(T) + more));
  if (created != nullptr) *out = to_handle<Handle>(created);
  return created;
}
// Makes an object for a vkCreate function, filled by fill(object).
template <class T, class Handle, class Fill>
VkResult create(Handle* out, Fill fill, size_t more = 0) {
  T* created = make_object<T>(out, more);
  if (created == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  fill(created);
  return VK_SUCCESS;
}
// A new handle for an object without a state.
uint64_t make_handle();

using weir_probe::in_chain;
// Finds the struct of that type that the program wants filled; null if the chain has none.
template <class T>
T* find_output(void* chain, VkStructureType type) {
  return const_cast<T*>(in_chain<T>(chain, type));
}
// Returns a list as Vulkan does: its size where `out` is null, else as many of its `size` entries
// as there is room for. write(index, entry) writes one.
template <class T, class Write>
VkResult write_list(uint32_t size, uint32_t* count, T* out, Write write) {
  if (out == nullptr) {
    *count = size;
    return VK_SUCCESS;
  }
  const uint32_t room = *count;
  *count = size < room ? size : room;
  for (uint32_t i = 0; i < *count; ++i) write(i, out + i);
  return size > room ? VK_INCOMPLETE : VK_SUCCESS;
}

// Prints "weir twin: " and the three texts as a line on standard error.
void log_line(const char* begin, const char* subject, const char* end);
// Prints once that the twin `name` refuses `function`. `reported` is set then.
void refuse(bool* reported, const char* function, const char* name);
// The name of the twin that an object belongs to.
inline const char* twin_name(VkDevice device) {
  return object<Device>(device)->physical->twin.name;
}
inline const char* twin_name(VkQueue queue) {
  return object<Queue>(queue)->device->physical->twin.name;
}
inline const char* twin_name(VkCommandBuffer buffer) {
  return object<CommandBuffer>(buffer)->pool->device->physical->twin.name;
}

// Converts nanoseconds since boot to ticks of the device.
using weir_probe::now_nanoseconds;
uint64_t to_ticks(const Twin& twin, uint64_t nanoseconds);
// The present time in ticks, never less than before. Needs the device's lock.
uint64_t next_ticks(Device* device);

// Writes a query's result: its values, then its availability if `flags` ask for it.
void write_query(const QueryPool& pool, const Query& query, VkQueryResultFlags flags, uint8_t* out);
uint64_t query_size(const QueryPool& pool, VkQueryResultFlags flags);

// Runs the batches of all queues as far as possible, and wakes waiting threads. Needs the device's
// lock.
void run_ready_batches(Device* device);
// Frees batches that still wait.
void drop_pending(Device* device);
// Sleeps until ready(data), or for `timeout` nanoseconds. Returns true if it became ready.
bool wait_until(Device* device, uint64_t timeout, bool (*ready)(void*), void* data);
template <class Ready>
bool wait_until(Device* device, uint64_t timeout, Ready ready) {
  const auto call = [](void* data) { return (*static_cast<Ready*>(data))(); };
  return wait_until(device, timeout, call, &ready);
}

// --- The driver's functions have Vulkan's names. The table of them, with aliases, is made from the
// registry. (On Linux they have C's calling convention.)

enum Level : uint8_t { k_instance, k_physical, k_device };

struct Command {
  const char* name;
  // Null if there is none. A device's function that no file implements refuses: the real device has
  // it, so programs must find it.
  PFN_vkVoidFunction function;
  Level level;
  uint8_t core;           // part of Vulkan since 1.(core - 1); 0: only with the extension
  const char* extension;  // a device extension to be enabled first, or null
};
extern const Command g_commands[];  // made by registry.mjs
extern const uint32_t k_command_count;

// Functions that Debian's headers lack, with the names that newer.json gives them.
VkResult map_memory2(VkDevice device, const void* info, void** out);
VkResult unmap_memory2(VkDevice device, const void* info);
VkResult get_matrices(VkPhysicalDevice handle, uint32_t* count, void* out);
VkResult get_flexible_matrices(VkPhysicalDevice handle, uint32_t* count, void* out);

template <class F>
PFN_vkVoidFunction untyped(F function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}
// Returns the first function that is not null: one of a command's names, or its substitute.
template <class... F>
PFN_vkVoidFunction first_function(F... functions) {
  const PFN_vkVoidFunction candidates[] = {untyped(functions)..., nullptr};
  for (const PFN_vkVoidFunction candidate : candidates) {
    if (candidate != nullptr) return candidate;
  }
  return nullptr;
}

// --- Functions that the registry's table has for commands that no file implements.

// Creates an object without a state.
template <class F>
struct HandleMaker;
template <class Of, class Info, class Handle>
struct HandleMaker<VkResult (*)(Of, const Info*, const VkAllocationCallbacks*, Handle*)> {
  static VkResult call(Of, const Info*, const VkAllocationCallbacks*, Handle* out) {
    *out = reinterpret_cast<Handle>(make_handle());
    return VK_SUCCESS;
  }
};
// Frees an object that create() made.
template <class F>
struct Deleter;
template <class Of, class Handle>
struct Deleter<void (*)(Of, Handle, const VkAllocationCallbacks*)> {
  static void call(Of, Handle handle, const VkAllocationCallbacks*) { free(object<void>(handle)); }
};
// Accepts the call and does nothing; a list that it returns is empty.
inline void clear_count(uint32_t* count) { *count = 0; }
template <class T>
void clear_count(T) {}
template <class F>
struct NoOperation;
template <class R, class... A>
struct NoOperation<R (*)(A...)> {
  static R call(A... arguments) {
    (clear_count(arguments), ...);
    return R();  // VK_SUCCESS
  }
};

// Refuses a call that a twin does not support: one line on standard error, and an error if the
// function returns one.
template <size_t n>
struct Text {
  char letters[n];
  constexpr Text(const char (&text)[n]) {  // NOLINT: made from a literal
    for (size_t i = 0; i < n; ++i) letters[i] = text[i];
  }
};
template <class F, Text name>
struct Refusal;
template <class R, class Of, class... A, Text name>
struct Refusal<R (*)(Of, A...), name> {
  static R call(Of object, A...) {
    static bool reported = false;
    refuse(&reported, name.letters, twin_name(object));
    if constexpr (__is_same(R, VkResult)) {
      return VK_ERROR_FEATURE_NOT_PRESENT;
    } else {
      return R();
    }
  }
};

}  // namespace weir_twin
