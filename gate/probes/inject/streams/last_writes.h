// Remembers which device memory copies and fills wrote last, so that a reader can tell it from
// memory that a kernel may have written since.
#pragma once

#include <stdint.h>

namespace weir_probe {

// Threads may call it at once. One that reads while 1024 others write may get a wrong answer.
class LastWrites {
 public:
  // The number of writes so far. A kernel that runs now may have changed what these wrote.
  [[nodiscard]] uint64_t count() const { return __atomic_load_n(&count_, __ATOMIC_ACQUIRE); }
  void add(uint64_t at, uint64_t bytes) {
    Range& range = ranges_[__atomic_fetch_add(&count_, 1, __ATOMIC_ACQ_REL) % k_ranges];
    __atomic_store_n(&range.begin, at, __ATOMIC_RELAXED);
    __atomic_store_n(&range.end, at + bytes, __ATOMIC_RELAXED);
  }
  // Returns true if one of the writes after the first `since` reached into the range. Writes that
  // are no longer kept are taken for ones that did.
  [[nodiscard]] bool reached(uint64_t at, uint64_t bytes, uint64_t since) const {
    const uint64_t end = count();
    if (end - since > k_ranges) return true;
    for (uint64_t i = since; i < end; ++i) {
      const Range& range = ranges_[i % k_ranges];
      if (__atomic_load_n(&range.begin, __ATOMIC_RELAXED) < at + bytes &&
          __atomic_load_n(&range.end, __ATOMIC_RELAXED) > at) {
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr uint64_t k_ranges = 1024;
  struct Range {
    uint64_t begin, end;
  };
  Range ranges_[k_ranges];
  uint64_t count_;
};

}  // namespace weir_probe
