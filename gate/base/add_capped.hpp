// Sums that cannot overflow. Pure.
#pragma once

#include <cstdint>
#include <limits>

namespace weir {

// Adds to a sum, up to the largest number: files may contain any numbers.
inline void add_capped(std::int64_t& sum, std::int64_t amount) {
  if (__builtin_add_overflow(sum, amount, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

}  // namespace weir
