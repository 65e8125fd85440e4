// Buffers and sets of descriptors: what the program has made and written.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

KeptSet* set_of(const KeptDevice* kept, VkDescriptorSet handle) {
  return kept->sets.get<KeptSet>(number(handle));
}

void forget_set(KeptDevice* kept, KeptSet* set) {
  kept->sets.remove(set->handle);
  unlink_one(&set->pool->first, set);
  free(set);
}

void remember(KeptDevice* kept, VkDescriptorPool pool, VkDescriptorSet handle,
              VkDescriptorSetLayout layout_handle) {
  const auto* layout = kept->layouts.get<const KeptLayout>(number(layout_handle));
  auto* known_pool = known_or_fresh<KeptPool>(&kept->pools, number(pool));
  if (KeptSet* old = set_of(kept, handle)) forget_set(kept, old);
  if (known_pool == nullptr || layout == nullptr || layout->odd) return;
  auto* set = fresh_record<KeptSet>(&kept->sets, number(handle), layout->slots * sizeof(KeptSlot));
  if (set == nullptr) return;
  set->layout = layout;
  set->pool = known_pool;
  set->handle = number(handle);
  link_first(&known_pool->first, set);
}

void empty_pool(KeptDevice* kept, VkDescriptorPool pool, VkDescriptorPoolResetFlags = 0) {
  auto* known = kept->pools.get<KeptPool>(number(pool));
  while (known != nullptr && known->first != nullptr) forget_set(kept, known->first);
}

KeptSlot slot_of(const VkDescriptorBufferInfo& info) {
  return {number(info.buffer), info.offset, info.range, true};
}

void write(KeptSet* set, const VkWriteDescriptorSet& from) {
  if (!weir_kernels_is_buffer(from.descriptorType)) return;
  const VkDescriptorBufferInfo* info = from.pBufferInfo;
  fill_slots(set, from.dstBinding, from.dstArrayElement, from.descriptorCount,
             [&info] { return slot_of(*info++); });
}

void copy(KeptDevice* kept, const VkCopyDescriptorSet& from) {
  const KeptSet* source = set_of(kept, from.srcSet);
  KeptSet* target = set_of(kept, from.dstSet);
  if (source == nullptr || target == nullptr) return;
  const KeptLayout& layout = *source->layout;
  uint32_t at = 0;
  while (at < layout.bindings && layout.binding[at].binding < from.srcBinding) ++at;
  // Also from one binding on into the next: their slots lie one behind the other.
  uint32_t slot = at < layout.bindings ? layout.binding[at].first + from.srcArrayElement : 0;
  fill_slots(target, from.dstBinding, from.dstArrayElement, from.descriptorCount,
             [&]() -> KeptSlot { return slot < layout.slots ? source->slot[slot++] : KeptSlot{}; });
}

void write_with(KeptSet* set, const KeptTemplate& with, const void* data) {
  for (uint32_t i = 0; i < with.entries; ++i) {
    const VkDescriptorUpdateTemplateEntry& entry = with.entry[i];
    if (!weir_kernels_is_buffer(entry.descriptorType)) continue;
    const char* at = static_cast<const char*>(data) + entry.offset;
    fill_slots(set, entry.dstBinding, entry.dstArrayElement, entry.descriptorCount, [&] {
      VkDescriptorBufferInfo info;
      memcpy(&info, at, sizeof info);
      at += entry.stride;
      return slot_of(info);
    });
  }
}

// What is pushed into set `index` of a command buffer; null where it cannot be followed.
KeptSet* pushed_set(CommandBuffer* buffer, VkPipelineLayout layout_handle, uint32_t index) {
  if (buffer->kept == nullptr || index >= WEIR_KERNELS_SETS) return nullptr;
  KeptCommands::Bound& bound = buffer->kept->bound[index];
  const auto* layouts =
      buffer->device->kept->pipeline_layouts.get<const KeptPipelineLayout>(number(layout_handle));
  const KeptLayout* layout =
      layouts == nullptr || index >= layouts->sets ? nullptr : layouts->set[index];
  bound.set = 0;
  bound.dynamic_count = 0;
  const bool was_pushed = bound.is_pushed;
  bound.is_pushed = layout != nullptr && !layout->odd;
  if (!bound.is_pushed) return nullptr;
  if (bound.pushed == nullptr || bound.pushed->layout != layout) {
    free(bound.pushed);
    bound.pushed =
        static_cast<KeptSet*>(calloc(1, sizeof(KeptSet) + layout->slots * sizeof(KeptSlot)));
    bound.is_pushed = bound.pushed != nullptr;
    if (bound.pushed != nullptr) bound.pushed->layout = layout;
  } else if (!was_pushed) {
    memset(bound.pushed->slot, 0, layout->slots * sizeof(KeptSlot));
  }
  return bound.pushed;
}

