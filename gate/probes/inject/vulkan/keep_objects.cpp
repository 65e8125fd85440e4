// Buffers and sets of descriptors: what the program has made and written.
#include <string.h>

#include "gate/probes/inject/vulkan/keep.h"
#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {
namespace {

KeptSet* set_of(const Device* device, VkDescriptorSet handle) {
  return static_cast<KeptSet*>(device->kept->sets.find(number(handle)));
}

void forget(Device* device, KeptSet* set) {
  device->kept->sets.remove(set->handle);
  if (set->previous != nullptr) {
    set->previous->next = set->next;
  } else {
    set->pool->first = set->next;
  }
  if (set->next != nullptr) set->next->previous = set->previous;
  free(set);
}

void remember(Device* device, VkDescriptorPool pool, VkDescriptorSet handle,
              VkDescriptorSetLayout layout_handle) {
  const auto* layout =
      static_cast<const KeptLayout*>(device->kept->layouts.find(number(layout_handle)));
  auto* known_pool = static_cast<KeptPool*>(device->kept->pools.find(number(pool)));
  if (known_pool == nullptr) {
    known_pool = static_cast<KeptPool*>(calloc(1, sizeof(KeptPool)));
    if (known_pool == nullptr) return;
    if (!device->kept->pools.insert(number(pool), known_pool)) {
      free(known_pool);
      return;
    }
  }
  if (layout == nullptr || layout->odd) return;
  auto* set = static_cast<KeptSet*>(calloc(1, sizeof(KeptSet) + layout->slots * sizeof(KeptSlot)));
  if (set == nullptr) return;
  set->layout = layout;
  set->pool = known_pool;
  set->handle = number(handle);
  if (!device->kept->sets.insert(set->handle, set)) {
    free(set);
    return;
  }
  set->next = known_pool->first;
  if (set->next != nullptr) set->next->previous = set;
  known_pool->first = set;
}

void empty_pool(Device* device, VkDescriptorPool pool) {
  auto* known = static_cast<KeptPool*>(device->kept->pools.find(number(pool)));
  while (known != nullptr && known->first != nullptr) forget(device, known->first);
}

KeptSlot slot_of(const VkDescriptorBufferInfo& info) {
  return {number(info.buffer), info.offset, info.range, true};
}

void write(KeptSet* set, const VkWriteDescriptorSet& from) {
  if (!is_buffer(from.descriptorType)) return;
  const VkDescriptorBufferInfo* info = from.pBufferInfo;
  fill_slots(set, from.dstBinding, from.dstArrayElement, from.descriptorCount,
             [&info] { return slot_of(*info++); });
}

void copy(Device* device, const VkCopyDescriptorSet& from) {
  const KeptSet* source = set_of(device, from.srcSet);
  KeptSet* target = set_of(device, from.dstSet);
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
    if (!is_buffer(entry.descriptorType)) continue;
    const char* at = static_cast<const char*>(data) + entry.offset;
    fill_slots(set, entry.dstBinding, entry.dstArrayElement, entry.descriptorCount, [&] {
      VkDescriptorBufferInfo info;
      memcpy(&info, at, sizeof info);
      at += entry.stride;
      return slot_of(info);
    });
  }
}

KeptTemplate* template_of(const Device* device, VkDescriptorUpdateTemplate handle) {
  return static_cast<KeptTemplate*>(device->kept->templates.find(number(handle)));
}

// What is pushed into set `index` of a command buffer; null where it can not be followed.
KeptSet* pushed_set(CommandBuffer* buffer, VkPipelineLayout layout_handle, uint32_t index) {
  if (buffer == nullptr || buffer->kept == nullptr || index >= WEIR_KERNELS_SETS) return nullptr;
  KeptCommands::Bound& bound = buffer->kept->bound[index];
  const auto* layouts = static_cast<const KeptPipelineLayout*>(
      buffer->device->kept->pipeline_layouts.find(number(layout_handle)));
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

}  // namespace

VKAPI_ATTR VkResult VKAPI_CALL keep_create_buffer(VkDevice handle, const VkBufferCreateInfo* info,
                                                  const VkAllocationCallbacks* allocator,
                                                  VkBuffer* out) {
  Device* device = device_of(handle);
  const VkResult result = device->next.CreateBuffer(handle, info, allocator, out);
  if (result != VK_SUCCESS || device->kept == nullptr) return result;
  free(device->kept->buffers.remove(number(*out)));
  auto* made = static_cast<KeptBuffer*>(calloc(1, sizeof(KeptBuffer)));
  if (made == nullptr) return result;
  *made = {info->size, info->usage};
  if (!device->kept->buffers.insert(number(*out), made)) free(made);
  return result;
}

