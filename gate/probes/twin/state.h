// What a twin keeps of the program's objects. Dispatchable handles begin with the loader's word;
// handles of objects that nothing is known of are numbers that were made up.
#pragma once

#include <stddef.h>
#include <vulkan/vk_icd.h>
#include <vulkan/vulkan.h>

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
// Its index in the description, or -1.
int find_extension(const Twin& twin, const char* name);
// False when the description has no such family.
bool queue_family(const Twin& twin, uint32_t index, VkQueueFamilyProperties* out);
// What a struct of a pNext chain is filled with. `bytes` is null for one that is known, yet not
// described. False for one that is not known.
struct Described {
  const uint8_t* bytes;
  uint32_t size;
  uint32_t used;  // without padding at its end
};
bool find_struct(const Twin& twin, VkStructureType type, Described* out);

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
  Batch *first, *last;  // handed over and not done, in order
};

// `lock` guards queues and what they change: fences, semaphores, events, queries.
struct Device {
  VK_LOADER_DATA loader;
  Physical* physical;
  pthread_mutex_t lock;
  uint32_t changes;  // counts what advance() did; waited for by futex
  Queue* queues;
  uint32_t queue_count;
  bool* enabled;  // by index of the extension in the description
  uint64_t last_ticks;
  uint8_t fill;
  int fill_file;  // a window of memory full of `fill`, or -1 while it is not needed
};

