// Declarations that the parts of the instrument library share.
//
// Counts go to a probe file (and an event file) if WEIR_PROBE_DIR names a folder; else tables are
// printed to standard error. Both use the same structs in memory, which is a mapped file or not.
//
// A thread's marks go to a record of its own in thread-local storage. The thread finds its counters
// in a map that only it writes; only new names take the lock. Counters in the file are changed by
// atomic additions. Threads have rows of their own there (up to k_max_slots), so that they do not
// share a cache line.
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

// Declares the functions without their inline forms.
#define WEIR_NO_INLINE
#include "gate/probes/instrument/include/weir/instrument.h"

namespace weir_probe {

constexpr uint32_t k_max_devices = 16;
constexpr uint32_t k_max_queues = 64;
constexpr uint32_t k_max_slots = 4;  // k_max_queues * k_max_slots rows of queues
constexpr uint32_t k_max_kinds = 4096;
constexpr uint32_t k_max_graphs = 256;
constexpr uint32_t k_max_depth = 32;
constexpr uint32_t k_max_operands = WEIR_OP_SOURCES + 1;

// --- Stamps: times at which op scopes begin and end. Reading a clock is most of a scope's cost. If
// only lengths matter, the processor's counter is read, which takes a third of the time.

struct StampClock {
  bool ticks = false;  // stamps are the counter's ticks, not nanoseconds
  uint64_t first_tick = 0, first_nanosecond = 0;
};

// True if the counter has the same constant rate on all cores: AMD64 Architecture Programmer's
// Manual 3, Fn8000_0007 EDX bit 8 (Intel: SDM 3B, "Invariant TSC").
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

inline StampClock start_stamp_clock(bool lengths_only) {
  StampClock stamps;
  if (!lengths_only || !has_steady_counter()) return stamps;
  stamps.ticks = true;
  stamps.first_nanosecond = now_nanoseconds();
  stamps.first_tick = read_counter();
  return stamps;
}

inline uint64_t read_stamp(const StampClock& stamps) {
  return __builtin_expect(stamps.ticks, 1) ? read_counter() : now_nanoseconds();
}

// Nanoseconds of one unit of stamps, measured from the clock's start until now.
inline double nanoseconds_per_unit(const StampClock& stamps) {
  if (!stamps.ticks) return 1;
  const uint64_t now = now_nanoseconds(), tick = read_counter();
  if (tick <= stamps.first_tick || now <= stamps.first_nanosecond) return 1;
  return static_cast<double>(now - stamps.first_nanosecond) /
         static_cast<double>(tick - stamps.first_tick);
}

// --- Records.

// A kind of op: name, device and operands. Made under the lock; only `pending` and `next` change.
struct Kind {
  uint64_t hash;
  uint64_t pending;  // ops of this kind in the graph that is being closed; under the lock
  Kind* next;        // in the list of kinds with pending ops
  weir_probe_op shape;
};

// One thread's count of a kind. Written by its thread, read by others.
struct KindRow {
  Kind* kind;
  uint64_t count;              // atomic, as are the two below
  uint64_t total, longest;     // in units of stamps, where timed
  uint64_t count_at_boundary;  // `count` at the last boundary; under the lock, as are the two below
  uint64_t base_count, base_total;  // `count` and `total` when the tables were reset
};

constexpr uint32_t k_rows_of_chunk = 64;
struct KindChunk {
  KindRow rows[k_rows_of_chunk];
  uint32_t used;    // atomic
  KindChunk* next;  // atomic
};

// A copy of a name, never freed.
struct Name {
  uint64_t hash;  // name and owner
  char text[sizeof weir_probe_kernel::name];
};

// The result of the last look-up of a name, by the address of its text: programs pass the same
// literals again and again. The text is compared too, as the address may hold another one by now.
struct CachedName {
  const char* text;
  uint64_t owner;  // the program's number of a queue (32 bits), or a device and k_device_owner
  const Name* name;
  weir_probe_kernel* kernel;  // null for an owner that is a device
  weir_probe_queue* queue;
};
constexpr uint32_t k_cache_size = 256;
constexpr uint64_t k_device_owner = uint64_t{1} << 40;

// An op scope that is open.
struct Scope {
  uint64_t hash;
  uint64_t begin;   // 0: not timed
  uint64_t waited;  // time spent waiting for devices, in units of stamps
  uint32_t device;
  int32_t layer;
  uint32_t operands;
  const Name* name;
  weir_probe_operand operand[k_max_operands];
};

struct Buffer;

struct Thread {
  Thread* next;
  uint32_t number;  // the system's number
  uint32_t slot;
  uint32_t generation;  // 1 more in each forked process
  uint32_t published;   // atomic; stored at the end of each mark
  uint64_t wait_start;  // a stamp; 0: unknown
  Table rows;           // kernels, queues and kinds by salted hashes; used by the thread alone
  KindChunk first;
  KindChunk* last;
  uint32_t depth;  // number of open scopes, including those beyond k_max_depth
  uint32_t epoch;  // g.epoch when the scopes were opened
  Scope scopes[k_max_depth];
  Name temporary[k_max_depth];  // names of scopes that there is no room to store
  CachedName cache[k_cache_size];
  uint64_t buffer;          // this thread's command buffer; 0: none
  uint32_t in_buffer;       // dispatches in it so far
  Buffer* recorded_buffer;  // its record for the dump; null: none
};

// A declared queue. `submitted`: 0 nothing ever, 1 since the last sync, 2 nothing since.
struct Queue {
  uint32_t device;
  uint32_t index;
  uint32_t submitted;               // atomic
  uint32_t slot_rows[k_max_slots];  // 1 + index in the file; 0: none yet. Atomic
};

// Relates a device's ticks to the CPU's clock. Under the lock.
struct Clock {
  double tick;           // nanoseconds; 0: unknown
  double reported_tick;  // the tick in the event file, which may need one before it is known
  uint64_t cpu[2], ticks[2];
  uint32_t pairs;    // 0, 1, 2: the first and the latest
  bool is_reported;  // the first pair is in the event file
  bool used;         // times were converted with it
};

// Times of a row of a table; total and most in nanoseconds.
struct Times {
  uint64_t calls, total, longest;
};
struct Row {
  const char* name;
  Times timed;
};

struct Globals : OwnFile {    // its lock guards everything, unless a comment says otherwise
  bool is_run_by_weir = false;  // then counts go into a file
  bool timed = false;         // scopes are timed
  StampClock stamps = {};     // set before `ready`
  uint32_t generation = 0;    // atomic
  Thread* threads = nullptr;  // records of ended threads stay, for new ones
  weir_probe_device devices[k_max_devices] = {};
  Queue queues[k_max_queues] = {};
  Clock clocks[k_max_devices] = {};
  uint32_t device_count = 0, queue_count = 0;  // atomic
  uint64_t tokens = 0;                         // boundaries so far; atomic
  uint64_t base_tokens = 0;                    // when the tables were reset; under the lock
  uint32_t epoch = 0;                          // changes when ops are switched on or off; atomic
};
extern Globals g;

// Makes the file and the thread's record at its first mark. Never null.
Thread* attach_thread();
#ifdef __APPLE__
#define WEIR_INITIAL_EXEC
#else
#define WEIR_INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#endif
extern __thread Thread* t_thread WEIR_INITIAL_EXEC;
// The calling thread's record; never null.
inline Thread* current_thread() {
  Thread* thread = t_thread;
  if (__builtin_expect(thread != nullptr &&
                           thread->generation == __atomic_load_n(&g.generation, __ATOMIC_RELAXED),
                       1)) {
    return thread;
  }
  return attach_thread();
}

// Makes the file and a record for the calling thread if there are none.
inline void ensure_thread_record() { (void)current_thread(); }

// Access to the calling thread's record, up to the end of the block. Its end publishes the thread's
// writes to a thread that takes the record over later.
struct ThreadAccess {
  Thread* thread = current_thread();
  ThreadAccess() = default;
  ThreadAccess(const ThreadAccess&) = delete;
  ThreadAccess& operator=(const ThreadAccess&) = delete;
  ~ThreadAccess() { __atomic_store_n(&thread->published, 1, __ATOMIC_RELEASE); }
};

// True for the record that threads share if there was no memory for their own. Nothing is stored in
// it.
bool is_fallback(const Thread* thread);
// Stores `value` under a key of the thread's map. `shared`: any number of keys may lead to the
// value, so they are limited; other keys always find room.
inline void remember(Thread* thread, uint64_t key, void* value, bool shared = false) {
  constexpr uint32_t k_max_shared_rows = 1U << 14;
  if (is_fallback(thread) || (shared && thread->rows.live() >= k_max_shared_rows)) return;
  const KeepErrno keep;
  (void)thread->rows.insert(key, value);
}

// Makes the file if there is none. Needs the lock.
void ensure_file();
// Copies devices declared since to the file. Needs the lock.
void fill_devices();
// Returns a valid index into g.queues, whatever number the program passes.
uint32_t checked_queue(uint32_t queue);
uint32_t checked_device(uint32_t device);
// The queue's first row in the file, by which events refer to it.
uint32_t event_queue(uint32_t queue);
// The counters of the queue that this thread adds to.
weir_probe_queue* queue_counters(Thread* thread, uint32_t queue);

inline CachedName* cache_slot(Thread* thread, const char* text, uint64_t owner) {
  const uint64_t mixed =
      (reinterpret_cast<uint64_t>(text) ^ (owner << 48) ^ (owner >> 20)) * 0x9e3779b97f4a7c15ULL;
  return &thread->cache[mixed >> 56];
}
inline bool is_cached(const CachedName& entry, const char* text, uint64_t owner) {
  return entry.text == text && entry.owner == owner && strcmp(entry.name->text, text) == 0;
}
// The stored name with this hash; stores a copy of `text` if there is none. Null without room.
const Name* intern_name(Thread* thread, uint64_t hash, const char* text);

uint64_t hash_text(const char* text, uint64_t salt);
// Mixes two numbers. The first is spread over all bits, as hash_bytes() alone would mix small ones
// poorly.
inline uint64_t mix(uint64_t a, uint64_t b) {
  return hash_bytes(a * 0x9e3779b97f4a7c15ULL, &b, sizeof b);
}

// ops.cpp; functions without a thread need the lock
// Counts all ops since the last call as one graph of `rows` rows.
void close_graph(uint32_t rows);
// Takes the wait that ends now out of the time of the thread's innermost op.
void exclude_wait_from_op(Thread* thread);
void forget_ops_after_fork();
void reset_op_times();
void dump_ops(int descriptor);
// buffers.cpp
void record_dispatch(Thread* thread, uint32_t kernel, uint32_t x, uint32_t y, uint32_t z);
void record_submit(uint32_t queue, uint64_t buffer);
void leave_buffer(Thread* thread);
void close_buffer(Thread* thread);  // needs the lock, as do the four below
// Assigns the times of buffers that began since the last call to an evaluation of `rows` tokens.
void end_evaluation_of_buffers(uint32_t rows);
void forget_buffers();
void reset_buffers();
void dump_buffers(int descriptor);
// switch.cpp
// Finds the row with that name, or appends one.
Row* find_table_row(Row* rows, uint32_t* used, const char* name);
// Prints a table with the largest totals first. `title`: of the first column; `clock`: "CPU ms".
void print_rows(int descriptor, const char* title, const char* clock, Row* rows, uint32_t count);

}  // namespace weir_probe
