// What the parts of the instrument library share.
//
// Two ways out: the probe file (and event file) where WEIR_PROBE_DIR names a folder, tables to
// standard error else. Both count in the same memory, which then is a file or is not.
//
// A thread's marks go to a record of its own, found by thread-local storage. Everything that it
// counts in is looked up in a map that only it writes; only what it has not seen before takes the
// lock. Counters in the file are changed by atomic additions, and threads have rows of their own
// there (up to k_most_slots), so that they do not fight for a cache line.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "gate/probes/inject/writer/events.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

// The functions themselves, not their short forms.
#define WEIR_NO_INLINE
#include "gate/probes/instrument/include/weir/instrument.h"

namespace weir_probe {

constexpr uint32_t k_most_devices = 16;
constexpr uint32_t k_most_queues = 64;
constexpr uint32_t k_most_slots = 4;  // k_most_queues * k_most_slots rows of queues
constexpr uint32_t k_most_kinds = 4096;
constexpr uint32_t k_most_graphs = 256;
constexpr uint32_t k_most_depth = 32;
constexpr uint32_t k_most_operands = WEIR_OP_SOURCES + 1;

// --- Moments of op scopes, two for each: what such a scope costs is mostly reading a clock. Where
// only lengths are wanted, the processor's own counter is read, which takes a third of the time.

struct Stamps {
  bool ticks = false;  // they are the counter's, not nanoseconds
  uint64_t first_tick = 0, first_nanosecond = 0;
};

// It runs at one rate whatever the processor does, on all of its cores: AMD64 Architecture
// Programmer's Manual 3, Fn8000_0007 EDX bit 8 (Intel: SDM 3B, "Invariant TSC").
#if defined(__x86_64__)
inline bool has_steady_counter() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8U)) != 0;
}
inline uint64_t read_counter() { return __rdtsc(); }
#else
inline bool has_steady_counter() { return false; }
inline uint64_t read_counter() { return 0; }
#endif

inline Stamps begin_stamps(bool lengths_only) {
  Stamps stamps;
  if (!lengths_only || !has_steady_counter()) return stamps;
  stamps.ticks = true;
  stamps.first_nanosecond = now_nanoseconds();
  stamps.first_tick = read_counter();
  return stamps;
}

inline uint64_t stamp(const Stamps& stamps) {
  return __builtin_expect(stamps.ticks, 1) ? read_counter() : now_nanoseconds();
}

// Of one unit of a stamp, as it was from the beginning until now.
inline double nanoseconds_of(const Stamps& stamps) {
  if (!stamps.ticks) return 1;
  const uint64_t now = now_nanoseconds(), tick = read_counter();
  if (tick <= stamps.first_tick || now <= stamps.first_nanosecond) return 1;
  return static_cast<double>(now - stamps.first_nanosecond) /
         static_cast<double>(tick - stamps.first_tick);
}

// --- records

// A kind of op: name, device and operands. Made under the lock, then never changed but for
// `pending`.
struct Kind {
  uint64_t hash;
  uint64_t pending;  // what the boundary in progress found of it; under the lock
  Kind* next;        // of those with some
  weir_probe_op shape;
};

// One thread's count of a kind. Written by its thread, read by others.
struct KindRow {
  Kind* kind;
  uint64_t count;                   // atomic, as are the two below
  uint64_t total, most;             // in units of stamps, where timed
  uint64_t taken;                   // by the last boundary; under the lock, as are the two below
  uint64_t base_count, base_total;  // what there was when the tables were reset
};

constexpr uint32_t k_rows_of_chunk = 64;
struct KindChunk {
  KindRow rows[k_rows_of_chunk];
  uint32_t used;    // atomic
  KindChunk* next;  // atomic
};

// A name as it was first given here; kept for good.
struct Name {
  uint64_t hash;  // of name and place
  char text[sizeof weir_probe_kernel::name];
};

// What a name was last time, by where its text lies: programs pass the same literals over and over.
// The text itself is compared as well, since something else may stand there by now.
struct Seen {
  const char* text;
  uint64_t where;  // queue as the program says it (32 bits), or device and k_of_device
  const Name* name;
  weir_probe_kernel* kernel;  // of a queue
  weir_probe_queue* queue;
};
constexpr uint32_t k_seen = 256;
constexpr uint64_t k_of_device = uint64_t{1} << 40;

// An op scope that is open.
struct Scope {
  uint64_t hash;
  uint64_t begin;   // 0: not timed
  uint64_t waited;  // for devices so far, in units of stamps
  uint32_t device;
  int32_t layer;
  uint32_t operands;
  const Name* name;
  weir_probe_operand operand[k_most_operands];
};

struct Buffer;

struct Thread {
  Thread* next;
  uint32_t number;  // of the system
  uint32_t slot;
  uint32_t generation;  // 1 more in each forked process
  uint32_t left;        // atomic: stored when a mark is done
  uint64_t wait_began;  // a stamp; 0: nobody said
  Table rows;           // of one writer and reader: salted hashes: kernels, queues, kinds
  KindChunk first;
  KindChunk* last;
  uint32_t depth;  // of scopes, those beyond k_most_depth included
  uint32_t epoch;  // they are of: g.epoch
  Scope scopes[k_most_depth];
  Name unkept[k_most_depth];  // names of scopes that there is no room to keep
  Seen seen[k_seen];
  uint64_t buffer;     // this thread's command buffer; 0: none
  uint32_t in_buffer;  // dispatches in it so far
  Buffer* entries;     // for the dump; null: not kept
};