struct Memory {
  uint8_t* pages;  // null: the host cannot see it, and there is none
  uint64_t size, mapped, address;
  uint32_t heap;
  bool imported;
  // Pages that are given back hold `fresh` again.
  bool returnable;
  uint8_t fresh;
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
  uint64_t value;  // of a binary one 0 or 1
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

// What a command buffer keeps: the few commands that have an effect which the host can see.
enum OpKind : uint32_t {
  k_copy,           // first: source, second: target; x, y: offsets, z: bytes
  k_fill,           // second: target; y: offset, z: bytes, number: the word
  k_update,         // second: target; y: offset, z: bytes, data
  k_set_event,      // first: event
  k_reset_event,    // first: event
  k_wait_event,     // first: event
  k_reset_queries,  // first: pool; x, y: first and how many
  k_end_query,      // first: pool; x: which
  k_write_time,     // first: pool; x: which
  k_copy_queries,   // first: pool, second: target; x, number: first and how many; y: offset,
                    // z: stride, flags
};

struct Op {
  OpKind kind;
  void* first = nullptr;
  void* second = nullptr;
  uint64_t x = 0, y = 0, z = 0;
  uint32_t number = 0, flags = 0;
  void* data = nullptr;  // of malloc, the op's own
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
Handle handle_of(T* object) {
  return reinterpret_cast<Handle>(object);
}
// Makes an object, zeroed and with `more` bytes behind it, and its handle. Null when memory is out.
template <class T, class Handle>
T* make_object(Handle* out, size_t more = 0) {
  auto* made = static_cast<T*>(calloc(1, sizeof(T) + more));
  if (made != nullptr) *out = handle_of<Handle>(made);
  return made;
}
// For a program: made, then filled by fill(object).
template <class T, class Handle, class Fill>
VkResult create(Handle* out, Fill fill, size_t more = 0) {
  T* made = make_object<T>(out, more);
  if (made == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  fill(made);
  return VK_SUCCESS;
}
// A handle for an object without a state.
uint64_t made_up();

using weir_probe::in_chain;
// The struct of that type behind `out`, for the program to be told in; null where it did not ask.
template <class T>
T* wanted_behind(void* chain, VkStructureType type) {
  return const_cast<T*>(in_chain<T>(chain, type));
}
// Answers in Vulkan's way: how many there are, or as many as there is room for. write(index, out).
template <class T, class Write>
VkResult answer(uint32_t have, uint32_t* count, T* out, Write write) {
  if (out == nullptr) {
    *count = have;
    return VK_SUCCESS;
  }
  const uint32_t room = *count;
  *count = have < room ? have : room;
  for (uint32_t i = 0; i < *count; ++i) write(i, out + i);
  return have > room ? VK_INCOMPLETE : VK_SUCCESS;
}

// One line on standard error, "weir twin: WHAT".
void say(const char* what, const char* about, const char* end);
// That `function` is not for the twin `name`, once in a process.
void refuse(bool* said, const char* function, const char* name);
// The twin that an object belongs to.
inline const char* name_of(VkDevice device) { return object<Device>(device)->physical->twin.name; }
inline const char* name_of(VkQueue queue) {
  return object<Queue>(queue)->device->physical->twin.name;
}
inline const char* name_of(VkCommandBuffer buffer) {
  return object<CommandBuffer>(buffer)->pool->device->physical->twin.name;
}

// Nanoseconds since boot as ticks of the device, which never fall.
using weir_probe::now_nanoseconds;
uint64_t ticks_of(const Twin& twin, uint64_t nanoseconds);
uint64_t next_ticks(Device* device);  // under the lock

// What a query's result looks like in memory: its values, then whether it is there.
void write_query(const QueryPool& pool, const Query& query, VkQueryResultFlags flags, uint8_t* out);
uint64_t size_of_query(const QueryPool& pool, VkQueryResultFlags flags);

// With the device's lock held: does what can be done on all queues and wakes who waits.
void advance(Device* device);
// Forgets what waits for something that never came.
void drop_pending(Device* device);
// Waits without the processor until ready() or the time is over. True when it was ready.
bool wait_until(Device* device, uint64_t timeout, bool (*ready)(void*), void* what);
template <class Ready>
bool wait_until(Device* device, uint64_t timeout, Ready ready) {
  const auto call = [](void* of) { return (*static_cast<Ready*>(of))(); };
  return wait_until(device, timeout, call, &ready);
}

// --- The driver's functions have Vulkan's own names; their aliases, and where each of them is
// from, are the registry's. (On Linux they have C's calling convention.)

enum Level : uint8_t { k_instance, k_physical, k_device };

struct Command {
  const char* name;
  // Null: there is none. Of a device's that no file brings and that does not do without: one that
  // refuses, since the real device does have it, and a program that asks for it finds it.
  PFN_vkVoidFunction function;
  Level level;
  uint8_t core;           // there since Vulkan 1.(core - 1); 0: only with the extension
  const char* extension;  // a device's, which must be enabled; null: an instance's or none
};
extern const Command g_commands[];  // made by registry.mjs
extern const uint32_t k_command_count;

// Those that Debian's headers do not have, by the names that newer.json gives them.
VkResult map_memory2(VkDevice device, const void* info, void** out);
VkResult unmap_memory2(VkDevice device, const void* info);
VkResult get_matrices(VkPhysicalDevice handle, uint32_t* count, void* out);
VkResult get_flexible_matrices(VkPhysicalDevice handle, uint32_t* count, void* out);

template <class F>
PFN_vkVoidFunction untyped(F function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}
// The first that is there, of a command's names and what stands in for it.
template <class... F>
PFN_vkVoidFunction own(F... names) {
  PFN_vkVoidFunction found = nullptr;
  ((found = found == nullptr ? untyped(names) : found), ...);
  return found;
}

// --- What the registry's table has for commands that no file does.

// Makes an object of which nothing is kept but its handle.
template <class F>
struct MadeUp;
template <class Of, class Info, class Handle>
struct MadeUp<VkResult (*)(Of, const Info*, const VkAllocationCallbacks*, Handle*)> {
  static VkResult call(Of, const Info*, const VkAllocationCallbacks*, Handle* out) {
    *out = reinterpret_cast<Handle>(made_up());
    return VK_SUCCESS;
  }
};
// Takes an object back that create() made.
template <class F>
struct Freed;
template <class Of, class Handle>
struct Freed<void (*)(Of, Handle, const VkAllocationCallbacks*)> {
  static void call(Of, Handle handle, const VkAllocationCallbacks*) { free(object<void>(handle)); }
};
// Accepted, and does nothing; a list that it asks for has nothing in it.
inline void empty(uint32_t* count) { *count = 0; }
template <class T>
void empty(T) {}
template <class F>
struct None;
template <class R, class... A>
struct None<R (*)(A...)> {
  static R call(A... arguments) {
    (empty(arguments), ...);
    return R();  // VK_SUCCESS
  }
};

// A function that a twin does not have: said once, and an error where one can be returned.
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
    static bool said = false;
    refuse(&said, name.letters, name_of(object));
    if constexpr (__is_same(R, VkResult)) {
      return VK_ERROR_FEATURE_NOT_PRESENT;
    } else {
      return R();
    }
  }
};

}  // namespace weir_twin
