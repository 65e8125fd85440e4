// Text gone wrong at random, for readers of hostile text.
#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace weir::tests {

// Up to `most` changes: bytes flipped, parts dropped and doubled, the end cut off, and `pieces`,
// which matter to the reader, put in.
inline std::string mutated(std::string text, std::span<const std::string_view> pieces,
                           std::size_t most, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
  for (std::size_t i = below(most) + 1; i > 0 && !text.empty(); --i) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, below(40) + 1);
        break;
      case 2:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(80)));
        break;
      case 4:
        text.erase(at, 1);
        break;
      default:
        if (below(3) == 0) text.resize(at);  // a short rest leaves little to go wrong in
        break;
    }
  }
  return text;
}

}  // namespace weir::tests
