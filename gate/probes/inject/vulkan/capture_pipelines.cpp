// Captures shader code, layouts and pipelines, each stored once by content.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

ShaderCode* g_codes;
SetLayout* g_layouts;
PipelineCapture* g_pipelines;

// Returns the element of the list `all` that is the same as `candidate`; then `candidate` is freed.
// If there is none, adds and returns `candidate`. Null where there is no room.
template <class T, class Same>
T* find_or_add(T** all, T* candidate, uint64_t bytes, Same same) {
  pthread_mutex_lock(&g_capture_lock);
  T* match = *all;
  while (match != nullptr && (match->hash != candidate->hash || !same(*match))) match = match->next;
  if (match == nullptr && reserve_capture_memory(sizeof *candidate + bytes)) {
    candidate->next = *all;
    *all = candidate;
    match = candidate;
  }
  pthread_mutex_unlock(&g_capture_lock);
  if (match != candidate) free(candidate);
  return match;
}

// Returns the shader's declaration of the SPIR-V variable `id`, adding it if it is new. Null, with
// `left_out` set, when there are too many.
ShaderCode::Declaration* find_or_add_declaration(ShaderCode* code, uint32_t id) {
  for (uint32_t i = 0; i < code->declared_count; ++i) {
    if (code->declared[i].id == id) return &code->declared[i];
  }
  if (code->declared_count == WEIR_KERNELS_DESCRIPTORS) {
    code->left_out_reason = WEIR_LEFT_ROOM;
    return nullptr;
  }
  ShaderCode::Declaration* fresh = &code->declared[code->declared_count++];
  *fresh = {id, 0, 0};
  return fresh;
}

// Reads from SPIR-V which descriptors a shader declares, and sets `left_out` if it cannot be run
// again. An instruction is a word with length and opcode, then operands. The numbers are the
// specification's.
void scan_spirv(ShaderCode* code) {
  constexpr uint32_t k_magic = 0x07230203;
  constexpr uint32_t k_header_words = 5;
  constexpr uint32_t k_capability = 17, k_addresses = 5347, k_decorate = 71;
  constexpr uint32_t k_binding = 33, k_set = 34;
  const uint64_t words = code->bytes / 4;
  if (words < k_header_words || code->spirv[0] != k_magic) {
    code->left_out_reason = WEIR_LEFT_UNKNOWN;
    return;
  }
  for (uint64_t position = k_header_words; position < words;) {
    const uint32_t* word = code->spirv + position;
    const uint32_t length = word[0] >> 16;
    const uint32_t opcode = word[0] & 0xffff;
    if (length == 0 || length > words - position) return;  // invalid: left to the driver
    if (opcode == k_capability && length >= 2 && word[1] == k_addresses) {
      code->left_out_reason = WEIR_LEFT_ADDRESSES;
    }
    if (opcode == k_decorate && length >= 4 && (word[2] == k_binding || word[2] == k_set)) {
      if (ShaderCode::Declaration* declaration = find_or_add_declaration(code, word[1])) {
        if (word[2] == k_binding) {
          declaration->binding = word[3];
        } else {
          declaration->set = word[3];
        }
      }
    }
    position += length;
  }
}

// Returns true if descriptors may be written after they are bound, or may be fewer than declared.
bool cannot_be_tracked(const VkDescriptorSetLayoutCreateInfo& info) {
  constexpr VkDescriptorBindingFlags k_later = VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT |
                                               VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT;
  const auto* flags = in_chain<VkDescriptorSetLayoutBindingFlagsCreateInfo>(
      info.pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO);
  for (uint32_t i = 0; flags != nullptr && i < flags->bindingCount; ++i) {
    if ((flags->pBindingFlags[i] & k_later) != 0) return true;
  }
  return false;
}

