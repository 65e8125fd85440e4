// Recording kernels so that each can be compiled (WEIR_PROBE_CODE) or run again
// (WEIR_PROBE_KERNELS) alone: gate/probes/recorded_kernels.h. For the latter the layer stands in
// front of those that make buffers and descriptor sets as well. Layouts are always known: they are
// part of a kernel's code.
//
// What is kept of a dispatch is found when it is recorded, counted when it is submitted, and
// written when it is first submitted, as its name may come late. Layouts, code, pipelines and works
// are kept once by content, for as long as the process, within the bytes that the variable allows.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <vulkan/vulkan.h>

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/recorded_kernels.h"
#include "gate/probes/table.h"

namespace weir_probe {

struct CommandBuffer;
struct Device;
struct Label;
struct Pipeline;

constexpr uint32_t k_not_written = UINT32_MAX;
constexpr uint32_t k_nothing_left_out = UINT32_MAX;

// The SPIR-V of a shader, and which descriptors it declares.
struct KeptCode {
  struct Declared {
    uint32_t id, set, binding;
  };
  KeptCode* next;
  uint64_t hash;
  uint64_t bytes;
  uint32_t written;  // index in the file
  uint32_t declared_count;
  uint32_t left_out;  // why what runs it cannot be replayed, or k_nothing_left_out
  Declared declared[WEIR_KERNELS_DESCRIPTORS];
  uint32_t spirv[];
};

struct KeptLayout {
  struct Binding {
    uint32_t binding, type, count, stages;
    uint32_t first;  // slot of its first descriptor in a set
  };
  KeptLayout* next;
  uint64_t hash;
  uint32_t bindings, slots;
  bool odd;           // something else than buffers, or more than is kept
  Binding binding[];  // rising
};

struct KeptPipelineLayout {
  uint32_t sets;
  uint32_t push_bytes;
  bool odd;
  const KeptLayout* set[WEIR_KERNELS_SETS];  // null: none there
};

struct KeptPipeline {
  KeptPipeline* next;
  uint64_t hash;
  uint32_t written;
  uint32_t left_out;  // as in KeptCode
  KeptCode* code;
  KeptPipelineLayout layout;
  uint32_t body_bytes;
  char body[];  // of its record, but for the code's index
};

struct KeptBuffer {
  uint64_t size;
  uint32_t usage;
};

struct KeptSlot {
  uint64_t buffer, offset, range;
  bool known;
};

struct KeptPool;
struct KeptSet {
  KeptSet *next, *previous;  // of the pool
  KeptPool* pool;
  uint64_t handle;
  const KeptLayout* layout;
  KeptSlot slot[];
};
struct KeptPool {
  KeptSet* first;
};

struct KeptTemplate {
  VkPipelineLayout pipeline_layout;  // of one that pushes
  uint32_t set;
  uint32_t entries;
  VkDescriptorUpdateTemplateEntry entry[];
};

// A device's part in it.
struct KeptDevice {
  Table buffers;           // VkBuffer -> KeptBuffer
  Table layouts;           // VkDescriptorSetLayout -> KeptLayout, not freed with it
  Table pipeline_layouts;  // VkPipelineLayout -> KeptPipelineLayout
  Table pools;             // VkDescriptorPool -> KeptPool
  Table sets;              // VkDescriptorSet -> KeptSet
  Table templates;         // VkDescriptorUpdateTemplate -> KeptTemplate
};

// What a dispatch needs to be made again: its record's body, but for what is known later.
struct KeptWork {
  KeptWork* next;  // of the same hash
  KeptPipeline* pipeline;
  uint32_t kernel, place;  // of the file; k_not_written at first
  KeptWork* other_name;    // the same under another name
  uint32_t bytes;
  char body[];
};

// A dispatch in a command buffer.
struct KeptDispatch {
  KeptWork* work;     // null: left out
  uint32_t left_out;  // why
  Pipeline* pipeline;
  Label* label;
};

// What is bound in a command buffer, and what it dispatches.
struct KeptCommands {
  static constexpr uint32_t k_dynamic = 16;
  struct Bound {
    uint64_t set;     // 0: none, or pushed
    KeptSet* pushed;  // of push descriptors; kept for the next
    bool is_pushed;
    uint32_t dynamic_count;
    uint32_t dynamic[k_dynamic];
  };
  KeptDispatch* dispatches;
  uint32_t count, capacity;
  uint64_t no_room;  // dispatches beyond memory
  uint32_t push_bytes;
  char push[WEIR_KERNELS_PUSH_BYTES];
  Bound bound[WEIR_KERNELS_SETS];
};

// The pieces of a record, put one behind the other.
struct Body {
  char* at;
  template <class T>
  void put(const T* values, size_t count) {
    if (count != 0) memcpy(at, values, count * sizeof(T));
    at += count * sizeof(T);
  }
};

enum class Kept { nothing, code, dispatches };
extern Kept g_kept;  // set once, before the first device
inline bool keeping_code() { return __builtin_expect(g_kept != Kept::nothing, 0); }
inline bool keeping() { return __builtin_expect(g_kept == Kept::dispatches, 0); }

// The file: to be called after open_file, under the same lock.
void open_kept(const File& file);
void detach_kept_after_fork();
// Takes bytes of what may be kept in memory; false when there are none left.
[[nodiscard]] bool take_kept_bytes(uint64_t bytes);
// Appends a record; false when there is no room. Under g_kept_lock.
bool write_kept(uint32_t kind, uint32_t index, const void* head, uint64_t head_bytes,
                const void* tail = nullptr, uint64_t tail_bytes = 0);
void count_kept(uint32_t place, uint64_t amount);
void count_left_out(uint32_t reason, uint64_t amount);
extern pthread_mutex_t g_kept_lock;  // of all that is kept once, and of the file

// The device, as it was made.
void keep_device(Device* device, const VkDeviceCreateInfo* info, uint32_t api_version);
void forget_kept_device(Device* device);

// Of the descriptors and push constants that a pipeline declares; 0 when it is not known.
[[nodiscard]] uint64_t hash_layout(const Device* device, VkPipelineLayout layout);

// Null when there is no room.
[[nodiscard]] KeptCode* keep_code(const void* spirv, uint64_t bytes);
// `code` may be null: then what it dispatches is left out. `identity`: Pipeline::code.
[[nodiscard]] KeptPipeline* keep_pipeline(Device* device, const VkComputePipelineCreateInfo& info,
                                          KeptCode* code, uint64_t identity);
// Into the file, once; false when there is no room. Under g_kept_lock.
bool write_pipeline(KeptPipeline* pipeline);
// The same of one that is dispatched, where no more than its code is recorded; null is fine.
void note_dispatched(KeptPipeline* pipeline);
// Of a command buffer: it dispatches, for which it must have a KeptCommands; `left_out`: why that
// cannot be made again, or k_nothing_left_out.
void keep_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z, uint32_t left_out);
void keep_push(KeptCommands* commands, uint32_t offset, uint32_t size, const void* values);
// It begins anew, takes over what `secondary` does, goes.
void begin_kept(CommandBuffer* buffer);
void join_kept(CommandBuffer* buffer, const CommandBuffer* secondary);
void free_kept(CommandBuffer* buffer);
// A submission of `buffer`; sign -1 takes it back.
void submit_kept(const CommandBuffer* buffer, uint64_t sign);

// Of a set of descriptors: from one binding on, into the next ones when there are more.
template <class Value>
void fill_slots(KeptSet* set, uint32_t binding, uint32_t element, uint32_t count, Value value) {
  const KeptLayout& layout = *set->layout;
  uint32_t at = 0;
  while (at < layout.bindings && layout.binding[at].binding < binding) ++at;
  for (; count != 0 && at < layout.bindings; ++at, element = 0) {
    for (; element < layout.binding[at].count && count != 0; ++element, --count) {
      set->slot[layout.binding[at].first + element] = value();
    }
  }
}

}  // namespace weir_probe
