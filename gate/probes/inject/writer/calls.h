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

// The entry of `key` among `entries` of that kind: the one that `known` has, or one made of
// `fresh`; the first, which `flag` then says, where there is no room. Under the lock of the file's
// tables.
template <class Entry>
Entry* keyed_entry(File* file, uint32_t kind, Entry* entries, Table* known, uint64_t key,
                   const Entry& fresh, uint32_t flag) {
  if (auto* found = known->get<Entry>(key)) return found;
  weir_probe_section* section = section_of(file, kind);
  // Not kept in the table: what never ends would fill the memory.
  if (!has_room(file, section, flag)) return &entries[0];
  Entry* entry = &entries[section->used];
  *entry = fresh;  // whole before another thread can find it
  if (!known->insert(key, entry)) {
    set_flag(file, flag);
    return &entries[0];
  }
  raise_used(section);
  return entry;
}

// The index of a graph's entry; 0 is that of graphs for which there is no room.
inline uint32_t graph_index(File* file, Table* known, const weir_probe_graph& fresh) {
  return static_cast<uint32_t>(keyed_entry(file, WEIR_SECTION_GRAPHS, file->graphs, known,
                                           fresh.hash, fresh, WEIR_PROBE_GRAPHS_OVERFLOWED) -
                               file->graphs);
}

// Groups of a launch, the last of each dimension maybe a smaller one; 0 where the driver decides.
inline uint64_t groups_of(const weir_probe_launch& launch) {
  uint64_t groups = 1;
  for (int i = 0; i < 3; ++i) {
    const uint64_t local = launch.local[i];
    groups *= local == 0 ? 0 : launch.global[i] / local + (launch.global[i] % local != 0);
  }
  return groups;
}

// Code by kernel, found without a lock once known. The file must have room for codes.
class Codes {
 public:
  // `dispatches` of `hash` as `kernel`, with `groups` in all; its entry, or the first. Takes
  // `lock`, which guards the file's tables, for what is new. Numbers below 0 take back what was
  // counted.
  weir_probe_code* count(File* file, pthread_mutex_t* lock, uint32_t kernel, uint64_t hash,
                         uint64_t dispatches, uint64_t groups) {
    weir_probe_code* entry = entry_of(file, lock, kernel, hash);
    add(&entry->dispatches, dispatches);
    add(&entry->groups, groups);
    return entry;
  }
  // The entry alone, for what will count later. Never null.
  weir_probe_code* entry_of(File* file, pthread_mutex_t* lock, uint32_t kernel, uint64_t hash) {
    const uint64_t key = hash_bytes(hash, &kernel, sizeof kernel);
    if (auto* known = entries_.get<weir_probe_code>(key)) return known;
    const Locked locked(lock);
    return keyed_entry(file, WEIR_SECTION_CODES, file->codes, &entries_, key,
                       weir_probe_code{hash, 0, 0, kernel, 0, {}}, WEIR_PROBE_CODES_OVERFLOWED);
  }

 private:
  Table entries_;
};

// Found without a lock once known. The file must have room for launches.
class Launches {
 public:
  // `launch` with its count 0. Takes `lock`, which guards the file's tables. True for the first.
  bool count(File* file, pthread_mutex_t* lock, const weir_probe_launch& launch) {
    return __atomic_fetch_add(&entry_of(file, lock, launch)->count, 1, __ATOMIC_RELAXED) == 0;
  }
  // The entry alone, for what will count later. Never null.
  weir_probe_launch* entry_of(File* file, pthread_mutex_t* lock, const weir_probe_launch& launch) {
    const uint64_t key = hash_bytes(k_hash_seed, &launch, sizeof launch);
    if (auto* known = entries_.get<weir_probe_launch>(key)) return known;
    const Locked locked(lock);
    return keyed_entry(file, WEIR_SECTION_LAUNCHES, file->launches, &entries_, key, launch,
                       WEIR_PROBE_LAUNCHES_OVERFLOWED);
  }

 private:
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
  const Locked locked(lock);
  if (weir_probe_transfer* known = search()) return known;
  if (!has_room(file, section, WEIR_PROBE_TRANSFERS_OVERFLOWED)) {
    return &file->transfers[section->capacity - 1];
  }
  file->transfers[section->used] = wanted;
  return &file->transfers[raise_used(section)];
}

}  // namespace weir_probe
