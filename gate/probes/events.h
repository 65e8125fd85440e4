/* The event file: what happened when, for one profile. Written beside the probe file, under its
 * name with another ending, when WEIR_PROBE_EVENTS asks for it.
 *
 * A header of one page, then blocks of equal size. A block belongs to one thread at a time and
 * holds its records in order; `used` grows after a record is whole, so the file can be read at
 * every moment, also after SIGKILL. Indices are those of the probe file of the same name. Plain C,
 * fixed sizes: docs/reference/probe-format.md. Kinds are never reused; a reader skips those that it
 * does not know, and takes what a record holds beyond its struct as what came later. */
#ifndef WEIR_PROBES_EVENTS_H
#define WEIR_PROBES_EVENTS_H

#include <stdint.h>

#define WEIR_EVENTS_MAGIC "WEIREVT" /* 8 bytes with the final 0; written last */
#define WEIR_EVENTS_VERSION 1u
#define WEIR_EVENTS_SUFFIX ".weirevents"
/* MiB that the event files of a process may grow to; not set or 0: no events. */
#define WEIR_PROBE_EVENTS_VARIABLE "WEIR_PROBE_EVENTS"
/* "batched" or "serialized": also time the device's work. */
#define WEIR_PROBE_TIMING_VARIABLE "WEIR_PROBE_TIMING"
/* Beginnings of names of ggml's backends whose work another probe times, separated by commas. */
#define WEIR_PROBE_TIMED_VARIABLE "WEIR_PROBE_TIMED"
/* "1": events also tell what rebuilding each node of a graph takes, for weir replay. */
#define WEIR_PROBE_REPLAY_VARIABLE "WEIR_PROBE_REPLAY"

/* Header flags. */
#define WEIR_EVENTS_DROPPED 0x1u    /* the file was full: what came later is not in it */
#define WEIR_EVENTS_UNTIMED 0x2u    /* device work that could not be timed, see standard error */
#define WEIR_EVENTS_SERIALIZED 0x4u /* the probe kept the device's work apart to time it */

#define WEIR_EVENTS_HEADER_SIZE 4096u
#define WEIR_EVENTS_BLOCK_SIZE 131072u

struct weir_events_header {
  char magic[8];
  uint32_t version;
  uint32_t header_size; /* WEIR_EVENTS_HEADER_SIZE */
  uint32_t block_size;
  uint32_t blocks; /* begun so far */
  uint32_t pid;
  uint32_t flags;
  char probe[16];
  uint64_t dropped;   /* records */
  uint64_t recording; /* of the processor, in nanoseconds, that recording took the program, about */
};

struct weir_events_block {
  uint32_t used; /* bytes of records after this struct */
  uint32_t reserved;
};

enum weir_event_kind {
  WEIR_EVENT_THREAD = 1,   /* what follows in this block is of thread `index` */
  WEIR_EVENT_SUBMIT = 2,   /* index: queue */
  WEIR_EVENT_BUFFER = 3,   /* what follows is what one command buffer of a submission does */
  WEIR_EVENT_DISPATCH = 4, /* index: kernel */
  WEIR_EVENT_BARRIER = 5,
  WEIR_EVENT_COPY = 6,
  WEIR_EVENT_TIMES = 7,     /* index: queue */
  WEIR_EVENT_WAIT = 8,      /* index: queue, or UINT32_MAX */
  WEIR_EVENT_CLOCK = 9,     /* index: device */
  WEIR_EVENT_GRAPH = 10,    /* index: graph */
  WEIR_EVENT_NODE = 11,     /* index: op; the nodes of a graph, once for each graph entry */
  WEIR_EVENT_TRANSFER = 12, /* index: transfer */
  WEIR_EVENT_COMMAND = 13,  /* index: kernel; work with times of its own (OpenCL) */
  WEIR_EVENT_OP = 14,       /* index: device; what an engine says that it does (instrument) */
  WEIR_EVENT_OP_TIME = 15,  /* index: op; of the thread's last graph, which ran node by node */
  /* For replay, later: */
  WEIR_EVENT_KERNEL_CODE = 64,
  WEIR_EVENT_CONSTANTS = 65,
  WEIR_EVENT_BINDINGS = 66,
  WEIR_EVENT_BUFFER_SIZES = 67,
  /* Only when WEIR_PROBE_REPLAY asks for it: what rebuilding a graph's nodes takes (ggml). */
  WEIR_EVENT_ENGINE = 68, /* index: 0 version, 1 commit, 2 the library's file; the text follows */
  WEIR_EVENT_STEP = 69,   /* index: list of nodes, or UINT32_MAX where there was no room for more */
  WEIR_EVENT_STEP_NODE = 70 /* index: list; once for each list */
};