VKAPI_ATTR void VKAPI_CALL keep_destroy_buffer(VkDevice handle, VkBuffer buffer,
                                               const VkAllocationCallbacks* allocator) {
  Device* device = device_of(handle);
  if (device->kept != nullptr) free(device->kept->buffers.remove(number(buffer)));
  device->next.DestroyBuffer(handle, buffer, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL keep_allocate_sets(VkDevice handle,
                                                  const VkDescriptorSetAllocateInfo* info,
                                                  VkDescriptorSet* out) {
  Device* device = device_of(handle);
  const VkResult result = device->next.AllocateDescriptorSets(handle, info, out);
  if (result != VK_SUCCESS || device->kept == nullptr) return result;
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
    remember(device, info->descriptorPool, out[i], info->pSetLayouts[i]);
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL keep_free_sets(VkDevice handle, VkDescriptorPool pool,
                                              uint32_t count, const VkDescriptorSet* sets) {
  Device* device = device_of(handle);
  for (uint32_t i = 0; i < count && device->kept != nullptr; ++i) {
    if (KeptSet* set = set_of(device, sets[i])) forget(device, set);
  }
  return device->next.FreeDescriptorSets(handle, pool, count, sets);
}

VKAPI_ATTR VkResult VKAPI_CALL keep_reset_pool(VkDevice handle, VkDescriptorPool pool,
                                               VkDescriptorPoolResetFlags flags) {
  Device* device = device_of(handle);
  if (device->kept != nullptr) empty_pool(device, pool);
  return device->next.ResetDescriptorPool(handle, pool, flags);
}

VKAPI_ATTR void VKAPI_CALL keep_destroy_pool(VkDevice handle, VkDescriptorPool pool,
                                             const VkAllocationCallbacks* allocator) {
  Device* device = device_of(handle);
  if (device->kept != nullptr) {
    empty_pool(device, pool);
    free(device->kept->pools.remove(number(pool)));
  }
  device->next.DestroyDescriptorPool(handle, pool, allocator);
}

VKAPI_ATTR void VKAPI_CALL keep_update_sets(VkDevice handle, uint32_t write_count,
                                            const VkWriteDescriptorSet* writes, uint32_t copy_count,
                                            const VkCopyDescriptorSet* copies) {
  Device* device = device_of(handle);
  if (device->kept != nullptr) {
    for (uint32_t i = 0; i < write_count; ++i) {
      if (KeptSet* set = set_of(device, writes[i].dstSet)) write(set, writes[i]);
    }
    for (uint32_t i = 0; i < copy_count; ++i) copy(device, copies[i]);
  }
  device->next.UpdateDescriptorSets(handle, write_count, writes, copy_count, copies);
}

VKAPI_ATTR VkResult VKAPI_CALL
keep_create_template(VkDevice handle, const VkDescriptorUpdateTemplateCreateInfo* info,
                     const VkAllocationCallbacks* allocator, VkDescriptorUpdateTemplate* out) {
  Device* device = device_of(handle);
  const auto next = device->next.CreateDescriptorUpdateTemplate != nullptr
                        ? device->next.CreateDescriptorUpdateTemplate
                        : device->next.CreateDescriptorUpdateTemplateKHR;
  const VkResult result = next(handle, info, allocator, out);
  if (result != VK_SUCCESS || device->kept == nullptr) return result;
  free(device->kept->templates.remove(number(*out)));
  const size_t bytes = info->descriptorUpdateEntryCount * sizeof(VkDescriptorUpdateTemplateEntry);
  auto* made = static_cast<KeptTemplate*>(calloc(1, sizeof(KeptTemplate) + bytes));
  if (made == nullptr) return result;
  made->pipeline_layout = info->pipelineLayout;
  made->set = info->set;
  made->entries = info->descriptorUpdateEntryCount;
  if (bytes != 0) memcpy(made->entry, info->pDescriptorUpdateEntries, bytes);
  if (!device->kept->templates.insert(number(*out), made)) free(made);
  return result;
}

VKAPI_ATTR void VKAPI_CALL keep_destroy_template(VkDevice handle, VkDescriptorUpdateTemplate made,
                                                 const VkAllocationCallbacks* allocator) {
  Device* device = device_of(handle);
  if (device->kept != nullptr) free(device->kept->templates.remove(number(made)));
  const auto next = device->next.DestroyDescriptorUpdateTemplate != nullptr
                        ? device->next.DestroyDescriptorUpdateTemplate
                        : device->next.DestroyDescriptorUpdateTemplateKHR;
  next(handle, made, allocator);
}

VKAPI_ATTR void VKAPI_CALL keep_update_set_with_template(VkDevice handle, VkDescriptorSet target,
                                                         VkDescriptorUpdateTemplate with,
                                                         const void* data) {
  Device* device = device_of(handle);
  if (device->kept != nullptr) {
    KeptSet* set = set_of(device, target);
    const KeptTemplate* known = template_of(device, with);
    if (set != nullptr && known != nullptr) write_with(set, *known, data);
  }
  const auto next = device->next.UpdateDescriptorSetWithTemplate != nullptr
                        ? device->next.UpdateDescriptorSetWithTemplate
                        : device->next.UpdateDescriptorSetWithTemplateKHR;
  next(handle, target, with, data);
}

VKAPI_ATTR void VKAPI_CALL keep_push_set(VkCommandBuffer handle, VkPipelineBindPoint point,
                                         VkPipelineLayout layout, uint32_t index, uint32_t count,
                                         const VkWriteDescriptorSet* writes) {
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE) {
    if (KeptSet* set = pushed_set(command_buffer(handle), layout, index)) {
      for (uint32_t i = 0; i < count; ++i) write(set, writes[i]);
    }
  }
  device_of(handle)->next.CmdPushDescriptorSetKHR(handle, point, layout, index, count, writes);
}

VKAPI_ATTR void VKAPI_CALL keep_push_set_with_template(VkCommandBuffer handle,
                                                       VkDescriptorUpdateTemplate with,
                                                       VkPipelineLayout layout, uint32_t index,
                                                       const void* data) {
  Device* device = device_of(handle);
  const KeptTemplate* known = device->kept == nullptr ? nullptr : template_of(device, with);
  KeptSet* set = pushed_set(command_buffer(handle), layout, index);
  if (set != nullptr && known != nullptr) write_with(set, *known, data);
  device->next.CmdPushDescriptorSetWithTemplateKHR(handle, with, layout, index, data);
}

}  // namespace weir_probe
