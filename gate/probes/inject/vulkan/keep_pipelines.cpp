// Code, layouts and pipelines, each kept once by content.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

KeptCode* g_codes;
KeptLayout* g_layouts;
KeptPipeline* g_pipelines;

// Keeps `made` in the list of all, unless one like it is there: then that one, and `made` is freed.
// Null where there is no room.
template <class T, class Same>
T* kept_once(T** all, T* made, uint64_t bytes, Same same) {
  pthread_mutex_lock(&g_kept_lock);
  T* known = *all;
  while (known != nullptr && (known->hash != made->hash || !same(*known))) known = known->next;
  if (known == nullptr && take_kept_bytes(sizeof *made + bytes)) {
    made->next = *all;
    *all = known = made;
  }
  pthread_mutex_unlock(&g_kept_lock);
  if (known != made) free(made);
  return known;
}

// What SPIR-V says of itself that matters here. The instructions are those of its specification:
// a word with length and number, then operands.
void look_into(KeptCode* code) {
  constexpr uint32_t k_magic = 0x07230203;
  constexpr uint32_t k_header_words = 5;
  constexpr uint32_t k_capability = 17, k_addresses = 5347, k_decorate = 71;
  constexpr uint32_t k_binding = 33, k_set = 34;
  const uint64_t words = code->bytes / 4;
  if (words < k_header_words || code->spirv[0] != k_magic) {
    code->left_out = WEIR_LEFT_UNKNOWN;
    return;
  }
  const auto declared = [code](uint32_t id) -> KeptCode::Declared* {
    for (uint32_t i = 0; i < code->declared_count; ++i) {
      if (code->declared[i].id == id) return &code->declared[i];
    }
    if (code->declared_count == WEIR_KERNELS_DESCRIPTORS) {
      code->left_out = WEIR_LEFT_ROOM;
      return nullptr;
    }
    KeptCode::Declared* fresh = &code->declared[code->declared_count++];
    *fresh = {id, 0, 0};
    return fresh;
  };
  for (uint64_t at = k_header_words; at < words;) {
    const uint32_t* word = code->spirv + at;
    const uint32_t length = word[0] >> 16;
    const uint32_t number_of = word[0] & 0xffff;
    if (length == 0 || length > words - at) return;  // the driver judges it
    if (number_of == k_capability && length >= 2 && word[1] == k_addresses) {
      code->left_out = WEIR_LEFT_ADDRESSES;
    }
    if (number_of == k_decorate && length >= 4 && (word[2] == k_binding || word[2] == k_set)) {
      if (KeptCode::Declared* one = declared(word[1])) {
        if (word[2] == k_binding) {
          one->binding = word[3];
        } else {
          one->set = word[3];
        }
      }
    }
    at += length;
  }
}

// Descriptors that may be written after they are bound, or of which there may be fewer.
bool can_not_be_followed(const VkDescriptorSetLayoutCreateInfo& info) {
  constexpr VkDescriptorBindingFlags k_later = VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT |
                                               VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT;
  const auto* flags = in_chain<VkDescriptorSetLayoutBindingFlagsCreateInfo>(
      info.pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO);
  for (uint32_t i = 0; flags != nullptr && i < flags->bindingCount; ++i) {
    if ((flags->pBindingFlags[i] & k_later) != 0) return true;
  }
  return false;
}

const KeptLayout* keep_layout(const VkDescriptorSetLayoutCreateInfo& info) {
  KeptLayout* made = static_cast<KeptLayout*>(
      calloc(1, sizeof(KeptLayout) + info.bindingCount * sizeof(KeptLayout::Binding)));
  if (made == nullptr) return nullptr;
  made->odd = can_not_be_followed(info);
  for (uint32_t i = 0; i < info.bindingCount; ++i) {
    const VkDescriptorSetLayoutBinding& from = info.pBindings[i];
    if (from.descriptorCount == 0) continue;
    made->odd = made->odd || !weir_kernels_is_buffer(from.descriptorType) ||
                from.descriptorCount > WEIR_KERNELS_DESCRIPTORS || made->slots > (1U << 16);
    if (made->odd) continue;
    uint32_t at = made->bindings++;  // kept in rising order
    for (; at > 0 && made->binding[at - 1].binding > from.binding; --at) {
      made->binding[at] = made->binding[at - 1];
    }
    made->binding[at] = {from.binding, static_cast<uint32_t>(from.descriptorType),
                         from.descriptorCount, from.stageFlags, 0};
    made->slots += from.descriptorCount;
  }
  uint32_t first = 0;
  for (uint32_t i = 0; i < made->bindings; ++i) {
    made->binding[i].first = first;
    first += made->binding[i].count;
  }
  const size_t bytes = made->bindings * sizeof(KeptLayout::Binding);
  made->hash = hash_bytes(k_hash_seed + (made->odd ? 1 : 0), made->binding, bytes);
  return kept_once(&g_layouts, made, bytes, [&](const KeptLayout& known) {
    return known.bindings == made->bindings && known.odd == made->odd &&
           memcmp(known.binding, made->binding, bytes) == 0;
  });
}

