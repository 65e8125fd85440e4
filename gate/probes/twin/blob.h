/* A GPU's description as a device twin's driver maps it: compiled into the structs that Vulkan
 * programs query. weir writes it from a description (gate/probes/read/twins.hpp) for one engine
 * run; it is no format to store. Plain C, native byte order. */
#ifndef WEIR_PROBES_TWIN_BLOB_H
#define WEIR_PROBES_TWIN_BLOB_H

#include <stdint.h>

/* Paths of blobs separated by ':', one a device, in the order in which programs see them. */
#define WEIR_TWIN_VARIABLE "WEIR_TWIN"
/* The byte that memory of the device holds when it is read back, in decimal (default 0). A twin
 * computes no values, so an engine whose counts change with this byte depends on computed ones. */
#define WEIR_TWIN_FILL_VARIABLE "WEIR_TWIN_FILL"
#define WEIR_TWIN_READS_VARIABLE "WEIR_TWIN_READS"

#define WEIR_TWIN_MAGIC "WEIRTWN" /* 8 bytes with the final 0 */
#define WEIR_TWIN_VERSION 2u

enum weir_twin_section_kind {
  /* weir_twin_struct: values of structs in pNext chains */
  WEIR_TWIN_STRUCTS = 1,
  WEIR_TWIN_PROPERTIES = 2,     /* one VkPhysicalDeviceProperties */
  WEIR_TWIN_FEATURES = 3,       /* one VkPhysicalDeviceFeatures */
  WEIR_TWIN_MEMORY = 4,         /* one VkPhysicalDeviceMemoryProperties */
  WEIR_TWIN_QUEUE_FAMILIES = 5, /* VkQueueFamilyProperties */
  WEIR_TWIN_EXTENSIONS = 6,     /* VkExtensionProperties */
  WEIR_TWIN_FORMATS = 7,        /* weir_twin_format */
  /* Whole structs, with sType, and pNext 0. */
  WEIR_TWIN_COOPERATIVE_MATRICES = 8, /* VkCooperativeMatrixPropertiesKHR */
  WEIR_TWIN_FLEXIBLE_MATRICES = 9     /* VkCooperativeMatrixFlexibleDimensionsPropertiesNV */
};

struct weir_twin_section {
  uint32_t kind;
  uint32_t entry_size; /* bytes */
  uint64_t offset;     /* from the start of the blob */
  uint32_t count;
  uint32_t reserved;
};

/* The struct's `size` bytes are at `offset`; the first 16 (sType, pNext) stay the program's own.
 * Offset 0 means a struct that is not described: it is filled with 0, so that nothing of the
 * machine shows. Bytes from `used` on are padding, which may hold anything. */
struct weir_twin_struct {
  uint32_t type; /* VkStructureType */
  uint32_t size;
  uint64_t offset;
  uint32_t used;
  uint32_t reserved;
};

struct weir_twin_format {
  uint32_t format;                  /* VkFormat */
  uint32_t linear, optimal, buffer; /* VkFormatFeatureFlags */
};

#define WEIR_TWIN_SECTIONS 16

struct weir_twin_header {
  char magic[8];
  uint32_t version;
  uint32_t section_count;
  uint64_t size; /* of the blob */
  char name[64]; /* for `twin:` */
  struct weir_twin_section sections[WEIR_TWIN_SECTIONS];
};

#endif
