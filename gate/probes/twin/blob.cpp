// Reads a twin's description from a file. weir wrote it just before, but every offset is checked.
#include "gate/probes/twin/state.h"

namespace weir_twin {

static_assert(sizeof(weir_twin_section) == 24 && sizeof(weir_twin_struct) == 24);
static_assert(sizeof(weir_twin_format) == 16 && sizeof(weir_twin_header) == 472);

void log_line(const char* begin, const char* subject, const char* end) {
  weir_probe::print_line(STDERR_FILENO, "weir twin: %s%s%s\n", begin, subject, end);
}

namespace {

// A section that becomes a member of Twin.
struct Part {
  uint32_t kind, size;
  bool is_exact_size;  // programs have room for entries of exactly this size
  Section Twin::*target;
};
// Size of VkCooperativeMatrixPropertiesKHR and VkCooperativeMatrixFlexibleDimensionsPropertiesNV,
// which Debian's headers lack: a head and nine or ten numbers.
constexpr uint32_t k_matrix_size = 56;
const Part k_parts[] = {
    {WEIR_TWIN_STRUCTS, sizeof(weir_twin_struct), false, &Twin::structs},
    {WEIR_TWIN_QUEUE_FAMILIES, sizeof(VkQueueFamilyProperties), false, &Twin::queue_families},
    {WEIR_TWIN_EXTENSIONS, sizeof(VkExtensionProperties), false, &Twin::extensions},
    {WEIR_TWIN_FORMATS, sizeof(weir_twin_format), false, &Twin::formats},
    {WEIR_TWIN_COOPERATIVE_MATRICES, k_matrix_size, true, &Twin::matrices},
    {WEIR_TWIN_FLEXIBLE_MATRICES, k_matrix_size, true, &Twin::flexible_matrices},
};

// Reads a section with one entry; false if its size is wrong.
template <class T>
bool read_single(const Section& section, T* out) {
  if (section.count != 1 || section.entry_size != sizeof *out) return false;
  *out = section.entry<T>(0);
  return true;
}

// Returns the first fault of a twin's description, or null. Ends the device's name with 0, and
// replaces an invalid period of timestamps.
const char* check_contents(Twin* twin) {
  VkPhysicalDeviceMemoryProperties& memory = twin->memory;
  if (memory.memoryTypeCount > VK_MAX_MEMORY_TYPES ||
      memory.memoryHeapCount > VK_MAX_MEMORY_HEAPS) {
    return "too many kinds of memory";
  }
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if (memory.memoryTypes[i].heapIndex >= memory.memoryHeapCount) return "memory without a heap";
  }
  if (twin->queue_families.count == 0) return "no queues";
  for (uint32_t i = 0; i < twin->structs.count; ++i) {
    const auto entry = twin->structs.entry<weir_twin_struct>(i);
    if (entry.size < sizeof(VkBaseInStructure)) return "a struct without a head";
    if (entry.offset != 0 &&
        (entry.offset > twin->size || entry.size > twin->size - entry.offset)) {
      return "a struct outside of it";
    }
  }
  VkPhysicalDeviceProperties& properties = twin->properties;
  properties.deviceName[sizeof properties.deviceName - 1] = '\0';
  if (!(properties.limits.timestampPeriod > 0)) properties.limits.timestampPeriod = 1;
  return nullptr;
}

// Reads the mapped bytes of a twin's description into its other members. Returns the first fault,
// or null.
const char* read_twin(Twin* twin) {
  weir_twin_header header;
  if (twin->size < sizeof header) return "too short";
  const auto* bytes = static_cast<const uint8_t*>(twin->bytes);
  memcpy(&header, bytes, sizeof header);
  if (memcmp(header.magic, WEIR_TWIN_MAGIC, sizeof header.magic) != 0) return "no description";
  if (header.version != WEIR_TWIN_VERSION) return "of another version of weir";
  if (header.size != twin->size) return "cut off";
  if (header.section_count > WEIR_TWIN_SECTIONS) return "too many parts";
  memcpy(twin->name, header.name, sizeof twin->name - 1);
  Section sections[WEIR_TWIN_FLEXIBLE_MATRICES + 1] = {};  // by kind
  for (uint32_t i = 0; i < header.section_count; ++i) {
    const weir_twin_section& section = header.sections[i];
    const uint64_t size = uint64_t{section.entry_size} * section.count;
    if (section.offset > twin->size || size > twin->size - section.offset) {
      return "a part outside of it";
    }
    if (section.kind > WEIR_TWIN_FLEXIBLE_MATRICES) continue;  // from a later weir
    sections[section.kind] = {bytes + section.offset, section.entry_size, section.count};
  }
  for (const Part& part : k_parts) {
    const Section& section = sections[part.kind];
    if (section.count != 0 && (section.entry_size < part.size ||
                               (part.is_exact_size && section.entry_size != part.size))) {
      return "entries that are not of their size";
    }
    twin->*part.target = section;
  }
  if (!read_single(sections[WEIR_TWIN_PROPERTIES], &twin->properties) ||
      !read_single(sections[WEIR_TWIN_FEATURES], &twin->features) ||
      !read_single(sections[WEIR_TWIN_MEMORY], &twin->memory)) {
    return "a part that is not of its size";
  }
  return check_contents(twin);
}

}  // namespace

// Maps and reads a twin's description. On failure it prints a line and returns false. `path` need
// not end with 0.
bool open_twin(const char* path, size_t length, Twin* out) {
  char name[4096];
  if (length >= sizeof name) {
    log_line("the name of a description is too long", "", "");
    return false;
  }
  memcpy(name, path, length);
  name[length] = '\0';
  memset(out, 0, sizeof *out);
  out->bytes = weir_probe::map_file(name, &out->size);
  if (out->bytes == nullptr) {
    log_line("cannot read ", name, ": no such device");
    return false;
  }
  const char* fault = read_twin(out);
  if (fault == nullptr) return true;
  char reason[128];
  snprintf(reason, sizeof reason, " is not a device: %s", fault);
  log_line("", name, reason);
  close_twin(out);
  return false;
}

void close_twin(Twin* twin) {
  if (twin->bytes != nullptr) munmap(twin->bytes, twin->size);
  twin->bytes = nullptr;
}

int find_extension(const Twin& twin, const char* name) {
  for (uint32_t i = 0; i < twin.extensions.count; ++i) {
    const auto entry = twin.extensions.entry<VkExtensionProperties>(i);
    if (strncmp(entry.extensionName, name, sizeof entry.extensionName) == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool read_queue_family(const Twin& twin, uint32_t index, VkQueueFamilyProperties* out) {
  if (index >= twin.queue_families.count) return false;
  *out = twin.queue_families.entry<VkQueueFamilyProperties>(index);
  return true;
}

// Finds the twin's values for one of Vulkan's structs; false for a type that is not known.
bool find_struct(const Twin& twin, VkStructureType type, StructValues* out) {
  for (uint32_t i = 0; i < twin.structs.count; ++i) {
    const auto entry = twin.structs.entry<weir_twin_struct>(i);
    if (entry.type != static_cast<uint32_t>(type)) continue;
    const auto* bytes = static_cast<const uint8_t*>(twin.bytes);
    out->bytes = entry.offset == 0 ? nullptr : bytes + entry.offset;
    out->size = entry.size;
    out->byte_count = entry.used < entry.size ? entry.used : entry.size;
    return true;
  }
  return false;
}

}  // namespace weir_twin