// The record of a pipeline, but for the code's index.
void fill(KeptPipeline* made, const Device* device, const VkComputePipelineCreateInfo& info,
          uint32_t bindings, uint64_t identity) {
  const VkSpecializationInfo* special = info.stage.pSpecializationInfo;
  weir_kernels_pipeline head{};
  head.device = device->index;
  constexpr VkPipelineCreateFlags k_derived =
      VK_PIPELINE_CREATE_DERIVATIVE_BIT | VK_PIPELINE_CREATE_ALLOW_DERIVATIVES_BIT;
  head.flags = info.flags & ~k_derived;  // of other pipelines, which are not there
  head.stage_flags = info.stage.flags;
  if (const auto* subgroup = in_chain<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
          info.stage.pNext,
          VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO)) {
    head.subgroup_size = subgroup->requiredSubgroupSize;
  }
  head.push_bytes = made->layout.push_bytes;
  head.sets = made->layout.sets;
  head.bindings = bindings;
  head.identity = identity;
  if (special != nullptr) {
    head.constants = special->mapEntryCount;
    head.data_bytes = static_cast<uint32_t>(special->dataSize);
  }
  if (!copy_text(head.entry_point, sizeof head.entry_point, info.stage.pName)) {
    made->left_out = WEIR_LEFT_ROOM;
  }
  if (made->left_out != k_nothing_left_out) head.left_out = made->left_out + 1;
  Body body = {made->body};
  body.put(&head, 1);
  for (uint32_t set = 0; set < made->layout.sets; ++set) {
    const KeptLayout* layout = made->layout.set[set];
    for (uint32_t i = 0; layout != nullptr && i < layout->bindings; ++i) {
      const KeptLayout::Binding& from = layout->binding[i];
      const weir_kernels_binding binding = {set, from.binding, from.type, from.count};
      body.put(&binding, 1);
    }
  }
  if (special == nullptr) return;
  for (uint32_t i = 0; i < special->mapEntryCount; ++i) {
    const VkSpecializationMapEntry& from = special->pMapEntries[i];
    const weir_kernels_constant constant = {from.constantID, from.offset,
                                            static_cast<uint32_t>(from.size)};
    body.put(&constant, 1);
  }
  body.put(static_cast<const char*>(special->pData), special->dataSize);
}

void made_set_layout(KeptDevice* kept, const VkDescriptorSetLayoutCreateInfo* info,
                     const VkAllocationCallbacks*, VkDescriptorSetLayout* out) {
  if (const KeptLayout* layout = keep_layout(*info)) {
    kept->layouts.insert(number(*out), const_cast<KeptLayout*>(layout));
  } else {
    kept->layouts.remove(number(*out));
  }
}

void made_pipeline_layout(KeptDevice* kept, const VkPipelineLayoutCreateInfo* info,
                          const VkAllocationCallbacks*, VkPipelineLayout* out) {
  auto* made = fresh_record<KeptPipelineLayout>(&kept->pipeline_layouts, number(*out));
  if (made == nullptr) return;
  made->odd = info->setLayoutCount > WEIR_KERNELS_SETS;
  made->sets = made->odd ? 0 : info->setLayoutCount;
  for (uint32_t i = 0; i < made->sets; ++i) {
    if (info->pSetLayouts[i] == VK_NULL_HANDLE) continue;
    made->set[i] = kept->layouts.get<const KeptLayout>(number(info->pSetLayouts[i]));
    made->odd = made->odd || made->set[i] == nullptr || made->set[i]->odd;
  }
  for (uint32_t i = 0; i < info->pushConstantRangeCount; ++i) {
    const VkPushConstantRange& range = info->pPushConstantRanges[i];
    if ((range.stageFlags & VK_SHADER_STAGE_COMPUTE_BIT) == 0) continue;
    const uint32_t end = range.offset + range.size;
    if (end > made->push_bytes) made->push_bytes = end;
  }
  made->odd = made->odd || made->push_bytes > WEIR_KERNELS_PUSH_BYTES;
}

