// Entries of the file that several probes look up alike: kernels by the sizes that they were
// launched with, and where bytes went.
#pragma once

#include <pthread.h>
#include <string.h>

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

namespace weir_probe {

// Marks the outermost of nested calls by its frame: what an API calls from within one of its own is
// part of that. A frame and not a depth, because an exception passes through here without running
// destructors (they would need a C++ runtime): the next call from as far up the stack finds the
// mark out of date.
class Within {
 public:
  // `mark`: of this thread.
  Within(const char** mark, void* frame) : mark_(mark) {
    const char* here = static_cast<const char*>(frame);
    outermost_ = *mark == nullptr || here >= *mark;
    if (outermost_) *mark = here;
  }
  ~Within() {
    if (outermost_) *mark_ = nullptr;
  }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  [[nodiscard]] bool outermost() const { return outermost_; }

 private:
  const char** mark_;
  bool outermost_;
};

// Found without a lock once known. The file must have room for launches.
class Launches {
 public:
  // `launch` with its count 0. Takes `lock`, which guards the file's tables.
  void count(File* file, pthread_mutex_t* lock, const weir_probe_launch& launch) {
    add(&entry_of(file, lock, launch)->count, 1);
  }
  // The entry alone, for what will count later. Never null.
  weir_probe_launch* entry_of(File* file, pthread_mutex_t* lock, const weir_probe_launch& launch) {
    const uint64_t key = hash_bytes(k_hash_seed, &launch, sizeof launch);
    auto* entry = entries_.get<weir_probe_launch>(key);
    if (entry == nullptr) {
      pthread_mutex_lock(lock);
      entry = entries_.get<weir_probe_launch>(key);
      if (entry == nullptr) entry = make(file, key, launch);
      pthread_mutex_unlock(lock);
    }
    return entry;
  }

 private:
  weir_probe_launch* make(File* file, uint64_t key, const weir_probe_launch& launch) {
    weir_probe_section* section = section_of(file, WEIR_SECTION_LAUNCHES);
    // Not kept in the table: what never ends would fill the memory.
    if (!has_room(file, section, WEIR_PROBE_LAUNCHES_OVERFLOWED)) return &file->launches[0];
    weir_probe_launch* entry = &file->launches[section->used];
    *entry = launch;  // whole before another thread can find it
    if (!entries_.insert(key, entry)) {
      set_flag(file, WEIR_PROBE_LAUNCHES_OVERFLOWED);
      return &file->launches[0];
    }
    raise_used(section);
    return entry;
  }

  Table entries_;
};

// The entry of `wanted`'s kind and ends, made where there is none yet, or the last one where there
// is no room. Takes `lock`, which guards the file's tables, for what is new.
inline weir_probe_transfer* transfer_entry(File* file, pthread_mutex_t* lock,
                                           const weir_probe_transfer& wanted) {
  weir_probe_section* section = section_of(file, WEIR_SECTION_TRANSFERS);
  const auto search = [&]() -> weir_probe_transfer* {
    const uint32_t used = __atomic_load_n(&section->used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used; ++i) {
      weir_probe_transfer* known = &file->transfers[i];
      if (known->kind == wanted.kind && strcmp(known->from, wanted.from) == 0 &&
          strcmp(known->to, wanted.to) == 0) {
        return known;
      }
    }
    return nullptr;
  };
  if (weir_probe_transfer* known = search()) return known;
  pthread_mutex_lock(lock);
  weir_probe_transfer* entry = search();
  if (entry == nullptr && !has_room(file, section, WEIR_PROBE_TRANSFERS_OVERFLOWED)) {
    entry = &file->transfers[section->capacity - 1];
  } else if (entry == nullptr) {
    entry = &file->transfers[section->used];
    *entry = wanted;
    raise_used(section);
  }
  pthread_mutex_unlock(lock);
  return entry;
}

}  // namespace weir_probe
