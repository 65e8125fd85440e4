/* The probe file: what a probe counts, in memory shared with a file that outlives the engine.
 *
 * One file per process in the folder named by WEIR_PROBE_DIR, `<probe>-<pid>-<random>.weirprobe`.
 * Counters are 64-bit little-endian words changed by single atomic additions, so the file is right
 * at every moment, also after SIGKILL. Plain C, fixed sizes, no pointers:
 * docs/reference/probe-format.md tells how to write a probe, gate/probes/read/read.hpp reads the
 * files.
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
/* Set to anything: the probe of Python counts lines as well. */
#define WEIR_PROBE_PYTHON_LINES_VARIABLE "WEIR_PROBE_PYTHON_LINES"

/* The Vulkan layer asks the driver for a function of this name of each device that it counts, so
 * that a device twin knows. Where work is submitted to another device of a twin, the driver makes
 * an empty file `uncounted-<pid>-<random>.weirprobe` in that folder. */
#define WEIR_PROBE_COUNTED_DEVICE "vkWeirCounted"
#define WEIR_PROBE_UNCOUNTED "uncounted"

/* Header flags. */
#define WEIR_PROBE_DEVICES_OVERFLOWED 0x1u /* further devices share the last entry */
#define WEIR_PROBE_QUEUES_OVERFLOWED 0x2u  /* further queues share the last entry */
#define WEIR_PROBE_KERNELS_OVERFLOWED 0x4u /* further kernels are counted in entry 0, "(other)" */
#define WEIR_PROBE_NAMES_TRUNCATED 0x8u    /* some name was longer than its field */
#define WEIR_PROBE_OUT_OF_MEMORY 0x10u     /* something could not be followed: counts are too low */
#define WEIR_PROBE_FORKED 0x20u            /* this process was forked from one with a file */
#define WEIR_PROBE_OPS_OVERFLOWED 0x40u /* further ops are counted without their shapes, or not */
#define WEIR_PROBE_GRAPHS_OVERFLOWED 0x80u     /* further graphs are counted in entry 0 */
#define WEIR_PROBE_TRANSFERS_OVERFLOWED 0x100u /* further transfers share the last entry */
#define WEIR_PROBE_SHAPES_UNKNOWN 0x200u /* tensors could not be read: no shapes, no directions */
#define WEIR_PROBE_OPS_UNSEEN 0x400u     /* graphs ran whose ops could not be listed */
#define WEIR_PROBE_CALLS_UNSEEN 0x800u   /* it may use calls that the probe cannot see */
#define WEIR_PROBE_LAUNCHES_OVERFLOWED 0x1000u /* further launches are counted in entry 0 */
#define WEIR_PROBE_BLOCKED 0x2000u /* could not listen at all: nothing counted is no count */
#define WEIR_PROBE_CODES_OVERFLOWED 0x4000u /* further code is counted in entry 0 */
#define WEIR_PROBE_HOLDS 0x8000u            /* the process does as `hold` says before it computes */
#define WEIR_PROBE_INDICES_GIVEN 0x10000u   /* read from a device twin, and made valid */
#define WEIR_PROBE_FUNCTIONS_OVERFLOWED 0x20000u /* further functions are counted in entry 0 */
#define WEIR_PROBE_REPLACED 0x40000u             /* the program listens in the probe's place */

enum weir_probe_section_kind {
  WEIR_SECTION_NONE = 0,
  WEIR_SECTION_DEVICES = 1,
  WEIR_SECTION_QUEUES = 2,
  WEIR_SECTION_KERNELS = 3,
  WEIR_SECTION_COUNTERS = 4, /* of the process, by name: what belongs to no device of the probe */
  WEIR_SECTION_OPS = 5,
  WEIR_SECTION_GRAPHS = 6,
  WEIR_SECTION_TRANSFERS = 7,
  WEIR_SECTION_LAUNCHES = 8,
  WEIR_SECTION_CODES = 9,
  WEIR_SECTION_STEPS = 10,
  WEIR_SECTION_NAMES = 11,
  WEIR_SECTION_READS = 12,
  WEIR_SECTION_FUNCTIONS = 13, /* of Python */
  WEIR_SECTION_COMMANDS = 14
};

