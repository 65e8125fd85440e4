#pragma once

#include <cstdint>
#include <limits>

namespace weir {

// Adds counts, up to the largest that a number holds: files say what they like.
inline void add_capped(std::int64_t& sum, std::int64_t amount) {
  if (__builtin_add_overflow(sum, amount, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

}  // namespace weir
