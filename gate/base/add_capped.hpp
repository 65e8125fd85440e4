#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir {

// Adds counts of at least 0, up to the largest that a number holds: files say what they like.
inline void add_capped(std::int64_t& sum, std::int64_t amount) {
  sum += std::min(amount, std::numeric_limits<std::int64_t>::max() - sum);
}

}  // namespace weir