const Hook k_hooks[] = {WEIR_PIPELINE_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_pipeline_hooks = list_of(k_hooks);

KeptCode* keep_code(const void* spirv, uint64_t bytes) {
  auto* made = static_cast<KeptCode*>(calloc(1, sizeof(KeptCode) + bytes));
  if (made == nullptr) return nullptr;
  made->hash = hash_bytes(k_hash_seed, spirv, bytes);
  made->bytes = bytes;
  made->written = k_not_written;
  made->left_out = k_nothing_left_out;
  memcpy(made->spirv, spirv, bytes);
  look_into(made);
  return kept_once(&g_codes, made, bytes, [&](const KeptCode& known) {
    return known.bytes == bytes && memcmp(known.spirv, spirv, bytes) == 0;
  });
}

uint64_t hash_layout(const Device* device, VkPipelineLayout handle) {
  const auto* layout =
      device->kept == nullptr
          ? nullptr
          : device->kept->pipeline_layouts.get<const KeptPipelineLayout>(number(handle));
  if (layout == nullptr) return 0;
  uint64_t parts[WEIR_KERNELS_SETS + 1] = {layout->push_bytes};
  for (uint32_t i = 0; i < layout->sets; ++i) {
    parts[i + 1] = layout->set[i] == nullptr ? 0 : layout->set[i]->hash;
  }
  return hash_bytes(k_hash_seed, parts, sizeof parts);
}

KeptPipeline* keep_pipeline(Device* device, const VkComputePipelineCreateInfo& info, KeptCode* code,
                            uint64_t identity) {
  if (device->kept == nullptr || code == nullptr || info.stage.pName == nullptr) return nullptr;
  const auto* layout =
      device->kept->pipeline_layouts.get<const KeptPipelineLayout>(number(info.layout));
  if (layout == nullptr) return nullptr;
  constexpr uint64_t k_most = 1U << 20;
  uint32_t bindings = 0;
  for (uint32_t set = 0; set < layout->sets; ++set) {
    if (layout->set[set] != nullptr) bindings += layout->set[set]->bindings;
  }
  const VkSpecializationInfo* special = info.stage.pSpecializationInfo;
  if (special != nullptr && (special->dataSize > k_most || special->mapEntryCount > k_most / 64)) {
    return nullptr;
  }
  uint64_t bytes = sizeof(weir_kernels_pipeline) + bindings * sizeof(weir_kernels_binding);
  if (special != nullptr) {
    bytes += special->mapEntryCount * sizeof(weir_kernels_constant) + special->dataSize;
  }
  auto* made = static_cast<KeptPipeline*>(calloc(1, sizeof(KeptPipeline) + bytes));
  if (made == nullptr) return nullptr;
  made->layout = *layout;
  made->code = code;
  made->left_out = layout->odd ? uint32_t{WEIR_LEFT_OBJECTS} : code->left_out;
  made->written = k_not_written;
  made->body_bytes = static_cast<uint32_t>(bytes);
  fill(made, device, info, bindings, identity);
  made->hash = hash_bytes(k_hash_seed ^ code->hash, made->body, bytes);
  return kept_once(&g_pipelines, made, bytes, [&](const KeptPipeline& known) {
    return known.code == code && known.body_bytes == made->body_bytes &&
           memcmp(known.body, made->body, bytes) == 0;
  });
}

bool write_pipeline(KeptPipeline* pipeline) {
  KeptCode* code = pipeline->code;
  static uint32_t next_code = 0;
  static uint32_t next_pipeline = 0;
  if (code->written == k_not_written) {
    const weir_kernels_code head = {code->hash, code->bytes};
    if (!write_kept(WEIR_KERNELS_CODE, next_code, &head, sizeof head, code->spirv, code->bytes)) {
      return false;
    }
    code->written = next_code++;
  }
  if (pipeline->written == k_not_written) {
    weir_kernels_pipeline head;
    memcpy(&head, pipeline->body, sizeof head);
    head.code = code->written;
    if (!write_kept(WEIR_KERNELS_PIPELINE, next_pipeline, &head, sizeof head,
                    pipeline->body + sizeof head, pipeline->body_bytes - sizeof head)) {
      return false;
    }
    __atomic_store_n(&pipeline->written, next_pipeline++, __ATOMIC_RELAXED);
  }
  return true;
}

void note_dispatched(KeptPipeline* pipeline) {
  if (pipeline == nullptr || keeping()) return;  // then with what it dispatches
  // A reader refuses a file with more.
  constexpr uint64_t k_most_code = 16U << 20;
  if (pipeline->layout.push_bytes > WEIR_KERNELS_PUSH_BYTES ||
      pipeline->code->bytes > k_most_code || pipeline->code->left_out == WEIR_LEFT_UNKNOWN) {
    return;
  }
  if (__atomic_load_n(&pipeline->written, __ATOMIC_RELAXED) != k_not_written) return;
  const Locked locked(&g_kept_lock);
  (void)write_pipeline(pipeline);
}

}  // namespace weir_probe
