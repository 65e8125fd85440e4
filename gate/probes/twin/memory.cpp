// Memory and buffers. Memory that the host cannot see has a size and an address, but no pages.
// Memory that it can see is mapped; the system allocates pages when the program writes to them.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

constexpr uint64_t k_page = 4096;

// Allocations of host-visible device memory above this size map one small window again and again.
// Such memory holds models: nothing reads their bytes, since a twin runs no kernels.
constexpr uint64_t k_repeated_from = uint64_t{256} << 20;

constexpr uint64_t k_window = uint64_t{16} << 20;

// Rounds up to a multiple of `unit`.
uint64_t round_up(uint64_t value, uint64_t unit) {
  if (unit <= 1) return value;
  const uint64_t excess = value % unit;
  return excess == 0 ? value : value + (unit - excess);
}

uint64_t max(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Creates a file in memory, k_window bytes long and filled with the byte `fill`. -1 on failure.
int create_window(uint8_t fill) {
  const int file = memfd_create("weir-twin", MFD_CLOEXEC);
  if (file < 0) return -1;
  void* bytes = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(k_window)) == 0) {
    bytes = mmap(nullptr, k_window, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (bytes == MAP_FAILED) {
    close(file);
    return -1;
  }
  if (fill != 0) memset(bytes, fill, k_window);
  munmap(bytes, k_window);
  return file;
}

// Maps `file` again and again, from `pages` on. On failure the caller unmaps all.
bool map_repeatedly(uint8_t* pages, uint64_t size, int file, int sharing) {
  for (uint64_t at = 0; at < size; at += k_window) {
    const uint64_t length = size - at < k_window ? size - at : k_window;
    if (mmap(pages + at, length, PROT_READ | PROT_WRITE, sharing | MAP_FIXED | MAP_NORESERVE, file,
             0) == MAP_FAILED) {
      return false;
    }
  }
  return true;
}

// The device's file of fill bytes, created on first use; -1 where that fails.
int get_fill_file(Device* device) {
  const weir_probe::Locked locked(&device->lock);
  if (device->fill_file < 0) device->fill_file = create_window(device->fill);
  return device->fill_file;
}

// Maps pages for memory that the host can see, filled with the device's fill byte. Large memory of
// the device (`is_of_device`) repeats one window of pages.
bool map_pages(Device* device, Memory* memory, bool is_of_device) {
  memory->mapped = round_up(max(memory->size, 1), k_page);
  void* pages = mmap(nullptr, memory->mapped, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return false;
  memory->pages = static_cast<uint8_t*>(pages);
  memory->discardable = true;
  if (is_of_device && memory->size > k_repeated_from) {
    memory->discardable = false;
    const int file = create_window(device->fill);
    const bool is_mapped =
        file >= 0 && map_repeatedly(memory->pages, memory->mapped, file, MAP_SHARED);
    if (file >= 0) close(file);
    if (is_mapped) return true;
  } else if (device->fill == 0) {
    return true;
  } else if (const int file = get_fill_file(device); file >= 0) {
    memory->initial_byte = device->fill;
    if (map_repeatedly(memory->pages, memory->mapped, file, MAP_PRIVATE)) return true;
  }
  munmap(memory->pages, memory->mapped);
  memory->pages = nullptr;
  return false;
}

// Takes `size` bytes of a heap; false where it has less.
bool take_from_heap(Physical* physical, uint32_t heap, uint64_t size) {
  const uint64_t heap_size = physical->twin.memory.memoryHeaps[heap].size;
  uint64_t used = __atomic_load_n(&physical->heap_used[heap], __ATOMIC_RELAXED);
  do {
    if (size > heap_size || used > heap_size - size) return false;
  } while (!__atomic_compare_exchange_n(&physical->heap_used[heap], &used, used + size, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return true;
}

// Returns the address of an offset in memory that the host can see.
VkResult map_at(VkDeviceMemory handle, uint64_t offset, void** out) {
  auto* memory = object<Memory>(handle);
  if (memory->pages == nullptr || offset > memory->size) return VK_ERROR_MEMORY_MAP_FAILED;
  *out = memory->pages + offset;
  return VK_SUCCESS;
}

// VK_KHR_map_memory2 is newer than Debian's headers.
struct MapInfo {
  VkStructureType sType;
  const void* pNext;
  VkMemoryMapFlags flags;
  VkDeviceMemory memory;
  VkDeviceSize offset, size;
};

// The types of memory with all properties in `needed`, as bits; without lazy and protected types.
uint32_t usable_types(const Twin& twin, VkMemoryPropertyFlags needed) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < twin.memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = twin.memory.memoryTypes[i].propertyFlags;
    const bool is_special =
        (flags & (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT)) != 0;
    if (!is_special && (flags & needed) == needed) out |= 1U << i;
  }
  return out;
}

// Returns the requirements of a buffer's memory. The alignment is the largest that one of its
// usages has.
VkMemoryRequirements memory_requirements(const Twin& twin, uint64_t size,
                                         VkBufferUsageFlags usage) {
  constexpr VkBufferUsageFlags k_texels =
      VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
  const VkPhysicalDeviceLimits& limits = twin.properties.limits;
  uint64_t alignment = 16;
  if ((usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT) != 0) {
    alignment = max(alignment, limits.minStorageBufferOffsetAlignment);
  }
  if ((usage & VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT) != 0) {
    alignment = max(alignment, limits.minUniformBufferOffsetAlignment);
  }
  if ((usage & k_texels) != 0) alignment = max(alignment, limits.minTexelBufferOffsetAlignment);
  return {round_up(size, alignment), alignment, usable_types(twin, 0)};
}

void write_requirements(const Twin& twin, uint64_t size, VkBufferUsageFlags usage,
                        VkMemoryRequirements2* out) {
  out->memoryRequirements = memory_requirements(twin, size, usage);
  if (auto* dedicated = find_output<VkMemoryDedicatedRequirements>(
          out->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS)) {
    dedicated->prefersDedicatedAllocation = VK_FALSE;
    dedicated->requiresDedicatedAllocation = VK_FALSE;
  }
}

}  // namespace

VkResult map_memory2(VkDevice, const void* info, void** out) {
  const auto* map_info = static_cast<const MapInfo*>(info);
  return map_at(map_info->memory, map_info->offset, out);
}

VkResult unmap_memory2(VkDevice, const void*) { return VK_SUCCESS; }

}  // namespace weir_twin

