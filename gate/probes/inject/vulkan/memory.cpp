// Memory of devices: what the program takes of their heaps, and what buffers take up of that.
#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

struct Memory {
  uint64_t bytes;
  bool local;  // of a heap of the device's own
};

Level* level_of(const Memory& memory) { return memory.local ? &g.local_memory : &g.host_memory; }

void allocated(Device* device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
               VkDeviceMemory* out) {
  count_named(k_allocations);
  // The program's own memory, which the device is given to see, is taken of no heap.
  // What another allocation was exported as is counted with that.
  const auto* host = in_chain<VkImportMemoryHostPointerInfoEXT>(
      info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  const auto* file =
      in_chain<VkImportMemoryFdInfoKHR>(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  const bool imported =
      (host != nullptr && host->handleType != 0) || (file != nullptr && file->handleType != 0);
  auto* memory = imported ? nullptr : fresh_record<Memory>(&device->memories, number(*out));
  if (memory == nullptr) {
    if (!imported) set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return;
  }
  const VkPhysicalDeviceMemoryProperties& has = device->memory_properties;
  const uint32_t heap = info->memoryTypeIndex < has.memoryTypeCount
                            ? has.memoryTypes[info->memoryTypeIndex].heapIndex
                            : VK_MAX_MEMORY_HEAPS;
  memory->bytes = info->allocationSize;
  // Unknown heaps are taken for the device's: a count too high is noticed.
  memory->local = heap >= VK_MAX_MEMORY_HEAPS ||
                  (has.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
  const Locked locked(&g.lock);
  count_named(memory->local ? k_device_memory_peak : k_host_heap_peak,
              level_of(*memory)->rise(memory->bytes));
}

// Under g.lock.
void give_back(void* record) {
  auto* memory = static_cast<Memory*>(record);
  level_of(*memory)->fall(memory->bytes);
  free(memory);
}

void freed(Device* device, VkDeviceMemory handle, const VkAllocationCallbacks*) {
  void* memory = device->memories.remove(number(handle));
  const Locked locked(&g.lock);
  if (memory != nullptr) give_back(memory);
}

void bound(Device* device, VkBuffer buffer, VkDeviceMemory = VK_NULL_HANDLE, VkDeviceSize = 0) {
  VkMemoryRequirements needs{};
  device->next.GetBufferMemoryRequirements(device->handle, buffer, &needs);
  if (!device->bound_buffers.insert(number(buffer), reinterpret_cast<void*>(needs.size))) return;
  const Locked locked(&g.lock);
  count_named(k_bound_peak, g.bound_memory.rise(needs.size));
}

void bound_many(Device* device, uint32_t count, const VkBindBufferMemoryInfo* infos) {
  for (uint32_t i = 0; i < count; ++i) bound(device, infos[i].buffer);
}

const Hook k_hooks[] = {WEIR_MEMORY_HOOKS(WEIR_ROW)};

}  // namespace

extern const Hooks k_memory_hooks = list_of(k_hooks);

void unbind(Device* device, VkBuffer buffer) {
  const auto bytes = reinterpret_cast<uint64_t>(device->bound_buffers.remove(number(buffer)));
  if (bytes == 0) return;
  const Locked locked(&g.lock);
  g.bound_memory.fall(bytes);
}

void forget_memory(Device* device) {
  const Locked locked(&g.lock);
  device->memories.each(give_back);
  device->bound_buffers.each(
      [](void* bytes) { g.bound_memory.fall(reinterpret_cast<uint64_t>(bytes)); });
  device->memories.free_all();
  device->bound_buffers.free_all();
}

void note_memory() {
  __atomic_store_n(g.named[k_device_memory_steady],
                   __atomic_load_n(&g.local_memory.now, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

}  // namespace weir_probe
