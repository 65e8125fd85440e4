// Finds the kernel that a dispatch runs: pipelines, their shaders and the names that programs give.
#include <stdio.h>
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

constexpr size_t k_slab = 64;

// Returns a free record of a pipeline; null when memory is out. Records are used again but never
// freed: an old recording may still point at one.
Pipeline* new_pipeline(Device* device) {
  const Locked locked(&device->pipelines_lock);
  if (device->free_pipelines == nullptr) {
    // The first record of a slab only links the slabs.
    Pipeline* slab = static_cast<Pipeline*>(calloc(k_slab + 1, sizeof(Pipeline)));
    if (slab != nullptr) {
      slab->next = device->slabs;
      device->slabs = slab;
      for (size_t i = 1; i <= k_slab; ++i) {
        slab[i].next = device->free_pipelines;
        device->free_pipelines = &slab[i];
      }
    }
  }
  Pipeline* pipeline = device->free_pipelines;
  if (pipeline == nullptr) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  } else {
    device->free_pipelines = pipeline->next;
  }
  return pipeline;
}

void release_pipeline(Device* device, Pipeline* pipeline) {
  const Locked locked(&device->pipelines_lock);
  pipeline->next = device->free_pipelines;
  device->free_pipelines = pipeline;
}

// Hashes a shader stage: code, entry point, specialization and required subgroup size. Sets
// `module` to the record of its shader module, or null.
uint64_t hash_stage(Device* device, const VkPipelineShaderStageCreateInfo& stage,
                    const ShaderModule** module) {
  uint64_t hash = k_hash_seed;
  if (stage.module != VK_NULL_HANDLE) {
    *module = device->modules.get<const ShaderModule>(handle_key(stage.module));
    if (*module != nullptr) hash = (*module)->hash;
  } else if (const auto* code = in_chain<VkShaderModuleCreateInfo>(
                 stage.pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO)) {
    hash = hash_bytes(k_hash_seed, code->pCode, code->codeSize);
  } else if (const auto* identifier = in_chain<VkPipelineShaderStageModuleIdentifierCreateInfoEXT>(
                 stage.pNext,
                 VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_MODULE_IDENTIFIER_CREATE_INFO_EXT)) {
    hash = hash_bytes(k_hash_seed, identifier->pIdentifier, identifier->identifierSize);
  }
  if (stage.pName != nullptr) hash = hash_bytes(hash, stage.pName, strlen(stage.pName));
  if (const VkSpecializationInfo* specialization = stage.pSpecializationInfo) {
    for (uint32_t i = 0; i < specialization->mapEntryCount; ++i) {
      const VkSpecializationMapEntry& entry = specialization->pMapEntries[i];
      if (entry.offset > specialization->dataSize ||
          entry.size > specialization->dataSize - entry.offset) {
        continue;  // invalid use: not ours to judge
      }
      hash = hash_bytes(hash ^ entry.constantID,
                        static_cast<const char*>(specialization->pData) + entry.offset, entry.size);
    }
  }
  if (const auto* subgroup = in_chain<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
          stage.pNext,
          VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO)) {
    hash = hash_bytes(hash, &subgroup->requiredSubgroupSize, sizeof subgroup->requiredSubgroupSize);
  }
  return hash;
}

// Removes the flags that say how a pipeline is created and not what it is.
uint32_t compiled_flags(VkPipelineCreateFlags flags) {
  constexpr VkPipelineCreateFlags k_creation_only =
      VK_PIPELINE_CREATE_DERIVATIVE_BIT | VK_PIPELINE_CREATE_ALLOW_DERIVATIVES_BIT |
      VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
      VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR |
      VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT |
      VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT;
  return flags & ~k_creation_only;
}

// Hashes those extension structs of a pipeline that change its code: robustness, and flags of 64
// bits. Headers of 2022 do not have the latter.
uint64_t hash_chain(const void* chain) {
  struct Flags2 {
    VkStructureType sType;
    const void* pNext;
    uint64_t flags;
  };
  constexpr auto k_flags2 = static_cast<VkStructureType>(1000470005);
  uint64_t hash = 0;
  if (const auto* robust = in_chain<VkPipelineRobustnessCreateInfoEXT>(
          chain, VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO_EXT)) {
    const uint32_t behaviors[] = {static_cast<uint32_t>(robust->storageBuffers),
                                  static_cast<uint32_t>(robust->uniformBuffers),
                                  static_cast<uint32_t>(robust->images)};
    hash = hash_bytes(k_hash_seed, behaviors, sizeof behaviors);
  }
  const auto* flags = in_chain<Flags2>(chain, k_flags2);
  return flags == nullptr ? hash : hash_bytes(hash + 1, &flags->flags, sizeof flags->flags);
}