// Stores the bindings of a descriptor set layout, in rising order. `untracked`: it has too many,
// or others than buffers. Null when there is no room.
const SetLayout* capture_layout(const VkDescriptorSetLayoutCreateInfo& info) {
  SetLayout* layout = static_cast<SetLayout*>(
      calloc(1, sizeof(SetLayout) + info.bindingCount * sizeof(SetLayout::Binding)));
  if (layout == nullptr) return nullptr;
  layout->has_untracked_descriptors = cannot_be_tracked(info);
  for (uint32_t i = 0; i < info.bindingCount; ++i) {
    const VkDescriptorSetLayoutBinding& source = info.pBindings[i];
    if (source.descriptorCount == 0) continue;
    layout->has_untracked_descriptors =
        layout->has_untracked_descriptors || !weir_kernels_is_buffer(source.descriptorType) ||
        source.descriptorCount > WEIR_KERNELS_DESCRIPTORS || layout->slots > (1U << 16);
    if (layout->has_untracked_descriptors) continue;
    uint32_t place = layout->bindings++;  // bindings are in rising order
    for (; place > 0 && layout->binding[place - 1].binding > source.binding; --place) {
      layout->binding[place] = layout->binding[place - 1];
    }
    layout->binding[place] = {source.binding, static_cast<uint32_t>(source.descriptorType),
                              source.descriptorCount, source.stageFlags, 0};
    layout->slots += source.descriptorCount;
  }
  uint32_t next_slot = 0;
  for (uint32_t i = 0; i < layout->bindings; ++i) {
    layout->binding[i].first = next_slot;
    next_slot += layout->binding[i].count;
  }
  const size_t bytes = layout->bindings * sizeof(SetLayout::Binding);
  layout->hash =
      hash_bytes(k_hash_seed + (layout->has_untracked_descriptors ? 1 : 0), layout->binding, bytes);
  return find_or_add(&g_layouts, layout, bytes, [&](const SetLayout& stored) {
    return stored.bindings == layout->bindings &&
           stored.has_untracked_descriptors == layout->has_untracked_descriptors &&
           memcmp(stored.binding, layout->binding, bytes) == 0;
  });
}

// Fills the record of a pipeline, except the index of its code: head, bindings, specialization
// constants, their data.
void write_body(PipelineCapture* pipeline, const Device* device,
                const VkComputePipelineCreateInfo& info, uint32_t bindings, uint64_t identity) {
  const VkSpecializationInfo* specialization = info.stage.pSpecializationInfo;
  weir_kernels_pipeline head{};
  head.device = device->index;
  constexpr VkPipelineCreateFlags k_derived =
      VK_PIPELINE_CREATE_DERIVATIVE_BIT | VK_PIPELINE_CREATE_ALLOW_DERIVATIVES_BIT;
  head.flags = info.flags & ~k_derived;  // the pipelines it derives from are not recorded
  head.stage_flags = info.stage.flags;
  if (const auto* subgroup = in_chain<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
          info.stage.pNext,
          VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO)) {
    head.subgroup_size = subgroup->requiredSubgroupSize;
  }
  head.push_bytes = pipeline->layout.push_bytes;
  head.sets = pipeline->layout.sets;
  head.bindings = bindings;
  head.identity = identity;
  if (specialization != nullptr) {
    head.constants = specialization->mapEntryCount;
    head.data_bytes = static_cast<uint32_t>(specialization->dataSize);
  }
  if (!copy_text(head.entry_point, sizeof head.entry_point, info.stage.pName)) {
    pipeline->left_out_reason = WEIR_LEFT_ROOM;
  }
  if (pipeline->left_out_reason != k_nothing_left_out)
    head.left_out = pipeline->left_out_reason + 1;
  Body body = {pipeline->body};
  body.put(&head, 1);
  for (uint32_t set = 0; set < pipeline->layout.sets; ++set) {
    const SetLayout* layout = pipeline->layout.set[set];
    for (uint32_t i = 0; layout != nullptr && i < layout->bindings; ++i) {
      const SetLayout::Binding& source = layout->binding[i];
      const weir_kernels_binding binding = {set, source.binding, source.type, source.count};
      body.put(&binding, 1);
    }
  }
  if (specialization == nullptr) return;
  for (uint32_t i = 0; i < specialization->mapEntryCount; ++i) {
    const VkSpecializationMapEntry& source = specialization->pMapEntries[i];
    const weir_kernels_constant constant = {source.constantID, source.offset,
                                            static_cast<uint32_t>(source.size)};
    body.put(&constant, 1);
  }
  body.put(static_cast<const char*>(specialization->pData), specialization->dataSize);
}