void made_buffer(KeptDevice* kept, const VkBufferCreateInfo* info, const VkAllocationCallbacks*,
                 VkBuffer* out) {
  auto* made = fresh_record<KeptBuffer>(&kept->buffers, number(*out));
  if (made != nullptr) *made = {info->size, info->usage};
}

void forget_buffer(Device* device, VkBuffer buffer, const VkAllocationCallbacks*) {
  unbind(device, buffer);
  if (device->kept != nullptr) free(device->kept->buffers.remove(number(buffer)));
}

void made_sets(KeptDevice* kept, const VkDescriptorSetAllocateInfo* info, VkDescriptorSet* out) {
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
    remember(kept, info->descriptorPool, out[i], info->pSetLayouts[i]);
  }
}

void forget_sets(KeptDevice* kept, VkDescriptorPool, uint32_t count, const VkDescriptorSet* sets) {
  for (uint32_t i = 0; i < count; ++i) {
    if (KeptSet* set = set_of(kept, sets[i])) forget_set(kept, set);
  }
}

void forget_pool(KeptDevice* kept, VkDescriptorPool pool, const VkAllocationCallbacks*) {
  empty_pool(kept, pool);
  free(kept->pools.remove(number(pool)));
}

void update_sets(KeptDevice* kept, uint32_t write_count, const VkWriteDescriptorSet* writes,
                 uint32_t copy_count, const VkCopyDescriptorSet* copies) {
  for (uint32_t i = 0; i < write_count; ++i) {
    if (KeptSet* set = set_of(kept, writes[i].dstSet)) write(set, writes[i]);
  }
  for (uint32_t i = 0; i < copy_count; ++i) copy(kept, copies[i]);
}

void made_template(KeptDevice* kept, const VkDescriptorUpdateTemplateCreateInfo* info,
                   const VkAllocationCallbacks*, VkDescriptorUpdateTemplate* out) {
  const size_t bytes = info->descriptorUpdateEntryCount * sizeof(VkDescriptorUpdateTemplateEntry);
  auto* made = fresh_record<KeptTemplate>(&kept->templates, number(*out), bytes);
  if (made == nullptr) return;
  made->pipeline_layout = info->pipelineLayout;
  made->set = info->set;
  made->entries = info->descriptorUpdateEntryCount;
  if (bytes != 0) memcpy(made->entry, info->pDescriptorUpdateEntries, bytes);
}

void update_with_template(KeptDevice* kept, VkDescriptorSet target, VkDescriptorUpdateTemplate with,
                          const void* data) {
  KeptSet* set = set_of(kept, target);
  const auto* known = kept->templates.get<KeptTemplate>(number(with));
  if (set != nullptr && known != nullptr) write_with(set, *known, data);
}

void push_set(CommandBuffer* buffer, VkPipelineBindPoint point, VkPipelineLayout layout,
              uint32_t index, uint32_t count, const VkWriteDescriptorSet* writes) {
  if (point != VK_PIPELINE_BIND_POINT_COMPUTE) return;
  KeptSet* set = pushed_set(buffer, layout, index);
  for (uint32_t i = 0; set != nullptr && i < count; ++i) write(set, writes[i]);
}

void push_with_template(CommandBuffer* buffer, VkDescriptorUpdateTemplate with,
                        VkPipelineLayout layout, uint32_t index, const void* data) {
  if (KeptSet* set = pushed_set(buffer, layout, index)) {
    const auto* known = buffer->device->kept->templates.get<KeptTemplate>(number(with));
    if (known != nullptr) write_with(set, *known, data);
  }
}

const Hook k_hooks[] = {WEIR_OBJECT_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_object_hooks = list_of(k_hooks);

}  // namespace weir_probe