// Returns the captured SPIR-V of a stage, from its module or its inline code; null if it was not
// seen.
ShaderCode* find_code(const VkPipelineShaderStageCreateInfo& stage, const ShaderModule* module) {
  if (module != nullptr) return module->code;
  const auto* code =
      in_chain<VkShaderModuleCreateInfo>(stage.pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  if (stage.module != VK_NULL_HANDLE || code == nullptr) return nullptr;
  return capture_code(code->pCode, code->codeSize);
}

// Names a pipeline, or removes its name. Its kernel is looked up anew. Under g.lock.
void set_name(Pipeline* pipeline, const char* name) {
  const bool named = name != nullptr && name[0] != '\0';
  __atomic_store_n(&pipeline->named, named, __ATOMIC_RELAXED);
  if (named) {
    copy_text(pipeline->name, sizeof pipeline->name, name);
    pipeline->name_hash = hash_text(name);
  }
  __atomic_store_n(&pipeline->kernel, k_unresolved, __ATOMIC_RELEASE);
}

// Takes the debug name of a pipeline or shader module. Both extensions that name objects number
// their types alike.
void name_object(Device* device, uint32_t type, uint64_t handle, const char* name) {
  static_assert(VK_OBJECT_TYPE_PIPELINE == int{VK_DEBUG_REPORT_OBJECT_TYPE_PIPELINE_EXT} &&
                VK_OBJECT_TYPE_SHADER_MODULE == int{VK_DEBUG_REPORT_OBJECT_TYPE_SHADER_MODULE_EXT});
  if (type == VK_OBJECT_TYPE_PIPELINE) {
    const Locked locked(&g.lock);
    if (auto* pipeline = device->pipelines.get<Pipeline>(handle)) set_name(pipeline, name);
  } else if (type == VK_OBJECT_TYPE_SHADER_MODULE) {
    auto* module = device->modules.get<ShaderModule>(handle);
    if (module != nullptr) copy_text(module->name, sizeof module->name, name);
  }
}

// Makes dispatches of the bound pipeline count under the innermost open label.
void move_to_current_label(CommandBuffer* buffer) {
  if (buffer->bound == nullptr) return;
  buffer->bound = find_or_add_tally(buffer, buffer->bound->pipeline, current_label(buffer));
}

// Returns the device's label of that name, adding it if it is new. Null when memory is out.
Label* find_or_add_label(Device* device, const char* name) {
  const uint64_t hash = hash_text(name);
  const Locked locked(&g.lock);
  Label* label = device->labels;
  while (label != nullptr && label->hash != hash) label = label->next;
  if (label != nullptr) return label;
  label = static_cast<Label*>(calloc(1, sizeof(Label)));
  if (label == nullptr) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return nullptr;
  }
  *label = {device->labels, hash, k_unresolved, {}};
  copy_text(label->name, sizeof label->name, name);
  device->labels = label;
  return label;
}

// Opens a debug label in a command buffer; one without a name goes on with the current one.
void open_label(CommandBuffer* buffer, const char* name) {
  Label* label = name == nullptr || name[0] == '\0' ? current_label(buffer)
                                                    : find_or_add_label(buffer->device, name);
  if (buffer->label_depth < buffer->k_labels) buffer->labels[buffer->label_depth] = label;
  ++buffer->label_depth;
  move_to_current_label(buffer);
}

void close_label(CommandBuffer* buffer) {
  if (buffer->label_depth == 0) return;  // opened in another buffer, which is allowed
  --buffer->label_depth;
  move_to_current_label(buffer);
}

void note_module(Device* device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks*,
                 VkShaderModule* out) {
  count_named(k_shader_modules);
  auto* module = replace_record<ShaderModule>(&device->modules, handle_key(*out));
  if (module == nullptr) return;
  module->hash = hash_bytes(k_hash_seed, info->pCode, info->codeSize);
  if (captures_code()) module->code = capture_code(info->pCode, info->codeSize);
}