/* Indices into `counters`. docs/explanation/counting.md defines each. */
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

/* By which weir holds back what a server computes until all requests of a burst are queued. weir
 * writes the first three, the probe the others. A hold has a number, from 1. A thread that is about
 * to compute while `asked` is not `let_go` waits (futex) until it is, or until the time is over. */
struct weir_probe_hold {
  uint32_t asked;        /* the number of the last hold; 0: none yet */
  uint32_t let_go;       /* of the last one that is over */
  uint32_t milliseconds; /* after which a thread goes on by itself */
  uint32_t held;         /* of the last one in which a thread waited */
  uint32_t gave_up;      /* of the last one in which a thread went on by itself */
  uint32_t reserved;
};

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
  struct weir_probe_hold hold;
  uint64_t reserved[5];
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

/* What of a kernel's name does not fit into its entry. */
struct weir_probe_name {
  uint32_t kernel; /* index of its entry */
  uint32_t reserved;
  char rest[760];
};

/* What code costs, as its device's driver says. */
struct weir_probe_code_costs {
  uint32_t registers;    /* of a thread; 0: none of this is known */
  uint32_t local_bytes;  /* of memory that a thread uses beside them */
  uint32_t shared_bytes; /* of a group, without those asked for at the launch */
  uint32_t code_bytes;   /* of machine code; 0: unknown */
  uint32_t occupancy;    /* groups of 32 threads that one multiprocessor holds at once, the least of
                            all launches; 0: unknown */
  uint32_t group_threads;     /* of a group in that launch */
  uint32_t architecture;      /* that the machine code is for: 10 * major + minor; 0: unknown */
  uint32_t spilled_registers; /* that did not fit, with WEIR_CODE_SPILLS_KNOWN */
};

#define WEIR_CODE_EXAMINED 0x1u     /* `costs` has what could be learned */
#define WEIR_CODE_NOT_COMPILED 0x2u /* the device's own code is still to be compiled: no costs */
#define WEIR_CODE_SPILLS_KNOWN 0x4u /* `costs` has what the code spills */

/* Code that a kernel ran: what the program handed over under that name. Entry 0 takes what no
 * longer fits. */
struct weir_probe_code {
  uint64_t hash; /* of all that the code is made of, its constants among it */
  uint64_t dispatches;
  uint64_t groups; /* of all dispatches; those are missing whose number the device decided */
  uint32_t kernel; /* index of its entry */
  uint32_t flags;
  struct weir_probe_code_costs costs;
};

struct weir_probe_named_counter {
  char name[32]; /* a-z 0-9 _, beginning with a letter */
  uint64_t value;
};

struct weir_probe_operand {
  char type[16]; /* "f32", "q4_0" */
  int64_t ne[4]; /* elements by dimension, the fastest first; 1 where there is none */
};

#define WEIR_OP_SOURCES 10
#define WEIR_OP_SHAPED 0x1u /* `result` and `source` are known */

/* One kind of op in one kind of graph on one device. Ops that do no work (views) are left out. */
struct weir_probe_op {
  uint64_t hash;
  uint64_t count;
  uint32_t graph;  /* index of its entry */
  uint32_t device; /* index of its entry */
  uint32_t flags;
  uint32_t sources; /* how many of `source` are used */
  char op[32];      /* "MUL_MAT", "SWIGLU" */
  struct weir_probe_operand result;
  struct weir_probe_operand source[WEIR_OP_SOURCES];
};

/* Indices into a graph's `sums`. */
enum weir_probe_graph_sum {
  WEIR_GRAPH_TENSOR_COPIES = 0,
  WEIR_GRAPH_TENSOR_SETS = 1,
  WEIR_GRAPH_TENSOR_GETS = 2,
  WEIR_GRAPH_COPIED_BYTES = 3,
  WEIR_GRAPH_BACKEND_SYNCS = 4,
  WEIR_GRAPH_SUMS = 7
};