using namespace weir_twin;

// Takes memory from its type's heap, with pages if the host can see it. The program's own memory
// is imported; file descriptors are refused.
VkResult vkAllocateMemory(VkDevice handle, const VkMemoryAllocateInfo* info,
                          const VkAllocationCallbacks*, VkDeviceMemory* out) {
  static uint64_t next_address = uint64_t{1} << 36;
  auto* device = object<Device>(handle);
  Physical* physical = device->physical;
  const VkPhysicalDeviceMemoryProperties& properties = physical->twin.memory;
  if (info->memoryTypeIndex >= properties.memoryTypeCount) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkMemoryType& type = properties.memoryTypes[info->memoryTypeIndex];
  const auto* imported = in_chain<VkImportMemoryHostPointerInfoEXT>(
      info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  if (in_chain<VkBaseInStructure>(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR)) {
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  }
  auto* memory = static_cast<Memory*>(calloc(1, sizeof(Memory)));
  if (memory == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  memory->size = info->allocationSize;
  memory->heap = type.heapIndex;
  if (!take_from_heap(physical, memory->heap, memory->size)) {
    free(memory);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (imported != nullptr) {
    memory->imported = true;
    memory->pages = static_cast<uint8_t*>(imported->pHostPointer);
  } else if ((type.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0 &&
             !map_pages(device, memory,
                        (type.propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0)) {
    __atomic_sub_fetch(&physical->heap_used[memory->heap], memory->size, __ATOMIC_RELAXED);
    free(memory);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  // Addresses have gaps between allocations, as real ones do.
  memory->address =
      __atomic_fetch_add(&next_address, round_up(memory->size, 65536) + 65536, __ATOMIC_RELAXED);
  *out = to_handle<VkDeviceMemory>(memory);
  return VK_SUCCESS;
}

void vkFreeMemory(VkDevice device, VkDeviceMemory handle, const VkAllocationCallbacks*) {
  auto* memory = object<Memory>(handle);
  if (memory == nullptr) return;
  Physical* physical = object<Device>(device)->physical;
  __atomic_sub_fetch(&physical->heap_used[memory->heap], memory->size, __ATOMIC_RELAXED);
  if (memory->pages != nullptr && !memory->imported) munmap(memory->pages, memory->mapped);
  free(memory);
}

VkResult vkMapMemory(VkDevice, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize,
                     VkMemoryMapFlags, void** out) {
  return map_at(memory, offset, out);
}

void vkGetDeviceMemoryCommitment(VkDevice, VkDeviceMemory memory, VkDeviceSize* out) {
  *out = object<Memory>(memory)->size;
}

uint64_t vkGetDeviceMemoryOpaqueCaptureAddress(VkDevice,
                                               const VkDeviceMemoryOpaqueCaptureAddressInfo* i) {
  return object<Memory>(i->memory)->address;
}

VkResult vkGetMemoryHostPointerPropertiesEXT(VkDevice handle, VkExternalMemoryHandleTypeFlagBits,
                                             const void*, VkMemoryHostPointerPropertiesEXT* out) {
  out->memoryTypeBits =
      usable_types(object<Device>(handle)->physical->twin, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
  return VK_SUCCESS;
}

VkResult vkCreateBuffer(VkDevice, const VkBufferCreateInfo* info, const VkAllocationCallbacks*,
                        VkBuffer* out) {
  return create<Buffer>(out, [&](Buffer* buffer) {
    buffer->size = info->size;
    buffer->usage = info->usage;
  });
}

void vkGetBufferMemoryRequirements(VkDevice device, VkBuffer handle, VkMemoryRequirements* out) {
  const auto* buffer = object<Buffer>(handle);
  *out = memory_requirements(object<Device>(device)->physical->twin, buffer->size, buffer->usage);
}

void vkGetBufferMemoryRequirements2(VkDevice handle, const VkBufferMemoryRequirementsInfo2* info,
                                    VkMemoryRequirements2* out) {
  const auto* buffer = object<Buffer>(info->buffer);
  write_requirements(object<Device>(handle)->physical->twin, buffer->size, buffer->usage, out);
}

void vkGetDeviceBufferMemoryRequirements(VkDevice handle,
                                         const VkDeviceBufferMemoryRequirements* info,
                                         VkMemoryRequirements2* out) {
  write_requirements(object<Device>(handle)->physical->twin, info->pCreateInfo->size,
                     info->pCreateInfo->usage, out);
}

VkResult vkBindBufferMemory(VkDevice, VkBuffer handle, VkDeviceMemory memory, VkDeviceSize offset) {
  auto* buffer = object<Buffer>(handle);
  buffer->memory = object<Memory>(memory);
  buffer->offset = offset;
  return VK_SUCCESS;
}

VkResult vkBindBufferMemory2(VkDevice device, uint32_t count, const VkBindBufferMemoryInfo* infos) {
  for (uint32_t i = 0; i < count; ++i) {
    vkBindBufferMemory(device, infos[i].buffer, infos[i].memory, infos[i].memoryOffset);
  }
  return VK_SUCCESS;
}

VkDeviceAddress vkGetBufferDeviceAddress(VkDevice, const VkBufferDeviceAddressInfo* info) {
  const auto* buffer = object<Buffer>(info->buffer);
  return buffer->memory == nullptr ? 0 : buffer->memory->address + buffer->offset;
}

uint64_t vkGetBufferOpaqueCaptureAddress(VkDevice device, const VkBufferDeviceAddressInfo* info) {
  return vkGetBufferDeviceAddress(device, info);
}
