/* A device twin as its driver reads it: a GPU's description compiled into the structs that Vulkan
 * programs ask for, flat, to be mapped. weir writes it from a description
 * (gate/probes/read/twins.hpp); it lives as long as one engine run and is no format for keeping.
 * Plain C, native byte order. */
#ifndef WEIR_PROBES_TWIN_BLOB_H
#define WEIR_PROBES_TWIN_BLOB_H

#include <stdint.h>

/* Paths of blobs separated by ':', one a device, in the order in which programs see them. */
#define WEIR_TWIN_VARIABLE "WEIR_TWIN"
/* What memory of the device holds when it is read back, a byte in decimal (default 0): computed
 * values are not known, so an engine whose counts change with it depends on them. */
#define WEIR_TWIN_FILL_VARIABLE "WEIR_TWIN_FILL"

#define WEIR_TWIN_MAGIC "WEIRTWN" /* 8 bytes with the final 0 */
#define WEIR_TWIN_VERSION 2u

enum weir_twin_section_kind {
  /* weir_twin_struct: what a struct in a pNext chain is filled with. */
  WEIR_TWIN_STRUCTS = 1,
  WEIR_TWIN_PROPERTIES = 2,     /* one VkPhysicalDeviceProperties */
  WEIR_TWIN_FEATURES = 3,       /* one VkPhysicalDeviceFeatures */
  WEIR_TWIN_MEMORY = 4,         /* one VkPhysicalDeviceMemoryProperties */
  WEIR_TWIN_QUEUE_FAMILIES = 5, /* VkQueueFamilyProperties */
  WEIR_TWIN_EXTENSIONS = 6,     /* VkExtensionProperties */
  WEIR_TWIN_FORMATS = 7,        /* weir_twin_format */
  /* Structs whole, sType included and pNext 0, as the driver writes them for programs that ask. */
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

/* `size` bytes of the whole struct lie at `offset`; the first 16 (sType, pNext) are the program's
 * own. With offset 0 the struct is known but not described: it is filled with 0, so that nothing of
 * the machine shows through. Behind the first `used` bytes lies padding, which holds anything. */
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
  char name[64]; /* what `twin:` takes */
  struct weir_twin_section sections[WEIR_TWIN_SECTIONS];
};

#endif