/* Before every record's body. Bodies are padded with 0 to 8 bytes. CPU times are nanoseconds of
 * CLOCK_MONOTONIC. */
struct weir_event {
  uint16_t kind;
  uint16_t words; /* of 8 bytes, this struct included */
  uint32_t index;
};

/* Written when the call came back with success. */
struct weir_event_submit {
  uint64_t serial; /* of the process, from 1 */
  uint64_t begin, end;
  uint32_t buffers;
  uint32_t reserved;
};

/* Written before the submission goes down: one without a SUBMIT of its serial was refused. */
struct weir_event_buffer {
  uint64_t serial;
  uint32_t order;    /* in the submission */
  uint32_t commands; /* records that follow; 0: not known yet */
  /* its label may follow, ends in 0 */
};

#define WEIR_DISPATCH_INDIRECT 0x1u
#define WEIR_DISPATCH_IN_OP 0x2u /* of marks: weir_event_in_op follows the push constants */
#define WEIR_NO_GROUP UINT32_MAX

/* Commands between two barriers may overlap: they have one time, that of their group. */
struct weir_event_dispatch {
  uint32_t x, y, z; /* workgroups; 0 when indirect */
  uint32_t flags;
  uint32_t group;      /* in the buffer, from 0; WEIR_NO_GROUP: not timed */
  uint32_t push_bytes; /* of the push constants, which follow */
};

/* The innermost scope that was open: the WEIR_EVENT_OP of this thread that began then, so deep. */
struct weir_event_in_op {
  uint64_t begin;
  uint32_t depth;
  uint32_t reserved;
};

#define WEIR_BARRIER_BY_REGION 0x1u
#define WEIR_BARRIER_LAYOUT 0x2u   /* changes an image's layout */
#define WEIR_BARRIER_TRANSFER 0x4u /* hands a resource to another queue family */

/* All three 0: execution alone. */
struct weir_event_barrier {
  uint32_t memory, buffers, images; /* how many of each */
  uint32_t flags;
  uint64_t from, to; /* pipeline stages as the API numbers them */
};

enum weir_copy_kind {
  WEIR_COPY_BUFFER = 0,
  WEIR_COPY_FILL = 1,
  WEIR_COPY_UPDATE = 2,
  WEIR_COPY_IMAGE = 3, /* any copy, blit or resolve that an image is part of */
  WEIR_COPY_QUERY = 4,
  WEIR_COPY_READ = 5, /* device to host */
  WEIR_COPY_WRITE = 6 /* host to device */
};

struct weir_event_copy {
  uint64_t bytes; /* 0: unknown */
  uint32_t kind;
  uint32_t group;
};

/* Device times of a submitted buffer. A buffer with many groups has several, `first` tells them
 * apart. Without one a buffer was not timed, or its times were overwritten before they were read.
 */
struct weir_event_times {
  uint64_t serial;
  uint32_t order;
  uint32_t first;      /* group */
  uint64_t begin, end; /* of the whole buffer, in ticks, as the pairs of each group that follow */
  uint32_t groups;     /* in this record */
  uint32_t reserved;
};

enum weir_wait_kind {
  WEIR_WAIT_FENCE = 0,
  WEIR_WAIT_SEMAPHORE = 1,
  WEIR_WAIT_QUEUE = 2,
  WEIR_WAIT_DEVICE = 3,
  WEIR_WAIT_POLL = 4,    /* from the first "not ready" to the answer "done" */
  WEIR_WAIT_BACKEND = 5, /* ggml */
  WEIR_WAIT_EVENT = 6,
  WEIR_WAIT_CALL = 7 /* a copy or other call that blocks */
};
#define WEIR_WAIT_SYNC 0x1u /* it was counted as a sync */

