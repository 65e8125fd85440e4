// Recording kernels so that each can be compiled (WEIR_PROBE_CODE) or run again
// (WEIR_PROBE_KERNELS) alone: gate/probes/recorded_kernels.h. For the latter the layer stands in
// front of the functions that create buffers and descriptor sets as well. Layouts are always
// captured: they are part of a kernel's code.
//
// A dispatch is captured when it is recorded and counted when it is submitted. It is written at its
// first submission, as its name may come late. Layouts, code, pipelines and works are stored once
// by content, until the process ends, within the bytes that the variable allows.
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

// The SPIR-V of a shader and the descriptors that it declares.
struct ShaderCode {
  struct Declaration {
    uint32_t id, set, binding;
  };
  ShaderCode* next;
  uint64_t hash;
  uint64_t bytes;
  uint32_t written;  // index in the file
  uint32_t declared_count;
  uint32_t left_out_reason;  // reason why it cannot be replayed, or k_nothing_left_out
  Declaration declared[WEIR_KERNELS_DESCRIPTORS];
  uint32_t spirv[];
};

struct SetLayout {
  struct Binding {
    uint32_t binding, type, count, stages;
    uint32_t first;  // slot of its first descriptor in a set
  };
  SetLayout* next;
  uint64_t hash;
  uint32_t bindings, slots;
  bool has_untracked_descriptors;  // it has other descriptors than buffers, or too many
  Binding binding[];               // rising
};

struct PipelineLayout {
  uint32_t sets;
  uint32_t push_bytes;
  bool has_untracked_descriptors;
  const SetLayout* set[WEIR_KERNELS_MAX_SETS];  // null: none there
};

struct PipelineCapture {
  PipelineCapture* next;
  uint64_t hash;
  uint32_t written;
  uint32_t left_out_reason;  // as in ShaderCode
  ShaderCode* code;
  PipelineLayout layout;
  uint32_t body_bytes;
  char body[];  // its record without the index of its code
};

struct BufferInfo {
  uint64_t size;
  uint32_t usage;
};

struct Descriptor {
  uint64_t buffer, offset, range;
  bool is_written;
};

struct DescriptorPool;
struct DescriptorSet {
  DescriptorSet *next, *previous;  // in the pool
  DescriptorPool* pool;
  uint64_t handle;
  const SetLayout* layout;
  Descriptor slot[];
};
struct DescriptorPool {
  DescriptorSet* first;
};

struct UpdateTemplate {
  VkPipelineLayout pipeline_layout;  // if it pushes descriptors
  uint32_t set;
  uint32_t entries;
  VkDescriptorUpdateTemplateEntry entry[];
};

// The captured objects of one device.
struct DeviceCapture {
  Table buffers;           // VkBuffer -> BufferInfo
  Table layouts;           // VkDescriptorSetLayout -> SetLayout, not freed with it
  Table pipeline_layouts;  // VkPipelineLayout -> PipelineLayout
  Table pools;             // VkDescriptorPool -> DescriptorPool
  Table sets;              // VkDescriptorSet -> DescriptorSet
  Table templates;         // VkDescriptorUpdateTemplate -> UpdateTemplate
};

// One distinct dispatch. `body` is its record without the fields that are filled in on writing.
struct CapturedWork {
  CapturedWork* next;  // with the same hash
  PipelineCapture* pipeline;
  uint32_t kernel, place;    // in the file; k_not_written at first
  CapturedWork* other_name;  // the same under another name
  uint32_t bytes;
  char body[];
};

// A dispatch in a command buffer.
struct CapturedDispatch {
  CapturedWork* work;        // null: left out
  uint32_t left_out_reason;  // why
  Pipeline* pipeline;
  Label* label;
};

// The descriptor sets bound in a command buffer, and its dispatches.
struct CommandCapture {
  static constexpr uint32_t k_dynamic = 16;
  struct Bound {
    uint64_t set;               // 0: none, or pushed
    DescriptorSet* pushed_set;  // push descriptors; reused by the next
    bool is_pushed;
    uint32_t dynamic_offset_count;
    uint32_t dynamic[k_dynamic];
  };
  CapturedDispatch* dispatches;
  uint32_t count, capacity;
  uint64_t no_room;  // dispatches beyond memory
  uint32_t push_bytes;
  char push[WEIR_KERNELS_PUSH_BYTES];
  Bound bound[WEIR_KERNELS_MAX_SETS];
};

