// The writing side of the probe file (gate/probes/format.h), for every probe.
//
// Never fails for the caller: where the file cannot be made, one line goes to stderr and the same
// memory is anonymous, so a probe counts into nothing without asking. No C++ runtime, no lock: the
// caller holds its own around everything but add().
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/probes/format.h"
#include "gate/probes/hash.h"

// Marks a function that the library exports.
#define WEIR_EXPORTED extern "C" __attribute__((visibility("default")))

namespace weir_probe {

// The number of entries of each kind that a probe has room for; a kind with none has no section.
struct Capacity {
  uint32_t devices = 0;
  uint32_t queues = 0;
  uint32_t kernels = 0;
  uint32_t counters = 0;
  uint32_t ops = 0;
  uint32_t graphs = 0;
  uint32_t transfers = 0;
  uint32_t launches = 0;
  uint32_t codes = 0;
  uint32_t steps = 0;
  uint32_t names = 0;
  uint32_t reads = 0;
  uint32_t functions = 0;
  uint32_t commands = 1;
};
// The room that a probe of a device API needs.
constexpr Capacity k_device_capacity{16, 128, 4096, 0, 0, 0, 0, 0};

struct File {
  struct weir_probe_header* header;  // never null after open_file
  struct weir_probe_device* devices;
  struct weir_probe_queue* queues;
  struct weir_probe_kernel* kernels;
  struct weir_probe_named_counter* counters;
  struct weir_probe_op* ops;
  struct weir_probe_graph* graphs;
  struct weir_probe_transfer* transfers;
  struct weir_probe_launch* launches;
  struct weir_probe_code* codes;
  struct weir_probe_step* steps;
  struct weir_probe_name* names;
  struct weir_probe_read* reads;
  struct weir_probe_function* functions;
  struct weir_probe_command* commands;
  bool has_disk_file;  // mapped from a file; else the counts end with the process
  char stem[64];       // the file's name without its ending; "" when there is none
};

// Makes the file of this process for `probe`, in the folder named by WEIR_PROBE_DIR.
void open_file(File* file, const char* probe, const Capacity& capacity = k_device_capacity);

// Does the same without a file and without complaints, in memory of this process alone.
void open_memory(File* file, const char* probe, const Capacity& capacity);
// Records the process's command line as it is now: a process may name itself anew.
void name_process(File* file);
// Sets every count to 0. Counts made meanwhile may be lost.
void clear_counts(File* file);

// The amount of something in use now, and its maximum so far. Its owner holds a lock; only `now` is
// read without.
struct Level {
  uint64_t now, peak;