struct weir_event_wait {
  uint64_t begin, end;
  uint32_t kind;
  uint32_t flags;
};

enum weir_clock_source {
  WEIR_CLOCK_CALIBRATED = 0, /* both read together by the driver */
  WEIR_CLOCK_NONE = 1,       /* `ticks` and `cpu` are 0: only the length of a tick is known */
  WEIR_CLOCK_SAME = 2        /* device times are CLOCK_MONOTONIC already */
};

/* Ties the device's ticks to the CPU's clock. Several over time tell how the two drift apart. */
struct weir_event_clock {
  uint64_t ticks;
  uint64_t cpu;
  uint64_t deviation;  /* nanoseconds, as the driver tells it */
  double tick_seconds; /* length of a tick */
  uint32_t valid_bits; /* of a tick counter, 1 to 64: beyond it starts again at 0 */
  uint32_t source;
};

struct weir_event_graph {
  uint64_t begin, end; /* of the call that computes it; the device may work on */
};

struct weir_event_node {
  uint32_t graph;
  uint32_t position; /* among the graph's nodes that do work */
  /* its name follows, ends in 0 */
};

struct weir_event_transfer {
  uint64_t begin, end;
  uint64_t bytes;
};

struct weir_event_command {
  uint64_t queued, begin, end; /* device times in ticks; all 0: it was not timed */
  uint64_t bytes;              /* of a copy; else 0 */
  uint32_t queue;
  uint32_t copy; /* 1 + weir_copy_kind; 0: a kernel */
  uint64_t cpu;  /* when the call that enqueued it began */
};

/* A scope of the CPU's, written when it ends. */
struct weir_event_op {
  uint64_t begin, end;
  uint64_t token; /* boundaries of graphs before it in this process */
  int32_t layer;  /* -1: unknown */
  uint32_t depth; /* scopes around it */
  /* its name follows, in as many bytes as that of a weir_probe_op; then, where the library writes
   * it, the `hash` of the weir_probe_op that has its operands */
};

/* A node that was computed alone: from before it was handed to its backend until it was done. */
struct weir_event_op_time {
  uint64_t begin, end;
  uint32_t graph;
  uint32_t position; /* among the graph's nodes that do work */
};

/* A graph that was computed. Graphs of the same ops with the same shapes share a list of nodes,
 * which follows the first of them. */
struct weir_event_step {
  uint64_t begin, end; /* of the call */
  uint32_t graph;      /* entry of the probe file */
  uint32_t nodes;      /* of the list */
  uint32_t all_nodes;  /* with those that only look at bytes in another way */
  uint32_t threads;    /* that the engine last asked for; 0: it did not */
  uint64_t mask_open;  /* of the places in masks of attention: those that are looked at */
  uint64_t mask_all;   /* 0: none that could be read */
};

#define WEIR_ROOT_CONSTANT 0x1u /* no op makes it: weights, caches */
#define WEIR_ROOT_INPUT 0x2u    /* the program sets it before each graph */

/* A result (slot 0) or source i (slot i + 1) as part of the bytes that it is a view of. */
struct weir_event_step_tensor {
  int32_t type;
  uint32_t slot;
  int64_t ne[4];
  uint64_t nb[4];
  uint64_t offset;
  uint64_t root; /* tells roots apart */
  uint64_t root_bytes;
  uint32_t root_flags;
  uint32_t reserved;
  char type_name[16];
  char memory[32]; /* kind of memory that the root lies in */
};

struct weir_event_step_node {
  uint32_t op;
  uint32_t position;
  int32_t params[16];
  int32_t flags;
  uint32_t device; /* of the probe file */
  uint32_t tensors;
  uint32_t reserved;
  char op_name[32]; /* of the number: "UNARY" */
  char op_desc[32]; /* "SILU" */
  char name[64];
  /* its tensors follow */
};

#endif