// Captures a new descriptor set layout. Runs after vkCreateDescriptorSetLayout.
void note_set_layout(DeviceCapture* capture, const VkDescriptorSetLayoutCreateInfo* info,
                     const VkAllocationCallbacks*, VkDescriptorSetLayout* out) {
  if (const SetLayout* layout = capture_layout(*info)) {
    capture->layouts.insert(handle_key(*out), const_cast<SetLayout*>(layout));
  } else {
    capture->layouts.remove(handle_key(*out));
  }
}

// Stores the set layouts and the size of push constants of a new pipeline layout. Runs after
// vkCreatePipelineLayout.
void note_pipeline_layout(DeviceCapture* capture, const VkPipelineLayoutCreateInfo* info,
                          const VkAllocationCallbacks*, VkPipelineLayout* out) {
  auto* layout = replace_record<PipelineLayout>(&capture->pipeline_layouts, handle_key(*out));
  if (layout == nullptr) return;
  layout->has_untracked_descriptors = info->setLayoutCount > WEIR_KERNELS_MAX_SETS;
  layout->sets = layout->has_untracked_descriptors ? 0 : info->setLayoutCount;
  for (uint32_t i = 0; i < layout->sets; ++i) {
    if (info->pSetLayouts[i] == VK_NULL_HANDLE) continue;
    layout->set[i] = capture->layouts.get<const SetLayout>(handle_key(info->pSetLayouts[i]));
    layout->has_untracked_descriptors = layout->has_untracked_descriptors ||
                                        layout->set[i] == nullptr ||
                                        layout->set[i]->has_untracked_descriptors;
  }
  for (uint32_t i = 0; i < info->pushConstantRangeCount; ++i) {
    const VkPushConstantRange& range = info->pPushConstantRanges[i];
    if ((range.stageFlags & VK_SHADER_STAGE_COMPUTE_BIT) == 0) continue;
    const uint32_t end = range.offset + range.size;
    if (end > layout->push_bytes) layout->push_bytes = end;
  }
  layout->has_untracked_descriptors =
      layout->has_untracked_descriptors || layout->push_bytes > WEIR_KERNELS_PUSH_BYTES;
}

