// The writing side of the probe file (gate/probes/format.h), for every probe.
//
// Never fails for the caller: where the file cannot be made, one line goes to stderr and the same
// memory is anonymous, so a probe counts into nothing without asking. No C++ runtime, no lock: the
// caller holds its own around everything but add().
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gate/probes/format.h"

namespace weir_probe {

struct File {
  struct weir_probe_header* header;  // never null after open_file
  struct weir_probe_device* devices;
  struct weir_probe_queue* queues;
  struct weir_probe_kernel* kernels;
  bool backed;  // by a file; else the counts end with the process
};

// Makes the file of this process for `probe`, in the folder named by WEIR_PROBE_DIR.
void open_file(File* file, const char* probe);

// To be called in a child process after fork: from here on the same addresses hold memory of its
// own with all counts at 0. Its file is made by the next make_forked_file (async-signal-safe).
void detach_after_fork(File* file);
// Gives a forked process its file. Does nothing in others.
void make_forked_file(File* file);

// The index of a fresh entry, or the one that takes what no longer fits.
uint32_t add_device(File* file, const struct weir_probe_device& device);
uint32_t add_queue(File* file, uint32_t device, uint32_t family, uint32_t index, uint32_t flags);
// Finds or makes the entry of (device, hash, named).
uint32_t kernel_entry(File* file, uint32_t device, uint64_t hash, bool named, const char* name,
                      const char* entry_point);

void set_flag(File* file, uint32_t flag);
// Copies what fits, ends in 0. True when all of it fitted.
bool copy_text(char* to, size_t size, const char* from);

inline void add(uint64_t* counter, uint64_t amount) {
  __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

// A mixing hash, eight bytes a step: the same on every little-endian machine. Not a defence.
uint64_t hash_bytes(uint64_t seed, const void* bytes, size_t size);
constexpr uint64_t k_hash_seed = 0xcbf29ce484222325ULL;

}  // namespace weir_probe
