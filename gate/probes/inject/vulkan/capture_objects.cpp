// Tracks buffers and descriptor sets: their creation, updates and destruction.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

DescriptorSet* find_set(const DeviceCapture* capture, VkDescriptorSet handle) {
  return capture->sets.get<DescriptorSet>(handle_key(handle));
}

// Removes a descriptor set from its pool and the table, and frees it.
void forget_set(DeviceCapture* capture, DescriptorSet* set) {
  capture->sets.remove(set->handle);
  unlink_record(&set->pool->first, set);
  free(set);
}

// Adds a record of a new descriptor set to its pool. A set gets none if its layout is not tracked.
void add_set_record(DeviceCapture* capture, VkDescriptorPool pool, VkDescriptorSet handle,
                    VkDescriptorSetLayout layout_handle) {
  const auto* layout = capture->layouts.get<const SetLayout>(handle_key(layout_handle));
  auto* pool_record = get_or_create<DescriptorPool>(&capture->pools, handle_key(pool));
  if (DescriptorSet* old = find_set(capture, handle)) forget_set(capture, old);
  if (pool_record == nullptr || layout == nullptr || layout->has_untracked_descriptors) return;
  auto* set = replace_record<DescriptorSet>(&capture->sets, handle_key(handle),
                                            layout->slots * sizeof(Descriptor));
  if (set == nullptr) return;
  set->layout = layout;
  set->pool = pool_record;
  set->handle = handle_key(handle);
  link_record(&pool_record->first, set);
}

// Forgets all sets of a pool.
void empty_pool(DeviceCapture* capture, VkDescriptorPool pool, VkDescriptorPoolResetFlags = 0) {
  auto* record = capture->pools.get<DescriptorPool>(handle_key(pool));
  while (record != nullptr && record->first != nullptr) forget_set(capture, record->first);
}

Descriptor make_descriptor(const VkDescriptorBufferInfo& info) {
  return {handle_key(info.buffer), info.offset, info.range, true};
}

// Applies one VkWriteDescriptorSet, if it writes buffers.
void write(DescriptorSet* set, const VkWriteDescriptorSet& update) {
  if (!weir_kernels_is_buffer(update.descriptorType)) return;
  const VkDescriptorBufferInfo* info = update.pBufferInfo;
  const auto next_descriptor = [&info] {
    const Descriptor descriptor = make_descriptor(*info);
    ++info;
    return descriptor;
  };
  fill_descriptors(set, update.dstBinding, update.dstArrayElement, update.descriptorCount,
                   next_descriptor);
}

// Copies descriptors between two tracked sets as `region` says. Like a write it goes on into the
// next binding, as a set's slots lie one behind the other.
void copy(DeviceCapture* capture, const VkCopyDescriptorSet& region) {
  const DescriptorSet* source = find_set(capture, region.srcSet);
  DescriptorSet* target = find_set(capture, region.dstSet);
  if (source == nullptr || target == nullptr) return;
  const SetLayout& layout = *source->layout;
  uint32_t first = 0;
  while (first < layout.bindings && layout.binding[first].binding < region.srcBinding) ++first;
  uint32_t slot =
      first < layout.bindings ? layout.binding[first].first + region.srcArrayElement : 0;
  const auto next_descriptor = [&] {
    Descriptor descriptor{};
    if (slot < layout.slots) {
      descriptor = source->slot[slot];
      ++slot;
    }
    return descriptor;
  };
  fill_descriptors(target, region.dstBinding, region.dstArrayElement, region.descriptorCount,
                   next_descriptor);
}

// Updates a descriptor set through a template: reads the buffer of each entry from `data`, at the
// entry's offset.
void write_from_template(DescriptorSet* set, const UpdateTemplate& update_template,
                         const void* data) {
  for (uint32_t i = 0; i < update_template.entries; ++i) {
    const VkDescriptorUpdateTemplateEntry& entry = update_template.entry[i];
    if (!weir_kernels_is_buffer(entry.descriptorType)) continue;
    const char* source = static_cast<const char*>(data) + entry.offset;
    fill_descriptors(set, entry.dstBinding, entry.dstArrayElement, entry.descriptorCount, [&] {
      VkDescriptorBufferInfo info;
      memcpy(&info, source, sizeof info);
      source += entry.stride;
      return make_descriptor(info);
    });
  }
}