// Stands in for vkCreateComputePipelines: also records each pipeline with its hashes, its name
// and, where asked for, its code.
VkResult create_compute_pipelines(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                  const VkComputePipelineCreateInfo* infos,
                                  const VkAllocationCallbacks* allocator, VkPipeline* out) {
  Device* device = find_device(handle);
  const VkResult result =
      device->next.CreateComputePipelines(handle, cache, count, infos, allocator, out);
  // Also after a failure: pipelines that could be created are valid, the others null.
  for (uint32_t i = 0; i < count; ++i) {
    if (out[i] == VK_NULL_HANDLE) continue;
    count_named(k_pipelines);
    Pipeline* pipeline = new_pipeline(device);
    if (pipeline == nullptr) break;
    const ShaderModule* module = nullptr;
    pipeline->hash = hash_stage(device, infos[i].stage, &module);
    const uint64_t parts[] = {compiled_flags(infos[i].flags), infos[i].stage.flags,
                              hash_layout(device, infos[i].layout), hash_chain(infos[i].pNext)};
    pipeline->code = hash_bytes(pipeline->hash, parts, sizeof parts);
    copy_text(pipeline->entry_point, sizeof pipeline->entry_point, infos[i].stage.pName);
    set_name(pipeline, module == nullptr ? nullptr : module->name);
    pipeline->capture = nullptr;
    if (captures_code()) {
      ShaderCode* code = find_code(infos[i].stage, module);
      pipeline->capture = capture_pipeline(device, infos[i], code, pipeline->code);
    }
    if (!device->pipelines.insert(handle_key(out[i]), pipeline)) release_pipeline(device, pipeline);
  }
  return result;
}

void forget_pipeline(Device* device, VkPipeline pipeline, const VkAllocationCallbacks*) {
  auto* record = static_cast<Pipeline*>(device->pipelines.remove(handle_key(pipeline)));
  if (record != nullptr) release_pipeline(device, record);
}

void note_object_name(Device* device, const VkDebugUtilsObjectNameInfoEXT* info) {
  name_object(device, info->objectType, info->objectHandle, info->pObjectName);
}

void note_marker_name(Device* device, const VkDebugMarkerObjectNameInfoEXT* info) {
  name_object(device, info->objectType, info->object, info->pObjectName);
}

void begin_label(CommandBuffer* buffer, const VkDebugUtilsLabelEXT* info) {
  open_label(buffer, info->pLabelName);
}
void begin_marker(CommandBuffer* buffer, const VkDebugMarkerMarkerInfoEXT* info) {
  open_label(buffer, info->pMarkerName);
}

const Hook k_hooks[] = {WEIR_KERNEL_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_kernel_hooks = list_of(k_hooks);

// Returns the index in the file of the kernel that `pipeline` runs under `label` (may be null).
// Its name is the pipeline's own, else the label, else made of entry point and hash. Cached.
uint32_t resolve_kernel(Device* device, Pipeline* pipeline, Label* label) {
  if (__atomic_load_n(&pipeline->named, __ATOMIC_RELAXED)) label = nullptr;
  uint32_t* const entry = label != nullptr ? &label->kernel : &pipeline->kernel;
  const uint32_t resolved = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
  if (resolved != k_unresolved) return resolved;
  char default_name[64];
  snprintf(default_name, sizeof default_name, "%.40s@%016llx", pipeline->entry_point,
           static_cast<unsigned long long>(pipeline->hash));
  const Locked locked(&g.lock);
  uint64_t hash = pipeline->hash;
  const char* name = default_name;
  const bool has_name = label != nullptr || pipeline->named;
  if (label != nullptr) {
    hash = label->hash;
    name = label->name;
  } else if (has_name) {
    hash = pipeline->name_hash;
    name = pipeline->name;
  }
  const uint32_t kernel =
      kernel_index(&g.file, device->index, hash, has_name, name, pipeline->entry_point);
  __atomic_store_n(entry, kernel, __ATOMIC_RELEASE);
  return kernel;
}

// Frees all records of a device's pipelines, and its labels.
void free_pipelines(Device* device) {
  const auto free_all = [](auto** list) {
    while (*list != nullptr) {
      auto* next = (*list)->next;
      free(*list);
      *list = next;
    }
  };
  free_all(&device->slabs);
  free_all(&device->labels);
  device->free_pipelines = nullptr;
}

}  // namespace weir_probe
