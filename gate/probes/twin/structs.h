/* Tables of Vulkan's structs that describe a device: their layout in memory, and names of values.
 * registry.mjs makes the tables when weir is built, from Vulkan's registry and newer.json. Plain C
 * data, for the compiler of descriptions (gate/probes/read/twins.hpp) and for weir-devices, which
 * writes descriptions. */
#ifndef WEIR_PROBES_TWIN_STRUCTS_H
#define WEIR_PROBES_TWIN_STRUCTS_H

#include <stdint.h>

enum weir_field_kind {
  WEIR_FIELD_BOOL = 0, /* VkBool32 */
  WEIR_FIELD_UNSIGNED, /* element_size 1, 4 or 8 */
  WEIR_FIELD_SIGNED,   /* 4 */
  WEIR_FIELD_FLOAT,    /* 4 */
  WEIR_FIELD_TEXT,     /* char[count] */
  WEIR_FIELD_ENUM,     /* 4; `of` is an index into weir_enums */
  WEIR_FIELD_FLAGS,    /* 4 or 8; `of` is an index into weir_enums, -1: no names */
  WEIR_FIELD_STRUCT    /* `of` is an index into weir_structs */
};

struct weir_field {
  const char* name;
  uint32_t offset;
  uint32_t count; /* elements of an array; else 1 */
  uint16_t element_size;
  uint8_t kind;
  uint8_t array; /* is declared as one */
  int16_t of;
};

enum weir_chain {
  WEIR_CHAIN_NONE = 0,      /* part of another struct, or asked for by itself */
  WEIR_CHAIN_FEATURES = 1,  /* stands in the pNext chain of VkPhysicalDeviceFeatures2 */
  WEIR_CHAIN_PROPERTIES = 2 /* … of VkPhysicalDeviceProperties2 */
};

struct weir_struct {
  const char* name; /* "VkPhysicalDeviceSubgroupProperties" */
  uint32_t type;    /* VkStructureType; 0 where chain is WEIR_CHAIN_NONE and the struct has none */
  uint32_t size;    /* bytes */
  const struct weir_field* fields; /* without sType and pNext */
  uint16_t field_count;
  uint8_t chain;
  /* Belongs to a version of Vulkan: 0 for extensions, else 1 for 1.1, 2 for 1.2, … */
  uint8_t core;
};

struct weir_value {
  const char* name; /* "VK_DRIVER_ID_MESA_RADV" */
  int64_t value;
};

struct weir_enum {
  const char* name; /* "VkDriverId" */
  const struct weir_value* values;
  uint32_t count;
};

struct weir_alias {
  const char* name; /* "VkPhysicalDeviceIDPropertiesKHR" */
  uint16_t of;      /* index into weir_structs */
};

#ifdef __cplusplus
extern "C" {
#endif

extern const struct weir_struct weir_structs[];
extern const uint32_t weir_struct_count;
extern const struct weir_alias weir_aliases[];
extern const uint32_t weir_alias_count;
extern const struct weir_enum weir_enums[];
extern const uint32_t weir_enum_count;
/* Names of instance extensions, which devices do not have. */
extern const char* const weir_instance_extensions[];
extern const uint32_t weir_instance_extension_count;

#ifdef __cplusplus
}
#endif

#endif
