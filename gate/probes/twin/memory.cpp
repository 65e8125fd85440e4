// Memory and buffers. Memory that the host cannot see has a size and an address, and no pages;
// memory that it can see is mapped, and the system gives it pages where the program writes.
#include "gate/probes/twin/state.h"

namespace weir_twin {
namespace {

constexpr uint64_t k_page = 4096;

// Device memory that the host can see, as of a card whose whole memory is open to it: what a
// program writes there for kernels to read is never read. Beyond the first size the same window is
// mapped again and again, so that a model takes no more than a window of this machine.
constexpr uint64_t k_repeated_from = uint64_t{256} << 20;

constexpr uint64_t k_window = uint64_t{16} << 20;

uint64_t round_up(uint64_t value, uint64_t to) {
  if (to <= 1) return value;
  const uint64_t over = value % to;
  return over == 0 ? value : value + (to - over);
}

uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

int make_window(uint8_t fill) {
  const int file = memfd_create("weir-twin", MFD_CLOEXEC);
  if (file < 0) return -1;
  void* bytes = ftruncate(file, static_cast<off_t>(k_window)) != 0
                    ? MAP_FAILED
                    : mmap(nullptr, k_window, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) {
    close(file);
    return -1;
  }
  if (fill != 0) memset(bytes, fill, k_window);
  munmap(bytes, k_window);
  return file;
}

// Maps `file` over and over from `pages` on. False leaves what is mapped to the caller.
bool repeat(uint8_t* pages, uint64_t size, int file, int sharing) {
  for (uint64_t at = 0; at < size; at += k_window) {
    const uint64_t length = size - at < k_window ? size - at : k_window;
    if (mmap(pages + at, length, PROT_READ | PROT_WRITE, sharing | MAP_FIXED | MAP_NORESERVE, file,
             0) == MAP_FAILED) {
      return false;
    }
  }
  return true;
}

int fill_file(Device* device) {
  const weir_probe::Locked locked(&device->lock);
  if (device->fill_file < 0) device->fill_file = make_window(device->fill);
  return device->fill_file;
}

bool map_pages(Device* device, Memory* memory, bool of_device) {
  memory->mapped = round_up(larger(memory->size, 1), k_page);
  void* found = mmap(nullptr, memory->mapped, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return false;
  memory->pages = static_cast<uint8_t*>(found);
  memory->returnable = true;
  if (of_device && memory->size > k_repeated_from) {
    memory->returnable = false;
    const int file = make_window(device->fill);
    const bool done = file >= 0 && repeat(memory->pages, memory->mapped, file, MAP_SHARED);
    if (file >= 0) close(file);
    if (done) return true;
  } else if (device->fill == 0) {
    return true;
  } else if (const int file = fill_file(device); file >= 0) {
    memory->fresh = device->fill;
    if (repeat(memory->pages, memory->mapped, file, MAP_PRIVATE)) return true;
  }
  munmap(memory->pages, memory->mapped);
  memory->pages = nullptr;
  return false;
}

bool take_from_heap(Physical* physical, uint32_t heap, uint64_t size) {
  const uint64_t all = physical->twin.memory.memoryHeaps[heap].size;
  uint64_t used = __atomic_load_n(&physical->heap_used[heap], __ATOMIC_RELAXED);
  do {
    if (size > all || used > all - size) return false;
  } while (!__atomic_compare_exchange_n(&physical->heap_used[heap], &used, used + size, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return true;
}

VkResult map_at(VkDeviceMemory which, uint64_t offset, void** out) {
  auto* memory = object<Memory>(which);
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

uint32_t usable_types(const Twin& twin, VkMemoryPropertyFlags needed) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < twin.memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = twin.memory.memoryTypes[i].propertyFlags;
    const bool special =
        (flags & (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT)) != 0;
    if (!special && (flags & needed) == needed) out |= 1U << i;
  }
  return out;
}

VkMemoryRequirements needs_of(const Twin& twin, uint64_t size, VkBufferUsageFlags usage) {
  constexpr VkBufferUsageFlags k_texels =
      VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
  const VkPhysicalDeviceLimits& limits = twin.properties.limits;
  uint64_t alignment = 16;
  if ((usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT) != 0) {
    alignment = larger(alignment, limits.minStorageBufferOffsetAlignment);
  }
  if ((usage & VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT) != 0) {
    alignment = larger(alignment, limits.minUniformBufferOffsetAlignment);
  }
  if ((usage & k_texels) != 0) alignment = larger(alignment, limits.minTexelBufferOffsetAlignment);
  return {round_up(size, alignment), alignment, usable_types(twin, 0)};
}

void describe_needs(const Twin& twin, uint64_t size, VkBufferUsageFlags usage,
                    VkMemoryRequirements2* out) {
  out->memoryRequirements = needs_of(twin, size, usage);
  if (auto* dedicated = wanted_behind<VkMemoryDedicatedRequirements>(
          out->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS)) {
    dedicated->prefersDedicatedAllocation = dedicated->requiresDedicatedAllocation = VK_FALSE;
  }
}

}  // namespace

VkResult map_memory2(VkDevice, const void* info, void** out) {
  const auto* wanted = static_cast<const MapInfo*>(info);
  return map_at(wanted->memory, wanted->offset, out);
}

VkResult unmap_memory2(VkDevice, const void*) { return VK_SUCCESS; }

}  // namespace weir_twin

using namespace weir_twin;

VkResult vkAllocateMemory(VkDevice handle, const VkMemoryAllocateInfo* info,
                          const VkAllocationCallbacks*, VkDeviceMemory* out) {
  static uint64_t next_address = uint64_t{1} << 36;
  auto* device = object<Device>(handle);
  Physical* physical = device->physical;
  const VkPhysicalDeviceMemoryProperties& kinds = physical->twin.memory;
  if (info->memoryTypeIndex >= kinds.memoryTypeCount) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkMemoryType& kind = kinds.memoryTypes[info->memoryTypeIndex];
  const auto* imported = in_chain<VkImportMemoryHostPointerInfoEXT>(
      info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  if (in_chain<VkBaseInStructure>(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR)) {
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  }
  auto* memory = static_cast<Memory*>(calloc(1, sizeof(Memory)));
  if (memory == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  memory->size = info->allocationSize;
  memory->heap = kind.heapIndex;
  if (!take_from_heap(physical, memory->heap, memory->size)) {
    free(memory);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (imported != nullptr) {
    memory->imported = true;
    memory->pages = static_cast<uint8_t*>(imported->pHostPointer);
  } else if ((kind.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0 &&
             !map_pages(device, memory,
                        (kind.propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0)) {
    __atomic_sub_fetch(&physical->heap_used[memory->heap], memory->size, __ATOMIC_RELAXED);
    free(memory);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  // A gap lies behind each, as behind a real one.
  memory->address =
      __atomic_fetch_add(&next_address, round_up(memory->size, 65536) + 65536, __ATOMIC_RELAXED);
  *out = handle_of<VkDeviceMemory>(memory);
  return VK_SUCCESS;
}

void vkFreeMemory(VkDevice handle, VkDeviceMemory which, const VkAllocationCallbacks*) {
  auto* memory = object<Memory>(which);
  if (memory == nullptr) return;
  Physical* physical = object<Device>(handle)->physical;
  __atomic_sub_fetch(&physical->heap_used[memory->heap], memory->size, __ATOMIC_RELAXED);
  if (memory->pages != nullptr && !memory->imported) munmap(memory->pages, memory->mapped);
  free(memory);
}

VkResult vkMapMemory(VkDevice, VkDeviceMemory which, VkDeviceSize offset, VkDeviceSize,
                     VkMemoryMapFlags, void** out) {
  return map_at(which, offset, out);
}

void vkGetDeviceMemoryCommitment(VkDevice, VkDeviceMemory which, VkDeviceSize* out) {
  *out = object<Memory>(which)->size;
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

void vkGetBufferMemoryRequirements(VkDevice handle, VkBuffer which, VkMemoryRequirements* out) {
  const auto* buffer = object<Buffer>(which);
  *out = needs_of(object<Device>(handle)->physical->twin, buffer->size, buffer->usage);
}

void vkGetBufferMemoryRequirements2(VkDevice handle, const VkBufferMemoryRequirementsInfo2* info,
                                    VkMemoryRequirements2* out) {
  const auto* buffer = object<Buffer>(info->buffer);
  describe_needs(object<Device>(handle)->physical->twin, buffer->size, buffer->usage, out);
}

void vkGetDeviceBufferMemoryRequirements(VkDevice handle,
                                         const VkDeviceBufferMemoryRequirements* info,
                                         VkMemoryRequirements2* out) {
  describe_needs(object<Device>(handle)->physical->twin, info->pCreateInfo->size,
                 info->pCreateInfo->usage, out);
}

VkResult vkBindBufferMemory(VkDevice, VkBuffer which, VkDeviceMemory memory, VkDeviceSize offset) {
  auto* buffer = object<Buffer>(which);
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