/* No row attends to what another row computes: each is the next token of a sequence of its own.
 * Looked for where events are recorded, in masks of attention, for more than one row. */
#define WEIR_GRAPH_ROWS_APART 0x1u

/* One kind of graph: the same ops on the same devices in the same order, for as many rows, with the
 * same flags. Entry 0 takes what no longer fits. */
struct weir_probe_graph {
  uint64_t hash;
  uint64_t computed; /* how often */
  uint64_t rows;     /* of the first look-up: the tokens of a language model's batch; 0: unknown */
  uint64_t ops;      /* each time, as are the two below */
  uint64_t cpu_ops;
  uint64_t splits;
  uint64_t sums[WEIR_GRAPH_SUMS]; /* all times together, each from the end of the graph before */
  uint32_t flags;
  uint32_t reserved;
};

#define WEIR_STEP_FOLLOWS 0x1u /* takes the result of the step before, views between left out */

/* One op of a kind of graph. Those of a graph stand together, in the order in which they are
 * computed, all of them or none: a graph may have found no room. */
struct weir_probe_step {
  uint32_t op; /* index of its entry, which names the graph and the device */
  uint32_t flags;
};

enum weir_probe_transfer_kind {
  WEIR_TRANSFER_COPY = 0, /* tensor to tensor */
  WEIR_TRANSFER_SET = 1,  /* the program's memory to a tensor */
  WEIR_TRANSFER_GET = 2,  /* a tensor to the program's memory */
  WEIR_TRANSFER_FILL = 3
};

/* Where bytes went. The last entry takes what no longer fits. */
struct weir_probe_transfer {
  uint64_t calls;
  uint64_t bytes;
  uint32_t kind;
  uint32_t flags;
  char from[48]; /* kind of memory: "CPU", "Vulkan_Host"; "program"; "" when unknown */
  char to[48];
};

/* Reads of few bytes by the program, of what one kernel wrote last. The last entry takes what no
 * longer fits. */
struct weir_probe_read {
  uint64_t count;
  uint32_t kernel; /* index of its entry; 0: a copy or a fill, or unknown */
  uint32_t bytes;  /* each time */
};

/* The process's command line when it ran a new kernel last, its words parted by blanks. One that
 * names itself (setproctitle) has that name here. */
struct weir_probe_command {
  char text[1024];
};

/* One kernel with the sizes it was launched with. Entry 0 takes what no longer fits. */
struct weir_probe_launch {
  uint64_t count;
  uint32_t kernel;     /* index of its entry */
  uint32_t dimensions; /* 1 to 3 */
  uint64_t global[3];  /* work items (threads) in all, 1 where there is no such dimension */
  uint64_t local[3];   /* of a group (block); 0: left to the driver */
  uint64_t shared;     /* bytes of shared memory asked for at the launch */
};

#define WEIR_FUNCTION_IN_C 0x1u
#define WEIR_FUNCTION_IMPORTS 0x2u /* imports modules: its calls are a counter of the process */
#define WEIR_FUNCTION_OF_THREADING 0x4u /* a module of Python */
#define WEIR_FUNCTION_STARTS 0x8u       /* starts a thread, or is the first one of it */

/* A function that Python called. Entry 0 takes what no longer fits. */
struct weir_probe_function {
  uint64_t calls;            /* in the main thread */
  uint64_t calls_in_threads; /* in others */
  uint64_t lines;            /* that ran in the main thread, where they are counted */
  uint32_t flags;
  uint16_t sampled; /* calls of those in C that were looked at; halved where they fill up */
  uint16_t waited;  /* of these, calls in which the thread gave up the processor */
  char name[160]; /* module and qualified name: "vllm.v1.core.sched.scheduler.Scheduler.schedule" */
};

#endif
