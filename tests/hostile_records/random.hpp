// A source of random choices that draws the same on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace weir::hostile {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // From 0 to `limit` - 1.
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  // From 1 to `most`; small and large numbers are as likely, and each third time it is `most`.
  std::size_t size(std::size_t most) {
    if (most <= 1 || below(3) == 0) return std::max<std::size_t>(1, most);
    std::size_t range = most;
    for (std::size_t i = below(12); i > 0 && range > 2; --i) range /= 2;
    return 1 + below(range);
  }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;  // its numbers are set by the standard
};

}  // namespace weir::hostile