// Returns the set that push descriptors of a command buffer write to, at set number `index`. Null
// if it cannot be tracked. Its descriptors are cleared, unless it continues a pushed set of the
// same layout.
DescriptorSet* prepare_pushed_set(CommandBuffer* buffer, VkPipelineLayout layout_handle,
                                  uint32_t index) {
  if (buffer->capture == nullptr || index >= WEIR_KERNELS_MAX_SETS) return nullptr;
  CommandCapture::Bound& bound = buffer->capture->bound[index];
  const auto* pipeline_layout = buffer->device->capture->pipeline_layouts.get<const PipelineLayout>(
      handle_key(layout_handle));
  const bool has_set = pipeline_layout != nullptr && index < pipeline_layout->sets;
  const SetLayout* set_layout = has_set ? pipeline_layout->set[index] : nullptr;
  const bool was_pushed = bound.is_pushed;
  bound.set = 0;
  bound.dynamic_offset_count = 0;
  bound.is_pushed = false;
  if (set_layout == nullptr || set_layout->has_untracked_descriptors) return nullptr;
  const size_t descriptor_bytes = set_layout->slots * sizeof(Descriptor);
  if (bound.pushed_set != nullptr && bound.pushed_set->layout == set_layout) {
    if (!was_pushed) memset(bound.pushed_set->slot, 0, descriptor_bytes);
  } else {
    free(bound.pushed_set);
    bound.pushed_set =
        static_cast<DescriptorSet*>(calloc(1, sizeof(DescriptorSet) + descriptor_bytes));
    if (bound.pushed_set == nullptr) return nullptr;
    bound.pushed_set->layout = set_layout;
  }
  bound.is_pushed = true;
  return bound.pushed_set;
}

// Records size and usage of a new buffer. Runs after vkCreateBuffer.
void note_buffer(DeviceCapture* capture, const VkBufferCreateInfo* info,
                 const VkAllocationCallbacks*, VkBuffer* out) {
  auto* buffer = replace_record<BufferInfo>(&capture->buffers, handle_key(*out));
  if (buffer != nullptr) *buffer = {info->size, info->usage};
}

void forget_buffer(Device* device, VkBuffer buffer, const VkAllocationCallbacks*) {
  unbind(device, buffer);
  if (device->capture != nullptr) free(device->capture->buffers.remove(handle_key(buffer)));
}

void note_sets(DeviceCapture* capture, const VkDescriptorSetAllocateInfo* info,
               VkDescriptorSet* out) {
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
    add_set_record(capture, info->descriptorPool, out[i], info->pSetLayouts[i]);
  }
}

void forget_sets(DeviceCapture* capture, VkDescriptorPool, uint32_t count,
                 const VkDescriptorSet* sets) {
  for (uint32_t i = 0; i < count; ++i) {
    if (DescriptorSet* set = find_set(capture, sets[i])) forget_set(capture, set);
  }
}

void forget_pool(DeviceCapture* capture, VkDescriptorPool pool, const VkAllocationCallbacks*) {
  empty_pool(capture, pool);
  free(capture->pools.remove(handle_key(pool)));
}

// Applies the writes and copies of vkUpdateDescriptorSets.
void update_sets(DeviceCapture* capture, uint32_t write_count, const VkWriteDescriptorSet* writes,
                 uint32_t copy_count, const VkCopyDescriptorSet* copies) {
  for (uint32_t i = 0; i < write_count; ++i) {
    if (DescriptorSet* set = find_set(capture, writes[i].dstSet)) write(set, writes[i]);
  }
  for (uint32_t i = 0; i < copy_count; ++i) copy(capture, copies[i]);
}

// Copies the entries of a new update template. Runs after vkCreateDescriptorUpdateTemplate.
void note_template(DeviceCapture* capture, const VkDescriptorUpdateTemplateCreateInfo* info,
                   const VkAllocationCallbacks*, VkDescriptorUpdateTemplate* out) {
  const size_t bytes = info->descriptorUpdateEntryCount * sizeof(VkDescriptorUpdateTemplateEntry);
  auto* update_template =
      replace_record<UpdateTemplate>(&capture->templates, handle_key(*out), bytes);
  if (update_template == nullptr) return;
  update_template->pipeline_layout = info->pipelineLayout;
  update_template->set = info->set;
  update_template->entries = info->descriptorUpdateEntryCount;
  if (bytes != 0) memcpy(update_template->entry, info->pDescriptorUpdateEntries, bytes);
}

void update_with_template(DeviceCapture* capture, VkDescriptorSet target,
                          VkDescriptorUpdateTemplate handle, const void* data) {
  DescriptorSet* set = find_set(capture, target);
  const auto* update_template = capture->templates.get<UpdateTemplate>(handle_key(handle));
  if (set != nullptr && update_template != nullptr)
    write_from_template(set, *update_template, data);
}

void push_set(CommandBuffer* buffer, VkPipelineBindPoint point, VkPipelineLayout layout,
              uint32_t index, uint32_t count, const VkWriteDescriptorSet* writes) {
  if (point != VK_PIPELINE_BIND_POINT_COMPUTE) return;
  DescriptorSet* set = prepare_pushed_set(buffer, layout, index);
  for (uint32_t i = 0; set != nullptr && i < count; ++i) write(set, writes[i]);
}

void push_with_template(CommandBuffer* buffer, VkDescriptorUpdateTemplate handle,
                        VkPipelineLayout layout, uint32_t index, const void* data) {
  if (DescriptorSet* set = prepare_pushed_set(buffer, layout, index)) {
    const auto* update_template =
        buffer->device->capture->templates.get<UpdateTemplate>(handle_key(handle));
    if (update_template != nullptr) write_from_template(set, *update_template, data);
  }
}

const Hook k_hooks[] = {WEIR_OBJECT_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_object_hooks = list_of(k_hooks);

}  // namespace weir_probe
