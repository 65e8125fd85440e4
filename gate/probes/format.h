/* The probe file: what a probe counts, in memory shared with a file that outlives the engine.
 *
 * One file per process in the folder named by WEIR_PROBE_DIR, `<probe>-<pid>-<random>.weirprobe`.
 * Counters are 64-bit little-endian words changed by single atomic additions, so the file is right
 * at every moment, also after SIGKILL. Plain C, fixed sizes, no pointers: docs/probe-format.md
 * tells how to write a probe, gate/probes/read.hpp reads the files.
 *
 * Rules that keep old and new apart: `version` changes only when the header does. Everything else
 * is found through the section table; a reader skips kinds that it does not know and takes an
 * entry's size from the table (entries may grow at their end). Counter indices and kinds are never
 * reused. */
#ifndef WEIR_PROBES_FORMAT_H
#define WEIR_PROBES_FORMAT_H

#include <stdint.h>

#define WEIR_PROBE_MAGIC \
  "WEIRPRB" /* 8 bytes with the final 0; written last: no magic, no file yet */
#define WEIR_PROBE_VERSION 1u
#define WEIR_PROBE_SUFFIX ".weirprobe"
#define WEIR_PROBE_DIR_VARIABLE "WEIR_PROBE_DIR"

/* Header flags. */
#define WEIR_PROBE_DEVICES_OVERFLOWED 0x1u /* further devices share the last entry */
#define WEIR_PROBE_QUEUES_OVERFLOWED 0x2u  /* further queues share the last entry */
#define WEIR_PROBE_KERNELS_OVERFLOWED 0x4u /* further kernels are counted in entry 0, "(other)" */
#define WEIR_PROBE_NAMES_TRUNCATED 0x8u    /* some name was longer than its field */
#define WEIR_PROBE_OUT_OF_MEMORY 0x10u     /* something could not be followed: counts are too low */
#define WEIR_PROBE_FORKED 0x20u            /* this process was forked from one with a file */

enum weir_probe_section_kind {
  WEIR_SECTION_NONE = 0,
  WEIR_SECTION_DEVICES = 1,
  WEIR_SECTION_QUEUES = 2,
  WEIR_SECTION_KERNELS = 3
};

/* Indices into `counters`. The words are those of the design's glossary. */
enum weir_probe_counter {
  WEIR_COUNT_DISPATCHES = 0, /* all, the indirect ones included */
  WEIR_COUNT_INDIRECT_DISPATCHES = 1,
  WEIR_COUNT_BARRIERS = 2,
  WEIR_COUNT_COPIES = 3,
  WEIR_COUNT_SUBMITS = 4,
  WEIR_COUNT_COMMAND_BUFFERS = 5, /* primary ones, as often as they were submitted */
  WEIR_COUNT_SYNCS = 6,
  WEIR_COUNT_WAITS = 7, /* successful blocking calls; a device's entry counts calls, a queue's entry
                           those that concerned it */
  WEIR_COUNT_POLLS = 8, /* devices only: calls that do not block, whatever they said */
  WEIR_COUNT_SUBMISSIONS = 9, /* everything that a wait could be for, empty submissions included */
  WEIR_COUNTERS = 16
};

struct weir_probe_section {
  uint32_t kind;
  uint32_t entry_size; /* bytes */
  uint64_t offset;     /* of the first entry, from the start of the file */
  uint32_t capacity;   /* entries */
  uint32_t used;       /* entries filled so far; grows, written after the entry */
};

#define WEIR_PROBE_SECTIONS 16

struct weir_probe_header {
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint64_t file_size;
  uint32_t pid;
  uint32_t parent_pid;
  uint32_t flags;
  uint32_t section_count;
  char probe[16];   /* "vulkan" */
  char process[64]; /* the program's short name */
  uint64_t reserved[8];
  struct weir_probe_section sections[WEIR_PROBE_SECTIONS];
};

/* Text is UTF-8 from a hostile program: a reader cleans it. All fields end in a 0 byte. */
struct weir_probe_device {
  char api[16];           /* "vulkan" */
  char type[16];          /* cpu, discrete, integrated, virtual, other */
  char device_class[128]; /* file name safe */
  char name[256];
  char driver[256]; /* what the driver says of itself; for people */
  uint32_t vendor;
  uint32_t device;
  uint32_t driver_id;
  uint32_t driver_version;
  uint64_t feature_hash;
  uint64_t reserved[5];
  uint64_t counters[WEIR_COUNTERS];
};

struct weir_probe_queue {
  uint32_t device; /* index of its entry */
  uint32_t family;
  uint32_t index;
  uint32_t flags; /* the API's own */
  uint64_t reserved[2];
  uint64_t counters[WEIR_COUNTERS];
};

#define WEIR_KERNEL_NAMED 0x1u     /* `name` was given by the program; else by the probe */
#define WEIR_KERNEL_TRUNCATED 0x2u /* `name` is the beginning of a longer one */

/* Entry 0 is "(other)": dispatches whose kernel the probe does not know, or has no room for. */
struct weir_probe_kernel {
  uint64_t hash; /* of its code, entry point and specialization; of its name where it has one */
  uint32_t device;
  uint32_t flags;
  uint64_t dispatches;
  char entry_point[40];
  char name[192];
};

#endif
