// Tracks device memory: bytes allocated in each kind of heap, and bytes that buffers take up in it.
#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

struct Memory {
  uint64_t bytes;
  bool local;  // in a heap of the device itself
};

Level* heap_level(const Memory& memory) { return memory.local ? &g.local_memory : &g.host_memory; }

// Adds an allocation to what its heap holds. Imported memory is left out: it is the program's own,
// or counted where it was exported.
void note_allocation(Device* device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
                     VkDeviceMemory* out) {
  count_named(k_allocations);
  const auto* host = in_chain<VkImportMemoryHostPointerInfoEXT>(
      info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  const auto* file =
      in_chain<VkImportMemoryFdInfoKHR>(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  const bool imported =
      (host != nullptr && host->handleType != 0) || (file != nullptr && file->handleType != 0);
  auto* memory = imported ? nullptr : replace_record<Memory>(&device->memories, handle_key(*out));
  if (memory == nullptr) {
    if (!imported) set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return;
  }
  const VkPhysicalDeviceMemoryProperties& properties = device->memory_properties;
  const uint32_t heap = info->memoryTypeIndex < properties.memoryTypeCount
                            ? properties.memoryTypes[info->memoryTypeIndex].heapIndex
                            : VK_MAX_MEMORY_HEAPS;
  memory->bytes = info->allocationSize;
  // An unknown heap counts as the device's own: a count that is too high is noticed.
  memory->local = heap >= VK_MAX_MEMORY_HEAPS ||
                  (properties.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
  const Locked locked(&g.lock);
  count_named(memory->local ? k_device_memory_peak : k_host_heap_peak,
              heap_level(*memory)->rise(memory->bytes));
}

// Subtracts an allocation from its heap's level and frees its record. Under g.lock.
void release_memory(void* record) {
  auto* memory = static_cast<Memory*>(record);
  heap_level(*memory)->fall(memory->bytes);
  free(memory);
}

void note_free(Device* device, VkDeviceMemory handle, const VkAllocationCallbacks*) {
  void* memory = device->memories.remove(handle_key(handle));
  const Locked locked(&g.lock);
  if (memory != nullptr) release_memory(memory);
}

void note_binding(Device* device, VkBuffer buffer, VkDeviceMemory = VK_NULL_HANDLE,
                  VkDeviceSize = 0) {
  VkMemoryRequirements needs{};
  device->next.GetBufferMemoryRequirements(device->handle, buffer, &needs);
  if (!device->bound_buffers.insert(handle_key(buffer), reinterpret_cast<void*>(needs.size)))
    return;
  const Locked locked(&g.lock);
  count_named(k_bound_peak, g.bound_memory.rise(needs.size));
}

void note_bindings(Device* device, uint32_t count, const VkBindBufferMemoryInfo* infos) {
  for (uint32_t i = 0; i < count; ++i) note_binding(device, infos[i].buffer);
}

const Hook k_hooks[] = {WEIR_MEMORY_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_memory_hooks = list_of(k_hooks);

void unbind(Device* device, VkBuffer buffer) {
  const auto bytes = reinterpret_cast<uint64_t>(device->bound_buffers.remove(handle_key(buffer)));
  if (bytes == 0) return;
  const Locked locked(&g.lock);
  g.bound_memory.fall(bytes);
}

void forget_memory(Device* device) {
  const Locked locked(&g.lock);
  device->memories.each(release_memory);
  device->bound_buffers.each(
      [](void* bytes) { g.bound_memory.fall(reinterpret_cast<uint64_t>(bytes)); });
  device->memories.free_all();
  device->bound_buffers.free_all();
}

void record_steady_memory() {
  __atomic_store_n(g.named[k_device_memory_steady],
                   __atomic_load_n(&g.local_memory.now, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

}  // namespace weir_probe