const Hook k_hooks[] = {WEIR_PIPELINE_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_pipeline_hooks = list_of(k_hooks);

// Returns the stored copy of a shader's code (SPIR-V), adding it if it is new. Null when there is
// no room.
ShaderCode* capture_code(const void* spirv, uint64_t bytes) {
  auto* code = static_cast<ShaderCode*>(calloc(1, sizeof(ShaderCode) + bytes));
  if (code == nullptr) return nullptr;
  code->hash = hash_bytes(k_hash_seed, spirv, bytes);
  code->bytes = bytes;
  code->written = k_not_written;
  code->left_out_reason = k_nothing_left_out;
  memcpy(code->spirv, spirv, bytes);
  scan_spirv(code);
  return find_or_add(&g_codes, code, bytes, [&](const ShaderCode& stored) {
    return stored.bytes == bytes && memcmp(stored.spirv, spirv, bytes) == 0;
  });
}

uint64_t hash_layout(const Device* device, VkPipelineLayout handle) {
  if (device->capture == nullptr) return 0;
  const auto* layout =
      device->capture->pipeline_layouts.get<const PipelineLayout>(handle_key(handle));
  if (layout == nullptr) return 0;
  uint64_t parts[WEIR_KERNELS_MAX_SETS + 1] = {layout->push_bytes};
  for (uint32_t i = 0; i < layout->sets; ++i) {
    parts[i + 1] = layout->set[i] == nullptr ? 0 : layout->set[i]->hash;
  }
  return hash_bytes(k_hash_seed, parts, sizeof parts);
}

// Returns the stored capture of a compute pipeline, adding it if it is new. Null if its layout or
// code is unknown, its specialization too large, or when there is no room.
PipelineCapture* capture_pipeline(Device* device, const VkComputePipelineCreateInfo& info,
                                  ShaderCode* code, uint64_t identity) {
  if (device->capture == nullptr || code == nullptr || info.stage.pName == nullptr) return nullptr;
  const auto* layout =
      device->capture->pipeline_layouts.get<const PipelineLayout>(handle_key(info.layout));
  if (layout == nullptr) return nullptr;
  constexpr uint64_t k_max_bytes = 1U << 20;
  uint32_t bindings = 0;
  for (uint32_t set = 0; set < layout->sets; ++set) {
    if (layout->set[set] != nullptr) bindings += layout->set[set]->bindings;
  }
  const VkSpecializationInfo* specialization = info.stage.pSpecializationInfo;
  if (specialization != nullptr && (specialization->dataSize > k_max_bytes ||
                                    specialization->mapEntryCount > k_max_bytes / 64)) {
    return nullptr;
  }
  uint64_t bytes = sizeof(weir_kernels_pipeline) + bindings * sizeof(weir_kernels_binding);
  if (specialization != nullptr) {
    bytes +=
        specialization->mapEntryCount * sizeof(weir_kernels_constant) + specialization->dataSize;
  }
  auto* pipeline = static_cast<PipelineCapture*>(calloc(1, sizeof(PipelineCapture) + bytes));
  if (pipeline == nullptr) return nullptr;
  pipeline->layout = *layout;
  pipeline->code = code;
  pipeline->left_out_reason =
      layout->has_untracked_descriptors ? uint32_t{WEIR_LEFT_OBJECTS} : code->left_out_reason;
  pipeline->written = k_not_written;
  pipeline->body_bytes = static_cast<uint32_t>(bytes);
  write_body(pipeline, device, info, bindings, identity);
  pipeline->hash = hash_bytes(k_hash_seed ^ code->hash, pipeline->body, bytes);
  return find_or_add(&g_pipelines, pipeline, bytes, [&](const PipelineCapture& stored) {
    return stored.code == code && stored.body_bytes == pipeline->body_bytes &&
           memcmp(stored.body, pipeline->body, bytes) == 0;
  });
}

// Writes the pipeline and its code to the file, each only once. False when there is no room. Needs
// g_capture_lock.
bool write_pipeline(PipelineCapture* pipeline) {
  ShaderCode* code = pipeline->code;
  static uint32_t next_code = 0;
  static uint32_t next_pipeline = 0;
  if (code->written == k_not_written) {
    const weir_kernels_code head = {code->hash, code->bytes};
    if (!write_capture_record(WEIR_KERNELS_CODE, next_code, &head, sizeof head, code->spirv,
                              code->bytes)) {
      return false;
    }
    code->written = next_code++;
  }
  if (pipeline->written == k_not_written) {
    weir_kernels_pipeline head;
    memcpy(&head, pipeline->body, sizeof head);
    head.code = code->written;
    if (!write_capture_record(WEIR_KERNELS_PIPELINE, next_pipeline, &head, sizeof head,
                              pipeline->body + sizeof head, pipeline->body_bytes - sizeof head)) {
      return false;
    }
    __atomic_store_n(&pipeline->written, next_pipeline++, __ATOMIC_RELAXED);
  }
  return true;
}

// Writes a dispatched pipeline to the file, once, if only code is recorded. `pipeline` may be
// null.
void write_dispatched_pipeline(PipelineCapture* pipeline) {
  if (pipeline == nullptr || captures_dispatches()) return;  // then written with its dispatches
  constexpr uint64_t k_max_code_bytes = 16U << 20;           // readers refuse more
  if (pipeline->layout.push_bytes > WEIR_KERNELS_PUSH_BYTES ||
      pipeline->code->bytes > k_max_code_bytes ||
      pipeline->code->left_out_reason == WEIR_LEFT_UNKNOWN) {
    return;
  }
  if (__atomic_load_n(&pipeline->written, __ATOMIC_RELAXED) != k_not_written) return;
  const Locked locked(&g_capture_lock);
  (void)write_pipeline(pipeline);
}

}  // namespace weir_probe