// Puts the pieces of a record one behind the other.
struct Body {
  char* at;
  template <class T>
  void put(const T* values, size_t count) {
    if (count != 0) memcpy(at, values, count * sizeof(T));
    at += count * sizeof(T);
  }
};

enum class CaptureMode { nothing, code, dispatches };
extern CaptureMode g_capture_mode;  // set once, before the first device
inline bool captures_code() { return __builtin_expect(g_capture_mode != CaptureMode::nothing, 0); }
inline bool captures_dispatches() {
  return __builtin_expect(g_capture_mode == CaptureMode::dispatches, 0);
}

// Makes the file of recorded kernels. Call it after open_file, under the same lock.
void open_capture(const File& file);
void detach_capture_after_fork();
// Takes `bytes` from the memory that captures may use. False if they do not fit.
[[nodiscard]] bool reserve_capture_memory(uint64_t bytes);
// Appends a record; false when there is no room. Under g_capture_lock.
bool write_capture_record(uint32_t kind, uint32_t index, const void* head, uint64_t head_bytes,
                          const void* tail = nullptr, uint64_t tail_bytes = 0);
void count_captured_work(uint32_t place, uint64_t amount);
void count_left_out(uint32_t reason, uint64_t amount);
extern pthread_mutex_t g_capture_lock;  // guards everything stored once, and the file

// Writes the device, its extensions and features to the file.
void capture_device(Device* device, const VkDeviceCreateInfo* info, uint32_t api_version);
void free_device_capture(Device* device);

// Hashes the descriptors and push constants of a pipeline layout; 0 for an unknown layout.
[[nodiscard]] uint64_t hash_layout(const Device* device, VkPipelineLayout layout);

// Null when there is no room.
[[nodiscard]] ShaderCode* capture_code(const void* spirv, uint64_t bytes);
// Returns null, so that its dispatches are left out, if `code` is null. `identity`: Pipeline::code.
[[nodiscard]] PipelineCapture* capture_pipeline(Device* device,
                                                const VkComputePipelineCreateInfo& info,
                                                ShaderCode* code, uint64_t identity);
// Writes the pipeline and its code to the file, once; false when there is no room. Under
// g_capture_lock.
bool write_pipeline(PipelineCapture* pipeline);
// Does the same for a dispatched pipeline if only code is recorded; `pipeline` may be null.
void write_dispatched_pipeline(PipelineCapture* pipeline);
// Adds a dispatch to the buffer's CommandCapture, which must exist. `left_out`: the reason why it
// cannot be run again, or k_nothing_left_out.
void capture_dispatch(CommandBuffer* buffer, uint32_t x, uint32_t y, uint32_t z,
                      uint32_t left_out_reason);
void capture_push_constants(CommandCapture* commands, uint32_t offset, uint32_t size,
                            const void* values);
// Empties the capture of `buffer`, appends that of `secondary`, or frees it.
void begin_capture(CommandBuffer* buffer);
void append_capture(CommandBuffer* buffer, const CommandBuffer* secondary);
void free_capture(CommandBuffer* buffer);
// Counts the captured dispatches of a submission of `buffer`. `sign`: 1, or -1 (modulo 2^64) to
// undo it.
void submit_capture(const CommandBuffer* buffer, uint64_t sign);

// Sets `count` descriptors to what `value` returns, from `element` of `binding` on. Descriptors
// beyond the end of a binding go into the next one, as Vulkan has it.
template <class Value>
void fill_descriptors(DescriptorSet* set, uint32_t binding, uint32_t element, uint32_t count,
                      Value value) {
  const SetLayout& layout = *set->layout;
  uint32_t index = 0;
  while (index < layout.bindings && layout.binding[index].binding < binding) ++index;
  for (; count != 0 && index < layout.bindings; ++index, element = 0) {
    for (; element < layout.binding[index].count && count != 0; ++element, --count) {
      set->slot[layout.binding[index].first + element] = value();
    }
  }
}

}  // namespace weir_probe
