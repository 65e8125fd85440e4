/* The file of recorded kernels: what each dispatch needs to be made again, alone. Written by the
 * Vulkan layer beside the probe file, under its name with another ending, when WEIR_PROBE_KERNELS
 * asks for it; when only WEIR_PROBE_CODE does, it holds what a compiler needs (devices, code and
 * pipelines that were dispatched), and nothing is done for a dispatch.
 *
 * A header of one page, counts, then records one behind the other. `used` grows after a record is
 * whole, so the file can be read at every moment, also after SIGKILL. A dispatch is one of few
 * "works": a pipeline with push constants, group counts and what is bound, each once with a count
 * of how often it reached the device. Offsets are kept from the first byte that the dispatch binds
 * of a buffer, so that the layers of a model are one work. Plain C, fixed sizes, nothing but what
 * Vulkan calls take. Kinds are never reused; a reader skips those that it does not know. */
#ifndef WEIR_PROBES_RECORDED_KERNELS_H
#define WEIR_PROBES_RECORDED_KERNELS_H

#include <stdint.h>

#define WEIR_KERNELS_MAGIC "WEIRKRN" /* 8 bytes with the final 0; written last */
#define WEIR_KERNELS_VERSION 2u
#define WEIR_KERNELS_SUFFIX ".weirkernels"
/* MiB that the file may grow to; not set or 0: nothing is recorded. */
#define WEIR_PROBE_KERNELS_VARIABLE "WEIR_PROBE_KERNELS"
#define WEIR_PROBE_CODE_VARIABLE "WEIR_PROBE_CODE"
#define WEIR_KERNELS_HEADER_SIZE 4096u
#define WEIR_KERNELS_WORKS 16384u /* distinct ones, in a file of this version */

/* Limits of one dispatch; beyond them it is left out. */
#define WEIR_KERNELS_PUSH_BYTES 256u
#define WEIR_KERNELS_MAX_SETS 8u
#define WEIR_KERNELS_DESCRIPTORS 64u

/* Why a dispatch is in no work. Indices into `left_out`. */
enum weir_kernels_left_out {
  WEIR_LEFT_INDIRECT = 0,  /* its group counts lie in the device's memory */
  WEIR_LEFT_UNKNOWN = 1,   /* no pipeline whose code is known was bound */
  WEIR_LEFT_OBJECTS = 2,   /* its layout has more than plain buffers: images, samplers, … */
  WEIR_LEFT_UNBOUND = 3,   /* a descriptor of its layout is not known */
  WEIR_LEFT_BASE = 4,      /* its groups are not counted from 0 */
  WEIR_LEFT_ROOM = 5,      /* beyond a limit of the recording or of the file */
  WEIR_LEFT_ADDRESSES = 6, /* its code takes addresses of memory, which mean nothing later */
  WEIR_LEFT_REASONS = 16
};

struct weir_kernels_header {
  char magic[8];
  uint32_t version;
  uint32_t header_size; /* WEIR_KERNELS_HEADER_SIZE */
  uint32_t pid;
  uint32_t works; /* places for counts, 8 bytes each, directly behind the header */
  char probe[16];
  uint64_t used; /* bytes of records, behind the counts */
  uint64_t left_out[WEIR_LEFT_REASONS];
};

enum weir_kernels_kind {
  WEIR_KERNELS_DEVICE = 1,    /* index: device of the probe file */
  WEIR_KERNELS_EXTENSION = 2, /* index: device; a name that the device was made with, ends in 0 */
  WEIR_KERNELS_FEATURES = 3,  /* index: device; a struct of features it was made with */
  WEIR_KERNELS_CODE = 4,      /* index: of the code; its SPIR-V */
  WEIR_KERNELS_PIPELINE = 5,  /* index: of the pipeline */
  WEIR_KERNELS_WORK = 6       /* index: its place among the counts */
};

/* Before every record's body. Bodies are padded with 0 to 8 bytes. */
struct weir_kernels_record {
  uint32_t kind;
  uint32_t index;
  uint64_t bytes; /* of the body, padding included */
};

struct weir_kernels_device {
  uint32_t api_version; /* that the program asked for */
  uint32_t reserved;
};

/* The values follow: what comes behind sType and pNext. */
struct weir_kernels_features {
  uint32_t type; /* VkStructureType */
  uint32_t bytes;
};

struct weir_kernels_code {
  uint64_t hash;
  uint64_t bytes; /* of the SPIR-V that follows */
};

struct weir_kernels_pipeline {
  uint32_t code;
  uint32_t device;
  uint32_t flags;         /* of the pipeline */
  uint32_t stage_flags;   /* of its shader stage */
  uint32_t subgroup_size; /* required; 0: not said */
  uint32_t push_bytes;    /* end of the layout's ranges for compute shaders */
  uint32_t sets;
  uint32_t bindings;   /* structs that follow first */
  uint32_t constants;  /* structs that follow second */
  uint32_t data_bytes; /* of specialization, which follow third */
  char entry_point[128];
  uint64_t identity; /* weir_probe_code.hash */
  uint32_t left_out; /* weir_kernels_left_out + 1: why it cannot be run again; 0: it can */
  uint32_t reserved;
};
struct weir_kernels_binding {
  uint32_t set, binding, type, count;
};
struct weir_kernels_constant {
  uint32_t id, offset, size;
};

struct weir_kernels_work {
  uint32_t pipeline;
  uint32_t kernel; /* of the probe file */
  uint32_t x, y, z;
  uint32_t push_bytes;  /* that were set, from 0; they follow third */
  uint32_t buffers;     /* structs that follow first */
  uint32_t descriptors; /* structs that follow second */
  char name[192];       /* of the kernel, as in the probe file */
};
struct weir_kernels_buffer {
  uint64_t span;  /* bytes from the first that is bound to the last */
  uint64_t whole; /* of the program's buffer */
  uint32_t usage;
  uint32_t reserved;
};
struct weir_kernels_descriptor {
  uint32_t set, binding, element, type;
  uint32_t buffer; /* of this work's; UINT32_MAX: none (a null descriptor) */
  uint32_t reserved;
  uint64_t offset, range; /* from the beginning of the span */
};

/* Descriptors that are buffers, by VkDescriptorType, and those of them whose offset moves with each
 * bind. */
static inline int weir_kernels_is_buffer(uint32_t type) { return type >= 6 && type <= 9; }
static inline int weir_kernels_is_dynamic(uint32_t type) { return type == 8 || type == 9; }

#endif