  // Adds `bytes` and returns by how much that raised the maximum.
  uint64_t rise(uint64_t bytes) {
    const uint64_t before = peak;
    __atomic_store_n(&now, now + bytes, __ATOMIC_RELAXED);
    if (now > peak) peak = now;
    return peak - before;
  }
  void fall(uint64_t bytes) {
    __atomic_store_n(&now, now - (bytes < now ? bytes : now), __ATOMIC_RELAXED);
  }
};

// The file of this process, and its lock. A library has one.
struct OwnFile {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards the file's tables
  File file = {};
  bool ready = false;  // atomic: the file is made, and this process's own
  uint32_t flags = 0;  // atomic: of the file, also before it is made
};
inline bool is_ready(const OwnFile& own) { return __atomic_load_n(&own.ready, __ATOMIC_ACQUIRE); }
// Makes the file with `open`, once. Call it under the lock, before the first count of a process. In
// a forked process the same addresses hold memory of its own with all counts at 0, and the locks of
// the file and of handle tables are free; then `in_child` is called (async-signal-safe). The next
// ensure_initialized there creates its file, and calls `renew` for further files.
void ensure_initialized(
    OwnFile* own, void (*open)(), void (*in_child)() = [] {},
    void (*renew)(const File&) = [](const File&) {});
// Sets a flag of the file, now or as soon as it is made. True for the first time.
bool raise_flag(OwnFile* own, uint32_t flag);

// A second file of the same process, with the same name but another ending, that grows. No
// descriptor of it stays open: the program might close it and get the number for another file.
struct SideFile {
  uint64_t inode;  // so that another file of the same name is never taken for it
  char path[4096];
};
// Creates the file with `bytes` zero bytes and returns their mapping. Null on failure, with errno
// set to the reason or 0.
void* create_side_file(const File& file, const char* suffix, size_t bytes, SideFile* out);
// Returns a descriptor for the file, for the caller to close; -1 with errno set.
int reopen_side_file(const SideFile& beside);
// Reads a number of MiB from the environment, at most `limit`, and returns it in bytes; 0: none
// set.
uint64_t read_mebibytes(const char* variable, uint64_t limit);

// Add an entry and return its index; without room, the index of the last entry, which is shared.
uint32_t add_device(File* file, const struct weir_probe_device& device);
uint32_t add_queue(File* file, uint32_t device, uint32_t family, uint32_t index, uint32_t flags);
// Returns the index of the kernel (device, hash, named), adding it if it is new; 0 without room.
uint32_t kernel_index(File* file, uint32_t device, uint64_t hash, bool named, const char* name,
                      const char* entry_point);
// Does the same for a kernel that is identified by its name alone; entry 0 where it has none.
uint32_t find_or_add_named_kernel(File* file, uint32_t device, const char* name);
// Adds a counter and returns its value, to be changed by add(). Requires room: a probe knows its
// counters.
uint64_t* add_counter(File* file, const char* name);

// Returns the section of a kind, or null where the probe asked for no room.
struct weir_probe_section* find_section(const File* file, uint32_t kind);
// Publishes the entry at `used`, which the caller has filled, and returns its index.
inline uint32_t publish_entry(struct weir_probe_section* section) {
  const uint32_t index = section->used;
  __atomic_store_n(&section->used, index + 1, __ATOMIC_RELEASE);
  return index;
}

void set_flag(File* file, uint32_t flag);
// Returns true if there is room for one entry more; else sets `flag` in the file.
inline bool has_room(File* file, const struct weir_probe_section* section, uint32_t flag) {
  if (section->used < section->capacity) return true;
  set_flag(file, flag);
  return false;
}
// Copies `from` (null is "") as far as it fits, and ends it with 0. True if all of it fitted.
bool copy_text(char* to, size_t size, const char* from);
// Prints a line on standard error: why `probe` does not count, in one text or with the place of the
// failure (a path) after it. `place` may be "". `error` is an errno or 0.
void report_not_counting(const char* probe, const char* reason, const char* place, int error);

inline void add(uint64_t* counter, uint64_t amount) {
  __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

// Counts a sync of a queue if anything was submitted since the last one counted; then returns true.
// `Queue` has `entry` and `pending` (atomic).
template <class Queue>
bool count_sync(Queue* queue) {
  if (__atomic_load_n(&queue->pending, __ATOMIC_ACQUIRE) == 0 ||
      __atomic_exchange_n(&queue->pending, 0, __ATOMIC_ACQ_REL) == 0) {
    return false;
  }
  add(&queue->entry->counters[WEIR_COUNT_SYNCS], 1);
  return true;
}

uint64_t hash_text(const char* text);
// Hashes a device's features, value by value. `recipe` is to be raised when the set of values
// changes, as a new hash is a new device class.
class Hash {
 public:
  explicit Hash(uint64_t recipe) : hash_(k_hash_seed ^ recipe) {}
  void value(uint64_t v) { bytes(&v, sizeof v); }
  void bytes(const void* from, size_t size) { hash_ = hash_bytes(hash_, from, size); }
  [[nodiscard]] uint64_t get() const { return hash_; }

 private:
  uint64_t hash_;
};
inline uint32_t folded(uint64_t hash) { return static_cast<uint32_t>(hash ^ (hash >> 32)); }

}  // namespace weir_probe
