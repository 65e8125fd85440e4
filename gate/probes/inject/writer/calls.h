// Look-ups of file entries that several probes share: graphs, code, launches and transfers.
#pragma once

#include <pthread.h>
#include <string.h>

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

namespace weir_probe {

// Marks the outermost of nested API calls by its stack frame, as calls that an API makes itself are
// part of the outer one. A frame and not a depth: an exception passes through here without running
// destructors, which would need a C++ runtime. The next call from as far up the stack then finds
// the mark out of date.
class OutermostCall {
 public:
  // `mark`: one of this thread's.
  OutermostCall(const char** mark, void* frame) : mark_(mark) {
    const char* here = static_cast<const char*>(frame);
    is_outermost_ = *mark == nullptr || here >= *mark;
    if (is_outermost_) *mark = here;
  }
  ~OutermostCall() {
    if (is_outermost_) *mark_ = nullptr;
  }
  OutermostCall(const OutermostCall&) = delete;
  OutermostCall& operator=(const OutermostCall&) = delete;
  [[nodiscard]] bool is_outermost() const { return is_outermost_; }

 private:
  const char** mark_;
  bool is_outermost_;
};

// Returns the entry for `key` in the section `kind` with `entries`: from `table`, or a copy of
// `fresh` added to both. Without room it is the first entry, and `flag` is set. Under the lock of
// the file's tables.
template <class Entry>
Entry* find_or_add_entry(File* file, uint32_t kind, Entry* entries, Table* table, uint64_t key,
                         const Entry& fresh, uint32_t flag) {
  if (auto* stored = table->get<Entry>(key)) return stored;
  weir_probe_section* section = find_section(file, kind);
  // Such keys are not added to the table: an endless number would fill the memory.
  if (!has_room(file, section, flag)) return &entries[0];
  Entry* entry = &entries[section->used];
  *entry = fresh;  // complete before another thread can find it
  if (!table->insert(key, entry)) {
    set_flag(file, flag);
    return &entries[0];
  }
  publish_entry(section);
  return entry;
}

// Returns the index of a graph's entry, adding it if it is new; 0 where there is no room.
inline uint32_t graph_index(File* file, Table* table, const weir_probe_graph& fresh) {
  return static_cast<uint32_t>(find_or_add_entry(file, WEIR_SECTION_GRAPHS, file->graphs, table,
                                                 fresh.hash, fresh, WEIR_PROBE_GRAPHS_OVERFLOWED) -
                               file->graphs);
}

// Returns the number of groups of a launch, partial ones at the ends included; 0 if the driver
// decides.
inline uint64_t group_count(const weir_probe_launch& launch) {
  uint64_t groups = 1;
  for (int i = 0; i < 3; ++i) {
    const uint64_t local = launch.local[i];
    groups *= local == 0 ? 0 : launch.global[i] / local + (launch.global[i] % local != 0);
  }
  return groups;
}

// Entries of code by kernel; an entry that exists is found without a lock. The file must have room
// for codes.
class Codes {
 public:
  // Adds `dispatches` with `groups` in all to the entry of `kernel` with code `hash`, and returns
  // it, or the first entry without room. Negative numbers (modulo 2^64) undo a count. Takes `lock`,
  // which guards the file's tables, for a new entry.
  weir_probe_code* count(File* file, pthread_mutex_t* lock, uint32_t kernel, uint64_t hash,
                         uint64_t dispatches, uint64_t groups) {
    weir_probe_code* entry = find_or_add(file, lock, kernel, hash);
    add(&entry->dispatches, dispatches);
    add(&entry->groups, groups);
    return entry;
  }
  // Returns the entry without counting. Never null.
  weir_probe_code* find_or_add(File* file, pthread_mutex_t* lock, uint32_t kernel, uint64_t hash) {
    const uint64_t key = hash_bytes(hash, &kernel, sizeof kernel);
    if (auto* stored = entries_.get<weir_probe_code>(key)) return stored;
    const Locked locked(lock);
    return find_or_add_entry(file, WEIR_SECTION_CODES, file->codes, &entries_, key,
                             weir_probe_code{hash, 0, 0, kernel, 0, {}},
                             WEIR_PROBE_CODES_OVERFLOWED);
  }

 private:
  Table entries_;
};

// Entries of launches by kernel and sizes; an entry that exists is found without a lock. The file
// must have room for launches.
class Launches {
 public:
  // Counts `launch`, whose own count is 0. Takes `lock`, which guards the file's tables, for a new
  // entry. True for the first one.
  bool count(File* file, pthread_mutex_t* lock, const weir_probe_launch& launch) {
    return __atomic_fetch_add(&find_or_add(file, lock, launch)->count, 1, __ATOMIC_RELAXED) == 0;
  }
  // Returns the entry without counting. Never null.
  weir_probe_launch* find_or_add(File* file, pthread_mutex_t* lock,
                                 const weir_probe_launch& launch) {
    const uint64_t key = hash_bytes(k_hash_seed, &launch, sizeof launch);
    if (auto* stored = entries_.get<weir_probe_launch>(key)) return stored;
    const Locked locked(lock);
    return find_or_add_entry(file, WEIR_SECTION_LAUNCHES, file->launches, &entries_, key, launch,
                             WEIR_PROBE_LAUNCHES_OVERFLOWED);
  }

 private:
  Table entries_;
};

inline bool is_same_kind(const weir_probe_transfer& a, const weir_probe_transfer& b) {
  return a.kind == b.kind && strcmp(a.from, b.from) == 0 && strcmp(a.to, b.to) == 0;
}
inline bool is_same_kind(const weir_probe_read& a, const weir_probe_read& b) {
  return a.kernel == b.kernel && a.bytes == b.bytes;
}

// Returns the entry of the same kind, or null.
template <class Entry>
Entry* find_same_kind(Entry* entries, const weir_probe_section& section, const Entry& wanted) {
  const uint32_t used = __atomic_load_n(&section.used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used; ++i) {
    if (is_same_kind(entries[i], wanted)) return &entries[i];
  }
  return nullptr;
}

// Returns the entry of the same kind, adding it if it is new; the last one where there is no room.
// Takes `lock`, which guards the file's tables, for a new entry.
template <class Entry>
Entry* find_or_add_same_kind(File* file, pthread_mutex_t* lock, uint32_t section_kind,
                             Entry* entries, const Entry& wanted) {
  weir_probe_section* section = find_section(file, section_kind);
  if (Entry* entry = find_same_kind(entries, *section, wanted)) return entry;
  const Locked locked(lock);
  if (Entry* entry = find_same_kind(entries, *section, wanted)) return entry;
  if (!has_room(file, section, WEIR_PROBE_TRANSFERS_OVERFLOWED)) {
    return &entries[section->capacity - 1];
  }
  entries[section->used] = wanted;
  return &entries[publish_entry(section)];
}
inline weir_probe_transfer* find_or_add_transfer(File* file, pthread_mutex_t* lock,
                                                 const weir_probe_transfer& transfer) {
  return find_or_add_same_kind(file, lock, WEIR_SECTION_TRANSFERS, file->transfers, transfer);
}
inline weir_probe_read* find_or_add_read(File* file, pthread_mutex_t* lock,
                                         const weir_probe_read& read) {
  return find_or_add_same_kind(file, lock, WEIR_SECTION_READS, file->reads, read);
}

}  // namespace weir_probe
