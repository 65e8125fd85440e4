// Handle -> pointer, found without a lock; arrays that grow and lists.
//
// The recording of commands asks it a million times a second, so find() takes no lock: it is right
// for handles whose creation happened before the call and that nobody removes during it, which is
// what Vulkan asks of programs anyway. insert() and remove() take the lock of all tables.
//
// Open addressing, at most half full. A table that was outgrown is kept, since a reader may still
// be in it: together they are smaller than the newest one. No C++ runtime, no allocation in find().
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

namespace weir_probe {

// The key under which a table finds a handle or an address.
inline uint64_t address_key(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// Holds a lock to the end of its block.
class Locked {
 public:
  explicit Locked(pthread_mutex_t* lock) : lock_(lock) { pthread_mutex_lock(lock_); }
  ~Locked() { pthread_mutex_unlock(lock_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t* lock_;
};

// Runs `make` once in a process; pthread_once is another symbol on newer systems.
class Once {
 public:
  void run(void (*make)()) {
    if (__atomic_load_n(&done_, __ATOMIC_ACQUIRE)) return;
    const Locked locked(&lock_);
    if (done_) return;
    make();
    __atomic_store_n(&done_, true, __ATOMIC_RELEASE);
  }

 private:
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  bool done_ = false;
};

class Table {
 public:
  // Null when `handle` is not in it.
  [[nodiscard]] void* find(uint64_t handle) const {
    const Slots* slots = __atomic_load_n(&slots_, __ATOMIC_ACQUIRE);
    const uint64_t key = handle + 1;
    if (slots == nullptr || key <= k_removed) return nullptr;
    for (uint32_t at = place(slots, key);; at = (at + 1) & slots->mask) {
      const uint64_t seen = __atomic_load_n(&slots->slot[at].key, __ATOMIC_ACQUIRE);
      if (seen == key) return __atomic_load_n(&slots->slot[at].value, __ATOMIC_RELAXED);
      if (seen == k_empty) return nullptr;
    }
  }
  template <class T>
  [[nodiscard]] T* get(uint64_t handle) const {
    return static_cast<T*>(find(handle));
  }
  // Replaces what is there. False when memory is out; the handle is then unknown.
  bool insert(uint64_t handle, void* value) {
    const Locked locked(&lock_);
    const uint64_t key = handle + 1;
    if (key <= k_removed) return false;
    if (slots_ == nullptr || (filled_ + 1) * 2 > slots_->mask + 1) {
      if (!rebuild()) return false;
    }
    Slot* free_slot = nullptr;
    uint32_t at = place(slots_, key);
    for (;; at = (at + 1) & slots_->mask) {
      Slot& slot = slots_->slot[at];
      if (slot.key == key) {
        __atomic_store_n(&slot.value, value, __ATOMIC_RELEASE);
        return true;
      }
      if (slot.key == k_removed && free_slot == nullptr) free_slot = &slot;
      if (slot.key == k_empty) break;
    }
    if (free_slot == nullptr) {
      free_slot = &slots_->slot[at];
      ++filled_;
    }
    __atomic_store_n(&free_slot->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&free_slot->key, key, __ATOMIC_RELEASE);
    ++live_;
    return true;
  }
  // The value that was there, or null.
  void* remove(uint64_t handle) {
    const Locked locked(&lock_);
    const uint64_t key = handle + 1;
    if (slots_ == nullptr || key <= k_removed) return nullptr;
    uint32_t at = place(slots_, key);
    while (slots_->slot[at].key != key) {
      if (slots_->slot[at].key == k_empty) return nullptr;
      at = (at + 1) & slots_->mask;
    }
    void* value = slots_->slot[at].value;
    __atomic_store_n(&slots_->slot[at].key, k_removed, __ATOMIC_RELEASE);
    --live_;
    // At the end of a run no search passes through here: such marks can go, or a program that
    // makes and frees handles for hours would fill the table with them.
    if (slots_->slot[(at + 1) & slots_->mask].key != k_empty) return value;
    while (slots_->slot[at].key == k_removed) {
      __atomic_store_n(&slots_->slot[at].key, k_empty, __ATOMIC_RELEASE);
      --filled_;
      at = (at - 1) & slots_->mask;
    }
    return value;
  }
  // Calls visit(value) for each entry. Nobody may insert or remove meanwhile.
  template <class Visit>
  void each(Visit visit) const {
    if (slots_ == nullptr) return;
    for (uint32_t i = 0; i <= slots_->mask; ++i) {
      if (slots_->slot[i].key > k_removed) visit(slots_->slot[i].value);
    }
  }
  // Requires that nobody reads any more.
  void free_all() {
    while (slots_ != nullptr) {
      Slots* older = slots_->older;
      free(slots_);
      slots_ = older;
    }
    live_ = 0;
    filled_ = 0;
  }
  [[nodiscard]] uint32_t live() const { return live_; }
  // Bytes of all tables, the outgrown ones included.
  [[nodiscard]] size_t memory() const {
    size_t bytes = 0;
    for (const Slots* slots = slots_; slots != nullptr; slots = slots->older) {
      bytes += allocation_size(slots->mask + 1);
    }
    return bytes;
  }
  // Resets the lock in all tables, for the child of a fork, which lacks the thread that held it.
  static void unlock_after_fork() { pthread_mutex_init(&lock_, nullptr); }

 private:
  static constexpr uint64_t k_empty = 0;    // the key of no handle
  static constexpr uint64_t k_removed = 1;  // the key of VK_NULL_HANDLE, never stored
  static constexpr uint32_t k_first_capacity = 64;
  static constexpr uint32_t k_last_capacity = 1U << 28;

  struct Slot {
    uint64_t key;
    void* value;
  };
  struct Slots {
    Slots* older;
    uint32_t mask;
    uint32_t shift;
    Slot slot[];
  };

  static size_t allocation_size(uint32_t capacity) {
    return sizeof(Slots) + capacity * sizeof(Slot);
  }
  static uint32_t place(const Slots* slots, uint64_t key) {
    return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15ULL) >> slots->shift);
  }

  bool rebuild() {
    uint32_t capacity = slots_ == nullptr ? k_first_capacity : slots_->mask + 1;
    if (slots_ != nullptr && live_ * 4 >= capacity) capacity *= 2;
    if (capacity > k_last_capacity) return false;
    Slots* new_room = static_cast<Slots*>(calloc(1, allocation_size(capacity)));
    if (new_room == nullptr) return false;
    new_room->older = slots_;
    new_room->mask = capacity - 1;
    new_room->shift = 64 - static_cast<uint32_t>(__builtin_ctz(capacity));
    if (slots_ != nullptr) {
      for (uint32_t i = 0; i <= slots_->mask; ++i) {
        const Slot& slot = slots_->slot[i];
        if (slot.key <= k_removed) continue;
        uint32_t at = place(new_room, slot.key);
        while (new_room->slot[at].key != k_empty) at = (at + 1) & new_room->mask;
        new_room->slot[at] = slot;
      }
    }
    filled_ = live_;
    __atomic_store_n(&slots_, new_room, __ATOMIC_RELEASE);
    return true;
  }

  Slots* slots_ = nullptr;
  uint32_t live_ = 0;
  uint32_t filled_ = 0;  // live ones and marks of removed ones
  static inline pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;  // one for all tables
};

// Stores a zeroed record for `handle`, and frees the one before; null without memory.
// `more`: bytes behind it.
template <class T>
T* replace_record(Table* table, uint64_t handle, size_t more = 0) {
  free(table->remove(handle));
  void* record = calloc(1, sizeof(T) + more);
  if (record != nullptr && table->insert(handle, record)) return static_cast<T*>(record);
  free(record);
  return nullptr;
}

// Returns the record of `handle`, or stores a zeroed one; null without memory.
template <class T>
T* get_or_create(Table* table, uint64_t handle) {
  auto* record = table->get<T>(handle);
  return record != nullptr ? record : replace_record<T>(table, handle);
}

// Lists of records that have `next` and `previous`.
template <class T>
void link_record(T** min_room, T* record) {
  record->next = *min_room;
  if (record->next != nullptr) record->next->previous = record;
  *min_room = record;
}
template <class T>
void unlink_record(T** min_room, T* record) {
  if (record->previous == nullptr) {
    *min_room = record->next;
  } else {
    record->previous->next = record->next;
  }
  if (record->next != nullptr) record->next->previous = record->previous;
}

// The first struct of `type` in a chain of Vulkan's, or null.
template <class T, class Type>
const T* in_chain(const void* next, Type type) {
  for (auto at = static_cast<const T*>(next); at != nullptr;
       at = static_cast<const T*>(at->pNext)) {
    if (at->sType == type) return at;
  }
  return nullptr;
}

// A constant array, however long it is.
template <class T>
struct List {
  const T* min_room;
  size_t count;
  [[nodiscard]] constexpr const T* begin() const { return min_room; }
  [[nodiscard]] constexpr const T* end() const { return min_room + count; }
};
template <class T, size_t count>
constexpr List<T> list_of(const T (&all)[count]) {
  return {all, count};
}

// Room for `needed` elements in an array of malloc: it doubles, from `min_room` up to at most
// `max_room`. False where it cannot, the array being as it was.
template <class T, class Count>
bool make_room(T** array, Count* room, uint64_t needed, uint64_t min_room, uint64_t max_room) {
  if (needed <= *room) return true;
  uint64_t new_room = *room == 0 ? min_room : uint64_t{*room} * 2;
  while (new_room < needed) new_room *= 2;
  void* grown =
      new_room > max_room ? nullptr : realloc(static_cast<void*>(*array), new_room * sizeof(T));
  if (grown == nullptr) return false;
  *array = static_cast<T*>(grown);
  *room = static_cast<Count>(new_room);
  return true;
}

}  // namespace weir_probe