// A queue as declared. `submitted`: 0 nothing ever, 1 since the last sync, 2 nothing since.
struct Queue {
  uint32_t device;
  uint32_t index;
  uint32_t submitted;                  // atomic
  uint32_t row_of_slot[k_most_slots];  // 1 + index in the file; 0: none yet. Atomic
};

// What ties a device's ticks to the CPU's clock. Under the lock.
struct Clock {
  double tick;       // nanoseconds; 0: not known
  double told_tick;  // what the event file was told, which may be before it is known
  uint64_t cpu[2], ticks[2];
  uint32_t pairs;  // 0, 1, 2: the first and the latest
  bool told;       // the event file knows the tick
  bool used;       // times were taken by it
};

// Of a row of a table.
struct Timed {
  uint64_t calls, total, most;  // nanoseconds
};
struct Row {
  const char* name;
  Timed timed;
};

struct Globals : OwnFile {    // its lock is that of everything but what says otherwise
  bool attached = false;      // by weir: to a file
  bool timed = false;         // scopes ask the clock
  Stamps stamps = {};         // which one; set before `ready`
  uint32_t generation = 0;    // atomic
  Thread* threads = nullptr;  // those that are gone stay, for the next
  weir_probe_device devices[k_most_devices] = {};
  Queue queues[k_most_queues] = {};
  Clock clocks[k_most_devices] = {};
  uint32_t device_count = 0, queue_count = 0;  // atomic
  uint64_t tokens = 0;                         // boundaries so far; atomic
  uint64_t base_tokens = 0;                    // when the tables were reset; under the lock
  uint32_t epoch = 0;                          // 1 more each time that ops go on or off; atomic
};
extern Globals g;

// Not null; makes the file and the thread's record at its first mark.
Thread* enter();
#ifdef __APPLE__
#define WEIR_INITIAL_EXEC
#else
#define WEIR_INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#endif
extern __thread Thread* t_thread WEIR_INITIAL_EXEC;
inline Thread* self() {
  Thread* thread = t_thread;
  if (__builtin_expect(thread != nullptr &&
                           thread->generation == __atomic_load_n(&g.generation, __ATOMIC_RELAXED),
                       1)) {
    return thread;
  }
  return enter();
}

// One mark of this thread, to the end of its block: const auto [thread] = Mark(). Its end is what
// the thread that takes the record over later waits for.
struct Mark {
  Thread* thread = self();
  Mark() = default;
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { __atomic_store_n(&thread->left, 1, __ATOMIC_RELEASE); }
};

// The record of threads that there was no memory for: all of them share it, so nothing is kept
// there.
bool is_nobody(const Thread* thread);
// Under this key the thread finds `value` from now on. `shared`: further keys may lead there, and
// their number has no end; what has one always finds room.
inline void keep(Thread* thread, uint64_t key, void* value, bool shared = false) {
  constexpr uint32_t k_most_shared = 1U << 14;
  if (is_nobody(thread) || (shared && thread->rows.live() >= k_most_shared)) return;
  const KeepErrno keep;
  (void)thread->rows.insert(key, value);
}

// Under the lock, as are the two below.
void ensure_file();
// The devices of the file are those that were declared, in their order.
void fill_devices();
// An index into g.queues that is there, whatever the program says.
uint32_t checked_queue(uint32_t queue);
uint32_t checked_device(uint32_t device);
// The first row of a queue in the file: what events name.
uint32_t event_queue(uint32_t queue);
// The counters of `queue` that `thread` adds to.
weir_probe_queue* row_of(Thread* thread, uint32_t queue);

inline Seen* seen_at(Thread* thread, const char* text, uint64_t where) {
  const uint64_t mixed =
      (reinterpret_cast<uint64_t>(text) ^ (where << 48) ^ (where >> 20)) * 0x9e3779b97f4a7c15ULL;
  return &thread->seen[mixed >> 56];
}
inline bool is_seen(const Seen& seen, const char* text, uint64_t where) {
  return seen.text == text && seen.where == where && strcmp(seen.name->text, text) == 0;
}
// The name kept under a hash, made of `text` when it is not yet; null where there is no room for
// it.
const Name* stored_name(Thread* thread, uint64_t hash, const char* text);

uint64_t hash_text(const char* text, uint64_t salt);
// The first is spread before: hash_bytes() sees no more of two small numbers than what differs.
inline uint64_t mix(uint64_t a, uint64_t b) {
  return hash_bytes(a * 0x9e3779b97f4a7c15ULL, &b, sizeof b);
}

// ops.cpp; under the lock but for what is of a thread
void take_boundary(uint32_t rows);
// The wait of this thread ends, which is no time of the op that is open.
void wait_in_op(Thread* thread);
void forget_ops_after_fork();
void forget_op_times();
void dump_ops(int descriptor);
// buffers.cpp
void enter_dispatch(Thread* thread, uint32_t kernel, uint32_t x, uint32_t y, uint32_t z);
void enter_submit(uint32_t queue, uint64_t buffer);
void leave_buffer(Thread* thread);
void close_buffer(Thread* thread);  // under the lock, as are the four below
// Times of buffers that were begun since the one before are of an evaluation of so many tokens.
void end_evaluation_of_buffers(uint32_t rows);
void forget_buffers();
void reset_buffers();
void dump_buffers(int descriptor);
// switch.cpp
// The row of that name, made when there is none yet.
Row* row_named(Row* rows, uint32_t* used, const char* name);
// Those with the largest total first. `clock`: "CPU ms".
void print_rows(int descriptor, const char* what, const char* clock, Row* rows, uint32_t count);

}  // namespace weir_probe
