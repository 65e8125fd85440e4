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

// What the library shows to others.
#define WEIR_EXPORTED extern "C" __attribute__((visibility("default")))

namespace weir_probe {

// How many entries of each kind a probe has room for; a kind with none has no section.
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
};
// What a probe of a device API needs.
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
  bool backed;    // by a file; else the counts end with the process
  char stem[64];  // the file's name without its ending; "" when there is none
};

// Makes the file of this process for `probe`, in the folder named by WEIR_PROBE_DIR.
void open_file(File* file, const char* probe, const Capacity& capacity = k_device_capacity);

// The same without a file and without a word: memory of this process alone.
void open_memory(File* file, const char* probe, const Capacity& capacity);
// Every count 0. Nobody may count meanwhile, or what they count may be lost.
void clear_counts(File* file);

// How much of something is taken now, and the most that was at once. Its owner holds a lock; `now`
// alone is read without.
struct Level {
  uint64_t now, most;

  // By how much there is more than ever before.
  uint64_t rise(uint64_t bytes) {
    const uint64_t before = most;
    __atomic_store_n(&now, now + bytes, __ATOMIC_RELAXED);
    if (now > most) most = now;
    return most - before;
  }
  void fall(uint64_t bytes) {
    __atomic_store_n(&now, now - (bytes < now ? bytes : now), __ATOMIC_RELAXED);
  }
};

// The file of this process, and its lock. A library has one.
struct OwnFile {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of the file's tables
  File file = {};
  bool ready = false;  // atomic: the file is made, and this process's own
  uint32_t flags = 0;  // atomic: of the file, also before it is made
};
inline bool is_ready(const OwnFile& own) { return __atomic_load_n(&own.ready, __ATOMIC_ACQUIRE); }
// Under its lock, before the first count of a process. `open` makes the file, once. In a forked
// process the same addresses hold memory of its own with all counts at 0, and the locks of the file
// and of handle tables are free; then `in_child` is called (async-signal-safe). The next make_ready
// there gives it a file, and calls `renew` for what else it needs.
void make_ready(
    OwnFile* own, void (*open)(), void (*in_child)() = [] {},
    void (*renew)(const File&) = [](const File&) {});
// Sets a flag of the file, now or as soon as it is made. True for the first time.
bool tell_flag(OwnFile* own, uint32_t flag);

// A second file of the same process and name, `suffix` for ending, that grows. No descriptor of it
// is kept open: the program might close that, and it stand for something else by then.
struct Beside {
  uint64_t inode;  // so that another file of the same name is never taken for it
  char path[4096];
};
// Makes it, with `bytes` in which nothing is written yet; their mapping. Null with errno set, or 0
// where that tells nothing.
void* make_beside(const File& file, const char* suffix, size_t bytes, Beside* out);
// A descriptor for it, which the caller closes; -1 with errno set.
int reopen(const Beside& beside);
// A number of MiB in the environment, in bytes, at most `most` of them; 0: none asked for.
uint64_t mebibytes_asked(const char* variable, uint64_t most);

// The index of a fresh entry, or the one that takes what no longer fits.
uint32_t add_device(File* file, const struct weir_probe_device& device);
uint32_t add_queue(File* file, uint32_t device, uint32_t family, uint32_t index, uint32_t flags);
// Finds or makes the entry of (device, hash, named).
uint32_t kernel_entry(File* file, uint32_t device, uint64_t hash, bool named, const char* name,
                      const char* entry_point);
// That of a kernel which is known by its name alone; entry 0 where it has none.
uint32_t named_kernel(File* file, uint32_t device, const char* name);
// The value of a fresh counter, to be changed by add(). Requires room: a probe knows its counters.
uint64_t* add_counter(File* file, const char* name);

// The section of a kind, or null where the probe asked for no room.
struct weir_probe_section* section_of(const File* file, uint32_t kind);
// Makes the entry at `used` visible, which the caller has filled; its index.
inline uint32_t raise_used(struct weir_probe_section* section) {
  const uint32_t index = section->used;
  __atomic_store_n(&section->used, index + 1, __ATOMIC_RELEASE);
  return index;
}

void set_flag(File* file, uint32_t flag);
// Room for one entry more? Where there is none `flag` says so in the file.
inline bool has_room(File* file, const struct weir_probe_section* section, uint32_t flag) {
  if (section->used < section->capacity) return true;
  set_flag(file, flag);
  return false;
}
// Copies what fits, ends in 0; null is "". True when all of it fitted.
bool copy_text(char* to, size_t size, const char* from);
// One line on standard error: why `probe` is not, or not fully, counting. `error` is an errno or 0.
void complain(const char* probe, const char* what, const char* where, int error);

inline void add(uint64_t* counter, uint64_t amount) {
  __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

// Of a record of a queue, which has its entry and `pending` (atomic): counts a sync when something
// was handed over since the last one counted. True when it was.
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
// The hash of a device's features, value by value. `recipe`: to be raised when what goes into it
// changes, as a new hash is a new class.
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
